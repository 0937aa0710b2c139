/* Loading device code and looking up what is in it. */
#include "module.h"

#include "context.h"
#include "hws_channel.h"
#include "hws_cuda_calls.h"
#include "hws_image.h"
#include "hws_interval.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INLINE_IMAGE_BYTES 65536u /* wire.yaml, hwsImageLoad: larger images are staged */
#define LOG_CAPACITY 8192u
#define NAMES_CAPACITY 65536u /* wire.yaml, hwsFunctionNames */
#define MAX_PARAMS 4096u

typedef struct hws_global {
    struct hws_global *next;
    CUdeviceptr address;
    size_t bytes;
    char name[];
} hws_global_t;

/* What is kept about a module. Its lists are under the lock. */
typedef struct hws_module {
    bool library;
    uint64_t context;  /* of the load; 0 while a library waits for one */
    CUdevice device;
    hws_function_t *functions;
    hws_global_t *globals;
    uint64_t serves;   /* a library that was loaded late: the handle that the worker knows, else 0 */
    void *image;       /* of a library that waits for a context */
    uint64_t image_bytes;
} hws_module_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static hws_module_t *module_get(CUmodule module) {
    return hws_handle_data(HWS_KIND_MODULE, (uint64_t) (uintptr_t) module);
}

static uint64_t hash_name(const char *name) {
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char) *name) * 0x100000001b3ull;
    }
    return hash;
}

CUresult hws_jit_options_parse(unsigned count, const CUjit_option *options, void **values, hws_jit_options_t *jit_p) {
    HWS_REQUIRE(count == 0 || (options != NULL && values != NULL));
    *jit_p = (hws_jit_options_t) {0};
    for (unsigned i = 0; i < count; i++) {
        switch (options[i]) {
            case CU_JIT_INFO_LOG_BUFFER:
                jit_p->info_log = values[i];
                break;
            case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
                jit_p->info_capacity = (unsigned) (uintptr_t) values[i];
                jit_p->info_size_p = &values[i];
                break;
            case CU_JIT_ERROR_LOG_BUFFER:
                jit_p->error_log = values[i];
                break;
            case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
                jit_p->error_capacity = (unsigned) (uintptr_t) values[i];
                jit_p->error_size_p = &values[i];
                break;
            default:
                break;
        }
    }
    return CUDA_SUCCESS;
}

static void put_log(const char *log, char *target, unsigned capacity, void **size_p) {
    size_t bytes = 0;
    if (target != NULL && capacity > 0) {
        int wanted = snprintf(target, capacity, "%s", log);
        bytes = wanted < 0 ? 0 : (size_t) wanted < capacity ? (size_t) wanted : capacity - 1;
    }
    if (size_p != NULL) {
        *size_p = (void *) (uintptr_t) bytes; /* CUDA returns the length in the option's value */
    }
}

/* Sends an image; the worker's verdict comes with a log. */
static CUresult load_image(const void *image, uint64_t bytes, const hws_jit_options_t *jit, CUmodule *module_p) {
    uint64_t blob_id = 0;
    bool fits = bytes <= INLINE_IMAGE_BYTES;
    if (!fits) {
        HWS_TRY(hws_stage(image, bytes, &blob_id));
    }
    char log[LOG_CAPACITY] = "";
    uint32_t verdict = 0, log_bytes = 0;
    uint64_t handle = hws_handle_new(HWS_KIND_MODULE);
    if (handle == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = hws_call_hwsImageLoad((CUmodule) (uintptr_t) handle, blob_id, 0, sizeof log - 1,
                                            fits ? (uint32_t) bytes : 0, fits ? image : NULL, &verdict, log, &log_bytes);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_MODULE, handle);
        return result;
    }
    log[log_bytes < sizeof log ? log_bytes : sizeof log - 1] = '\0';
    if (jit != NULL) {
        put_log(verdict == 0 ? log : "", jit->info_log, jit->info_capacity, jit->info_size_p);
        put_log(verdict != 0 ? log : "", jit->error_log, jit->error_capacity, jit->error_size_p);
    }
    if (verdict != 0) {
        hws_handle_drop(HWS_KIND_MODULE, handle);
        /* A program that asked for the log shows it itself, or tries what works, as compilers' drivers do. */
        hws_level_t level = jit != NULL && jit->error_log != NULL ? HWS_INFO : HWS_WARN;
        hws_log(level, "device code was refused: %s", log[0] != '\0' ? log : "no reason given");
        return (CUresult) verdict;
    }
    *module_p = (CUmodule) (uintptr_t) handle;
    return CUDA_SUCCESS;
}

CUresult hws_module_load(const void *image, uint64_t bytes, const hws_jit_options_t *jit, bool library,
                         CUmodule *module_p) {
    CUdevice device;
    HWS_TRY(hws_context_device(&device));
    hws_module_t *kept = calloc(1, sizeof *kept);
    if (kept == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *kept = (hws_module_t) {.library = library, .context = (uint64_t) (uintptr_t) hws_context_current(),
                            .device = device};
    CUresult result = load_image(image, bytes, jit, module_p);
    if (result != CUDA_SUCCESS) {
        free(kept);
        return result;
    }
    hws_handle_attach(HWS_KIND_MODULE, (uint64_t) (uintptr_t) *module_p, kept);
    return CUDA_SUCCESS;
}

CUresult hws_module_make_ready(CUmodule module) {
    hws_module_t *kept = module_get(module);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (kept->context != 0) {
        return CUDA_SUCCESS;
    }
    CUmodule loaded = NULL;
    CUdevice device = 0;
    pthread_mutex_lock(&lock);
    CUresult result = hws_tls.context == 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && kept->context == 0) {
        result = hws_context_device(&device);
        result = result != CUDA_SUCCESS ? result : load_image(kept->image, kept->image_bytes, NULL, &loaded);
        if (result == CUDA_SUCCESS) {
            kept->serves = (uint64_t) (uintptr_t) loaded;
            kept->device = device;
            kept->context = (uint64_t) (uintptr_t) hws_context_current();
            free(kept->image);
            kept->image = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* The handle by which the worker knows the module. */
static CUmodule wire_module(CUmodule module, const hws_module_t *kept) {
    return kept->serves != 0 ? (CUmodule) (uintptr_t) kept->serves : module;
}

CUresult hws_image_read_file(const char *path, void **image_p, uint64_t *bytes_p) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    struct stat status;
    CUresult result = CUDA_ERROR_INVALID_IMAGE;
    char *image = NULL;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t) status.st_size < HWS_MAX_IMAGE_BYTES) {
        size_t size = (size_t) status.st_size, got = 0;
        image = malloc(size + 1);
        result = image == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        while (result == CUDA_SUCCESS && got < size) {
            ssize_t n = read(fd, image + got, size - got);
            if (n <= 0 && !(n < 0 && errno == EINTR)) {
                result = CUDA_ERROR_INVALID_IMAGE;
            }
            got += n > 0 ? (size_t) n : 0;
        }
        if (result == CUDA_SUCCESS) {
            image[size] = '\0'; /* PTX in a file need not end with one */
            result = hws_image_size(image, size + 1, bytes_p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
        }
    }
    close(fd);
    if (result != CUDA_SUCCESS) {
        free(image);
        return result;
    }
    *image_p = image;
    return CUDA_SUCCESS;
}

static hws_function_t *find_function(const hws_module_t *kept, uint64_t hash, const char *name) {
    hws_function_t *each = kept->functions;
    while (each != NULL && (each->name_hash != hash || strcmp(each->name, name) != 0)) {
        each = each->next;
    }
    return each;
}

/* Keeps what the worker said of a kernel. */
static CUresult keep_function(CUmodule module, hws_module_t *kept, const char *name, uint64_t handle, uint32_t count,
                              const HwsParam *params, const int *attributes) {
    size_t name_bytes = strlen(name) + 1;
    hws_function_t *function = malloc(sizeof *function + count * sizeof *params + name_bytes);
    if (function == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *function = (hws_function_t) {.module = module, .device = kept->device, .handle = handle,
                                  .name_hash = hash_name(name), .param_count = count};
    memcpy(function->attributes, attributes, sizeof function->attributes);
    memcpy(function->params, params, count * sizeof *params);
    function->name = memcpy(function->params + count, name, name_bytes);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = (uint64_t) params[i].offset + params[i].size;
        if (end > HWS_MAX_PARAM_BYTES || params[i].size == 0) {
            free(function);
            hws_channel_fail(HWS_LOST_STATUS, "the worker broke the protocol, the session is over: parameter %u of a "
                             "kernel ends at %llu", i, (unsigned long long) end);
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
    hws_module_t *kept = module_get(module);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    HWS_TRY(hws_module_make_ready(module));
    pthread_mutex_lock(&lock);
    hws_function_t *known = find_function(kept, hash_name(name), name);
    if (known != NULL) {
        *function_p = (CUfunction) (uintptr_t) known->handle;
        pthread_mutex_unlock(&lock);
        return CUDA_SUCCESS;
    }
    /* The lock is kept over the call, so that two threads that ask for the same name get the same handle. */
    static HwsParam params[MAX_PARAMS]; /* under the lock */
    int attributes[HWS_FUNCTION_ATTRIBUTES] = {0};
    uint32_t count = 0, params_bytes = 0;
    uint64_t handle = hws_handle_new(HWS_KIND_FUNCTION);
    CUfunction function = (CUfunction) (uintptr_t) handle;
    CUresult result = handle == 0 ? CUDA_ERROR_OUT_OF_MEMORY
        : hws_call_hwsFunctionGet(wire_module(module, kept), name, function, &count, attributes, params, &params_bytes);
    if (result == CUDA_SUCCESS && (count > MAX_PARAMS || params_bytes != count * sizeof *params)) {
        hws_channel_fail(HWS_LOST_STATUS, "the worker broke the protocol, the session is over: %u parameters in %u bytes",
                         count, params_bytes);
        result = (CUresult) hws_channel_status();
    }
    if (result == CUDA_SUCCESS) {
        result = keep_function(module, kept, name, handle, count, params, attributes);
    }
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS) {
        *function_p = function;
    } else {
        hws_handle_drop(HWS_KIND_FUNCTION, handle);
    }
    return result;
}

CUresult hws_module_global(CUmodule module, const char *name, CUdeviceptr *dptr_p, size_t *bytes_p) {
    hws_module_t *kept = module_get(module);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    HWS_TRY(hws_module_make_ready(module));
    pthread_mutex_lock(&lock);
    hws_global_t *global = kept->globals;
    while (global != NULL && strcmp(global->name, name) != 0) {
        global = global->next;
    }
    CUresult result = CUDA_SUCCESS;
    if (global == NULL) {
        size_t name_bytes = strlen(name) + 1;
        uint64_t bytes = 0;
        global = malloc(sizeof *global + name_bytes);
        result = global == NULL ? CUDA_ERROR_OUT_OF_MEMORY
                                : hws_call_hwsGlobalGet(wire_module(module, kept), name, &global->address, &bytes);
        if (result == CUDA_SUCCESS) {
            global->bytes = bytes;
            memcpy(global->name, name, name_bytes);
            global->next = kept->globals;
            kept->globals = global;
            hws_range_t range = {.base = global->address, .bytes = bytes, .memory = HWS_MEMORY_VARIABLE,
                                 .context = kept->context, .device = kept->device,
                                 .owner = (uint64_t) (uintptr_t) module};
            hws_interval_insert(&range); /* refused when empty or known: then there is nothing to copy to */
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
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult hws_module_unload(CUmodule module) {
    pthread_mutex_lock(&lock);
    hws_module_t *kept = module_get(module);
    if (kept == NULL) {
        pthread_mutex_unlock(&lock);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    hws_interval_remove_all((uint64_t) (uintptr_t) module, 0);
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
    CUmodule wire = wire_module(module, kept);
    bool known = kept->context != 0;
    hws_handle_drop(HWS_KIND_MODULE, (uint64_t) (uintptr_t) wire);
    hws_handle_drop(HWS_KIND_MODULE, (uint64_t) (uintptr_t) module);
    pthread_mutex_unlock(&lock);
    return known ? hws_call_hwsImageUnload(wire) : CUDA_SUCCESS;
}

CUresult hws_module_functions(CUmodule module, CUfunction *functions_p, unsigned wanted, unsigned *count_p) {
    HWS_TRY(hws_module_make_ready(module));
    CUmodule wire = wire_module(module, module_get(module));
    char *names = malloc(NAMES_CAPACITY); /* too much for the stack of a small thread */
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
                break; /* a name that is not whole comes again with the next request */
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

/* A library without a current context keeps its image until there is one. */
static CUresult library_keep(const void *image, uint64_t bytes, CUmodule *module_p) {
    hws_module_t *kept = calloc(1, sizeof *kept);
    void *copy = malloc(bytes);
    uint64_t handle = kept != NULL && copy != NULL ? hws_handle_new(HWS_KIND_MODULE) : 0;
    if (handle == 0) {
        free(kept);
        free(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *kept = (hws_module_t) {.library = true, .image = memcpy(copy, image, bytes), .image_bytes = bytes};
    hws_handle_attach(HWS_KIND_MODULE, handle, kept);
    *module_p = (CUmodule) (uintptr_t) handle;
    return CUDA_SUCCESS;
}

static CUresult load_pointer(const void *image, const hws_jit_options_t *jit, bool library, CUmodule *module_p) {
    uint64_t bytes;
    void *copy;
    const void *plain = hws_image_unwrap(image, &bytes, &copy);
    if (plain == NULL) {
        return bytes == 1 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
    }
    CUresult result = library && hws_tls.context == 0 ? library_keep(plain, bytes, module_p)
                                                      : hws_module_load(plain, bytes, jit, library, module_p);
    free(copy);
    return result;
}

HWS_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                       CUjit_option *options, void **optionValues) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(module != NULL && image != NULL);
    hws_jit_options_t jit;
    HWS_TRY(hws_jit_options_parse(numOptions, options, optionValues, &jit));
    return load_pointer(image, &jit, false, module);
}

HWS_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

HWS_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
    return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

HWS_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *fname) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(module != NULL && fname != NULL);
    void *image;
    uint64_t bytes;
    HWS_TRY(hws_image_read_file(fname, &image, &bytes));
    CUresult result = hws_module_load(image, bytes, NULL, false, module);
    free(image);
    return result;
}

HWS_EXPORT CUresult cuModuleUnload(CUmodule hmod) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_MODULE, hmod);
    return hws_module_unload(hmod);
}

HWS_EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(mode != NULL);
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(hfunc != NULL && name != NULL && *name != '\0');
    return hws_module_function(hmod, name, hfunc);
}

HWS_EXPORT CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(count != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_MODULE, mod);
    return hws_module_functions(mod, NULL, 0, count);
}

HWS_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(functions != NULL && numFunctions > 0);
    HWS_CHECK_HANDLE(HWS_KIND_MODULE, mod);
    return hws_module_functions(mod, functions, numFunctions, NULL);
}

HWS_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(name != NULL && (dptr != NULL || bytes != NULL));
    return hws_module_global(hmod, name, dptr, bytes);
}

HWS_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                      void **jitOptionsValues, unsigned int numJitOptions,
                                      CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                      unsigned int numLibraryOptions) {
    (void) libraryOptions; /* whether the image stays with the program: it is never needed after the load here */
    (void) libraryOptionValues;
    (void) numLibraryOptions;
    HWS_ENTER();
    HWS_REQUIRE(library != NULL && code != NULL);
    hws_jit_options_t jit;
    HWS_TRY(hws_jit_options_parse(numJitOptions, jitOptions, jitOptionsValues, &jit));
    return load_pointer(code, &jit, true, (CUmodule *) library);
}
