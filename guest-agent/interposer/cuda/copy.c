/*
 * Copies of bytes. The worker reads and writes pinned memory of the region in stream order. A copy from pageable memory
 * to the device returns when the bytes have been read. They travel in records up to the worker's limit, or, over shared
 * memory, long copies through chunks of the region. A copy to the host writes the memory itself; to pinned memory it
 * does so asynchronously.
 *
 * Over RDMA the adapter reads and writes pinned memory by itself (direct.h).
 *
 * Registered memory, and pinned memory outside a region, is read in stream order as well. A copy from it travels like
 * one from pageable memory when its stream has no work (progress.h); otherwise its bytes follow when the stream reaches
 * it (deferred.h).
 */
#include "copy.h"

#include "capture.h"
#include "context.h"
#include "deferred.h"
#include "direct.h"
#include "mirror.h"
#include "progress.h"
#include "shadow.h"
#include "stream.h"

#include "hws_cuda_calls.h"
#include "hws_interval.h"
#include "hws_quiet.h"
#include "rdma/hws_rdma_carrier.h"
#include "shm/hws_bulk.h"
#include "shm/hws_shm.h"

#include <string.h>

/*
 * Up to this size bytes in a record cost no more than a chunk. Measured on two cores with the software GPU, 2026-11-21.
 * To the device, synchronised: 32 KiB take 17 us in a record and 13 us by a chunk, 64 KiB 50 us and 16 us. To the host:
 * 32 KiB take 13 us either way, 96 KiB 26 us and 23 us.
 */
#define MAX_INLINE_BYTES (16u << 10)
#define MAX_DATA_BYTES (32u << 10)
/* From here on, the way there and back of a request counts little beside its bytes: 20 us at 50 GB/s. */
#define LEAST_READ_BYTES (1u << 20)

/* A plain copy, for the functions that move its parts. */
typedef struct hws_linear {
    CUdeviceptr device;
    CUstream stream;
} hws_linear_t;

bool hws_copy_is_device(CUdeviceptr address) {
    hws_range_t range;
    return hws_interval_find(HWS_SIDE_HOST, address, &range) ? range.mirrored && hws_shadow_is_exposed(address)
                                                             : hws_interval_find(HWS_SIDE_DEVICE, address, &range);
}

hws_host_t hws_copy_host(const void *host, uint64_t bytes, uint64_t *region_offset_p) {
    hws_range_t range;
    uint64_t address = (uint64_t) (uintptr_t) host;
    if (!hws_interval_find(HWS_SIDE_HOST, address, &range) || bytes > range.bytes - (address - range.base)) {
        return HWS_HOST_PAGEABLE;
    }
    const hws_shm_view_t *view = range.shared ? hws_shm_current() : NULL;
    if (view == NULL) {
        return HWS_HOST_PINNED;
    }
    *region_offset_p = hws_shm_offset(view, host);
    return HWS_HOST_SHARED;
}

bool hws_copy_in_chunks(uint64_t bytes, bool to_device) {
    return bytes > (to_device ? MAX_INLINE_BYTES : MAX_DATA_BYTES) && hws_bulk_serves(bytes);
}

CUresult hws_copy_check_device(CUdeviceptr address, uint64_t bytes) {
    if (hws_interval_covers(address, bytes)) {
        return CUDA_SUCCESS;
    }
    CUresult result = hws_shadow_expose(address); /* the first use of pinned memory by a device */
    HWS_REQUIRE(result == CUDA_ERROR_OUT_OF_MEMORY || (result == CUDA_SUCCESS && hws_interval_covers(address, bytes)));
    return result;
}

CUresult hws_copy_wait_by(CUresult (*call)(CUstream), CUstream stream) {
    const bool is_query = call == hws_call_cuStreamQuery;
    uint64_t began = hws_progress_begin_wait(stream);
    const hws_mirror_wait_t wait =
        is_query ? (hws_mirror_wait_t) {.mark = hws_mirror_mark()} : hws_mirror_begin_wait(&stream);
    CUresult result = call(stream);
    hws_progress_end_wait(stream, began, result == CUDA_SUCCESS);
    if (result != CUDA_SUCCESS) {
        hws_mirror_fail_wait(&wait);
        return result;
    }
    /* Only now: a stream that began meanwhile may have work before the mark. */
    hws_mirror_end_wait(&wait, hws_stream_is_ordered(stream) && !hws_context_has_several());
    return CUDA_SUCCESS;
}

CUresult hws_copy_wait(CUstream stream) {
    return hws_copy_wait_by(hws_call_cuStreamSynchronize, stream);
}

/* Work is watched as long as the process may have mirrored memory, so others look nothing up. */
static bool is_mirrored(CUdeviceptr address) {
    return hws_channel_watches_work() && hws_interval_is_mirrored(address);
}

CUresult hws_copy_end(CUdeviceptr dst, CUstream stream) {
    return hws_stream_is_ordered(stream) && !is_mirrored(dst) ? CUDA_SUCCESS : hws_copy_wait(stream);
}

CUresult hws_copy_settle(CUresult result, CUdeviceptr dst, CUdeviceptr src, CUstream stream) {
    return result == CUDA_SUCCESS && (is_mirrored(dst) || is_mirrored(src)) ? hws_copy_wait(stream) : result;
}

CUresult hws_copy_to_device(const hws_bulk_copy_t *copy, CUdeviceptr dst, hws_host_t host, CUstream stream,
                            hws_copy_now_t *now, bool wait) {
    if (host == HWS_HOST_PINNED && !hws_progress_is_idle(stream)) {
        CUresult result = wait ? CUDA_ERROR_NOT_READY : hws_deferred_issue(copy, stream);
        if (result != CUDA_ERROR_NOT_READY) {
            return result;
        }
        HWS_TRY(hws_copy_wait(stream));
    }
    const bool in_chunks = hws_copy_in_chunks(copy->width * copy->rows * copy->slices, true);
    hws_direct_t direct;
    hws_bulk_copy_t registered;
    bool is_direct =
        in_chunks && host == HWS_HOST_PINNED && hws_direct_begin(&direct, copy->host, hws_bulk_span(copy), false);
    if (is_direct) {
        registered = *copy;
        registered.registered = direct.registered;
        copy = &registered;
    }
    hws_tls.passing = true;
    CUresult result = in_chunks ? (CUresult) hws_bulk_run(copy) : now(copy);
    hws_tls.passing = false;
    if (is_direct) {
        hws_direct_end(&direct);
    }
    HWS_TRY(result);
    if (!wait) {
        return CUDA_SUCCESS;
    }
    return is_direct ? hws_copy_wait(stream) : hws_copy_end(dst, stream); /* the adapter may still read the bytes */
}

static CUresult wait_for_copy(CUstream stream, const hws_quiet_t *quiet) {
    HWS_TRY(hws_copy_wait(stream));
    hws_quiet_end(quiet);
    return CUDA_SUCCESS;
}

static CUresult send_records(CUdeviceptr dst, const char *src, uint64_t bytes, CUstream stream) {
    uint64_t limit = hws_channel_welcome()->max_bulk_bytes;
    for (uint64_t at = 0; at < bytes; at += limit) {
        uint64_t part = bytes - at < limit ? bytes - at : limit;
        HWS_TRY(hws_call_hwsCopyHtoD(dst + at, stream, part, src + at));
    }
    return CUDA_SUCCESS;
}

static CUresult receive_records(void *dst, CUdeviceptr src, uint64_t bytes, CUstream stream, bool wait) {
    const hws_target_t target = {.base = dst, .width_bytes = bytes, .rows = 1, .slices = 1};
    return hws_call_hwsCopyDtoH(src, bytes, stream, &target, wait);
}

/* Copies to pinned memory: the worker writes it itself where it can. */
static CUresult receive_pinned(void *dst, CUdeviceptr src, uint64_t bytes, CUstream stream, bool wait) {
    hws_direct_t direct;
    if (!hws_direct_begin(&direct, dst, bytes, true)) {
        return wait ? hws_copy_fetch(dst, src, bytes, stream) : receive_records(dst, src, bytes, stream, false);
    }
    const hws_target_t target = {.base = dst, .width_bytes = bytes, .rows = 1, .slices = 1, .direct = true};
    CUresult result =
        hws_call_hwsCopyDtoHDirect(src, bytes, stream, (uint64_t) (uintptr_t) dst, direct.key, &target, wait);
    hws_direct_end(&direct);
    return result;
}

/*
 * Copies from pinned memory that the worker reads itself. A short copy in an idle stream is there sooner when its bytes
 * travel before the worker asks for them. Returns CUDA_ERROR_NOT_READY, with nothing issued, for all other copies.
 */
static CUresult send_pinned(CUdeviceptr dst, const void *src, uint64_t bytes, CUstream stream, bool wait) {
    if (hws_rdma_session() == NULL) {
        return CUDA_ERROR_NOT_READY;
    }
    const bool is_idle = hws_progress_is_idle(stream);
    if (is_idle && bytes < LEAST_READ_BYTES) {
        return CUDA_ERROR_NOT_READY;
    }
    hws_tls.passing = is_idle;
    CUresult result = hws_deferred_read(dst, src, bytes, stream, is_idle);
    hws_tls.passing = false;
    return result == CUDA_SUCCESS && wait ? hws_copy_wait(stream) : result;
}

static int send_part(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part, uint64_t offset, uint32_t chunk) {
    const hws_linear_t *linear = copy->argument;
    return copy->to_device
        ? hws_call_hwsCopyHtoDShared(linear->device + part->x, offset, part->width, linear->stream, chunk + 1)
        : hws_call_hwsCopyDtoHShared(linear->device + part->x, offset, part->width, linear->stream, chunk + 1);
}

static int copy_part(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part) {
    const hws_linear_t *linear = copy->argument;
    void *host = copy->host + part->x;
    return copy->to_device ? send_records(linear->device + part->x, host, part->width, linear->stream)
                           : receive_records(host, linear->device + part->x, part->width, linear->stream, true);
}

static int synchronise(const hws_bulk_copy_t *copy) {
    return hws_copy_wait(((const hws_linear_t *) copy->argument)->stream);
}

static hws_bulk_copy_t bulk_of(const hws_linear_t *linear, bool to_device, void *host, uint64_t bytes, bool wait) {
    return (hws_bulk_copy_t) {
        .to_device = to_device,
        .eager = !wait,
        .host = host,
        .width = bytes,
        .rows = 1,
        .slices = 1,
        .pitch = bytes,
        .slice_pitch = bytes,
        .send = send_part,
        .copy_part = copy_part,
        .synchronise = synchronise,
        .argument = linear,
    };
}

static CUresult send_now(const hws_bulk_copy_t *copy) {
    const hws_linear_t *linear = copy->argument;
    return send_records(linear->device, (const char *) copy->host, copy->width, linear->stream);
}

CUresult hws_copy_send(CUdeviceptr dst, const void *src, uint64_t bytes, CUstream stream) {
    const hws_linear_t linear = {dst, stream};
    const hws_bulk_copy_t copy = bulk_of(&linear, true, (void *) (uintptr_t) src, bytes, false);
    return hws_copy_in_chunks(bytes, true) ? (CUresult) hws_bulk_run(&copy) : send_now(&copy);
}

CUresult hws_copy_fetch(void *dst, CUdeviceptr src, uint64_t bytes, CUstream stream) {
    const hws_linear_t linear = {src, stream};
    const hws_bulk_copy_t copy = bulk_of(&linear, false, dst, bytes, true);
    return hws_copy_in_chunks(bytes, false) ? (CUresult) hws_bulk_run(&copy)
                                            : receive_records(dst, src, bytes, stream, true);
}

CUresult hws_copy_begin_fetch(void *dst, CUdeviceptr src, uint64_t bytes, CUstream stream) {
    return receive_records(dst, src, bytes, stream, false);
}

/*
 * Slabs of the arena belong to no context. The driver therefore does not order a copy in the default stream with the
 * work of the context that owns the block, as it does natively. Such a copy waits for all contexts instead.
 */
static bool is_foreign(CUdeviceptr address, CUstream stream) {
    hws_range_t range;
    return stream == NULL && hws_context_has_several() && hws_interval_find(HWS_SIDE_DEVICE, address, &range)
        && range.arena && range.context != (uint64_t) (uintptr_t) hws_context_owner();
}

static CUresult wait_for_owner(CUdeviceptr address, CUstream stream) {
    return is_foreign(address, stream) ? hws_context_wait_for_all() : CUDA_SUCCESS;
}

static CUresult issue_on_device(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_CAPTURE(stream, hws_capture_bytes(dst, CU_MEMORYTYPE_DEVICE, src, CU_MEMORYTYPE_DEVICE, bytes, stream));
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    HWS_TRY(hws_copy_check_device(dst, bytes));
    HWS_TRY(hws_copy_check_device(src, bytes));
    if (!is_foreign(dst, stream) && !is_foreign(src, stream)) {
        return hws_call_cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
    }
    HWS_TRY(hws_context_wait_for_all());
    HWS_TRY(hws_call_cuMemcpyDtoDAsync_v2(dst, src, bytes, stream));
    return hws_context_wait_for_all();
}

/* `wait`: the call is one that blocks. */
static CUresult on_device(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool wait) {
    CUresult result = issue_on_device(dst, src, bytes, stream);
    return wait ? hws_copy_settle(result, dst, src, stream) : result;
}

/* A host address of the device's memory is the device's, as CUDA takes it. */
static CUresult to_device(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream, bool wait) {
    if (hws_copy_is_device((CUdeviceptr) (uintptr_t) src)) {
        return on_device(dst, (CUdeviceptr) (uintptr_t) src, bytes, stream, wait);
    }
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_CAPTURE(stream,
                wait ? hws_capture_refuse(stream)
                     : hws_capture_bytes(dst, CU_MEMORYTYPE_DEVICE, (CUdeviceptr) (uintptr_t) src, CU_MEMORYTYPE_HOST,
                                         bytes, stream));
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    HWS_REQUIRE(src != NULL);
    HWS_TRY(hws_copy_check_device(dst, bytes));
    HWS_TRY(wait_for_owner(dst, stream));
    uint64_t offset;
    hws_host_t host = hws_copy_host(src, bytes, &offset);
    if (host == HWS_HOST_SHARED) {
        hws_quiet_t quiet = hws_quiet_begin();
        HWS_TRY(hws_call_hwsCopyHtoDShared(dst, offset, bytes, stream, 0));
        return wait ? wait_for_copy(stream, &quiet) : CUDA_SUCCESS;
    }
    hws_plain_copy_t plain;
    if (host == HWS_HOST_PINNED && !hws_shadow_begin_copy(&plain, src, bytes)) {
        return to_device(dst, src, bytes, stream, wait); /* it has just been exposed */
    }
    const hws_linear_t linear = {dst, stream};
    const hws_bulk_copy_t copy = bulk_of(&linear, true, (void *) (uintptr_t) src, bytes, wait);
    CUresult result = host == HWS_HOST_PINNED ? send_pinned(dst, src, bytes, stream, wait) : CUDA_ERROR_NOT_READY;
    if (result == CUDA_ERROR_NOT_READY) {
        result = hws_copy_to_device(&copy, dst, host, stream, send_now, wait);
    }
    if (host == HWS_HOST_PINNED) {
        hws_shadow_end_copy(&plain);
    }
    return result;
}

static CUresult to_host(void *dst, CUdeviceptr src, size_t bytes, CUstream stream, bool wait) {
    if (hws_copy_is_device((CUdeviceptr) (uintptr_t) dst)) {
        return on_device((CUdeviceptr) (uintptr_t) dst, src, bytes, stream, wait);
    }
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_CAPTURE(stream,
                wait ? hws_capture_refuse(stream)
                     : hws_capture_bytes((CUdeviceptr) (uintptr_t) dst, CU_MEMORYTYPE_HOST, src, CU_MEMORYTYPE_DEVICE,
                                         bytes, stream));
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    HWS_REQUIRE(dst != NULL);
    HWS_TRY(hws_copy_check_device(src, bytes));
    HWS_TRY(wait_for_owner(src, stream));
    uint64_t offset;
    hws_host_t host = hws_copy_host(dst, bytes, &offset);
    hws_quiet_t quiet = hws_quiet_begin();
    if (host == HWS_HOST_SHARED) {
        HWS_TRY(hws_call_hwsCopyDtoHShared(src, offset, bytes, stream, 0));
        return wait ? wait_for_copy(stream, &quiet) : CUDA_SUCCESS;
    }
    hws_plain_copy_t plain;
    if (host == HWS_HOST_PINNED && !hws_shadow_begin_copy(&plain, dst, bytes)) {
        return to_host(dst, src, bytes, stream, wait); /* as in to_device() */
    }
    bool detached = !wait && host == HWS_HOST_PINNED;
    CUresult result = host == HWS_HOST_PINNED ? receive_pinned(dst, src, bytes, stream, wait)
                                              : hws_copy_fetch(dst, src, bytes, stream);
    if (host == HWS_HOST_PINNED) {
        hws_shadow_end_copy(&plain);
    }
    HWS_TRY(result);
    if (!detached) {
        hws_quiet_end(&quiet);
        hws_progress_note_work(stream);
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                         CUstream hStream) {
    return on_device(dstDevice, srcDevice, ByteCount, hStream, false);
}

HWS_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
    return on_device(dstDevice, srcDevice, ByteCount, NULL, true);
}

HWS_EXPORT CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
    return on_device(dstDevice, srcDevice, ByteCount, CU_STREAM_PER_THREAD, true);
}

/* The addresses determine the kind of the copy, as unified addressing promises. */
static CUresult unified(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool wait) {
    bool from_device = hws_copy_is_device(src);
    void *host_dst = (void *) (uintptr_t) dst;
    const void *host_src = (const void *) (uintptr_t) src;
    if (hws_copy_is_device(dst)) {
        return from_device ? on_device(dst, src, bytes, stream, wait) : to_device(dst, host_src, bytes, stream, wait);
    }
    if (from_device) {
        return to_host(host_dst, src, bytes, stream, wait);
    }
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, stream);
    HWS_CAPTURE(stream,
                wait ? hws_capture_refuse(stream)
                     : hws_capture_bytes(dst, CU_MEMORYTYPE_HOST, src, CU_MEMORYTYPE_HOST, bytes, stream));
    HWS_REQUIRE(bytes == 0 || (host_dst != NULL && host_src != NULL));
    HWS_TRY(hws_copy_wait(stream));
    if (bytes != 0) {
        memmove(host_dst, host_src, bytes);
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
    return unified(dst, src, ByteCount, NULL, true);
}

HWS_EXPORT CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
    return unified(dst, src, ByteCount, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
    return unified(dst, src, ByteCount, hStream, false);
}

HWS_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    return to_device(dstDevice, srcHost, ByteCount, NULL, true);
}

HWS_EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
    return to_device(dstDevice, srcHost, ByteCount, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                         CUstream hStream) {
    return to_device(dstDevice, srcHost, ByteCount, hStream, false);
}

HWS_EXPORT CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    return to_host(dstHost, srcDevice, ByteCount, NULL, true);
}

HWS_EXPORT CUresult cuMemcpyDtoH_v2_ptds(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
    return to_host(dstHost, srcDevice, ByteCount, CU_STREAM_PER_THREAD, true);
}

HWS_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
    return to_host(dstHost, srcDevice, ByteCount, hStream, false);
}

/* Addresses are unique among the contexts of one worker, so a copy between peers is a copy on the device. */
static CUresult peer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes,
                     CUstream stream) {
    HWS_ENTER_CONTEXT();
    for (int i = 0; i < 2; i++) {
        CUcontext context = i == 0 ? dst_context : src_context;
        if (context != NULL) { /* null: the current context */
            HWS_CHECK_HANDLE(HWS_KIND_CONTEXT, context);
        }
    }
    HWS_REFUSE_CAPTURES(stream);
    return on_device(dst, src, bytes, stream, false);
}

/* As CUDA documents: after all earlier work of the contexts, and before all later work. */
static CUresult peer_in_order(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                              size_t bytes, CUstream stream) {
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_context_wait_for_all());
    HWS_TRY(peer(dst, dst_context, src, src_context, bytes, stream));
    return hws_context_wait_for_all();
}

HWS_EXPORT CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                 CUcontext srcContext, size_t ByteCount) {
    return peer_in_order(dstDevice, dstContext, srcDevice, srcContext, ByteCount, NULL);
}

HWS_EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                      CUcontext srcContext, size_t ByteCount) {
    return peer_in_order(dstDevice, dstContext, srcDevice, srcContext, ByteCount, CU_STREAM_PER_THREAD);
}

HWS_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                      CUcontext srcContext, size_t ByteCount, CUstream hStream) {
    return peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream);
}
