/*
 * Linear copies. The driver has different functions for a synchronous copy on the legacy default stream and on the
 * thread's own stream; hws_copy_mode_t selects one.
 */
#include "copy.h"

static CUdeviceptr hws_address(const void *pointer) {
    return (CUdeviceptr) (uintptr_t) pointer;
}

cudaError_t hws_copy_linear(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, hws_copy_mode_t mode,
                            cudaStream_t stream) {
    HWS_ENTER_CONTEXT();
    if (count == 0) {
        return cudaSuccess; /* before all other checks, as CUDA does */
    }
    if ((unsigned int) kind > cudaMemcpyDefault) {
        return hws_error_record(cudaErrorInvalidMemcpyDirection);
    }
    HWS_REQUIRE(dst != NULL && src != NULL);
    bool own = mode == HWS_COPY_SYNC_PER_THREAD;
    CUdeviceptr to = hws_address(dst);
    CUdeviceptr from = hws_address(src);
    CUresult result;
    switch (kind) {
        case cudaMemcpyHostToDevice:
            result = mode == HWS_COPY_ASYNC ? cuMemcpyHtoDAsync_v2(to, src, count, stream)
                : own                       ? cuMemcpyHtoD_v2_ptds(to, src, count)
                                            : cuMemcpyHtoD_v2(to, src, count);
            break;
        case cudaMemcpyDeviceToHost:
            result = mode == HWS_COPY_ASYNC ? cuMemcpyDtoHAsync_v2(dst, from, count, stream)
                : own                       ? cuMemcpyDtoH_v2_ptds(dst, from, count)
                                            : cuMemcpyDtoH_v2(dst, from, count);
            break;
        case cudaMemcpyDeviceToDevice:
            result = mode == HWS_COPY_ASYNC ? cuMemcpyDtoDAsync_v2(to, from, count, stream)
                : own                       ? cuMemcpyDtoD_v2_ptds(to, from, count)
                                            : cuMemcpyDtoD_v2(to, from, count);
            break;
        default:
            /* The driver determines the kinds of the addresses. That works from host to host too, in stream order. */
            result = mode == HWS_COPY_ASYNC ? cuMemcpyAsync(to, from, count, stream)
                : own                       ? cuMemcpy_ptds(to, from, count)
                                            : cuMemcpy(to, from, count);
            break;
    }
    return hws_result(result);
}

HWS_API cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind) {
    return hws_copy_linear(dst, src, count, kind, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
HWS_API cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind) {
    return hws_copy_linear(dst, src, count, kind, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                                    cudaStream_t stream) {
    return hws_copy_linear(dst, src, count, kind, HWS_COPY_ASYNC, stream);
}

HWS_TWIN(cudaMemcpyAsync, (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream),
         (dst, src, count, kind, hws_stream_ptsz(stream)))

static cudaError_t hws_copy_peer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count,
                                 hws_copy_mode_t mode, cudaStream_t stream) {
    CUcontext to;
    CUcontext from;
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_context_primary(dstDevice, &to));
    HWS_TRY(hws_context_primary(srcDevice, &from));
    if (count == 0) {
        return cudaSuccess;
    }
    HWS_REQUIRE(dst != NULL && src != NULL);
    return hws_result(mode == HWS_COPY_ASYNC
                          ? cuMemcpyPeerAsync(hws_address(dst), to, hws_address(src), from, count, stream)
                          : cuMemcpyPeer(hws_address(dst), to, hws_address(src), from, count));
}

HWS_API cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count) {
    return hws_copy_peer(dst, dstDevice, src, srcDevice, count, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t count,
                                        cudaStream_t stream) {
    return hws_copy_peer(dst, dstDevice, src, srcDevice, count, HWS_COPY_ASYNC, stream);
}

/* ---- variables ---- */

HWS_API cudaError_t cudaGetSymbolAddress(void **devPtr, const void *symbol) {
    CUdeviceptr address;
    size_t bytes;
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_symbol_resolve(symbol, &address, &bytes));
    HWS_TRY(hws_context_ask());
    HWS_REQUIRE(devPtr != NULL);
    *devPtr = (void *) (uintptr_t) address;
    return cudaSuccess;
}

HWS_API cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol) {
    CUdeviceptr address;
    HWS_ENTER_CONTEXT();
    size_t bytes;
    HWS_TRY(hws_symbol_resolve(symbol, &address, &bytes));
    HWS_TRY(hws_context_ask());
    HWS_REQUIRE(size != NULL);
    *size = bytes;
    return cudaSuccess;
}

/*
 * The address of [offset, offset + count) inside a variable. NVIDIA's runtime checks the direction of an asynchronous
 * copy before the range, and of a blocking copy after it.
 */
static cudaError_t hws_symbol_check(const void *symbol, size_t offset, size_t count, bool direction,
                                    hws_copy_mode_t mode, void **address_p) {
    CUdeviceptr address;
    size_t bytes;
    HWS_TRY(hws_symbol_resolve(symbol, &address, &bytes));
    bool inside = offset <= bytes && count <= bytes - offset;
    if (inside && direction) {
        *address_p = (void *) (uintptr_t) (address + offset);
        return cudaSuccess;
    }
    HWS_TRY(hws_context_ask());
    return hws_error_record(direction || (!inside && mode != HWS_COPY_ASYNC) ? cudaErrorInvalidValue
                                                                             : cudaErrorInvalidMemcpyDirection);
}

static cudaError_t hws_copy_to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
                                      enum cudaMemcpyKind kind, hws_copy_mode_t mode, cudaStream_t stream) {
    void *address = NULL;
    bool direction = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
    HWS_ENTER_CONTEXT();
    if (count == 0) {
        return cudaSuccess;
    }
    HWS_TRY(hws_symbol_check(symbol, offset, count, direction, mode, &address));
    return hws_copy_linear(address, src, count, kind, mode, stream);
}

static cudaError_t hws_copy_from_symbol(void *dst, const void *symbol, size_t count, size_t offset,
                                        enum cudaMemcpyKind kind, hws_copy_mode_t mode, cudaStream_t stream) {
    void *address = NULL;
    bool direction = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
    HWS_ENTER_CONTEXT();
    if (count == 0) {
        return cudaSuccess;
    }
    HWS_TRY(hws_symbol_check(symbol, offset, count, direction, mode, &address));
    return hws_copy_linear(dst, address, count, kind, mode, stream);
}

#define HWS_TO_SYMBOL const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind
#define HWS_FROM_SYMBOL void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind

HWS_API cudaError_t cudaMemcpyToSymbol(HWS_TO_SYMBOL) {
    return hws_copy_to_symbol(symbol, src, count, offset, kind, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpyToSymbol_ptds(HWS_TO_SYMBOL);
HWS_API cudaError_t cudaMemcpyToSymbol_ptds(HWS_TO_SYMBOL) {
    return hws_copy_to_symbol(symbol, src, count, offset, kind, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemcpyToSymbolAsync(HWS_TO_SYMBOL, cudaStream_t stream) {
    return hws_copy_to_symbol(symbol, src, count, offset, kind, HWS_COPY_ASYNC, stream);
}
HWS_TWIN(cudaMemcpyToSymbolAsync, (HWS_TO_SYMBOL, cudaStream_t stream),
         (symbol, src, count, offset, kind, hws_stream_ptsz(stream)))

HWS_API cudaError_t cudaMemcpyFromSymbol(HWS_FROM_SYMBOL) {
    return hws_copy_from_symbol(dst, symbol, count, offset, kind, HWS_COPY_SYNC, NULL);
}

HWS_API cudaError_t cudaMemcpyFromSymbol_ptds(HWS_FROM_SYMBOL);
HWS_API cudaError_t cudaMemcpyFromSymbol_ptds(HWS_FROM_SYMBOL) {
    return hws_copy_from_symbol(dst, symbol, count, offset, kind, HWS_COPY_SYNC_PER_THREAD, NULL);
}

HWS_API cudaError_t cudaMemcpyFromSymbolAsync(HWS_FROM_SYMBOL, cudaStream_t stream) {
    return hws_copy_from_symbol(dst, symbol, count, offset, kind, HWS_COPY_ASYNC, stream);
}
HWS_TWIN(cudaMemcpyFromSymbolAsync, (HWS_FROM_SYMBOL, cudaStream_t stream),
         (dst, symbol, count, offset, kind, hws_stream_ptsz(stream)))
