/*
 * Stream capture for the rest of the library: the checks before a call touches a stream, or does something that is
 * unsafe during a capture. Without a capture a check is one relaxed load.
 *
 * The graphs' lock (graph.h) guards the state.
 */
#ifndef HWS_CAPTURE_H
#define HWS_CAPTURE_H

#include "hws_driver.h"

struct hws_params;
struct hws_shape;

/* Streams that capture, including those of invalidated captures. */
extern _Atomic unsigned hws_captures;

#define HWS_CAPTURING() (__builtin_expect(atomic_load_explicit(&hws_captures, memory_order_relaxed) != 0, 0))

/* Result of hws_capture_ask() for a stream that captures. Not a result of CUDA's. */
#define HWS_CAPTURED ((CUresult) - 1)

/*
 * Whether work may be issued to the stream. Returns 0 when the stream does not capture and HWS_CAPTURED when it does.
 * Returns CUDA's error when its capture is invalid. If the legacy stream would wait for a capture, returns an error and
 * ends that capture.
 */
CUresult hws_capture_ask(CUstream stream);

/* Whether the stream captures and its capture is valid. */
bool hws_capture_captures(CUstream stream);

/*
 * Around work that uses an object, in a stream that captures: its nodes will depend on the node of the same capture that
 * has used the object last.
 */
void hws_capture_begin_use(CUstream stream, uint64_t object);
void hws_capture_end_use(CUstream stream, uint64_t object);

/* CUDA's error for a query of a stream: its capture is invalid, or the legacy stream would wait for a capture. */
CUresult hws_capture_ask_query(CUstream stream);

/* The same for a query that is not permitted for a stream that captures. */
CUresult hws_capture_refuse_query(CUstream stream);

/* Whether a stream captures into the graph. The graphs' lock is held. */
bool hws_capture_fills(uint64_t graph);

/* Ends the stream's capture because of an operation that cannot be captured. Returns CUDA's error for it. */
CUresult hws_capture_refuse(CUstream stream);

/* Returns 0, or CUDA's error for a call that is unsafe during the running captures. The error ends those captures. */
CUresult hws_capture_unsafe(void);

/*
 * The same for a call that waits for, or queries, all work of a context. `context` is the number that records have
 * (hws_tls.context). No mode of the captures lets such a call pass.
 */
CUresult hws_capture_ask_context(uint32_t context);

/* CUDA's error for waiting for, or querying, an event that a capture has recorded. With `ends`, ends the capture. */
CUresult hws_capture_ask_event(CUevent event, bool ends);

/* Leaves the calling function with the result of `add` when the stream captures, or with an error. */
#define HWS_CAPTURE(stream, add)                                                                                       \
    do {                                                                                                               \
        if (HWS_CAPTURING()) {                                                                                         \
            CUresult hws_asked = hws_capture_ask(stream);                                                              \
            if (hws_asked != CUDA_SUCCESS) {                                                                           \
                return hws_asked == HWS_CAPTURED ? (add) : hws_asked;                                                  \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* The same for an operation that cannot be captured, such as a callback with a status. */
#define HWS_REFUSE_CAPTURE(stream) HWS_CAPTURE(stream, hws_capture_refuse(stream))

/* The same for an operation that CUDA refuses in one way, whether or not the capture is still valid. */
#define HWS_REFUSE_CAPTURES(stream)                                                                                    \
    do {                                                                                                               \
        if (HWS_CAPTURING()) {                                                                                         \
            CUresult hws_refused = hws_capture_ask(stream);                                                            \
            hws_refused = hws_refused == HWS_CAPTURED ? hws_capture_refuse(stream) : hws_refused;                      \
            HWS_TRY(hws_refused == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED       \
                                                                         : hws_refused);                               \
        }                                                                                                              \
    } while (0)

/* The same for waiting for a stream, or querying it. */
#define HWS_REFUSE_WAITING(stream)                                                                                     \
    do {                                                                                                               \
        HWS_REFUSE_CAPTURE(stream);                                                                                    \
        HWS_UNSAFE();                                                                                                  \
    } while (0)

/*
 * Leaves the calling function when a query of the stream fails because of a capture. Queries end no capture.
 */
#define HWS_REFUSE_QUERY(stream)                                                                                       \
    do {                                                                                                               \
        if (HWS_CAPTURING()) {                                                                                         \
            HWS_TRY(hws_capture_ask_query(stream));                                                                    \
        }                                                                                                              \
    } while (0)

/* The same for a query that CUDA refuses for each stream that captures, whether or not the capture is still valid. */
#define HWS_REFUSE_CAPTURED_QUERY(stream)                                                                              \
    do {                                                                                                               \
        if (HWS_CAPTURING()) {                                                                                         \
            HWS_TRY(hws_capture_refuse_query(stream));                                                                 \
        }                                                                                                              \
    } while (0)

/* Leaves the calling function when a stream of the context, a CUcontext, captures. */
#define HWS_REFUSE_CONTEXT(handle)                                                                                     \
    do {                                                                                                               \
        if (HWS_CAPTURING()) {                                                                                         \
            HWS_TRY(hws_capture_ask_context((uint32_t) (uintptr_t) (handle)));                                         \
        }                                                                                                              \
    } while (0)

/* Leaves the calling function when the call is unsafe during a capture. */
#define HWS_UNSAFE()                                                                                                   \
    do {                                                                                                               \
        if (HWS_CAPTURING()) {                                                                                         \
            HWS_TRY(hws_capture_unsafe());                                                                             \
        }                                                                                                              \
    } while (0)

/*
 * Adds a node to the stream's capture. `taken` is the result of reading the program's parameters; on 0 this takes
 * `params`.
 */
CUresult hws_capture_add(CUstream stream, CUresult taken, struct hws_params *params);

/* Captured variants of calls. */
CUresult hws_capture_kernel(CUfunction function, const struct hws_shape *shape, void **kernel_params, void **extra);
CUresult hws_capture_bytes(CUdeviceptr dst, CUmemorytype dst_type, CUdeviceptr src, CUmemorytype src_type, size_t bytes,
                           CUstream stream);
CUresult hws_capture_box(const CUDA_MEMCPY3D *copy, CUstream stream);
CUresult hws_capture_memset(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element_bytes, size_t width,
                            size_t height, CUstream stream);
CUresult hws_capture_memory_ops(CUstream stream, const CUstreamBatchMemOpParams *ops, unsigned count);
CUresult hws_capture_host(CUstream stream, CUhostFn function, void *user_data);
CUresult hws_capture_allocate(CUstream stream, const CUmemPoolProps *props, size_t bytes, CUdeviceptr *dptr_p);
CUresult hws_capture_free(CUstream stream, CUdeviceptr address);

/* Ends the stream's capture because of an error of the work itself, and returns that error. */
CUresult hws_capture_spoil(CUstream stream, CUresult error);

/* Records an event in a stream, which may or may not capture. */
CUresult hws_capture_record(CUevent event, CUstream stream, bool external);
void hws_capture_forget_event(CUevent event);

/*
 * Lets a stream wait for an event. Returns HWS_CAPTURED when the wait was captured, 0 when neither stream nor event
 * belongs to a capture, or an error. `recorded`: whether the event was ever recorded.
 */
CUresult hws_capture_wait(CUstream stream, CUevent event, bool external, bool recorded);

/* Handles the destruction of a stream. Its captured work stays in the graph. A capture that began in it ends. */
void hws_capture_destroy_stream(CUstream stream);

#endif
