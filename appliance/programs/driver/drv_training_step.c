/*
 * Training steps as a framework issues them: a transformer's block with attention, its backward pass and an optimiser.
 * Products come from cuBLAS, with its setters before each call, and from cublasLt, with new descriptors and a new choice
 * of the algorithm for each call. The rest is kernels of the program's own, copies in a second stream, and events. The
 * losses and the parameters are held against the same steps on the processor.
 *
 * The program runs the steps twice, as two processes with different numbers of them. With HAWSER_STATS it reads the
 * synchronous round trips from their statistics, and so counts what a step costs over a network.
 *
 *   drv_training_step [--steps N]   with N: only the steps, in this process
 */
#include "check_driver.h"

#include <dlfcn.h>
#include <math.h>
#include <sys/wait.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 15, OP_N = 0, OP_T = 1, R_32F = 0, COMPUTE_32F = 68 };
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_EPILOGUE = 7, DESC_BIAS_POINTER = 8, BIAS = 4, GELU_BIAS = 36 };
enum { PREF_WORKSPACE = 1, PREF_ALIGN_A = 5, PREF_ALIGN_D = 8, ALIGNMENT = 256 };
#define BATCH 2u
#define LENGTH 8u
#define ROWS (BATCH * LENGTH) /* tokens */
#define WIDTH 16u
#define HIDDEN 32u
#define WORKSPACE (1u << 20)
#define RATE 0.5f
#define FEW_STEPS 3
#define MORE_STEPS 8
#define MAX_ROUND_TRIPS 2 /* of a step, from the second one on */

typedef CUdeviceptr matrix_t; /* C's pointers to device memory */
typedef void *desc_t;
typedef struct result {
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} result_t;

#define DECLARE(name, ...) static int (*name)(__VA_ARGS__)
DECLARE(cublasCreate_v2, void **);
DECLARE(cublasDestroy_v2, void *);
DECLARE(cublasSetStream_v2, void *, CUstream);
DECLARE(cublasSetWorkspace_v2, void *, matrix_t, size_t);
DECLARE(cublasSetMathMode, void *, int);
DECLARE(cublasGemmEx, void *, int, int, int, int, int, const void *, matrix_t, int, int, matrix_t, int, int,
        const void *, matrix_t, int, int, int, int);
DECLARE(cublasGemmStridedBatchedEx, void *, int, int, int, int, int, const void *, matrix_t, int, int, long long,
        matrix_t, int, int, long long, const void *, matrix_t, int, int, long long, int, int, int);
DECLARE(cublasLtCreate, void **);
DECLARE(cublasLtDestroy, void *);
DECLARE(cublasLtMatrixLayoutCreate, desc_t *, int, uint64_t, uint64_t, int64_t);
DECLARE(cublasLtMatrixLayoutDestroy, desc_t);
DECLARE(cublasLtMatmulDescCreate, desc_t *, int, int);
DECLARE(cublasLtMatmulDescDestroy, desc_t);
DECLARE(cublasLtMatmulDescSetAttribute, desc_t, int, const void *, size_t);
DECLARE(cublasLtMatmulPreferenceCreate, desc_t *);
DECLARE(cublasLtMatmulPreferenceDestroy, desc_t);
DECLARE(cublasLtMatmulPreferenceSetAttribute, desc_t, int, const void *, size_t);
DECLARE(cublasLtMatmulAlgoGetHeuristic, void *, desc_t, desc_t, desc_t, desc_t, desc_t, desc_t, int, result_t *, int *);
DECLARE(cublasLtMatmul, void *, desc_t, const void *, matrix_t, desc_t, matrix_t, desc_t, const void *, matrix_t,
        desc_t, matrix_t, desc_t, const void *, matrix_t, size_t, CUstream);

static void *open_library(const char *new_name, const char *old_name) {
    void *opened = dlopen(new_name, RTLD_NOW);
    opened = opened != NULL ? opened : dlopen(old_name, RTLD_NOW);
    if (opened == NULL) {
        check_fail("%s, expected a library, got %s", new_name, dlerror());
    }
    return opened;
}

static void load(void) {
    void *blas = open_library("libcublas.so.13", "libcublas.so.12");
    void *lt = open_library("libcublasLt.so.13", "libcublasLt.so.12");
#define FIND(where, name)                                                                                              \
    *(void **) &name = dlsym(where, #name);                                                                            \
    check_true("the function " #name, name != NULL)
    FIND(blas, cublasCreate_v2);
    FIND(blas, cublasDestroy_v2);
    FIND(blas, cublasSetStream_v2);
    FIND(blas, cublasSetWorkspace_v2);
    FIND(blas, cublasSetMathMode);
    FIND(blas, cublasGemmEx);
    FIND(blas, cublasGemmStridedBatchedEx);
    FIND(lt, cublasLtCreate);
    FIND(lt, cublasLtDestroy);
    FIND(lt, cublasLtMatrixLayoutCreate);
    FIND(lt, cublasLtMatrixLayoutDestroy);
    FIND(lt, cublasLtMatmulDescCreate);
    FIND(lt, cublasLtMatmulDescDestroy);
    FIND(lt, cublasLtMatmulDescSetAttribute);
    FIND(lt, cublasLtMatmulPreferenceCreate);
    FIND(lt, cublasLtMatmulPreferenceDestroy);
    FIND(lt, cublasLtMatmulPreferenceSetAttribute);
    FIND(lt, cublasLtMatmulAlgoGetHeuristic);
    FIND(lt, cublasLtMatmul);
}

#define OK(call) check_equal(#call, SUCCESS, (call))

/* Tensors lie by rows. First the parameters, each with its gradient GRADIENTS further; then what a step computes. */
enum {
    WQ, /* weights of the linear layers: outputs x inputs */
    WK,
    WV,
    WO,
    W1,
    W2,
    BQ,
    BK,
    BV,
    BO,
    B1,
    B2,
    GRADIENTS,
    X = 2 * GRADIENTS, /* the input */
    TARGET,
    Q,
    K,
    V,
    P, /* the attention's probabilities */
    O,
    A,
    Z, /* before GELU */
    H,
    Y,
    DQ,
    DK,
    DV,
    DP,
    DO,
    DA,
    DH,
    DY,
    LOSS,
    TENSORS
};

static unsigned elements_of(int tensor) {
    int kind = tensor < X ? tensor % GRADIENTS : tensor;
    switch (kind) {
        case W1:
        case W2:
            return WIDTH * HIDDEN;
        case B1:
            return HIDDEN;
        case P:
        case DP:
            return BATCH * LENGTH * LENGTH;
        case Z:
        case H:
        case DH:
            return ROWS * HIDDEN;
        case LOSS:
            return 1;
        default:
            return kind < BQ ? WIDTH * WIDTH : kind < GRADIENTS ? WIDTH : ROWS * WIDTH;
    }
}

/* A number from -0.5 to 0.5 that looks random. */
static float number(unsigned seed, unsigned at) {
    unsigned mixed = (seed + 1) * 2654435761u ^ (at + 1) * 2246822519u;
    mixed ^= mixed >> 15;
    mixed *= 2654435761u;
    return (float) (mixed >> 8 & 0xffff) / 65535.0f - 0.5f;
}

static void make_batch(unsigned step, float *x, float *target) {
    for (unsigned i = 0; i < ROWS * WIDTH; i++) {
        x[i] = 2 * number(100 + step, i);
        target[i] = number(200, i);
    }
}

/* ---- the processor ---- */

static float *host[TENSORS];

/* result = left * right, of which each may be transposed; `inner` is the sum's length. */
static void multiply(const float *left, int left_t, const float *right, int right_t, float scale, float *result,
                     unsigned rows, unsigned columns, unsigned inner) {
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned column = 0; column < columns; column++) {
            double sum = 0;
            for (unsigned i = 0; i < inner; i++) {
                sum += (double) left[left_t ? i * rows + row : row * inner + i]
                    * right[right_t ? column * inner + i : i * columns + column];
            }
            result[row * columns + column] = (float) (scale * sum);
        }
    }
}

static double gelu_inner(double x) {
    return sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

static void host_linear(int x, int weight, int y, unsigned inputs, unsigned outputs) {
    multiply(host[x], 0, host[weight], 1, 1, host[y], ROWS, outputs, inputs);
    for (unsigned i = 0; i < ROWS * outputs; i++) {
        host[y][i] += host[weight - WQ + BQ][i % outputs];
    }
}

/* The gradients of a linear layer; dx < 0 for none. */
static void host_linear_backward(int x, int weight, int dy, int dx, unsigned inputs, unsigned outputs) {
    multiply(host[dy], 1, host[x], 0, 1, host[weight + GRADIENTS], outputs, inputs, ROWS);
    float *sums = host[weight - WQ + BQ + GRADIENTS];
    memset(sums, 0, outputs * sizeof *sums);
    for (unsigned i = 0; i < ROWS * outputs; i++) {
        sums[i % outputs] += host[dy][i];
    }
    if (dx >= 0) {
        multiply(host[dy], 0, host[weight], 0, 1, host[dx], ROWS, inputs, outputs);
    }
}

static void host_attention(void) {
    for (unsigned b = 0; b < BATCH; b++) {
        const size_t at = (size_t) b * LENGTH * WIDTH;
        float *p = host[P] + (size_t) b * LENGTH * LENGTH;
        multiply(host[Q] + at, 0, host[K] + at, 1, 1 / sqrtf(WIDTH), p, LENGTH, LENGTH, WIDTH);
        for (unsigned row = 0; row < LENGTH; row++) {
            double sum = 0;
            for (unsigned i = 0; i < LENGTH; i++) {
                sum += exp(p[row * LENGTH + i]);
            }
            for (unsigned i = 0; i < LENGTH; i++) {
                p[row * LENGTH + i] = (float) (exp(p[row * LENGTH + i]) / sum);
            }
        }
        multiply(p, 0, host[V] + at, 0, 1, host[O] + at, LENGTH, WIDTH, LENGTH);
    }
}

static void host_attention_backward(void) {
    for (unsigned b = 0; b < BATCH; b++) {
        const size_t at = (size_t) b * LENGTH * WIDTH;
        const float *p = host[P] + (size_t) b * LENGTH * LENGTH;
        float *dp = host[DP] + (size_t) b * LENGTH * LENGTH;
        multiply(host[DO] + at, 0, host[V] + at, 1, 1, dp, LENGTH, LENGTH, WIDTH);
        multiply(p, 1, host[DO] + at, 0, 1, host[DV] + at, LENGTH, WIDTH, LENGTH);
        for (unsigned row = 0; row < LENGTH; row++) {
            double sum = 0;
            for (unsigned i = row * LENGTH; i < (row + 1) * LENGTH; i++) {
                sum += (double) p[i] * dp[i];
            }
            for (unsigned i = row * LENGTH; i < (row + 1) * LENGTH; i++) {
                dp[i] = (float) (p[i] * (dp[i] - sum) / sqrt(WIDTH));
            }
        }
        multiply(dp, 0, host[K] + at, 0, 1, host[DQ] + at, LENGTH, WIDTH, LENGTH);
        multiply(dp, 1, host[Q] + at, 0, 1, host[DK] + at, LENGTH, WIDTH, LENGTH);
    }
}

static void host_step(unsigned step) {
    make_batch(step, host[X], host[TARGET]);
    host_linear(X, WQ, Q, WIDTH, WIDTH);
    host_linear(X, WK, K, WIDTH, WIDTH);
    host_linear(X, WV, V, WIDTH, WIDTH);
    host_attention();
    host_linear(O, WO, A, WIDTH, WIDTH);
    host_linear(A, W1, Z, WIDTH, HIDDEN);
    for (unsigned i = 0; i < ROWS * HIDDEN; i++) {
        host[H][i] = (float) (0.5 * host[Z][i] * (1 + tanh(gelu_inner(host[Z][i]))));
    }
    host_linear(H, W2, Y, HIDDEN, WIDTH);
    double loss = 0;
    for (unsigned i = 0; i < ROWS * WIDTH; i++) {
        double difference = host[Y][i] - host[TARGET][i];
        loss += difference * difference / (ROWS * WIDTH);
        host[DY][i] = (float) (2 * difference / (ROWS * WIDTH));
    }
    host[LOSS][0] = (float) loss;
    host_linear_backward(H, W2, DY, DH, HIDDEN, WIDTH);
    for (unsigned i = 0; i < ROWS * HIDDEN; i++) {
        double x = host[Z][i], t = tanh(gelu_inner(x));
        double slope = sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
        host[DH][i] *= (float) (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope);
    }
    host_linear_backward(A, W1, DH, DA, WIDTH, HIDDEN);
    host_linear_backward(O, WO, DA, DO, WIDTH, WIDTH);
    host_attention_backward();
    host_linear_backward(X, WQ, DQ, -1, WIDTH, WIDTH);
    host_linear_backward(X, WK, DK, -1, WIDTH, WIDTH);
    host_linear_backward(X, WV, DV, -1, WIDTH, WIDTH);
    for (int parameter = 0; parameter < GRADIENTS; parameter++) {
        for (unsigned i = 0; i < elements_of(parameter); i++) {
            host[parameter][i] -= RATE * host[parameter + GRADIENTS][i];
        }
    }
}

/* ---- the GPU ---- */

static matrix_t device[TENSORS], workspace;
static void *blas_handle, *lt_handle;
static CUstream stream, copies;
static CUevent copied, computed;
static CUfunction softmax, softmax_backward, difference, squares, gelu_backward, column_sums, descend;
static const float one = 1, zero = 0;

#define LAUNCH(function, threads, ...)                                                                                 \
    do {                                                                                                               \
        void *arguments[] = {__VA_ARGS__};                                                                             \
        CU_OK(cuLaunchKernel(function, ((threads) + 63) / 64, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));            \
    } while (0)

/* PyTorch sets all three before each product. */
static void set_handle(void) {
    OK(cublasSetStream_v2(blas_handle, stream));
    OK(cublasSetWorkspace_v2(blas_handle, workspace, WORKSPACE));
    OK(cublasSetMathMode(blas_handle, 0));
}

/* By columns, as cuBLAS takes them: c (m x n) = op(a) * op(b). */
static void gemm(int opa, int opb, unsigned m, unsigned n, unsigned k, int a, unsigned lda, int b, unsigned ldb,
                 int c) {
    set_handle();
    OK(cublasGemmEx(blas_handle, opa, opb, (int) m, (int) n, (int) k, &one, device[a], R_32F, (int) lda, device[b],
                    R_32F, (int) ldb, &zero, device[c], R_32F, (int) m, COMPUTE_32F, -1));
}

static void gemm_batched(int opa, int opb, unsigned m, unsigned n, unsigned k, float scale, int a, unsigned lda, int b,
                         unsigned ldb, int c) {
    set_handle();
    OK(cublasGemmStridedBatchedEx(blas_handle, opa, opb, (int) m, (int) n, (int) k, &scale, device[a], R_32F, (int) lda,
                                  LENGTH * lda, device[b], R_32F, (int) ldb, LENGTH * ldb, &zero, device[c], R_32F,
                                  (int) m, (long long) m * n, (int) BATCH, COMPUTE_32F, -1));
}

/* y = x * weight (transposed) + bias, with a function behind it. All descriptors are new, as in PyTorch. */
static void linear(int x, int weight, int y, unsigned inputs, unsigned outputs, int epilogue) {
    desc_t product, a, b, c, preference;
    const int transposed = OP_T, plain = OP_N;
    const size_t bytes = WORKSPACE;
    const unsigned alignment = ALIGNMENT;
    result_t found;
    int count = 0;
    OK(cublasLtMatmulDescCreate(&product, COMPUTE_32F, R_32F));
    OK(cublasLtMatmulDescSetAttribute(product, DESC_TRANSA, &transposed, sizeof transposed));
    OK(cublasLtMatmulDescSetAttribute(product, DESC_TRANSB, &plain, sizeof plain));
    OK(cublasLtMatmulDescSetAttribute(product, DESC_EPILOGUE, &epilogue, sizeof epilogue));
    OK(cublasLtMatmulDescSetAttribute(product, DESC_BIAS_POINTER, &device[weight - WQ + BQ], sizeof(matrix_t)));
    OK(cublasLtMatrixLayoutCreate(&a, R_32F, inputs, outputs, inputs));
    OK(cublasLtMatrixLayoutCreate(&b, R_32F, inputs, ROWS, inputs));
    OK(cublasLtMatrixLayoutCreate(&c, R_32F, outputs, ROWS, outputs));
    OK(cublasLtMatmulPreferenceCreate(&preference));
    OK(cublasLtMatmulPreferenceSetAttribute(preference, PREF_WORKSPACE, &bytes, sizeof bytes));
    for (int matrix = PREF_ALIGN_A; matrix <= PREF_ALIGN_D; matrix++) {
        OK(cublasLtMatmulPreferenceSetAttribute(preference, matrix, &alignment, sizeof alignment));
    }
    OK(cublasLtMatmulAlgoGetHeuristic(lt_handle, product, a, b, c, c, preference, 1, &found, &count));
    check_equal("algorithms", 1, count);
    OK(cublasLtMatmul(lt_handle, product, &one, device[weight], a, device[x], b, &zero, device[y], c, device[y], c,
                      found.algo, workspace, WORKSPACE, stream));
    OK(cublasLtMatmulPreferenceDestroy(preference));
    OK(cublasLtMatrixLayoutDestroy(c));
    OK(cublasLtMatrixLayoutDestroy(b));
    OK(cublasLtMatrixLayoutDestroy(a));
    OK(cublasLtMatmulDescDestroy(product));
}

static void linear_backward(int x, int weight, int dy, int dx, unsigned inputs, unsigned outputs) {
    unsigned rows = ROWS;
    gemm(OP_N, OP_T, inputs, outputs, ROWS, x, inputs, dy, outputs, weight + GRADIENTS);
    LAUNCH(column_sums, outputs, &device[dy], &device[weight - WQ + BQ + GRADIENTS], &rows, &outputs);
    if (dx >= 0) {
        gemm(OP_N, OP_N, inputs, ROWS, outputs, weight, inputs, dy, outputs, dx);
    }
}

/* The work of a step up to the copy of its loss. `in` holds the input and the target. */
static void issue_step(const float *in, float *loss) {
    unsigned rows = ROWS, length = LENGTH, count = ROWS * WIDTH, hidden = ROWS * HIDDEN;
    float root = 1 / sqrtf(WIDTH), slope = 2.0f / (ROWS * WIDTH), mean = ROWS * WIDTH / 4.0f, rate = RATE;
    CU_OK(cuStreamWaitEvent(copies, computed, 0)); /* the last step has read its input */
    CU_OK(cuMemcpyHtoDAsync(device[X], in, count * sizeof *in, copies));
    CU_OK(cuMemcpyHtoDAsync(device[TARGET], in + count, count * sizeof *in, copies));
    CU_OK(cuEventRecord(copied, copies));
    CU_OK(cuStreamWaitEvent(stream, copied, 0));
    linear(X, WQ, Q, WIDTH, WIDTH, BIAS);
    linear(X, WK, K, WIDTH, WIDTH, BIAS);
    linear(X, WV, V, WIDTH, WIDTH, BIAS);
    gemm_batched(OP_T, OP_N, LENGTH, LENGTH, WIDTH, root, K, WIDTH, Q, WIDTH, P);
    LAUNCH(softmax, rows, &device[P], &rows, &length);
    gemm_batched(OP_N, OP_N, WIDTH, LENGTH, LENGTH, 1, V, WIDTH, P, LENGTH, O);
    linear(O, WO, A, WIDTH, WIDTH, BIAS);
    linear(A, W1, Z, WIDTH, HIDDEN, BIAS);
    linear(A, W1, H, WIDTH, HIDDEN, GELU_BIAS);
    linear(H, W2, Y, HIDDEN, WIDTH, BIAS);
    LAUNCH(difference, count, &device[Y], &device[TARGET], &device[DY], &count, &slope);
    LAUNCH(squares, 1, &device[DY], &device[LOSS], &count, &mean);
    linear_backward(H, W2, DY, DH, HIDDEN, WIDTH);
    LAUNCH(gelu_backward, hidden, &device[Z], &device[DH], &hidden);
    linear_backward(A, W1, DH, DA, WIDTH, HIDDEN);
    linear_backward(O, WO, DA, DO, WIDTH, WIDTH);
    gemm_batched(OP_T, OP_N, LENGTH, LENGTH, WIDTH, 1, V, WIDTH, DO, WIDTH, DP);
    gemm_batched(OP_N, OP_T, WIDTH, LENGTH, LENGTH, 1, DO, WIDTH, P, LENGTH, DV);
    LAUNCH(softmax_backward, rows, &device[P], &device[DP], &rows, &length, &root);
    gemm_batched(OP_N, OP_N, WIDTH, LENGTH, LENGTH, 1, K, WIDTH, DP, LENGTH, DQ);
    gemm_batched(OP_N, OP_T, WIDTH, LENGTH, LENGTH, 1, Q, WIDTH, DP, LENGTH, DK);
    linear_backward(X, WQ, DQ, -1, WIDTH, WIDTH);
    linear_backward(X, WK, DK, -1, WIDTH, WIDTH);
    linear_backward(X, WV, DV, -1, WIDTH, WIDTH);
    for (int parameter = 0; parameter < GRADIENTS; parameter++) {
        unsigned all = elements_of(parameter);
        LAUNCH(descend, all, &device[parameter], &device[parameter + GRADIENTS], &all, &rate);
    }
    CU_OK(cuMemcpyDtoHAsync(loss, device[LOSS], sizeof *loss, stream));
    CU_OK(cuEventRecord(computed, stream));
}

static void set_up(void) {
    check_context();
    load();
    int created = cublasCreate_v2(&blas_handle);
    if (created == NOT_SUPPORTED) {
        check_unsupported("no cuBLAS at the other end");
    }
    check_equal("cublasCreate", SUCCESS, created);
    OK(cublasLtCreate(&lt_handle));
    CUmodule module = check_module("training.ptx");
    softmax = check_function(module, "softmax");
    softmax_backward = check_function(module, "softmax_backward");
    difference = check_function(module, "difference");
    squares = check_function(module, "squares");
    gelu_backward = check_function(module, "gelu_backward");
    column_sums = check_function(module, "column_sums");
    descend = check_function(module, "descend");
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&copied, CU_EVENT_DISABLE_TIMING));
    CU_OK(cuEventCreate(&computed, CU_EVENT_DISABLE_TIMING));
    CU_OK(cuMemAlloc(&workspace, WORKSPACE));
    for (int tensor = 0; tensor < TENSORS; tensor++) {
        host[tensor] = check_memory(elements_of(tensor) * sizeof(float));
        for (unsigned i = 0; i < elements_of(tensor); i++) {
            host[tensor][i] = tensor < GRADIENTS ? number((unsigned) tensor, i) : 0;
        }
        device[tensor] = check_device(host[tensor], elements_of(tensor) * sizeof(float));
    }
}

static int run_steps(unsigned steps) {
    float *in, *loss, first = 0;
    set_up();
    CU_OK(cuMemHostAlloc((void **) &in, 2 * ROWS * WIDTH * sizeof *in, 0));
    CU_OK(cuMemHostAlloc((void **) &loss, sizeof *loss, 0));
    for (unsigned step = 0; step < steps; step++) {
        make_batch(step, in, in + ROWS * WIDTH);
        issue_step(in, loss);
        CU_OK(cuStreamSynchronize(stream));
        host_step(step);
        check_near("loss of step", step, host[LOSS][0], *loss, 1e-4 * host[LOSS][0]);
        first = step == 0 ? *loss : first;
    }
    check_true("the loss falls", *loss < first);
    for (int parameter = 0; parameter < GRADIENTS; parameter++) {
        float *got = check_memory(elements_of(parameter) * sizeof *got);
        CU_OK(cuMemcpyDtoH(got, device[parameter], elements_of(parameter) * sizeof *got));
        for (unsigned i = 0; i < elements_of(parameter); i++) {
            check_near("parameter", (long long) parameter * 10000 + i, host[parameter][i], got[i], 1e-4);
        }
        free(got);
    }
    OK(cublasLtDestroy(lt_handle));
    OK(cublasDestroy_v2(blas_handle));
    return check_pass("%u steps, loss %.4f after %.4f", steps, (double) *loss, (double) first);
}

/* ---- the number of round trips ---- */

/* Runs the steps in a process of their own. */
static void run_apart(unsigned steps) {
    char number_of_steps[16];
    snprintf(number_of_steps, sizeof number_of_steps, "%u", steps);
    fflush(stdout);
    pid_t child = fork();
    check_true("another process", child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", check_argv[0], "--steps", number_of_steps, (char *) NULL);
        _exit(127);
    }
    int status = 0;
    check_true("its end", waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) != 0) {
        exit(WEXITSTATUS(status)); /* it has printed why */
    }
}

/* Returns the round trips that the steps append to the file of statistics; 0 without such a file, as natively. */
static long round_trips_of(unsigned steps, const char *statistics) {
    static const char key[] = "\"round_trips\":";
    char line[4096];
    if (statistics == NULL) {
        run_apart(steps);
        return 0;
    }
    FILE *file = fopen(statistics, "a+");
    check_true("the file of statistics", file != NULL && fseek(file, 0, SEEK_END) == 0);
    long end = ftell(file), sum = -1;
    run_apart(steps);
    check_true("its statistics", fseek(file, end, SEEK_SET) == 0);
    while (fgets(line, sizeof line, file) != NULL) {
        const char *found = strstr(line, key);
        if (found != NULL) {
            sum = (sum < 0 ? 0 : sum) + strtol(found + sizeof key - 1, NULL, 10);
        }
    }
    fclose(file);
    check_true("round trips in the statistics", sum >= 0);
    return sum;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    unsigned steps = (unsigned) check_option("--steps", 0);
    const char *statistics = getenv("HAWSER_STATS");
    if (steps > 0) {
        return run_steps(steps);
    }
    long few = round_trips_of(FEW_STEPS, statistics), all = round_trips_of(FEW_STEPS + MORE_STEPS, statistics);
    if (statistics != NULL) {
        check_measured("%.2f round trips a step", (double) (all - few) / MORE_STEPS);
    }
    if (all - few > MAX_ROUND_TRIPS * MORE_STEPS) {
        check_fail("round trips of %d steps, expected at most %d, got %ld", MORE_STEPS, MAX_ROUND_TRIPS * MORE_STEPS,
                   all - few);
    }
    return check_pass("%d and %d steps", FEW_STEPS, FEW_STEPS + MORE_STEPS);
}
