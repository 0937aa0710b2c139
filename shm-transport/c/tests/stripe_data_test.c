/* DATA by stripes: its places, its order with the session's records, hostile workers, and lost stripes. */
#include "fake_worker.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <time.h>

#define STRIPES 3
#define MIB (1u << 20)
#define FIRST_CHUNK (HWS_FIRST_STRIPE_CHUNK + 2 * HWS_STRIPE_CHUNKS)
#define SOME_ERROR 719

static uint8_t scratch[HWS_MAX_RECORD_BYTES];

/* A stripe: the worker's end, and the guest's with its thread. */
typedef struct stripe {
    int fd;
    hws_carrier_t *carrier;
    fake_thread_t thread;
} stripe_t;

static stripe_t stripes[STRIPES];

/* For a carrier that ends late. */
static bool is_slow;
static sem_t is_in_piece, may_end;
static const hws_carrier_ops_t *tcp_ops;
static hws_carrier_ops_t slow_ops;
static ssize_t slow_receive(hws_carrier_t *carrier, const struct iovec *pieces, int count);

static void serve(void *argument) {
    hws_channel_serve_stripe(argument, FIRST_CHUNK);
}

/* Opens the channel with so many stripes, and takes READ from each. */
static void open_with(unsigned count) {
    fake_open();
    for (unsigned i = 0; i < count; i++) {
        int ends[2];
        HWS_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        stripes[i] = (stripe_t) {.fd = ends[1], .carrier = hws_tcp_adopt(ends[0])};
        if (is_slow) {
            tcp_ops = stripes[i].carrier->ops;
            slow_ops = *tcp_ops;
            slow_ops.receive = slow_receive;
            stripes[i].carrier->ops = &slow_ops;
        }
        fake_start(&stripes[i].thread, serve, stripes[i].carrier);
        struct {
            hws_record_header_t header;
            uint32_t first_chunk, padding;
        } given;
        HWS_CHECK(recv(ends[1], &given, sizeof given, MSG_WAITALL) == sizeof given);
        HWS_CHECK(given.header.opcode == HWS_CONTROL_READ && given.header.length_bytes == sizeof given);
        HWS_CHECK(given.header.sequence == 0 && given.header.thread == 0 && given.first_chunk == FIRST_CHUNK);
    }
}

static void close_all(void) {
    hws_channel_close(HWS_STATUS_DEINITIALIZED);
    for (unsigned i = 0; i < STRIPES && stripes[i].carrier != NULL; i++) {
        fake_join(&stripes[i].thread); /* the channel ends it, though the worker's end stays open */
    }
    fake_close();
    for (unsigned i = 0; i < STRIPES && stripes[i].carrier != NULL; i++) {
        stripes[i].carrier->ops->close(stripes[i].carrier);
        free(stripes[i].carrier);
        close(stripes[i].fd);
        stripes[i] = (stripe_t) {0};
    }
}

static void put(unsigned stripe, const void *bytes, size_t count) {
    HWS_CHECK(send(stripes[stripe].fd, bytes, count, MSG_NOSIGNAL) == (ssize_t) count);
}

typedef struct prefix {
    hws_record_header_t header;
    uint64_t offset;
    uint32_t bytes, padding;
} prefix_t;

static prefix_t prefix_of(uint64_t sequence, uint64_t offset, uint32_t bytes) {
    return (prefix_t) {
        .header = {.length_bytes = (int32_t) (sizeof(prefix_t) + hws_pad8(bytes)),
                   .opcode = HWS_CONTROL_DATA,
                   .sequence = sequence},
        .offset = offset,
        .bytes = bytes,
    };
}

static void put_piece(unsigned stripe, uint64_t sequence, uint64_t offset, const uint8_t *bytes, uint32_t count) {
    const prefix_t prefix = prefix_of(sequence, offset, count);
    put(stripe, &prefix, sizeof prefix);
    put(stripe, bytes, count);
    put(stripe, "\0\0\0\0\0\0\0", hws_pad8(count) - count);
}

static void put_await(uint64_t sequence, uint64_t bytes) {
    fake_put(HWS_CONTROL_AWAIT, sequence, 0, &bytes, sizeof bytes);
}

static void fill(uint8_t *bytes, uint64_t count, uint32_t seed) {
    for (uint64_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t) (seed += i * 13 + (i >> 11));
    }
}

/* Begins an asynchronous copy, and returns its record. */
static hws_record_header_t begin_copy(const hws_target_t *target) {
    const uint64_t payload = 1;
    HWS_CHECK(hws_read(FAKE_OPCODE, &payload, sizeof payload, target, false) == 0);
    return fake_take(scratch, sizeof scratch);
}

static hws_target_t row(void *base, uint64_t bytes) {
    return (hws_target_t) {.base = base, .width_bytes = bytes, .rows = 1, .slices = 1};
}

/* A call that waits for its reply, on a thread of its own. */
typedef struct call {
    fake_thread_t thread;
    hws_record_header_t header;
    int status;
    _Atomic bool returned;
} call_t;

static void make_call(void *argument) {
    call_t *call = argument;
    const uint64_t payload = 7;
    call->status = hws_call(FAKE_OPCODE, 0, &payload, sizeof payload, NULL, 0, NULL, 0, NULL);
    atomic_store(&call->returned, true);
}

static void begin_call(call_t *call) {
    fake_start(&call->thread, make_call, call);
    call->header = fake_take(scratch, sizeof scratch);
}

static int end_call(call_t *call) {
    fake_join(&call->thread);
    return call->status;
}

static void nap(void) {
    const struct timespec time = {.tv_nsec = 20000000};
    nanosleep(&time, NULL);
}

/* Waits until the reader waits for a copy. */
static void until_awaited(uint64_t sequence) {
    bool is_awaited = false;
    for (int i = 0; i < 1000 && !is_awaited; i++) {
        pthread_mutex_lock(&hws_channel.receive_lock);
        is_awaited = hws_channel.awaited != NULL && hws_channel.awaited->sequence == sequence;
        pthread_mutex_unlock(&hws_channel.receive_lock);
        if (!is_awaited) {
            nap();
        }
    }
    HWS_CHECK(is_awaited);
}

static void shouldHoldBackARecordUntilTheDataBeforeItHasArrived(void) {
    open_with(2);
    uint8_t bytes[3000], memory[3000] = {0}, other_memory[3000];
    fill(bytes, sizeof bytes, 1);
    const hws_target_t target = row(memory, sizeof memory), other_target = row(other_memory, sizeof other_memory);
    const hws_record_header_t copy = begin_copy(&target), other = begin_copy(&other_target);
    call_t call = {0};
    begin_call(&call);
    put_await(copy.sequence, sizeof bytes);
    fake_reply(&call.header, 0, NULL, 0);
    put_piece(0, copy.sequence, 0, bytes, 1000);
    until_awaited(copy.sequence);
    put_piece(1, other.sequence, 0, bytes, 1000); /* overtakes by another stripe */
    put_piece(1, other.sequence, 1000, bytes, 2000);
    nap(); /* an honest channel never returns meanwhile */
    HWS_CHECK(!atomic_load(&call.returned));
    put_piece(1, copy.sequence, 1000, bytes + 1000, 2000);
    HWS_CHECK(end_call(&call) == 0);
    /* The program may look now: the copy precedes the call in its stream, though its own reply is still missing. */
    HWS_CHECK(memcmp(memory, bytes, sizeof bytes) == 0);
    fake_reply(&copy, 0, NULL, 0);
    hws_channel_wait_for_target(memory, sizeof memory);
    HWS_CHECK(hws_channel_take_deferred() == 0);
    close_all();
}

static void shouldNotWaitForOtherCopies(void) {
    open_with(1);
    uint8_t bytes[100], first[100], second[100];
    fill(bytes, sizeof bytes, 2);
    const hws_target_t targets[2] = {row(first, sizeof first), row(second, sizeof second)};
    const hws_record_header_t copy = begin_copy(&targets[0]);
    /* Half of this one has come, and for the rest its stream waits for something that the program does later. */
    const hws_record_header_t later = begin_copy(&targets[1]);
    call_t call = {0};
    begin_call(&call);
    put_piece(0, later.sequence, 0, bytes, sizeof bytes / 2);
    put_piece(0, copy.sequence, 0, bytes, sizeof bytes);
    put_await(copy.sequence, sizeof bytes);
    fake_reply(&copy, 0, NULL, 0);
    fake_reply(&call.header, 0, NULL, 0);
    HWS_CHECK(end_call(&call) == 0 && memcmp(first, bytes, sizeof bytes) == 0);
    close_all();
}

typedef struct feeder {
    unsigned stripe;
    uint64_t sequence;
    const uint8_t *bytes;
    uint64_t total;
    fake_thread_t thread;
} feeder_t;

#define FED_BYTES 200003u

/* Sends the pieces of a copy that fall to one stripe. */
static void feed(void *argument) {
    const feeder_t *feeder = argument;
    for (uint64_t at = feeder->stripe * FED_BYTES; at < feeder->total; at += (STRIPES + 1) * FED_BYTES) {
        const uint64_t left = feeder->total - at;
        put_piece(feeder->stripe, feeder->sequence, at, feeder->bytes + at,
                  (uint32_t) (left < FED_BYTES ? left : FED_BYTES));
    }
}

/* Stripes and the session's connection share the pieces of a copy. */
static void share_copy(const hws_target_t *target, const uint8_t *bytes, uint64_t total) {
    const hws_record_header_t copy = begin_copy(target);
    feeder_t feeders[STRIPES];
    for (unsigned i = 0; i < STRIPES; i++) {
        feeders[i] = (feeder_t) {.stripe = i, .sequence = copy.sequence, .bytes = bytes, .total = total};
        fake_start(&feeders[i].thread, feed, &feeders[i]);
    }
    for (uint64_t number = 0, at = 0; at < total; number++, at += FED_BYTES) {
        if (number % (STRIPES + 1) == STRIPES) {
            fake_data(copy.sequence, at, bytes + at, (uint32_t) (total - at < FED_BYTES ? total - at : FED_BYTES));
        }
    }
    put_await(copy.sequence, total);
    fake_reply(&copy, 0, NULL, 0);
    for (unsigned i = 0; i < STRIPES; i++) {
        fake_join(&feeders[i].thread);
    }
    hws_channel_wait_for_target(target->base, total);
}

static void shouldPutPiecesOfSeveralStripesInTheirPlaces(void) {
    enum { WIDTH = 3001, ROWS = 300, PITCH = 3008, SLICES = 2, SLICE = PITCH * (ROWS + 3) };
    const uint64_t box_bytes = (uint64_t) WIDTH * ROWS * SLICES, total = 5 * MIB + 13;
    uint8_t *bytes = malloc(total), *memory = malloc(total);
    fill(bytes, total, 3);
    open_with(STRIPES);
    const hws_target_t plain = row(memory, total);
    share_copy(&plain, bytes, total);
    HWS_CHECK(memcmp(memory, bytes, total) == 0);
    memset(memory, 0xee, total);
    const hws_target_t box = {.base = memory,
                              .width_bytes = WIDTH,
                              .rows = ROWS,
                              .pitch_bytes = PITCH,
                              .slices = SLICES,
                              .slice_pitch_bytes = SLICE};
    share_copy(&box, bytes, box_bytes);
    for (uint64_t y = 0; y < ROWS * SLICES; y++) {
        const uint8_t *at = memory + y / ROWS * SLICE + y % ROWS * PITCH;
        HWS_CHECK(memcmp(at, bytes + y * WIDTH, WIDTH) == 0);
        HWS_CHECK(at[WIDTH] == 0xee && at[PITCH - 1] == 0xee);
    }
    HWS_CHECK(hws_channel_take_deferred() == 0);
    hws_statistics_t statistics;
    hws_channel_statistics(&statistics);
    HWS_CHECK(statistics.bytes_in > total + box_bytes);
    close_all();
    free(bytes);
    free(memory);
}

static void shouldReportMemoryThatCannotBeWritten(void) {
    open_with(1);
    uint8_t *memory = mmap(NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *bytes = calloc(1, FED_BYTES);
    HWS_CHECK(memory != MAP_FAILED);
    const hws_target_t target = row(memory, FED_BYTES);
    for (int i = 0; i < 2; i++) { /* the stripe stays in step */
        const hws_record_header_t copy = begin_copy(&target);
        put_piece(0, copy.sequence, 0, bytes, FED_BYTES);
        put_await(copy.sequence, FED_BYTES);
        fake_reply(&copy, 0, NULL, 0);
        hws_channel_wait_for_target(memory, MIB);
        HWS_CHECK(hws_channel_take_deferred() == HWS_STATUS_INVALID_VALUE && hws_channel_status() == 0);
    }
    close_all();
    munmap(memory, MIB);
    free(bytes);
}

typedef void offence_t(const hws_record_header_t *copy, const hws_record_header_t *call);

/* Sends stderr to a file, which it returns, with the old stderr. */
static int capture(int *old_p) {
    int file = memfd_create("stderr", MFD_CLOEXEC);
    *old_p = dup(STDERR_FILENO);
    HWS_CHECK(file >= 0 && *old_p >= 0 && dup2(file, STDERR_FILENO) >= 0);
    return file;
}

/* Ends capture(): the text must contain this. */
static void expect_captured(int file, int old, const char *wanted) {
    char text[1024] = "";
    HWS_CHECK(dup2(old, STDERR_FILENO) >= 0 && close(old) == 0);
    HWS_CHECK(pread(file, text, sizeof text - 1, 0) >= 0 && close(file) == 0);
    fprintf(stderr, "%s", text);
    HWS_CHECK(strstr(text, wanted) != NULL);
}

/* A copy to the first 64 bytes of 128, with stripes, whose worker breaks a rule: the session is lost for this reason. */
static void expect_loss(unsigned count, const char *reason, offence_t *offence) {
    open_with(count);
    uint8_t memory[128];
    memset(memory, 0xcc, sizeof memory);
    const hws_target_t target = row(memory, 64);
    const hws_record_header_t copy = begin_copy(&target);
    call_t call = {0};
    begin_call(&call);
    int old, file = capture(&old);
    offence(&copy, &call.header);
    const int status = end_call(&call);
    hws_channel_wait_for_target(memory, sizeof memory);
    close_all();
    expect_captured(file, old, reason);
    HWS_CHECK(status == HWS_LOST_STATUS && atomic_load(&fake_failed_status) == HWS_LOST_STATUS);
    for (int i = 64; i < 128; i++) {
        HWS_CHECK(memory[i] == 0xcc);
    }
}

static void send_prefix(prefix_t prefix) {
    static const uint8_t zeros[256];
    put(0, &prefix, sizeof prefix);
    /* Fails when the guest has refused already. */
    send(stripes[0].fd, zeros, sizeof zeros, MSG_NOSIGNAL);
}

static void reply_to_nobody(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    send_prefix(prefix_of(copy->sequence + 7, 0, 8));
}

static void answer_a_call(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) copy;
    send_prefix(prefix_of(call->sequence, 0, 8));
}

static void go_past_the_target(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    send_prefix(prefix_of(copy->sequence, 56, 16));
}

static void begin_past_the_target(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    send_prefix(prefix_of(copy->sequence, UINT64_MAX - 7, 16));
}

static void send_more_than_the_copy(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    static const uint8_t zeros[64];
    put_piece(0, copy->sequence, 0, zeros, 64);
    send_prefix(prefix_of(copy->sequence, 0, 8));
}

static void state_another_length(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    prefix_t prefix = prefix_of(copy->sequence, 0, 8);
    prefix.header.length_bytes += 8;
    send_prefix(prefix);
}

static void send_more_than_a_record(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    send_prefix(prefix_of(copy->sequence, 0, 2 * MIB));
}

static void send_another_record(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    prefix_t prefix = prefix_of(copy->sequence, 0, 8);
    prefix.header.opcode = HWS_CONTROL_CREDIT;
    send_prefix(prefix);
}

static void reply_during_data(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    const prefix_t prefix = prefix_of(copy->sequence, 0, 64);
    put(0, &prefix, sizeof prefix);
    for (bool is_claimed = false; !is_claimed; nap()) {
        pthread_mutex_lock(&hws_channel.receive_lock);
        is_claimed = hws_waiter_find(copy->sequence)->writers == 1;
        pthread_mutex_unlock(&hws_channel.receive_lock);
    }
    fake_reply(copy, 0, NULL, 0);
}

static void await_more_than_the_copy(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    put_await(copy->sequence, 65);
}

static void await_a_call(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) copy;
    put_await(call->sequence, 1);
}

static void await_nobody(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    put_await(copy->sequence + 7, 0);
}

static void await_without_stripes(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) call;
    put_await(copy->sequence, 64);
}

static void await_nothing(const hws_record_header_t *copy, const hws_record_header_t *call) {
    (void) copy, (void) call;
    fake_put(HWS_CONTROL_AWAIT, 0, 0, NULL, 0);
}

static void shouldRefuseHostileData(void) {
    const char *none = "DATA for a call that expects none", *outside = "DATA outside the copy's target";
    expect_loss(1, none, reply_to_nobody);
    expect_loss(1, none, answer_a_call);
    expect_loss(1, outside, go_past_the_target);
    expect_loss(1, outside, begin_past_the_target);
    expect_loss(1, outside, send_more_than_the_copy);
    expect_loss(1, "whose length differs from its bytes", state_another_length);
    expect_loss(1, "whose length differs from its bytes", send_more_than_a_record);
    expect_loss(1, "a record of a stripe that is no DATA", send_another_record);
    expect_loss(1, "a reply before all DATA of its copy", reply_during_data);
}

static void shouldRefuseHostileAwait(void) {
    const char *reason = "AWAIT without stripes, or for bytes that are not a copy's";
    expect_loss(0, reason, await_without_stripes);
    expect_loss(1, reason, await_more_than_the_copy);
    expect_loss(1, reason, await_a_call);
    expect_loss(1, reason, await_nobody);
    expect_loss(1, "an AWAIT record of a wrong length", await_nothing);
}

static void lose_the_awaited_stripe(const hws_record_header_t *copy, const hws_record_header_t *call) {
    const prefix_t prefix = prefix_of(copy->sequence, 0, 64);
    put_await(copy->sequence, 64);
    fake_reply(call, 0, NULL, 0);
    until_awaited(copy->sequence);
    put(0, &prefix, sizeof prefix);
    shutdown(stripes[0].fd, SHUT_RDWR); /* half way through a piece */
}

static void lose_a_stripe_before(const hws_record_header_t *copy, const hws_record_header_t *call) {
    shutdown(stripes[0].fd, SHUT_RDWR);
    put_await(copy->sequence, 64);
    fake_reply(call, 0, NULL, 0);
}

static void shouldLoseTheSessionWhenAwaitedDataCannotCome(void) {
    const char *reason = "a connection of the session is lost: closed by the other end";
    expect_loss(1, reason, lose_the_awaited_stripe);
    expect_loss(2, reason, lose_the_awaited_stripe);
    expect_loss(1, reason, lose_a_stripe_before);
}

/* The worker's last words come by the session's connection, and its stripes may end before them. */
static void shouldReportTheWorkersReasonAfterTheEndOfItsStripes(void) {
    open_with(1);
    call_t call = {0};
    begin_call(&call);
    shutdown(stripes[0].fd, SHUT_RDWR);
    for (bool is_lost = false; !is_lost; nap()) {
        pthread_mutex_lock(&hws_channel.receive_lock);
        is_lost = hws_channel.stripe_lost;
        pthread_mutex_unlock(&hws_channel.receive_lock);
    }
    const uint32_t lost[4] = {SOME_ERROR, 4, 0, 0};
    fake_put(HWS_CONTROL_LOST, 0, 0, lost, 12);
    HWS_CHECK(end_call(&call) == SOME_ERROR);
    close_all();
}

/* The program frees the target at its exit: no stripe may write to it then. */
static void shouldEndHalfWayThroughAPiece(void) {
    for (int i = 0; i < 2; i++) {
        open_with(STRIPES);
        uint8_t *memory = malloc(MIB), bytes[1000] = {0};
        const hws_target_t target = row(memory, MIB);
        const hws_record_header_t copy = begin_copy(&target);
        const prefix_t prefix = prefix_of(copy.sequence, 0, MIB);
        put(0, &prefix, sizeof prefix);
        put(0, bytes, sizeof bytes);
        if (i == 0) {
            put_await(copy.sequence, MIB);
            until_awaited(copy.sequence);
        }
        hws_channel_close(HWS_STATUS_DEINITIALIZED);
        hws_channel_wait_for_target(memory, MIB);
        free(memory);
        close_all();
    }
}

/* Receives as TCP does, but holds a piece of 1 MiB even when it has been shut down. Then it writes a byte and ends. */
static ssize_t slow_receive(hws_carrier_t *carrier, const struct iovec *pieces, int count) {
    if (pieces[0].iov_len != MIB) {
        return tcp_ops->receive(carrier, pieces, count);
    }
    HWS_CHECK(sem_post(&is_in_piece) == 0);
    while (sem_wait(&may_end) != 0) {
    }
    memset(pieces[0].iov_base, 1, 1);
    return 0;
}

typedef struct leaver {
    fake_thread_t thread;
    void *memory;
    _Atomic bool may_free;
} leaver_t;

static void leave(void *argument) {
    leaver_t *leaver = argument;
    hws_channel_close(HWS_STATUS_DEINITIALIZED);
    hws_channel_wait_for_target(leaver->memory, MIB);
    atomic_store(&leaver->may_free, true);
}

static void shouldKeepTheTargetUntilNoStripeWritesToIt(void) {
    is_slow = true;
    HWS_CHECK(sem_init(&is_in_piece, 0, 0) == 0 && sem_init(&may_end, 0, 0) == 0);
    open_with(1);
    is_slow = false;
    leaver_t leaver = {.memory = malloc(MIB)};
    const hws_target_t target = row(leaver.memory, MIB);
    const hws_record_header_t copy = begin_copy(&target);
    const prefix_t prefix = prefix_of(copy.sequence, 0, MIB);
    put(0, &prefix, sizeof prefix);
    while (sem_wait(&is_in_piece) != 0) {
    }
    fake_start(&leaver.thread, leave, &leaver);
    nap(); /* an honest channel never returns meanwhile */
    HWS_CHECK(!atomic_load(&leaver.may_free));
    HWS_CHECK(sem_post(&may_end) == 0);
    fake_join(&leaver.thread);
    free(leaver.memory);
    close_all();
}

int main(void) {
    HWS_RUN(shouldHoldBackARecordUntilTheDataBeforeItHasArrived);
    HWS_RUN(shouldNotWaitForOtherCopies);
    HWS_RUN(shouldPutPiecesOfSeveralStripesInTheirPlaces);
    HWS_RUN(shouldReportMemoryThatCannotBeWritten);
    HWS_RUN(shouldRefuseHostileData);
    HWS_RUN(shouldRefuseHostileAwait);
    HWS_RUN(shouldLoseTheSessionWhenAwaitedDataCannotCome);
    HWS_RUN(shouldReportTheWorkersReasonAfterTheEndOfItsStripes);
    HWS_RUN(shouldEndHalfWayThroughAPiece);
    HWS_RUN(shouldKeepTheTargetUntilNoStripeWritesToIt);
    return 0;
}
