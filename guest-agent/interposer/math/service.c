/* The session of libcuda.so.1, as a math library uses it: the functions that generated calls name. */
#include "hws_math.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

_Thread_local uint64_t hws_math_stream;
_Thread_local hws_tls_t hws_tls;                  /* of this library; libcuda.so.1 has the thread's own */
hws_stream_watcher_t *_Atomic hws_stream_watcher; /* none: probe() of libcuda.so.1 reports streams */

static const hws_service_t *_Atomic found;

static void find(void) {
    static const CUuuid id = HWS_SERVICE_ID;
    const void *table = NULL;
    if (cuGetExportTable(&table, &id) != CUDA_SUCCESS
        || ((const hws_service_t *) table)->description_hash != HWS_DESCRIPTION_HASH) {
        fprintf(stderr, "hawser: the math libraries need the libcuda.so.1 of the same Hawser\n");
        return;
    }
    atomic_store_explicit(&found, table, memory_order_release);
}

const hws_service_t *hws_math_service(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const hws_service_t *service = atomic_load_explicit(&found, memory_order_acquire);
    if (__builtin_expect(service == NULL, 0)) {
        pthread_once(&once, find);
        service = atomic_load_explicit(&found, memory_order_acquire);
    }
    return service;
}

/* Calls come after hws_math_gate(), so the table is there. A call that costs credit puts work into a stream. */
int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    if ((flags & HWS_FLAG_CREDITED) != 0) {
        return hws_math_service()->work(hws_math_stream, opcode, flags, payload, payload_bytes, bulk, bulk_bytes, reply,
                                        reply_capacity, reply_bytes_p);
    }
    return hws_math_service()->call(opcode, flags, payload, payload_bytes, bulk, bulk_bytes, reply, reply_capacity,
                                    reply_bytes_p);
}

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    return hws_math_service()->send(opcode, flags, payload, payload_bytes, bulk, bulk_bytes);
}

int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges,
              uint32_t count) {
    return hws_math_service()->probe(hws_math_stream, opcode, flags, payload, payload_bytes, ranges, count);
}

void hws_handle_drop(hws_kind_t kind, uint64_t handle) {
    hws_math_service()->handle_drop(kind, handle);
}

int hws_channel_status(void) {
    return hws_math_service()->status();
}

int hws_channel_fail(int status, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return hws_math_service()->fail(status, "%s", text);
}
