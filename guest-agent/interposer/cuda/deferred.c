#include "deferred.h"

#include "callback.h"
#include "direct.h"
#include "mirror.h"
#include "progress.h"
#include "shadow.h"

#include "hws_cuda_calls.h"
#include "hws_driver.h"
#include "hws_layout.h"

#include "rdma/hws_rdma_carrier.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Over 10 Gbit/s a part takes 3.4 ms, so a round trip of 0.1 ms a part costs 3 %. */
#define LARGE_BYTES (4u << 20)
#define SMALL_BYTES (64u << 10)
#define WRITE_BYTES (1u << 20) /* of a message */
#define READ_BUFFERS 8u        /* length of a call's copy, in buffers: the worker serves 16 */
#define LARGE_COUNT (HWS_COPY_AREA_BYTES / LARGE_BYTES - 1)
#define SMALL_COUNT (LARGE_BYTES / SMALL_BYTES)

/* A buffer in the copy area, and the last copy that uses it. The large ones come first. */
typedef struct hws_copy_buffer {
    bool used;
    CUstream stream;
    uint32_t context, thread; /* thread: of a thread's own default stream, else 0 */
    hws_mark_t last;
} hws_copy_buffer_t;

typedef struct hws_deferred {
    struct hws_deferred *next, *previous;
    hws_bulk_copy_t copy;
    hws_bulk_plan_t plan;
    uint64_t offset; /* of the buffer */
    uint64_t issued; /* host functions that will run */
    uint64_t run;
    bool reading; /* its memory is being read */
    bool forgotten;
} hws_deferred_t;

/* Held while a copy is issued: the parts of two copies must not mix in one stream. Taken before `lock`. */
static pthread_mutex_t issue_lock = PTHREAD_MUTEX_INITIALIZER;
static hws_copy_buffer_t buffers[LARGE_COUNT + SMALL_COUNT];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and its members */
static pthread_cond_t read_ended = PTHREAD_COND_INITIALIZER;
static hws_deferred_t *first;
static uint8_t *gathered; /* LARGE_BYTES; the thread of copies only */

static uint32_t thread_of(CUstream stream) {
    return stream == CU_STREAM_PER_THREAD ? hws_tls.thread : 0;
}

/* Finds the stream's buffer, else one that no copy uses. issue_lock held. */
static hws_copy_buffer_t *take_buffer(CUstream stream) {
    hws_copy_buffer_t *unused = NULL;
    for (size_t i = 0; i < LARGE_COUNT + SMALL_COUNT; i++) {
        hws_copy_buffer_t *buffer = &buffers[i];
        if (buffer->used && buffer->stream == stream && buffer->context == hws_tls.context
            && buffer->thread == thread_of(stream)) {
            return buffer;
        }
        if (unused == NULL && (!buffer->used || hws_progress_has_reached(&buffer->last))) {
            unused = buffer;
        }
    }
    if (unused != NULL) {
        unused->used = true;
        unused->stream = stream;
        unused->context = hws_tls.context;
        unused->thread = thread_of(stream);
    }
    return unused;
}

/* The place and length of a buffer in the copy area. */
static uint64_t buffer_offset(const hws_copy_buffer_t *buffer, uint64_t *bytes_p) {
    size_t place = (size_t) (buffer - buffers);
    bool large = place < LARGE_COUNT;
    *bytes_p = large ? LARGE_BYTES : SMALL_BYTES;
    return large ? place * LARGE_BYTES : (uint64_t) LARGE_COUNT * LARGE_BYTES + (place - LARGE_COUNT) * SMALL_BYTES;
}

static void add(hws_deferred_t *deferred) {
    pthread_mutex_lock(&lock);
    deferred->next = first;
    if (first != NULL) {
        first->previous = deferred;
    }
    first = deferred;
    pthread_mutex_unlock(&lock);
}

/* Frees the copy when all its host functions have run. Lock held. */
static void settle(hws_deferred_t *deferred) {
    if (deferred->run < deferred->issued) {
        return;
    }
    if (deferred->previous != NULL) {
        deferred->previous->next = deferred->next;
    } else {
        first = deferred->next;
    }
    if (deferred->next != NULL) {
        deferred->next->previous = deferred->previous;
    }
    free(deferred);
}

static CUresult send_bytes(uint64_t offset, const uint8_t *bytes, uint64_t count) {
    uint64_t limit = hws_channel_welcome()->max_bulk_bytes;
    for (uint64_t at = 0; at < count; at += limit) {
        uint64_t part = count - at < limit ? count - at : limit;
        HWS_TRY(hws_call_hwsCopyAreaWrite(offset + at, part, bytes + at));
    }
    return CUDA_SUCCESS;
}

/* Lets the adapter carry the bytes to the copy area. They are there before the record that acknowledges the part. */
static CUresult write_bytes(const hws_direct_t *direct, uint64_t area, uint32_t key, const uint8_t *bytes,
                            uint64_t count) {
    hws_rdma_t *rdma = hws_rdma_session();
    for (uint64_t at = 0; at < count; at += WRITE_BYTES) {
        uint64_t part = count - at < WRITE_BYTES ? count - at : WRITE_BYTES;
        if (rdma == NULL
            || hws_rdma_write(rdma, direct->registered, bytes + at, (uint32_t) part, area + at, key, NULL) != 0) {
            return CUDA_ERROR_UNKNOWN; /* the session is over, which its next call reports */
        }
    }
    return CUDA_SUCCESS;
}

static CUresult carry_bytes(uint64_t offset, const uint8_t *bytes, uint64_t count) {
    uint64_t area;
    uint32_t key;
    hws_direct_t direct;
    if (!hws_direct_begin(&direct, bytes, count, false)) {
        return send_bytes(offset, bytes, count);
    }
    CUresult result = hws_direct_area(&area, &key) ? write_bytes(&direct, area + offset, key, bytes, count)
                                                   : send_bytes(offset, bytes, count);
    hws_direct_end(&direct);
    return result;
}

/* Sends a part's bytes, which lie without gaps in the buffer. Thread of copies. */
static CUresult send_part(const hws_deferred_t *deferred, uint64_t index) {
    const hws_bulk_copy_t *copy = &deferred->copy;
    const hws_bulk_part_t part = hws_bulk_part(&deferred->plan, copy, index);
    const uint8_t *first = hws_bulk_place(copy, &part);
    uint64_t bytes = part.width * part.rows * part.slices;
    bool unbroken = hws_bulk_is_unbroken(copy, &part);
    hws_plain_copy_t plain;
    if (unbroken && hws_shadow_begin_copy(&plain, first, bytes)) {
        CUresult result = carry_bytes(deferred->offset, first, bytes);
        hws_shadow_end_copy(&plain);
        return result;
    }
    if (gathered == NULL && (gathered = malloc(LARGE_BYTES)) == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (unbroken) {
        HWS_TRY(hws_mirror_copy(gathered, (uint64_t) (uintptr_t) first, bytes, false));
    } else {
        hws_bulk_move(copy, &part, gathered);
    }
    return send_bytes(deferred->offset, gathered, bytes);
}

/* The host function of the copy's next part. */
static void run(void *argument, int status) {
    hws_deferred_t *deferred = argument;
    pthread_mutex_lock(&lock);
    uint64_t index = deferred->run;
    deferred->reading = status == CUDA_SUCCESS && !deferred->forgotten;
    bool reading = deferred->reading;
    pthread_mutex_unlock(&lock);
    CUresult result = reading ? send_part(deferred, index) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS && hws_channel_status() == 0) {
        hws_log(HWS_WARN, "a copy from pinned memory has not sent its bytes: %d", result);
    }
    pthread_mutex_lock(&lock);
    deferred->reading = false;
    deferred->run++;
    settle(deferred);
    pthread_cond_broadcast(&read_ended);
    pthread_mutex_unlock(&lock);
}

static CUresult issue_parts(hws_deferred_t *deferred, const hws_bulk_copy_t *copy, CUstream stream) {
    for (uint64_t i = 0; i < deferred->plan.count; i++) {
        const hws_bulk_part_t part = hws_bulk_part(&deferred->plan, copy, i);
        pthread_mutex_lock(&lock);
        deferred->issued++; /* one ahead: the copy lives until the last part has been issued */
        pthread_mutex_unlock(&lock);
        CUresult result = hws_hostcall_issue_copy(stream, run, deferred);
        if (result != CUDA_SUCCESS) {
            pthread_mutex_lock(&lock);
            deferred->issued--;
            pthread_mutex_unlock(&lock);
            return result;
        }
        HWS_TRY(copy->send(copy, &part, deferred->offset, HWS_COPY_AREA_CHUNK - 1));
    }
    return CUDA_SUCCESS;
}

CUresult hws_deferred_issue(const hws_bulk_copy_t *copy, CUstream stream) {
    hws_deferred_t *deferred = calloc(1, sizeof *deferred);
    if (deferred == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&issue_lock);
    hws_copy_buffer_t *buffer = take_buffer(stream);
    if (buffer == NULL) {
        pthread_mutex_unlock(&issue_lock);
        free(deferred);
        return CUDA_ERROR_NOT_READY;
    }
    uint64_t buffer_bytes, offset = buffer_offset(buffer, &buffer_bytes);
    *deferred = (hws_deferred_t) {
        .copy = *copy,
        .plan = hws_bulk_plan(copy, buffer_bytes),
        .offset = offset,
        .issued = 1,
    };
    add(deferred);
    CUresult result = issue_parts(deferred, copy, stream);
    hws_progress_mark(&buffer->last, stream);
    pthread_mutex_lock(&lock);
    deferred->issued--;
    settle(deferred);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&issue_lock);
    return result;
}

/* Issues the calls of a copy. issue_lock held. Returns CUDA_ERROR_NOT_READY before the first call, or its result. */
static CUresult issue_reads(const hws_direct_t *direct, CUdeviceptr dst, const uint8_t *src, uint64_t bytes,
                            CUstream stream) {
    hws_copy_buffer_t *buffer = take_buffer(stream);
    if (buffer == NULL) {
        return CUDA_ERROR_NOT_READY;
    }
    CUresult result = CUDA_SUCCESS;
    uint64_t buffer_bytes, offset = buffer_offset(buffer, &buffer_bytes);
    for (uint64_t at = 0; at < bytes && result == CUDA_SUCCESS;) {
        uint64_t part = bytes - at < READ_BUFFERS * buffer_bytes ? bytes - at : READ_BUFFERS * buffer_bytes;
        const hws_target_t source = {.base = (void *) (uintptr_t) (src + at),
                                     .width_bytes = part,
                                     .rows = 1,
                                     .slices = 1,
                                     .direct = true,
                                     .optional = at == 0};
        result = hws_call_hwsCopyHtoDDirect(dst + at, part, stream, (uint64_t) (uintptr_t) (src + at), offset,
                                            buffer_bytes, direct->key, &source, false);
        at += part;
    }
    hws_progress_mark(&buffer->last, stream);
    return result;
}

CUresult hws_deferred_read(CUdeviceptr dst, const void *src, uint64_t bytes, CUstream stream, bool at_once) {
    hws_direct_t direct;
    CUresult result = CUDA_ERROR_NOT_READY;
    if (!hws_direct_begin(&direct, src, bytes, false)) {
        return result;
    }
    if (at_once || direct.stays) {
        pthread_mutex_lock(&issue_lock);
        result = issue_reads(&direct, dst, src, bytes, stream);
        pthread_mutex_unlock(&issue_lock);
    }
    hws_direct_end(&direct);
    return result;
}

static bool reads(const hws_deferred_t *deferred, uintptr_t base, uint64_t bytes) {
    const hws_bulk_copy_t *copy = &deferred->copy;
    uintptr_t from = (uintptr_t) copy->host;
    return from < base + bytes && base < from + hws_bulk_span(copy);
}

void hws_deferred_forget(const void *base, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    for (hws_deferred_t *each = first; each != NULL;) {
        if (!reads(each, (uintptr_t) base, bytes)) {
            each = each->next;
        } else if (each->reading) {
            pthread_cond_wait(&read_ended, &lock);
            each = first;
        } else {
            each->forgotten = true;
            each = each->next;
        }
    }
    pthread_mutex_unlock(&lock);
}
