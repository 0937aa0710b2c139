/*
 * What libcuda.so.1 does for Hawser's other libraries in the same process, which have no session of their own: a table
 * of functions, which cuGetExportTable() returns for the id below. Only libraries of the same build use it.
 */
#ifndef HWS_SERVICE_H
#define HWS_SERVICE_H

#include "hws_cuda_types.h"
#include "hws_wire.h"

#include <stdbool.h>
#include <stdint.h>

/* The id: "hawser service 1". */
#define HWS_SERVICE_ID {{'h', 'a', 'w', 's', 'e', 'r', ' ', 's', 'e', 'r', 'v', 'i', 'c', 'e', ' ', '1'}}

typedef struct hws_service {
    uint64_t description_hash; /* HWS_DESCRIPTION_HASH of libcuda.so.1: libraries of another build refuse to work */
    _Atomic int *gate;         /* hws_gate: what each call returns first, 0 for none */
    int (*call)(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
                uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p);
    int (*send)(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
                uint64_t bulk_bytes);
    /* As call() with a reply, for work of a stream. While the stream captures, the work becomes a node. */
    int (*work)(uint64_t stream, uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes,
                const void *bulk, uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p);
    /* As hws_probe(), for work of a stream. While the stream captures, the work becomes a node. */
    int (*probe)(uint64_t stream, uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes,
                 const hws_vary_t *ranges, uint32_t count);
    int (*status)(void);
    int (*fail)(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
    uint64_t (*handle_new)(hws_kind_t kind);
    void (*handle_drop)(hws_kind_t kind, uint64_t handle);
    void (*handle_attach)(hws_kind_t kind, uint64_t handle, void *data);
    void *(*handle_data)(hws_kind_t kind, uint64_t handle);
    /*
     * 0 when work may be issued to the stream, which may capture; CUDA_ERROR_INVALID_CONTEXT when the thread has no
     * context; CUDA's error.
     */
    CUresult (*may_issue)(CUstream stream);
    /* Logs once that a function has no implementation; `name` is a literal. */
    CUresult (*unsupported)(const char *name);
    /* Whether a stream captures, so that its work would become a node. */
    bool (*captures)(uint64_t stream);
    /*
     * Around work that uses an object, in a stream that captures: the nodes that use the same one run in the order of
     * the calls, whatever streams of the capture they come from.
     */
    void (*begin_use)(uint64_t stream, uint64_t object);
    void (*end_use)(uint64_t stream, uint64_t object);
} hws_service_t;

extern const hws_service_t hws_service;

#endif
