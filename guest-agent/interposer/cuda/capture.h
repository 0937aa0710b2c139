/*
 * Stream capture, as the rest of the library sees it: what a call has to ask before it touches a stream or does what is
 * unsafe beside a capture. While nothing captures that is one relaxed load.
 *
 * The state is kept under the graphs' lock (graph.h).
 */
#ifndef HWS_CAPTURE_H
#define HWS_CAPTURE_H

#include "hws_driver.h"

struct hws_params;
struct hws_shape;

/* Streams that capture, those of invalidated captures included. */
extern _Atomic unsigned hws_captures;

#define HWS_CAPTURING() \
    (__builtin_expect(atomic_load_explicit(&hws_captures, memory_order_relaxed) != 0, 0))

/* What hws_capture_ask() answers for a stream that captures; no result of CUDA's. */
#define HWS_CAPTURED ((CUresult) -1)

/*
 * Whether work may be put in the stream: 0 when the stream does not capture; HWS_CAPTURED when it does; CUDA's error
 * when its capture is invalid, or when the legacy stream would wait for a capture, which that ends.
 */
CUresult hws_capture_ask(CUstream stream);

/* Ends the stream's capture by something that cannot be captured. Returns CUDA's error for it. */
CUresult hws_capture_refuse(CUstream stream);

/* 0, or CUDA's error for a call that is unsafe beside the captures that go on, which that ends. */
CUresult hws_capture_unsafe(void);

/* The same for a call that waits for, or asks about, all work of the current context. */
CUresult hws_capture_ask_context(void);

/* CUDA's error for waiting for, or asking about, an event that a capture has recorded; that may end the capture. */
CUresult hws_capture_ask_event(CUevent event, bool ends);

/* Leaves the calling function with what `add` returns when the stream captures, or with an error. */
#define HWS_CAPTURE(stream, add)                                            \
    do {                                                                    \
        if (HWS_CAPTURING()) {                                              \
            CUresult hws_asked = hws_capture_ask(stream);                   \
            if (hws_asked != CUDA_SUCCESS) {                                \
                return hws_asked == HWS_CAPTURED ? (add) : hws_asked;       \
            }                                                               \
        }                                                                   \
    } while (0)

/* The same for what cannot be captured, callbacks with a status for instance. */
#define HWS_REFUSE_CAPTURE(stream) HWS_CAPTURE(stream, hws_capture_refuse(stream))

/* The same for waiting for a stream, or asking about it. */
#define HWS_REFUSE_WAITING(stream)                                          \
    do {                                                                    \
        HWS_REFUSE_CAPTURE(stream);                                         \
        HWS_UNSAFE();                                                       \
    } while (0)

/* Leaves the calling function when it would be unsafe. */
#define HWS_UNSAFE()                                                        \
    do {                                                                    \
        if (HWS_CAPTURING()) {                                              \
            HWS_TRY(hws_capture_unsafe());                                  \
        }                                                                   \
    } while (0)

/* Adds a node to what the stream captures. Takes the parameters, if taking them from the program's succeeded. */
CUresult hws_capture_add(CUstream stream, CUresult taken, struct hws_params *params);

/* Captured variants of calls. */
CUresult hws_capture_kernel(CUfunction function, const struct hws_shape *shape, void **kernel_params, void **extra);
CUresult hws_capture_bytes(CUdeviceptr dst, CUmemorytype dst_type, CUdeviceptr src, CUmemorytype src_type,
                           size_t bytes, CUstream stream);
CUresult hws_capture_box(const CUDA_MEMCPY3D *copy, CUstream stream);
CUresult hws_capture_memset(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element_bytes, size_t width,
                            size_t height, CUstream stream);
CUresult hws_capture_host(CUstream stream, CUhostFn function, void *user_data);
CUresult hws_capture_allocate(CUstream stream, const CUmemPoolProps *props, size_t bytes, CUdeviceptr *dptr_p);
CUresult hws_capture_free(CUstream stream, CUdeviceptr address);

/* Ends the stream's capture because of an error of the work itself, which is returned. */
CUresult hws_capture_spoil(CUstream stream, CUresult error);

/* An event is recorded in a stream that captures, or in one that does not. */
CUresult hws_capture_record(CUevent event, CUstream stream, bool external);
void hws_capture_forget_event(CUevent event);

/*
 * A stream waits for an event: HWS_CAPTURED when that was captured, 0 when neither has to do with a capture, or an
 * error. `recorded`: whether the event ever was.
 */
CUresult hws_capture_wait(CUstream stream, CUevent event, bool external, bool recorded);

/* A stream is destroyed. What it has captured stays in the graph; a capture that began in it is over. */
void hws_capture_destroy_stream(CUstream stream);

#endif
