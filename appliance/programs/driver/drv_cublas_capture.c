/*
 * cuBLAS and cublasLt in captured streams: products with scalars on host and device, among copies, fills and kernels,
 * in two streams of one capture. The graph is launched with changing inputs, cloned, put into another graph, and
 * updated by a second capture. Also captures with errors. All numbers are whole and small, so that results are exact.
 * Without a cuBLAS at the other end cublasCreate returns CUBLAS_STATUS_NOT_SUPPORTED.
 */
#include "check_graphs.h"

#include <dlfcn.h>
#include <fcntl.h>

#ifndef HAWSER_NVIDIA_HEADER
CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream);
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream);
#endif

enum { SUCCESS = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { OP_N = 0, HOST_POINTERS = 0, DEVICE_POINTERS = 1, R_32F = 0, COMPUTE_32F = 68, DESC_POINTER_MODE = 2 };
#define N 16
#define ELEMENTS (N * N)
#define BYTES (ELEMENTS * sizeof(float))
#define WORKSPACE (32u << 20) /* documented for GPUs of capability 9.0 */
#define ROUNDS 4

typedef struct cublasContext *handle_t;
typedef struct cublasLtContext *lt_handle_t;
typedef CUdeviceptr matrix_t; /* C's pointers to device memory */
typedef void *desc_t;

static void *blas, *lt;

#define DECLARE(result, name, ...) static result (*name)(__VA_ARGS__)
DECLARE(int, cublasCreate_v2, handle_t *);
DECLARE(int, cublasDestroy_v2, handle_t);
DECLARE(int, cublasSetStream_v2, handle_t, CUstream);
DECLARE(int, cublasSetPointerMode_v2, handle_t, int);
DECLARE(int, cublasSetWorkspace_v2, handle_t, matrix_t, size_t);
DECLARE(const char *, cublasGetStatusName, int);
DECLARE(int, cublasSgemm_v2, handle_t, int, int, int, int, int, const void *, matrix_t, int, matrix_t, int,
        const void *, matrix_t, int);
DECLARE(int, cublasSdot_v2, handle_t, int, matrix_t, int, matrix_t, int, void *);
DECLARE(int, cublasLtCreate, lt_handle_t *);
DECLARE(int, cublasLtDestroy, lt_handle_t);
DECLARE(int, cublasLtMatrixLayoutCreate, desc_t *, int, uint64_t, uint64_t, int64_t);
DECLARE(int, cublasLtMatrixLayoutDestroy, desc_t);
DECLARE(int, cublasLtMatmulDescCreate, desc_t *, int, int);
DECLARE(int, cublasLtMatmulDescDestroy, desc_t);
DECLARE(int, cublasLtMatmulDescSetAttribute, desc_t, int, const void *, size_t);
DECLARE(int, cublasLtMatmul, lt_handle_t, desc_t, const void *, matrix_t, desc_t, matrix_t, desc_t, const void *,
        matrix_t, desc_t, matrix_t, desc_t, const void *, matrix_t, size_t, CUstream);

static void *open_library(const char *new_name, const char *old_name) {
    void *opened = dlopen(new_name, RTLD_NOW);
    opened = opened != NULL ? opened : dlopen(old_name, RTLD_NOW);
    if (opened == NULL) {
        check_fail("%s, expected a library, got %s", new_name, dlerror());
    }
    return opened;
}

static void *find(void *where, const char *name) {
    void *function = dlsym(where, name);
    if (function == NULL) {
        check_fail("the function %s, expected its address, got none", name);
    }
    return function;
}

static void load(void) {
    lt = open_library("libcublasLt.so.13", "libcublasLt.so.12");
    blas = open_library("libcublas.so.13", "libcublas.so.12");
#define FIND(where, name) *(void **) &name = find(where, #name)
    FIND(blas, cublasCreate_v2);
    FIND(blas, cublasDestroy_v2);
    FIND(blas, cublasSetStream_v2);
    FIND(blas, cublasSetPointerMode_v2);
    FIND(blas, cublasSetWorkspace_v2);
    FIND(blas, cublasGetStatusName);
    FIND(blas, cublasSgemm_v2);
    FIND(blas, cublasSdot_v2);
    FIND(lt, cublasLtCreate);
    FIND(lt, cublasLtDestroy);
    FIND(lt, cublasLtMatrixLayoutCreate);
    FIND(lt, cublasLtMatrixLayoutDestroy);
    FIND(lt, cublasLtMatmulDescCreate);
    FIND(lt, cublasLtMatmulDescDestroy);
    FIND(lt, cublasLtMatmulDescSetAttribute);
    FIND(lt, cublasLtMatmul);
}

static void is(int expected, int got, const char *call) {
    if (got != expected) {
        check_fail("%s, expected %d, got %d %s", call, expected, got, cublasGetStatusName(got));
    }
}
#define IS(expected, call) is((expected), (call), #call)
#define OK(call) IS(SUCCESS, call)

static CUstream stream, other;
static CUevent forked, joined;
static CUfunction vector_add;
static handle_t handle;
static lt_handle_t lt_handle;
static desc_t layout, host_product, device_product;
static CUdeviceptr workspace, other_workspace, scalars, dot;
/* Device: a and b are inputs; c, d, e and f results. */
static matrix_t a, b, c, d, e, f;
static float *in, *out;        /* pinned: a and what the graph copies back */
static float b_host[ELEMENTS]; /* what b contains */
static float factors[2];       /* what scalars contain */

static float number(int seed, int at) {
    return (float) ((seed * 7919 + at * 104729) % 5 - 2);
}

static void multiply(const float *left, const float *right, float *result) {
    for (int column = 0; column < N; column++) {
        for (int row = 0; row < N; row++) {
            float sum = 0;
            for (int i = 0; i < N; i++) {
                sum += left[i * N + row] * right[column * N + i];
            }
            result[column * N + row] = sum;
        }
    }
}

static void gemm(const void *alpha, matrix_t left, matrix_t right, const void *beta, matrix_t result) {
    OK(cublasSgemm_v2(handle, OP_N, OP_N, N, N, N, alpha, left, N, right, N, beta, result, N));
}

static void matmul(CUstream where, desc_t desc, const void *alpha, matrix_t left, matrix_t right, const void *beta,
                   matrix_t result) {
    OK(cublasLtMatmul(lt_handle, desc, alpha, left, layout, right, layout, beta, result, layout, result, layout, NULL,
                      other_workspace, WORKSPACE, where));
}

static void *on_device(int at) {
    return (void *) (uintptr_t) (scalars + (size_t) at * sizeof(float));
}

/*
 * The work, in `stream` and `other`:
 *   a = in; c = 0                                    copy and fill
 *   c = factor * a * b                               cuBLAS, a scalar on the host
 *   d = scalars[0] * a * b                           cublasLt, beside it, scalars on the device
 *   e = c + d                                        a kernel
 *   dot = (first column of a) * (first column of b)  cuBLAS, the result on the device
 *   f = scalars[0] * e * b + scalars[1] * e          cuBLAS, after a copy of e
 *   f = f + factor * a * b                           cublasLt, scalars on the host
 *   out = f
 */
static void issue(float factor, int with_dot) {
    float one = 1, zero = 0, alpha = factor;
    int count = ELEMENTS;
    CU_OK(cuMemcpyHtoDAsync(a, in, BYTES, stream));
    CU_OK(cuEventRecord(forked, stream));
    CU_OK(cuStreamWaitEvent(other, forked, 0));
    CU_OK(cuMemsetD32Async(c, 0, ELEMENTS, stream));
    gemm(&alpha, a, b, &one, c);
    matmul(other, device_product, on_device(0), a, b, on_device(2), d);
    CU_OK(cuEventRecord(joined, other));
    CU_OK(cuStreamWaitEvent(stream, joined, 0));
    CHECK_LAUNCH(vector_add, (ELEMENTS + 127) / 128, 128, 0, stream, &c, &d, &e, &count);
    OK(cublasSetPointerMode_v2(handle, DEVICE_POINTERS));
    if (with_dot) {
        OK(cublasSdot_v2(handle, N, a, 1, b, 1, (void *) (uintptr_t) dot));
    }
    CU_OK(cuMemcpyDtoDAsync(f, e, BYTES, stream));
    gemm(on_device(0), e, b, on_device(1), f);
    OK(cublasSetPointerMode_v2(handle, HOST_POINTERS));
    matmul(stream, host_product, &alpha, a, b, &one, f);
    alpha = one = zero = 1e30f; /* read before the calls returned */
    CU_OK(cuMemcpyDtoHAsync(out, f, BYTES, stream));
}

static void fill_inputs(int seed) {
    for (int i = 0; i < ELEMENTS; i++) {
        in[i] = number(seed, i);
    }
    factors[0] = (float) (seed % 3 + 1);
    factors[1] = (float) (seed % 2 - 2);
    CU_OK(cuMemcpyHtoD(scalars, factors, sizeof factors));
    memset(out, 0, BYTES);
    CU_OK(cuMemsetD32(dot, 0, 1));
}

static void check_results(const char *what, float factor, int with_dot) {
    float product[ELEMENTS], sum[ELEMENTS], twice[ELEMENTS], wanted_dot = 0, found_dot;
    CU_OK(cuStreamSynchronize(stream));
    multiply(in, b_host, product);
    for (int i = 0; i < ELEMENTS; i++) {
        sum[i] = (factor + factors[0]) * product[i];
    }
    multiply(sum, b_host, twice);
    for (int i = 0; i < ELEMENTS; i++) {
        float wanted = factors[0] * twice[i] + factors[1] * sum[i] + factor * product[i];
        if (out[i] != wanted) {
            check_fail("%s, element %d, expected %g, got %g", what, i, wanted, out[i]);
        }
    }
    for (int i = 0; with_dot && i < N; i++) {
        wanted_dot += in[i] * b_host[i];
    }
    CU_OK(cuMemcpyDtoH(&found_dot, dot, sizeof found_dot));
    if (found_dot != wanted_dot) {
        check_fail("%s, the number on the device, expected %g, got %g", what, wanted_dot, found_dot);
    }
}

static CUgraph capture(float factor, int with_dot) {
    CUgraph graph;
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    issue(factor, with_dot);
    CU_OK(cuStreamEndCapture(stream, &graph));
    return graph;
}

static void launch_rounds(const char *what, CUgraphExec exec, float factor, int with_dot) {
    for (int round = 0; round < ROUNDS; round++) {
        fill_inputs(round + (int) factor);
        CU_OK(cuGraphLaunch(exec, stream));
        check_results(what, factor, with_dot);
    }
}

/* As a program sees the graph: every node is of a type that natively occurs, and there are kernels for the calls. */
static void check_nodes(CUgraph graph) {
    CUgraphNode nodes[64];
    size_t count = 64, kernels = 0;
    CU_OK(cuGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; i++) {
        CUgraphNodeType type;
        CU_OK(cuGraphNodeGetType(nodes[i], &type));
        check_true("a kernel, copy or fill", type <= CU_GRAPH_NODE_TYPE_MEMSET);
        kernels += type == CU_GRAPH_NODE_TYPE_KERNEL;
    }
    check_true("five calls and a kernel", kernels >= 6);
}

static void check_update(CUgraphExec exec) {
    CUgraphExecUpdateResultInfo info;
    CUgraph same = capture(5, 1), fewer = capture(5, 0);
    CU_OK(cuGraphExecUpdate(exec, same, &info));
    check_equal("an update by the same calls", CU_GRAPH_EXEC_UPDATE_SUCCESS, info.result);
    CU_OK(cuGraphDestroy(same));
    launch_rounds("after an update", exec, 5, 1);
    CU_IS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, fewer, &info));
    check_true("an update by fewer calls", info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS);
    launch_rounds("after a failed update", exec, 5, 1);
    CUgraphExec other_exec;
    CU_OK(cuGraphInstantiate(&other_exec, fewer, 0));
    CU_OK(cuGraphDestroy(fewer));
    launch_rounds("fewer calls", other_exec, 5, 0);
    CU_OK(cuGraphExecDestroy(other_exec));
}

/* The clone and the child graph live longer than the graph that they come from. */
static void check_copies(CUgraph graph) {
    CUgraph clone, outer;
    CUgraphNode node;
    CUgraphExec clone_exec, outer_exec;
    CU_OK(cuGraphClone(&clone, graph));
    CU_OK(cuGraphCreate(&outer, 0));
    CU_OK(cuGraphAddChildGraphNode(&node, outer, NULL, 0, clone));
    CU_OK(cuGraphDestroy(graph));
    CU_OK(cuGraphInstantiate(&clone_exec, clone, 0));
    CU_OK(cuGraphDestroy(clone));
    CU_OK(cuGraphInstantiate(&outer_exec, outer, 0));
    launch_rounds("a clone", clone_exec, 3, 1);
    launch_rounds("a child graph", outer_exec, 3, 1);
    CUgraph replacement = capture(4, 1);
    CU_OK(cuGraphExecChildGraphNodeSetParams(outer_exec, node, replacement));
    CU_OK(cuGraphDestroy(replacement));
    CU_OK(cuGraphDestroy(outer));
    launch_rounds("a child graph with other parameters", outer_exec, 4, 1);
    CU_OK(cuGraphExecDestroy(clone_exec));
    CU_OK(cuGraphExecDestroy(outer_exec));
}

/* A capture into the program's own graph, behind a node that it has made: c = c + a * b, c = 0 before. */
static void check_own_graph(void) {
    const float one = 1;
    CUDA_MEMSET_NODE_PARAMS zero = {.dst = c, .value = 0, .elementSize = 4, .width = ELEMENTS, .height = 1};
    CUcontext context;
    CUgraph graph, ended;
    CUgraphNode filled;
    CUgraphExec exec;
    float found[ELEMENTS], wanted[ELEMENTS];
    CU_OK(cuCtxGetCurrent(&context));
    CU_OK(cuGraphCreate(&graph, 0));
    CU_OK(cuGraphAddMemsetNode(&filled, graph, NULL, 0, &zero, context));
    CU_OK(cuStreamBeginCaptureToGraph(stream, graph, &filled, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    gemm(&one, a, b, &one, c);
    CU_OK(cuStreamEndCapture(stream, &ended));
    check_true("the capture's graph is the program's", ended == graph);
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuGraphDestroy(graph));
    for (int round = 0; round < ROUNDS; round++) {
        fill_inputs(round);
        CU_OK(cuMemcpyHtoD(a, in, BYTES));
        CU_OK(cuGraphLaunch(exec, stream));
        CU_OK(cuStreamSynchronize(stream));
        CU_OK(cuMemcpyDtoH(found, c, BYTES));
        multiply(in, b_host, wanted);
        check_true("a capture into the program's graph", memcmp(found, wanted, BYTES) == 0);
    }
    CU_OK(cuGraphExecDestroy(exec));
}

/* A product in memory that the graph allocates and frees: out = a * b. */
static void check_graph_memory(void) {
    const float one = 1, zero = 0;
    matrix_t own;
    CUgraph graph;
    CUgraphExec exec;
    float wanted[ELEMENTS];
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU_OK(cuMemAllocAsync(&own, BYTES, stream));
    CU_OK(cuMemcpyHtoDAsync(a, in, BYTES, stream));
    gemm(&one, a, b, &zero, own);
    CU_OK(cuMemcpyDtoHAsync(out, own, BYTES, stream));
    CU_OK(cuMemFreeAsync(own, stream));
    CU_OK(cuStreamEndCapture(stream, &graph));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuGraphDestroy(graph));
    for (int round = 0; round < ROUNDS; round++) {
        fill_inputs(round);
        CU_OK(cuGraphLaunch(exec, stream));
        CU_OK(cuStreamSynchronize(stream));
        multiply(in, b_host, wanted);
        check_true("a product in memory of the graph", memcmp(out, wanted, BYTES) == 0);
    }
    CU_OK(cuGraphExecDestroy(exec));
}

/* Sends standard output to nowhere. Returns what it was, for restore_output(). */
static int silence_output(void) {
    fflush(stdout);
    int saved = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
    check_true("no output", saved >= 0 && nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0 && close(nowhere) == 0);
    return saved;
}

static void restore_output(int saved) {
    fflush(stdout);
    check_true("output again", dup2(saved, STDOUT_FILENO) >= 0 && close(saved) == 0);
}

/* A wrong call leaves the capture as it is. A call that must wait for its result cannot be captured. */
static void check_errors(void) {
    const float one = 1;
    float number_here = 0;
    CUgraph graph;
    size_t count;
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    int saved = silence_output(); /* NVIDIA's library prints there what is wrong */
    int status = cublasSgemm_v2(handle, OP_N, OP_N, -1, N, N, &one, a, N, b, N, &one, c, N);
    restore_output(saved);
    IS(INVALID_VALUE, status);
    OK(cublasSgemm_v2(handle, OP_N, OP_N, 0, N, N, &one, a, N, b, N, &one, c, N)); /* nothing to do */
    CU_OK(cuStreamEndCapture(stream, &graph));
    CU_OK(cuGraphGetNodes(graph, NULL, &count));
    check_true("no node of a wrong call, and at most one of an empty product", count <= 1);
    CU_OK(cuGraphDestroy(graph));
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    saved = silence_output();
    status = cublasSdot_v2(handle, N, a, 1, b, 1, &number_here);
    restore_output(saved);
    CUresult ended = cuStreamEndCapture(stream, &graph);
    check_true("a result in the host's memory", status != SUCCESS);
    check_true("the capture after it", ended == CUDA_SUCCESS || ended == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (ended == CUDA_SUCCESS) {
        CU_OK(cuGraphDestroy(graph));
    }
    fill_inputs(1);
    issue(3, 1); /* the handle and the streams are as before */
    check_results("after errors", 3, 1);
}

static void make(void) {
    int on_device_mode = DEVICE_POINTERS;
    const float zero = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        b_host[i] = number(11, i);
    }
    matrix_t *const matrices[] = {&a, &b, &c, &d, &e, &f};
    for (int i = 0; i < 6; i++) {
        *matrices[i] = check_device(b_host, BYTES);
    }
    workspace = check_device(NULL, WORKSPACE);
    other_workspace = check_device(NULL, WORKSPACE);
    scalars = check_device(NULL, 3 * sizeof(float));
    CU_OK(cuMemcpyHtoD(scalars + 2 * sizeof(float), &zero, sizeof zero));
    dot = check_device(NULL, sizeof(float));
    CU_OK(cuMemAllocHost_v2((void **) &in, BYTES));
    CU_OK(cuMemAllocHost_v2((void **) &out, BYTES));
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
    CU_OK(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    vector_add = check_function(check_module("kernels.ptx"), "vector_add");
    OK(cublasSetStream_v2(handle, stream));
    OK(cublasSetWorkspace_v2(handle, workspace, WORKSPACE));
    OK(cublasLtMatrixLayoutCreate(&layout, R_32F, N, N, N));
    OK(cublasLtMatmulDescCreate(&host_product, COMPUTE_32F, R_32F));
    OK(cublasLtMatmulDescCreate(&device_product, COMPUTE_32F, R_32F));
    OK(cublasLtMatmulDescSetAttribute(device_product, DESC_POINTER_MODE, &on_device_mode, sizeof on_device_mode));
}

static void destroy(void) {
    OK(cublasLtMatrixLayoutDestroy(layout));
    OK(cublasLtMatmulDescDestroy(host_product));
    OK(cublasLtMatmulDescDestroy(device_product));
    OK(cublasLtDestroy(lt_handle));
    OK(cublasDestroy_v2(handle));
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuStreamDestroy(other));
    CU_OK(cuEventDestroy(forked));
    CU_OK(cuEventDestroy(joined));
    CU_OK(cuMemFreeHost(in));
    CU_OK(cuMemFreeHost(out));
    const CUdeviceptr memory[] = {a, b, c, d, e, f, workspace, other_workspace, scalars, dot};
    for (int i = 0; i < 10; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    int created = cublasCreate_v2(&handle);
    if (created == NOT_SUPPORTED) {
        check_unsupported("cublasCreate: %s", cublasGetStatusName(created));
    }
    IS(SUCCESS, created);
    OK(cublasLtCreate(&lt_handle));
    make();
    fill_inputs(2);
    issue(2, 1); /* also loads the kernels of the libraries, as programs do before a capture */
    check_results("without a capture", 2, 1);
    CUgraph graph = capture(3, 1);
    CUgraphExec exec;
    check_nodes(graph);
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    launch_rounds("a captured graph", exec, 3, 1);
    check_copies(graph); /* destroys the graph */
    launch_rounds("without the graph", exec, 3, 1);
    check_update(exec);
    check_own_graph();
    check_graph_memory();
    check_errors();
    CU_OK(cuGraphExecDestroy(exec));
    destroy();
    return check_pass("5 captured calls in 2 streams, launched %d times each way", ROUNDS);
}
