/*
 * cuSPARSELt beside the Driver API: a matrix of half the numbers is pruned, checked and compressed, and products with it
 * are held against sums that the program computes from the pruned matrix: 16-bit floats in both orders, the matrix on
 * either side, batches, a bias with ReLU, a search, integers of 8 bits, factors for each row; one plan many times in a
 * stream, and wrong calls. A GPU or a library may lack a product other than the first one: it is counted as missing. The
 * functions are found by name.
 */
#include "check_library.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 10 };
enum { R_32F = 0, R_16F = 2, R_8I = 3, R_32I = 10 };
enum { COLUMNS = 1, ROWS = 2 };
enum { N = 0, T = 1 };
enum { COMPUTE_32I = 0, COMPUTE_32F = 2 };
enum { NUM_BATCHES = 0, BATCH_STRIDE = 1 };
enum { RELU = 0, ALPHA_VECTOR = 5, BIAS_POINTER = 8, SPARSE_MAT_POINTER = 9 };
enum { CONFIG_ID = 0, CONFIG_MAX_ID = 1, SEARCH_ITERATIONS = 2 };
enum { TILE = 0, STRIP = 1 };
enum { ALIGNMENT = 16 };

/* Every structure of cusparseLt.h 0.8: a handle, a descriptor, a selection or a plan. */
typedef struct object {
    _Alignas(16) unsigned char data[512];
} object_t;
typedef CUdeviceptr data_t; /* C's pointers to device memory */

DECLARE(cusparseLtInit, object_t *);
DECLARE(cusparseLtDestroy, const object_t *);
DECLARE(cusparseLtGetVersion, const object_t *, int *);
DECLARE(cusparseLtGetProperty, int, int *);
DECLARE(cusparseLtDenseDescriptorInit, const object_t *, object_t *, int64_t, int64_t, int64_t, uint32_t, int, int);
DECLARE(cusparseLtStructuredDescriptorInit, const object_t *, object_t *, int64_t, int64_t, int64_t, uint32_t, int, int,
        int);
DECLARE(cusparseLtMatDescriptorDestroy, const object_t *);
DECLARE(cusparseLtMatDescSetAttribute, const object_t *, object_t *, int, const void *, size_t);
DECLARE(cusparseLtMatDescGetAttribute, const object_t *, const object_t *, int, void *, size_t);
DECLARE(cusparseLtMatmulDescriptorInit, const object_t *, object_t *, int, int, const object_t *, const object_t *,
        const object_t *, const object_t *, int);
DECLARE(cusparseLtMatmulDescSetAttribute, const object_t *, object_t *, int, const void *, size_t);
DECLARE(cusparseLtMatmulAlgSelectionInit, const object_t *, object_t *, const object_t *, int);
DECLARE(cusparseLtMatmulAlgSelectionDestroy, const object_t *);
DECLARE(cusparseLtMatmulAlgSetAttribute, const object_t *, object_t *, int, const void *, size_t);
DECLARE(cusparseLtMatmulAlgGetAttribute, const object_t *, const object_t *, int, void *, size_t);
DECLARE(cusparseLtMatmulPlanInit, const object_t *, object_t *, const object_t *, const object_t *);
DECLARE(cusparseLtMatmulPlanDestroy, const object_t *);
DECLARE(cusparseLtMatmulGetWorkspace, const object_t *, const object_t *, size_t *);
#define PRODUCT const void *, data_t, data_t, const void *, data_t, data_t, data_t, CUstream *, int32_t
DECLARE(cusparseLtMatmul, const object_t *, const object_t *, PRODUCT);
DECLARE(cusparseLtMatmulSearch, const object_t *, object_t *, PRODUCT);
DECLARE(cusparseLtSpMMAPrune, const object_t *, const object_t *, data_t, data_t, int, CUstream);
DECLARE(cusparseLtSpMMAPrune2, const object_t *, const object_t *, int, int, data_t, data_t, int, CUstream);
DECLARE(cusparseLtSpMMAPruneCheck, const object_t *, const object_t *, data_t, data_t, CUstream);
DECLARE(cusparseLtSpMMAPruneCheck2, const object_t *, const object_t *, int, int, data_t, data_t, CUstream);
DECLARE(cusparseLtSpMMACompressedSize, const object_t *, const object_t *, size_t *, size_t *);
DECLARE(cusparseLtSpMMACompressedSize2, const object_t *, const object_t *, size_t *, size_t *);
DECLARE(cusparseLtSpMMACompress, const object_t *, const object_t *, data_t, data_t, data_t, CUstream);
DECLARE(cusparseLtSpMMACompress2, const object_t *, const object_t *, int, int, data_t, data_t, data_t, CUstream);

static void load(void) {
    open_library("libcusparseLt.so.0", NULL);
    FIND(cusparseLtInit);
    FIND(cusparseLtDestroy);
    FIND(cusparseLtGetVersion);
    FIND(cusparseLtGetProperty);
    FIND(cusparseLtDenseDescriptorInit);
    FIND(cusparseLtStructuredDescriptorInit);
    FIND(cusparseLtMatDescriptorDestroy);
    FIND(cusparseLtMatDescSetAttribute);
    FIND(cusparseLtMatDescGetAttribute);
    FIND(cusparseLtMatmulDescriptorInit);
    FIND(cusparseLtMatmulDescSetAttribute);
    FIND(cusparseLtMatmulAlgSelectionInit);
    FIND(cusparseLtMatmulAlgSelectionDestroy);
    FIND(cusparseLtMatmulAlgSetAttribute);
    FIND(cusparseLtMatmulAlgGetAttribute);
    FIND(cusparseLtMatmulPlanInit);
    FIND(cusparseLtMatmulPlanDestroy);
    FIND(cusparseLtMatmulGetWorkspace);
    FIND(cusparseLtMatmul);
    FIND(cusparseLtMatmulSearch);
    FIND(cusparseLtSpMMAPrune);
    FIND(cusparseLtSpMMAPrune2);
    FIND(cusparseLtSpMMAPruneCheck);
    FIND(cusparseLtSpMMAPruneCheck2);
    FIND(cusparseLtSpMMACompressedSize);
    FIND(cusparseLtSpMMACompressedSize2);
    FIND(cusparseLtSpMMACompress);
    FIND(cusparseLtSpMMACompress2);
}

#define M 64 /* rows of A and D; these three are multiples of 32, which every type needs */
#define K 128
#define WIDTH 96 /* columns of B and D */
#define BATCHES 2
#define GUARD 32 /* elements after each row or column of D, which no product writes */
#define RUNS 20  /* of one plan */

static CUstream stream;
static object_t handle;
static int products, missing;

/* A matrix in the program: its numbers, in batches, and the same on the device. */
typedef struct matrix {
    int type, order, batches;
    int64_t rows, cols, ld;
    float *numbers; /* where the type is stored: a number for each element of the memory */
    data_t memory;
    object_t descr;
} matrix_t;

static size_t bytes_of(int type) {
    return type == R_8I ? 1 : type == R_16F ? 2 : 4;
}

static size_t elements(const matrix_t *m) {
    return (size_t) (m->ld * (m->order == ROWS ? m->rows : m->cols)) * (size_t) m->batches;
}

static size_t place(const matrix_t *m, int batch, int64_t row, int64_t col) {
    size_t one = elements(m) / (size_t) m->batches;
    return (size_t) batch * one + (size_t) (m->order == ROWS ? row * m->ld + col : col * m->ld + row);
}

/* A 16-bit float of a number that has one. */
static uint16_t half_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 0xff;
    return (uint16_t) (exponent == 0 ? sign : sign | ((exponent - 112) << 10) | (bits >> 13 & 0x3ff));
}

static float of_half(uint16_t half) {
    uint32_t exponent = half >> 10 & 0x1f, bits = (uint32_t) (half & 0x8000) << 16;
    if (exponent != 0) {
        bits |= (exponent + 112) << 23 | (uint32_t) (half & 0x3ff) << 13;
    }
    float number;
    memcpy(&number, &bits, sizeof number);
    return exponent == 0 && (half & 0x3ff) != 0 ? -1e30f : number; /* no result of this program is that small */
}

static void put(void *array, int type, size_t at, float number) {
    switch (type) {
        case R_8I:
            ((int8_t *) array)[at] = (int8_t) number;
            break;
        case R_16F:
            ((uint16_t *) array)[at] = half_of(number);
            break;
        case R_32I:
            ((int32_t *) array)[at] = (int32_t) number;
            break;
        default:
            ((float *) array)[at] = number;
    }
}

static float get(const void *array, int type, size_t at) {
    switch (type) {
        case R_8I:
            return ((const int8_t *) array)[at];
        case R_16F:
            return of_half(((const uint16_t *) array)[at]);
        case R_32I:
            return (float) ((const int32_t *) array)[at];
        default:
            return ((const float *) array)[at];
    }
}

static data_t allocate(size_t bytes) {
    data_t memory;
    CU_OK(cuMemAlloc(&memory, bytes > 0 ? bytes : 1));
    return memory;
}

/* Small whole numbers, so that every order of a sum gives the same result, and 16 bits hold it. */
static float some(size_t at, int seed) {
    return (float) ((at * 7 + at / 13 * 3 + (size_t) seed * 5) % 5) - 2;
}

static void make(matrix_t *m, int seed) {
    size_t count = elements(m);
    void *array = calloc(count, bytes_of(m->type));
    m->numbers = calloc(count, sizeof *m->numbers);
    for (size_t i = 0; i < count; i++) {
        m->numbers[i] = some(i, seed);
        put(array, m->type, i, m->numbers[i]);
    }
    m->memory = allocate(count * bytes_of(m->type));
    CU_OK(cuMemcpyHtoD(m->memory, array, count * bytes_of(m->type)));
    free(array);
}

static void read_back(const matrix_t *m, float *numbers) {
    size_t count = elements(m);
    void *array = malloc(count * bytes_of(m->type));
    CU_OK(cuMemcpyDtoH(array, m->memory, count * bytes_of(m->type)));
    for (size_t i = 0; i < count; i++) {
        numbers[i] = get(array, m->type, i);
    }
    free(array);
}

static void drop(matrix_t *m) {
    OK(cusparseLtMatDescriptorDestroy(&m->descr));
    CU_OK(cuMemFree(m->memory));
    free(m->numbers);
}

/* A product: D = alpha * op(A) * op(B) + beta * C. */
typedef struct problem {
    const char *name;
    int order, op_a, op_b, sparse; /* sparse: the matrix with structure, 0 for A, 1 for B */
    int type, type_d, compute, batches;
    bool has_bias, has_vector, searches;
    matrix_t m[3]; /* A, B and C; D has C's descriptor */
    object_t matmul, selection, plan;
    data_t compressed, workspace, bias, factors;
    float bias_numbers[M], factor_numbers[M];
} problem_t;

/* Makes a matrix and its descriptor. Returns the library's status. */
static int describe(problem_t *p, int which, int64_t rows, int64_t cols, int type, int64_t guard) {
    matrix_t *m = &p->m[which];
    *m = (matrix_t) {.type = type,
                     .order = p->order,
                     .batches = p->batches,
                     .rows = rows,
                     .cols = cols,
                     .ld = (p->order == ROWS ? cols : rows) + guard};
    int status = which == p->sparse
        ? cusparseLtStructuredDescriptorInit(&handle, &m->descr, rows, cols, m->ld, ALIGNMENT, type, p->order, 0)
        : cusparseLtDenseDescriptorInit(&handle, &m->descr, rows, cols, m->ld, ALIGNMENT, type, p->order);
    if (status == SUCCESS && p->batches > 1) {
        int64_t stride = m->ld * (p->order == ROWS ? rows : cols), kept = 0;
        status = cusparseLtMatDescSetAttribute(&handle, &m->descr, NUM_BATCHES, &p->batches, sizeof p->batches);
        if (status == SUCCESS) {
            OK(cusparseLtMatDescSetAttribute(&handle, &m->descr, BATCH_STRIDE, &stride, sizeof stride));
            OK(cusparseLtMatDescGetAttribute(&handle, &m->descr, BATCH_STRIDE, &kept, sizeof kept));
            if (kept != stride) {
                check_fail("the stride of batches, expected %lld, got %lld", (long long) stride, (long long) kept);
            }
        }
    }
    make(m, which + 1);
    return status;
}

static data_t upload(const float *numbers, size_t count, int type) {
    void *array = calloc(count, bytes_of(type));
    for (size_t i = 0; i < count; i++) {
        put(array, type, i, numbers[i]);
    }
    data_t memory = allocate(count * bytes_of(type));
    CU_OK(cuMemcpyHtoD(memory, array, count * bytes_of(type)));
    free(array);
    return memory;
}

/* Sets the attributes of the product. Returns the library's status. */
static int set_attributes(problem_t *p) {
    int status = SUCCESS, on = 1;
    if (p->has_bias) {
        for (int i = 0; i < M; i++) {
            p->bias_numbers[i] = (float) (i % 9 * 8 - 32);
        }
        p->bias = upload(p->bias_numbers, M, p->type_d);
        status = cusparseLtMatmulDescSetAttribute(&handle, &p->matmul, BIAS_POINTER, &p->bias, sizeof p->bias);
        if (status == SUCCESS) {
            status = cusparseLtMatmulDescSetAttribute(&handle, &p->matmul, RELU, &on, sizeof on);
        }
    }
    if (p->has_vector) {
        for (int i = 0; i < M; i++) {
            p->factor_numbers[i] = (float) (i % 3) - 1;
        }
        p->factors = upload(p->factor_numbers, M, R_32F);
        status = cusparseLtMatmulDescSetAttribute(&handle, &p->matmul, ALPHA_VECTOR, &on, sizeof on);
    }
    return status;
}

/* Makes the plan of a product. Returns NOT_SUPPORTED where the library or the GPU has none. */
static int plan(problem_t *p) {
    static const char *const steps[] = {"A", "B", "C", "a product", "its attributes", "a selection", "a plan"};
    int64_t a_rows = p->op_a == T ? K : M, a_cols = p->op_a == T ? M : K;
    int64_t b_rows = p->op_b == T ? WIDTH : K, b_cols = p->op_b == T ? K : WIDTH;
    int statuses[7] = {describe(p, 0, a_rows, a_cols, p->type, 0), describe(p, 1, b_rows, b_cols, p->type, 0),
                       describe(p, 2, M, WIDTH, p->type_d, GUARD)};
    int step = 0;
    while (step < 3 && statuses[step] == SUCCESS) {
        step++;
    }
    for (; step >= 3 && step < 7; step++) {
        statuses[step] = step == 3
            ? cusparseLtMatmulDescriptorInit(&handle, &p->matmul, p->op_a, p->op_b, &p->m[0].descr, &p->m[1].descr,
                                             &p->m[2].descr, &p->m[2].descr, p->compute)
            : step == 4 ? set_attributes(p)
            : step == 5 ? cusparseLtMatmulAlgSelectionInit(&handle, &p->selection, &p->matmul, 0)
                        : cusparseLtMatmulPlanInit(&handle, &p->plan, &p->matmul, &p->selection);
        if (statuses[step] != SUCCESS) {
            break;
        }
    }
    if (step < 7 && statuses[step] != NOT_SUPPORTED) {
        check_fail("%s: %s, expected 0 or %d, got %d", p->name, steps[step], NOT_SUPPORTED, statuses[step]);
    }
    return step < 7 ? NOT_SUPPORTED : SUCCESS;
}

/* The answer of the check of a pruned matrix: 0 for a right one, for which NVIDIA's library writes nothing. */
static int checked(problem_t *p, data_t memory, bool alone) {
    static data_t result;
    int number = 0;
    if (result == 0) {
        result = allocate(sizeof number);
    }
    CU_OK(cuMemcpyHtoD(result, &number, sizeof number));
    if (alone) {
        OK(cusparseLtSpMMAPruneCheck2(&handle, &p->m[p->sparse].descr, p->sparse == 0,
                                      p->sparse == 0 ? p->op_a : p->op_b, memory, result, stream));
    } else {
        OK(cusparseLtSpMMAPruneCheck(&handle, &p->matmul, memory, result, stream));
    }
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemcpyDtoH(&number, result, sizeof number));
    return number;
}

/* The number of op(A) or op(B): `at` counts along the sum, `other` along the rows or columns of D. */
static float number_of(const problem_t *p, int which, const float *numbers, int batch, int64_t other, int64_t at) {
    bool is_row_at = which == 0 ? p->op_a == T : p->op_b == N; /* whether `at` is the row in memory */
    return numbers[place(&p->m[which], batch, is_row_at ? at : other, is_row_at ? other : at)];
}

/* Prunes the matrix with structure, and checks that of four numbers along the sum at most two are left. */
static void prune(problem_t *p) {
    matrix_t *m = &p->m[p->sparse];
    size_t bytes = elements(m) * bytes_of(m->type);
    float *before = m->numbers, *after = malloc(elements(m) * sizeof *after);
    data_t dense = m->memory, other = allocate(bytes);
    if (checked(p, dense, false) == 0) {
        check_fail("%s: the check of a dense matrix, expected another number, got 0", p->name);
    }
    if (p->batches == 1) { /* elsewhere than in place, by the descriptor of the matrix alone */
        int op = p->sparse == 0 ? p->op_a : p->op_b;
        CU_OK(cuMemsetD8(other, 0x55, bytes));
        OK(cusparseLtSpMMAPrune2(&handle, &m->descr, p->sparse == 0, op, dense, other, STRIP, stream));
        IS(0, checked(p, other, true));
    }
    OK(cusparseLtSpMMAPrune(&handle, &p->matmul, dense, dense, p->order == ROWS ? TILE : STRIP, stream));
    IS(0, checked(p, dense, false));
    read_back(m, after);
    int64_t width = p->sparse == 0 ? M : WIDTH;
    for (int batch = 0; batch < p->batches; batch++) {
        for (int64_t i = 0; i < width * K; i++) {
            float was = number_of(p, p->sparse, before, batch, i / K, i % K);
            float is = number_of(p, p->sparse, after, batch, i / K, i % K);
            if (is != 0 && is != was) {
                check_fail("%s: a pruned number, expected %g or 0, got %g", p->name, (double) was, (double) is);
            }
            int left = 0;
            for (int64_t j = 0; i % 4 == 0 && j < 4; j++) {
                left += number_of(p, p->sparse, after, batch, i / K, i % K + j) != 0;
            }
            if (left > 2) {
                check_fail("%s: numbers left of four, expected at most 2, got %d", p->name, left);
            }
        }
    }
    CU_OK(cuMemFree(other));
    free(before);
    m->numbers = after;
}

static void compress(problem_t *p) {
    size_t bytes = 0, buffer_bytes = 0, alone = 0, alone_buffer = 0;
    OK(cusparseLtSpMMACompressedSize(&handle, &p->plan, &bytes, &buffer_bytes));
    OK(cusparseLtSpMMACompressedSize2(&handle, &p->m[p->sparse].descr, &alone, &alone_buffer));
    data_t buffer = allocate(buffer_bytes > alone_buffer ? buffer_bytes : alone_buffer);
    p->compressed = allocate(bytes > alone ? bytes : alone);
    if (p->batches == 1 && p->order == ROWS) {
        OK(cusparseLtSpMMACompress2(&handle, &p->m[p->sparse].descr, p->sparse == 0, p->sparse == 0 ? p->op_a : p->op_b,
                                    p->m[p->sparse].memory, p->compressed, buffer, stream));
    } else {
        OK(cusparseLtSpMMACompress(&handle, &p->plan, p->m[p->sparse].memory, p->compressed, buffer, stream));
    }
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemFree(buffer));
}

static float expected(const problem_t *p, int batch, int row, int col, float alpha, float beta) {
    float sum = 0;
    for (int at = 0; at < K; at++) {
        sum += number_of(p, 0, p->m[0].numbers, batch, row, at) * number_of(p, 1, p->m[1].numbers, batch, col, at);
    }
    sum = (p->has_vector ? p->factor_numbers[row] : alpha) * sum
        + beta * p->m[2].numbers[place(&p->m[2], batch, row, col)];
    if (p->has_bias) {
        sum += p->bias_numbers[row];
        sum = sum > 0 ? sum : 0;
    }
    return sum;
}

/* Checks D at an address, whose other memory has been filled with 1. */
static void check(const problem_t *p, data_t address, float alpha, float beta) {
    matrix_t d = p->m[2];
    d.memory = address;
    float *numbers = malloc(elements(&d) * sizeof *numbers);
    read_back(&d, numbers);
    for (int batch = 0; batch < p->batches; batch++) {
        for (int row = 0; row < M; row++) {
            for (int col = 0; col < WIDTH; col++) {
                float *got = &numbers[place(&d, batch, row, col)], wanted = expected(p, batch, row, col, alpha, beta);
                if (*got != wanted) {
                    check_fail("%s: D[%d][%d] of batch %d, expected %g, got %g", p->name, row, col, batch,
                               (double) wanted, (double) *got);
                }
                *got = 1;
            }
        }
    }
    for (size_t i = 0; i < elements(&d); i++) {
        if (numbers[i] != 1) {
            check_fail("%s: a number beside D, expected 1, got %g", p->name, (double) numbers[i]);
        }
    }
    free(numbers);
    products++;
}

static data_t output(const problem_t *p) {
    matrix_t d = p->m[2];
    float *ones = malloc(elements(&d) * sizeof *ones);
    for (size_t i = 0; i < elements(&d); i++) {
        ones[i] = 1;
    }
    data_t memory = upload(ones, elements(&d), d.type);
    free(ones);
    return memory;
}

static int multiply(const problem_t *p, const void *alpha, const float *beta, data_t d, CUstream *streams, int count) {
    data_t a = p->sparse == 0 ? p->compressed : p->m[0].memory, b = p->sparse == 1 ? p->compressed : p->m[1].memory;
    return cusparseLtMatmul(&handle, &p->plan, alpha, a, b, beta, p->m[2].memory, d, p->workspace, streams, count);
}

static void get_workspace(problem_t *p) {
    size_t bytes = 0;
    OK(cusparseLtMatmulGetWorkspace(&handle, &p->plan, &bytes));
    if (p->workspace != 0) {
        CU_OK(cuMemFree(p->workspace));
    }
    p->workspace = allocate(bytes);
}

/* Makes another plan with a selection of its own: NVIDIA's library crashes with the selection of a destroyed plan. */
static void plan_again(problem_t *p, int attribute, int value) {
    OK(cusparseLtMatmulPlanDestroy(&p->plan));
    OK(cusparseLtMatmulAlgSelectionDestroy(&p->selection));
    OK(cusparseLtMatmulAlgSelectionInit(&handle, &p->selection, &p->matmul, 0));
    OK(cusparseLtMatmulAlgSetAttribute(&handle, &p->selection, attribute, &value, sizeof value));
    OK(cusparseLtMatmulPlanInit(&handle, &p->plan, &p->matmul, &p->selection));
    get_workspace(p);
}

/* Lets the library look for the fastest algorithm, and makes a plan with it twice. */
static void search(problem_t *p, data_t d) {
    float alpha = 1, beta = 0;
    int id = -1, most = -1;
    plan_again(p, SEARCH_ITERATIONS, 2);
    OK(cusparseLtMatmulSearch(&handle, &p->plan, &alpha, p->compressed, p->m[1].memory, &beta, p->m[2].memory, d,
                              p->workspace, &stream, 1));
    CU_OK(cuStreamSynchronize(stream));
    OK(cusparseLtMatmulAlgGetAttribute(&handle, &p->selection, CONFIG_ID, &id, sizeof id));
    OK(cusparseLtMatmulAlgGetAttribute(&handle, &p->selection, CONFIG_MAX_ID, &most, sizeof most));
    if (id < 0 || id >= most) {
        check_fail("the algorithm that a search has found, expected one of %d, got %d", most, id);
    }
    get_workspace(p);
    for (int i = 0; i < 3; i++) {
        OK(multiply(p, &alpha, &beta, d, &stream, 1));
        CU_OK(cuStreamSynchronize(stream));
        check(p, d, alpha, beta);
        if (i < 2) {
            plan_again(p, CONFIG_ID, id);
        }
    }
}

/* One plan in a stream: nothing waits between the products, and the factors change at once after each call. */
static void run_often(const problem_t *p) {
    data_t outputs[RUNS];
    for (int i = 0; i < RUNS; i++) {
        outputs[i] = output(p);
    }
    float alpha, beta;
    for (int i = 0; i < RUNS; i++) {
        alpha = (float) (i % 4) * 0.5f;
        beta = (float) (i % 3);
        OK(multiply(p, &alpha, &beta, outputs[i], &stream, 1));
    }
    CU_OK(cuStreamSynchronize(stream));
    for (int i = 0; i < RUNS; i++) {
        check(p, outputs[i], (float) (i % 4) * 0.5f, (float) (i % 3));
        CU_OK(cuMemFree(outputs[i]));
    }
}

static int solve(problem_t *p) {
    int status = plan(p);
    if (status == SUCCESS) {
        prune(p);
        compress(p);
        get_workspace(p);
        float alpha = p->compute == COMPUTE_32I ? 1 : 0.5f;
        float beta = p->has_vector ? 0 : 2; /* with factors of rows, NVIDIA's library takes no such number */
        data_t d = output(p);
        if (p->has_vector) {
            OK(multiply(p, (const void *) (uintptr_t) p->factors, &beta, d, &stream, 1));
            CU_OK(cuStreamSynchronize(stream));
        } else {
            OK(multiply(p, &alpha, &beta, d, NULL, 0)); /* in the default stream */
            CU_OK(cuCtxSynchronize());
        }
        check(p, d, alpha, beta);
        if (p->searches) {
            search(p, d);
            run_often(p);
        }
        CU_OK(cuMemFree(d));
        OK(cusparseLtMatmulPlanDestroy(&p->plan));
        OK(cusparseLtMatmulAlgSelectionDestroy(&p->selection));
        CU_OK(cuMemFree(p->compressed));
        CU_OK(cuMemFree(p->workspace));
        for (int i = 0; i < 3; i++) {
            drop(&p->m[i]);
        }
        if (p->bias != 0) {
            CU_OK(cuMemFree(p->bias));
        }
        if (p->factors != 0) {
            CU_OK(cuMemFree(p->factors));
        }
    }
    return status;
}

#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        if ((call) == SUCCESS) {                                                                                       \
            check_fail("%s, expected an error, got 0", #call);                                                         \
        }                                                                                                              \
    } while (0)

static void wrong_calls(void) {
    object_t descr;
    int64_t stride = 0;
    REFUSED(cusparseLtInit(NULL));
    REFUSED(cusparseLtDenseDescriptorInit(NULL, &descr, M, K, K, ALIGNMENT, R_16F, ROWS));
    REFUSED(cusparseLtDenseDescriptorInit(&handle, NULL, M, K, K, ALIGNMENT, R_16F, ROWS));
    REFUSED(cusparseLtDenseDescriptorInit(&handle, &descr, -M, K, K, ALIGNMENT, R_16F, ROWS));
    REFUSED(cusparseLtDenseDescriptorInit(&handle, &descr, M, K, K - 32, ALIGNMENT, R_16F, ROWS));
    OK(cusparseLtDenseDescriptorInit(&handle, &descr, M, K, K, ALIGNMENT, R_16F, ROWS));
    REFUSED(cusparseLtMatDescGetAttribute(&handle, &descr, BATCH_STRIDE, NULL, sizeof stride));
    OK(cusparseLtMatDescriptorDestroy(&descr));
}

static void check_version(void) {
    int version = 0, parts[3];
    OK(cusparseLtGetVersion(&handle, &version));
    for (int i = 0; i < 3; i++) {
        OK(cusparseLtGetProperty(i, &parts[i]));
    }
    IS(version, parts[0] * 1000 + parts[1] * 100 + parts[2]);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    CU_OK(cuStreamCreate(&stream, 0)); /* waits for copies and fills of the default stream */
    int made = cusparseLtInit(&handle);
    if (made == NOT_SUPPORTED) {
        check_unsupported("cusparseLtInit: %d", made);
    }
    IS(SUCCESS, made);
    check_version();
    static problem_t problems[] = {
        {.name = "rows", .order = ROWS, .op_b = T, .searches = true},
        {.name = "columns", .order = COLUMNS},
        {.name = "transposed", .order = COLUMNS, .op_a = T},
        {.name = "structure in B", .order = ROWS, .sparse = 1},
        {.name = "batches", .order = ROWS, .op_b = T, .batches = BATCHES},
        {.name = "bias and ReLU", .order = ROWS, .op_b = T, .has_bias = true},
        {.name = "integers", .order = ROWS, .op_b = T, .type = R_8I, .type_d = R_32I, .compute = COMPUTE_32I},
        {.name = "factors of rows",
         .order = ROWS,
         .op_b = T,
         .type = R_8I,
         .type_d = R_32I,
         .compute = COMPUTE_32I,
         .has_vector = true},
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        problem_t *p = &problems[i];
        p->batches = p->batches == 0 ? 1 : p->batches;
        if (p->type == 0) {
            p->type = p->type_d = R_16F;
            p->compute = COMPUTE_32F;
        }
        if (solve(p) != SUCCESS) {
            if (i == 0) {
                check_fail("%s, expected a product, got %d", p->name, NOT_SUPPORTED);
            }
            missing++;
        }
    }
    wrong_calls();
    OK(cusparseLtDestroy(&handle));
    CU_OK(cuStreamDestroy(stream));
    return check_pass("%d products, %d of %d kinds missing", products, missing,
                      (int) (sizeof problems / sizeof *problems));
}
