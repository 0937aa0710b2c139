/*
 * Memory and events of other processes. A handle is a name of 128 bits that the worker has made, followed by zeros. The
 * guest counts the openings of one name, as CUDA does, so that only the first goes to the worker.
 */
#include "ipc.h"
#include "capture.h"
#include "context.h"
#include "event.h"

#include "hws_cuda_calls.h"
#include "hws_interval.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 16

typedef struct hws_opened {
    CUipcMemHandle name;
    uint64_t context; /* handle of the context in which it is open */
    CUdeviceptr address;
    uint64_t memory; /* the worker's handle */
    uint64_t references;
    struct hws_opened *next;
} hws_opened_t;

static hws_opened_t *all_opened;
/* Guards the list. Held during calls to the worker, so that no thread opens memory that another thread is closing. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

HWS_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
    static _Atomic bool logged;
    HWS_ENTER_CONTEXT();
    hws_range_t range;
    HWS_REQUIRE(pHandle != NULL && hws_interval_find(HWS_SIDE_DEVICE, dptr, &range));
    HWS_REQUIRE(range.memory == HWS_MEMORY_DEVICE); /* the kind that CUDA shares: no pools, no virtual memory */
    uint64_t name[2];
    CUresult result = hws_call_hwsIpcShare(range.base, range.bytes, &name[0], &name[1]);
    if (result != CUDA_SUCCESS) {
        return result == CUDA_ERROR_NOT_SUPPORTED ? hws_unsupported_use(&logged, "cuIpcGetMemHandle on this GPU")
                                                  : result;
    }
    *pHandle = (CUipcMemHandle) {{0}};
    memcpy(pHandle->reserved, name, sizeof name);
    return CUDA_SUCCESS;
}

/* Removes the entries of ended contexts; the worker has closed them, too. Lock held. */
static void forget_ended(void) {
    for (hws_opened_t **at_p = &all_opened; *at_p != NULL;) {
        hws_opened_t *opened = *at_p;
        if (hws_handle_valid(HWS_KIND_CONTEXT, opened->context)) {
            at_p = &opened->next;
        } else {
            *at_p = opened->next;
            hws_handle_drop(HWS_KIND_IPC_MEMORY, opened->memory);
            free(opened);
        }
    }
}

/* Opens the memory at the worker and enters it. Lock held. */
static CUresult open_first(hws_opened_t *opened, CUdevice device, uint64_t pool) {
    uint64_t name[2], bytes;
    memcpy(name, opened->name.reserved, sizeof name);
    const HwsIpcMemory memory = (HwsIpcMemory) (uintptr_t) opened->memory;
    HWS_TRY(hws_call_hwsIpcOpen(memory, name[0], name[1], &opened->address, &bytes));
    const hws_range_t range = {.base = opened->address,
                               .bytes = bytes,
                               .memory = HWS_MEMORY_OPENED,
                               .device = device,
                               .owner = pool,
                               .context = opened->context};
    if (!hws_interval_insert(&range)) {
        hws_call_hwsIpcClose(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_interval_reserve(range.base, bytes);
    return CUDA_SUCCESS;
}

static CUresult open_locked(CUdeviceptr *address_p, const CUipcMemHandle *name, CUdevice device, uint64_t pool) {
    static _Atomic bool logged;
    const uint64_t context = (uint64_t) (uintptr_t) hws_context_owner();
    forget_ended();
    for (hws_opened_t *opened = all_opened; opened != NULL; opened = opened->next) {
        if (opened->context == context && memcmp(&opened->name, name, sizeof *name) == 0) {
            opened->references++;
            *address_p = opened->address;
            return CUDA_SUCCESS;
        }
    }
    hws_opened_t *opened = calloc(1, sizeof *opened);
    uint64_t memory = opened == NULL ? 0 : hws_handle_new(HWS_KIND_IPC_MEMORY);
    if (memory == 0) {
        free(opened);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *opened = (hws_opened_t) {.name = *name, .context = context, .memory = memory, .references = 1, .next = all_opened};
    CUresult result = open_first(opened, device, pool);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_IPC_MEMORY, memory);
        free(opened);
        return result == CUDA_ERROR_NOT_SUPPORTED ? hws_unsupported_use(&logged, "cuIpcOpenMemHandle on this GPU")
                                                  : result;
    }
    all_opened = opened;
    *address_p = opened->address;
    return CUDA_SUCCESS;
}

/* Closes memory of a pool, or of an IPC handle. Lock held. */
static CUresult close_locked(CUdeviceptr address, bool pooled) {
    hws_range_t range;
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_DEVICE, address, &range) && range.base == address
                && range.memory == HWS_MEMORY_OPENED && (range.owner != 0) == pooled);
    hws_opened_t **at_p = &all_opened;
    while (*at_p != NULL && ((*at_p)->address != address || (*at_p)->context != range.context)) {
        at_p = &(*at_p)->next;
    }
    hws_opened_t *opened = *at_p;
    HWS_REQUIRE(opened != NULL);
    if (--opened->references > 0) {
        return CUDA_SUCCESS;
    }
    *at_p = opened->next;
    hws_interval_remove(HWS_SIDE_DEVICE, address, &range);
    CUresult result = hws_call_hwsIpcClose((HwsIpcMemory) (uintptr_t) opened->memory);
    hws_handle_drop(HWS_KIND_IPC_MEMORY, opened->memory);
    free(opened);
    return result;
}

HWS_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    static const CUipcMemHandle none;
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pdptr != NULL && (Flags & CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != 0); /* driver 580 ignores others */
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(memcmp(handle.reserved + NAME_BYTES, none.reserved, sizeof none.reserved - NAME_BYTES) == 0);
    CUdevice device;
    CUdeviceptr address;
    HWS_TRY(hws_context_device(&device));
    pthread_mutex_lock(&lock);
    CUresult result = open_locked(&address, &handle, device, 0);
    if (result == CUDA_SUCCESS && HWS_CAPTURING()) { /* CUDA asks first whether the memory is this process's own */
        result = hws_capture_unsafe();
        if (result != CUDA_SUCCESS) {
            close_locked(address, false);
        }
    }
    pthread_mutex_unlock(&lock);
    HWS_TRY(result);
    *pdptr = address;
    return CUDA_SUCCESS;
}

CUresult hws_ipc_open_pooled(const uint64_t name[2], CUdevice device, uint64_t pool, CUdeviceptr *address_p) {
    CUipcMemHandle handle = {{0}};
    memcpy(handle.reserved, name, NAME_BYTES);
    pthread_mutex_lock(&lock);
    CUresult result = open_locked(address_p, &handle, device, pool);
    pthread_mutex_unlock(&lock);
    return result;
}

HWS_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
    HWS_ENTER_CONTEXT();
    hws_range_t range;
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_DEVICE, dptr, &range) && range.memory == HWS_MEMORY_OPENED);
    HWS_UNSAFE();
    pthread_mutex_lock(&lock);
    CUresult result = close_locked(dptr, false);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult hws_ipc_close_pooled(CUdeviceptr address) {
    pthread_mutex_lock(&lock);
    CUresult result = close_locked(address, true);
    pthread_mutex_unlock(&lock);
    return result;
}

HWS_EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event) {
    static _Atomic bool logged;
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(pHandle != NULL && event != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_EVENT, event);
    uint64_t name[2];
    CUresult result = hws_call_hwsIpcShareEvent(event, &name[0], &name[1]);
    if (result != CUDA_SUCCESS) {
        return result == CUDA_ERROR_NOT_SUPPORTED ? hws_unsupported_use(&logged, "cuIpcGetEventHandle on this GPU")
                                                  : result;
    }
    *pHandle = (CUipcEventHandle) {{0}};
    memcpy(pHandle->reserved, name, sizeof name);
    return CUDA_SUCCESS;
}

static CUresult open_event(CUevent event, const void *name) {
    const uint64_t *half = name;
    return hws_call_hwsIpcOpenEvent(event, half[0], half[1]);
}

HWS_EXPORT CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle) {
    static const CUipcEventHandle none;
    static _Atomic bool logged;
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(phEvent != NULL);
    if (memcmp(handle.reserved + NAME_BYTES, none.reserved, sizeof none.reserved - NAME_BYTES) != 0) {
        return CUDA_ERROR_MAP_FAILED; /* CUDA's error for bytes that are no handle */
    }
    uint64_t name[2];
    memcpy(name, handle.reserved, sizeof name);
    CUresult result = hws_event_new(phEvent, open_event, name, true);
    return result == CUDA_ERROR_NOT_SUPPORTED ? hws_unsupported_use(&logged, "cuIpcOpenEventHandle on this GPU")
                                              : result;
}
