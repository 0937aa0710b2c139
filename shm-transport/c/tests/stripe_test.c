/*
 * Copies by stripes, against a broker and workers in threads of this process. Each case runs in a child, because a
 * process has one session. The test replaces the session's channel.
 */
#include "../hws_channel.h"
#include "../hws_channel_move.h"
#include "../hws_handshake_proof.h"
#include "../hws_record.h"
#include "../shm/hws_bulk.h"
#include "../tcp/hws_stripe.h"
#include "hws_test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK HWS_STRIPE_CHUNK_BYTES
#define MIB (1u << 20)
#define QUEUE 8
#define SOME_ERROR 719
#define SESSION 4711

/* A fault of the broker, or of the worker's end of each stripe. */
typedef enum fault {
    NOTHING,
    REFUSES,          /* the broker takes no JOIN */
    FAILS_COPIES,     /* DONE with an error */
    BREAKS_OFF,       /* the connection ends at the third chunk */
    ANSWERS_UNASKED,  /* DONE for a chunk that no call has named */
    BRINGS_TOO_LITTLE /* DONE with 8 bytes less than its copy */
} fault_t;

typedef struct order {
    bool to_device;
    uint8_t *device;
    uint64_t bytes;
    uint32_t chunk; /* of the stripe */
} order_t;

/* The worker's end of a stripe. */
typedef struct end {
    int fd;
    uint32_t first_chunk;
    uint8_t chunks[HWS_STRIPE_CHUNKS * CHUNK];
    pthread_mutex_t lock, sending;
    pthread_cond_t changed;
    order_t orders[QUEUE];
    unsigned put, taken, done;
} end_t;

static hws_config_t config = {.brokers = {{"127.0.0.1", ""}},
                              .broker_count = 1,
                              .key_id = "key",
                              .secret = "secret",
                              .connect_timeout_ms = 20000};
static const hws_welcome_t session = {.session_id = SESSION, .session_nonce = "0123456789abcde"};
static fault_t fault;
static end_t *_Atomic ends[HWS_MAX_STRIPES];
static _Atomic unsigned ends_count, plain_parts, striped_parts, failures;
static _Atomic int filled;

_Thread_local hws_tls_t hws_tls;

void hws_channel_count_stripe(void) {
}

bool hws_channel_forget_stripes(void) {
    return true;
}

void hws_channel_count_stripe_bytes(uint64_t bytes_out, uint64_t bytes_in) {
    (void) bytes_out, (void) bytes_in;
}

static void (*note_read)(uint64_t bytes);
static pthread_mutex_t served_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t served_changed = PTHREAD_COND_INITIALIZER;
static unsigned served;
static uint32_t served_chunks[HWS_MAX_STRIPES];

void hws_channel_note_reads(void (*note)(uint64_t bytes)) {
    note_read = note;
}

void hws_channel_serve_stripe(hws_carrier_t *carrier, uint32_t first_chunk) {
    pthread_mutex_lock(&served_lock);
    HWS_CHECK(carrier != NULL && served < HWS_MAX_STRIPES);
    served_chunks[served++] = first_chunk;
    pthread_cond_broadcast(&served_changed);
    pthread_mutex_unlock(&served_lock);
}

static char reason[512]; /* why the session failed first */

int hws_channel_fail(int status, const char *format, ...) {
    if (atomic_fetch_add(&failures, 1) == 0) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(reason, sizeof reason, format, arguments);
        va_end(arguments);
    }
    return status;
}

static bool read_all(int fd, void *target, size_t bytes) {
    return recv(fd, target, bytes, MSG_WAITALL) == (ssize_t) bytes;
}

static void write_all(int fd, const void *bytes, size_t count) {
    for (size_t at = 0; at < count;) {
        ssize_t sent = send(fd, (const uint8_t *) bytes + at, count - at, MSG_NOSIGNAL);
        if (sent <= 0) {
            return; /* the guest has gone */
        }
        at += (size_t) sent;
    }
}

static void put_record(int fd, uint32_t opcode, const void *payload, size_t payload_bytes, size_t more) {
    hws_record_header_t header = {.length_bytes = (int32_t) (HWS_HEADER_BYTES + payload_bytes + more),
                                  .opcode = opcode};
    write_all(fd, &header, sizeof header);
    write_all(fd, payload, payload_bytes);
}

/* The broker's part of JOIN. Returns whether the connection has joined. */
static bool join(int fd) {
    hws_record_header_t header;
    uint8_t hello[1024], challenge[HWS_CHALLENGE_FIXED_BYTES] = {9}, given[HWS_JOIN_FIXED_BYTES];
    uint8_t proof[HWS_PROOF_BYTES];
    HWS_CHECK(read_all(fd, &header, sizeof header) && header.opcode == HWS_CONTROL_HELLO);
    size_t hello_bytes = (size_t) header.length_bytes - sizeof header;
    HWS_CHECK(hello_bytes <= sizeof hello && read_all(fd, hello, hello_bytes));
    hws_token_keys_t keys;
    hws_token_keys_derive(config.secret, &keys);
    hws_bytes_t pieces[3] = {{"hawser-server-2", 15}, {challenge, HWS_NONCE_SERVER_BYTES}, {hello, hello_bytes}};
    hws_hmac_sha256(keys.server_key, sizeof keys.server_key, pieces, 3, challenge + HWS_CHALLENGE_SERVER_PROOF_OFFSET);
    put_record(fd, HWS_CONTROL_CHALLENGE, challenge, sizeof challenge, 0);
    HWS_CHECK(read_all(fd, &header, sizeof header) && header.opcode == HWS_CONTROL_JOIN
              && header.length_bytes == HWS_HEADER_BYTES + HWS_JOIN_FIXED_BYTES && read_all(fd, given, sizeof given));
    const hws_transcript_t transcript = {challenge, hello, hello_bytes};
    hws_handshake_proof_of_guest(&keys, HWS_PURPOSE_JOIN, &transcript, proof);
    uint64_t id;
    memcpy(&id, given + HWS_JOIN_SESSION_ID_OFFSET, sizeof id);
    HWS_CHECK(memcmp(given + HWS_JOIN_PROOF_OFFSET, proof, sizeof proof) == 0 && id == SESSION);
    HWS_CHECK(memcmp(given + HWS_JOIN_SESSION_NONCE_OFFSET, session.session_nonce, sizeof session.session_nonce) == 0);
    if (fault == REFUSES) {
        const uint32_t refusal[2] = {HWS_REFUSED_PROTOCOL, 0};
        put_record(fd, HWS_CONTROL_REFUSED, refusal, sizeof refusal, 0);
        return false;
    }
    return true;
}

/* A copy to the device may end after its call. A stream would put the next copy behind it. */
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;

static void *serve_orders(void *argument) {
    end_t *end = argument;
    for (;;) {
        pthread_mutex_lock(&end->lock);
        while (end->taken == end->put) {
            pthread_cond_wait(&end->changed, &end->lock);
        }
        order_t order = end->orders[end->taken++ % QUEUE];
        pthread_mutex_unlock(&end->lock);
        uint8_t *chunk = end->chunks + (size_t) order.chunk * CHUNK;
        pthread_mutex_lock(&device_lock);
        memcpy(order.to_device ? order.device : chunk, order.to_device ? chunk : order.device, order.bytes);
        pthread_mutex_unlock(&device_lock);
        pthread_mutex_lock(&end->lock);
        end->done++;
        pthread_cond_broadcast(&end->changed);
        pthread_mutex_unlock(&end->lock);
        uint64_t bytes = order.to_device || fault == FAILS_COPIES ? 0 : order.bytes;
        bytes -= fault == BRINGS_TOO_LITTLE && bytes > 8 ? 8 : 0;
        uint32_t done[4] = {end->first_chunk + order.chunk, fault == FAILS_COPIES ? SOME_ERROR : 0, (uint32_t) bytes,
                            0};
        pthread_mutex_lock(&end->sending);
        put_record(end->fd, HWS_CONTROL_DONE, done, sizeof done, hws_pad8(bytes));
        write_all(end->fd, chunk, bytes);
        write_all(end->fd, "\0\0\0\0\0\0\0", hws_pad8(bytes) - bytes);
        pthread_mutex_unlock(&end->sending);
    }
    return NULL;
}

static void *serve(void *argument) {
    int fd = *(int *) argument;
    free(argument);
    if (!join(fd)) {
        close(fd);
        return NULL;
    }
    unsigned number = atomic_fetch_add(&ends_count, 1);
    HWS_CHECK(number < HWS_MAX_STRIPES);
    end_t *end = calloc(1, sizeof *end);
    end->fd = fd;
    end->first_chunk = HWS_FIRST_STRIPE_CHUNK + number * HWS_STRIPE_CHUNKS;
    pthread_mutex_init(&end->lock, NULL);
    pthread_mutex_init(&end->sending, NULL);
    pthread_cond_init(&end->changed, NULL);
    atomic_store(&ends[number], end);
    pthread_t thread;
    HWS_CHECK(pthread_create(&thread, NULL, serve_orders, end) == 0);
    uint32_t words[2] = {end->first_chunk, 0};
    put_record(fd, HWS_CONTROL_JOINED, words, sizeof words, 0);
    struct {
        hws_record_header_t header;
        uint32_t chunk, bytes;
    } fill;
    while (read_all(fd, &fill, sizeof fill)) {
        HWS_CHECK(fill.header.opcode == HWS_CONTROL_FILL && fill.bytes > 0 && fill.bytes <= CHUNK);
        HWS_CHECK(fill.header.length_bytes == (int32_t) (sizeof fill + hws_pad8(fill.bytes)));
        uint32_t chunk = fill.chunk - end->first_chunk;
        HWS_CHECK(chunk < HWS_STRIPE_CHUNKS);
        if (fault == BREAKS_OFF && atomic_fetch_add(&filled, 1) == 2) {
            shutdown(fd, SHUT_RDWR);
            return NULL;
        }
        /* The sender is done with the chunk, since the guest has it. The thread sanitizer learns that by the lock. */
        pthread_mutex_lock(&end->sending);
        pthread_mutex_unlock(&end->sending);
        HWS_CHECK(read_all(fd, end->chunks + (size_t) chunk * CHUNK, hws_pad8(fill.bytes)));
        uint32_t answer[4] = {fill.chunk, 0};
        pthread_mutex_lock(&end->sending);
        if (fault == ANSWERS_UNASKED) {
            put_record(fd, HWS_CONTROL_DONE, answer, sizeof answer, 0);
        }
        put_record(fd, HWS_CONTROL_FILLED, answer, 8, 0);
        pthread_mutex_unlock(&end->sending);
    }
    return NULL;
}

static void *accept_all(void *argument) {
    int listener = *(int *) argument;
    for (;;) {
        int *fd = malloc(sizeof *fd);
        *fd = accept(listener, NULL, NULL);
        pthread_t thread;
        HWS_CHECK(*fd >= 0 && pthread_create(&thread, NULL, serve, fd) == 0);
        pthread_detach(thread);
    }
    return NULL;
}

/* Begins the session, whose broker listens. */
static void begin(void) {
    static int listener;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    HWS_CHECK(bind(listener, (struct sockaddr *) &address, bytes) == 0 && listen(listener, 16) == 0);
    HWS_CHECK(getsockname(listener, (struct sockaddr *) &address, &bytes) == 0);
    snprintf(config.brokers[0].port, sizeof config.brokers[0].port, "%d", ntohs(address.sin_port));
    pthread_t thread;
    HWS_CHECK(pthread_create(&thread, NULL, accept_all, &listener) == 0);
    hws_stripe_use(&config, 1, &session);
    hws_tls = (hws_tls_t) {.thread = 77, .context = 5};
}

static uint8_t *device_place(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part) {
    return (uint8_t *) (uintptr_t) copy->argument + ((part->slice * copy->rows + part->row) * copy->width + part->x);
}

/* The call of a part. The parts of these copies are whole rows, or pieces of one. */
static int send_call(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part, uint64_t offset, uint32_t chunk) {
    HWS_CHECK(hws_tls.thread == 77 && hws_tls.context == 5 && offset == 0);
    uint32_t index = chunk + 1 - HWS_FIRST_STRIPE_CHUNK;
    end_t *end = atomic_load(&ends[index / HWS_STRIPE_CHUNKS]);
    HWS_CHECK(end != NULL);
    atomic_fetch_add(&striped_parts, 1);
    pthread_mutex_lock(&end->lock);
    HWS_CHECK(end->put - end->taken < HWS_STRIPE_CHUNKS);
    end->orders[end->put++ % QUEUE] = (order_t) {copy->to_device, device_place(copy, part),
                                                 part->width * part->rows * part->slices, index % HWS_STRIPE_CHUNKS};
    pthread_cond_broadcast(&end->changed);
    pthread_mutex_unlock(&end->lock);
    return 0;
}

static int copy_plainly(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part) {
    atomic_fetch_add(&plain_parts, 1);
    pthread_mutex_lock(&device_lock);
    hws_bulk_move(copy, part, device_place(copy, part));
    pthread_mutex_unlock(&device_lock);
    return 0;
}

static int synchronise(const hws_bulk_copy_t *copy) {
    (void) copy;
    return 0;
}

static int run(bool to_device, uint8_t *host, uint8_t *device, uint64_t width, uint64_t rows, uint64_t pitch) {
    const hws_bulk_copy_t copy = {
        .to_device = to_device,
        .host = host,
        .width = width,
        .rows = rows,
        .slices = 1,
        .pitch = pitch,
        .slice_pitch = pitch * rows,
        .send = send_call,
        .copy_part = copy_plainly,
        .synchronise = synchronise,
        .argument = device,
    };
    return hws_bulk_run(&copy);
}

static void fill_bytes(uint8_t *bytes, uint64_t count, uint32_t seed) {
    uint32_t words[1021]; /* a prime, so that no two chunks are equal */
    for (size_t i = 0; i < 1021; i++) {
        words[i] = seed = seed * 1664525u + 1013904223u;
    }
    for (uint64_t at = 0; at < count; at += sizeof words) {
        memcpy(bytes + at, words, count - at < sizeof words ? count - at : sizeof words);
    }
}

/* Lets copies use stripes: as many bytes as a program must have copied before. */
static void warm_up(void) {
    for (int i = 0; i < 3; i++) {
        HWS_CHECK(!hws_bulk_serves(4 * MIB));
    }
    HWS_CHECK(hws_bulk_serves(4 * MIB) && !hws_bulk_serves(4 * MIB - 1));
}

/* Copies there and back. This device has no streams, so the second copy waits for the end of the first. */
static void round_trip(uint64_t width, uint64_t rows, uint64_t gap) {
    uint64_t pitch = width + gap, extent = pitch * rows;
    uint8_t *from = malloc(extent), *to = calloc(1, extent), *device = malloc(width * rows);
    fill_bytes(from, extent, 3);
    HWS_CHECK(run(true, from, device, width, rows, pitch) == 0);
    for (int i = 0; i < HWS_MAX_STRIPES; i++) {
        end_t *end = atomic_load(&ends[i]);
        if (end != NULL) {
            pthread_mutex_lock(&end->lock);
            while (end->done < end->put) {
                pthread_cond_wait(&end->changed, &end->lock);
            }
            pthread_mutex_unlock(&end->lock);
        }
    }
    HWS_CHECK(run(false, to, device, width, rows, pitch) == 0);
    uint8_t *zeros = calloc(1, gap + 1);
    for (uint64_t y = 0; y < rows; y++) {
        HWS_CHECK(memcmp(to + y * pitch, from + y * pitch, width) == 0);
        HWS_CHECK(memcmp(to + y * pitch + width, zeros, gap) == 0);
    }
    free(zeros);
    free(from);
    free(to);
    free(device);
}

static void *round_trips(void *argument) {
    hws_tls = (hws_tls_t) {.thread = 77, .context = 5};
    for (uint64_t i = 0; i < 3; i++) {
        round_trip(5 * MIB + 13 * i, 1, 0);
        round_trip(100003, 60, i * 7);
    }
    return argument;
}

static void should_copy_boxes_there_and_back(void) {
    begin();
    warm_up();
    round_trips(NULL);
    round_trip(3 * CHUNK + 1, 3, 5); /* rows longer than a chunk */
    HWS_CHECK(atomic_load(&striped_parts) > 0 && atomic_load(&failures) == 0);
    HWS_CHECK(atomic_load(&ends_count) >= 1 && atomic_load(&ends_count) <= 4);
}

static void should_keep_copies_of_several_threads_apart(void) {
    begin();
    warm_up();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        HWS_CHECK(pthread_create(&threads[i], NULL, round_trips, NULL) == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    HWS_CHECK(atomic_load(&striped_parts) > 0 && atomic_load(&failures) == 0);
}

/* Copies to the device until a stripe has had a part. */
static int copy_until_striped(uint8_t *host, uint8_t *device, bool to_device) {
    int status = 0;
    for (int i = 0; i < 1000 && status == 0 && atomic_load(&failures) == 0
         && (fault != BREAKS_OFF && fault != ANSWERS_UNASKED ? atomic_load(&striped_parts) == 0 : true);
         i++) {
        status = run(to_device, host, device, 8 * MIB, 1, 8 * MIB);
    }
    return status;
}

static void should_go_on_without_stripes_when_the_broker_refuses(void) {
    fault = REFUSES;
    begin();
    warm_up();
    uint8_t *host = malloc(8 * MIB), *device = malloc(8 * MIB);
    fill_bytes(host, 8 * MIB, 1);
    for (int i = 0; hws_bulk_serves(8 * MIB); i++) {
        HWS_CHECK(i < 100000 && run(true, host, device, 8 * MIB, 1, 8 * MIB) == 0);
    }
    HWS_CHECK(memcmp(host, device, 8 * MIB) == 0);
    HWS_CHECK(atomic_load(&striped_parts) == 0 && atomic_load(&plain_parts) > 0 && atomic_load(&failures) == 0);
}

static void should_report_the_error_of_a_copy(void) {
    fault = FAILS_COPIES;
    begin();
    warm_up();
    uint8_t *host = calloc(1, 8 * MIB), *device = malloc(8 * MIB);
    HWS_CHECK(copy_until_striped(host, device, false) == SOME_ERROR && atomic_load(&failures) == 0);
}

static void should_lose_the_session_when_a_stripe_breaks_off(void) {
    fault = BREAKS_OFF;
    begin();
    warm_up();
    uint8_t *host = calloc(1, 8 * MIB), *device = malloc(8 * MIB);
    HWS_CHECK(copy_until_striped(host, device, true) == HWS_LOST_STATUS);
    HWS_CHECK(strstr(reason, "a connection of the session is lost") != NULL);
}

static void should_refuse_an_answer_that_nothing_expects(void) {
    fault = ANSWERS_UNASKED;
    begin();
    warm_up();
    uint8_t *host = calloc(1, 8 * MIB), *device = malloc(8 * MIB);
    HWS_CHECK(copy_until_striped(host, device, true) == HWS_LOST_STATUS);
    HWS_CHECK(strstr(reason, "an answer that no chunk of a stripe expects") != NULL);
}

static void should_refuse_a_copy_with_too_few_bytes(void) {
    fault = BRINGS_TOO_LITTLE;
    begin();
    warm_up();
    uint8_t *host = calloc(1, 8 * MIB), *device = malloc(8 * MIB);
    HWS_CHECK(copy_until_striped(host, device, false) == HWS_LOST_STATUS);
    HWS_CHECK(strstr(reason, "another number of bytes") != NULL);
}

static void should_use_no_stripe_when_one_thread_copies(void) {
    setenv("HAWSER_COPY_THREADS", "1", 1);
    begin();
    HWS_CHECK(!hws_bulk_serves(64 * MIB) && !hws_bulk_serves(64 * MIB));
    HWS_CHECK(note_read == NULL);
}

/* Issues asynchronous copies until threads have been started for stripes, and waits for so many stripes. */
static void await_stripes_for_data(unsigned count) {
    for (int i = 0; i < 3; i++) {
        note_read(4 * MIB);
    }
    HWS_CHECK(atomic_load(&ends_count) == 0);
    for (int i = 0; i < 5; i++) {
        note_read(4 * MIB);
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&served_lock);
    while (served < count) {
        HWS_CHECK(pthread_cond_timedwait(&served_changed, &served_lock, &until) == 0);
    }
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < i; k++) {
            HWS_CHECK(served_chunks[i] != served_chunks[k]);
        }
    }
    pthread_mutex_unlock(&served_lock);
}

static void should_open_stripes_for_data_when_asynchronous_copies_have_added_up(void) {
    begin();
    await_stripes_for_data(4);
    warm_up();
    round_trips(NULL); /* by other stripes */
    HWS_CHECK(atomic_load(&striped_parts) > 0 && atomic_load(&failures) == 0 && served == 4);
}

static void should_open_no_more_stripes_than_a_session_takes(void) {
    setenv("HAWSER_COPY_THREADS", "8", 1);
    begin();
    await_stripes_for_data(4);
    warm_up();
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        HWS_CHECK(pthread_create(&threads[i], NULL, round_trips, NULL) == 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    HWS_CHECK(atomic_load(&striped_parts) > 0 && atomic_load(&failures) == 0);
    HWS_CHECK(atomic_load(&ends_count) <= HWS_MAX_STRIPES && served == 4);
}

static void in_child(void (*test)(void)) {
    int status;
    pid_t child = fork();
    HWS_CHECK(child >= 0);
    if (child == 0) {
        test();
        _exit(0); /* the threads of the fakes still run */
    }
    HWS_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define RUN_IN_CHILD(test)                                                                                             \
    do {                                                                                                               \
        fprintf(stderr, "%s\n", #test);                                                                                \
        in_child(test);                                                                                                \
    } while (0)

int main(void) {
    setenv("HAWSER_COPY_THREADS", "4", 1);
    RUN_IN_CHILD(should_copy_boxes_there_and_back);
    RUN_IN_CHILD(should_keep_copies_of_several_threads_apart);
    RUN_IN_CHILD(should_go_on_without_stripes_when_the_broker_refuses);
    RUN_IN_CHILD(should_report_the_error_of_a_copy);
    RUN_IN_CHILD(should_lose_the_session_when_a_stripe_breaks_off);
    RUN_IN_CHILD(should_refuse_an_answer_that_nothing_expects);
    RUN_IN_CHILD(should_refuse_a_copy_with_too_few_bytes);
    RUN_IN_CHILD(should_open_stripes_for_data_when_asynchronous_copies_have_added_up);
    RUN_IN_CHILD(should_open_no_more_stripes_than_a_session_takes);
    RUN_IN_CHILD(should_use_no_stripe_when_one_thread_copies);
    return 0;
}
