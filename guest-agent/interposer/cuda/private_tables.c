/*
 * The private tables of NVIDIA's driver, which Hawser does not have. A CUDA runtime needs them. Other libraries request
 * them too, but work without them. Hawser's own libraries request hws_service.
 */
#include "private_tables.h"

#include "functions.h"
#include "hws_service.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The major of the runtime whose functions can be redirected in a file, 11 for an older one, or 0 for none. */
static int major_of(const char *path) {
    hws_functions_t *functions = malloc(sizeof *functions);
    int fd = open(path, O_RDONLY | O_CLOEXEC), major = 0;
    char error[256];
    if (fd >= 0 && functions != NULL && hws_functions_read(fd, functions, error, sizeof error) == 0) {
        major = functions->major;
    }
    if (fd >= 0) {
        close(fd);
    }
    free(functions);
    return major;
}

static void say(const void *caller, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    if (strncmp(name, "libcudart.so", strlen("libcudart.so")) == 0) {
        hws_log(HWS_ERROR,
                "%s is NVIDIA's CUDA runtime, and its calls to the GPU fail here: start the program by "
                "`hawser run`, which loads Hawser's: path=%s",
                name, path);
        return;
    }
    /* The dynamic linker has no path for the program, only its first argument. */
    Dl_info info;
    struct link_map *map = NULL;
    bool is_program = dladdr1(caller, &info, (void **) &map, RTLD_DL_LINKMAP) != 0 && map->l_name[0] == '\0';
    int major = major_of(is_program ? "/proc/self/exe" : path);
    hws_log(
        HWS_ERROR, "%s contains a statically linked CUDA runtime, and its calls to the GPU fail here: %s: path=%s",
        name,
        major >= 12 ? "start it with `hawser run`"
            : major == 11
            ? "it is of CUDA 11 or older; build the program with CUDA 12 or 13"
            : "it is stripped, so `hawser run` cannot redirect it; link it with nvcc -cudart shared, or ask the vendor",
        path);
}

HWS_EXPORT CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    static _Atomic bool said;
    static const CUuuid service = HWS_SERVICE_ID;
    const char *name;
    HWS_REQUIRE(ppExportTable != NULL);
    *ppExportTable = NULL;
    if (pExportTableId != NULL && memcmp(pExportTableId, &service, sizeof service) == 0) {
        *ppExportTable = &hws_service;
        return CUDA_SUCCESS;
    }
    if (!atomic_load(&said) && is_runtime(__builtin_return_address(0), &name) && !atomic_exchange(&said, true)) {
        say(__builtin_return_address(0), name);
    }
    return CUDA_ERROR_NOT_FOUND;
}
