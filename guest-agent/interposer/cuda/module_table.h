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
} hws_module_t;

/* Guards the lists of every module and the late load of a library. */
extern pthread_mutex_t hws_module_lock;

static inline hws_module_t *hws_module_get(CUmodule module) {
    return hws_handle_data(HWS_KIND_MODULE, (uint64_t) (uintptr_t) module);
}

#endif
