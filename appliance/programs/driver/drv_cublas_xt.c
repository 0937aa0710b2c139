/*
 * cublasXt, held against sums that the program computes from small whole numbers: every routine in float, double and
 * both complex types, with all operations, triangles and sides. The block dimension is small, so that each matrix has
 * several tiles and incomplete ones. The matrices lie in pageable, pinned, device and managed memory in turn; guard
 * values beside them, and the other triangles, must stay. --boards N takes N times device 0 (without the option, each
 * device once).
 */
#include "check_blas.h"
#include "check_library.h"

#include <pthread.h>

enum { NOT_INITIALIZED = 1, INVALID_VALUE = 7, INTERNAL_ERROR = 14, NOT_SUPPORTED = 15 };
enum { ALL = 2 }; /* beside LOWER and UPPER */
enum { PAGEABLE, PINNED, DEVICE, MANAGED, PLACES };
enum { GENERAL, SYMMETRIC, HERMITIAN, TRIANGULAR };
#define BLOCK 24
#define M 61
#define N 53
#define K 59
#define MOST 61
#define PAD 3
#define ELEMENTS ((MOST + PAD) * MOST)
#define MAX_BOARDS 8
#define THREADS 4

typedef void *handle_t;

static handle_t handle;
static int calls, cases;

typedef struct matrix {
    int rows, columns, place;
    size_t ld;
    z_t value[ELEMENTS];
    void *memory;
} matrix_t;
static matrix_t a, b, c;
static z_t left[MOST * MOST], right[MOST * MOST], expected[ELEMENTS];

/* The function of the type in use. In a pattern, ? stands for its letter. */
static void *routine(const char *pattern) {
    char name[64] = "";
    strncpy(name, pattern, sizeof name - 1);
    *strchr(name, '?') = type->letter;
    calls++;
    return find(name);
}
#define CALL(pattern, parameters, ...) ((int(*) parameters) routine(pattern))(__VA_ARGS__)

DECLARE(cublasXtCreate, handle_t *);
DECLARE(cublasXtDestroy, handle_t);
DECLARE(cublasXtDeviceSelect, handle_t, int, int *);
DECLARE(cublasXtMaxBoards, int *);
DECLARE(cublasXtGetNumBoards, int, int *, int *);
DECLARE(cublasXtSetBlockDim, handle_t, int);
DECLARE(cublasXtGetBlockDim, handle_t, int *);
DECLARE(cublasXtSetPinningMemMode, handle_t, int);
DECLARE(cublasXtGetPinningMemMode, handle_t, int *);
DECLARE(cublasXtSetCpuRoutine, handle_t, int, int, void *);
DECLARE(cublasXtSetCpuRatio, handle_t, int, int, float);
DECLARE(cublasXtSgemm, handle_t, int, int, size_t, size_t, size_t, const float *, const float *, size_t, const float *,
        size_t, const float *, float *, size_t);
DECLARE(cublasCreate_v2, handle_t *);
DECLARE(cublasDestroy_v2, handle_t);

static void load(void) {
    open_library("libcublas.so.13", "libcublas.so.12");
    FIND(cublasXtCreate);
    FIND(cublasXtDestroy);
    FIND(cublasXtDeviceSelect);
    FIND(cublasXtMaxBoards);
    FIND(cublasXtGetNumBoards);
    FIND(cublasXtSetBlockDim);
    FIND(cublasXtGetBlockDim);
    FIND(cublasXtSetPinningMemMode);
    FIND(cublasXtGetPinningMemMode);
    FIND(cublasXtSetCpuRoutine);
    FIND(cublasXtSetCpuRatio);
    FIND(cublasXtSgemm);
    FIND(cublasCreate_v2);
    FIND(cublasDestroy_v2);
}

static z_t number(int seed, size_t at) {
    double re = (double) (((size_t) (seed * 7919) + at * 10473 + at / 7) % 9) - 4;
    double im = (double) (((size_t) (seed * 1543) + at * 7907 + at / 5) % 7) - 3;
    return type->is_complex ? CMPLX(re, im) : re;
}

/* The product without C's rules for infinities, which cost more than the product itself. */
static z_t times(z_t x, z_t y) {
    return CMPLX(creal(x) * creal(y) - cimag(x) * cimag(y), creal(x) * cimag(y) + cimag(x) * creal(y));
}

static void make(matrix_t *m, int rows, int columns, int seed) {
    m->rows = rows;
    m->columns = columns;
    m->ld = (size_t) rows + PAD;
    for (size_t i = 0; i < m->ld * (size_t) columns; i++) {
        m->value[i] = number(seed, i);
    }
}

/* The numbers in memory of one kind, as the program passes them. */
static void place(matrix_t *m, int where) {
    static char bytes[ELEMENTS * 16];
    size_t count = m->ld * (size_t) m->columns, size = count * type->bytes;
    for (size_t i = 0; i < count; i++) {
        put(bytes, i, m->value[i]);
    }
    CUdeviceptr address = 0;
    m->place = where;
    if (where == PAGEABLE) {
        m->memory = check_memory(size);
    } else if (where == PINNED) {
        CU_OK(cuMemHostAlloc(&m->memory, size, CU_MEMHOSTALLOC_PORTABLE));
    } else {
        CU_OK(where == DEVICE ? cuMemAlloc(&address, size) : cuMemAllocManaged(&address, size, CU_MEM_ATTACH_GLOBAL));
        m->memory = (void *) (uintptr_t) address;
    }
    if (where == DEVICE) {
        CU_OK(cuMemcpyHtoD(address, bytes, size));
    } else {
        memcpy(m->memory, bytes, size);
    }
}

static void drop(matrix_t *m) {
    if (m->place == PAGEABLE) {
        free(m->memory);
    } else if (m->place == PINNED) {
        CU_OK(cuMemFreeHost(m->memory));
    } else {
        CU_OK(cuMemFree((CUdeviceptr) (uintptr_t) m->memory));
    }
}

/* Memory of the kinds in turn, so that all combinations come up. */
static void place_all(void) {
    place(&a, cases % PLACES);
    place(&b, cases / 2 % PLACES);
    place(&c, cases / 3 % PLACES);
    cases++;
}

static void drop_all(void) {
    drop(&a);
    drop(&b);
    drop(&c);
}

/* Compares the whole memory with what is expected, and gives all of it back. */
static void finish(matrix_t *m, const char *what) {
    static char bytes[ELEMENTS * 16];
    size_t count = m->ld * (size_t) m->columns;
    if (m->place == DEVICE) {
        CU_OK(cuMemcpyDtoH(bytes, (CUdeviceptr) (uintptr_t) m->memory, count * type->bytes));
    } else {
        memcpy(bytes, m->memory, count * type->bytes);
    }
    for (size_t i = 0; i < count; i++) {
        z_t got = get(bytes, i), want = expected[i];
        double bound = (type->is_double ? 1e-11 : 2e-4) * (1 + cabs(want));
        int both_nan = isnan(creal(want)) && isnan(creal(got));
        if (!both_nan && !(cabs(got - want) <= bound)) {
            check_fail("%c %s, case %d, memory %d, row %zu, column %zu, expected %g%+gi, got %g%+gi", type->letter,
                       what, cases, m->place, i % m->ld, i / m->ld, creal(want), cimag(want), creal(got), cimag(got));
        }
    }
    drop_all();
}

/* Element of a matrix of which a triangle is stored, before its operation. */
static z_t element(const matrix_t *m, int kind, int uplo, int diag, int row, int column) {
    z_t direct = m->value[(size_t) column * m->ld + (size_t) row];
    if (kind == GENERAL) {
        return direct;
    }
    if (row == column) {
        return kind == TRIANGULAR && diag == UNIT ? 1 : kind == HERMITIAN ? creal(direct) : direct;
    }
    if ((uplo == UPPER) == (row < column)) {
        return direct;
    }
    z_t mirrored = m->value[(size_t) row * m->ld + (size_t) column];
    return kind == TRIANGULAR ? 0 : kind == HERMITIAN ? conj(mirrored) : mirrored;
}

/* op(m), with `rows` rows and no padding. */
static void expand(z_t *out, const matrix_t *m, int kind, int uplo, int diag, int op, int rows, int columns) {
    for (int column = 0; column < columns; column++) {
        for (int row = 0; row < rows; row++) {
            z_t value =
                op == OP_N ? element(m, kind, uplo, diag, row, column) : element(m, kind, uplo, diag, column, row);
            out[column * rows + row] = op == OP_C ? conj(value) : value;
        }
    }
}

/* expected = alpha * left * right + beta * expected, in a triangle or everywhere. */
static void add_product(int m, int n, int k, z_t alpha, z_t beta, int uplo) {
    for (int column = 0; column < n; column++) {
        for (int row = 0; row < m; row++) {
            if (uplo != ALL && row != column && (uplo == UPPER) != (row < column)) {
                continue;
            }
            z_t sum = 0, *to = &expected[(size_t) column * c.ld + (size_t) row];
            for (int i = 0; i < k; i++) {
                sum += times(left[i * m + row], right[column * k + i]);
            }
            *to = times(alpha, sum) + (beta == 0 ? 0 : times(beta, *to));
        }
    }
}

static char alpha_bytes[16], beta_bytes[16];
static z_t alpha, beta;

/* Numbers that differ from case to case; every third beta is 0, and c holds no numbers then. */
static void scalars(int real_alpha, int real_beta) {
    alpha = type->is_complex && !real_alpha ? CMPLX(2, 1) : cases % 2 ? -1 : 2;
    beta = cases % 3 == 0 ? 0 : type->is_complex && !real_beta ? CMPLX(-1, 2) : 3;
    const type_t *whole = type, part = {type->letter, type->bytes / 2, 0, type->is_double};
    type = real_alpha ? &part : whole;
    put(alpha_bytes, 0, alpha);
    type = real_beta ? &part : whole;
    put(beta_bytes, 0, beta);
    type = whole;
}

static void make_c(int rows, int columns, int uplo) {
    make(&c, rows, columns, 11);
    for (int i = 0; i < rows * columns && beta == 0; i++) {
        int row = i % rows, column = i / rows;
        if (uplo == ALL || row == column || (uplo == UPPER) == (row < column)) {
            c.value[(size_t) column * c.ld + (size_t) row] = type->is_complex ? CMPLX(NAN, NAN) : NAN;
        }
    }
    memcpy(expected, c.value, sizeof expected);
}

#define SIZED handle_t, int, int, size_t, size_t
#define TWO const void *, const void *, size_t, const void *, size_t
#define END const void *, void *, size_t

static void check_gemm(void) {
    for (int at = 0; at < 9; at++) {
        int transa = at % 3, transb = at / 3;
        scalars(0, 0);
        make(&a, transa == OP_N ? M : K, transa == OP_N ? K : M, 1);
        make(&b, transb == OP_N ? K : N, transb == OP_N ? N : K, 2);
        make_c(M, N, ALL);
        expand(left, &a, GENERAL, 0, 0, transa, M, K);
        expand(right, &b, GENERAL, 0, 0, transb, K, N);
        add_product(M, N, K, alpha, beta, ALL);
        place_all();
        OK(CALL("cublasXt?gemm", (handle_t, int, int, size_t, size_t, size_t, TWO, END), handle, transa, transb, M, N,
                K, alpha_bytes, a.memory, a.ld, b.memory, b.ld, beta_bytes, c.memory, c.ld));
        finish(&c, "gemm");
    }
}

/* syrk and herk, syr2k and her2k, syrkx and herkx. */
static void check_rank(int uplo, int second, int hermitian, int kind) {
    static const char *const names[2][3] = {{"cublasXt?syrk", "cublasXt?syr2k", "cublasXt?syrkx"},
                                            {"cublasXt?herk", "cublasXt?her2k", "cublasXt?herkx"}};
    int opposite = hermitian ? OP_C : OP_T, trans = second ? opposite : OP_N, back = second ? OP_N : opposite;
    const char *name = names[hermitian][kind];
    scalars(hermitian && kind == 0, hermitian);
    make(&a, second ? K : N, second ? N : K, 3);
    make(&b, second ? K : N, second ? N : K, 4);
    make_c(N, N, uplo);
    for (size_t i = 0; i < N && hermitian && beta != 0; i++) {
        expected[i * c.ld + i] = creal(expected[i * c.ld + i]);
    }
    const matrix_t *other = kind == 0 ? &a : &b;
    expand(left, &a, GENERAL, 0, 0, trans, N, K);
    expand(right, other, GENERAL, 0, 0, back, K, N);
    add_product(N, N, K, alpha, beta, uplo);
    if (kind == 1) {
        expand(left, &b, GENERAL, 0, 0, trans, N, K);
        expand(right, &a, GENERAL, 0, 0, back, K, N);
        add_product(N, N, K, hermitian ? conj(alpha) : alpha, 1, uplo);
    }
    for (size_t i = 0; i < N && hermitian; i++) {
        expected[i * c.ld + i] = creal(expected[i * c.ld + i]);
    }
    place_all();
    if (kind == 0) {
        OK(CALL(name, (SIZED, const void *, const void *, size_t, END), handle, uplo, trans, N, K, alpha_bytes,
                a.memory, a.ld, beta_bytes, c.memory, c.ld));
    } else {
        OK(CALL(name, (SIZED, TWO, END), handle, uplo, trans, N, K, alpha_bytes, a.memory, a.ld, b.memory, b.ld,
                beta_bytes, c.memory, c.ld));
    }
    finish(&c, name);
}

/* The triangle of a in packed form, in place of a. */
static void pack(int uplo, int size) {
    size_t count = 0;
    for (int column = 0; column < size; column++) {
        for (int row = uplo == UPPER ? 0 : column; row < (uplo == UPPER ? column + 1 : size); row++) {
            a.value[count++] = a.value[(size_t) column * a.ld + (size_t) row];
        }
    }
}

/* symm, hemm and spmm. */
static void check_symmetric(int side, int uplo, int kind, int packed) {
    const char *name = packed ? "cublasXt?spmm" : kind == HERMITIAN ? "cublasXt?hemm" : "cublasXt?symm";
    int size = side == LEFT ? M : N;
    scalars(0, 0);
    make(&a, size, size, 5);
    make(&b, M, N, 6);
    make_c(M, N, ALL);
    expand(side == LEFT ? left : right, &a, kind, uplo, NON_UNIT, OP_N, size, size);
    expand(side == LEFT ? right : left, &b, GENERAL, 0, 0, OP_N, M, N);
    add_product(M, N, size, alpha, beta, ALL);
    if (packed) { /* which the documentation wants in host or managed memory */
        pack(uplo, size);
        place_all();
        drop(&a);
        place(&a, cases % 3 == 0 ? PAGEABLE : cases % 3 == 1 ? PINNED : MANAGED);
        OK(CALL(name, (SIZED, const void *, const void *, const void *, size_t, END), handle, side, uplo, M, N,
                alpha_bytes, a.memory, b.memory, b.ld, beta_bytes, c.memory, c.ld));
    } else {
        place_all();
        OK(CALL(name, (SIZED, TWO, END), handle, side, uplo, M, N, alpha_bytes, a.memory, a.ld, b.memory, b.ld,
                beta_bytes, c.memory, c.ld));
    }
    finish(&c, name);
}

#define TRIANGLE handle_t, int, int, int, int, size_t, size_t, const void *, const void *, size_t

/* trmm into another matrix, and in place every second time. */
static void check_trmm(int side, int uplo, int trans, int diag) {
    int size = side == LEFT ? M : N;
    scalars(0, 0);
    make(&a, size, size, 7);
    make(&b, M, N, 8);
    int in_place = cases % 2;
    if (in_place) {
        make(&c, M, N, 8);
        memcpy(expected, c.value, sizeof expected);
    } else {
        beta = 0;
        make_c(M, N, ALL);
    }
    expand(side == LEFT ? left : right, &a, TRIANGULAR, uplo, diag, trans, size, size);
    expand(side == LEFT ? right : left, &b, GENERAL, 0, 0, OP_N, M, N);
    add_product(M, N, size, alpha, 0, ALL);
    place_all();
    const matrix_t *from = in_place ? &c : &b;
    OK(CALL("cublasXt?trmm", (TRIANGLE, const void *, size_t, void *, size_t), handle, side, uplo, trans, diag, M, N,
            alpha_bytes, a.memory, a.ld, from->memory, from->ld, c.memory, c.ld));
    finish(&c, "trmm");
}

/* A product with a triangle whose diagonal dominates, undone. */
static void check_trsm(int side, int uplo, int trans, int diag) {
    int size = side == LEFT ? M : N;
    alpha = type->is_complex ? CMPLX(0, 2) : 2;
    put(alpha_bytes, 0, alpha);
    make(&a, size, size, 9);
    for (size_t i = 0; i < a.ld * (size_t) size; i++) {
        a.value[i] = i / a.ld == i % a.ld ? a.value[i] + 8 : a.value[i] / 64;
    }
    make(&b, M, N, 10);
    make(&c, M, N, 10);
    memcpy(expected, c.value, sizeof expected);
    expand(side == LEFT ? left : right, &a, TRIANGULAR, uplo, diag, trans, size, size);
    expand(side == LEFT ? right : left, &b, GENERAL, 0, 0, OP_N, M, N);
    add_product(M, N, size, 1 / alpha, 0, ALL);
    memcpy(c.value, expected, sizeof expected);
    memcpy(expected, b.value, sizeof expected);
    place_all();
    OK(CALL("cublasXt?trsm", (TRIANGLE, void *, size_t), handle, side, uplo, trans, diag, M, N, alpha_bytes, a.memory,
            a.ld, c.memory, c.ld));
    finish(&c, "trsm");
}

static void check_type(void) {
    check_gemm();
    for (int at = 0; at < 4; at++) {
        int uplo = at % 2, other = at / 2;
        for (int hermitian = 0; hermitian <= type->is_complex; hermitian++) {
            for (int kind = 0; kind < 3; kind++) {
                check_rank(uplo, other, hermitian, kind);
            }
            check_symmetric(other, uplo, hermitian ? HERMITIAN : SYMMETRIC, 0);
        }
        check_symmetric(other, uplo, SYMMETRIC, 1);
        for (int form = 0; form < 6; form++) {
            check_trmm(other, uplo, form / 2, form % 2);
            check_trsm(other, uplo, form / 2, form % 2);
        }
    }
}

static void multiply_general(int terms) {
    put(beta_bytes, 0, beta);
    place_all();
    OK(CALL("cublasXt?gemm", (handle_t, int, int, size_t, size_t, size_t, TWO, END), handle, OP_N, OP_N, M, N,
            (size_t) terms, alpha_bytes, a.memory, a.ld, b.memory, b.ld, beta_bytes, c.memory, c.ld));
}

/* Sizes and factors of 0, which leave c, scale it or make it 0. */
static void check_nothing(void) {
    static const double factors[] = {1, 0, 3};
    for (int i = 0; i < 3; i++) {
        make(&a, M, K, 1);
        make(&b, K, N, 2);
        beta = 1; /* numbers in c, also for a factor of 0 */
        make_c(M, N, ALL);
        beta = factors[i];
        for (int at = 0; at < M * N; at++) {
            size_t element = (size_t) (at / M) * c.ld + (size_t) (at % M);
            expected[element] = beta == 0 ? 0 : beta * c.value[element];
        }
        put(alpha_bytes, 0, 0);
        multiply_general(K);
        finish(&c, "gemm with a factor of 0");
        put(alpha_bytes, 0, 1);
        multiply_general(0); /* its result is not compared: NVIDIA's library may write any numbers to host memory */
        drop_all();
    }
    for (int solves = 0; solves < 2; solves++) {
        make(&a, M, M, 1);
        make(&b, M, N, 2);
        make(&c, M, N, 2);
        memcpy(expected, c.value, sizeof expected);
        for (int at = 0; at < M * N; at++) {
            expected[(size_t) (at / M) * c.ld + (size_t) (at % M)] = 0;
        }
        put(alpha_bytes, 0, 0);
        place_all();
        if (solves) {
            OK(CALL("cublasXt?trsm", (TRIANGLE, void *, size_t), handle, LEFT, UPPER, OP_N, UNIT, M, N, alpha_bytes,
                    a.memory, a.ld, c.memory, c.ld));
        } else {
            OK(CALL("cublasXt?trmm", (TRIANGLE, const void *, size_t, void *, size_t), handle, LEFT, UPPER, OP_N, UNIT,
                    M, N, alpha_bytes, a.memory, a.ld, b.memory, b.ld, c.memory, c.ld));
        }
        finish(&c, "a triangle times 0");
    }
    OK(CALL("cublasXt?gemm", (handle_t, int, int, size_t, size_t, size_t, TWO, END), handle, OP_N, OP_N, 0, N, K,
            alpha_bytes, NULL, 1, NULL, K, beta_bytes, NULL, 1));
}

static void check_arguments(void) {
    float memory[16] = {0};
    put(alpha_bytes, 0, 1);
    put(beta_bytes, 0, 1);
#define GEMM(h, transa, m, lda, ldc)                                                                                   \
    CALL("cublasXt?gemm", (handle_t, int, int, size_t, size_t, size_t, TWO, END), h, transa, OP_N, m, 2, 2,            \
         alpha_bytes, memory, lda, memory, 2, beta_bytes, memory, ldc)
    IS(NOT_INITIALIZED, GEMM(NULL, OP_N, 2, 2, 2));
    IS(INVALID_VALUE, GEMM(handle, 5, 2, 2, 2));
    IS(INVALID_VALUE, GEMM(handle, OP_N, (size_t) -1, 2, 2));
    IS(INVALID_VALUE, GEMM(handle, OP_N, 2, 1, 2));
    IS(INVALID_VALUE, GEMM(handle, OP_N, 2, 2, 1));
    IS(INVALID_VALUE,
       CALL("cublasXt?syrk", (SIZED, const void *, const void *, size_t, END), handle, 7, OP_N, 2, 2, alpha_bytes,
            memory, 2, beta_bytes, memory, 2));
    IS(INVALID_VALUE,
       CALL("cublasXt?symm", (SIZED, TWO, END), handle, 4, UPPER, 2, 2, alpha_bytes, memory, 2, memory, 2, beta_bytes,
            memory, 2));
    IS(INVALID_VALUE,
       CALL("cublasXt?trsm", (TRIANGLE, void *, size_t), handle, LEFT, UPPER, OP_N, 3, 2, 2, alpha_bytes, memory, 2,
            memory, 2));
}

static void check_settings(int boards, int *devices) {
    int value = -1, most = 0;
    OK(cublasXtMaxBoards(&most));
    OK(cublasXtGetNumBoards(boards, devices, &value)); /* 0 natively for one H200 */
    check_true("at least one board is possible", most >= 1);
    IS(INVALID_VALUE, cublasXtSetBlockDim(handle, 0));
    OK(cublasXtSetBlockDim(handle, BLOCK));
    OK(cublasXtGetBlockDim(handle, &value));
    check_equal("the block dimension", BLOCK, value);
    OK(cublasXtGetPinningMemMode(handle, &value));
    check_equal("the pinning mode at first", 0, value);
    IS(INVALID_VALUE, cublasXtSetPinningMemMode(handle, 2));
    OK(cublasXtSetPinningMemMode(handle, 1));
    OK(cublasXtGetPinningMemMode(handle, &value));
    check_equal("the pinning mode", 1, value);
    OK(cublasXtSetPinningMemMode(handle, 0)); /* the matrices of this program are not aligned to pages */
    OK(cublasXtSetCpuRatio(handle, 0, 0, 0));
    IS(INVALID_VALUE, cublasXtSetCpuRoutine(handle, 99, 0, NULL));
    int none = 9999;
    handle_t second;
    OK(cublasXtCreate(&second));
    float number = 1;
    IS(NOT_INITIALIZED,
       cublasXtSgemm(second, OP_N, OP_N, 1, 1, 1, &number, &number, 1, &number, 1, &number, &number, 1));
    IS(INTERNAL_ERROR, cublasXtDeviceSelect(second, 1, &none));
    OK(cublasXtDestroy(second));
}

/*
 * A product with a handle of the thread's own, beside those of other threads. NVIDIA's library leaves the thread with
 * the device's primary context, which it had not before.
 */
static void *multiply_alone(void *argument) {
    enum { SIZE = 40 };
    static const float one = 1, none = 0;
    float x[SIZE * SIZE], y[SIZE * SIZE], product[SIZE * SIZE];
    int seed = *(const int *) argument, device = 0;
    handle_t own;
    for (int i = 0; i < SIZE * SIZE; i++) {
        x[i] = (float) ((seed * 31 + i * 17) % 11 - 5);
        y[i] = (float) ((seed * 13 + i * 29) % 7 - 3);
    }
    OK(cublasXtCreate(&own));
    OK(cublasXtDeviceSelect(own, 1, &device));
    OK(cublasXtSetBlockDim(own, 16 + seed));
    for (int round = 0; round < 5; round++) {
        OK(cublasXtSgemm(own, OP_N, OP_N, SIZE, SIZE, SIZE, &one, x, SIZE, y, SIZE, &none, product, SIZE));
        for (int i = 0; i < SIZE * SIZE; i++) {
            float sum = 0;
            for (int k = 0; k < SIZE; k++) {
                sum += x[k * SIZE + i % SIZE] * y[i / SIZE * SIZE + k];
            }
            check_near("a product of a thread", i, sum, product[i], 0);
        }
    }
    OK(cublasXtDestroy(own));
    return NULL;
}

static void check_threads(void) {
    pthread_t threads[THREADS];
    int seeds[THREADS];
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = i;
        if (pthread_create(&threads[i], NULL, multiply_alone, &seeds[i]) != 0) {
            check_fail("a thread, expected one more than %d", i);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Chooses the devices; returns their number. */
static int choose(int *devices) {
    int count;
    CU_OK(cuDeviceGetCount(&count));
    int boards = (int) check_option("--boards", 0);
    int chosen = boards > 0 ? boards : count;
    chosen = chosen < MAX_BOARDS ? chosen : MAX_BOARDS;
    for (int i = 0; i < chosen; i++) {
        devices[i] = boards > 0 ? 0 : i;
    }
    return chosen;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    CUcontext context = check_context(), now;
    handle_t blas;
    int created = cublasCreate_v2(&blas);
    if (created == NOT_SUPPORTED) {
        check_unsupported("cublasCreate: %d", created);
    }
    IS(0, created);
    int devices[MAX_BOARDS], boards = choose(devices);
    OK(cublasXtCreate(&handle));
    check_settings(boards, devices);
    OK(cublasXtDeviceSelect(handle, boards, devices));
    for (type = types; type < types + 4; type++) {
        check_type();
        check_nothing();
        check_arguments();
    }
    check_threads();
    CU_OK(cuCtxGetCurrent(&now));
    if (now != context) {
        check_fail("the current context, expected %p, got %p", (void *) context, (void *) now);
    }
    OK(cublasXtDestroy(handle));
    OK(cublasDestroy_v2(blas));
    return check_pass("4 types, %d calls, %d boards", calls, boards);
}
