/*
 * cuBLAS beside the Driver API: products of matrices in every type and layout that BLAS has, held against sums that
 * the program computes; scalars on host and device; streams, wrong arguments, and calls of one shape in a row. The
 * functions are found by name. Without a cuBLAS at the other end cublasCreate returns CUBLAS_STATUS_NOT_SUPPORTED.
 */
#include "check_driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { OP_N = 0, OP_T = 1, OP_C = 2 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, R_16BF = 14 };
enum { COMPUTE_32F = 68, ALGO_DEFAULT = -1, HOST_POINTERS = 0, DEVICE_POINTERS = 1 };
#define M 37
#define N 29
#define K 23
#define LD 41 /* over every dimension: columns are padded */
#define BATCH 3
#define STRIDE (LD * LD)
#define REPEATS 200

typedef struct cublasContext *handle_t;
typedef CUdeviceptr matrix_t; /* C's pointers to device memory */

static void *library;

static void *find(const char *name) {
    void *function = dlsym(library, name);
    if (function == NULL) {
        check_fail("the function %s, expected its address, got none", name);
    }
    return function;
}

#define DECLARE(result, name, ...) static result (*name)(__VA_ARGS__)
DECLARE(int, cublasCreate_v2, handle_t *);
DECLARE(int, cublasDestroy_v2, handle_t);
DECLARE(int, cublasSetStream_v2, handle_t, CUstream);
DECLARE(int, cublasGetStream_v2, handle_t, CUstream *);
DECLARE(int, cublasSetPointerMode_v2, handle_t, int);
DECLARE(int, cublasGetPointerMode_v2, handle_t, int *);
DECLARE(int, cublasSetWorkspace_v2, handle_t, matrix_t, size_t);
DECLARE(int, cublasGetVersion_v2, handle_t, int *);
DECLARE(int, cublasGetProperty, int, int *);
DECLARE(const char *, cublasGetStatusName, int);
#define GEMM_PARAMETERS                                                                                                \
    handle_t, int, int, int, int, int, const void *, matrix_t, int, matrix_t, int, const void *, matrix_t, int
#define STRIDED_PARAMETERS                                                                                             \
    handle_t, int, int, int, int, int, const void *, matrix_t, int, long long, matrix_t, int, long long, const void *, \
        matrix_t, int, long long, int
DECLARE(int, cublasSgemm_v2, GEMM_PARAMETERS);
DECLARE(int, cublasDgemm_v2, GEMM_PARAMETERS);
DECLARE(int, cublasCgemm_v2, GEMM_PARAMETERS);
DECLARE(int, cublasZgemm_v2, GEMM_PARAMETERS);
DECLARE(int, cublasSgemmStridedBatched, STRIDED_PARAMETERS);
DECLARE(int, cublasSgemm_v2_64, handle_t, int, int, int64_t, int64_t, int64_t, const void *, matrix_t, int64_t,
        matrix_t, int64_t, const void *, matrix_t, int64_t);
DECLARE(int, cublasGemmEx, handle_t, int, int, int, int, int, const void *, matrix_t, int, int, matrix_t, int, int,
        const void *, matrix_t, int, int, int, int);

static void load(void) {
    library = dlopen("libcublas.so.13", RTLD_NOW);
    library = library != NULL ? library : dlopen("libcublas.so.12", RTLD_NOW);
    if (library == NULL) {
        check_fail("libcublas.so.13, expected a library, got %s", dlerror());
    }
#define FIND(name) *(void **) &name = find(#name)
    FIND(cublasCreate_v2);
    FIND(cublasDestroy_v2);
    FIND(cublasSetStream_v2);
    FIND(cublasGetStream_v2);
    FIND(cublasSetPointerMode_v2);
    FIND(cublasGetPointerMode_v2);
    FIND(cublasSetWorkspace_v2);
    FIND(cublasGetVersion_v2);
    FIND(cublasGetProperty);
    FIND(cublasGetStatusName);
    FIND(cublasSgemm_v2);
    FIND(cublasDgemm_v2);
    FIND(cublasCgemm_v2);
    FIND(cublasZgemm_v2);
    FIND(cublasSgemmStridedBatched);
    FIND(cublasSgemm_v2_64);
    FIND(cublasGemmEx);
}

static void is(int expected, int got, const char *call) {
    if (got != expected) {
        check_fail("%s, expected %d, got %d %s", call, expected, got, cublasGetStatusName(got));
    }
}
#define IS(expected, call) is((expected), (call), #call)
#define OK(call) IS(SUCCESS, call)

/* Whole numbers, so that every order of additions gives the same sum. */
static double number(int seed, int at) {
    return (double) ((seed * 7919 + at * 104729) % 13 - 6);
}

/* Element types: bytes, whether complex, and the way to a double and back. */
typedef struct type {
    const char *name;
    size_t bytes;
    int is_complex, code;
} type_t;
static const type_t S = {"S", 4, 0, R_32F}, D = {"D", 8, 0, R_64F}, C = {"C", 8, 1, C_32F}, Z = {"Z", 16, 1, 5};
static const type_t H = {"half", 2, 0, R_16F}, B = {"bfloat16", 2, 0, R_16BF};

/* Small whole numbers in 16 bits are exact in both short types. */
static uint16_t narrow(const type_t *type, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type->code == R_16BF) {
        return (uint16_t) (bits >> 16);
    }
    if (value == 0) {
        return 0;
    }
    int exponent = (int) (bits >> 23 & 0xff) - 127 + 15;
    return (uint16_t) (bits >> 16 & 0x8000) | (uint16_t) (exponent << 10) | (uint16_t) (bits >> 13 & 0x3ff);
}

static float widen(const type_t *type, uint16_t bits) {
    uint32_t wide = type->code == R_16BF ? (uint32_t) bits << 16
        : (bits & 0x7fff) == 0           ? 0
                               : (uint32_t) (bits & 0x8000) << 16 | (uint32_t) ((bits >> 10 & 0x1f) + 127 - 15) << 23
            | (uint32_t) (bits & 0x3ff) << 13;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static void put(const type_t *type, void *base, int at, double re, double im) {
    if (type->bytes == 2) {
        ((uint16_t *) base)[at] = narrow(type, (float) re);
    } else if (type->code == R_32F || type->code == C_32F) {
        float *element = (float *) base + at * (type->is_complex + 1);
        element[0] = (float) re;
        element[type->is_complex] = type->is_complex ? (float) im : (float) re;
    } else {
        double *element = (double *) base + at * (type->is_complex + 1);
        element[0] = re;
        element[type->is_complex] = type->is_complex ? im : re;
    }
}

static void get(const type_t *type, const void *base, int at, double *re, double *im) {
    *im = 0;
    if (type->bytes == 2) {
        *re = widen(type, ((const uint16_t *) base)[at]);
    } else if (type->code == R_32F || type->code == C_32F) {
        *re = ((const float *) base)[at * (type->is_complex + 1)];
        *im = type->is_complex ? ((const float *) base)[at * 2 + 1] : 0;
    } else {
        *re = ((const double *) base)[at * (type->is_complex + 1)];
        *im = type->is_complex ? ((const double *) base)[at * 2 + 1] : 0;
    }
}

static matrix_t fill(const type_t *type, int seed, int count) {
    char *host = check_memory((size_t) count * type->bytes);
    for (int i = 0; i < count; i++) {
        put(type, host, i, number(seed, i), number(seed + 1, i));
    }
    matrix_t device = check_device(host, (size_t) count * type->bytes);
    free(host);
    return device;
}

/* Element (row, column) of op(X), where X has the numbers of a seed. */
static void element(const type_t *type, int seed, int op, int row, int column, int offset, double *re, double *im) {
    int at = offset + (op == OP_N ? column * LD + row : row * LD + column);
    *re = number(seed, at);
    *im = type->is_complex ? number(seed + 1, at) : 0;
    *im = op == OP_C ? -*im : *im;
}

/* Compares a result with alpha * op(A) * op(B) + beta * C, alpha = 2 and beta = -1. Padding must stay. */
static void compare(const type_t *type, const type_t *result_type, matrix_t result, int opa, int opb, int offset,
                    const char *what) {
    char *host = check_memory(STRIDE * result_type->bytes);
    CU_OK(cuMemcpyDtoH(host, result + (size_t) offset * result_type->bytes, STRIDE * result_type->bytes));
    for (int column = 0; column < N; column++) {
        for (int row = 0; row < LD; row++) {
            int at = column * LD + row;
            double wanted_re = number(5, offset + at), wanted_im = result_type->is_complex ? number(6, offset + at) : 0;
            if (row < M) {
                double sum_re = 0, sum_im = 0;
                for (int i = 0; i < K; i++) {
                    double a, ai, b, bi;
                    element(type, 1, opa, row, i, offset, &a, &ai);
                    element(type, 3, opb, i, column, offset, &b, &bi);
                    sum_re += a * b - ai * bi;
                    sum_im += a * bi + ai * b;
                }
                wanted_re = 2 * sum_re - wanted_re;
                wanted_im = 2 * sum_im - wanted_im;
            }
            double re, im;
            get(result_type, host, at, &re, &im);
            /* A sum beyond 2^8 rounds in bfloat16, beyond 2^11 in half. */
            double error = result_type->bytes == 2 ? fabs(wanted_re) / (result_type->code == R_16BF ? 256 : 2048) : 0;
            if (fabs(re - wanted_re) > error || fabs(im - wanted_im) > error) {
                check_fail("%s of %s, op %d %d, row %d, column %d, expected %g%+gi, got %g%+gi", what, type->name, opa,
                           opb, row, column, wanted_re, wanted_im, re, im);
            }
        }
    }
    free(host);
}

static void scalars(const type_t *type, void *alpha, void *beta) {
    put(type, alpha, 0, 2, 0);
    put(type, beta, 0, -1, 0);
}

static void check_gemm(handle_t handle, const type_t *type, int (*gemm)(GEMM_PARAMETERS)) {
    char alpha[16], beta[16];
    scalars(type, alpha, beta);
    for (int opa = OP_N; opa <= OP_C; opa++) {
        for (int opb = OP_N; opb <= OP_C; opb++) {
            matrix_t a = fill(type, 1, STRIDE), b = fill(type, 3, STRIDE), c = fill(type, 5, STRIDE);
            OK(gemm(handle, opa, opb, M, N, K, alpha, a, LD, b, LD, beta, c, LD));
            compare(type, type, c, opa, opb, 0, "gemm");
            CU_OK(cuMemFree(a));
            CU_OK(cuMemFree(b));
            CU_OK(cuMemFree(c));
        }
    }
}

/* The device's scalars are read when the product runs, not when it is called. */
static void check_device_scalars(handle_t handle) {
    float host[2] = {2, -1};
    CUdeviceptr device = check_device(host, sizeof host);
    matrix_t a = fill(&S, 1, STRIDE), b = fill(&S, 3, STRIDE), c = fill(&S, 5, STRIDE);
    int mode = -1;
    OK(cublasSetPointerMode_v2(handle, DEVICE_POINTERS));
    OK(cublasGetPointerMode_v2(handle, &mode));
    IS(DEVICE_POINTERS, mode);
    OK(cublasSgemm_v2(handle, OP_N, OP_T, M, N, K, (void *) (uintptr_t) device, a, LD, b, LD,
                      (void *) (uintptr_t) (device + sizeof(float)), c, LD));
    compare(&S, &S, c, OP_N, OP_T, 0, "scalars on the device");
    OK(cublasSetPointerMode_v2(handle, HOST_POINTERS));
    CU_OK(cuMemFree(device));
    CU_OK(cuMemFree(a));
    CU_OK(cuMemFree(b));
    CU_OK(cuMemFree(c));
}

static void check_batched(handle_t handle) {
    const float alpha = 2, beta = -1;
    matrix_t a = fill(&S, 1, BATCH * STRIDE), b = fill(&S, 3, BATCH * STRIDE), c = fill(&S, 5, BATCH * STRIDE);
    OK(cublasSgemmStridedBatched(handle, OP_N, OP_N, M, N, K, &alpha, a, LD, STRIDE, b, LD, STRIDE, &beta, c, LD,
                                 STRIDE, BATCH));
    for (int i = 0; i < BATCH; i++) {
        compare(&S, &S, c, OP_N, OP_N, i * STRIDE, "a batch");
    }
    CU_OK(cuMemFree(a));
    CU_OK(cuMemFree(b));
    CU_OK(cuMemFree(c));
}

static void check_types(handle_t handle) {
    const type_t *const types[] = {&S, &H, &B};
    const float alpha = 2, beta = -1;
    for (int i = 0; i < 3; i++) {
        for (int wide = 0; wide < 2; wide++) {
            const type_t *type = types[i], *result = wide ? &S : type;
            matrix_t a = fill(type, 1, STRIDE), b = fill(type, 3, STRIDE), c = fill(result, 5, STRIDE);
            OK(cublasGemmEx(handle, OP_T, OP_N, M, N, K, &alpha, a, type->code, LD, b, type->code, LD, &beta, c,
                            result->code, LD, COMPUTE_32F, ALGO_DEFAULT));
            compare(type, result, c, OP_T, OP_N, 0, "GemmEx");
            CU_OK(cuMemFree(a));
            CU_OK(cuMemFree(b));
            CU_OK(cuMemFree(c));
        }
    }
}

/* Products in a row in a stream of their own, in order: C is multiplied by two in each. The scalars change at once. */
static void check_stream(handle_t handle) {
    CUstream stream, same = NULL;
    CU_OK(cuStreamCreate(&stream, 0)); /* copies of the default stream come first */
    OK(cublasSetStream_v2(handle, stream));
    OK(cublasGetStream_v2(handle, &same));
    if (same != stream) {
        check_fail("cublasGetStream, expected the stream, got %p", (void *) same);
    }
    CUdeviceptr workspace;
    CU_OK(cuMemAlloc(&workspace, 4 << 20));
    OK(cublasSetWorkspace_v2(handle, workspace, 4 << 20));
    matrix_t a = fill(&S, 1, STRIDE), b = fill(&S, 3, STRIDE), c = fill(&S, 5, STRIDE);
    float alpha = 0, beta = 1;
    for (int i = 0; i < REPEATS; i++) {
        beta = i % 2 == 0 ? 2 : 0.5f;
        OK(cublasSgemm_v2(handle, OP_N, OP_N, M, N, K, &alpha, a, LD, b, LD, &beta, c, LD));
        beta = 1e30f; /* read before the call returned */
    }
    alpha = 2;
    beta = -1;
    OK(cublasSgemm_v2_64(handle, OP_N, OP_N, M, N, K, &alpha, a, LD, b, LD, &beta, c, LD));
    CU_OK(cuStreamSynchronize(stream));
    compare(&S, &S, c, OP_N, OP_N, 0, "a stream");
    OK(cublasSetStream_v2(handle, NULL));
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(a));
    CU_OK(cuMemFree(b));
    CU_OK(cuMemFree(c));
    CU_OK(cuMemFree(workspace));
}

/* Sends standard output to nowhere. Returns what it was, for restore_output(). */
static int silence_output(void) {
    fflush(stdout);
    int out = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
    check_true("no output", out >= 0 && nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0 && close(nowhere) == 0);
    return out;
}

static void restore_output(int out) {
    fflush(stdout);
    check_true("output again", dup2(out, STDOUT_FILENO) >= 0 && close(out) == 0);
}

static void check_errors(handle_t handle) {
    const float one = 1;
    matrix_t a = fill(&S, 1, STRIDE);
    IS(NOT_INITIALIZED, cublasSgemm_v2(NULL, OP_N, OP_N, M, N, K, &one, a, LD, a, LD, &one, a, LD));
    int out = silence_output(); /* NVIDIA's library prints there what is wrong */
    IS(INVALID_VALUE, cublasSgemm_v2(handle, OP_N, OP_N, -1, N, K, &one, a, LD, a, LD, &one, a, LD));
    IS(INVALID_VALUE, cublasSgemm_v2(handle, OP_N, OP_N, M, N, K, &one, a, M - 1, a, LD, &one, a, LD));
    IS(INVALID_VALUE, cublasSgemm_v2(handle, OP_N, OP_N, M, N, K, NULL, a, LD, a, LD, &one, a, LD));
    restore_output(out);
    OK(cublasSgemm_v2(handle, OP_N, OP_N, 0, N, K, &one, a, LD, a, LD, &one, a, LD));
    IS(NOT_INITIALIZED, cublasSetStream_v2(NULL, NULL));
    CU_OK(cuMemFree(a));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    handle_t handle = NULL;
    int created = cublasCreate_v2(&handle);
    if (created == NOT_SUPPORTED) {
        check_unsupported("cublasCreate: %s", cublasGetStatusName(created));
    }
    IS(SUCCESS, created);
    int version = 0, major = 0;
    OK(cublasGetVersion_v2(NULL, &version)); /* as JAX asks */
    OK(cublasGetVersion_v2(handle, &version));
    OK(cublasGetProperty(0, &major));
    if (version / 10000 != major || major < 12) {
        check_fail("the version, expected that of cublasGetProperty, got %d and %d", version, major);
    }
    check_gemm(handle, &S, cublasSgemm_v2);
    check_gemm(handle, &D, cublasDgemm_v2);
    check_gemm(handle, &C, cublasCgemm_v2);
    check_gemm(handle, &Z, cublasZgemm_v2);
    check_device_scalars(handle);
    check_batched(handle);
    check_types(handle);
    check_stream(handle);
    check_errors(handle);
    OK(cublasDestroy_v2(handle));
    return check_pass("4 types, 9 layouts, GemmEx of 3 types, %d products in a stream", REPEATS);
}
