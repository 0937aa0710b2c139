/*
 * cublasLt beside the Driver API: products in every type, order and operation, held against sums that the program
 * computes; epilogues, strided batches, scalars on the device, transforms, algorithms, descriptors on the stack, wrong
 * calls, and calls of one shape in a row. The functions are found by name. Without a cublasLt at the other end
 * cublasLtCreate returns CUBLAS_STATUS_NOT_SUPPORTED.
 */
#include "check_driver.h"

#include <dlfcn.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { OP_N = 0, OP_T = 1, OP_C = 2 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, HOST_POINTERS = 0, DEVICE_POINTERS = 1 };
enum { ORDER_COL = 0, ORDER_ROW = 1 };
enum { LAYOUT_TYPE, LAYOUT_ORDER, LAYOUT_ROWS, LAYOUT_COLS, LAYOUT_LD, LAYOUT_BATCH_COUNT, LAYOUT_BATCH_STRIDE };
enum {
    DESC_COMPUTE_TYPE = 0,
    DESC_POINTER_MODE = 2,
    DESC_TRANSA = 3,
    DESC_TRANSB = 4,
    DESC_EPILOGUE = 7,
    DESC_BIAS_POINTER = 8,
    DESC_BIAS_BATCH_STRIDE = 10,
    DESC_AUX_DATA_TYPE = 22,
    DESC_FAST_ACCUM = 25
};
enum { TRANSFORM_TRANSA = 2 };
enum { PREF_WORKSPACE = 1, PREF_REDUCTION = 3, PREF_ALIGN_A = 5, PREF_IMPL_MASK = 12 };
enum { EPILOGUE_DEFAULT = 1, RELU = 2, BIAS = 4, GELU = 32 };
enum { CAP_STRIDED_BATCH = 3, CONFIG_ID = 0, CONFIG_SPLITK = 2 };
#define M 37
#define N 29
#define K 23
#define LD 41 /* over every dimension: columns and rows are padded */
#define BATCH 3
#define STRIDE (LD * LD)
#define REPEATS 200
#define WORKSPACE (4u << 20)

typedef struct cublasLtContext *handle_t;
typedef CUdeviceptr matrix_t; /* C's pointers to device memory */
typedef void *desc_t;
typedef struct algo {
    uint64_t data[8];
} algo_t;
typedef struct result {
    algo_t algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} result_t;

static void *library, *blas;

#define DECLARE(result, name, ...) static result (*name)(__VA_ARGS__)
DECLARE(int, cublasCreate_v2, void **);
DECLARE(int, cublasDestroy_v2, void *);
DECLARE(int, cublasLtCreate, handle_t *);
DECLARE(int, cublasLtDestroy, handle_t);
DECLARE(size_t, cublasLtGetVersion, void);
DECLARE(int, cublasLtGetProperty, int, int *);
DECLARE(const char *, cublasLtGetStatusName, int);
DECLARE(int, cublasLtMatrixLayoutCreate, desc_t *, int, uint64_t, uint64_t, int64_t);
DECLARE(int, cublasLtMatrixLayoutInit_internal, desc_t, size_t, int, uint64_t, uint64_t, int64_t);
DECLARE(int, cublasLtMatrixLayoutDestroy, desc_t);
DECLARE(int, cublasLtMatrixLayoutSetAttribute, desc_t, int, const void *, size_t);
DECLARE(int, cublasLtMatrixLayoutGetAttribute, desc_t, int, void *, size_t, size_t *);
DECLARE(int, cublasLtMatmulDescCreate, desc_t *, int, int);
DECLARE(int, cublasLtMatmulDescInit_internal, desc_t, size_t, int, int);
DECLARE(int, cublasLtMatmulDescDestroy, desc_t);
DECLARE(int, cublasLtMatmulDescSetAttribute, desc_t, int, const void *, size_t);
DECLARE(int, cublasLtMatmulDescGetAttribute, desc_t, int, void *, size_t, size_t *);
DECLARE(int, cublasLtMatrixTransformDescCreate, desc_t *, int);
DECLARE(int, cublasLtMatrixTransformDescDestroy, desc_t);
DECLARE(int, cublasLtMatrixTransformDescSetAttribute, desc_t, int, const void *, size_t);
DECLARE(int, cublasLtMatmulPreferenceCreate, desc_t *);
DECLARE(int, cublasLtMatmulPreferenceDestroy, desc_t);
DECLARE(int, cublasLtMatmulPreferenceSetAttribute, desc_t, int, const void *, size_t);
DECLARE(int, cublasLtMatmulPreferenceGetAttribute, desc_t, int, void *, size_t, size_t *);
DECLARE(int, cublasLtMatmul, handle_t, desc_t, const void *, matrix_t, desc_t, matrix_t, desc_t, const void *, matrix_t,
        desc_t, matrix_t, desc_t, const algo_t *, matrix_t, size_t, CUstream);
DECLARE(int, cublasLtMatrixTransform, handle_t, desc_t, const void *, matrix_t, desc_t, const void *, matrix_t, desc_t,
        matrix_t, desc_t, CUstream);
DECLARE(int, cublasLtMatmulAlgoGetHeuristic, handle_t, desc_t, desc_t, desc_t, desc_t, desc_t, desc_t, int, result_t *,
        int *);
DECLARE(int, cublasLtMatmulAlgoCheck, handle_t, desc_t, desc_t, desc_t, desc_t, desc_t, const algo_t *, result_t *);
DECLARE(int, cublasLtMatmulAlgoGetIds, handle_t, int, int, int, int, int, int, int, int *, int *);
DECLARE(int, cublasLtMatmulAlgoInit, handle_t, int, int, int, int, int, int, int, algo_t *);
DECLARE(int, cublasLtMatmulAlgoCapGetAttribute, const algo_t *, int, void *, size_t, size_t *);
DECLARE(int, cublasLtMatmulAlgoConfigGetAttribute, const algo_t *, int, void *, size_t, size_t *);
DECLARE(int, cublasLtMatmulAlgoConfigSetAttribute, algo_t *, int, const void *, size_t);
DECLARE(int, cublasLtLoggerSetLevel, int);
DECLARE(int, cublasLtHeuristicsCacheGetCapacity, size_t *);
DECLARE(int, cublasLtHeuristicsCacheSetCapacity, size_t);

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
    library = open_library("libcublasLt.so.13", "libcublasLt.so.12");
    blas = open_library("libcublas.so.13", "libcublas.so.12");
#define FIND(name) *(void **) &name = find(library, #name)
    *(void **) &cublasCreate_v2 = find(blas, "cublasCreate_v2");
    *(void **) &cublasDestroy_v2 = find(blas, "cublasDestroy_v2");
    FIND(cublasLtCreate);
    FIND(cublasLtDestroy);
    FIND(cublasLtGetVersion);
    FIND(cublasLtGetProperty);
    FIND(cublasLtGetStatusName);
    FIND(cublasLtMatrixLayoutCreate);
    FIND(cublasLtMatrixLayoutInit_internal);
    FIND(cublasLtMatrixLayoutDestroy);
    FIND(cublasLtMatrixLayoutSetAttribute);
    FIND(cublasLtMatrixLayoutGetAttribute);
    FIND(cublasLtMatmulDescCreate);
    FIND(cublasLtMatmulDescInit_internal);
    FIND(cublasLtMatmulDescDestroy);
    FIND(cublasLtMatmulDescSetAttribute);
    FIND(cublasLtMatmulDescGetAttribute);
    FIND(cublasLtMatrixTransformDescCreate);
    FIND(cublasLtMatrixTransformDescDestroy);
    FIND(cublasLtMatrixTransformDescSetAttribute);
    FIND(cublasLtMatmulPreferenceCreate);
    FIND(cublasLtMatmulPreferenceDestroy);
    FIND(cublasLtMatmulPreferenceSetAttribute);
    FIND(cublasLtMatmulPreferenceGetAttribute);
    FIND(cublasLtMatmul);
    FIND(cublasLtMatrixTransform);
    FIND(cublasLtMatmulAlgoGetHeuristic);
    FIND(cublasLtMatmulAlgoCheck);
    FIND(cublasLtMatmulAlgoGetIds);
    FIND(cublasLtMatmulAlgoInit);
    FIND(cublasLtMatmulAlgoCapGetAttribute);
    FIND(cublasLtMatmulAlgoConfigGetAttribute);
    FIND(cublasLtMatmulAlgoConfigSetAttribute);
    FIND(cublasLtLoggerSetLevel);
    FIND(cublasLtHeuristicsCacheGetCapacity);
    FIND(cublasLtHeuristicsCacheSetCapacity);
}

static void is(int expected, int got, const char *call) {
    if (got != expected) {
        check_fail("%s, expected %d, got %d %s", call, expected, got, cublasLtGetStatusName(got));
    }
}
#define IS(expected, call) is((expected), (call), #call)
#define OK(call) IS(SUCCESS, call)

/* Whole numbers, so that every order of additions gives the same sum. */
static double number(int seed, int at) {
    return (double) ((seed * 7919 + at * 104729) % 13 - 6);
}

/* Element types: bytes, whether complex, and the types of the computation and of scalars. */
typedef struct type {
    const char *name;
    size_t bytes;
    int is_complex, code, compute, scale;
} type_t;
static const type_t S = {"S", 4, 0, R_32F, COMPUTE_32F, R_32F}, D = {"D", 8, 0, R_64F, COMPUTE_64F, R_64F};
static const type_t C = {"C", 8, 1, C_32F, COMPUTE_32F, C_32F}, Z = {"Z", 16, 1, C_64F, COMPUTE_64F, C_64F};
static const type_t H = {"half", 2, 0, R_16F, COMPUTE_32F, R_32F}, B = {"bfloat16", 2, 0, R_16BF, COMPUTE_32F, R_32F};

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

static int place(int order, int row, int column) {
    return order == ORDER_COL ? column * LD + row : row * LD + column;
}

/* A product: types, operations, orders of A, B and C, epilogue, batches. D lies where C lies. */
typedef struct product {
    const type_t *type, *result;
    int opa, opb, order_a, order_b, order_c, epilogue, batch;
    int seed_b; /* of B's numbers */
} product_t;

/* Element (row, column) of op(X). */
static void element(const type_t *type, int seed, int op, int order, int row, int column, int offset, double *re,
                    double *im) {
    int at = offset + (op == OP_N ? place(order, row, column) : place(order, column, row));
    *re = number(seed, at);
    *im = type->is_complex ? number(seed + 1, at) : 0;
    *im = op == OP_C ? -*im : *im;
}

static double activate(int epilogue, double x) {
    switch (epilogue & ~BIAS) {
        case RELU:
            return x > 0 ? x : 0;
        case GELU: {
            double scaled = x / 64; /* alpha and beta are 64 times smaller: GELU is not a line there */
            return 0.5 * scaled * (1 + tanh(sqrt(2 / M_PI) * (scaled + 0.044715 * scaled * scaled * scaled)));
        }
        default:
            return x;
    }
}

/* Compares D with epilogue(alpha * op(A) * op(B) + beta * C + bias), alpha = 2 and beta = -1. Padding must stay. */
static void compare(const product_t *p, matrix_t result, int offset, const char *what) {
    const type_t *type = p->result;
    char *host = check_memory(STRIDE * type->bytes);
    CU_OK(cuMemcpyDtoH(host, result + (size_t) offset * type->bytes, STRIDE * type->bytes));
    for (int outer = 0; outer < (p->order_c == ORDER_COL ? N : M); outer++) {
        for (int inner = 0; inner < LD; inner++) {
            int row = p->order_c == ORDER_COL ? inner : outer, column = p->order_c == ORDER_COL ? outer : inner;
            int at = outer * LD + inner;
            double wanted_re = number(5, offset + at), wanted_im = type->is_complex ? number(6, offset + at) : 0;
            double before_bias = 0;
            if (row < M && column < N) {
                double sum_re = 0, sum_im = 0;
                for (int i = 0; i < K; i++) {
                    double a, ai, b, bi;
                    element(p->type, 1, p->opa, p->order_a, row, i, offset, &a, &ai);
                    element(p->type, p->seed_b, p->opb, p->order_b, i, column, offset, &b, &bi);
                    sum_re += a * b - ai * bi;
                    sum_im += a * bi + ai * b;
                }
                before_bias = 2 * sum_re - wanted_re;
                wanted_re = before_bias + ((p->epilogue & BIAS) != 0 ? number(9, row) * 64 : 0);
                wanted_re = activate(p->epilogue, wanted_re);
                wanted_im = 2 * sum_im - wanted_im;
            }
            double re, im;
            get(type, host, at, &re, &im);
            /* A sum beyond 2^8 rounds in bfloat16, beyond 2^11 in half; GELU has rounded numbers everywhere. NVIDIA's
             * library may round the product and add the bias to that. */
            before_bias /= (p->epilogue & GELU) != 0 ? 64 : 1;
            double error =
                (type->bytes == 2 ? fabs(wanted_re) + fabs(before_bias) : 0) / (type->code == R_16BF ? 256 : 2048);
            error = (p->epilogue & GELU) != 0 && error < 1e-3 ? 1e-3 : error;
            if (!(fabs(re - wanted_re) <= error && fabs(im - wanted_im) <= error)) {
                check_fail("%s of %s, op %d %d, order %d %d %d, epilogue %d, row %d, column %d, expected %g%+gi, got "
                           "%g%+gi",
                           what, p->type->name, p->opa, p->opb, p->order_a, p->order_b, p->order_c, p->epilogue, row,
                           column, wanted_re, wanted_im, re, im);
            }
        }
    }
    free(host);
}

static desc_t layout(const type_t *type, int rows, int columns, int order, int batch) {
    desc_t made = NULL;
    int64_t stride = STRIDE;
    OK(cublasLtMatrixLayoutCreate(&made, type->code, (uint64_t) rows, (uint64_t) columns, LD));
    OK(cublasLtMatrixLayoutSetAttribute(made, LAYOUT_ORDER, &order, sizeof order));
    OK(cublasLtMatrixLayoutSetAttribute(made, LAYOUT_BATCH_COUNT, &batch, sizeof batch));
    OK(cublasLtMatrixLayoutSetAttribute(made, LAYOUT_BATCH_STRIDE, &stride, sizeof stride));
    return made;
}

/* Descriptors and matrices of a product. */
typedef struct made {
    desc_t desc, a_desc, b_desc, c_desc;
    matrix_t a, b, c, bias;
    char alpha[16], beta[16];
} made_t;

static void make(const product_t *p, made_t *made) {
    OK(cublasLtMatmulDescCreate(&made->desc, p->type->compute, p->type->scale));
    OK(cublasLtMatmulDescSetAttribute(made->desc, DESC_TRANSA, &p->opa, sizeof p->opa));
    OK(cublasLtMatmulDescSetAttribute(made->desc, DESC_TRANSB, &p->opb, sizeof p->opb));
    OK(cublasLtMatmulDescSetAttribute(made->desc, DESC_EPILOGUE, &p->epilogue, sizeof p->epilogue));
    made->a_desc = layout(p->type, p->opa == OP_N ? M : K, p->opa == OP_N ? K : M, p->order_a, p->batch);
    made->b_desc = layout(p->type, p->opb == OP_N ? K : N, p->opb == OP_N ? N : K, p->order_b, p->batch);
    made->c_desc = layout(p->result, M, N, p->order_c, p->batch);
    made->a = fill(p->type, 1, p->batch * STRIDE);
    made->b = fill(p->type, p->seed_b, p->batch * STRIDE);
    made->c = fill(p->result, 5, p->batch * STRIDE);
    made->bias = 0;
    double scale = (p->epilogue & GELU) != 0 ? 1.0 / 64 : 1;
    const type_t *scalar = p->type->bytes == 2 ? &S : p->type;
    put(scalar, made->alpha, 0, 2 * scale, 0);
    put(scalar, made->beta, 0, -1 * scale, 0);
    if ((p->epilogue & BIAS) != 0) {
        char *host = check_memory(M * p->result->bytes);
        for (int i = 0; i < M; i++) {
            put(p->result, host, i, number(9, i) * 64 * scale, 0);
        }
        made->bias = check_device(host, M * p->result->bytes);
        free(host);
        OK(cublasLtMatmulDescSetAttribute(made->desc, DESC_BIAS_POINTER, &made->bias, sizeof made->bias));
    }
}

static void release(made_t *made) {
    OK(cublasLtMatmulDescDestroy(made->desc));
    OK(cublasLtMatrixLayoutDestroy(made->a_desc));
    OK(cublasLtMatrixLayoutDestroy(made->b_desc));
    OK(cublasLtMatrixLayoutDestroy(made->c_desc));
    CU_OK(cuMemFree(made->a));
    CU_OK(cuMemFree(made->b));
    CU_OK(cuMemFree(made->c));
    if (made->bias != 0) {
        CU_OK(cuMemFree(made->bias));
    }
}

static int multiply(handle_t handle, made_t *made, const algo_t *algo, CUstream stream) {
    return cublasLtMatmul(handle, made->desc, made->alpha, made->a, made->a_desc, made->b, made->b_desc, made->beta,
                          made->c, made->c_desc, made->c, made->c_desc, algo, 0, 0, stream);
}

/* Returns 0 when the library has no algorithm for the product. */
static int check_product(handle_t handle, const product_t *p, const char *what) {
    made_t made;
    make(p, &made);
    int status = multiply(handle, &made, NULL, NULL);
    if (status == SUCCESS) {
        for (int i = 0; i < p->batch; i++) {
            compare(p, made.c, i * STRIDE, what);
        }
    } else {
        IS(NOT_SUPPORTED, status);
    }
    release(&made);
    return status == SUCCESS;
}

static void must(int supported, const product_t *p, const char *what) {
    if (!supported) {
        check_fail("%s of %s, op %d %d, epilogue %d, expected a product, got CUBLAS_STATUS_NOT_SUPPORTED", what,
                   p->type->name, p->opa, p->opb, p->epilogue);
    }
}

static void check_layouts(handle_t handle) {
    const type_t *const types[] = {&S, &D, &C, &Z};
    for (int i = 0; i < 4; i++) {
        for (int opa = OP_N; opa <= (types[i]->is_complex ? OP_C : OP_T); opa++) {
            for (int opb = OP_N; opb <= (types[i]->is_complex ? OP_C : OP_T); opb++) {
                product_t p = {types[i], types[i], opa, opb, ORDER_COL, ORDER_COL, ORDER_COL, EPILOGUE_DEFAULT, 1, 3};
                must(check_product(handle, &p, "a product"), &p, "a product");
            }
        }
    }
}

/* All combinations of orders. NVIDIA's library refuses some, this program's expectation is never a wrong result. */
static int check_orders(handle_t handle) {
    const type_t *const types[] = {&S, &C};
    int done = 0;
    for (int i = 0; i < 2; i++) {
        for (int orders = 0; orders < 8; orders++) {
            for (int op = OP_N; op <= (types[i]->is_complex ? OP_C : OP_T); op++) {
                product_t p = {types[i],    types[i],         op, OP_N, orders & 1, orders >> 1 & 1,
                               orders >> 2, EPILOGUE_DEFAULT, 1,  3};
                done += check_product(handle, &p, "orders");
            }
        }
    }
    check_true("no product in any order", done > 0);
    return done;
}

static void check_types(handle_t handle) {
    const type_t *const types[] = {&H, &B};
    for (int i = 0; i < 2; i++) {
        for (int wide = 0; wide < 2; wide++) {
            product_t p = {types[i],  wide ? &S : types[i], OP_T, OP_N, ORDER_COL, ORDER_COL,
                           ORDER_COL, EPILOGUE_DEFAULT,     1,    3};
            must(check_product(handle, &p, "short numbers"), &p, "short numbers");
        }
    }
}

static void check_epilogues(handle_t handle) {
    static const int epilogues[] = {EPILOGUE_DEFAULT, BIAS, RELU, RELU | BIAS, GELU, GELU | BIAS};
    const type_t *const types[] = {&S, &H, &B};
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < 6; i++) {
            product_t p = {types[t], types[t], OP_T, OP_N, ORDER_COL, ORDER_COL, ORDER_COL, epilogues[i], 1, 3};
            must(check_product(handle, &p, "an epilogue"), &p, "an epilogue");
        }
    }
}

static void check_batches(handle_t handle) {
    const type_t *const types[] = {&S, &Z, &H};
    for (int i = 0; i < 3; i++) {
        product_t p = {types[i], types[i], OP_N, OP_T, ORDER_COL, ORDER_COL, ORDER_COL, EPILOGUE_DEFAULT, BATCH, 3};
        must(check_product(handle, &p, "a batch"), &p, "a batch");
    }
}

/* The device's scalars are read when the product runs. Descriptors lie on the stack, as PyTorch's fastest users do. */
static void check_device_scalars(handle_t handle) {
    const product_t p = {&S, &S, OP_N, OP_N, ORDER_COL, ORDER_COL, ORDER_COL, EPILOGUE_DEFAULT, 1, 3};
    made_t made;
    make(&p, &made);
    uint64_t desc[32], a[8], b[8], c[8];
    OK(cublasLtMatmulDescInit_internal(desc, sizeof desc, COMPUTE_32F, R_32F));
    OK(cublasLtMatrixLayoutInit_internal(a, sizeof a, R_32F, M, K, LD));
    OK(cublasLtMatrixLayoutInit_internal(b, sizeof b, R_32F, K, N, LD));
    OK(cublasLtMatrixLayoutInit_internal(c, sizeof c, R_32F, M, N, LD));
    int mode = DEVICE_POINTERS;
    OK(cublasLtMatmulDescSetAttribute(desc, DESC_POINTER_MODE, &mode, sizeof mode));
    float host[2] = {2, -1};
    CUdeviceptr scalars = check_device(host, sizeof host);
    OK(cublasLtMatmul(handle, desc, (void *) (uintptr_t) scalars, made.a, a, made.b, b,
                      (void *) (uintptr_t) (scalars + sizeof(float)), made.c, c, made.c, c, NULL, 0, 0, NULL));
    compare(&p, made.c, 0, "scalars on the device");
    CU_OK(cuMemFree(scalars));
    release(&made);
}

/* C = 2 * transposed A - B, into rows. */
static void check_transform(handle_t handle) {
    desc_t desc = NULL, a_desc = layout(&S, N, M, ORDER_COL, 1), b_desc = layout(&S, M, N, ORDER_COL, 1);
    desc_t c_desc = layout(&S, M, N, ORDER_ROW, 1);
    int transpose = OP_T;
    OK(cublasLtMatrixTransformDescCreate(&desc, R_32F));
    OK(cublasLtMatrixTransformDescSetAttribute(desc, TRANSFORM_TRANSA, &transpose, sizeof transpose));
    matrix_t a = fill(&S, 1, STRIDE), b = fill(&S, 3, STRIDE), c = fill(&S, 5, STRIDE);
    const float alpha = 2, beta = -1;
    OK(cublasLtMatrixTransform(handle, desc, &alpha, a, a_desc, &beta, b, b_desc, c, c_desc, NULL));
    float *host = check_memory(STRIDE * sizeof *host);
    CU_OK(cuMemcpyDtoH(host, c, STRIDE * sizeof *host));
    for (int row = 0; row < M; row++) {
        for (int column = 0; column < LD; column++) {
            double wanted = column < N ? 2 * number(1, place(ORDER_COL, column, row)) - number(3, column * LD + row)
                                       : number(5, row * LD + column);
            if (host[row * LD + column] != wanted) {
                check_fail("a transform, row %d, column %d, expected %g, got %g", row, column, wanted,
                           (double) host[row * LD + column]);
            }
        }
    }
    free(host);
    OK(cublasLtMatrixTransformDescDestroy(desc));
    OK(cublasLtMatrixLayoutDestroy(a_desc));
    OK(cublasLtMatrixLayoutDestroy(b_desc));
    OK(cublasLtMatrixLayoutDestroy(c_desc));
    CU_OK(cuMemFree(a));
    CU_OK(cuMemFree(b));
    CU_OK(cuMemFree(c));
}

/* Heuristics, algorithms by number, attributes, and products with an algorithm in a stream of their own, in order. */
static void check_algorithms(handle_t handle) {
    const product_t p = {&S, &S, OP_N, OP_N, ORDER_COL, ORDER_COL, ORDER_COL, EPILOGUE_DEFAULT, 1, 3};
    made_t made;
    make(&p, &made);
    desc_t preference = NULL;
    uint64_t most = WORKSPACE;
    result_t results[4], again[4];
    int count = 0;
    OK(cublasLtMatmulPreferenceCreate(&preference));
    OK(cublasLtMatmulPreferenceSetAttribute(preference, PREF_WORKSPACE, &most, sizeof most));
    for (int i = 0; i < REPEATS; i++) {
        OK(cublasLtMatmulAlgoGetHeuristic(handle, made.desc, made.a_desc, made.b_desc, made.c_desc, made.c_desc,
                                          preference, 4, i == 0 ? results : again, &count));
        if (count < 1 || (i > 0 && memcmp(results, again, sizeof *results) != 0)) {
            check_fail("heuristic %d, expected the same algorithms, got %d", i, count);
        }
    }
    check_true("a heuristic's state or workspace", results[0].state == SUCCESS && results[0].workspace <= most);
    IS(INVALID_VALUE,
       cublasLtMatmulAlgoGetHeuristic(handle, made.desc, made.a_desc, made.b_desc, made.c_desc, made.c_desc, preference,
                                      0, results, &count));
    algo_t algo = results[0].algo;
    result_t checked;
    OK(cublasLtMatmulAlgoCheck(handle, made.desc, made.a_desc, made.b_desc, made.c_desc, made.c_desc, &algo, &checked));
    int id = -1, batches = 0, splits = -1, ids[64];
    size_t written = 0;
    OK(cublasLtMatmulAlgoConfigGetAttribute(&algo, CONFIG_ID, &id, sizeof id, &written));
    check_true("the size of an algorithm's number", written == sizeof id);
    OK(cublasLtMatmulAlgoCapGetAttribute(&algo, CAP_STRIDED_BATCH, &batches, sizeof batches, NULL));
    OK(cublasLtMatmulAlgoCapGetAttribute(&algo, CAP_STRIDED_BATCH, NULL, 0, &written));
    check_true("the size of a capability", written == sizeof batches);
    OK(cublasLtMatmulAlgoGetIds(handle, COMPUTE_32F, R_32F, R_32F, R_32F, R_32F, R_32F, 64, ids, &count));
    check_true("no algorithm by number", count >= 1);
    algo_t fresh;
    OK(cublasLtMatmulAlgoInit(handle, COMPUTE_32F, R_32F, R_32F, R_32F, R_32F, R_32F, ids[0], &fresh));
    OK(cublasLtMatmulAlgoConfigGetAttribute(&fresh, CONFIG_SPLITK, &splits, sizeof splits, NULL));
    OK(cublasLtMatmulAlgoConfigSetAttribute(&fresh, CONFIG_SPLITK, &splits, sizeof splits));
    IS(INVALID_VALUE, cublasLtMatmulAlgoConfigGetAttribute(&fresh, CONFIG_SPLITK, &splits, 1, NULL));

    CUstream stream;
    CU_OK(cuStreamCreate(&stream, 0)); /* copies of the default stream come first */
    CUdeviceptr workspace;
    CU_OK(cuMemAlloc(&workspace, WORKSPACE));
    const float zero = 0;
    for (int i = 0; i < REPEATS; i++) {
        float beta = i % 2 == 0 ? 2 : 0.5f;
        OK(cublasLtMatmul(handle, made.desc, &zero, made.a, made.a_desc, made.b, made.b_desc, &beta, made.c,
                          made.c_desc, made.c, made.c_desc, &algo, workspace, WORKSPACE, stream));
        beta = 1e30f; /* read before the call returned */
    }
    OK(cublasLtMatmul(handle, made.desc, made.alpha, made.a, made.a_desc, made.b, made.b_desc, made.beta, made.c,
                      made.c_desc, made.c, made.c_desc, &algo, workspace, WORKSPACE, stream));
    CU_OK(cuStreamSynchronize(stream));
    compare(&p, made.c, 0, "products in a stream");
    algo_t wrong;
    memset(&wrong, 0xa5, sizeof wrong);
    check_true("a product by an algorithm of noise", multiply(handle, &made, &wrong, stream) != SUCCESS);
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(workspace));
    OK(cublasLtMatmulPreferenceDestroy(preference));
    release(&made);
}

static void check_descriptors(void) {
    desc_t desc = NULL, matrix = NULL, preference = NULL;
    size_t written = 0;
    int value = -7;
    int8_t fast = 1;
    uint32_t number32 = 0;
    uint64_t number64 = 0;
    OK(cublasLtMatmulDescCreate(&desc, COMPUTE_32F, R_32F));
    OK(cublasLtMatmulDescGetAttribute(desc, DESC_EPILOGUE, &value, sizeof value, &written));
    check_true("the default epilogue", value == EPILOGUE_DEFAULT && written == sizeof value);
    OK(cublasLtMatmulDescGetAttribute(desc, DESC_AUX_DATA_TYPE, &value, sizeof value, NULL));
    IS(-1, value);
    OK(cublasLtMatmulDescGetAttribute(desc, DESC_COMPUTE_TYPE, &value, sizeof value, NULL));
    IS(COMPUTE_32F, value);
    OK(cublasLtMatmulDescGetAttribute(desc, DESC_BIAS_POINTER, NULL, 0, &written));
    check_true("the size of an address", written == sizeof(void *));
    OK(cublasLtMatmulDescSetAttribute(desc, DESC_FAST_ACCUM, &fast, sizeof fast));
    IS(INVALID_VALUE, cublasLtMatmulDescSetAttribute(desc, DESC_FAST_ACCUM, &value, sizeof value));
    IS(INVALID_VALUE, cublasLtMatmulDescSetAttribute(desc, DESC_TRANSA, NULL, sizeof value));
    IS(INVALID_VALUE, cublasLtMatmulDescSetAttribute(desc, 999, &value, sizeof value));
    IS(INVALID_VALUE, cublasLtMatmulDescGetAttribute(desc, DESC_TRANSA, NULL, 0, NULL));
    IS(INVALID_VALUE, cublasLtMatmulDescGetAttribute(desc, DESC_TRANSA, &value, 1, NULL));
    OK(cublasLtMatmulDescDestroy(desc));
    OK(cublasLtMatrixLayoutCreate(&matrix, R_16F, 3, 5, 7));
    OK(cublasLtMatrixLayoutGetAttribute(matrix, LAYOUT_TYPE, &number32, sizeof number32, NULL));
    OK(cublasLtMatrixLayoutGetAttribute(matrix, LAYOUT_COLS, &number64, sizeof number64, NULL));
    check_true("a layout's type or columns", number32 == R_16F && number64 == 5);
    OK(cublasLtMatrixLayoutGetAttribute(matrix, LAYOUT_BATCH_COUNT, &value, sizeof value, NULL));
    IS(1, value);
    OK(cublasLtMatrixLayoutDestroy(matrix));
    uint64_t small[1];
    IS(ALLOC_FAILED, cublasLtMatrixLayoutInit_internal(small, sizeof small, R_32F, 1, 1, 1));
    OK(cublasLtMatmulPreferenceCreate(&preference));
    OK(cublasLtMatmulPreferenceGetAttribute(preference, PREF_REDUCTION, &number32, sizeof number32, NULL));
    check_true("the default mask of reductions", number32 == 7);
    OK(cublasLtMatmulPreferenceGetAttribute(preference, PREF_ALIGN_A, &number32, sizeof number32, NULL));
    check_true("the default alignment", number32 == 256);
    OK(cublasLtMatmulPreferenceGetAttribute(preference, PREF_IMPL_MASK, &number64, sizeof number64, NULL));
    check_true("the default mask of implementations", number64 == UINT64_MAX);
    OK(cublasLtMatmulPreferenceDestroy(preference));
    size_t capacity = 0;
    OK(cublasLtHeuristicsCacheGetCapacity(&capacity));
    OK(cublasLtHeuristicsCacheSetCapacity(capacity));
    OK(cublasLtLoggerSetLevel(0));
}

static void check_errors(handle_t handle) {
    const product_t p = {&S, &S, OP_N, OP_N, ORDER_COL, ORDER_COL, ORDER_COL, EPILOGUE_DEFAULT, 1, 3};
    made_t made;
    make(&p, &made);
    IS(NOT_INITIALIZED, multiply(NULL, &made, NULL, NULL));
    desc_t kept = made.b_desc;
    made.b_desc = NULL;
    IS(INVALID_VALUE, multiply(handle, &made, NULL, NULL));
    made.b_desc = made.c_desc; /* its rows are not A's columns */
    check_true("a product of matrices that do not fit", multiply(handle, &made, NULL, NULL) != SUCCESS);
    made.b_desc = kept;
    OK(multiply(handle, &made, NULL, NULL));
    compare(&p, made.c, 0, "a product after wrong calls");
    release(&made);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    handle_t handle = NULL;
    int created = cublasLtCreate(&handle);
    if (created == NOT_SUPPORTED) {
        check_unsupported("cublasLtCreate: %s", cublasLtGetStatusName(created));
    }
    IS(SUCCESS, created);
    int major = 0;
    OK(cublasLtGetProperty(0, &major));
    check_true("the version", major >= 12 && cublasLtGetVersion() / 10000 >= 12);
    check_descriptors();
    check_layouts(handle);
    int orders = check_orders(handle);
    check_types(handle);
    check_epilogues(handle);
    check_batches(handle);
    check_device_scalars(handle);
    check_transform(handle);
    check_algorithms(handle);
    check_errors(handle);
    /* A handle of cuBLAS is one of cublasLt. */
    void *other = NULL;
    OK(cublasCreate_v2(&other));
    check_layouts(other);
    OK(cublasDestroy_v2(other));
    OK(cublasLtDestroy(handle));
    return check_pass("6 types, %d orders, 6 epilogues, %d products in a stream", orders, REPEATS);
}
