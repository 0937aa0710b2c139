/*
 * cuSPARSE beside the Driver API: products of sparse matrices (CSR, COO) with vectors and dense matrices, real and
 * complex, transposed or not, of both index bases and types, conversions to and from dense matrices, lists of rows,
 * held against sums that the program computes; device pointers for numbers, streams, and wrong calls. A function that
 * the other end does not compute returns NOT_SUPPORTED; where it multiplies two sparse matrices or drops small elements,
 * this is checked too. The functions are found by name.
 */
#include "check_library.h"

#include <math.h>
#include <stdint.h>

enum { SUCCESS = 0, INVALID_VALUE = 3, NOT_SUPPORTED = 10 };
enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5 };
enum { I32 = 2, I64 = 3, COLUMNS = 1, ROWS = 2 };
enum { N = 0, T = 1, C = 2, HOST = 0, DEVICE = 1 };

typedef void *handle_t;
typedef void *descr_t;
typedef CUdeviceptr data_t; /* C's pointers to device memory */

DECLARE(cusparseCreate, handle_t *);
DECLARE(cusparseDestroy, handle_t);
DECLARE(cusparseSetStream, handle_t, CUstream);
DECLARE(cusparseSetPointerMode, handle_t, int);
DECLARE(cusparseCreateCsr, descr_t *, int64_t, int64_t, int64_t, data_t, data_t, data_t, int, int, int, int);
DECLARE(cusparseCreateCoo, descr_t *, int64_t, int64_t, int64_t, data_t, data_t, data_t, int, int, int);
DECLARE(cusparseCreateDnVec, descr_t *, int64_t, data_t, int);
DECLARE(cusparseCreateDnMat, descr_t *, int64_t, int64_t, int64_t, data_t, int, int);
DECLARE(cusparseDestroySpMat, descr_t);
DECLARE(cusparseDestroyDnVec, descr_t);
DECLARE(cusparseDestroyDnMat, descr_t);
DECLARE(cusparseSpMatGetSize, descr_t, int64_t *, int64_t *, int64_t *);
DECLARE(cusparseCsrSetPointers, descr_t, data_t, data_t, data_t);
DECLARE(cusparseSpMV_bufferSize, handle_t, int, const void *, descr_t, descr_t, const void *, descr_t, int, int,
        size_t *);
DECLARE(cusparseSpMV, handle_t, int, const void *, descr_t, descr_t, const void *, descr_t, int, int, data_t);
DECLARE(cusparseSpMM_bufferSize, handle_t, int, int, const void *, descr_t, descr_t, const void *, descr_t, int, int,
        size_t *);
DECLARE(cusparseSpMM, handle_t, int, int, const void *, descr_t, descr_t, const void *, descr_t, int, int, data_t);
DECLARE(cusparseSparseToDense_bufferSize, handle_t, descr_t, descr_t, int, size_t *);
DECLARE(cusparseSparseToDense, handle_t, descr_t, descr_t, int, data_t);
DECLARE(cusparseDenseToSparse_bufferSize, handle_t, descr_t, descr_t, int, size_t *);
DECLARE(cusparseDenseToSparse_analysis, handle_t, descr_t, descr_t, int, data_t);
DECLARE(cusparseDenseToSparse_convert, handle_t, descr_t, descr_t, int, data_t);
DECLARE(cusparseXcsr2coo, handle_t, data_t, int, int, data_t, int);
DECLARE(cusparseXcoo2csr, handle_t, data_t, int, int, data_t, int);
typedef struct complex32 {
    float x, y;
} complex32_t;
typedef struct complex64 {
    double x, y;
} complex64_t;
DECLARE(cusparseCreateMatDescr, descr_t *);
DECLARE(cusparseDestroyMatDescr, descr_t);
DECLARE(cusparseSetMatIndexBase, descr_t, int);
#define COUNTED handle_t, int, descr_t, data_t, data_t, data_t, int *
#define COMPRESSED handle_t, int, int, descr_t, data_t, data_t, data_t, int, data_t, data_t, data_t, data_t
DECLARE(cusparseCnnz_compress, COUNTED, complex32_t);
DECLARE(cusparseZnnz_compress, COUNTED, complex64_t);
DECLARE(cusparseCcsr2csr_compress, COMPRESSED, complex32_t);
DECLARE(cusparseZcsr2csr_compress, COMPRESSED, complex64_t);
DECLARE(cusparseSpGEMM_createDescr, descr_t *);
DECLARE(cusparseSpGEMM_destroyDescr, descr_t);
#define PRODUCT handle_t, int, int, const void *, descr_t, descr_t, const void *, descr_t, int, int, descr_t
DECLARE(cusparseSpGEMM_workEstimation, PRODUCT, size_t *, data_t);
DECLARE(cusparseSpGEMM_compute, PRODUCT, size_t *, data_t);
DECLARE(cusparseSpGEMM_copy, PRODUCT);

static void load(void) {
    open_library("libcusparse.so.12", NULL);
    FIND(cusparseCreate);
    FIND(cusparseDestroy);
    FIND(cusparseSetStream);
    FIND(cusparseSetPointerMode);
    FIND(cusparseCreateCsr);
    FIND(cusparseCreateCoo);
    FIND(cusparseCreateDnVec);
    FIND(cusparseCreateDnMat);
    FIND(cusparseDestroySpMat);
    FIND(cusparseDestroyDnVec);
    FIND(cusparseDestroyDnMat);
    FIND(cusparseSpMatGetSize);
    FIND(cusparseCsrSetPointers);
    FIND(cusparseSpMV_bufferSize);
    FIND(cusparseSpMV);
    FIND(cusparseSpMM_bufferSize);
    FIND(cusparseSpMM);
    FIND(cusparseSparseToDense_bufferSize);
    FIND(cusparseSparseToDense);
    FIND(cusparseDenseToSparse_bufferSize);
    FIND(cusparseDenseToSparse_analysis);
    FIND(cusparseDenseToSparse_convert);
    FIND(cusparseXcsr2coo);
    FIND(cusparseXcoo2csr);
    FIND(cusparseCreateMatDescr);
    FIND(cusparseDestroyMatDescr);
    FIND(cusparseSetMatIndexBase);
    FIND(cusparseCnnz_compress);
    FIND(cusparseZnnz_compress);
    FIND(cusparseCcsr2csr_compress);
    FIND(cusparseZcsr2csr_compress);
    FIND(cusparseSpGEMM_createDescr);
    FIND(cusparseSpGEMM_destroyDescr);
    FIND(cusparseSpGEMM_workEstimation);
    FIND(cusparseSpGEMM_compute);
    FIND(cusparseSpGEMM_copy);
}

#define M 37 /* rows */
#define K 23 /* columns */
#define WIDTH 5
#define GUARD 3 /* elements between the columns of a dense matrix, which no function writes */

/* A matrix in the program: values as pairs, 0 for absent ones. */
typedef struct matrix {
    int type, index, base, is_coo, nnz;
    double values[M][K][2];
    data_t offsets, columns, numbers;
    descr_t descr;
} matrix_t;

static int is_complex(int type) {
    return type == C_32F || type == C_64F;
}

static size_t bytes_of(int type) {
    return (type == R_32F || type == C_32F ? sizeof(float) : sizeof(double)) * (is_complex(type) ? 2 : 1);
}

static void put(void *array, int type, size_t at, const double *value) {
    for (size_t part = 0; part < (is_complex(type) ? 2 : 1); part++) {
        size_t place = at * (is_complex(type) ? 2 : 1) + part;
        if (type == R_32F || type == C_32F) {
            ((float *) array)[place] = (float) value[part];
        } else {
            ((double *) array)[place] = value[part];
        }
    }
}

static void get(const void *array, int type, size_t at, double *value) {
    value[1] = 0;
    for (size_t part = 0; part < (is_complex(type) ? 2 : 1); part++) {
        size_t place = at * (is_complex(type) ? 2 : 1) + part;
        value[part] =
            type == R_32F || type == C_32F ? (double) ((const float *) array)[place] : ((const double *) array)[place];
    }
}

static void put_index(void *array, int type, size_t at, int64_t value) {
    if (type == I32) {
        ((int32_t *) array)[at] = (int32_t) value;
    } else {
        ((int64_t *) array)[at] = value;
    }
}

static data_t upload(const void *bytes, size_t count) {
    data_t memory;
    CU_OK(cuMemAlloc(&memory, count > 0 ? count : 1));
    CU_OK(cuMemcpyHtoD(memory, bytes, count));
    return memory;
}

/* Small whole numbers, so that every order of a sum gives the same result. */
static double some(int a, int b) {
    return (a * 7 + b * 5) % 13 - 6;
}

static void build(matrix_t *m) {
    size_t index = m->index == I32 ? 4 : 8;
    char *offsets = calloc(M * K + 1, 8), *columns = calloc(M * K, 8), *numbers = calloc(M * K, 16);
    m->nnz = 0;
    for (int row = 0; row < M; row++) {
        if (!m->is_coo) {
            put_index(offsets, m->index, (size_t) row, m->nnz + m->base);
        }
        for (int col = 0; col < K; col++) {
            double *value = m->values[row][col];
            value[0] = (row * 3 + col * 2) % 5 == 0 && row % 6 != 1 ? some(row, col) : 0; /* also empty rows */
            value[1] = value[0] != 0 && is_complex(m->type) ? some(col, row) : 0;
            if (value[0] != 0 || value[1] != 0) {
                if (m->is_coo) {
                    put_index(offsets, m->index, (size_t) m->nnz, row + m->base);
                }
                put_index(columns, m->index, (size_t) m->nnz, col + m->base);
                put(numbers, m->type, (size_t) m->nnz++, value);
            }
        }
    }
    put_index(offsets, m->index, m->is_coo ? (size_t) m->nnz : M, m->nnz + m->base);
    m->offsets = upload(offsets, (size_t) (m->is_coo ? m->nnz : M + 1) * index);
    m->columns = upload(columns, (size_t) m->nnz * index);
    m->numbers = upload(numbers, (size_t) m->nnz * bytes_of(m->type));
    free(offsets);
    free(columns);
    free(numbers);
    if (m->is_coo) {
        OK(cusparseCreateCoo(&m->descr, M, K, m->nnz, m->offsets, m->columns, m->numbers, m->index, m->base, m->type));
    } else {
        OK(cusparseCreateCsr(&m->descr, M, K, m->nnz, m->offsets, m->columns, m->numbers, m->index, m->index, m->base,
                             m->type));
    }
}

static void drop(matrix_t *m) {
    OK(cusparseDestroySpMat(m->descr));
    CU_OK(cuMemFree(m->offsets));
    CU_OK(cuMemFree(m->columns));
    CU_OK(cuMemFree(m->numbers));
}

static void same(const char *what, const double *got, const double *expected) {
    if (got[0] != expected[0] || got[1] != expected[1]) {
        check_fail("%s, expected %g %g, got %g %g", what, expected[0], expected[1], got[0], got[1]);
    }
}

static CUstream stream;
static handle_t handle;
static data_t device_numbers; /* two numbers of the longest type */

/* c = alpha * op(a) * b + beta * c, with a vector where width is 1. */
static void multiply(const matrix_t *m, int op, int width, int order, int mode) {
    const int type = m->type, rows = op == N ? M : K, inner = op == N ? K : M;
    const int ld_b = (order == COLUMNS ? inner : width) + GUARD, ld_c = (order == COLUMNS ? rows : width) + GUARD;
    const size_t size_b = (size_t) ld_b * (size_t) (order == COLUMNS ? width : inner);
    const size_t size_c = (size_t) ld_c * (size_t) (order == COLUMNS ? width : rows);
    const double factors[2][2] = {{2, is_complex(type) ? -1 : 0}, {-3, is_complex(type) ? 2 : 0}};
    char alpha[16], beta[16], *b = calloc(size_b, 16), *c = calloc(size_c, 16), *out = calloc(size_c, 16);
    put(alpha, type, 0, factors[0]);
    put(beta, type, 0, factors[1]);
    for (size_t i = 0; i < size_b; i++) {
        put(b, type, i, (double[]) {some((int) i, 1), some(2, (int) i)});
    }
    for (size_t i = 0; i < size_c; i++) {
        put(c, type, i, (double[]) {some((int) i, 4), some(3, (int) i)});
    }
    data_t on_b = upload(b, size_b * bytes_of(type)), on_c = upload(c, size_c * bytes_of(type)), buffer;
    const void *first = alpha, *second = beta;
    OK(cusparseSetPointerMode(handle, mode));
    if (mode == DEVICE) {
        CU_OK(cuMemcpyHtoD(device_numbers, alpha, bytes_of(type)));
        CU_OK(cuMemcpyHtoD(device_numbers + 16, beta, bytes_of(type)));
        first = (const void *) (uintptr_t) device_numbers;
        second = (const void *) (uintptr_t) (device_numbers + 16);
    }
    descr_t x, y;
    size_t bytes = 0;
    if (width == 1) {
        OK(cusparseCreateDnVec(&x, inner, on_b, type));
        OK(cusparseCreateDnVec(&y, rows, on_c, type));
        OK(cusparseSpMV_bufferSize(handle, op, first, m->descr, x, second, y, type, 0, &bytes));
        CU_OK(cuMemAlloc(&buffer, bytes + 1));
        OK(cusparseSpMV(handle, op, first, m->descr, x, second, y, type, 0, buffer));
        IS(INVALID_VALUE, cusparseSpMV(handle, op, NULL, m->descr, x, second, y, type, 0, buffer));
        OK(cusparseDestroyDnVec(x));
        OK(cusparseDestroyDnVec(y));
    } else {
        OK(cusparseCreateDnMat(&x, inner, width, ld_b, on_b, type, order));
        OK(cusparseCreateDnMat(&y, rows, width, ld_c, on_c, type, order));
        OK(cusparseSpMM_bufferSize(handle, op, N, first, m->descr, x, second, y, type, 0, &bytes));
        CU_OK(cuMemAlloc(&buffer, bytes + 1));
        OK(cusparseSpMM(handle, op, N, first, m->descr, x, second, y, type, 0, buffer));
        OK(cusparseDestroyDnMat(x));
        OK(cusparseDestroyDnMat(y));
    }
    memset(alpha, 0xff, sizeof alpha); /* numbers on the host have been read */
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemcpyDtoH(out, on_c, size_c * bytes_of(type)));
    for (int j = 0; j < width; j++) {
        for (int i = 0; i < ld_c; i++) {
            size_t at = order == COLUMNS || width == 1 ? (size_t) (j * ld_c + i) : (size_t) i;
            double sum[2] = {0, 0}, got[2], old[2];
            int row = i;
            if (order == ROWS && width > 1) {
                if (i >= rows) {
                    continue;
                }
                at = (size_t) (i * ld_c + j);
            }
            get(out, type, at, got);
            get(c, type, at, old);
            if (row >= rows) {
                same("an element behind a column", got, old);
                continue;
            }
            for (int k = 0; k < inner; k++) {
                double other[2];
                const double *value = op == N ? m->values[row][k] : m->values[k][row];
                double imaginary = op == C ? -value[1] : value[1];
                get(b, type, order == ROWS && width > 1 ? (size_t) (k * ld_b + j) : (size_t) (j * ld_b + k), other);
                sum[0] += value[0] * other[0] - imaginary * other[1];
                sum[1] += value[0] * other[1] + imaginary * other[0];
            }
            double expected[2];
            for (int part = 0; part < 2; part++) {
                expected[part] = factors[0][0] * sum[part] + (part == 0 ? -1 : 1) * factors[0][1] * sum[1 - part]
                    + factors[1][0] * old[part] + (part == 0 ? -1 : 1) * factors[1][1] * old[1 - part];
            }
            same("an element of a product", got, expected);
        }
    }
    CU_OK(cuMemFree(on_b));
    CU_OK(cuMemFree(on_c));
    CU_OK(cuMemFree(buffer));
    free(b);
    free(c);
    free(out);
}

/* Sparse to dense and back; the matrix that comes back has the same arrays. */
static void convert(const matrix_t *m) {
    const int type = m->type, ld = M + GUARD;
    const size_t index = m->index == I32 ? 4 : 8, total = (size_t) ld * K;
    data_t dense, buffer, offsets, columns, numbers;
    descr_t target, sparse;
    size_t bytes = 0, more = 0;
    CU_OK(cuMemAlloc(&dense, total * bytes_of(type)));
    CU_OK(cuMemsetD8(dense, 0x11, total * bytes_of(type)));
    CU_OK(cuStreamSynchronize(NULL)); /* the stream of the handle does not wait for the default one */
    OK(cusparseCreateDnMat(&target, M, K, ld, dense, type, COLUMNS));
    OK(cusparseSparseToDense_bufferSize(handle, m->descr, target, 0, &bytes));
    CU_OK(cuMemAlloc(&buffer, bytes + 1));
    OK(cusparseSparseToDense(handle, m->descr, target, 0, buffer));
    CU_OK(cuStreamSynchronize(stream));
    char *out = calloc(total, 16);
    CU_OK(cuMemcpyDtoH(out, dense, total * bytes_of(type)));
    for (int row = 0; row < M; row++) {
        for (int col = 0; col < K; col++) {
            double got[2];
            get(out, type, (size_t) (col * ld + row), got);
            same("an element of a dense matrix", got, m->values[row][col]);
        }
    }
    CU_OK(cuMemAlloc(&offsets, (M * K + 1) * 8));
    if (m->is_coo) {
        OK(cusparseCreateCoo(&sparse, M, K, 0, 0, 0, 0, m->index, m->base, type));
    } else {
        OK(cusparseCreateCsr(&sparse, M, K, 0, offsets, 0, 0, m->index, m->index, m->base, type));
    }
    if (!m->is_coo) {
        OK(cusparseDenseToSparse_bufferSize(handle, target, sparse, 0, &more));
        data_t room;
        CU_OK(cuMemAlloc(&room, more + 1));
        OK(cusparseDenseToSparse_analysis(handle, target, sparse, 0, room));
        int64_t rows = 0, cols = 0, nnz = 0;
        OK(cusparseSpMatGetSize(sparse, &rows, &cols, &nnz));
        if (rows != M || cols != K || nnz != m->nnz) {
            check_fail("the elements of a dense matrix, expected %d, got %lld", m->nnz, (long long) nnz);
        }
        CU_OK(cuMemAlloc(&columns, (size_t) nnz * index));
        CU_OK(cuMemAlloc(&numbers, (size_t) nnz * bytes_of(type)));
        OK(cusparseCsrSetPointers(sparse, offsets, columns, numbers));
        OK(cusparseDenseToSparse_convert(handle, target, sparse, 0, room));
        CU_OK(cuStreamSynchronize(stream));
        char *left = malloc(total * 16), *right = malloc(total * 16);
        const data_t pairs[][2] = {{offsets, m->offsets}, {columns, m->columns}, {numbers, m->numbers}};
        const size_t sizes[] = {(M + 1) * index, (size_t) nnz * index, (size_t) nnz * bytes_of(type)};
        for (int i = 0; i < 3; i++) {
            CU_OK(cuMemcpyDtoH(left, pairs[i][0], sizes[i]));
            CU_OK(cuMemcpyDtoH(right, pairs[i][1], sizes[i]));
            check_true("an array of a converted matrix has the values of the first one",
                       memcmp(left, right, sizes[i]) == 0);
        }
        free(left);
        free(right);
        CU_OK(cuMemFree(columns));
        CU_OK(cuMemFree(numbers));
        CU_OK(cuMemFree(room));
    }
    OK(cusparseDestroySpMat(sparse));
    OK(cusparseDestroyDnMat(target));
    CU_OK(cuMemFree(offsets));
    CU_OK(cuMemFree(dense));
    CU_OK(cuMemFree(buffer));
    free(out);
}

/* Rows of a list from offsets, and back. */
static void lists(const matrix_t *m) {
    data_t rows, offsets;
    int32_t before[M + 1], after[M + 1];
    CU_OK(cuMemAlloc(&rows, (size_t) m->nnz * 4));
    CU_OK(cuMemAlloc(&offsets, sizeof after));
    OK(cusparseXcsr2coo(handle, m->offsets, m->nnz, M, rows, m->base));
    OK(cusparseXcoo2csr(handle, rows, m->nnz, M, offsets, m->base));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemcpyDtoH(before, m->offsets, sizeof before));
    CU_OK(cuMemcpyDtoH(after, offsets, sizeof after));
    check_true("offsets become a list and offsets again", memcmp(before, after, sizeof before) == 0);
    CU_OK(cuMemFree(rows));
    CU_OK(cuMemFree(offsets));
}

/* Elements of a complex matrix over a threshold, by value, where the other end drops small elements. */
static void compress(const matrix_t *m) {
    static const double tolerance = 4.5; /* lies between the sizes of elements */
    double left[M * K][2];
    int expected = 0, got = 0;
    for (int i = 0; i < M * K; i++) {
        const double *value = m->values[i / K][i % K];
        if (hypot(value[0], value[1]) > tolerance) {
            memcpy(left[expected++], value, sizeof *left);
        }
    }
    data_t rows, offsets, columns, numbers;
    descr_t descr;
    CU_OK(cuMemAlloc(&rows, M * 4));
    CU_OK(cuMemAlloc(&offsets, (M + 1) * 4));
    CU_OK(cuMemAlloc(&columns, (size_t) m->nnz * 4));
    CU_OK(cuMemAlloc(&numbers, (size_t) m->nnz * 16));
    OK(cusparseSetPointerMode(handle, HOST));
    OK(cusparseCreateMatDescr(&descr));
    OK(cusparseSetMatIndexBase(descr, m->base));
    complex64_t wide = {tolerance, 0};
    complex32_t narrow = {(float) tolerance, 0};
#define COUNTED_ARGUMENTS handle, M, descr, m->numbers, m->offsets, rows, &got
    int status = m->type == C_64F ? cusparseZnnz_compress(COUNTED_ARGUMENTS, wide)
                                  : cusparseCnnz_compress(COUNTED_ARGUMENTS, narrow);
    if (status != NOT_SUPPORTED) {
        IS(SUCCESS, status);
        check_element("elements over a threshold", 0, expected, got);
#define COMPRESSED_ARGUMENTS                                                                                           \
    handle, M, K, descr, m->numbers, m->columns, m->offsets, m->nnz, rows, numbers, columns, offsets
        OK(m->type == C_64F ? cusparseZcsr2csr_compress(COMPRESSED_ARGUMENTS, wide)
                            : cusparseCcsr2csr_compress(COMPRESSED_ARGUMENTS, narrow));
        CU_OK(cuStreamSynchronize(stream));
        char found[M * K * 16];
        CU_OK(cuMemcpyDtoH(found, numbers, (size_t) got * bytes_of(m->type)));
        for (int i = 0; i < got; i++) {
            double value[2];
            get(found, m->type, (size_t) i, value);
            same("an element over a threshold", value, left[i]);
        }
    }
    OK(cusparseDestroyMatDescr(descr));
    CU_OK(cuMemFree(rows));
    CU_OK(cuMemFree(offsets));
    CU_OK(cuMemFree(columns));
    CU_OK(cuMemFree(numbers));
}

/* The sum of all elements of a * b, where the other end multiplies sparse matrices. */
static void sparse_product(const matrix_t *a) {
    double one = 1, zero = 0;
    int32_t offsets[K + 1], columns[K];
    double numbers[K];
    for (int i = 0; i < K; i++) { /* a diagonal matrix */
        offsets[i] = i + a->base;
        columns[i] = i + a->base;
        numbers[i] = i - 4;
    }
    offsets[K] = K + a->base;
    data_t on_offsets = upload(offsets, sizeof offsets), on_columns = upload(columns, sizeof columns);
    data_t on_numbers = upload(numbers, sizeof numbers), c_offsets, c_columns, c_numbers, first = 0, second = 0;
    descr_t b, c, product;
    OK(cusparseSetPointerMode(handle, HOST));
    CU_OK(cuMemAlloc(&c_offsets, (M + 1) * 4));
    OK(cusparseCreateCsr(&b, K, K, K, on_offsets, on_columns, on_numbers, I32, I32, a->base, R_64F));
    OK(cusparseCreateCsr(&c, M, K, 0, c_offsets, 0, 0, I32, I32, a->base, R_64F));
    OK(cusparseSpGEMM_createDescr(&product));
#define ARGUMENTS handle, N, N, &one, a->descr, b, &zero, c, R_64F, 0, product
    size_t bytes = 0;
    int status = cusparseSpGEMM_workEstimation(ARGUMENTS, &bytes, 0);
    if (status != NOT_SUPPORTED) {
        IS(SUCCESS, status);
        CU_OK(cuMemAlloc(&first, bytes + 1));
        OK(cusparseSpGEMM_workEstimation(ARGUMENTS, &bytes, first));
        OK(cusparseSpGEMM_compute(ARGUMENTS, &bytes, 0));
        CU_OK(cuMemAlloc(&second, bytes + 1));
        OK(cusparseSpGEMM_compute(ARGUMENTS, &bytes, second));
        int64_t rows, cols, nnz;
        OK(cusparseSpMatGetSize(c, &rows, &cols, &nnz));
        CU_OK(cuMemAlloc(&c_columns, (size_t) nnz * 4 + 1));
        CU_OK(cuMemAlloc(&c_numbers, (size_t) nnz * 8 + 1));
        OK(cusparseCsrSetPointers(c, c_offsets, c_columns, c_numbers));
        OK(cusparseSpGEMM_copy(ARGUMENTS));
        CU_OK(cuStreamSynchronize(stream));
        double *values = calloc((size_t) nnz + 1, sizeof *values), sum = 0, expected = 0;
        CU_OK(cuMemcpyDtoH(values, c_numbers, (size_t) nnz * 8));
        for (int64_t i = 0; i < nnz; i++) {
            sum += values[i];
        }
        for (int row = 0; row < M; row++) {
            for (int col = 0; col < K; col++) {
                expected += a->values[row][col][0] * (col - 4);
            }
        }
        same("the sum of a sparse product", (double[]) {sum, 0}, (double[]) {expected, 0});
        free(values);
        CU_OK(cuMemFree(c_columns));
        CU_OK(cuMemFree(c_numbers));
        CU_OK(cuMemFree(first));
        CU_OK(cuMemFree(second));
    }
    OK(cusparseSpGEMM_destroyDescr(product));
    OK(cusparseDestroySpMat(b));
    OK(cusparseDestroySpMat(c));
    CU_OK(cuMemFree(on_offsets));
    CU_OK(cuMemFree(on_columns));
    CU_OK(cuMemFree(on_numbers));
    CU_OK(cuMemFree(c_offsets));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    CU_OK(cuStreamCreate(&stream, 0)); /* copies of the default stream come first */
    CU_OK(cuMemAlloc(&device_numbers, 32));
    int made = cusparseCreate(&handle);
    if (made == NOT_SUPPORTED) {
        check_unsupported("cusparseCreate: %d", made);
    }
    IS(SUCCESS, made);
    OK(cusparseSetStream(handle, stream));
    static const int types[] = {R_32F, R_64F, C_32F, C_64F};
    static matrix_t m;
    int products = 0;
    for (int i = 0; i < 16; i++) {
        m = (matrix_t) {.type = types[i % 4], .index = i / 4 % 2 ? I64 : I32, .base = i / 8, .is_coo = i % 3 == 0};
        build(&m);
        for (int op = N; op <= (is_complex(m.type) ? C : T); op++) {
            multiply(&m, op, 1, COLUMNS, products++ % 2 ? DEVICE : HOST);
            multiply(&m, op, WIDTH, COLUMNS, products++ % 2 ? HOST : DEVICE);
            multiply(&m, op, WIDTH, ROWS, products++ % 3 ? HOST : DEVICE);
        }
        convert(&m);
        if (!m.is_coo && m.index == I32) {
            lists(&m);
        }
        if (!m.is_coo && m.index == I32 && is_complex(m.type)) {
            compress(&m);
        }
        if (!m.is_coo && m.index == I32 && m.type == R_64F) {
            sparse_product(&m);
        }
        drop(&m);
    }
    OK(cusparseDestroy(handle));
    CU_OK(cuMemFree(device_numbers));
    CU_OK(cuStreamDestroy(stream));
    return check_pass("%d products", products);
}
