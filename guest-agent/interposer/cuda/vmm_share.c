/* Memory that the program exports to descriptors, or imports from them; hws_share.h has the descriptors. */
#include "vmm.h"

#include "device.h"
#include "hws_cuda_calls.h"

#include <stdlib.h>
#include <string.h>

/* A descriptor of memory that the program, or a process that it has passed the descriptor to, may still have. */
typedef struct hws_exported {
    hws_share_end_t end;
    uint64_t allocation;
    struct hws_exported *next;
} hws_exported_t;

static hws_exported_t *all_exported; /* guarded by hws_vmm_lock */

/*
 * Forgets descriptors that nobody has any more, until an allocation is unused. Returns that allocation, or 0 at the end
 * of the list. Lock held.
 */
static uint64_t forget_descriptors(void) {
    hws_exported_t **at_p = &all_exported;
    while (*at_p != NULL) {
        hws_exported_t *exported = *at_p;
        if (!hws_share_ended(&exported->end)) {
            at_p = &exported->next;
            continue;
        }
        uint64_t handle = exported->allocation;
        *at_p = exported->next;
        free(exported);
        hws_allocation_t *allocation = hws_allocation_get(handle);
        allocation->descriptors--;
        if (hws_allocation_unused(allocation)) {
            return handle;
        }
    }
    return 0;
}

void hws_vmm_free_forgotten(void) {
    uint64_t unused;
    do {
        pthread_mutex_lock(&hws_vmm_lock);
        unused = forget_descriptors();
        pthread_mutex_unlock(&hws_vmm_lock);
        if (unused != 0) {
            hws_allocation_release(unused);
        }
    } while (unused != 0);
}

/* Learns the allocation's name from the worker once. Lock not held; the caller has a reference. */
static CUresult learn_name(CUmemGenericAllocationHandle handle, hws_allocation_t *allocation) {
    pthread_mutex_lock(&hws_vmm_lock);
    bool named = allocation->named;
    pthread_mutex_unlock(&hws_vmm_lock);
    if (named) {
        return CUDA_SUCCESS;
    }
    uint64_t name[HWS_SHARE_NAME_WORDS];
    HWS_TRY(hws_call_hwsMemExport((HwsMemAllocation) (uintptr_t) handle, &name[0], &name[1]));
    pthread_mutex_lock(&hws_vmm_lock);
    memcpy(allocation->name, name, sizeof name);
    allocation->named = true;
    pthread_mutex_unlock(&hws_vmm_lock);
    return CUDA_SUCCESS;
}

/* Makes a descriptor for memory with a name. Lock not held; the caller has a reference. */
static CUresult make_descriptor(CUmemGenericAllocationHandle handle, hws_allocation_t *allocation, int *descriptor_p) {
    hws_exported_t *exported = calloc(1, sizeof *exported);
    if (exported == NULL || !hws_share_make(allocation->name, descriptor_p, &exported->end)) {
        free(exported);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    exported->allocation = handle;
    pthread_mutex_lock(&hws_vmm_lock);
    allocation->descriptors++;
    exported->next = all_exported;
    all_exported = exported;
    pthread_mutex_unlock(&hws_vmm_lock);
    return CUDA_SUCCESS;
}

static CUresult check_handle_type(CUmemAllocationHandleType type) {
    if (type == CU_MEM_HANDLE_TYPE_WIN32 || type == CU_MEM_HANDLE_TYPE_WIN32_KMT || type == CU_MEM_HANDLE_TYPE_FABRIC) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    HWS_REQUIRE(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                                 CUmemAllocationHandleType handleType, unsigned long long flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(shareableHandle != NULL && flags == 0 && handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    hws_vmm_free_forgotten();
    pthread_mutex_lock(&hws_vmm_lock);
    hws_allocation_t *allocation = hws_allocation_named(handle);
    bool allowed =
        allocation != NULL && ((unsigned) allocation->prop.requestedHandleTypes & (unsigned) handleType) != 0;
    if (allowed) {
        allocation->references++; /* during the calls below */
    }
    pthread_mutex_unlock(&hws_vmm_lock);
    HWS_REQUIRE(allowed);
    int descriptor;
    CUresult result = learn_name(handle, allocation);
    if (result == CUDA_SUCCESS) {
        result = make_descriptor(handle, allocation, &descriptor);
    }
    if (result == CUDA_SUCCESS) {
        memcpy(shareableHandle, &descriptor, sizeof descriptor);
    }
    CUresult released = cuMemRelease(handle);
    return result != CUDA_SUCCESS ? result : released;
}

typedef struct hws_search {
    const uint64_t *name;
    uint64_t found;
} hws_search_t;

/* Lock held. */
static void match_name(uint64_t handle, void *data, void *argument) {
    const hws_allocation_t *allocation = data;
    hws_search_t *search = argument;
    if (allocation != NULL && allocation->named && !hws_allocation_unused(allocation)
        && memcmp(allocation->name, search->name, sizeof allocation->name) == 0) {
        search->found = handle;
    }
}

/* Adds a reference to memory of the name that this process has already; returns 0 when it has none. */
static uint64_t retain_named(const uint64_t *name) {
    hws_search_t search = {.name = name};
    pthread_mutex_lock(&hws_vmm_lock);
    hws_handle_each(HWS_KIND_MEM_ALLOCATION, match_name, &search);
    if (search.found != 0) {
        hws_allocation_get(search.found)->references++;
    }
    pthread_mutex_unlock(&hws_vmm_lock);
    return search.found;
}

/* The program's number of a device of the worker; -1 when the program does not see it. */
static CUdevice device_of(int ordinal) {
    for (CUdevice device = 0; device < hws_device_count(); device++) {
        if (hws_device_get(device)->ordinal == ordinal) {
            return device;
        }
    }
    return -1;
}

static CUresult import_named(uint64_t id, hws_allocation_t *allocation) {
    int ordinal;
    uint32_t granted;
    HWS_TRY(hws_call_hwsMemImport((HwsMemAllocation) (uintptr_t) id, allocation->name[0], allocation->name[1], &ordinal,
                                  &allocation->bytes, &granted));
    allocation->prop =
        (CUmemAllocationProp) {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_of(ordinal)},
                               .allocFlags = {.compressionType = (unsigned char) granted}};
    if (allocation->prop.location.id < 0) {
        hws_call_hwsMemRelease((HwsMemAllocation) (uintptr_t) id);
        return CUDA_ERROR_INVALID_DEVICE;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                                   CUmemAllocationHandleType shHandleType) {
    static _Atomic bool logged;
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(handle != NULL);
    HWS_TRY(check_handle_type(shHandleType));
    hws_vmm_free_forgotten();
    uint64_t name[HWS_SHARE_NAME_WORDS];
    if (!hws_share_read((int) (intptr_t) osHandle, name)) {
        return CUDA_ERROR_UNKNOWN; /* driver 580 */
    }
    uint64_t known = retain_named(name);
    if (known != 0) {
        *handle = known;
        return CUDA_SUCCESS;
    }
    hws_allocation_t *allocation = calloc(1, sizeof *allocation);
    uint64_t id = allocation == NULL ? 0 : hws_handle_new(HWS_KIND_MEM_ALLOCATION);
    if (id == 0) {
        free(allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(allocation->name, name, sizeof name);
    CUresult result = import_named(id, allocation);
    if (result != CUDA_SUCCESS) {
        if (hws_share_orphaned((int) (intptr_t) osHandle) && !atomic_exchange(&logged, true)) {
            hws_log(HWS_WARN,
                    "cuMemImportFromShareableHandle: the process that exported the memory has ended, "
                    "and the name of the memory with it");
        }
        hws_handle_drop(HWS_KIND_MEM_ALLOCATION, id);
        free(allocation);
        return result;
    }
    allocation->references = 1;
    allocation->named = true;
    pthread_mutex_lock(&hws_vmm_lock);
    hws_handle_attach(HWS_KIND_MEM_ALLOCATION, id, allocation);
    pthread_mutex_unlock(&hws_vmm_lock);
    *handle = id;
    return CUDA_SUCCESS;
}
