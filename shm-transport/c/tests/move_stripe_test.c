/* The stripes of sessions that move to another broker. */
#include "../shm/hws_bulk_job.h"
#include "../tcp/hws_stripe.h"
#include "moving_session.h"

#include <semaphore.h>
#include <sys/wait.h>

#define MIB (1u << 20)

/* Issues asynchronous copies of 4 MiB, whose bytes the session's connection brings. */
static void read_long(unsigned count) {
    static uint8_t memory[4 * MIB], bytes[MIB];
    const uint64_t payload = 1;
    const hws_target_t target = {.base = memory, .width_bytes = sizeof memory, .rows = 1, .slices = 1};
    for (unsigned i = 0; i < count; i++) {
        HWS_CHECK(hws_read(FAKE_OPCODE, &payload, sizeof payload, &target, false) == 0);
        const hws_record_header_t copy = fake_take(scratch, sizeof scratch);
        for (uint64_t at = 0; at < sizeof memory; at += MIB) {
            fake_data(copy.sequence, at, bytes, MIB);
        }
        fake_reply(&copy, 0, NULL, 0);
        hws_channel_wait_for_target(memory, sizeof memory);
    }
}

/* Takes READ, which stripes for DATA send. */
static void take_read(int fd) {
    struct {
        hws_record_header_t header;
        uint32_t first_chunk, padding;
    } given;
    HWS_CHECK(fake_receive(fd, &given, sizeof given) && given.header.opcode == HWS_CONTROL_READ);
}

/* By a stripe: bytes of a copy whose order AWAIT restores. */
static void read_by_stripe(int stripe) {
    uint64_t memory = 0;
    const uint64_t payload = 1, value = 77;
    const hws_target_t target = {.base = &memory, .width_bytes = sizeof memory, .rows = 1, .slices = 1};
    HWS_CHECK(hws_read(FAKE_OPCODE, &payload, sizeof payload, &target, false) == 0);
    const hws_record_header_t copy = fake_take(scratch, sizeof scratch);
    const struct {
        hws_record_header_t header;
        uint64_t offset;
        uint32_t bytes, padding;
        uint64_t value;
    } data = {{.length_bytes = sizeof data, .opcode = HWS_CONTROL_DATA, .sequence = copy.sequence}, 0, 8, 0, value};
    HWS_CHECK(send(stripe, &data, sizeof data, MSG_NOSIGNAL) == sizeof data);
    const uint64_t bytes = 8;
    fake_put(HWS_CONTROL_AWAIT, copy.sequence, 0, &bytes, sizeof bytes);
    fake_reply(&copy, 0, NULL, 0);
    hws_channel_wait_for_target(&memory, sizeof memory);
    HWS_CHECK(memory == value && hws_channel_status() == 0);
}

static void use_stripes(const fake_broker_t *at) {
    hws_config_t config = configure();
    const hws_welcome_t welcome = welcome_of(true);
    config.brokers[0] = at->address;
    setenv("HAWSER_COPY_THREADS", "2", 1);
    hws_stripe_use(&config, 1, &welcome);
}

static void shouldOpenStripesForDataAtTheOtherBroker(void) {
    fake_broker_t here, there;
    fake_broker_start(&here, FAKE_PARKS, NULL);
    fake_broker_start(&there, FAKE_PARKS, NULL);
    use_stripes(&here);
    open_session();
    read_long(4);
    fake_broker_await(&here, &here.joined_count, 2);
    for (int i = 0; i < 2; i++) {
        take_read(here.joined[i]);
    }
    read_by_stripe(here.joined[1]);
    leave_for(there.name);
    const int old = fake_fd, fd = connection_of(&there, 0);
    HWS_CHECK(take_left()[0] == '\0');
    shutdown(here.joined[0], SHUT_RDWR); /* the old worker ends: no loss for the new one */
    bool is_lost = false;
    while (!is_lost) {
        pthread_mutex_lock(&hws_channel.receive_lock);
        is_lost = hws_channel.stripe_lost;
        pthread_mutex_unlock(&hws_channel.receive_lock);
        nap();
    }
    put_resumed(fd);
    fake_fd = fd;
    round_trip();
    expect_end(old);
    expect_end(here.joined[1]);
    HWS_CHECK(here.joined_count == 2);
    read_long(1); /* it has had its bytes at the other broker already */
    fake_broker_await(&there, &there.joined_count, 2);
    for (int i = 0; i < 2; i++) {
        take_read(there.joined[i]);
        read_by_stripe(there.joined[i]);
    }
    hws_statistics_t statistics;
    hws_channel_statistics(&statistics);
    HWS_CHECK(statistics.stripes == 4 && here.joined_count == 2);
}

/* A stripe whose handshake is still under way when the session moves is of no use, but must not harm. */
static void shouldNotKeepAStripeThatComesAfterTheMove(void) {
    fake_broker_t here, there;
    fake_broker_close_door(&here); /* accepts, but nobody answers yet */
    HWS_CHECK(listen(here.listener, 16) == 0);
    fake_broker_start(&there, FAKE_PARKS, NULL);
    use_stripes(&here);
    open_session();
    read_long(4);
    const int late = accept(here.listener, NULL, NULL);
    move_to(&there, 0);
    HWS_CHECK(fake_greet(&here, late) && here.joined_count == 1);
    expect_end(late); /* no READ */
    read_long(1);
    fake_broker_await(&there, &there.joined_count, 2);
    take_read(there.joined[0]);
    read_by_stripe(there.joined[0]);
}

/* The worker's end of stripes with chunks. Copies to the device only. */
static fake_broker_t *_Atomic chunk_broker;
static _Atomic unsigned filled;

static void *serve_chunks(void *argument) {
    const int fd = (int) (intptr_t) argument;
    struct {
        hws_record_header_t header;
        uint32_t chunk, bytes;
    } fill;
    uint8_t *bytes = malloc(HWS_STRIPE_CHUNK_BYTES);
    while (fake_receive(fd, &fill, sizeof fill)) {
        HWS_CHECK(fill.header.opcode == HWS_CONTROL_FILL && fake_receive(fd, bytes, hws_pad8(fill.bytes)));
        const uint32_t answer[2] = {fill.chunk, 0};
        atomic_fetch_add(&filled, 1);
        fake_answer(fd, HWS_CONTROL_FILLED, answer, sizeof answer);
    }
    free(bytes);
    return NULL;
}

/* Serves each stripe that joins at a broker. */
static void *serve_stripes(void *argument) {
    fake_broker_t *broker = argument;
    for (unsigned number = 0;; number++) {
        pthread_t thread;
        pthread_mutex_lock(&broker->lock);
        while (broker->joined_count <= number) {
            pthread_cond_wait(&broker->changed, &broker->lock);
        }
        void *fd = (void *) (intptr_t) broker->joined[number];
        pthread_mutex_unlock(&broker->lock);
        HWS_CHECK(pthread_create(&thread, NULL, serve_chunks, fd) == 0);
        pthread_detach(thread);
    }
    return NULL;
}

static sem_t is_in_part, may_go_on;
static _Atomic bool stops_in_part;

static int send_chunk(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part, uint64_t offset, uint32_t chunk) {
    (void) copy, (void) part, (void) offset;
    if (atomic_exchange(&stops_in_part, false)) {
        HWS_CHECK(sem_post(&is_in_part) == 0);
        while (sem_wait(&may_go_on) != 0) {
        }
    }
    fake_broker_t *broker = atomic_load(&chunk_broker);
    const uint32_t done[4] = {chunk + 1, 0, 0, 0}, number = (chunk + 1 - HWS_FIRST_STRIPE_CHUNK) / HWS_STRIPE_CHUNKS;
    pthread_mutex_lock(&broker->lock);
    const int fd = broker->joined[number];
    pthread_mutex_unlock(&broker->lock);
    fake_answer(fd, HWS_CONTROL_DONE, done, sizeof done);
    return 0;
}

static int copy_plainly(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part) {
    (void) copy, (void) part;
    return 0;
}

static int synchronise(const hws_bulk_copy_t *copy) {
    (void) copy;
    return 0;
}

static int copy_long(void) {
    static uint8_t memory[8 * MIB];
    const hws_bulk_copy_t copy = {.to_device = true,
                                  .host = memory,
                                  .width = sizeof memory,
                                  .rows = 1,
                                  .slices = 1,
                                  .pitch = sizeof memory,
                                  .slice_pitch = sizeof memory,
                                  .send = send_chunk,
                                  .copy_part = copy_plainly,
                                  .synchronise = synchronise};
    while (!hws_bulk_serves(sizeof memory)) {
    }
    return hws_bulk_run(&copy);
}

static void copy_until_filled(void *argument) {
    (void) argument;
    const unsigned before = atomic_load(&filled);
    hws_tls.thread = 77;
    while (atomic_load(&filled) == before) {
        HWS_CHECK(copy_long() == 0);
    }
}

static void copy_once(void *argument) {
    hws_tls.thread = 78;
    HWS_CHECK(copy_long() == 0);
    atomic_store((_Atomic bool *) argument, true);
}

static void shouldOpenStripesForChunksAtTheOtherBroker(void) {
    fake_broker_t here, there;
    fake_broker_start(&here, FAKE_PARKS, NULL);
    fake_broker_start(&there, FAKE_PARKS, NULL);
    use_stripes(&here);
    open_session();
    pthread_t servers[2];
    HWS_CHECK(pthread_create(&servers[0], NULL, serve_stripes, &here) == 0);
    HWS_CHECK(pthread_create(&servers[1], NULL, serve_stripes, &there) == 0);
    fake_thread_t thread;
    atomic_store(&chunk_broker, &here);
    fake_start(&thread, copy_until_filled, NULL);
    fake_join(&thread);
    /* The move waits for a copy that is under way, and holds one that would begin. */
    static _Atomic bool first_done, second_done;
    fake_thread_t first, second;
    atomic_store(&stops_in_part, true);
    fake_start(&first, copy_once, (void *) &first_done);
    while (sem_wait(&is_in_part) != 0) {
    }
    const int old = fake_fd;
    leave_for(there.name);
    const int fd = connection_of(&there, 0);
    nap(); /* an honest guest never leaves meanwhile */
    HWS_CHECK(atomic_load(&hws_channel.hold) == HWS_HOLD_NOTHING);
    HWS_CHECK(sem_post(&may_go_on) == 0);
    fake_join(&first);
    HWS_CHECK(take_left()[0] == '\0' && atomic_load(&first_done));
    const unsigned before = here.joined_count;
    atomic_store(&chunk_broker, &there);
    fake_start(&second, copy_once, (void *) &second_done);
    nap(); /* an honest guest never copies meanwhile */
    HWS_CHECK(!atomic_load(&second_done));
    put_resumed(fd);
    fake_fd = fd;
    fake_start(&thread, copy_until_filled, NULL);
    fake_join(&second);
    fake_join(&thread);
    expect_end(old);
    HWS_CHECK(here.joined_count == before && there.joined_count > 0 && hws_channel_status() == 0);
    round_trip();
}

static void in_child(void (*test)(void)) {
    int status;
    const pid_t child = fork();
    HWS_CHECK(child >= 0);
    if (child == 0) {
        test();
        _exit(0); /* the threads of the fakes still run */
    }
    HWS_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A process has one set of stripes. */
#define RUN_IN_CHILD(test)                                                                                             \
    do {                                                                                                               \
        fprintf(stderr, "%s\n", #test);                                                                                \
        in_child(test);                                                                                                \
    } while (0)

int main(void) {
    HWS_CHECK(sem_init(&is_in_part, 0, 0) == 0 && sem_init(&may_go_on, 0, 0) == 0);
    RUN_IN_CHILD(shouldOpenStripesForDataAtTheOtherBroker);
    RUN_IN_CHILD(shouldNotKeepAStripeThatComesAfterTheMove);
    RUN_IN_CHILD(shouldOpenStripesForChunksAtTheOtherBroker);
    return 0;
}
