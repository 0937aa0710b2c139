/*
 * Modules and libraries, which share one kind of handle, and their kernels. A CUkernel is valid wherever a CUfunction
 * is.
 */
#ifndef HWS_MODULE_H
#define HWS_MODULE_H

#include "hws_driver.h"

#define HWS_FUNCTION_ATTRIBUTES 16
#define HWS_MAX_REFUSAL_BYTES 1000u /* module.yaml, hwsFunctionGet */
#define HWS_MAX_PARAM_BYTES 32764u  /* a kernel's parameter space, PTX ISA 8.1 */

/* The data of a kernel. Freed with its handle's slot. */
typedef struct hws_function {
    CUmodule module;
    CUdevice device;
    uint32_t context;          /* number of the context that it belongs to; 0 for a library's kernel */
    struct hws_function *next; /* of the module */
    uint64_t handle;
    uint64_t name_hash;
    int attributes[HWS_FUNCTION_ATTRIBUTES];
    uint32_t params_bytes; /* end of the last parameter */
    uint32_t param_count;
    const char *refusal; /* why the device does not run it, after the name; NULL for a kernel that it runs */
    _Atomic bool refusal_logged;
    const char *name; /* after the parameters */
    HwsParam params[];
} hws_function_t;

static inline hws_function_t *hws_function_get(const void *function) {
    return hws_handle_data(HWS_KIND_FUNCTION, (uint64_t) (uintptr_t) function);
}

/*
 * Returns CUDA_ERROR_NOT_SUPPORTED for a kernel that the device does not run, and logs the reason once for each kernel.
 * Returns CUDA_SUCCESS for any other.
 */
CUresult hws_function_check(const hws_function_t *function);

/* Options of a load that matter beyond this library: buffers for the log. */
typedef struct hws_jit_options {
    char *info_log, *error_log;
    unsigned info_capacity, error_capacity;
    void **info_size_p, **error_size_p; /* where CUDA returns the number of bytes written */
} hws_jit_options_t;

/* Reads the options that matter. Ignores unknown ones: they tune a compiler that does not run here. */
CUresult hws_jit_options_parse(unsigned count, const CUjit_option *options, void **values, hws_jit_options_t *jit_p);

/* Writes the log of a compiler or linker into the program's buffer for the outcome. */
void hws_jit_log(const hws_jit_options_t *jit, const char *log, bool failed);

/* Loads an image of known size into the current context. */
CUresult hws_module_load(const void *image, uint64_t bytes, const hws_jit_options_t *jit, bool library,
                         CUmodule *module_p);

/* The same for an image with only a pointer, as programs pass it. A library may wait for a context. */
CUresult hws_module_load_pointer(const void *image, const hws_jit_options_t *jit, bool library, CUmodule *module_p);

/*
 * Reads a whole file, at most HWS_MAX_IMAGE_BYTES, and adds a NUL. The caller frees it. An empty file gives
 * CUDA_ERROR_INVALID_IMAGE for every kind of input, as with the driver.
 */
CUresult hws_file_read(const char *path, void **data_p, uint64_t *bytes_p);

/* Reads a whole file that holds an image. The caller frees it. */
CUresult hws_image_read_file(const char *path, void **image_p, uint64_t *bytes_p);

/* The kernel with that name, from the module's list or the worker. CUDA_ERROR_NOT_FOUND when there is none. */
CUresult hws_module_function(CUmodule module, const char *name, CUfunction *function_p);

/* The variable with that name. */
CUresult hws_module_global(CUmodule module, const char *name, CUdeviceptr *dptr_p, size_t *bytes_p);

CUresult hws_module_unload(CUmodule module);

/* Returns the number of kernels, and up to `wanted` of them. */
CUresult hws_module_functions(CUmodule module, CUfunction *functions_p, unsigned wanted, unsigned *count_p);

/* Loads a library into the current context if it was loaded without one. */
CUresult hws_module_make_ready(CUmodule module);

#endif
