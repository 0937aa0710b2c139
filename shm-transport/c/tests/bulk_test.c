/*
 * Copies in parts, against a device of this process: one thread for each stream takes records in order and copies
 * between the chunks and an array. The test has chunks of its own.
 */
#include "../hws_channel.h"
#include "../shm/hws_bulk.h"
#include "hws_region.h"
#include "hws_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define CHUNKS 6
#define CHUNK_BYTES (64u << 10)
#define STREAMS 3
#define MAX_RECORDS 65536
#define SOME_ERROR 719

typedef struct record {
    bool to_device;
    uint8_t *device; /* position of the copy's first byte */
    uint64_t width, rows;
    hws_bulk_part_t part;
    uint32_t chunk;
    int status;
} record_t;

/* A stream of the device. */
typedef struct stream {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    record_t *records;
    size_t put, taken, done;
    bool stalled, stop;
    int fail_at;   /* the record, counted from 1, that fails; 0: none */
    int refuse_at; /* the record whose send fails */
    pthread_t thread;
} stream_t;

typedef struct target {
    stream_t *stream;
    uint8_t *device;
    _Atomic uint64_t sent, plain, synchronised;
    uint64_t sent_when_synchronised;
    int synchronise_status;
} target_t;

static stream_t streams[STREAMS];
static uint8_t bulk[CHUNKS * CHUNK_BYTES];
static _Atomic uint32_t words[CHUNKS];
static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t words_changed = PTHREAD_COND_INITIALIZER;
static _Atomic int owners[CHUNKS]; /* copies that use a chunk: never two */
static _Atomic int uses[CHUNKS];   /* copies that have used it */

_Thread_local hws_tls_t hws_tls;

static void chunk_begin(uint32_t chunk) {
    HWS_CHECK(chunk < CHUNKS && atomic_exchange(&words[chunk], HWS_CHUNK_BUSY) != HWS_CHUNK_BUSY);
}

static void chunk_cancel(uint32_t chunk) {
    atomic_store(&words[chunk], 0);
}

static void (*meanwhile)(void); /* what other threads do once, after a look at a chunk that is ready */

static bool chunk_is_ready(uint32_t chunk) {
    bool is_ready = atomic_load(&words[chunk]) != HWS_CHUNK_BUSY;
    if (is_ready && meanwhile != NULL) {
        void (*run)(void) = meanwhile;
        meanwhile = NULL;
        run();
    }
    return is_ready;
}

static int chunk_wait(uint32_t chunk) {
    pthread_mutex_lock(&words_lock);
    while (!chunk_is_ready(chunk)) {
        pthread_cond_wait(&words_changed, &words_lock);
    }
    pthread_mutex_unlock(&words_lock);
    return (int) atomic_load(&words[chunk]);
}

static const hws_chunks_t chunks = {.bytes = bulk,
                                    .chunk_bytes = CHUNK_BYTES,
                                    .count = CHUNKS,
                                    .begin = chunk_begin,
                                    .cancel = chunk_cancel,
                                    .is_ready = chunk_is_ready,
                                    .wait = chunk_wait};

/* The array holds the box's bytes without gaps. */
static void copy_on_device(const record_t *record, uint8_t *contiguous) {
    const hws_bulk_part_t *part = &record->part;
    for (uint64_t z = 0; z < part->slices; z++) {
        for (uint64_t y = 0; y < part->rows; y++, contiguous += part->width) {
            uint64_t number = (part->slice + z) * record->rows + part->row + y;
            uint8_t *row = record->device + number * record->width + part->x;
            memcpy(record->to_device ? row : contiguous, record->to_device ? contiguous : row, part->width);
        }
    }
}

static void *stream_main(void *argument) {
    stream_t *stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        if (stream->stop) {
            break;
        }
        if (stream->stalled || stream->taken == stream->put) {
            pthread_cond_wait(&stream->changed, &stream->lock);
            continue;
        }
        record_t record = stream->records[stream->taken++ % MAX_RECORDS];
        pthread_mutex_unlock(&stream->lock);
        if (record.status == 0) {
            copy_on_device(&record, bulk + record.chunk * CHUNK_BYTES);
        }
        atomic_fetch_sub(&owners[record.chunk], 1);
        pthread_mutex_lock(&words_lock);
        atomic_store(&words[record.chunk], (uint32_t) record.status);
        pthread_cond_broadcast(&words_changed);
        pthread_mutex_unlock(&words_lock);
        pthread_mutex_lock(&stream->lock);
        stream->done++;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static int send_record(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part, uint64_t offset, uint32_t chunk) {
    target_t *target = (target_t *) copy->argument;
    stream_t *stream = target->stream;
    HWS_CHECK(hws_tls.thread == 77 && hws_tls.context == 5); /* the caller's, on whichever thread */
    atomic_fetch_add(&uses[chunk], 1);
    HWS_CHECK(offset == chunk * CHUNK_BYTES && part->width * part->rows * part->slices <= CHUNK_BYTES);
    pthread_mutex_lock(&stream->lock);
    uint64_t number = atomic_fetch_add(&target->sent, 1) + 1;
    bool refused = number == (uint64_t) stream->refuse_at;
    if (!refused) {
        HWS_CHECK(atomic_fetch_add(&owners[chunk], 1) == 0 && stream->put - stream->taken < MAX_RECORDS);
        stream->records[stream->put++ % MAX_RECORDS] =
            (record_t) {copy->to_device,
                        target->device,
                        copy->width,
                        copy->rows,
                        *part,
                        chunk,
                        number == (uint64_t) stream->fail_at ? SOME_ERROR : 0};
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return refused ? SOME_ERROR + 1 : 0;
}

/* Waits until the stream has done all its work. */
static void settle(stream_t *stream) {
    pthread_mutex_lock(&stream->lock);
    while (stream->done < stream->put) {
        pthread_cond_wait(&stream->changed, &stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* Copies as records with the bytes would; to the host in the stream's order. */
static int copy_plainly(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part) {
    target_t *target = (target_t *) copy->argument;
    atomic_fetch_add(&target->plain, 1);
    if (!copy->to_device) {
        settle(target->stream);
    }
    for (uint64_t z = part->slice; z < part->slice + part->slices; z++) {
        for (uint64_t y = part->row; y < part->row + part->rows; y++) {
            uint8_t *host = copy->host + z * copy->slice_pitch + y * copy->pitch + part->x;
            uint8_t *device = target->device + (z * copy->rows + y) * copy->width + part->x;
            memcpy(copy->to_device ? device : host, copy->to_device ? host : device, part->width);
        }
    }
    return 0;
}

static int synchronise(const hws_bulk_copy_t *copy) {
    target_t *target = (target_t *) copy->argument;
    target->sent_when_synchronised = atomic_load(&target->sent) + atomic_load(&target->plain);
    settle(target->stream);
    HWS_CHECK(atomic_fetch_add(&target->synchronised, 1) == 0);
    return target->synchronise_status;
}

static void check_all_chunks_free(void) {
    for (int i = 0; i < STREAMS; i++) {
        settle(&streams[i]);
    }
    HWS_CHECK(hws_bulk_free_chunks() == CHUNKS);
}

static uint64_t parts_seen(const target_t *target) {
    return atomic_load(&target->sent) + atomic_load(&target->plain);
}

static hws_bulk_copy_t box(bool to_device, uint8_t *host, uint64_t width, uint64_t rows, uint64_t slices,
                           uint64_t pitch, uint64_t slice_pitch, const target_t *target) {
    return (hws_bulk_copy_t) {
        .to_device = to_device,
        .host = host,
        .width = width,
        .rows = rows,
        .slices = slices,
        .pitch = pitch,
        .slice_pitch = slice_pitch,
        .send = send_record,
        .copy_part = copy_plainly,
        .synchronise = synchronise,
        .argument = target,
    };
}

static void fill(uint8_t *bytes, uint64_t count, uint32_t seed) {
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t) (seed >> 24);
    }
}

/* Copies to the device and back into other memory: the box's bytes must arrive, and all other bytes stay. */
static void round_trip(stream_t *stream, uint64_t width, uint64_t rows, uint64_t slices, uint64_t gap,
                       uint64_t slice_gap) {
    uint64_t pitch = width + gap, slice_pitch = pitch * rows + slice_gap, extent = slice_pitch * slices;
    uint8_t *from = malloc(extent), *to = malloc(extent), *before = malloc(extent);
    target_t target = {.stream = stream, .device = malloc(width * rows * slices)};
    fill(from, extent, 3);
    fill(to, extent, 4);
    memcpy(before, to, extent);
    hws_bulk_copy_t copy = box(true, from, width, rows, slices, pitch, slice_pitch, &target);
    HWS_CHECK(hws_bulk_run(&copy) == 0 && atomic_load(&target.synchronised) == 0);
    fill(from, extent, 5); /* the caller may reuse the source after the call */
    copy = box(false, to, width, rows, slices, pitch, slice_pitch, &target);
    atomic_store(&target.sent, 0);
    atomic_store(&target.plain, 0);
    HWS_CHECK(hws_bulk_run(&copy) == 0 && atomic_load(&target.synchronised) == 1);
    HWS_CHECK(target.sent_when_synchronised == parts_seen(&target));
    fill(from, extent, 3);
    for (uint64_t i = 0; i < extent; i++) {
        bool inside = i % slice_pitch < pitch * rows && i % slice_pitch % pitch < width;
        HWS_CHECK(to[i] == (inside ? from[i] : before[i]));
    }
    free(from);
    free(to);
    free(before);
    free(target.device);
}

static void should_copy_boxes_there_and_back(void) {
    static const struct {
        uint64_t width, rows, slices, gap, slice_gap;
    } cases[] = {
        {1, 1, 1, 0, 0},           {32768, 1, 1, 0, 0},  {32769, 1, 1, 0, 0},   {300001, 1, 1, 0, 0},
        {2500003, 1, 1, 0, 0},     {1, 40000, 1, 3, 0},  {7, 129, 311, 1, 5},   {4096, 1000, 1, 0, 0},
        {100001, 13, 3, 77, 1000}, {70000, 5, 9, 0, 64}, {1000, 33, 40, 24, 0}, {200000, 30, 1, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        round_trip(&streams[i % STREAMS], cases[i].width, cases[i].rows, cases[i].slices, cases[i].gap,
                   cases[i].slice_gap);
    }
    check_all_chunks_free();
}

static void *copy_in_thread(void *number) {
    hws_tls = (hws_tls_t) {.thread = 77, .context = 5};
    for (uint64_t i = 0; i < 6; i++) {
        round_trip(&streams[(uintptr_t) number % STREAMS], 40000 + 170003 * i, 1 + i % 3, 1, i % 2, 0);
    }
    return NULL;
}

static void should_keep_copies_of_several_threads_apart(void) {
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) {
        HWS_CHECK(pthread_create(&threads[i], NULL, copy_in_thread, (void *) i) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    check_all_chunks_free();
}

static void should_report_the_first_error_and_keep_every_chunk(void) {
    /* 15 parts of one thread: with more, the failing part could be the last of its thread, which waits for none. */
    enum { BYTES = 900 << 10 };
    uint8_t *host = malloc(BYTES), *device = malloc(BYTES);
    for (int to_device = 0; to_device < 2; to_device++) {
        for (int at = 1; at <= 8; at += 7) {
            target_t failing = {.stream = &streams[0], .device = device};
            hws_bulk_copy_t copy = box(to_device, host, BYTES, 1, 1, BYTES, BYTES, &failing);
            streams[0].fail_at = at;
            HWS_CHECK(hws_bulk_run(&copy) == SOME_ERROR);
            HWS_CHECK(atomic_load(&failing.synchronised) == !to_device);
            streams[0].fail_at = 0;
            target_t refused = {.stream = &streams[0], .device = device};
            copy.argument = &refused;
            streams[0].refuse_at = at;
            HWS_CHECK(hws_bulk_run(&copy) == SOME_ERROR + 1);
            streams[0].refuse_at = 0;
            check_all_chunks_free();
        }
    }
    target_t late = {.stream = &streams[0], .device = device, .synchronise_status = 700};
    hws_bulk_copy_t copy = box(false, host, BYTES, 1, 1, BYTES, BYTES, &late);
    HWS_CHECK(hws_bulk_run(&copy) == 700 && atomic_load(&late.synchronised) == 1);
    check_all_chunks_free();
    free(host);
    free(device);
}

static void stall(stream_t *stream, bool stalled) {
    pthread_mutex_lock(&stream->lock);
    stream->stalled = stalled;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

/* Chunks in a stalled stream must not delay a copy in another stream. */
static void should_not_wait_for_the_chunks_of_another_stream(void) {
    enum { BYTES = 8 * 32 << 10 };
    uint8_t *host = malloc(BYTES), *device = malloc(BYTES);
    target_t target = {.stream = &streams[1], .device = device};
    hws_bulk_copy_t copy = box(true, host, 32 << 10, 1, 1, 32 << 10, 32 << 10, &target);
    stall(&streams[1], true);
    for (int i = 0; i < CHUNKS; i++) {
        HWS_CHECK(hws_bulk_run(&copy) == 0);
    }
    HWS_CHECK(hws_bulk_free_chunks() == 0 && atomic_load(&target.sent) == CHUNKS);
    round_trip(&streams[2], BYTES, 1, 1, 0, 0);
    HWS_CHECK(hws_bulk_free_chunks() == 0);
    stall(&streams[1], false);
    check_all_chunks_free();
    free(host);
    free(device);
}

/* A program may issue an asynchronous copy before the work that lets its stream continue. */
static void should_not_wait_for_the_stream_while_there_are_chunks(void) {
    enum { BYTES = CHUNKS * CHUNK_BYTES };
    uint8_t *host = malloc(BYTES), *device = malloc(BYTES);
    target_t target = {.stream = &streams[0], .device = device};
    hws_bulk_copy_t copy = box(true, host, BYTES, 1, 1, BYTES, BYTES, &target);
    copy.eager = true;
    fill(host, BYTES, 6);
    stall(&streams[0], true);
    HWS_CHECK(hws_bulk_run(&copy) == 0 && atomic_load(&target.sent) == CHUNKS && atomic_load(&target.plain) == 0);
    stall(&streams[0], false);
    check_all_chunks_free();
    HWS_CHECK(memcmp(host, device, BYTES) == 0);
    free(host);
    free(device);
}

enum { PART = 32 << 10 };
static uint8_t first_host[PART], first_device[PART], second_host[PART], second_device[PART];

static void copy_part_to(stream_t *stream, uint8_t *host, uint8_t *device) {
    target_t *target = &(target_t) {.stream = stream, .device = device};
    hws_bulk_copy_t copy = box(true, host, PART, 1, 1, PART, PART, target);
    HWS_CHECK(hws_bulk_run(&copy) == 0);
}

static void copy_second(void) {
    copy_part_to(&streams[2], second_host, second_device);
}

/* A new chunk costs page faults and pinning: copies one after the other must not go through all chunks. */
static void should_use_a_chunk_again_before_a_new_one(void) {
    check_all_chunks_free();
    int before = atomic_load(&uses[0]);
    for (int i = 0; i < 10 * CHUNKS; i++) {
        copy_part_to(&streams[1], first_host, first_device);
        settle(&streams[1]);
    }
    HWS_CHECK(atomic_load(&uses[0]) - before == 10 * CHUNKS);
    check_all_chunks_free();
}

/* A look at a left chunk does not tell what the next thread does with it. */
static void should_not_take_a_left_chunk_that_is_in_use_again(void) {
    fill(first_host, PART, 7);
    fill(second_host, PART, 8);
    stall(&streams[1], true);
    for (int i = 0; i < CHUNKS; i++) {
        copy_part_to(&streams[1], first_host, first_device);
    }
    stall(&streams[1], false);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        HWS_CHECK(chunk_wait(i) == 0); /* all are left, and ready */
    }
    stall(&streams[2], true);
    meanwhile = copy_second;
    copy_part_to(&streams[0], first_host, first_device);
    stall(&streams[2], false);
    check_all_chunks_free();
    HWS_CHECK(memcmp(first_host, first_device, PART) == 0 && memcmp(second_host, second_device, PART) == 0);
}

int main(void) {
    setenv("HAWSER_COPY_THREADS", "4", 1);
    for (int i = 0; i < STREAMS; i++) {
        streams[i].records = malloc(MAX_RECORDS * sizeof(record_t));
        pthread_mutex_init(&streams[i].lock, NULL);
        pthread_cond_init(&streams[i].changed, NULL);
        HWS_CHECK(pthread_create(&streams[i].thread, NULL, stream_main, &streams[i]) == 0);
    }
    hws_tls = (hws_tls_t) {.thread = 77, .context = 5};
    hws_bulk_use_chunks(&chunks);
    HWS_RUN(should_copy_boxes_there_and_back);
    HWS_RUN(should_keep_copies_of_several_threads_apart);
    HWS_RUN(should_report_the_first_error_and_keep_every_chunk);
    HWS_RUN(should_not_wait_for_the_chunks_of_another_stream);
    HWS_RUN(should_not_wait_for_the_stream_while_there_are_chunks);
    HWS_RUN(should_use_a_chunk_again_before_a_new_one);
    HWS_RUN(should_not_take_a_left_chunk_that_is_in_use_again);
    for (int i = 0; i < STREAMS; i++) {
        pthread_mutex_lock(&streams[i].lock);
        streams[i].stop = true;
        pthread_cond_broadcast(&streams[i].changed);
        pthread_mutex_unlock(&streams[i].lock);
        pthread_join(streams[i].thread, NULL);
        free(streams[i].records);
    }
    return 0;
}
