/*
 * Shared by the files of the Runtime API: the calling thread's state, errors, contexts, and the table of kernels and
 * variables. Any thread may call all functions.
 */
#ifndef HWS_CUDART_RUNTIME_H
#define HWS_CUDART_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cudart_types.h"

/* An exported function of the Runtime API. */
#define HWS_API __attribute__((visibility("default")))

#define HWS_CUDART_VERSION (HWS_CUDART_MAJOR == 13 ? 13000 : 12090)

/*
 * The twin of a function for programs compiled with --default-stream per-thread. It has the same parameters; a null
 * stream means the calling thread's own. args is the argument list that calls the function with that meaning.
 */
#define HWS_PER_THREAD(name, twin, params, args)                                                                       \
    HWS_API cudaError_t twin params;                                                                                   \
    HWS_API cudaError_t twin params {                                                                                  \
        return name args;                                                                                              \
    }
#define HWS_TWIN(name, params, args) HWS_PER_THREAD(name, name##_ptsz, params, args)
#define HWS_PTDS(name, params, args) HWS_PER_THREAD(name, name##_ptds, params, args)

/* The stream of a per-thread twin: the thread's own for the null stream. */
static inline cudaStream_t hws_stream_ptsz(cudaStream_t stream) {
    return stream == NULL ? cudaStreamPerThread : stream;
}

/* ---- errors (error.c) ---- */

/* Records the error as the calling thread's last and returns it; cudaSuccess changes nothing. */
cudaError_t hws_error_record(cudaError_t error);

/* The Runtime API's code for a driver's; cudaErrorUnknown for a code that has none. */
cudaError_t hws_error_from_driver(CUresult result);

/* Ends an exported function: translates and records. */
static inline cudaError_t hws_result(CUresult result) {
    return result == CUDA_SUCCESS ? cudaSuccess : hws_error_record(hws_error_from_driver(result));
}

/* Logs once per process that a function is not implemented, unless HAWSER_LOG=error. */
cudaError_t hws_error_unsupported(const char *name, atomic_flag *named);

/* Exported functions that other files call. */
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);

/* ---- devices and contexts (context.c) ---- */

/* Size of the table of devices. A driver that reports more is at fault. */
#define HWS_MAX_DEVICES 64

/*
 * Initialises the driver once per process. *deviceCount receives the number of devices, at least 1. Later calls return
 * the result of the first.
 */
cudaError_t hws_runtime_init(int *deviceCount);

/* Ensures that the calling thread has a current context: its present one, or its device's primary context. */
cudaError_t hws_context_enter(void);

/* The error of a kernel after which the current context can do no more work; cudaSuccess for none. No round trip. */
cudaError_t hws_context_ask(void);

/* The ordinal of the calling thread's current device. Creates no context. */
cudaError_t hws_device_current(int *ordinal);

/* The driver's handle of a device; cudaErrorInvalidDevice for an ordinal that does not exist. Creates no context. */
cudaError_t hws_device_get(int ordinal, CUdevice *device);

/* The ordinal of a driver's device; -1 for a device that this process does not see. */
int hws_device_ordinal(CUdevice device);

/* The device's primary context. This library retains it from the first use to cudaDeviceReset. */
cudaError_t hws_context_primary(int ordinal, CUcontext *context);

/*
 * The calling thread's current context if it is a primary context that this library holds, else NULL. *generation
 * changes when a context with this handle is reset. A cached value is valid while both are the same.
 */
CUcontext hws_context_cacheable(unsigned int *generation);

/* Enters a context. On failure records the error and returns from the calling function. */
#define HWS_ENTER_CONTEXT()                                                                                            \
    do {                                                                                                               \
        cudaError_t hws_entered = hws_context_enter();                                                                 \
        if (hws_entered != cudaSuccess) {                                                                              \
            return hws_error_record(hws_entered);                                                                      \
        }                                                                                                              \
    } while (0)

/* The same, and returns the error of a kernel after which the context can do no more work. */
#define HWS_ENTER_WORKING()                                                                                            \
    do {                                                                                                               \
        HWS_ENTER_CONTEXT();                                                                                           \
        HWS_TRY(hws_context_ask());                                                                                    \
    } while (0)

/* Unless the expression is cudaSuccess, records the error and returns from the calling function. */
#define HWS_TRY(expression)                                                                                            \
    do {                                                                                                               \
        cudaError_t hws_tried = (expression);                                                                          \
        if (hws_tried != cudaSuccess) {                                                                                \
            return hws_error_record(hws_tried);                                                                        \
        }                                                                                                              \
    } while (0)

/* Unless the condition holds, records cudaErrorInvalidValue and returns from the calling function. */
#define HWS_REQUIRE(condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            return hws_error_record(cudaErrorInvalidValue);                                                            \
        }                                                                                                              \
    } while (0)

/* ---- kernels and variables (registration.c) ---- */

/*
 * The kernel of a host function or a cudaKernel_t; the first use loads its image. The calling thread must have entered
 * a context. cudaErrorInvalidDeviceFunction for an address that was never registered.
 */
cudaError_t hws_kernel_resolve(const void *func, CUkernel *kernel);

/* The same for launches and queries: CUDA 13 treats an unregistered address as a bad kernel handle. */
static inline cudaError_t hws_kernel_find(const void *func, CUkernel *kernel) {
    cudaError_t error = hws_kernel_resolve(func, kernel);
    return error == cudaErrorInvalidDeviceFunction && HWS_CUDART_MAJOR >= 13 ? cudaErrorInvalidResourceHandle : error;
}

/* The host function or cudaKernel_t that was resolved to a kernel; NULL for none. */
const void *hws_kernel_host(CUkernel kernel);

/* A variable's address and size in the current context; the first use loads its image. cudaErrorInvalidSymbol. */
cudaError_t hws_symbol_resolve(const void *symbol, CUdeviceptr *address, size_t *bytes);

/* Unloads every registered image; the next use loads it again. Called before the reset of the only device in use. */
void hws_image_unload_all(void);

/* Makes a cudaKernel_t of the driver valid where a host function is expected. */
cudaError_t hws_kernel_publish(CUkernel kernel, CUlibrary library);

/* Removes the kernels of a library that is being unloaded. */
void hws_kernel_retract(CUlibrary library);

#endif
