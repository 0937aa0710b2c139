/*
 * The private tables of NVIDIA's driver, which Hawser does not have. A CUDA runtime needs them. Other libraries request
 * them too, but work without them.
 */
#include "private_tables.h"

#include <dlfcn.h>
#include <string.h>

/* The callers of these two functions' last calls in this thread. */
static _Thread_local const void *version_caller, *init_caller;

void hws_private_tables_note_version(const void *caller) {
    version_caller = caller;
}

void hws_private_tables_note_init(const void *caller) {
    init_caller = caller;
}

/* Start of the library or program that contains the code; NULL for code that the dynamic linker does not know. */
static const void *base_of(const void *code, const char **name_p) {
    Dl_info info;
    if (code == NULL || dladdr(code, &info) == 0) {
        return NULL;
    }
    *name_p = info.dli_fname;
    return info.dli_fbase;
}

/*
 * A runtime's first call reads the driver's version, initialises the driver and requests a table, all in one thread
 * (cudart 13.0, observed from outside). It gives up without the table: each call that needs the driver fails, and none
 * reaches the driver. The first call may be cudaDriverGetVersion or cudaGetErrorString, which succeed: the driver sees
 * the same calls then. So the line must come here, because no call comes later. CUPTI, for example, requests only
 * tables.
 */
static bool is_runtime(const void *caller, const char **name_p) {
    const char *other;
    const void *base = base_of(caller, name_p);
    return base != NULL && base_of(version_caller, &other) == base && base_of(init_caller, &other) == base;
}

static void say(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    if (strncmp(name, "libcudart.so", strlen("libcudart.so")) == 0) {
        hws_log(HWS_ERROR, "%s is NVIDIA's CUDA runtime, and its calls to the GPU fail here: start the program by "
                "`hawser run`, which loads Hawser's: path=%s", name, path);
    } else {
        hws_log(HWS_ERROR, "%s contains a statically linked CUDA runtime, and its calls to the GPU fail here: link it "
                "with nvcc -cudart shared: path=%s", name, path);
    }
}

HWS_EXPORT CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    static _Atomic bool said;
    const char *name;
    (void) pExportTableId;
    HWS_REQUIRE(ppExportTable != NULL);
    *ppExportTable = NULL;
    if (!atomic_load(&said) && is_runtime(__builtin_return_address(0), &name) && !atomic_exchange(&said, true)) {
        say(name);
    }
    return CUDA_ERROR_NOT_FOUND;
}
