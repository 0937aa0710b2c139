/*
 * What the parts of the Runtime API share: the calling thread's state, errors, contexts and the table of kernels and
 * variables. All functions may be called by any thread.
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
 * The twin of a function for programs compiled with --default-stream per-thread: the same parameters, a null stream
 * meaning the calling thread's own. args is the argument list that calls the function with that meaning.
 */
#define HWS_PER_THREAD(name, twin, params, args)                                                                       \
    HWS_API cudaError_t twin params;                                                                                   \
    HWS_API cudaError_t twin params {                                                                                  \
        return name args;                                                                                              \
    }
#define HWS_TWIN(name, params, args) HWS_PER_THREAD(name, name##_ptsz, params, args)
#define HWS_PTDS(name, params, args) HWS_PER_THREAD(name, name##_ptds, params, args)

/* The stream a per-thread twin means: the thread's own for the null stream. */
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

/* Names a function that is not there yet on stderr, once per process, unless HAWSER_LOG=error. */
cudaError_t hws_error_unsupported(const char *name, atomic_flag *named);

/* Exported functions that other parts call. */
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);

/* ---- devices and contexts (context.c) ---- */

/* Limits the table of devices: a driver that reports more has lost its senses. */
#define HWS_MAX_DEVICES 64

/* Initialises the driver once per process; the number of devices, >= 1, or the error of the first attempt. */
cudaError_t hws_runtime_init(int *deviceCount);

/* Makes sure that the calling thread has a current context: the one it has, or its device's primary context. */
cudaError_t hws_context_enter(void);

/* The ordinal of the calling thread's current device. Creates no context. */
cudaError_t hws_device_current(int *ordinal);

/* The driver's name for a device; cudaErrorInvalidDevice for an ordinal that does not exist. Creates no context. */
cudaError_t hws_device_get(int ordinal, CUdevice *device);

/* The ordinal of a driver's device; -1 for a device that is not one of ours. */
int hws_device_ordinal(CUdevice device);

/* The device's primary context, retained by this library from the first use to cudaDeviceReset. */
cudaError_t hws_context_primary(int ordinal, CUcontext *context);

/*
 * The calling thread's current context if it is a primary context that this library holds, else NULL; *generation
 * changes when a context that had this handle is reset. What is cached under both stays true.
 */
CUcontext hws_context_cacheable(unsigned int *generation);

/* Enters and returns from the calling function, recording, when that fails. */
#define HWS_ENTER_CONTEXT()                                                                                            \
    do {                                                                                                               \
        cudaError_t hws_entered = hws_context_enter();                                                                 \
        if (hws_entered != cudaSuccess) {                                                                              \
            return hws_error_record(hws_entered);                                                                      \
        }                                                                                                              \
    } while (0)

/* Returns from the calling function, recording, unless the expression is cudaSuccess. */
#define HWS_TRY(expression)                                                                                            \
    do {                                                                                                               \
        cudaError_t hws_tried = (expression);                                                                          \
        if (hws_tried != cudaSuccess) {                                                                                \
            return hws_error_record(hws_tried);                                                                        \
        }                                                                                                              \
    } while (0)

/* Returns cudaErrorInvalidValue from the calling function, recording, unless the condition holds. */
#define HWS_REQUIRE(condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            return hws_error_record(cudaErrorInvalidValue);                                                            \
        }                                                                                                              \
    } while (0)

/* ---- kernels and variables (registration.c) ---- */

/*
 * The kernel behind a host function or a cudaKernel_t, its image loaded at the first use; the calling thread must
 * have entered a context. cudaErrorInvalidDeviceFunction for an address that was never registered.
 */
cudaError_t hws_kernel_resolve(const void *func, CUkernel *kernel);

/* The same for launches and queries: CUDA 13 takes an address that is not registered for a bad kernel handle. */
static inline cudaError_t hws_kernel_find(const void *func, CUkernel *kernel) {
    cudaError_t error = hws_kernel_resolve(func, kernel);
    return error == cudaErrorInvalidDeviceFunction && HWS_CUDART_MAJOR >= 13 ? cudaErrorInvalidResourceHandle : error;
}

/* The host function, or cudaKernel_t, that was resolved to a kernel; NULL when none was. */
const void *hws_kernel_host(CUkernel kernel);

/* A variable's address and size in the current context, its image loaded at the first use. cudaErrorInvalidSymbol. */
cudaError_t hws_symbol_resolve(const void *symbol, CUdeviceptr *address, size_t *bytes);

/* Unloads every registered image; the next use loads it anew. Before the reset of the only device in use. */
void hws_image_unload_all(void);

/* Lets a cudaKernel_t that the driver gave out be used where a host function is expected. */
cudaError_t hws_kernel_publish(CUkernel kernel, CUlibrary library);

/* Forgets the kernels of a library that is being unloaded. */
void hws_kernel_retract(CUlibrary library);

#endif
