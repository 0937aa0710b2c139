/* Look-up of functions by name and version. The results are those of a real driver (facts/cuda.md, section 2). */
#include "hws_driver.h"

#include "hws_cuda_unsupported.h"

#include <string.h>

#define VERSION_OF_MAJOR 1000 /* 13000 for 13.0 */
#define FLAG_LEGACY 1u        /* CU_GET_PROC_ADDRESS_LEGACY_STREAM */
#define FLAG_PER_THREAD 2u    /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */

typedef struct hws_proc {
    const char *name;
    int version; /* that introduced it: 12040 for 12.4 */
    int per_thread;
    void (*function)(void);
} hws_proc_t;

#define HWS_PROC(name, version, per_thread, symbol) {name, version, per_thread, (void (*)(void)) symbol},
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-function-type" /* functions of every type, cast back before the call */
static const hws_proc_t procs[] = {
#include "hws_cuda_procs.inc"
};
#pragma GCC diagnostic pop
#undef HWS_PROC

#define PROCS (sizeof procs / sizeof *procs)

/* The first row with that name; PROCS for none. */
static size_t first_of(const char *name) {
    size_t low = 0, high = PROCS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(procs[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < PROCS && strcmp(procs[low].name, name) == 0 ? low : PROCS;
}

/* Finds the newest variant of at most that version; a per-thread one if it is requested and exists. */
static CUdriverProcAddressQueryResult find(const char *name, int version, bool per_thread, void **function_p) {
    size_t first = first_of(name);
    if (first == PROCS) {
        return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    const hws_proc_t *best = NULL;
    for (size_t i = first; i < PROCS && strcmp(procs[i].name, name) == 0; i++) {
        /* Rows are sorted by flag, then version, so a per-thread row comes last and wins. */
        if (procs[i].version <= version && (per_thread || !procs[i].per_thread)) {
            best = &procs[i];
        }
    }
    if (best == NULL) {
        return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
    memcpy(function_p, &best->function, sizeof *function_p);
    return CU_GET_PROC_ADDRESS_SUCCESS;
}

/* Whether the version is of a later major release. One of a later minor release works with this driver. */
static bool is_later(int version) {
    return version / VERSION_OF_MAJOR > HWS_DRIVER_VERSION / VERSION_OF_MAJOR;
}

HWS_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult *symbolStatus) {
    HWS_REQUIRE(symbol != NULL && pfn != NULL && flags <= FLAG_PER_THREAD && !is_later(cudaVersion));
    void *function = NULL;
    CUdriverProcAddressQueryResult status = find(symbol, cudaVersion, flags == FLAG_PER_THREAD, &function);
    *pfn = function;
    if (symbolStatus != NULL) {
        *symbolStatus = status;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    HWS_REQUIRE(symbol != NULL && pfn != NULL && flags <= FLAG_PER_THREAD && !is_later(cudaVersion));
    void *function = NULL;
    if (find(symbol, cudaVersion, flags == FLAG_PER_THREAD, &function) != CU_GET_PROC_ADDRESS_SUCCESS) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *pfn = function;
    return CUDA_SUCCESS;
}
