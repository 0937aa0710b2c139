/* The shm carrier alone: the choice of region and slot, locks, and the detection of a session's end. */
#include "../hws_channel_internal.h"
#include "../shm/hws_shm_internal.h"
#include "fake_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define REGION_BYTES (16ull << 20)

static char fake_error[512];

/*
 * This many further locks appear to belong to others. The first does so only after a delay, as for a process without a
 * processor.
 */
static int locks_to_refuse;
static bool refuses_late;

int fcntl(int fd, int command, ...) {
    typedef int fcntl_t(int, int, ...);
    fcntl_t *real;
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (command == F_SETLK && locks_to_refuse > 0 && ((struct flock *) argument)->l_type == F_WRLCK) {
        locks_to_refuse--;
        if (refuses_late) {
            usleep(50000);
            refuses_late = false;
        }
        errno = EAGAIN;
        return -1;
    }
    *(void **) &real = dlsym(RTLD_NEXT, "fcntl");
    return real(fd, command, argument);
}

static hws_carrier_t *connect_with(const hws_config_t *config) {
    hws_welcome_t welcome;
    bool found;
    fake_error[0] = '\0';
    return hws_shm_connect(config, 0x5eed, &welcome, &found, fake_error, sizeof fake_error);
}

static hws_carrier_t *connect_region(void) {
    hws_config_t config = fake_config();
    return connect_with(&config);
}

static void end(hws_carrier_t *carrier) {
    carrier->ops->close(carrier);
    free(carrier);
}

static void shouldRefuseAHeaderThatMakesNoSense(void) {
    fake_host.header = fake_header(REGION_BYTES, 4);
    HWS_CHECK(hws_shm_header_is_sound(&fake_host.header, REGION_BYTES));
    HWS_CHECK(!hws_shm_header_is_sound(&fake_host.header, REGION_BYTES - 1));
    const size_t offsets[] = {
        offsetof(hws_region_header_t, region_bytes),      offsetof(hws_region_header_t, slots_offset),
        offsetof(hws_region_header_t, slot_stride),       offsetof(hws_region_header_t, command_offset),
        offsetof(hws_region_header_t, command_bytes),     offsetof(hws_region_header_t, reply_offset),
        offsetof(hws_region_header_t, reply_bytes),       offsetof(hws_region_header_t, bulk_offset),
        offsetof(hws_region_header_t, chunk_count),       offsetof(hws_region_header_t, chunk_bytes),
        offsetof(hws_region_header_t, heap_table_offset), offsetof(hws_region_header_t, heap_offset),
        offsetof(hws_region_header_t, heap_bytes),
    };
    const uint64_t values[] = {
        1,         8, 4095, UINT64_MAX, UINT64_MAX - 4095, 1ull << 63, INT64_MAX, REGION_BYTES + 4096, REGION_BYTES - 1,
        1ull << 58};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            hws_region_header_t header = fake_host.header;
            memcpy((uint8_t *) &header + offsets[i], &values[k], sizeof values[k]);
            bool few_chunks = offsets[i] == offsetof(hws_region_header_t, chunk_count) && values[k] == 8;
            HWS_CHECK(hws_shm_header_is_sound(&header, REGION_BYTES) == few_chunks);
        }
    }
    for (int i = 0; i < 5; i++) {
        hws_region_header_t header = fake_host.header;
        uint64_t *overlapping[] = {&header.reply_offset, &header.bulk_offset, &header.heap_offset,
                                   &header.heap_table_offset, &header.slots_offset};
        const uint64_t onto[] = {header.command_offset, header.reply_offset, header.slots_offset, header.heap_offset,
                                 header.heap_table_offset};
        *overlapping[i] = onto[i];
        HWS_CHECK(!hws_shm_header_is_sound(&header, REGION_BYTES));
    }
    hws_region_header_t header = fake_host.header;
    header.slot_count = 0;
    HWS_CHECK(!hws_shm_header_is_sound(&header, REGION_BYTES));
    header.slot_count = HWS_MAX_SLOTS + 1;
    HWS_CHECK(!hws_shm_header_is_sound(&header, REGION_BYTES));
}

static void refuse_region(const char *path, const char *expected) {
    hws_config_t config = {.carrier = HWS_CARRIER_SHM, .connect_timeout_ms = 20000};
    snprintf(config.region, sizeof config.region, "%s", path);
    HWS_CHECK(connect_with(&config) == NULL && strstr(fake_error, expected) != NULL);
}

static void shouldRefuseAFileThatIsNoRegion(void) {
    fake_host_start(REGION_BYTES, 4, HOST_SERVES);
    refuse_region("/dev/shm/hawser-test-there-is-none", "No such file");
    refuse_region("/dev/null", "must be a file");
    char path[] = "/dev/shm/hawser-test-XXXXXX";
    int fd = mkstemp(path);
    refuse_region(path, "must be a file");
    HWS_CHECK(ftruncate(fd, REGION_BYTES) == 0);
    refuse_region(path, "no broker has formatted");
    hws_region_header_t header = fake_host.header;
    header.region_version = 2;
    HWS_CHECK(pwrite(fd, &header, sizeof header, 0) == sizeof header);
    refuse_region(path, "must be version 1");
    header = fake_host.header;
    header.region_bytes *= 2;
    HWS_CHECK(pwrite(fd, &header, sizeof header, 0) == sizeof header);
    refuse_region(path, "header is invalid");
    close(fd);
    unlink(path);
    HWS_CHECK(hws_shm_current() == NULL);
    fake_host_stop();
}

static void shouldRefuseARegionThatAnotherUserPutThere(void) {
    if (geteuid() != 0) {
        puts("SKIPPED: only root can make a file of another user");
        return;
    }
    fake_host_start(REGION_BYTES, 4, HOST_SERVES);
    char path[] = "/dev/shm/hawser-test-XXXXXX", folder[] = "/tmp/hawser-test-XXXXXX", own[64], link[64];
    int fd = mkstemp(path);
    HWS_CHECK(mkdtemp(folder) != NULL && ftruncate(fd, REGION_BYTES) == 0 && fchown(fd, 4711, 0) == 0);
    refuse_region(path, "must belong to the program's user");
    snprintf(link, sizeof link, "%s/link", folder);
    HWS_CHECK(symlink(path, link) == 0);
    refuse_region(link, "no broker has formatted"); /* the owner of the link chose the file */
    HWS_CHECK(chmod(folder, 01777) == 0);
    refuse_region(link, "must belong to the program's user");
    HWS_CHECK(chmod(folder, 0700) == 0 && chown(folder, 4711, 0) == 0);
    refuse_region(link, "must belong to the program's user");
    HWS_CHECK(fchown(fd, 999, 0) == 0);
    refuse_region(path, "no broker has formatted"); /* a broker is a service */
    snprintf(own, sizeof own, "%s/own", folder);
    HWS_CHECK(mkfifo(own, 0600) == 0);
    refuse_region(own, "must be a file");
    close(fd);
    unlink(path);
    unlink(link);
    unlink(own);
    rmdir(folder);
    fake_host_stop();
}

static void shouldSayWhoItIsAndWhereItMapped(void) {
    fake_host_start(REGION_BYTES, 4, HOST_SERVES);
    hws_carrier_t *carrier = connect_region();
    HWS_CHECK(carrier != NULL);
    const hws_shm_view_t *view = hws_shm_current();
    const hws_region_guest_t *guest = fake_guest(view->base, 0);
    HWS_CHECK(view->slot == 0 && view->kind == HWS_KIND_PROCESS && guest->kind == HWS_KIND_PROCESS);
    HWS_CHECK(guest->pid == (uint64_t) getpid() && guest->description_hash == 0x5eed);
    HWS_CHECK(guest->map_address == (uint64_t) (uintptr_t) view->base && guest->map_address >> 40 != 0);
    HWS_CHECK(strcmp(guest->program, program_invocation_short_name) == 0 && guest->host[0] != '\0');
    HWS_CHECK(memcmp(view->header, &fake_host.header, offsetof(hws_region_header_t, host_beat)) == 0);
    const hws_region_header_t *live = (const hws_region_header_t *) view->base;
    HWS_CHECK(fake_load(&live->slot_signal) == 1); /* the broker learns of the claim, and of the end below */
    HWS_CHECK(view->heap == view->base + fake_host.header.heap_offset);
    const hws_chunks_t *chunks = &((hws_shm_t *) carrier)->chunks;
    HWS_CHECK(chunks->offset == (uint64_t) (chunks->bytes - view->base));
    HWS_CHECK(chunks->bytes + chunks->chunk_bytes
              == view->base + fake_host.header.slots_offset + fake_host.header.bulk_offset
                  + fake_host.header.chunk_bytes);
    const hws_region_header_t *hosts = (const hws_region_header_t *) fake_host.base;
    end(carrier);
    HWS_CHECK(fake_load(&hosts->slot_signal) == 2);
    HWS_CHECK(hws_shm_current() == NULL);
    fake_host_stop();
}

static void shouldSayWhyTheBrokerRefused(void) {
    fake_host_start(REGION_BYTES, 2, HOST_REFUSES);
    for (int i = 0; i < 4; i++) { /* a refused claim takes no slot */
        HWS_CHECK(connect_region() == NULL && strstr(fake_error, "no room") != NULL);
    }
    fake_host_stop();
}

static void shouldPassByARegionWhoseBrokerIsGone(void) {
    fake_host_start(REGION_BYTES, 2, HOST_STANDS_STILL);
    HWS_CHECK(connect_region() == NULL && strstr(fake_error, "no sign of life") != NULL);
    /* Its claim is withdrawn, so that a broker that comes back does not serve it. */
    HWS_CHECK(fake_load(&fake_guest(fake_host.base, 0)->state) == HWS_GUEST_LEFT);
    atomic_store(&fake_host.mood, HOST_SERVES);
    hws_carrier_t *carrier = connect_region();
    HWS_CHECK(carrier != NULL);
    end(carrier);
    fake_host_stop();
}

static void shouldNotWaitLongerThanItsTimeout(void) {
    fake_host_start(REGION_BYTES, 2, HOST_IGNORES);
    hws_config_t config = fake_config();
    config.connect_timeout_ms = 50;
    HWS_CHECK(connect_with(&config) == NULL && strstr(fake_error, "in time (50 ms)") != NULL);
    HWS_CHECK(connect_with(&config) == NULL && strstr(fake_error, "in time (50 ms)") != NULL);
    HWS_CHECK(connect_with(&config) == NULL && strstr(fake_error, "did not free a slot in time") != NULL);
    fake_host_stop();
}

/* Other processes hold locks briefly. One late look does not count as repeated looks over a while. */
static void shouldNotBelieveOneLookThatAllSlotsAreTaken(void) {
    enum { SLOTS = 2 };
    fake_host_start(REGION_BYTES, SLOTS, HOST_SERVES);
    locks_to_refuse = SLOTS;
    refuses_late = true;
    hws_carrier_t *carrier = connect_region();
    HWS_CHECK(carrier != NULL && locks_to_refuse == 0 && !refuses_late);
    end(carrier);
    fake_host_stop();
}

static void shouldBeatWhereTheHostAsksForIt(void) {
    fake_host_start(REGION_BYTES, 2, HOST_SERVES);
    hws_carrier_t *carrier = connect_region();
    HWS_CHECK(carrier != NULL && !((hws_shm_t *) carrier)->beats);
    end(carrier);
    atomic_store(&fake_host.liveness, HWS_LIVENESS_BEAT);
    carrier = connect_region();
    HWS_CHECK(carrier != NULL);
    const uint64_t *beat = &fake_guest(fake_host.base, hws_shm_current()->slot)->beat;
    while (__atomic_load_n(beat, __ATOMIC_ACQUIRE) < 3) {
        fake_nap(); /* the test's own limit ends it if the guest does not beat */
    }
    carrier->ops->shutdown(carrier);
    HWS_CHECK(fake_load(&fake_guest(fake_host.base, 0)->state) != HWS_GUEST_CLAIMED);
    end(carrier);
    fake_host_stop();
}

static void shouldFindTheDeviceThatCarriesOurRegion(void) {
    fake_host_start(REGION_BYTES, 2, HOST_SERVES);
    ((hws_region_header_t *) fake_host.base)->doorbell_vectors = 3;
    char root[] = "/tmp/hawser-test-XXXXXX", path[256];
    fake_sysfs_make(root, fake_host.path);
    hws_config_t config = {.carrier = HWS_CARRIER_AUTO, .connect_timeout_ms = 20000};
    snprintf(config.sysfs, sizeof config.sysfs, "%s", root);
    hws_carrier_t *carrier = connect_with(&config);
    HWS_CHECK(carrier != NULL && hws_shm_current()->kind == HWS_KIND_MACHINE);
    snprintf(path, sizeof path, "%s/bus/pci/devices/0000:00:05.0/enable", root);
    char enabled = 0;
    uint32_t rung = 0xffff;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    HWS_CHECK(read(fd, &enabled, 1) == 1 && enabled == '1');
    close(fd);
    snprintf(path, sizeof path, "%s/bus/pci/devices/0000:00:05.0/resource0", root);
    fd = open(path, O_RDWR | O_CLOEXEC);
    HWS_CHECK(pread(fd, &rung, sizeof rung, HWS_DOORBELL_OFFSET) == sizeof rung && rung == 0);
    hws_region_host_t *host = fake_host_page(fake_host.base, 0);
    __atomic_store_n(&host->command_waiting, 1, __ATOMIC_SEQ_CST);
    uint64_t word = 1;
    struct iovec piece = {&word, sizeof word};
    HWS_CHECK(carrier->ops->send(carrier, &piece, 1) == 0);
    HWS_CHECK(pread(fd, &rung, sizeof rung, HWS_DOORBELL_OFFSET) == sizeof rung && rung == 1); /* that of slot 0 */
    HWS_CHECK(fake_load(&host->command_waiting) == 0);
    end(carrier);
    HWS_CHECK(pread(fd, &rung, sizeof rung, HWS_DOORBELL_OFFSET) == sizeof rung && rung == 0); /* we have left */
    close(fd);
    fake_sysfs_remove(root);
    HWS_CHECK(connect_with(&config) == NULL && strstr(fake_error, "no ivshmem device") != NULL);
    fake_host_stop();
}

/* Receives once over a session and closes it. Puts the carrier's message into fake_error. */
static void receive_after(void (*happen)(fake_slot_t *slot)) {
    hws_carrier_t *carrier = connect_region();
    HWS_CHECK(carrier != NULL);
    fake_slot_t slot;
    fake_slot_adopt(&slot);
    happen(&slot);
    uint64_t word;
    struct iovec piece = {&word, sizeof word};
    HWS_CHECK(carrier->ops->receive(carrier, &piece, 1) == -1);
    snprintf(fake_error, sizeof fake_error, "%s", carrier->ops->fault(carrier));
    end(carrier);
    atomic_store(&fake_host.busy, -1);
}

static void end_session(fake_slot_t *slot) {
    fake_slot_end(slot, HWS_HOST_ENDED, "enough");
}

static void end_with_long_reason(fake_slot_t *slot) {
    memset(slot->host->reason, 'x', sizeof slot->host->reason);
    __atomic_store_n(&slot->host->state, HWS_HOST_ENDED, __ATOMIC_RELEASE);
}

static void give_slot_away(fake_slot_t *slot) {
    __atomic_fetch_add(&slot->host->session_id, 1, __ATOMIC_SEQ_CST);
}

static void free_slot(fake_slot_t *slot) {
    __atomic_store_n(&slot->host->state, HWS_HOST_FREE, __ATOMIC_SEQ_CST);
    __atomic_store_n(&slot->host->reply_tail, 0, __ATOMIC_SEQ_CST); /* before the position after WELCOME */
}

static void begin_anew(fake_slot_t *slot) {
    __atomic_fetch_add(&((hws_region_header_t *) slot->base)->epoch, 1, __ATOMIC_SEQ_CST);
}

static void move_tail_too_far(fake_slot_t *slot) {
    __atomic_fetch_add(&slot->host->reply_tail, fake_host.header.reply_bytes + 8, __ATOMIC_SEQ_CST);
}

static void move_tail_back(fake_slot_t *slot) {
    __atomic_fetch_sub(&slot->host->reply_tail, 8, __ATOMIC_SEQ_CST);
}

static void move_tail_to_an_odd_place(fake_slot_t *slot) {
    __atomic_fetch_add(&slot->host->reply_tail, 12, __ATOMIC_SEQ_CST);
}

static void shouldSeeThatItsSessionIsOver(void) {
    const struct {
        void (*happen)(fake_slot_t *);
        const char *expected;
    } cases[] = {
        {end_session, "the session was ended: enough"},       {end_with_long_reason, "xxxxxxxxxxx"},
        {give_slot_away, "given to another session"},         {free_slot, "taken the slot away"},
        {move_tail_too_far, "position in the reply"},         {move_tail_back, "position in the reply"},
        {move_tail_to_an_odd_place, "position in the reply"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_host_start(REGION_BYTES, 2, HOST_SERVES);
        receive_after(cases[i].happen);
        HWS_CHECK(strstr(fake_error, cases[i].expected) != NULL);
        fake_host_stop();
    }
    fake_host_start(REGION_BYTES, 2, HOST_SERVES);
    receive_after(begin_anew);
    HWS_CHECK(strstr(fake_error, "formatted the region again") != NULL);
    fake_host_stop();
}

static void stand_still(fake_slot_t *slot) {
    (void) slot;
    atomic_store(&fake_host.mood, HOST_STANDS_STILL);
}

static void shouldSeeThatTheBrokerIsGone(void) {
    fake_host_start(REGION_BYTES, 2, HOST_SERVES);
    receive_after(stand_still);
    HWS_CHECK(strstr(fake_error, "no sign of life for 5 s") != NULL);
    fake_host_stop();
}

static void shouldRefuseToSendWhereTheSessionIsOver(void) {
    void (*const happenings[])(fake_slot_t *) = {end_session, give_slot_away, free_slot};
    for (size_t i = 0; i < sizeof happenings / sizeof *happenings; i++) {
        fake_host_start(REGION_BYTES, 2, HOST_SERVES);
        hws_carrier_t *carrier = connect_region();
        fake_slot_t slot;
        fake_slot_adopt(&slot);
        happenings[i](&slot);
        uint64_t word = 1;
        struct iovec piece = {&word, sizeof word};
        HWS_CHECK(carrier->ops->send(carrier, &piece, 1) == -1 && errno == ECONNRESET);
        HWS_CHECK(hws_ring_available(&slot.command) == 0);
        end(carrier);
        fake_host_stop();
    }
}

static void shouldRefuseAHeadThatCannotBe(void) {
    const uint64_t heads[] = {8, UINT64_MAX - 7, 1ull << 40};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        fake_host_start(REGION_BYTES, 2, HOST_SERVES);
        hws_carrier_t *carrier = connect_region();
        fake_slot_t slot;
        fake_slot_adopt(&slot);
        __atomic_store_n(&slot.host->command_head, heads[i], __ATOMIC_SEQ_CST);
        uint8_t *bytes = calloc(1, fake_host.header.command_bytes + 8);
        struct iovec piece = {bytes, fake_host.header.command_bytes + 8};
        HWS_CHECK(carrier->ops->send(carrier, &piece, 1) == -1);
        HWS_CHECK(strstr(carrier->ops->fault(carrier), "position in the command ring") != NULL);
        free(bytes);
        end(carrier);
        atomic_store(&fake_host.busy, -1);
        fake_host_stop();
    }
}

static void finish_chunk(void *argument) {
    fake_slot_t *slot = argument;
    const hws_shm_view_t *view = hws_shm_current();
    uint32_t *word = (uint32_t *) ((uint8_t *) slot->guest + 2 * HWS_PAGE_BYTES + HWS_CHUNK_STRIDE);
    /* Not before the thread is asleep. */
    while (__atomic_load_n(&slot->guest->reply_waiting, __ATOMIC_ACQUIRE) == 0) {
        fake_nap();
    }
    memset(view->bulk + view->header->chunk_bytes, 0x77, 100);
    __atomic_store_n(word, 700, __ATOMIC_RELEASE);
    hws_wake(&slot->guest->reply_waiting, &slot->host->reply_signal);
}

static void *run_finish(void *argument) {
    finish_chunk(argument);
    return NULL;
}

static void shouldWaitForAChunkUntilTheWorkerHasDoneWithIt(void) {
    fake_host_start(REGION_BYTES, 2, HOST_SERVES);
    hws_carrier_t *carrier = connect_region();
    fake_slot_t slot;
    fake_slot_adopt(&slot);
    const hws_chunks_t *chunks = &((hws_shm_t *) carrier)->chunks;
    chunks->begin(1);
    HWS_CHECK(!chunks->is_ready(1) && chunks->is_ready(0));
    pthread_t thread;
    HWS_CHECK(pthread_create(&thread, NULL, run_finish, &slot) == 0);
    HWS_CHECK(chunks->wait(1) == 700 && chunks->bytes[chunks->chunk_bytes + 99] == 0x77);
    HWS_CHECK(chunks->wait(1) == 700);
    HWS_CHECK(pthread_join(thread, NULL) == 0);
    chunks->begin(1);
    chunks->cancel(1);
    HWS_CHECK(chunks->wait(1) == 0);
    hws_welcome_t welcome = {.credit_window_bytes = 1 << 20, .next_sequence = 3};
    hws_channel_hooks_t hooks = {0};
    HWS_CHECK(hws_channel_open(carrier, &welcome, &hooks) == 0);
    chunks->begin(1);
    fake_slot_end(&slot, HWS_HOST_ENDED, "enough");
    HWS_CHECK(chunks->wait(1) == HWS_LOST_STATUS && hws_channel_status() == HWS_LOST_STATUS);
    hws_channel_join();
    atomic_store(&fake_host.busy, -1);
    fake_host_stop();
}

#ifndef __SANITIZE_THREAD__ /* the thread sanitizer does not follow forks */
/* A process of the same guest: reports its slot, -1 or -2 for a failure, and lives until the test orders its exit. */
typedef struct neighbour {
    pid_t pid;
    int report, order;
    int slot; /* -1: none was free */
} neighbour_t;

static void spawn_neighbour(neighbour_t *neighbour) {
    int report[2], order[2];
    HWS_CHECK(pipe(report) == 0 && pipe(order) == 0);
    neighbour->pid = fork();
    HWS_CHECK(neighbour->pid >= 0);
    if (neighbour->pid == 0) {
        close(order[1]);
        hws_carrier_t *carrier = connect_region();
        int8_t slot = carrier == NULL ? -1 : (int8_t) hws_shm_current()->slot;
        if (slot >= 0) {
            atomic_store(&hws_shm_current()->heap_table[slot], (uint8_t) (slot + 1));
        } else if (strstr(fake_error, "are taken by other processes") == NULL) {
            slot = -2;
        }
        HWS_CHECK(write(report[1], &slot, 1) == 1);
        HWS_CHECK(read(order[0], &slot, 1) >= 0);
        _exit(0); /* like a crash: it does not leave */
    }
    close(report[1]);
    close(order[0]);
    neighbour->report = report[0];
    neighbour->order = order[1];
}

static void await_neighbour(neighbour_t *neighbour) {
    int8_t slot;
    HWS_CHECK(read(neighbour->report, &slot, 1) == 1);
    neighbour->slot = slot;
}

static void start_neighbour(neighbour_t *neighbour) {
    spawn_neighbour(neighbour);
    await_neighbour(neighbour);
}

static void kill_neighbour(neighbour_t *neighbour) {
    int outcome;
    kill(neighbour->pid, SIGKILL);
    HWS_CHECK(waitpid(neighbour->pid, &outcome, 0) == neighbour->pid);
    close(neighbour->report);
    close(neighbour->order);
}

static void shouldGiveEachProcessASlotAndTakeThatOfADeadOne(void) {
    enum { SLOTS = 4 };
    fake_host_start(REGION_BYTES, SLOTS, HOST_SERVES);
    neighbour_t neighbours[SLOTS], one_too_many;
    for (int i = 0; i < SLOTS; i++) {
        start_neighbour(&neighbours[i]);
        HWS_CHECK(neighbours[i].slot == i);
    }
    start_neighbour(&one_too_many);
    HWS_CHECK(one_too_many.slot == -1);
    kill_neighbour(&one_too_many);
    kill_neighbour(&neighbours[2]);
    /* The host of this test does not check locks: the next process must find the slot abandoned. */
    hws_carrier_t *carrier = connect_region();
    HWS_CHECK(carrier != NULL && hws_shm_current()->slot == 2 && atomic_load(&fake_host.abandoned) == 1);
    HWS_CHECK(atomic_load(&hws_shm_current()->heap_table[2]) == 0); /* its granules came with it */
    HWS_CHECK(atomic_load(&hws_shm_current()->heap_table[1]) == 2);
    kill_neighbour(&neighbours[1]);
    HWS_CHECK(hws_shm_reclaim() == 0); /* a worker may still use them; but it is found to be dead */
    while (atomic_load(&fake_host.abandoned) != 2) {
        fake_nap();
    }
    while (hws_shm_reclaim() == 0) {
        fake_nap();
    }
    HWS_CHECK(atomic_load(&hws_shm_current()->heap_table[1]) == 0);
    HWS_CHECK(atomic_load(&hws_shm_current()->heap_table[0]) == 1 && hws_shm_reclaim() == 0);
    kill_neighbour(&neighbours[0]);
    kill_neighbour(&neighbours[3]);
    end(carrier);
    fake_host_stop();
}

static void shouldGiveSlotsToProcessesThatComeAtOnce(void) {
    enum { SLOTS = 8, ROUNDS = 3 };
    fake_host_start(REGION_BYTES, SLOTS, HOST_SERVES);
    for (int round = 0; round < ROUNDS; round++) {
        neighbour_t neighbours[SLOTS];
        uint32_t slots = 0;
        for (int i = 0; i < SLOTS; i++) {
            spawn_neighbour(&neighbours[i]);
        }
        for (int i = 0; i < SLOTS; i++) {
            await_neighbour(&neighbours[i]);
            HWS_CHECK(neighbours[i].slot >= 0 && (slots & 1u << neighbours[i].slot) == 0);
            slots |= 1u << neighbours[i].slot;
        }
        for (int i = 0; i < SLOTS; i++) {
            kill_neighbour(&neighbours[i]); /* the next round finds every slot abandoned */
        }
    }
    HWS_CHECK(atomic_load(&fake_host.abandoned) == (ROUNDS - 1) * SLOTS);
    fake_host_stop();
}

static void shouldKeepItsRegionFromAForkedChild(void) {
    fake_host_start(REGION_BYTES, 2, HOST_SERVES);
    hws_carrier_t *carrier = connect_region();
    HWS_CHECK(carrier != NULL);
    uint8_t *base = hws_shm_current()->base;
    pid_t child = fork();
    HWS_CHECK(child >= 0);
    if (child == 0) {
        bool unmapped = msync(base, HWS_PAGE_BYTES, MS_ASYNC) == -1 && errno == ENOMEM;
        carrier->ops->close(carrier);
        _exit(unmapped && hws_shm_current() == NULL ? 0 : 1);
    }
    int outcome = -1;
    HWS_CHECK(waitpid(child, &outcome, 0) == child && outcome == 0);
    /* The child's close of its descriptor has released no lock. */
    neighbour_t neighbour;
    start_neighbour(&neighbour);
    HWS_CHECK(neighbour.slot == 1 && fake_load(&fake_guest(fake_host.base, 0)->state) == HWS_GUEST_CLAIMED);
    kill_neighbour(&neighbour);
    end(carrier);
    fake_host_stop();
}
#endif

int main(void) {
    HWS_RUN(shouldRefuseAHeaderThatMakesNoSense);
    HWS_RUN(shouldRefuseAFileThatIsNoRegion);
    HWS_RUN(shouldRefuseARegionThatAnotherUserPutThere);
    HWS_RUN(shouldSayWhoItIsAndWhereItMapped);
    HWS_RUN(shouldSayWhyTheBrokerRefused);
    HWS_RUN(shouldPassByARegionWhoseBrokerIsGone);
    HWS_RUN(shouldNotWaitLongerThanItsTimeout);
    HWS_RUN(shouldNotBelieveOneLookThatAllSlotsAreTaken);
    HWS_RUN(shouldBeatWhereTheHostAsksForIt);
    HWS_RUN(shouldFindTheDeviceThatCarriesOurRegion);
    HWS_RUN(shouldSeeThatItsSessionIsOver);
    HWS_RUN(shouldSeeThatTheBrokerIsGone);
    HWS_RUN(shouldRefuseToSendWhereTheSessionIsOver);
    HWS_RUN(shouldRefuseAHeadThatCannotBe);
    HWS_RUN(shouldWaitForAChunkUntilTheWorkerHasDoneWithIt);
#ifndef __SANITIZE_THREAD__
    HWS_RUN(shouldGiveEachProcessASlotAndTakeThatOfADeadOne);
    HWS_RUN(shouldGiveSlotsToProcessesThatComeAtOnce);
    HWS_RUN(shouldKeepItsRegionFromAForkedChild);
#endif
    return 0;
}
