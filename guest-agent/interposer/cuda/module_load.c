/* Loads device code: at once into the current context, or, for a library without a context, at its first use. */
#include "module_table.h"

#include "context.h"
#include "hws_channel.h"
#include "hws_cuda_calls.h"
#include "hws_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INLINE_IMAGE_BYTES 65536u /* module.yaml, hwsImageLoad: larger images are staged */
#define LOG_CAPACITY 8192u
#define OPTION_LIBRARY 1u /* module.yaml, hwsImageLoad */
#define OPTION_TRIES 8    /* the same: the first bit of the number */
#define MAX_TRIES 8u

pthread_mutex_t hws_module_lock = PTHREAD_MUTEX_INITIALIZER;

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

void hws_jit_log(const hws_jit_options_t *jit, const char *log, bool failed) {
    put_log(failed ? "" : log, jit->info_log, jit->info_capacity, jit->info_size_p);
    put_log(failed ? log : "", jit->error_log, jit->error_capacity, jit->error_size_p);
}

/* Sends an image and receives the worker's result with a log. `tries`: earlier loads of this image. */
static CUresult load_once(const void *image, uint64_t bytes, const hws_jit_options_t *jit, hws_module_t *kept,
                          unsigned tries, CUmodule *module_p) {
    uint64_t blob_id = 0;
    bool fits = bytes <= INLINE_IMAGE_BYTES;
    if (!fits) {
        HWS_TRY(hws_stage(image, bytes, &blob_id));
    }
    char log[LOG_CAPACITY] = "";
    uint32_t verdict = 0, has_managed = 0, log_bytes = 0;
    uint32_t options = (kept->library ? OPTION_LIBRARY : 0) | tries << OPTION_TRIES;
    uint64_t handle = hws_handle_new(HWS_KIND_MODULE);
    if (handle == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = hws_call_hwsImageLoad((CUmodule) (uintptr_t) handle, blob_id, options, sizeof log - 1,
                                            fits ? (uint32_t) bytes : 0, fits ? image : NULL, &verdict, &has_managed,
                                            log, &log_bytes);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_MODULE, handle);
        return result;
    }
    log[log_bytes < sizeof log ? log_bytes : sizeof log - 1] = '\0';
    if (jit != NULL) {
        hws_jit_log(jit, log, verdict != 0);
    }
    if (verdict != 0) {
        hws_handle_drop(HWS_KIND_MODULE, handle);
        /*
         * A program that requested the log prints it itself, or tries alternatives, as compiler drivers do. Short
         * memory is no fault of the code.
         */
        bool is_expected = (jit != NULL && jit->error_log != NULL) || verdict == CUDA_ERROR_OUT_OF_MEMORY;
        hws_level_t level = is_expected ? HWS_INFO : HWS_WARN;
        hws_log(level, "device code was refused: %s", log[0] != '\0' ? log : "no reason given");
        return (CUresult) verdict;
    }
    *module_p = (CUmodule) (uintptr_t) handle;
    kept->has_managed = has_managed != 0;
    return CUDA_SUCCESS;
}

static void unload(CUmodule wire) {
    hws_handle_drop(HWS_KIND_MODULE, (uint64_t) (uintptr_t) wire);
    hws_call_hwsImageUnload(wire);
}

/*
 * Loads an image, and lets the host see its managed variables. While this process uses their addresses, it loads the
 * image again. The earlier loads stay until then, so that the driver chooses other addresses.
 */
static CUresult load_image(const void *image, uint64_t bytes, const hws_jit_options_t *jit, hws_module_t *kept,
                           CUmodule *module_p) {
    CUmodule loads[MAX_TRIES];
    unsigned tries = 0;
    CUresult result;
    do {
        result = load_once(image, bytes, jit, kept, tries, &loads[tries]);
        if (result != CUDA_SUCCESS) {
            break;
        }
        result = kept->has_managed ? hws_managed_variables_add(kept, loads[tries]) : CUDA_SUCCESS;
        tries++;
    } while (result == CUDA_ERROR_ALREADY_MAPPED && tries < MAX_TRIES);
    if (result == CUDA_SUCCESS) {
        *module_p = loads[--tries];
    } else if (result == CUDA_ERROR_ALREADY_MAPPED) {
        hws_log(HWS_ERROR,
                "device code was not loaded: this process uses the addresses of its __managed__ variables "
                "for something else: loads=%u",
                tries);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    while (tries > 0) {
        unload(loads[--tries]);
    }
    return result;
}

CUresult hws_module_load(const void *image, uint64_t bytes, const hws_jit_options_t *jit, bool library,
                         CUmodule *module_p) {
    CUdevice device;
    HWS_TRY(hws_context_device(&device));
    hws_module_t *kept = calloc(1, sizeof *kept);
    if (kept == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *kept =
        (hws_module_t) {.library = library, .context = (uint64_t) (uintptr_t) hws_context_owner(), .device = device};
    CUresult result = load_image(image, bytes, jit, kept, module_p);
    if (result != CUDA_SUCCESS) {
        free(kept->managed);
        free(kept);
        return result;
    }
    pthread_mutex_lock(&hws_module_lock);
    hws_handle_attach(HWS_KIND_MODULE, (uint64_t) (uintptr_t) *module_p, kept);
    if (kept->has_managed) {
        hws_managed_variables_enlist(kept);
    }
    pthread_mutex_unlock(&hws_module_lock);
    return CUDA_SUCCESS;
}

/* Keeps the image of a library until there is a current context that works. */
static CUresult keep_library(const void *image, uint64_t bytes, CUmodule *module_p) {
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

CUresult hws_module_load_pointer(const void *image, const hws_jit_options_t *jit, bool library, CUmodule *module_p) {
    uint64_t bytes;
    void *copy;
    const void *plain = hws_image_unwrap(image, &bytes, &copy);
    if (plain == NULL) {
        return bytes == 1 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
    }
    /* CUDA reads a library's image at its first use, so the error of a kernel does not stop a load. */
    const bool waits = hws_tls.context == 0 || atomic_load_explicit(&hws_gate, memory_order_relaxed) != 0;
    CUresult result =
        library && waits ? keep_library(plain, bytes, module_p) : hws_module_load(plain, bytes, jit, library, module_p);
    free(copy);
    return result;
}

CUresult hws_module_make_ready(CUmodule module) {
    hws_module_t *kept = hws_module_get(module);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (kept->context != 0 && (!kept->has_managed || kept->managed_context != 0 || !kept->library)) {
        return CUDA_SUCCESS;
    }
    HWS_ENTER();
    CUmodule loaded = NULL;
    CUdevice device = 0;
    pthread_mutex_lock(&hws_module_lock);
    CUresult result = hws_tls.context == 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && kept->context == 0) {
        result = hws_context_device(&device);
        result = result != CUDA_SUCCESS ? result : load_image(kept->image, kept->image_bytes, NULL, kept, &loaded);
        if (result == CUDA_SUCCESS) {
            kept->serves = (uint64_t) (uintptr_t) loaded;
            kept->device = device;
            kept->context = (uint64_t) (uintptr_t) hws_context_owner();
            free(kept->image);
            kept->image = NULL;
            if (kept->has_managed) {
                hws_managed_variables_enlist(kept);
            }
        }
    } else if (result == CUDA_SUCCESS && kept->has_managed && kept->managed_context == 0) {
        result = hws_managed_variables_add(kept, hws_module_wire(module, kept));
    }
    pthread_mutex_unlock(&hws_module_lock);
    return result;
}

CUresult hws_file_read(const char *path, void **data_p, uint64_t *bytes_p) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    struct stat status;
    CUresult result = CUDA_ERROR_INVALID_IMAGE;
    char *data = NULL;
    size_t size = 0, got = 0;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0
        && (uint64_t) status.st_size < HWS_MAX_IMAGE_BYTES) {
        size = (size_t) status.st_size;
        data = malloc(size + 1);
        result = data == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        while (result == CUDA_SUCCESS && got < size) {
            ssize_t n = read(fd, data + got, size - got);
            if (n <= 0 && !(n < 0 && errno == EINTR)) {
                result = CUDA_ERROR_INVALID_IMAGE;
            }
            got += n > 0 ? (size_t) n : 0;
        }
    }
    close(fd);
    if (result != CUDA_SUCCESS) {
        free(data);
        return result;
    }
    data[size] = '\0'; /* PTX in a file need not end with one */
    *data_p = data;
    *bytes_p = size;
    return CUDA_SUCCESS;
}

CUresult hws_image_read_file(const char *path, void **image_p, uint64_t *bytes_p) {
    void *data;
    uint64_t size;
    HWS_TRY(hws_file_read(path, &data, &size));
    if (!hws_image_size(data, size + 1, bytes_p)) {
        free(data);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *image_p = data;
    return CUDA_SUCCESS;
}
