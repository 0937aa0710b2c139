/* Kernels and variables of a module: requested once, then kept. */
#include "module_table.h"

#include "context.h"
#include "hws_channel.h"
#include "hws_cuda_calls.h"
#include "hws_interval.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_CAPACITY 65536u /* module.yaml, hwsFunctionNames */
#define MAX_PARAMS 4096u

static uint64_t hash_name(const char *name) {
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char) *name) * 0x100000001b3ull;
    }
    return hash;
}

static hws_function_t *find_function(const hws_module_t *kept, uint64_t hash, const char *name) {
    hws_function_t *each = kept->functions;
    while (each != NULL && (each->name_hash != hash || strcmp(each->name, name) != 0)) {
        each = each->next;
    }
    return each;
}

/* Keeps the worker's answer about a kernel. */
static CUresult keep_function(CUmodule module, hws_module_t *kept, const char *name, uint64_t handle, uint32_t count,
                              const HwsParam *params, const int *attributes, const char *refusal) {
    size_t name_bytes = strlen(name) + 1, refusal_bytes = strlen(refusal) + 1;
    hws_function_t *function = malloc(sizeof *function + count * sizeof *params + name_bytes + refusal_bytes);
    if (function == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *function = (hws_function_t) {.module = module,
                                  .device = kept->device,
                                  .context = kept->library ? 0 : (uint32_t) kept->context,
                                  .handle = handle,
                                  .name_hash = hash_name(name),
                                  .param_count = count};
    memcpy(function->attributes, attributes, sizeof function->attributes);
    memcpy(function->params, params, count * sizeof *params);
    char *text = memcpy(function->params + count, name, name_bytes);
    function->name = text;
    function->refusal = *refusal == '\0' ? NULL : memcpy(text + name_bytes, refusal, refusal_bytes);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = (uint64_t) params[i].offset + params[i].size;
        if (end > HWS_MAX_PARAM_BYTES || params[i].size == 0) {
            free(function);
            hws_channel_fail(HWS_LOST_STATUS,
                             "the worker broke the protocol, the session is over: parameter %u of a "
                             "kernel ends at %llu",
                             i, (unsigned long long) end);
            return (CUresult) hws_channel_status();
        }
        function->params_bytes = end > function->params_bytes ? (uint32_t) end : function->params_bytes;
    }
    hws_handle_attach(HWS_KIND_FUNCTION, handle, function);
    function->next = kept->functions;
    kept->functions = function;
    return CUDA_SUCCESS;
}

CUresult hws_module_function(CUmodule module, const char *name, CUfunction *function_p) {
    hws_module_t *kept = hws_module_get(module);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    HWS_TRY(hws_module_make_ready(module));
    pthread_mutex_lock(&hws_module_lock);
    hws_function_t *known = find_function(kept, hash_name(name), name);
    if (known != NULL) {
        *function_p = (CUfunction) (uintptr_t) known->handle;
        pthread_mutex_unlock(&hws_module_lock);
        return CUDA_SUCCESS;
    }
    /* The lock is held during the call, so that two threads that look up one name get the same handle. */
    static HwsParam params[MAX_PARAMS]; /* under the lock */
    int attributes[HWS_FUNCTION_ATTRIBUTES] = {0};
    char refusal[HWS_MAX_REFUSAL_BYTES + 1] = "";
    uint32_t count = 0, params_bytes = 0, refusal_bytes = 0;
    uint64_t handle = hws_handle_new(HWS_KIND_FUNCTION);
    CUfunction function = (CUfunction) (uintptr_t) handle;
    CUresult result = handle == 0 ? CUDA_ERROR_OUT_OF_MEMORY
                                  : hws_call_hwsFunctionGet(hws_module_wire(module, kept), name, function, &count,
                                                            attributes, params, &params_bytes, refusal, &refusal_bytes);
    if (result == CUDA_SUCCESS && (count > MAX_PARAMS || params_bytes != count * sizeof *params)) {
        hws_channel_fail(HWS_LOST_STATUS,
                         "the worker broke the protocol, the session is over: %u parameters in %u bytes", count,
                         params_bytes);
        result = (CUresult) hws_channel_status();
    }
    if (result == CUDA_SUCCESS) {
        refusal[refusal_bytes] = '\0';
        result = keep_function(module, kept, name, handle, count, params, attributes, refusal);
    }
    pthread_mutex_unlock(&hws_module_lock);
    if (result == CUDA_SUCCESS) {
        *function_p = function;
    } else {
        hws_handle_drop(HWS_KIND_FUNCTION, handle);
    }
    return result;
}

CUresult hws_module_global(CUmodule module, const char *name, CUdeviceptr *dptr_p, size_t *bytes_p) {
    hws_module_t *kept = hws_module_get(module);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    HWS_TRY(hws_module_make_ready(module));
    pthread_mutex_lock(&hws_module_lock);
    hws_global_t *global = kept->globals;
    /* A module is used in its own context. A library has variables of its own in each context. */
    uint64_t context = kept->library ? (uint64_t) (uintptr_t) hws_context_owner() : kept->context;
    CUdevice device = kept->device;
    if (kept->library && hws_context_device(&device) != CUDA_SUCCESS) {
        pthread_mutex_unlock(&hws_module_lock);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    while (global != NULL && (global->context != context || strcmp(global->name, name) != 0)) {
        global = global->next;
    }
    CUresult result = CUDA_SUCCESS;
    if (global == NULL) {
        size_t name_bytes = strlen(name) + 1;
        uint64_t bytes = 0;
        global = malloc(sizeof *global + name_bytes);
        result = global == NULL ? CUDA_ERROR_OUT_OF_MEMORY
                                : hws_call_hwsGlobalGet(hws_module_wire(module, kept), name, &global->address, &bytes);
        if (result == CUDA_SUCCESS) {
            global->bytes = bytes;
            global->context = context;
            memcpy(global->name, name, name_bytes);
            global->next = kept->globals;
            kept->globals = global;
            hws_range_t range = {.base = global->address,
                                 .bytes = bytes,
                                 .memory = HWS_MEMORY_VARIABLE,
                                 .context = context,
                                 .device = device,
                                 .owner = (uint64_t) (uintptr_t) module};
            hws_interval_insert(&range); /* refused when empty or already known; copies cannot use it then */
        } else {
            free(global);
        }
    }
    if (result == CUDA_SUCCESS) {
        if (dptr_p != NULL) {
            *dptr_p = global->address;
        }
        if (bytes_p != NULL) {
            *bytes_p = global->bytes;
        }
    }
    pthread_mutex_unlock(&hws_module_lock);
    return result;
}

CUresult hws_module_unload(CUmodule module) {
    pthread_mutex_lock(&hws_module_lock);
    hws_module_t *kept = hws_module_get(module);
    if (kept == NULL) {
        pthread_mutex_unlock(&hws_module_lock);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    hws_interval_remove_all((uint64_t) (uintptr_t) module, 0);
    if (kept->has_managed) {
        hws_managed_variables_remove(kept);
    }
    for (hws_function_t *each = kept->functions; each != NULL; each = each->next) {
        hws_handle_drop(HWS_KIND_FUNCTION, each->handle);
    }
    for (hws_global_t *each = kept->globals, *next; each != NULL; each = next) {
        next = each->next;
        free(each);
    }
    kept->functions = NULL;
    kept->globals = NULL;
    free(kept->image);
    kept->image = NULL;
    CUmodule wire = hws_module_wire(module, kept);
    bool known = kept->context != 0;
    hws_handle_drop(HWS_KIND_MODULE, (uint64_t) (uintptr_t) wire);
    hws_handle_drop(HWS_KIND_MODULE, (uint64_t) (uintptr_t) module);
    pthread_mutex_unlock(&hws_module_lock);
    return known ? hws_call_hwsImageUnload(wire) : CUDA_SUCCESS;
}

CUresult hws_module_functions(CUmodule module, CUfunction *functions_p, unsigned wanted, unsigned *count_p) {
    HWS_TRY(hws_module_make_ready(module));
    CUmodule wire = hws_module_wire(module, hws_module_get(module));
    char *names = malloc(NAMES_CAPACITY); /* too large for the stack of a small thread */
    if (names == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    unsigned done = 0;
    uint32_t count = 0, bytes = 0;
    CUresult result;
    do {
        result = hws_call_hwsFunctionNames(wire, done, &count, names, &bytes);
        uint32_t at = 0;
        while (result == CUDA_SUCCESS && at < bytes && done < wanted) {
            size_t length = strnlen(names + at, bytes - at);
            if (length == bytes - at) {
                break; /* the next request returns an incomplete name again */
            }
            result = hws_module_function(module, names + at, &functions_p[done]);
            at += (uint32_t) length + 1;
            done += result == CUDA_SUCCESS ? 1 : 0;
        }
        if (at == 0) {
            break; /* no progress: the worker has no more */
        }
    } while (result == CUDA_SUCCESS && done < wanted && done < count);
    free(names);
    if (count_p != NULL) {
        *count_p = count;
    }
    return result;
}
