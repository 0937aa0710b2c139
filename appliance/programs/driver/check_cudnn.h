/*
 * What programs of cuDNN share: the library, whose functions are found by name, descriptors, and the execution of
 * graphs. A program defines FUNCTIONS(F) with the other functions that it needs before it includes this file.
 */
#ifndef CHECK_CUDNN_H
#define CHECK_CUDNN_H

#include "check_driver.h"

#include <dlfcn.h>
#include <math.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3000 };
enum { FLOAT = 0, NCHW = 0, CROSS_CORRELATION = 1, FMA_MATH = 3, HEURISTIC_A = 3, MULTIPLY = 1 };
/* cudnnBackendDescriptorType_t */
enum {
    POINTWISE = 0,
    CONVOLUTION = 1,
    ENGINE_CONFIG = 3,
    HEURISTICS = 4,
    PLAN = 5,
    OPERATION_FORWARD = 10,
    OPERATION_BACKWARD_FILTER = 11,
    OPERATION_BACKWARD_DATA = 12,
    OPERATION_POINTWISE = 13,
    GRAPH = 15,
    PACK = 16,
    TENSOR = 17
};
/* cudnnBackendAttributeType_t */
enum {
    TYPE_HANDLE = 0,
    TYPE_DATA_TYPE = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INT64 = 3,
    TYPE_FLOAT = 4,
    TYPE_POINTER = 6,
    TYPE_MODE = 7,
    TYPE_HEURISTIC = 8,
    TYPE_POINTWISE_MODE = 14,
    TYPE_DESCRIPTOR = 15
};
#define MOST_CONFIGS 64

typedef void *handle_t;
typedef void *desc_t;

#define CUDNN_FUNCTIONS(F)                                                                                             \
    F(size_t, cudnnGetVersion, void)                                                                                   \
    F(const char *, cudnnGetErrorString, int)                                                                          \
    F(void, cudnnGetLastErrorString, char *, size_t)                                                                   \
    F(int, cudnnCreate, handle_t *)                                                                                    \
    F(int, cudnnDestroy, handle_t)                                                                                     \
    F(int, cudnnSetStream, handle_t, CUstream)                                                                         \
    F(int, cudnnGetStream, handle_t, CUstream *)                                                                       \
    F(int, cudnnCreateTensorDescriptor, desc_t *)                                                                      \
    F(int, cudnnDestroyTensorDescriptor, desc_t)                                                                       \
    F(int, cudnnSetTensor4dDescriptor, desc_t, int, int, int, int, int, int)                                           \
    F(int, cudnnSetTensorNdDescriptor, desc_t, int, int, const int *, const int *)                                     \
    F(int, cudnnBackendCreateDescriptor, int, desc_t *)                                                                \
    F(int, cudnnBackendDestroyDescriptor, desc_t)                                                                      \
    F(int, cudnnBackendSetAttribute, desc_t, int, int, int64_t, const void *)                                          \
    F(int, cudnnBackendGetAttribute, desc_t, int, int, int64_t, int64_t *, void *)                                     \
    F(int, cudnnBackendFinalize, desc_t)                                                                               \
    F(int, cudnnBackendExecute, handle_t, desc_t, desc_t)

#define DECLARE(result, name, ...) static result (*name)(__VA_ARGS__);
CUDNN_FUNCTIONS(DECLARE)
FUNCTIONS(DECLARE)

static inline void load(void) {
    void *library = dlopen("libcudnn.so.9", RTLD_NOW);
    if (library == NULL) {
        check_fail("libcudnn.so.9, expected a library, got %s", dlerror());
    }
#define FIND(result, name, ...)                                                                                        \
    *(void **) &name = dlsym(library, #name);                                                                          \
    check_true("the function " #name, name != NULL);
    CUDNN_FUNCTIONS(FIND)
    FUNCTIONS(FIND)
}

static inline void is(int expected, int got, const char *call) {
    if (got == NOT_SUPPORTED && expected == SUCCESS) {
        check_unsupported("%s: %s", call, cudnnGetErrorString(got));
    }
    if (got != expected) {
        check_fail("%s, expected %d %s, got %d %s", call, expected, cudnnGetErrorString(expected), got,
                   cudnnGetErrorString(got));
    }
}
#define IS(expected, call) is((expected), (call), #call)
#define OK(call) IS(SUCCESS, call)

/* Small whole numbers, which every kind of computation represents. */
static inline float number(int seed, int at) {
    uint32_t state = (uint32_t) (seed * 7919 + at * 104729 + 1);
    return (float) (int) (check_random(&state) % 7) - 3;
}

static inline CUdeviceptr upload(const float *values, size_t count) {
    CUdeviceptr memory;
    CU_OK(cuMemAlloc(&memory, count * sizeof *values));
    CU_OK(cuMemcpyHtoD(memory, values, count * sizeof *values));
    return memory;
}

static inline void compare(const char *what, const float *expected, CUdeviceptr memory, size_t count,
                           double tolerance) {
    static float got[8192];
    check_true("room for the result", count <= sizeof got / sizeof *got);
    CU_OK(cuCtxSynchronize());
    CU_OK(cuMemcpyDtoH(got, memory, count * sizeof *got));
    for (size_t i = 0; i < count; i++) {
        check_near(what, (long long) i, expected[i], got[i], tolerance);
    }
}

static inline desc_t tensor4(int n, int c, int h, int w) {
    desc_t made = NULL;
    OK(cudnnCreateTensorDescriptor(&made));
    OK(cudnnSetTensor4dDescriptor(made, NCHW, FLOAT, n, c, h, w));
    return made;
}

static inline desc_t begin(int kind) {
    desc_t made = NULL;
    OK(cudnnBackendCreateDescriptor(kind, &made));
    return made;
}

enum { IN_MEMORY = 0, BY_VALUE = 1, VIRTUAL = 2 };

static inline desc_t tensor(int64_t uid, const int64_t *sizes, int kind) {
    int64_t strides[4] = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1}, alignment = 16;
    int type = FLOAT;
    _Bool value = 1, is_virtual = kind == VIRTUAL;
    desc_t made = begin(TENSOR);
    OK(cudnnBackendSetAttribute(made, 901, TYPE_DATA_TYPE, 1, &type));
    OK(cudnnBackendSetAttribute(made, 902, TYPE_INT64, 4, sizes));
    OK(cudnnBackendSetAttribute(made, 903, TYPE_INT64, 4, strides));
    OK(cudnnBackendSetAttribute(made, 906, TYPE_INT64, 1, &uid));
    OK(cudnnBackendSetAttribute(made, 900, TYPE_INT64, 1, &alignment));
    OK(cudnnBackendSetAttribute(made, 907, TYPE_BOOLEAN, 1, &is_virtual));
    if (kind == BY_VALUE) {
        OK(cudnnBackendSetAttribute(made, 908, TYPE_BOOLEAN, 1, &value));
    }
    OK(cudnnBackendFinalize(made));
    return made;
}

/* A convolution with a padding of one element, by the graph API. */
static inline desc_t convolution(void) {
    int type = FLOAT, mode = CROSS_CORRELATION;
    int64_t dims = 2, ones[2] = {1, 1};
    desc_t made = begin(CONVOLUTION);
    OK(cudnnBackendSetAttribute(made, 106, TYPE_INT64, 1, &dims));
    OK(cudnnBackendSetAttribute(made, 100, TYPE_DATA_TYPE, 1, &type));
    OK(cudnnBackendSetAttribute(made, 101, TYPE_MODE, 1, &mode));
    OK(cudnnBackendSetAttribute(made, 105, TYPE_INT64, 2, ones));
    OK(cudnnBackendSetAttribute(made, 104, TYPE_INT64, 2, ones));
    OK(cudnnBackendSetAttribute(made, 102, TYPE_INT64, 2, ones));
    OK(cudnnBackendSetAttribute(made, 103, TYPE_INT64, 2, ones));
    OK(cudnnBackendFinalize(made));
    return made;
}

/* Executes a graph of operations by the first plan that the library makes. Returns whether it has one. */
static inline int run_graph(handle_t handle, int64_t operations, const desc_t *list, int64_t count, const int64_t *uids,
                            void *const *pointers, int repeats) {
    desc_t graph = begin(GRAPH), heuristics = begin(HEURISTICS), plan = NULL, configs[MOST_CONFIGS];
    int mode = HEURISTIC_A;
    int64_t found = 0, more = 0, workspace_bytes = 0;
    OK(cudnnBackendSetAttribute(graph, 801, TYPE_DESCRIPTOR, operations, list));
    OK(cudnnBackendSetAttribute(graph, 800, TYPE_HANDLE, 1, &handle));
    OK(cudnnBackendFinalize(graph));
    OK(cudnnBackendSetAttribute(heuristics, 201, TYPE_DESCRIPTOR, 1, &graph));
    OK(cudnnBackendSetAttribute(heuristics, 200, TYPE_HEURISTIC, 1, &mode));
    int status = cudnnBackendFinalize(heuristics);
    if (status != SUCCESS) {
        printf("a graph has no configurations: %s\n", cudnnGetErrorString(status));
        return 0;
    }
    OK(cudnnBackendGetAttribute(heuristics, 202, TYPE_DESCRIPTOR, 0, &found, NULL));
    found = found > MOST_CONFIGS ? MOST_CONFIGS : found;
    for (int64_t i = 0; i < found; i++) {
        configs[i] = begin(ENGINE_CONFIG);
    }
    OK(cudnnBackendGetAttribute(heuristics, 202, TYPE_DESCRIPTOR, found, &more, configs));
    for (int64_t i = 0; i < found && i < more && plan == NULL; i++) {
        plan = begin(PLAN);
        OK(cudnnBackendSetAttribute(plan, 400, TYPE_HANDLE, 1, &handle));
        OK(cudnnBackendSetAttribute(plan, 401, TYPE_DESCRIPTOR, 1, &configs[i]));
        status = cudnnBackendFinalize(plan);
        if (status != SUCCESS) {
            char reason[1024] = "";
            cudnnGetLastErrorString(reason, sizeof reason);
            printf("configuration %d has no plan: %s %s\n", (int) i, cudnnGetErrorString(status), reason);
            OK(cudnnBackendDestroyDescriptor(plan));
            plan = NULL;
        }
    }
    if (plan != NULL) {
        OK(cudnnBackendGetAttribute(plan, 402, TYPE_INT64, 1, &more, &workspace_bytes));
        CUdeviceptr workspace;
        CU_OK(cuMemAlloc(&workspace, (size_t) workspace_bytes + 256));
        desc_t pack = begin(PACK);
        OK(cudnnBackendSetAttribute(pack, 1000, TYPE_INT64, count, uids));
        OK(cudnnBackendSetAttribute(pack, 1001, TYPE_POINTER, count, pointers));
        OK(cudnnBackendSetAttribute(pack, 1003, TYPE_POINTER, 1, &workspace));
        OK(cudnnBackendFinalize(pack));
        for (int i = 0; i < repeats; i++) {
            OK(cudnnBackendExecute(handle, plan, pack));
        }
        CU_OK(cuCtxSynchronize());
        OK(cudnnBackendDestroyDescriptor(pack));
        OK(cudnnBackendDestroyDescriptor(plan));
        CU_OK(cuMemFree(workspace));
    }
    for (int64_t i = 0; i < found; i++) {
        OK(cudnnBackendDestroyDescriptor(configs[i]));
    }
    OK(cudnnBackendDestroyDescriptor(heuristics));
    OK(cudnnBackendDestroyDescriptor(graph));
    return plan != NULL;
}

/* The same for one operation. */
static inline int run(handle_t handle, desc_t operation, int64_t count, const int64_t *uids, void *const *pointers,
                      int repeats) {
    return run_graph(handle, 1, &operation, count, uids, pointers, repeats);
}

#endif
