/*
 * BLAS 1 to 3 by cuBLAS in float, double and both complex types, held against sums that the program computes from
 * small whole numbers: increments of both signs, triangles, bands and packed forms, results on host and device, arrays
 * of matrices, copies of vectors and matrices, wrong arguments. drv_cublas has the products of full matrices.
 */
#include "check_blas.h"
#include "check_driver.h"

#include <dlfcn.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { HOST = 0, DEVICE = 1 };
#define N 7
#define LD 9
#define MOST (LD * LD)
#define STEPS 3 /* the largest increment */

typedef void *handle_t;

static handle_t handle;
static void *library;
static int routines;

/* The function of the type in use. In a pattern, ? stands for its letter. */
static void *find(const char *pattern) {
    char name[64];
    int at = 0;
    for (const char *c = pattern; *c != 0 && at < 60; c++) {
        if (*c == '?') {
            name[at++] = type->letter;
        } else if (*c == '%') { /* S, D, Sc, Dz */
            name[at++] = type->is_double ? 'D' : 'S';
            if (type->is_complex) {
                name[at++] = type->is_double ? 'z' : 'c';
            }
        } else if (*c == '!') { /* the small letter */
            name[at++] = (char) (type->letter + 32);
        } else {
            name[at++] = *c;
        }
    }
    name[at] = 0;
    void *function = dlsym(library, name);
    if (function == NULL) {
        check_fail("the function %s, expected its address, got none", name);
    }
    routines++;
    return function;
}

#define CALL(pattern, parameters, ...) ((int(*) parameters) find(pattern))(__VA_ARGS__)
static void is(int expected, int got, const char *what) {
    if (got != expected) {
        check_fail("%c %s, expected %d, got %d", type->letter, what, expected, got);
    }
}
#define OK(what, call) is(SUCCESS, (call), what)

static z_t number(int seed, int at) {
    double re = (seed * 7919 + at * 104729) % 9 - 4, im = (seed * 1543 + at * 7907) % 7 - 3;
    return type->is_complex ? re + im * I : re;
}

/* The numbers of a seed in host memory and on the device. */
static void fill(z_t *host, int seed, int count) {
    for (int i = 0; i < count; i++) {
        host[i] = number(seed, i);
    }
}

static CUdeviceptr upload(const z_t *host, int count) {
    char bytes[MOST * STEPS * 16];
    for (int i = 0; i < count; i++) {
        put(bytes, i, host[i]);
    }
    return check_device(bytes, (size_t) count * type->bytes);
}

static void compare(CUdeviceptr device, const z_t *expected, int count, const char *what) {
    char bytes[MOST * STEPS * 16];
    CU_OK(cuMemcpyDtoH(bytes, device, (size_t) count * type->bytes));
    for (int i = 0; i < count; i++) {
        z_t got = get(bytes, i);
        if (got != expected[i]) {
            check_fail("%c %s, element %d, expected %g%+gi, got %g%+gi", type->letter, what, i, creal(expected[i]),
                       cimag(expected[i]), creal(got), cimag(got));
        }
    }
    CU_OK(cuMemFree(device));
}

/* Place of element i of a vector of n elements: a negative increment reads it backwards. */
static int at(int i, int n, int inc) {
    return inc > 0 ? i * inc : (n - 1 - i) * -inc;
}

static z_t op(const z_t *a, int trans, int row, int column) {
    z_t value = trans == OP_N ? a[column * LD + row] : a[row * LD + column];
    return trans == OP_C ? conj(value) : value;
}

/* Element of a triangle, of a symmetric or of a Hermitian matrix, of which one half is stored. */
static z_t triangle(const z_t *a, int uplo, int diag, int row, int column) {
    if (row == column) {
        return diag == UNIT ? 1 : a[column * LD + row];
    }
    return (uplo == UPPER) == (row < column) ? a[column * LD + row] : 0;
}

static z_t op_triangle(const z_t *a, int uplo, int diag, int trans, int row, int column) {
    z_t value = trans == OP_N ? triangle(a, uplo, diag, row, column) : triangle(a, uplo, diag, column, row);
    return trans == OP_C ? conj(value) : value;
}

static z_t mirrored(const z_t *a, int uplo, int hermitian, int row, int column) {
    int stored = (uplo == UPPER) == (row < column) || row == column;
    z_t value = stored ? a[column * LD + row] : a[row * LD + column];
    if (hermitian && row == column) {
        return creal(value);
    }
    return !stored && hermitian ? conj(value) : value;
}

static char alpha_bytes[16], beta_bytes[16];
static z_t alpha, beta;

static void scalars(z_t a, z_t b) {
    alpha = type->is_complex ? a : creal(a);
    beta = type->is_complex ? b : creal(b);
    put(alpha_bytes, 0, alpha);
    put(beta_bytes, 0, beta);
}

#define VECTORS handle_t, int, CUdeviceptr, int, CUdeviceptr, int
#define SCALED handle_t, int, const void *, CUdeviceptr, int, CUdeviceptr, int

static void check_vectors(int incx, int incy) {
    z_t x[N * STEPS], y[N * STEPS], expected[N * STEPS];
    fill(x, 1, N * STEPS);
    fill(y, 2, N * STEPS);
    scalars(2 + I, 0);
    memcpy(expected, y, sizeof y);
    for (int i = 0; i < N; i++) {
        expected[at(i, N, incy)] += alpha * x[at(i, N, incx)];
    }
    CUdeviceptr dx = upload(x, N * STEPS), dy = upload(y, N * STEPS);
    OK("axpy", CALL("cublas?axpy_v2", (SCALED), handle, N, alpha_bytes, dx, incx, dy, incy));
    compare(dy, expected, N * STEPS, "axpy");
    memcpy(expected, y, sizeof y);
    for (int i = 0; i < N; i++) {
        expected[at(i, N, incy)] = x[at(i, N, incx)];
    }
    dy = upload(y, N * STEPS);
    OK("copy", CALL("cublas?copy_v2", (VECTORS), handle, N, dx, incx, dy, incy));
    compare(dy, expected, N * STEPS, "copy");
    dy = upload(y, N * STEPS);
    OK("swap", CALL("cublas?swap_v2", (VECTORS), handle, N, dx, incx, dy, incy));
    compare(dy, expected, N * STEPS, "swap");
    CU_OK(cuMemFree(dx));
}

/* The result of a function, from the host or from the device. */
static z_t result_of(int (*function)(handle_t, int, CUdeviceptr, int, void *), CUdeviceptr x, int inc, int mode,
                     int is_real, int is_index) {
    char bytes[16] = {0};
    CUdeviceptr device = check_device(bytes, sizeof bytes);
    OK("pointer mode", CALL("cublasSetPointerMode_v2", (handle_t, int), handle, mode));
    OK("a reduction", function(handle, N, x, inc, mode == DEVICE ? (void *) (uintptr_t) device : bytes));
    if (mode == DEVICE) {
        CU_OK(cuMemcpyDtoH(bytes, device, sizeof bytes));
    }
    OK("pointer mode", CALL("cublasSetPointerMode_v2", (handle_t, int), handle, HOST));
    CU_OK(cuMemFree(device));
    int index;
    memcpy(&index, bytes, sizeof index);
    if (is_index) {
        return index;
    }
    const type_t *whole = type, real = {type->letter, type->bytes / 2, 0, type->is_double};
    type = is_real ? &real : type;
    z_t value = get(bytes, 0);
    type = whole;
    return value;
}

static void expect(z_t expected, z_t got, double error, const char *what) {
    if (cabs(expected - got) > error) {
        check_fail("%c %s, expected %.9g%+.9gi, got %.9g%+.9gi", type->letter, what, creal(expected), cimag(expected),
                   creal(got), cimag(got));
    }
}

static void check_reductions(int mode) {
    z_t x[N * STEPS], y[N * STEPS];
    fill(x, 1, N * STEPS);
    fill(y, 2, N * STEPS);
    CUdeviceptr dx = upload(x, N * STEPS), dy = upload(y, N * STEPS);
    double squares = 0, sum = 0;
    z_t dot = 0, conjugate = 0;
    int largest = 0, smallest = 0;
    for (int i = 0; i < N; i++) {
        double size = fabs(creal(x[i * 2])) + fabs(cimag(x[i * 2]));
        double least = fabs(creal(x[smallest * 2])) + fabs(cimag(x[smallest * 2]));
        double most = fabs(creal(x[largest * 2])) + fabs(cimag(x[largest * 2]));
        squares += creal(x[i * 2] * conj(x[i * 2]));
        sum += size;
        largest = size > most ? i : largest;
        smallest = size < least ? i : smallest;
        dot += x[i * 2] * y[at(i, N, -1)];
        conjugate += conj(x[i * 2]) * y[at(i, N, -1)];
    }
    int (*function)(handle_t, int, CUdeviceptr, int, void *);
    *(void **) &function = find("cublas%nrm2_v2");
    expect(sqrt(squares), result_of(function, dx, 2, mode, 1, 0), 1e-5, "nrm2");
    expect(0, result_of(function, dx, 0, mode, 1, 0), 0, "nrm2 without an increment");
    *(void **) &function = find("cublas%asum_v2");
    expect(sum, result_of(function, dx, 2, mode, 1, 0), 0, "asum");
    *(void **) &function = find("cublasI!amax_v2");
    expect(largest + 1, result_of(function, dx, 2, mode, 1, 1), 0, "amax");
    *(void **) &function = find("cublasI!amin_v2");
    expect(smallest + 1, result_of(function, dx, 2, mode, 1, 1), 0, "amin");
    for (int conjugated = 0; conjugated <= type->is_complex; conjugated++) {
        char bytes[16] = {0};
        CUdeviceptr device = check_device(bytes, sizeof bytes);
        OK("pointer mode", CALL("cublasSetPointerMode_v2", (handle_t, int), handle, mode));
        const char *name = !type->is_complex ? "cublas?dot_v2" : conjugated ? "cublas?dotc_v2" : "cublas?dotu_v2";
        OK(name,
           CALL(name, (handle_t, int, CUdeviceptr, int, CUdeviceptr, int, void *), handle, N, dx, 2, dy, -1,
                mode == DEVICE ? (void *) (uintptr_t) device : bytes));
        if (mode == DEVICE) {
            CU_OK(cuMemcpyDtoH(bytes, device, sizeof bytes));
        }
        OK("pointer mode", CALL("cublasSetPointerMode_v2", (handle_t, int), handle, HOST));
        expect(conjugated ? conjugate : dot, get(bytes, 0), 0, name);
        CU_OK(cuMemFree(device));
    }
    int64_t wide = -1;
    OK("amax_64",
       CALL("cublasI!amax_v2_64", (handle_t, int64_t, CUdeviceptr, int64_t, int64_t *), handle, N, dx, 2, &wide));
    expect(largest + 1, (double) wide, 0, "amax_64");
    is(INVALID_VALUE, CALL("cublasI!amax_v2", (handle_t, int, CUdeviceptr, int, void *), handle, N, dx, 2, NULL),
       "amax without a result");
    CU_OK(cuMemFree(dx));
    CU_OK(cuMemFree(dy));
}

#define MATRIX_VECTOR                                                                                                  \
    handle_t, int, int, int, const void *, CUdeviceptr, int, CUdeviceptr, int, const void *, CUdeviceptr, int
#define MIRRORED handle_t, int, int, const void *, CUdeviceptr, int, CUdeviceptr, int, const void *, CUdeviceptr, int
#define TRIANGLE handle_t, int, int, int, int, CUdeviceptr, int, CUdeviceptr, int

static void check_matrix_vector(int incx, int incy) {
    z_t a[MOST], x[N * STEPS], y[N * STEPS], expected[N * STEPS];
    fill(a, 3, MOST);
    fill(x, 1, N * STEPS);
    fill(y, 2, N * STEPS);
    scalars(2 - I, -1 + 2 * I);
    CUdeviceptr da = upload(a, MOST), dx = upload(x, N * STEPS);
    for (int trans = OP_N; trans <= OP_C; trans++) {
        int m = 5, rows = trans == OP_N ? m : N, columns = trans == OP_N ? N : m;
        memcpy(expected, y, sizeof y);
        for (int row = 0; row < rows; row++) {
            z_t sum = 0;
            for (int i = 0; i < columns; i++) {
                sum += op(a, trans, row, i) * x[at(i, columns, incx)];
            }
            expected[at(row, rows, incy)] = alpha * sum + beta * expected[at(row, rows, incy)];
        }
        CUdeviceptr dy = upload(y, N * STEPS);
        OK("gemv",
           CALL("cublas?gemv_v2", (MATRIX_VECTOR), handle, trans, m, N, alpha_bytes, da, LD, dx, incx, beta_bytes, dy,
                incy));
        compare(dy, expected, N * STEPS, "gemv");
    }
    for (int uplo = LOWER; uplo <= UPPER; uplo++) {
        int hermitian = type->is_complex;
        memcpy(expected, y, sizeof y);
        for (int row = 0; row < N; row++) {
            z_t sum = 0;
            for (int i = 0; i < N; i++) {
                sum += mirrored(a, uplo, hermitian, row, i) * x[at(i, N, incx)];
            }
            expected[at(row, N, incy)] = alpha * sum + beta * expected[at(row, N, incy)];
        }
        CUdeviceptr dy = upload(y, N * STEPS);
        OK("hemv",
           CALL(hermitian ? "cublas?hemv_v2" : "cublas?symv_v2", (MIRRORED), handle, uplo, N, alpha_bytes, da, LD, dx,
                incx, beta_bytes, dy, incy));
        compare(dy, expected, N * STEPS, "symv or hemv");
        z_t packed[MOST];
        int count = 0;
        for (int column = 0; column < N; column++) {
            for (int row = uplo == UPPER ? 0 : column; row < (uplo == UPPER ? column + 1 : N); row++) {
                packed[count++] = a[column * LD + row];
            }
        }
        CUdeviceptr dp = upload(packed, count);
        dy = upload(y, N * STEPS);
        OK("hpmv",
           CALL(hermitian ? "cublas?hpmv_v2" : "cublas?spmv_v2",
                (handle_t, int, int, const void *, CUdeviceptr, CUdeviceptr, int, const void *, CUdeviceptr, int),
                handle, uplo, N, alpha_bytes, dp, dx, incx, beta_bytes, dy, incy));
        compare(dy, expected, N * STEPS, "spmv or hpmv");
        for (int trans = OP_N; trans <= OP_C; trans++) {
            for (int diag = NON_UNIT; diag <= UNIT; diag++) {
                memcpy(expected, x, sizeof x);
                for (int row = 0; row < N; row++) {
                    z_t sum = 0;
                    for (int i = 0; i < N; i++) {
                        sum += op_triangle(a, uplo, diag, trans, row, i) * x[at(i, N, incx)];
                    }
                    expected[at(row, N, incx)] = sum;
                }
                CUdeviceptr product = upload(x, N * STEPS);
                OK("trmv", CALL("cublas?trmv_v2", (TRIANGLE), handle, uplo, trans, diag, N, da, LD, product, incx));
                compare(product, expected, N * STEPS, "trmv");
                product = upload(x, N * STEPS);
                OK("tpmv",
                   CALL("cublas?tpmv_v2", (handle_t, int, int, int, int, CUdeviceptr, CUdeviceptr, int), handle, uplo,
                        trans, diag, N, dp, product, incx));
                if (diag == UNIT) { /* whole numbers without a division: back to x */
                    OK("trsv", CALL("cublas?trsv_v2", (TRIANGLE), handle, uplo, trans, diag, N, da, LD, product, incx));
                    memcpy(expected, x, sizeof x);
                }
                compare(product, expected, N * STEPS, "tpmv, and trsv");
            }
        }
        CU_OK(cuMemFree(dp));
    }
    memcpy(expected, x, sizeof x);
    CU_OK(cuMemFree(dx));
    /* A + alpha * x * y^T, then a band of A. */
    z_t sum[MOST];
    memcpy(sum, a, sizeof a);
    for (int column = 0; column < N; column++) {
        for (int row = 0; row < 5; row++) {
            sum[column * LD + row] += alpha * x[at(row, 5, incx)] * y[at(column, N, incy)];
        }
    }
    dx = upload(x, N * STEPS);
    CUdeviceptr dy = upload(y, N * STEPS);
    OK("ger",
       CALL(type->is_complex ? "cublas?geru_v2" : "cublas?ger_v2",
            (handle_t, int, int, const void *, CUdeviceptr, int, CUdeviceptr, int, CUdeviceptr, int), handle, 5, N,
            alpha_bytes, dx, incx, dy, incy, da, LD));
    compare(da, sum, MOST, "ger or geru");
    memcpy(expected, y, sizeof y);
    for (int row = 0; row < N; row++) { /* one diagonal below, two above: A(row, column) at [2 + row - column] */
        z_t total = 0;
        for (int i = row > 1 ? row - 1 : 0; i < N && i <= row + 2; i++) {
            total += a[i * LD + 2 + row - i] * x[at(i, N, incx)];
        }
        expected[at(row, N, incy)] = alpha * total + beta * expected[at(row, N, incy)];
    }
    da = upload(a, MOST);
    OK("gbmv",
       CALL("cublas?gbmv_v2",
            (handle_t, int, int, int, int, int, const void *, CUdeviceptr, int, CUdeviceptr, int, const void *,
             CUdeviceptr, int),
            handle, OP_N, N, N, 1, 2, alpha_bytes, da, LD, dx, incx, beta_bytes, dy, incy));
    compare(dy, expected, N * STEPS, "gbmv");
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(dx));
}

/* C = alpha * sum over i of first(row, i) * second(i, column) + beta * C, in all or one triangle of a square of N. */
static void check_matrices(void) {
    z_t a[MOST], b[MOST], c[MOST], expected[MOST];
    fill(a, 3, MOST);
    fill(b, 4, MOST);
    fill(c, 5, MOST);
    scalars(2 - I, -1 + 2 * I);
    CUdeviceptr da = upload(a, MOST), db = upload(b, MOST);
    for (int uplo = LOWER; uplo <= UPPER; uplo++) {
        for (int side = LEFT; side <= RIGHT; side++) {
            for (int hermitian = 0; hermitian <= type->is_complex; hermitian++) {
                memcpy(expected, c, sizeof c);
                for (int at = 0; at < N * N; at++) {
                    int row = at % N, column = at / N;
                    z_t sum = 0;
                    for (int i = 0; i < N; i++) {
                        sum += side == LEFT ? mirrored(a, uplo, hermitian, row, i) * b[column * LD + i]
                                            : b[i * LD + row] * mirrored(a, uplo, hermitian, i, column);
                    }
                    expected[column * LD + row] = alpha * sum + beta * c[column * LD + row];
                }
                CUdeviceptr dc = upload(c, MOST);
                OK("symm",
                   CALL(hermitian ? "cublas?hemm_v2" : "cublas?symm_v2",
                        (handle_t, int, int, int, int, const void *, CUdeviceptr, int, CUdeviceptr, int, const void *,
                         CUdeviceptr, int),
                        handle, side, uplo, N, N, alpha_bytes, da, LD, db, LD, beta_bytes, dc, LD));
                compare(dc, expected, MOST, "symm or hemm");
            }
            for (int trans = OP_N; trans <= OP_C; trans++) {
                memcpy(expected, c, sizeof c);
                for (int at = 0; at < N * N; at++) {
                    int row = at % N, column = at / N;
                    z_t sum = 0;
                    for (int i = 0; i < N; i++) {
                        sum += side == LEFT ? op_triangle(a, uplo, UNIT, trans, row, i) * b[column * LD + i]
                                            : b[i * LD + row] * op_triangle(a, uplo, UNIT, trans, i, column);
                    }
                    expected[column * LD + row] = alpha * sum;
                }
                CUdeviceptr dc = upload(c, MOST);
                OK("trmm",
                   CALL("cublas?trmm_v2",
                        (handle_t, int, int, int, int, int, int, const void *, CUdeviceptr, int, CUdeviceptr, int,
                         CUdeviceptr, int),
                        handle, side, uplo, trans, UNIT, N, N, alpha_bytes, da, LD, db, LD, dc, LD));
                char one[16];
                put(one, 0, 1);
                CUdeviceptr solved = upload(expected, MOST);
                OK("trsm",
                   CALL("cublas?trsm_v2",
                        (handle_t, int, int, int, int, int, int, const void *, CUdeviceptr, int, CUdeviceptr, int),
                        handle, side, uplo, trans, UNIT, N, N, one, da, LD, solved, LD));
                compare(dc, expected, MOST, "trmm");
                for (int at = 0; at < N * N; at++) {
                    int place = at / N * LD + at % N;
                    expected[place] = alpha * b[place];
                }
                compare(solved, expected, MOST, "trsm");
            }
        }
        for (int trans = OP_N; trans <= OP_T; trans++) {
            for (int hermitian = 0; hermitian <= type->is_complex; hermitian++) {
                int used = trans == OP_T && hermitian ? OP_C : trans, opposite = hermitian ? OP_C : OP_T;
                memcpy(expected, c, sizeof c);
                scalars(hermitian ? 3 : 2 - I, hermitian ? -2 : -1 + 2 * I);
                for (int at = 0; at < N * N; at++) {
                    int row = at % N, column = at / N;
                    if (row != column && (uplo == UPPER) != (row < column)) {
                        continue;
                    }
                    z_t sum = 0;
                    for (int i = 0; i < 4; i++) { /* op(A) has N rows and 4 columns */
                        z_t second = op(a, used, column, i);
                        sum += op(a, used, row, i) * (opposite == OP_C ? conj(second) : second);
                    }
                    z_t old = hermitian && row == column ? creal(c[column * LD + row]) : c[column * LD + row];
                    expected[column * LD + row] = alpha * sum + beta * old;
                }
                char real[2][16];
                const type_t *whole = type, part = {type->letter, type->bytes / 2, 0, type->is_double};
                type = hermitian ? &part : type;
                put(real[0], 0, alpha);
                put(real[1], 0, beta);
                type = whole;
                CUdeviceptr dc = upload(c, MOST);
                OK("syrk",
                   CALL(hermitian ? "cublas?herk_v2" : "cublas?syrk_v2",
                        (handle_t, int, int, int, int, const void *, CUdeviceptr, int, const void *, CUdeviceptr, int),
                        handle, uplo, used, N, 4, real[0], da, LD, real[1], dc, LD));
                compare(dc, expected, MOST, "syrk or herk");
                scalars(2 - I, -1 + 2 * I);
            }
        }
    }
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(db));
}

/* Three products whose matrices an array of pointers on the device names. */
static void check_pointers(void) {
    z_t a[MOST], b[MOST], c[MOST], expected[MOST];
    CUdeviceptr pointers[9], array[3];
    scalars(2 - I, -1 + 2 * I);
    for (int i = 0; i < 3; i++) {
        fill(a, 3 + i, MOST);
        fill(b, 6 + i, MOST);
        fill(c, 9 + i, MOST);
        pointers[i] = upload(a, MOST);
        pointers[3 + i] = upload(b, MOST);
        pointers[6 + i] = upload(c, MOST);
    }
    for (int i = 0; i < 3; i++) {
        array[i] = check_device(&pointers[3 * i], 3 * sizeof *pointers);
    }
    OK("gemmBatched",
       CALL("cublas?gemmBatched",
            (handle_t, int, int, int, int, int, const void *, CUdeviceptr, int, CUdeviceptr, int, const void *,
             CUdeviceptr, int, int),
            handle, OP_T, OP_N, N, 5, 4, alpha_bytes, array[0], LD, array[1], LD, beta_bytes, array[2], LD, 3));
    for (int i = 0; i < 3; i++) {
        fill(a, 3 + i, MOST);
        fill(b, 6 + i, MOST);
        fill(expected, 9 + i, MOST);
        for (int column = 0; column < 5; column++) {
            for (int row = 0; row < N; row++) {
                z_t sum = 0;
                for (int k = 0; k < 4; k++) {
                    sum += op(a, OP_T, row, k) * b[column * LD + k];
                }
                expected[column * LD + row] = alpha * sum + beta * expected[column * LD + row];
            }
        }
        compare(pointers[6 + i], expected, MOST, "gemmBatched");
        CU_OK(cuMemFree(pointers[i]));
        CU_OK(cuMemFree(pointers[3 + i]));
        CU_OK(cuMemFree(array[i]));
    }
}

#define COPY int, int, const void *, int, void *, int
#define COPY_MATRIX int, int, int, const void *, int, void *, int

static void check_copies(void) {
    float host[MOST], back[MOST] = {0};
    for (int i = 0; i < MOST; i++) {
        host[i] = (float) i;
    }
    CUdeviceptr device = check_device(back, sizeof back);
    void *pointer = (void *) (uintptr_t) device;
    OK("SetMatrix", CALL("cublasSetMatrix", (COPY_MATRIX), 5, N, 4, host, LD, pointer, 6));
    OK("GetMatrix", CALL("cublasGetMatrix", (COPY_MATRIX), 5, N, 4, pointer, 6, back, 7));
    for (int i = 0; i < 7 * N; i++) {
        float expected = i % 7 < 5 ? host[i / 7 * LD + i % 7] : 0;
        if (back[i] != expected) {
            check_fail("a matrix, element %d, expected %g, got %g", i, expected, back[i]);
        }
    }
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, 0)); /* copies of the default stream come first */
    OK("SetVectorAsync", CALL("cublasSetVectorAsync", (COPY, CUstream), 20, 4, host, 3, pointer, 2, stream));
    OK("GetVectorAsync_64",
       CALL("cublasGetVectorAsync_64", (int64_t, int64_t, const void *, int64_t, void *, int64_t, CUstream), 20, 4,
            pointer, 2, back, 1, stream));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuStreamDestroy(stream));
    for (int i = 0; i < 20; i++) {
        if (back[i] != host[i * 3]) {
            check_fail("a vector, element %d, expected %g, got %g", i, host[i * 3], back[i]);
        }
    }
    is(INVALID_VALUE, CALL("cublasSetVector", (COPY), 1, 0, host, 1, pointer, 1), "elements without bytes");
    is(INVALID_VALUE, CALL("cublasGetVector", (COPY), 1, 4, pointer, -1, back, 1), "a negative increment");
    is(INVALID_VALUE, CALL("cublasSetMatrix", (COPY_MATRIX), -1, 1, 4, host, 1, pointer, 1), "negative rows");
    OK("no rows", CALL("cublasSetMatrix", (COPY_MATRIX), 0, 1, 4, host, 1, pointer, 1));
    CU_OK(cuMemFree(device));
}

static void check_rotation(void) {
    char a[16], b[16], c[16], s[16];
    put(a, 0, 3);
    put(b, 0, 4);
    OK("rotg", CALL("cublas?rotg_v2", (handle_t, void *, void *, void *, void *), handle, a, b, c, s));
    expect(5, get(a, 0), 1e-5, "rotg, r");
    const type_t *whole = type, real = {type->letter, type->bytes / 2, 0, type->is_double};
    type = type->is_complex ? &real : type;
    expect(0.6, get(c, 0), 1e-6, "rotg, c");
    type = whole;
    expect(0.8, get(s, 0), 1e-6, "rotg, s");
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    library = dlopen("libcublas.so.13", RTLD_NOW);
    library = library != NULL ? library : dlopen("libcublas.so.12", RTLD_NOW);
    if (library == NULL) {
        check_fail("libcublas.so.13, expected a library, got %s", dlerror());
    }
    check_context();
    type = &types[0];
    int created = CALL("cublasCreate_v2", (handle_t *), &handle);
    if (created == NOT_SUPPORTED) {
        check_unsupported("cublasCreate: %d", created);
    }
    is(SUCCESS, created, "cublasCreate");
    for (type = types; type < types + 4; type++) {
        const int increments[][2] = {{1, 1}, {3, -1}, {-2, 2}};
        for (int i = 0; i < 3; i++) {
            check_vectors(increments[i][0], increments[i][1]);
            check_matrix_vector(increments[i][0], increments[i][1]);
        }
        check_reductions(HOST);
        check_reductions(DEVICE);
        check_matrices();
        check_pointers();
        check_rotation();
    }
    type = &types[0];
    check_copies();
    is(NOT_INITIALIZED, CALL("cublasSscal_v2", (handle_t, int, void *, CUdeviceptr, int), NULL, 1, alpha_bytes, 0, 1),
       "no handle");
    OK("cublasDestroy", CALL("cublasDestroy_v2", (handle_t), handle));
    return check_pass("4 types, 3 pairs of increments, %d calls", routines);
}
