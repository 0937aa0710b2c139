/*
 * Pools whose memory other processes of the vGPU can use. Such a pool lives in the guest, and its memory in the arena:
 * the worker passes the arena's slabs to other workers as for cuIpcGetMemHandle. The pool's descriptor only names its
 * device. The data of an allocation holds its name.
 *
 * Known deviations: an allocation does not wait for frees of its stream, and a free waits for all work. Memory that
 * the exporter frees first is reused, while importers still have it.
 */
#include "capture.h"
#include "device.h"
#include "hws_cuda_calls.h"
#include "hws_interval.h"
#include "hws_share.h"
#include "ipc.h"
#include "pool.h"

#include <string.h>
#include <unistd.h>

#define POOL_MARK 0x6c6f6f70776168ull /* "hawpool"; names of memory are random */

/* What CUmemPoolPtrExportData holds. */
typedef struct hws_exported_pointer {
    uint64_t mark;
    uint64_t name[2];
    unsigned char zero[40];
} hws_exported_pointer_t;

_Static_assert(sizeof(hws_exported_pointer_t) == sizeof(CUmemPoolPtrExportData), "one layout");

static CUresult check_handle_type(CUmemAllocationHandleType type) {
    if (type == CU_MEM_HANDLE_TYPE_WIN32 || type == CU_MEM_HANDLE_TYPE_WIN32_KMT || type == CU_MEM_HANDLE_TYPE_FABRIC) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    HWS_REQUIRE(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                                     CUmemAllocationHandleType handleType, unsigned long long flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(handle_out != NULL && flags == 0 && handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUdevice device = hws_pool_exported((uint64_t) (uintptr_t) pool);
    HWS_REQUIRE(device >= 0);
    HWS_UNSAFE();
    const uint64_t name[HWS_SHARE_NAME_WORDS] = {POOL_MARK, (uint64_t) hws_device_get(device)->ordinal};
    int descriptor;
    hws_share_end_t end;
    if (!hws_share_make(name, &descriptor, &end)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    close(end.fd); /* the name stays in the descriptor's queue */
    memcpy(handle_out, &descriptor, sizeof descriptor);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                                       CUmemAllocationHandleType handleType, unsigned long long flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pool_out != NULL);
    HWS_UNSAFE();
    HWS_REQUIRE(flags == 0);
    HWS_TRY(check_handle_type(handleType));
    uint64_t name[HWS_SHARE_NAME_WORDS];
    if (!hws_share_read((int) (intptr_t) handle, name) || name[0] != POOL_MARK) {
        return CUDA_ERROR_UNKNOWN; /* driver 580 */
    }
    for (CUdevice device = 0; device < hws_device_count(); device++) {
        if ((uint64_t) hws_device_get(device)->ordinal == name[1]) {
            return hws_pool_import(device, pool_out);
        }
    }
    return CUDA_ERROR_INVALID_DEVICE; /* CUDA_VISIBLE_DEVICES hides the pool's device */
}

HWS_EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr) {
    HWS_ENTER_LOCAL();
    HWS_UNSAFE();
    hws_range_t range;
    HWS_REQUIRE(shareData_out != NULL && hws_interval_find(HWS_SIDE_DEVICE, ptr, &range));
    HWS_REQUIRE(range.base == ptr && range.memory == HWS_MEMORY_POOL && range.arena);
    hws_exported_pointer_t exported = {.mark = POOL_MARK};
    HWS_TRY(hws_call_hwsIpcShare(range.base, range.bytes, &exported.name[0], &exported.name[1]));
    memcpy(shareData_out, &exported, sizeof exported);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData) {
    static const unsigned char zero[sizeof(((hws_exported_pointer_t *) 0)->zero)];
    HWS_ENTER_LOCAL(); /* CUDA imports memory after the error of a kernel, too */
    if (hws_tls.context == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    HWS_UNSAFE();
    const uint64_t imported = (uint64_t) (uintptr_t) pool;
    CUdevice device = hws_pool_imported(imported);
    HWS_REQUIRE(ptr_out != NULL && shareData != NULL && device >= 0);
    hws_exported_pointer_t exported;
    memcpy(&exported, shareData, sizeof exported);
    HWS_REQUIRE(exported.mark == POOL_MARK && memcmp(exported.zero, zero, sizeof zero) == 0);
    return hws_ipc_open_pooled(exported.name, device, imported, ptr_out);
}
