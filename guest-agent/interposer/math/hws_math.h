/* Included by every file of a math library: the session, which belongs to libcuda.so.1, and the export mark. */
#ifndef HWS_MATH_H
#define HWS_MATH_H

#include "hws_service.h"

#define HWS_EXPORT __attribute__((visibility("default")))

/* Leaves the calling function with a status unless the condition holds. */
#define HWS_NEED(condition, status)                                                                                    \
    do {                                                                                                               \
        if (__builtin_expect(!(condition), 0)) {                                                                       \
            return (status);                                                                                           \
        }                                                                                                              \
    } while (0)

/* The stream of the calling thread's next hws_probe(), or hws_call() with HWS_FLAG_CREDITED. */
extern _Thread_local uint64_t hws_math_stream;

/* libcuda.so.1's table; NULL, after a line on stderr, when the process has another libcuda.so.1. Any thread. */
const hws_service_t *hws_math_service(void);

/*
 * Makes the primary context of device 0 current in a thread without a context, as the libraries do. Returns whether
 * the thread has a context now.
 */
bool hws_math_need_context(void);

/*
 * As may_issue() of the service, for work of the calling thread's next hws_probe(). A thread without a context gets one.
 * After hws_math_gate().
 */
CUresult hws_math_may_issue(CUstream stream);

/* Logs once that a function has no implementation; `name` is a literal. */
void hws_math_unsupported(const char *name);

/*
 * Makes a handle with a state of zeroed bytes, which it owns. Returns the state, or NULL without memory or an id. The
 * worker does not know the handle yet. After hws_math_gate(). Any thread.
 */
void *hws_math_new_handle(hws_kind_t kind, size_t bytes, uint64_t *id_p);

/* Makes a handle invalid, with libcuda.so.1's hws_handle_drop(). */
void hws_handle_drop(hws_kind_t kind, uint64_t handle);

/*
 * Fills a zeroed HwsScalar or HwsScalars, whose value has `capacity` bytes, with a number or its address. Returns it,
 * or NULL for a NULL pointer and for a type of unknown size. A number that the call only writes is not read.
 */
void *hws_math_scalar(bool on_device, const void *pointer, uint64_t bytes, bool is_read, void *scalar,
                      uint64_t capacity);

/* Name and text of a cublasStatus_t. */
const char *hws_math_status_name(int status);
const char *hws_math_status_text(int status);

/* The result of the session's first check of a call, without the library's own. Any thread. */
static inline int hws_math_gate(void) {
    const hws_service_t *service = hws_math_service();
    return service == NULL ? HWS_LOST_STATUS : atomic_load_explicit(service->gate, memory_order_relaxed);
}

#endif
