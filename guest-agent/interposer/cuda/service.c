/* The table for Hawser's other libraries, and their calls that wait for the worker only once for each content. */
#include "hws_service.h"

#include "capture.h"
#include "graph.h"
#include "hws_handles.h"
#include "shm/hws_shm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * The contents that the worker has accepted. Entries are added and never removed, so readers need no lock. The number
 * of entries bounds the memory of a program whose calls never repeat; it then waits for each further content.
 */
#define PROBE_SLOTS 16384u
#define PROBE_ENTRIES (PROBE_SLOTS / 2)
#define PROBE_BYTES 1024u /* longer contents are sent synchronously; none of a described function is longer */

typedef struct probed {
    uint64_t hash;
    uint32_t bytes;
    uint8_t content[];
} probed_t;

static probed_t *_Atomic probed[PROBE_SLOTS];

/* opcode, context, then the payload without the ranges that may differ. */
typedef struct content {
    uint32_t opcode, context;
    uint8_t payload[PROBE_BYTES];
} content_t;

static uint64_t hash_of(const void *bytes, uint32_t count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i + 8 <= count; i += 8) {
        uint64_t word;
        memcpy(&word, (const uint8_t *) bytes + i, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The slot with the content, or the empty one where it belongs. */
static probed_t *_Atomic *slot_of(const content_t *content, uint32_t bytes, uint64_t hash) {
    for (uint32_t i = (uint32_t) hash;; i++) {
        probed_t *_Atomic *slot = &probed[i % PROBE_SLOTS];
        probed_t *entry = atomic_load_explicit(slot, memory_order_acquire); /* pairs with the release in remember() */
        if (entry == NULL
            || (entry->hash == hash && entry->bytes == bytes && memcmp(entry->content, content, bytes) == 0)) {
            return slot;
        }
    }
}

static void remember(const content_t *content, uint32_t bytes, uint64_t hash) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint32_t entries;
    probed_t *entry = malloc(sizeof *entry + bytes);
    if (entry == NULL) {
        return; /* the next call waits again */
    }
    entry->hash = hash;
    entry->bytes = bytes;
    memcpy(entry->content, content, bytes);
    pthread_mutex_lock(&lock);
    probed_t *_Atomic *slot = slot_of(content, bytes, hash);
    if (entries < PROBE_ENTRIES && atomic_load_explicit(slot, memory_order_relaxed) == NULL) {
        entries++;
        atomic_store_explicit(slot, entry, memory_order_release);
        entry = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(entry);
}

static bool captures(uint64_t stream) {
    return HWS_CAPTURING() && hws_capture_captures((CUstream) (uintptr_t) stream);
}

static void begin_use(uint64_t stream, uint64_t object) {
    hws_capture_begin_use((CUstream) (uintptr_t) stream, object);
}

static void end_use(uint64_t stream, uint64_t object) {
    hws_capture_end_use((CUstream) (uintptr_t) stream, object);
}

static int work(uint64_t stream, uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes,
                const void *bulk, uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    if (captures(stream)) {
        return hws_library_capture((CUstream) (uintptr_t) stream, opcode, payload, payload_bytes, bulk, bulk_bytes,
                                   reply, reply_capacity, reply_bytes_p);
    }
    return hws_call(opcode, flags, payload, payload_bytes, bulk, bulk_bytes, reply, reply_capacity, reply_bytes_p);
}

static int probe(uint64_t stream, uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes,
                 const hws_vary_t *ranges, uint32_t count) {
    if (captures(stream)) {
        return hws_library_capture((CUstream) (uintptr_t) stream, opcode, payload, payload_bytes, NULL, 0, NULL, 0,
                                   NULL);
    }
    content_t content;
    bool fits = payload_bytes <= PROBE_BYTES && payload_bytes % 8 == 0;
    uint32_t bytes = (uint32_t) offsetof(content_t, payload) + payload_bytes;
    uint64_t hash = 0;
    bool known = false;
    if (fits) {
        content.opcode = opcode;
        content.context = hws_tls.context;
        memcpy(content.payload, payload, payload_bytes);
        hws_reduce(content.payload, ranges, count);
        hash = hash_of(&content, bytes);
        known = atomic_load_explicit(slot_of(&content, bytes, hash), memory_order_acquire) != NULL;
    }
    hws_tls.passing = hws_shm_current() == NULL && !hws_channel_watches_work(); /* as a kernel: launch.c */
    int status;
    if (known) {
        status = hws_send(opcode, flags, payload, payload_bytes, NULL, 0);
    } else {
        uint8_t reply[8];
        uint32_t reply_bytes;
        status = hws_call(opcode, flags | HWS_FLAG_REPLY, payload, payload_bytes, NULL, 0, reply, sizeof reply,
                          &reply_bytes);
        if (status == 0 && fits) {
            remember(&content, bytes, hash);
        }
    }
    hws_tls.passing = false;
    hws_watch_stream(stream);
    return status;
}

static CUresult may_issue(CUstream stream) {
    if (__builtin_expect(hws_tls.context == 0, 0)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_CAPTURE(stream, CUDA_SUCCESS);
    return CUDA_SUCCESS;
}

const hws_service_t hws_service = {
    .description_hash = HWS_DESCRIPTION_HASH,
    .gate = &hws_gate,
    .call = hws_call,
    .send = hws_send,
    .work = work,
    .probe = probe,
    .status = hws_channel_status,
    .fail = hws_channel_fail,
    .handle_new = hws_handle_new,
    .handle_drop = hws_handle_drop,
    .handle_attach = hws_handle_attach,
    .handle_data = hws_handle_data,
    .may_issue = may_issue,
    .unsupported = hws_unsupported,
    .captures = captures,
    .begin_use = begin_use,
    .end_use = end_use,
};
