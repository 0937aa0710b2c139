/*
 * __managed__ variables. The driver places them when it loads code, and the host sees them at the same addresses, by
 * mirrored spans of pages: mirror.h. Where this process uses the addresses for something else, the code is loaded
 * again, before anything else is done with it: hws_module_load().
 */
#include "context.h"
#include "managed.h"
#include "mirror.h"
#include "module_table.h"

#include "hws_channel.h"
#include "hws_cuda_calls.h"
#include "hws_interval.h"

#include <stdlib.h>

#define MAX_REPLY 4096u      /* module.yaml, hwsManagedVariables */
#define MAX_VARIABLES 65536u /* the worker chooses the number */

static hws_module_t *with_managed; /* guarded by hws_module_lock, as their variables are once a thread knows them */

/* Stores the worker's list of variables. */
static CUresult ask(hws_module_t *kept, CUmodule wire) {
    uint32_t count = 0;
    size_t got = 0;
    do {
        HwsManagedVariable *more = realloc(kept->managed, (got + MAX_REPLY) * sizeof *more);
        if (more == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        kept->managed = more;
        uint32_t bytes = 0;
        HWS_TRY(hws_call_hwsManagedVariables(wire, (uint32_t) got, &count, more + got, &bytes));
        if (bytes == 0 || bytes % sizeof *more != 0) {
            break;
        }
        got += bytes / sizeof *more;
    } while (got < count && got < MAX_VARIABLES);
    kept->managed_count = got;
    return CUDA_SUCCESS;
}

static CUresult add_variable(const HwsManagedVariable *variable, CUdevice device) {
    const hws_range_t range = {.base = variable->address,
                               .bytes = variable->bytes,
                               .memory = HWS_MEMORY_MANAGED, /* its context is NULL, as with driver 580 */
                               .flags = CU_MEM_ATTACH_GLOBAL,
                               .device = device,
                               .sync_memops = true};
    HWS_TRY(hws_mirror_add_variable(range.base, range.bytes));
    if (!hws_interval_insert(&range)) {
        hws_mirror_remove_variable(range.base, range.bytes);
        return CUDA_ERROR_ALREADY_MAPPED;
    }
    if (!hws_advice_add(range.base, range.bytes)) {
        hws_range_t removed;
        hws_interval_remove(HWS_SIDE_DEVICE, range.base, &removed);
        hws_mirror_remove_variable(range.base, range.bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

/* Takes the variables away from the host. */
static void remove_variables(hws_module_t *kept) {
    for (size_t i = 0; i < kept->managed_count; i++) {
        hws_range_t range;
        hws_interval_remove(HWS_SIDE_DEVICE, kept->managed[i].address, &range);
        hws_advice_remove(kept->managed[i].address);
        hws_mirror_remove_variable(kept->managed[i].address, kept->managed[i].bytes);
    }
    kept->managed_count = 0;
    kept->managed_context = 0;
}

CUresult hws_managed_variables_add(hws_module_t *kept, CUmodule wire) {
    static _Atomic bool logged;
    CUdevice device;
    HWS_TRY(hws_context_device(&device));
    if (!hws_mirror_open()) {
        hws_unsupported_use(&logged, "__managed__ variables where neither userfaultfd nor memory protection works");
        return CUDA_SUCCESS; /* kernels can use them */
    }
    HWS_TRY(ask(kept, wire));
    const size_t wanted = kept->managed_count;
    CUresult result = CUDA_SUCCESS;
    for (kept->managed_count = 0; result == CUDA_SUCCESS && kept->managed_count < wanted;) {
        result = add_variable(&kept->managed[kept->managed_count], device);
        kept->managed_count += result == CUDA_SUCCESS ? 1 : 0;
    }
    if (result != CUDA_SUCCESS) {
        remove_variables(kept);
        return result;
    }
    kept->managed_context = (uint64_t) (uintptr_t) hws_context_owner();
    return CUDA_SUCCESS;
}

void hws_managed_variables_enlist(hws_module_t *kept) {
    kept->has_managed = true;
    kept->next_managed = with_managed;
    with_managed = kept;
}

void hws_managed_variables_remove(hws_module_t *kept) {
    remove_variables(kept);
    free(kept->managed);
    kept->managed = NULL;
    kept->has_managed = false;
    for (hws_module_t **each = &with_managed; *each != NULL; each = &(*each)->next_managed) {
        if (*each == kept) {
            *each = kept->next_managed;
            break;
        }
    }
}

void hws_managed_variables_leave(uint64_t context) {
    pthread_mutex_lock(&hws_module_lock);
    for (hws_module_t *each = with_managed; each != NULL; each = each->next_managed) {
        if (each->managed_context == context) {
            remove_variables(each);
        }
    }
    pthread_mutex_unlock(&hws_module_lock);
}
