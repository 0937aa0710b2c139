/* Launches. The guest checks and packs them, so that a launch needs no reply. */
#include "launch.h"

#include "capture.h"
#include "context.h"
#include "device.h"
#include "mirror.h"
#include "occupancy.h"
#include "unseen.h"

#include "hws_cuda_calls.h"
#include "shm/hws_shm.h"

#include <string.h>

CUresult hws_launch_check_shape(const hws_function_t *function, const hws_shape_t *shape) {
    HWS_TRY(hws_function_check(function));
    const HwsLaunchShape *dims = &shape->dims;
    const unsigned grid[3] = {dims->gridDimX, dims->gridDimY, dims->gridDimZ};
    const unsigned block[3] = {dims->blockDimX, dims->blockDimY, dims->blockDimZ};
    HWS_REQUIRE(grid[0] != 0 && grid[1] != 0 && grid[2] != 0 && block[0] != 0 && block[1] != 0 && block[2] != 0);
    for (int i = 0; i < 3; i++) {
        HWS_REQUIRE(grid[i]
                    <= (unsigned) hws_device_attribute(function->device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i));
        HWS_REQUIRE(block[i]
                    <= (unsigned) hws_device_attribute(function->device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i));
    }
    uint64_t threads = (uint64_t) block[0] * block[1] * block[2];
    HWS_REQUIRE(threads
                <= (uint64_t) hws_device_attribute(function->device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    if (threads > (uint64_t) function->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK]) {
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    /* Unless the program has set a larger limit, static and dynamic shared memory share the default limit. */
    int64_t plain = (int64_t) hws_device_attribute(function->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
        - function->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    int64_t chosen = function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
    if ((int64_t) dims->sharedMemBytes > (plain > chosen ? plain : chosen)) {
        /* No block of a cooperative grid fits then. */
        return (shape->flags & HWS_LAUNCH_COOPERATIVE) != 0 ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
                                                            : CUDA_ERROR_INVALID_VALUE;
    }
    return hws_launch_check_clusters(function, shape);
}

#define MAX_PARAMETER_BYTES 32764 /* of any kernel */

CUresult hws_launch_pack(const hws_function_t *function, void **kernel_params, void **extra, uint8_t *packed) {
    if (kernel_params != NULL) {
        HWS_REQUIRE(extra == NULL);
        for (uint32_t i = 0; i < function->param_count; i++) {
            HWS_REQUIRE(kernel_params[i] != NULL);
            memcpy(packed + function->params[i].offset, kernel_params[i], function->params[i].size);
        }
        return CUDA_SUCCESS;
    }
    if (extra == NULL) {
        HWS_REQUIRE(function->param_count == 0);
        return CUDA_SUCCESS;
    }
    const void *buffer = NULL;
    const size_t *bytes = NULL;
    for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[i + 1];
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            bytes = extra[i + 1];
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    HWS_REQUIRE(bytes != NULL && *bytes <= MAX_PARAMETER_BYTES);
    HWS_REQUIRE(function->params_bytes == 0 || (buffer != NULL && *bytes != 0));
    if (*bytes > function->params_bytes) { /* too many arguments: padding at the end counts as well */
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    if (*bytes != 0) {
        memcpy(packed, buffer, *bytes); /* parameters that a shorter buffer leaves out are zeros, as on an H200 */
    }
    return CUDA_SUCCESS;
}

/* CUDA reports at once that a cooperative grid is too large. Only the driver knows the limit with clusters. */
static CUresult check_cooperative(CUfunction f, const hws_function_t *function, const hws_shape_t *shape) {
    if (__builtin_expect((shape->flags & HWS_LAUNCH_COOPERATIVE) == 0, 1)) {
        return CUDA_SUCCESS;
    }
    bool clusters = function->attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] != 0;
    for (unsigned i = 0; i < shape->attribute_count; i++) {
        clusters = clusters || shape->attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    }
    const HwsLaunchShape *dims = &shape->dims; /* checked: neither product overflows */
    uint64_t blocks = (uint64_t) dims->gridDimX * dims->gridDimY * dims->gridDimZ;
    int threads = (int) (dims->blockDimX * dims->blockDimY * dims->blockDimZ);
    return !clusters && hws_occupancy_is_too_large(f, threads, dims->sharedMemBytes, blocks)
        ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
        : CUDA_SUCCESS;
}

/* Whether the current context, or the primary context of a green one, has the function. */
static bool is_of_context(const hws_function_t *function) {
    return function->context == 0 || function->context == hws_tls.context
        || function->context == (uint32_t) (uintptr_t) hws_context_owner();
}

static CUresult launch(CUfunction f, const hws_shape_t *shape, void **kernel_params, void **extra) {
    const hws_function_t *function = hws_function_get(f);
    if (__builtin_expect(function == NULL || !is_of_context(function), 0)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, shape->stream);
    HWS_CAPTURE(shape->stream, hws_capture_kernel(f, shape, kernel_params, extra));
    if ((shape->flags & HWS_LAUNCH_COOPERATIVE) != 0) { /* CUDA checks this before the grid's size */
        HWS_REQUIRE(kernel_params != NULL || extra != NULL || function->param_count == 0);
    }
    HWS_TRY(hws_launch_check_shape(function, shape));
    HWS_TRY(check_cooperative(f, function, shape));
    HWS_TRY(hws_launch_check_cluster_size(shape));
    uint8_t packed[hws_launch_packed_bytes(function)];
    memset(packed, 0, sizeof packed);
    HWS_TRY(hws_launch_pack(function, kernel_params, extra, packed));
    HWS_TRY(hws_unseen_look(function, packed));
    /* A kernel waits for the host, or writes its memory, only through memory that both use. */
    hws_tls.passing = hws_shm_current() == NULL && !hws_channel_watches_work();
    hws_mirror_order(shape->stream);
    CUresult result =
        hws_call_hwsLaunch(f, shape->stream, &shape->dims, shape->flags, function->params_bytes, packed,
                           shape->attribute_count * (uint32_t) sizeof(CUlaunchAttribute), shape->attributes);
    hws_mirror_end_order();
    hws_tls.passing = false;
    return result;
}

HWS_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra) {
    HWS_ENTER_CONTEXT();
    const hws_shape_t shape = {.dims = {gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes},
                               .stream = hStream};
    return launch(f, &shape, kernelParams, extra);
}

HWS_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                              unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                              unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                              void **kernelParams) {
    HWS_ENTER_CONTEXT();
    const hws_shape_t shape = {.dims = {gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes},
                               .stream = hStream,
                               .flags = HWS_LAUNCH_COOPERATIVE};
    return launch(f, &shape, kernelParams, NULL);
}

HWS_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(config != NULL);
    const hws_function_t *function = hws_function_get(f);
    if (function == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    hws_shape_t shape = {
        .dims = hws_launch_dims(config),
        .stream = config->hStream,
        .attributes = config->attrs,
        .attribute_count = config->numAttrs,
    };
    HWS_TRY(hws_launch_check_attributes(config, function, &shape.flags));
    return launch(f, &shape, kernelParams, extra);
}

HWS_EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                                          void **extra) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(config != NULL);
    CUlaunchConfig own = *config;
    own.hStream = HWS_PTSZ(config->hStream);
    return cuLaunchKernelEx(&own, f, kernelParams, extra);
}
