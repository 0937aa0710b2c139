/* The parts of a copy, the chunks that carry them, and the threads that copy them. */
#include "hws_bulk.h"

#include "../hws_thread.h"
#include "hws_bulk_job.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/*
 * Measured on 16 cores with an H200, 2026-11-21. A copy of 256 KiB in parts of 32 / 64 / 128 / 256 KiB: 4.9 / 7.5 / 8.7
 * / 8.3 GB/s to the device, and 6.0 / 7.5 / 9.3 / 9.1 GB/s to the host. Helpers that spin for it make it slower. A copy
 * of 256 MiB to the device, with a C thread in the worker's place that issues the copies: by 4 threads in parts of 512
 * / 256 / 128 KiB 35 / 25 / 15 GB/s; by 1 / 2 / 4 / 8 threads 9 / 15 / 35 / 41 GB/s. CUDA's own copy from pageable
 * memory reaches 8 GB/s. To the host by 1 / 2 / 4 / 8 threads: 8 / 13 / 29 / 43 GB/s, CUDA's own 16 GB/s.
 */
#define SMALLEST_PART_BYTES (128u << 10)
#define LARGEST_PART_BYTES (512u << 10)
/* A copy has at least this many parts, as far as their smallest size allows: both ends then work at the same time. */
#define WANTED_PARTS 4
/* At 1 MiB the copy ends before the threads are awake. At 4 MiB they make it 1.5 times as fast. */
#define HELPED_BYTES (2u << 20)
#define MAX_THREADS 8
/* Parts that one thread has under way. With 2 it waits for the device; with 8 the chunks leave the cache. */
#define DEPTH 4

/* The parts that one thread has under way, oldest first. */
typedef struct hws_flight {
    uint32_t chunks[DEPTH];
    hws_bulk_part_t parts[DEPTH];
    unsigned first, count;
} hws_flight_t;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a job has been added */
    pthread_cond_t done; /* a helper has left a job */
    pthread_cond_t released;
    bool is_held;     /* no copy by another way than chunks begins */
    unsigned running; /* such copies */
    hws_job_t *first;
    unsigned threads; /* running threads, without the callers */
    bool started;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER,
          .released = PTHREAD_COND_INITIALIZER};

/* The session's chunks; NULL while there are none. */
static const hws_chunks_t *_Atomic session_chunks;

/*
 * Sets of chunks, one bit each. A free chunk has no user. A left chunk was used by a copy to the device whose call has
 * returned, but the worker may still read it. All other chunks belong to a thread.
 */
static _Atomic uint64_t free_chunks, left_chunks;
static pthread_once_t chunks_once = PTHREAD_ONCE_INIT;

static uint64_t bit(uint32_t chunk) {
    return 1ull << chunk;
}

/* Removes a bit from a set. Returns false when another thread was faster. */
static bool take_bit(_Atomic uint64_t *set, uint32_t chunk) {
    /* Acquire pairs with give_bit(): the last owner's accesses to the chunk are over. */
    return (atomic_fetch_and_explicit(set, ~bit(chunk), memory_order_acquire) & bit(chunk)) != 0;
}

static void give_bit(_Atomic uint64_t *set, uint32_t chunk) {
    atomic_fetch_or_explicit(set, bit(chunk), memory_order_release);
}

/*
 * Takes a left chunk that the worker no longer reads. Only its owner knows this for certain: between a look at the chunk
 * and its taking, another thread may take it, use it and leave it again.
 */
static bool take_left_chunk(const hws_chunks_t *chunks, uint32_t chunk) {
    if (!chunks->is_ready(chunk) || !take_bit(&left_chunks, chunk)) {
        return false;
    }
    if (chunks->is_ready(chunk)) {
        return true;
    }
    give_bit(&left_chunks, chunk);
    return false;
}

/*
 * Takes the lowest chunk that nobody uses, so that few chunks are ever used. The first use of a chunk costs page faults
 * at both ends, and with a GPU's driver pinning. Caches may still hold the others.
 */
static bool take_chunk(const hws_chunks_t *chunks, uint32_t *chunk_p) {
    uint64_t unused;
    do {
        unused = atomic_load_explicit(&free_chunks, memory_order_relaxed);
        uint64_t candidates = unused | atomic_load_explicit(&left_chunks, memory_order_relaxed);
        for (; candidates != 0; candidates &= candidates - 1) {
            uint32_t chunk = (uint32_t) __builtin_ctzll(candidates);
            if ((unused & bit(chunk)) != 0 ? take_bit(&free_chunks, chunk) : take_left_chunk(chunks, chunk)) {
                *chunk_p = chunk;
                return true;
            }
        }
    } while (unused != 0); /* other threads have taken all of them */
    return false;
}

static uint64_t at_most(uint64_t value, uint64_t limit) {
    return value < limit ? value : limit;
}

static uint64_t parts_of(uint64_t whole, uint64_t part) {
    /* NOLINTNEXTLINE(*.DivideZero): a copy has at least one byte */
    return whole / part + (whole % part != 0);
}

hws_bulk_plan_t hws_bulk_plan(const hws_bulk_copy_t *copy, uint64_t limit) {
    hws_bulk_plan_t plan = {.width = at_most(copy->width, limit), .rows = 1, .slices = 1};
    if (plan.width == copy->width) {
        plan.rows = at_most(copy->rows, limit / plan.width);
        if (plan.rows == copy->rows) {
            /* NOLINTNEXTLINE(*.DivideZero): a copy has at least one byte */
            plan.slices = at_most(copy->slices, limit / (plan.width * plan.rows));
        }
    }
    plan.per_row = parts_of(copy->width, plan.width);
    plan.per_slice = plan.per_row * parts_of(copy->rows, plan.rows);
    plan.count = plan.per_slice * parts_of(copy->slices, plan.slices);
    return plan;
}

/* Splits a copy so that both ends work at the same time. */
static hws_bulk_plan_t make_plan(const hws_bulk_copy_t *copy, uint64_t chunk_bytes) {
    uint64_t wanted = copy->width * copy->rows * copy->slices / WANTED_PARTS;
    wanted = wanted < SMALLEST_PART_BYTES ? SMALLEST_PART_BYTES : at_most(wanted, LARGEST_PART_BYTES);
    return hws_bulk_plan(copy, at_most(wanted / 4096 * 4096, chunk_bytes));
}

hws_bulk_part_t hws_bulk_part(const hws_bulk_plan_t *plan, const hws_bulk_copy_t *copy, uint64_t index) {
    hws_bulk_part_t part = {
        .x = index % plan->per_row * plan->width,
        .row = index % plan->per_slice / plan->per_row * plan->rows,
        .slice = index / plan->per_slice * plan->slices,
    };
    part.width = at_most(plan->width, copy->width - part.x);
    part.rows = at_most(plan->rows, copy->rows - part.row);
    part.slices = at_most(plan->slices, copy->slices - part.slice);
    return part;
}

uint64_t hws_bulk_span(const hws_bulk_copy_t *copy) {
    return (copy->slices - 1) * copy->slice_pitch + (copy->rows - 1) * copy->pitch + copy->width;
}

uint8_t *hws_bulk_place(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part) {
    return copy->host + part->slice * copy->slice_pitch + part->row * copy->pitch + part->x;
}

bool hws_bulk_is_unbroken(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part) {
    bool rows_touch = part->rows == 1 || copy->pitch == part->width;
    return rows_touch && (part->slices == 1 || copy->slice_pitch == part->width * part->rows);
}

void hws_bulk_move(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part, uint8_t *buffer) {
    uint64_t width = part->width, rows = part->rows;
    if (width == copy->pitch || rows == 1) {
        width *= rows;
        rows = 1;
    }
    for (uint64_t z = 0; z < part->slices; z++) {
        uint8_t *host = hws_bulk_place(copy, part) + z * copy->slice_pitch;
        for (uint64_t y = 0; y < rows; y++, host += copy->pitch, buffer += width) {
            if (copy->to_device) {
                memcpy(buffer, host, width);
            } else {
                memcpy(host, buffer, width);
            }
        }
    }
}

void hws_bulk_fail(hws_job_t *job, int status) {
    int none = 0;
    if (status != 0) {
        atomic_compare_exchange_strong(&job->failure, &none, status);
    }
}

bool hws_bulk_take_part(hws_job_t *job, hws_bulk_part_t *part_p) {
    if (atomic_load_explicit(&job->failure, memory_order_relaxed) != 0
        || atomic_load_explicit(&job->taken, memory_order_relaxed) >= job->plan.count) {
        return false;
    }
    uint64_t index = atomic_fetch_add_explicit(&job->taken, 1, memory_order_relaxed);
    if (index >= job->plan.count) {
        return false;
    }
    *part_p = hws_bulk_part(&job->plan, job->copy, index);
    return true;
}

void hws_bulk_copy_plainly(hws_job_t *job, const hws_bulk_part_t *part) {
    hws_bulk_fail(job, job->copy->copy_part(job->copy, part));
    atomic_fetch_add(&job->sent, 1);
}

/* Takes a part's bytes to the other end, where the chunk has them as soon as a later record arrives. */
static int put_part(const hws_job_t *job, const hws_bulk_part_t *part, uint32_t chunk) {
    const hws_bulk_copy_t *copy = job->copy;
    const hws_chunks_t *chunks = job->chunks;
    uint32_t bytes = (uint32_t) (part->width * part->rows * part->slices);
    if (copy->registered != NULL && hws_bulk_is_unbroken(copy, part)) {
        return chunks->put_from(copy->registered, hws_bulk_place(copy, part), chunk, bytes);
    }
    hws_bulk_move(copy, part, chunks->bytes + chunk * chunks->chunk_bytes);
    return chunks->put == NULL ? 0 : chunks->put(chunk, bytes);
}

/* Sends the record of a part and adds the part to the flight. The chunk belongs to this thread. */
static void send_part(hws_job_t *job, hws_flight_t *flight, const hws_bulk_part_t *part, uint32_t chunk) {
    const hws_chunks_t *chunks = job->chunks;
    chunks->begin(chunk);
    int status = job->copy->to_device ? put_part(job, part, chunk) : 0;
    if (status == 0) {
        status = job->copy->send(job->copy, part, chunks->offset + chunk * chunks->chunk_bytes, chunk);
    }
    atomic_fetch_add(&job->sent, 1);
    if (status != 0) {
        chunks->cancel(chunk);
        give_bit(&free_chunks, chunk);
        hws_bulk_fail(job, status);
        return;
    }
    unsigned last = (flight->first + flight->count++) % DEPTH;
    flight->chunks[last] = chunk;
    flight->parts[last] = *part;
}

static uint32_t oldest(const hws_flight_t *flight) {
    return flight->chunks[flight->first];
}

static uint32_t take_off_oldest(hws_flight_t *flight) {
    uint32_t chunk = oldest(flight);
    flight->first = (flight->first + 1) % DEPTH;
    flight->count--;
    return chunk;
}

static void work_to_device(hws_job_t *job) {
    hws_flight_t flight = {0};
    hws_bulk_part_t part;
    while (hws_bulk_take_part(job, &part)) {
        uint32_t chunk;
        /* Caches hold a chunk of this thread that the device has just finished with. */
        bool again = flight.count > 0 && job->chunks->is_ready(oldest(&flight));
        bool another = !again && (flight.count < DEPTH || job->copy->eager);
        if (another && take_chunk(job->chunks, &chunk)) {
            if (flight.count == DEPTH) {
                give_bit(&left_chunks, take_off_oldest(&flight));
            }
            send_part(job, &flight, &part, chunk);
        } else if (flight.count > 0) {
            chunk = take_off_oldest(&flight);
            hws_bulk_fail(job, job->chunks->wait(chunk));
            send_part(job, &flight, &part, chunk);
        } else {
            hws_bulk_copy_plainly(job, &part);
        }
    }
    while (flight.count > 0) {
        give_bit(&left_chunks, take_off_oldest(&flight));
    }
}

/* Requests parts until the flight is full. */
static void request_parts(hws_job_t *job, hws_flight_t *flight) {
    hws_bulk_part_t part;
    uint32_t chunk;
    while (flight->count < DEPTH) {
        bool got = take_chunk(job->chunks, &chunk);
        if (!got && flight->count > 0) {
            return; /* one of this thread's chunks will be free soon */
        }
        if (!hws_bulk_take_part(job, &part)) {
            if (got) {
                give_bit(&free_chunks, chunk);
            }
            return;
        }
        if (got) {
            send_part(job, flight, &part, chunk);
        } else {
            hws_bulk_copy_plainly(job, &part);
        }
    }
}

/* Returns whether it has waited for the stream, which only the caller's thread does. */
static bool work_to_host(hws_job_t *job, bool caller) {
    hws_flight_t flight = {0};
    bool synchronised = false;
    for (;;) {
        request_parts(job, &flight);
        if (flight.count == 0) {
            return synchronised;
        }
        if (caller && flight.count == 1 && !synchronised && atomic_load(&job->sent) == job->plan.count) {
            /* Before the last part is copied out: the round trip then costs next to nothing. */
            hws_bulk_fail(job, job->copy->synchronise(job->copy));
            synchronised = true;
        }
        hws_bulk_part_t part = flight.parts[flight.first];
        uint32_t chunk = take_off_oldest(&flight);
        int status = job->chunks->wait(chunk);
        if (status == 0) {
            hws_bulk_move(job->copy, &part, job->chunks->bytes + chunk * job->chunks->chunk_bytes);
        }
        hws_bulk_fail(job, status);
        give_bit(&free_chunks, chunk);
    }
}

static hws_job_t *job_with_parts(void) {
    for (hws_job_t *each = pool.first; each != NULL; each = each->next) {
        if (atomic_load_explicit(&each->taken, memory_order_relaxed) < each->plan.count
            && atomic_load_explicit(&each->failure, memory_order_relaxed) == 0) {
            return each;
        }
    }
    return NULL;
}

static void *helper_main(void *unused) {
    (void) unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        hws_job_t *job = job_with_parts();
        if (job == NULL) {
            pthread_cond_wait(&pool.work, &pool.lock);
            continue;
        }
        job->helpers++;
        pthread_mutex_unlock(&pool.lock);
        hws_tls = job->tls;
        job->way->work(job, false);
        pthread_mutex_lock(&pool.lock);
        if (--job->helpers == 0) {
            pthread_cond_broadcast(&pool.done);
        }
    }
    return NULL;
}

unsigned hws_bulk_threads(unsigned most) {
    const char *setting = getenv("HAWSER_COPY_THREADS");
    long threads = setting != NULL ? strtol(setting, NULL, 10) : 0;
    cpu_set_t set;
    if (threads < 1 && sched_getaffinity(0, sizeof set, &set) == 0) {
        threads = CPU_COUNT(&set) / 2;
        threads = threads < (long) most ? threads : (long) most;
    }
    return threads < 1 ? 1 : (unsigned) (threads < MAX_THREADS ? threads : MAX_THREADS);
}

/* Starts the pool at the first long copy. pool.lock held. Too few threads are no error. */
static void start_pool(unsigned threads) {
    pthread_t thread;
    pool.started = true;
    while (pool.threads + 1 < threads && hws_thread_start(&thread, helper_main, NULL, "hawser-copy") == 0) {
        pool.threads++;
    }
}

/* Adds a job for the helpers. pool.lock held. */
static void publish(hws_job_t *job) {
    if (!pool.started) {
        start_pool(job->way->threads);
    }
    job->next = pool.first;
    if (job->next != NULL) {
        job->next->previous = job;
    }
    pool.first = job;
    if (pool.threads > 0) {
        pthread_cond_broadcast(&pool.work);
    }
}

/* Removes a job, and waits for its helpers. pool.lock held, and released meanwhile. */
static void withdraw(hws_job_t *job) {
    if (job->previous != NULL) {
        job->previous->next = job->next;
    } else {
        pool.first = job->next;
    }
    if (job->next != NULL) {
        job->next->previous = job->previous;
    }
    while (job->helpers > 0) {
        pthread_cond_wait(&pool.done, &pool.lock);
    }
}

static bool work_by_chunks(hws_job_t *job, bool caller) {
    if (job->copy->to_device) {
        work_to_device(job);
        return false;
    }
    return work_to_host(job, caller);
}

static hws_bulk_way_t by_chunks = {.work = work_by_chunks};

static void open_chunks(void) {
    const hws_chunks_t *chunks = atomic_load(&session_chunks);
    uint64_t count = chunks == NULL ? 0 : chunks->count;
    by_chunks.threads = hws_bulk_threads(MAX_THREADS);
    atomic_store(&free_chunks, count >= 64 ? UINT64_MAX : (1ull << count) - 1);
}

void hws_bulk_use_chunks(const hws_chunks_t *chunks) {
    atomic_store(&session_chunks, chunks);
}

uint32_t hws_bulk_free_chunks(void) {
    const hws_chunks_t *chunks = atomic_load(&session_chunks);
    pthread_once(&chunks_once, open_chunks);
    uint64_t left = atomic_load(&left_chunks);
    for (; left != 0; left &= left - 1) {
        uint32_t chunk = (uint32_t) __builtin_ctzll(left);
        if (take_left_chunk(chunks, chunk)) {
            give_bit(&free_chunks, chunk);
        }
    }
    return (uint32_t) __builtin_popcountll(atomic_load(&free_chunks));
}

/* Begins a job, with helpers if `helped`. Only a job of another way can be held. */
static void begin_job(hws_job_t *job, bool helped) {
    const bool counts = job->way != &by_chunks;
    if (!helped && !counts) {
        return;
    }
    pthread_mutex_lock(&pool.lock);
    while (counts && pool.is_held && !hws_tls.in_lane) {
        pthread_cond_wait(&pool.released, &pool.lock);
    }
    pool.running += counts ? 1 : 0;
    if (helped) {
        publish(job);
    }
    pthread_mutex_unlock(&pool.lock);
}

static void end_job(hws_job_t *job, bool helped) {
    const bool counts = job->way != &by_chunks;
    if (!helped && !counts) {
        return;
    }
    pthread_mutex_lock(&pool.lock);
    if (helped) {
        withdraw(job);
    }
    pool.running -= counts ? 1 : 0;
    pthread_mutex_unlock(&pool.lock);
}

unsigned hws_bulk_hold(void) {
    pthread_mutex_lock(&pool.lock);
    pool.is_held = true;
    const unsigned running = pool.running;
    pthread_mutex_unlock(&pool.lock);
    return running;
}

void hws_bulk_release(void) {
    pthread_mutex_lock(&pool.lock);
    pool.is_held = false;
    pthread_cond_broadcast(&pool.released);
    pthread_mutex_unlock(&pool.lock);
}

/* The way of a carrier without chunks at both ends; NULL while there is none. */
static const hws_bulk_way_t *_Atomic other_way;

void hws_bulk_use(const hws_bulk_way_t *way) {
    atomic_store(&other_way, way);
}

bool hws_bulk_serves(uint64_t bytes) {
    const hws_bulk_way_t *way = atomic_load_explicit(&other_way, memory_order_acquire);
    return atomic_load_explicit(&session_chunks, memory_order_acquire) != NULL || (way != NULL && way->serves(bytes));
}

int hws_bulk_run(const hws_bulk_copy_t *copy) {
    hws_job_t job = {.copy = copy, .chunks = atomic_load(&session_chunks), .tls = hws_tls};
    if (job.chunks != NULL) {
        pthread_once(&chunks_once, open_chunks);
        job.way = &by_chunks;
        job.plan = make_plan(copy, job.chunks->chunk_bytes);
    } else if ((job.way = atomic_load(&other_way)) != NULL) {
        job.plan = job.way->plan(copy);
    } else {
        return HWS_STATUS_DEINITIALIZED; /* the process is exiting */
    }
    /* A thread that has sent nothing yet has no thread number that a helper could use. */
    bool helped =
        copy->registered == NULL && copy->width * copy->rows * copy->slices >= HELPED_BYTES && hws_tls.thread != 0;
    begin_job(&job, helped);
    bool synchronised = job.way->work(&job, true);
    end_job(&job, helped);
    if (!copy->to_device && !synchronised) {
        int status = copy->synchronise(copy);
        return status != 0 ? status : atomic_load(&job.failure);
    }
    return atomic_load(&job.failure);
}
