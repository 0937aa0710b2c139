/* Copy nodes: one-dimensional copies, boxes, and copies that name variables. */
#include <string.h>

#include "array.h"
#include "copy.h"
#include "graph.h"

static CUmemorytype hws_graph_place(enum cudaMemcpyKind kind, bool isSource) {
    bool host = isSource ? kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice
                         : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
    return kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED : host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

static void hws_graph_ends(CUDA_MEMCPY3D *driver, void *dst, const void *src, enum cudaMemcpyKind kind) {
    driver->srcMemoryType = hws_graph_place(kind, true);
    driver->dstMemoryType = hws_graph_place(kind, false);
    if (driver->srcMemoryType == CU_MEMORYTYPE_HOST) {
        driver->srcHost = src;
    } else {
        driver->srcDevice = (CUdeviceptr) (uintptr_t) src;
    }
    if (driver->dstMemoryType == CU_MEMORYTYPE_HOST) {
        driver->dstHost = dst;
    } else {
        driver->dstDevice = (CUdeviceptr) (uintptr_t) dst;
    }
}

cudaError_t hws_graph_copy(const struct cudaMemcpy3DParms *params, CUDA_MEMCPY3D *driver) {
    cudaError_t error = hws_copy_3d_params(params, driver);
    return error == cudaSuccess && driver->WidthInBytes == 0 ? cudaErrorInvalidValue : error;
}

/* A position in the Runtime API's units: elements of the participating array, else bytes. */
static struct cudaPos hws_graph_pos(size_t x, size_t y, size_t z, size_t element) {
    return (struct cudaPos) {x / element, y, z};
}

static struct cudaPitchedPtr hws_graph_pitched(CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch,
                                               size_t width, size_t rows) {
    if (type == CU_MEMORYTYPE_ARRAY) {
        return (struct cudaPitchedPtr) {NULL, 0, 0, 0};
    }
    void *pointer = type == CU_MEMORYTYPE_HOST ? (void *) (uintptr_t) host : (void *) (uintptr_t) device;
    return (struct cudaPitchedPtr) {pointer, pitch, width, rows};
}

cudaError_t hws_graph_copy_back(const CUDA_MEMCPY3D *driver, struct cudaMemcpy3DParms *params) {
    CUmemorytype src = driver->srcMemoryType;
    CUmemorytype dst = driver->dstMemoryType;
    size_t element = 1;
    memset(params, 0, sizeof *params);
    if (src == CU_MEMORYTYPE_ARRAY) {
        params->srcArray = (cudaArray_t) driver->srcArray;
    }
    if (dst == CU_MEMORYTYPE_ARRAY) {
        params->dstArray = (cudaArray_t) driver->dstArray;
    }
    if (params->srcArray != NULL || params->dstArray != NULL) {
        cudaError_t error = hws_array_element(params->srcArray != NULL ? params->srcArray : params->dstArray, &element);
        if (error != cudaSuccess) {
            return error;
        }
    }
    params->srcPtr = hws_graph_pitched(src, driver->srcHost, driver->srcDevice, driver->srcPitch, driver->WidthInBytes,
                                       driver->srcHeight);
    params->srcPos = hws_graph_pos(driver->srcXInBytes, driver->srcY, driver->srcZ, element);
    params->dstPtr = hws_graph_pitched(dst, driver->dstHost, driver->dstDevice, driver->dstPitch, driver->WidthInBytes,
                                       driver->dstHeight);
    params->dstPos = hws_graph_pos(driver->dstXInBytes, driver->dstY, driver->dstZ, element);
    params->extent = (struct cudaExtent) {driver->WidthInBytes / element, driver->Height, driver->Depth};
    params->kind = src == CU_MEMORYTYPE_UNIFIED || dst == CU_MEMORYTYPE_UNIFIED ? cudaMemcpyDefault
        : src == CU_MEMORYTYPE_HOST ? (dst == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
                                    : (dst == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice);
    return cudaSuccess;
}

static cudaError_t hws_graph_copy_1d(CUDA_MEMCPY3D *driver, void *dst, const void *src, size_t count,
                                     enum cudaMemcpyKind kind) {
    memset(driver, 0, sizeof *driver);
    if (count == 0) {
        return cudaErrorInvalidValue;
    }
    if ((unsigned int) kind > cudaMemcpyDefault) {
        return cudaErrorInvalidMemcpyDirection;
    }
    if (dst == NULL || src == NULL) {
        return cudaErrorInvalidValue;
    }
    hws_graph_ends(driver, dst, src, kind);
    driver->srcPitch = count;
    driver->srcHeight = 1;
    driver->dstPitch = count;
    driver->dstHeight = 1;
    driver->WidthInBytes = count;
    driver->Height = 1;
    driver->Depth = 1;
    return cudaSuccess;
}

/* A copy with a variable. One end lies in the variable; the kind determines the other end. */
static cudaError_t hws_graph_copy_symbol(CUDA_MEMCPY3D *driver, const void *symbol, const void *other, size_t count,
                                         size_t offset, enum cudaMemcpyKind kind, bool toSymbol) {
    CUdeviceptr address;
    size_t bytes;
    enum cudaMemcpyKind wanted = toSymbol ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    cudaError_t error = hws_symbol_resolve(symbol, &address, &bytes);
    if (error == cudaSuccess) {
        error = hws_context_ask();
    }
    if (error != cudaSuccess) {
        return error;
    }
    if (offset > bytes || count > bytes - offset) {
        return cudaErrorInvalidValue;
    }
    if (kind != wanted && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) {
        return cudaErrorInvalidMemcpyDirection;
    }
    void *place = (void *) (uintptr_t) (address + offset);
    return toSymbol ? hws_graph_copy_1d(driver, place, other, count, kind)
                    : hws_graph_copy_1d(driver, (void *) (uintptr_t) other, place, count, kind);
}

/* NVIDIA's runtime checks the direction first, then the addresses, even after the error of a kernel. */
static cudaError_t hws_graph_copy_check(enum cudaMemcpyKind kind, const void *dst, const void *src) {
    if ((unsigned) kind > cudaMemcpyDefault) {
        return cudaErrorInvalidMemcpyDirection;
    }
    return dst == NULL || src == NULL ? cudaErrorInvalidValue : cudaSuccess;
}

/*
 * The three functions for one way to describe a copy: add a node, set a node, set it in an executable graph. params are
 * the parameters that describe the copy. check comes first. fill is the expression that turns them into a CUDA_MEMCPY3D named copy.
 */
#define HWS_COPY_NODE(suffix, check, fill, ...)                                                                        \
    HWS_API cudaError_t cudaGraphAddMemcpyNode##suffix(HWS_GRAPH_ADD, __VA_ARGS__) {                                   \
        CUDA_MEMCPY3D copy;                                                                                            \
        HWS_TRY(check);                                                                                                \
        HWS_ENTER_WORKING();                                                                                           \
        HWS_TRY(fill);                                                                                                 \
        HWS_REQUIRE(pGraphNode != NULL);                                                                               \
        return hws_result(cuGraphAddMemcpyNode(HWS_GRAPH_ADD_ARGS, &copy, hws_graph_context()));                       \
    }                                                                                                                  \
    HWS_API cudaError_t cudaGraphMemcpyNodeSetParams##suffix(cudaGraphNode_t node, __VA_ARGS__) {                      \
        CUDA_MEMCPY3D copy;                                                                                            \
        HWS_TRY(check);                                                                                                \
        HWS_ENTER_WORKING();                                                                                           \
        HWS_TRY(fill);                                                                                                 \
        return hws_result(cuGraphMemcpyNodeSetParams(node, &copy));                                                    \
    }                                                                                                                  \
    HWS_API cudaError_t cudaGraphExecMemcpyNodeSetParams##suffix(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,     \
                                                                 __VA_ARGS__) {                                        \
        CUDA_MEMCPY3D copy;                                                                                            \
        HWS_TRY(check);                                                                                                \
        HWS_ENTER_WORKING();                                                                                           \
        HWS_TRY(fill);                                                                                                 \
        HWS_REQUIRE(hGraphExec != NULL);                                                                               \
        return hws_result(cuGraphExecMemcpyNodeSetParams(hGraphExec, node, &copy, hws_graph_context()));               \
    }

HWS_COPY_NODE(, pNodeParams == NULL ? cudaErrorInvalidValue : cudaSuccess, hws_graph_copy(pNodeParams, &copy),
              const struct cudaMemcpy3DParms *pNodeParams)
HWS_COPY_NODE(1D, hws_graph_copy_check(kind, dst, src), hws_graph_copy_1d(&copy, dst, src, count, kind), void *dst,
              const void *src, size_t count, enum cudaMemcpyKind kind)
HWS_COPY_NODE(ToSymbol, cudaSuccess, hws_graph_copy_symbol(&copy, symbol, src, count, offset, kind, true),
              const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
HWS_COPY_NODE(FromSymbol, cudaSuccess, hws_graph_copy_symbol(&copy, symbol, dst, count, offset, kind, false), void *dst,
              const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)

HWS_API cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *pNodeParams) {
    CUDA_MEMCPY3D copy;
    HWS_REQUIRE(pNodeParams != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuGraphMemcpyNodeGetParams(node, &copy)));
    HWS_TRY(hws_graph_copy_back(&copy, pNodeParams));
    return cudaSuccess;
}
