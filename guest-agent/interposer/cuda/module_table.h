/* The data of a module, for the files that load one and look names up in it. */
#ifndef HWS_MODULE_TABLE_H
#define HWS_MODULE_TABLE_H

#include "module.h"

#include <pthread.h>

typedef struct hws_global {
    struct hws_global *next;
    uint64_t context; /* its context: a library has its own variable in each */
    CUdeviceptr address;
    size_t bytes;
    char name[];
} hws_global_t;

/* The data of a module. The lock guards its lists. */
typedef struct hws_module {
    bool library;
    uint64_t context; /* of the load; 0 while a library waits for a context, later one of those that use it */
    CUdevice device;
    hws_function_t *functions;
    hws_global_t *globals;
    uint64_t serves; /* for a library that was loaded late: the handle that the worker knows, else 0 */
    void *image;     /* of a library that waits for a context */
    uint64_t image_bytes;
    bool has_managed;                /* managed variables: the worker says so */
    struct hws_module *next_managed; /* of those that have some */
    uint64_t managed_context;        /* in which the host sees them; 0: it does not */
    HwsManagedVariable *managed;
    size_t managed_count;
} hws_module_t;

/* Guards the lists of every module and the late load of a library. */
extern pthread_mutex_t hws_module_lock;

/*
 * Lets the host see the managed variables of a module that the worker has loaded, in the current context. Returns
 * CUDA_ERROR_ALREADY_MAPPED, with no effect, when the process has something else at their addresses. Lock held, if other
 * threads know the module.
 */
CUresult hws_managed_variables_add(hws_module_t *kept, CUmodule wire);

/* Enters a module with such variables, for the functions below. Lock held. */
void hws_managed_variables_enlist(hws_module_t *kept);

/* Takes them away from the host, before the worker unloads the module. Lock held. */
void hws_managed_variables_remove(hws_module_t *kept);

/* Takes those away that the host sees in a context that ends. A library's come back when another context uses it. */
void hws_managed_variables_leave(uint64_t context);

static inline hws_module_t *hws_module_get(CUmodule module) {
    return hws_handle_data(HWS_KIND_MODULE, (uint64_t) (uintptr_t) module);
}

/* The worker's handle of the module. */
static inline CUmodule hws_module_wire(CUmodule module, const hws_module_t *kept) {
    return kept->serves != 0 ? (CUmodule) (uintptr_t) kept->serves : module;
}

#endif
