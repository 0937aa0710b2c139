/*
 * cuSOLVER beside the Driver API: factors of Cholesky, LU and QR, eigenvalues and singular values in float and double,
 * real and complex, by the functions of a type and by the 64-bit ones, single and in batches. The program multiplies the
 * results and compares the products with the matrices. It also checks the info of matrices without a factor, statuses
 * of wrong calls, and calls in a stream. The functions are found by name. Without a cuSOLVER at the other
 * end, cusolverDnCreate returns CUSOLVER_STATUS_NOT_SUPPORTED.
 */
#include "check_numbers.h"

#include <math.h>

enum { SUCCESS = 0, INVALID_VALUE = 3, NOT_SUPPORTED = 9 };
enum { LOWER = 0, UPPER = 1, NOVECTOR = 0, VECTOR = 1, OP_N = 0, OP_T = 1, OP_C = 2, LEFT = 0 };

enum { N = 24, M = 31, NRHS = 3, LD = 37, BATCH = 3, SMALL = 9, REPEATS = 100 };
#define CELLS (LD * LD * BATCH)

typedef void *handle_t;

static const type_t types[] = {
    {'S', 0, 0, 2e-3, 0, 0}, {'D', 0, 1, 1e-10, 1, 1}, {'C', 1, 0, 2e-3, 4, 0}, {'Z', 1, 1, 1e-10, 5, 1}};

static handle_t handle;
static data_t info; /* BATCH numbers */
static data_t work;
static size_t work_bytes;
static int checked;

/* The function of a type: name_of('S', "potrf"). */
static void *find_of(const type_t *t, const char *name) {
    char full[64];
    snprintf(full, sizeof full, "cusolverDn%c%s", t->letter, name);
    return find(full);
}

/* Calls a function by name, with the types of its parameters. */
#define CALL(name, types, ...) ((int(*) types) find(name))(__VA_ARGS__)
#define CALL_OF(t, name, types, ...) ((int(*) types) find_of(t, name))(__VA_ARGS__)

static void upload(const type_t *t, data_t to, const number_t *from, int count) {
    static unsigned char bytes[CELLS * 16];
    encode(t, bytes, from, count);
    CU_OK(cuMemcpyHtoD(to, bytes, (size_t) count * element_bytes(t)));
}

static void download(const type_t *t, number_t *to, data_t from, int count) {
    static unsigned char bytes[CELLS * 16];
    CU_OK(cuMemcpyDtoH(bytes, from, (size_t) count * element_bytes(t)));
    decode(t, to, bytes, count);
}

static type_t real_of(const type_t *t) {
    type_t real = *t;
    real.is_complex = 0;
    return real;
}

static void download_real(const type_t *t, number_t *to, data_t from, int count) {
    type_t real = real_of(t);
    download(&real, to, from, count);
}

/* Matrices by columns of LD elements. */
typedef struct matrix {
    number_t a[LD * LD];
} matrix_t;

#define AT(m, i, j) (m)->a[(j) * LD + (i)]

static void fill(const type_t *t, matrix_t *m, int rows, int columns) {
    memset(m, 0, sizeof *m);
    for (int j = 0; j < columns; j++) {
        for (int i = 0; i < rows; i++) {
            AT(m, i, j) = next_number(t);
        }
    }
}

/* c = op(a) op(b), where an operation is OP_N or OP_C. */
static void multiply(matrix_t *c, const matrix_t *a, int op_a, const matrix_t *b, int op_b, int m, int n, int k) {
    static matrix_t result;
    memset(&result, 0, sizeof result);
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < m; i++) {
            number_t sum = 0;
            for (int l = 0; l < k; l++) {
                number_t left = op_a == OP_N ? AT(a, i, l) : conj(AT(a, l, i));
                sum += left * (op_b == OP_N ? AT(b, l, j) : conj(AT(b, j, l)));
            }
            AT(&result, i, j) = sum;
        }
    }
    *c = result;
}

static void compare(const type_t *t, const char *what, const matrix_t *wanted, const matrix_t *got, int rows,
                    int columns) {
    for (int j = 0; j < columns; j++) {
        for (int i = 0; i < rows; i++) {
            double error = cabs(AT(wanted, i, j) - AT(got, i, j));
            if (!(error <= t->allowed * (1 + cabs(AT(wanted, i, j))))) {
                check_fail("%c %s: element %d,%d, expected %g%+gi, got %g%+gi", t->letter, what, i, j,
                           creal(AT(wanted, i, j)), cimag(AT(wanted, i, j)), creal(AT(got, i, j)),
                           cimag(AT(got, i, j)));
            }
        }
    }
    checked++;
}

static void compare_with_one(const type_t *t, const char *what, const matrix_t *got, int n) {
    static matrix_t one;
    memset(&one, 0, sizeof one);
    for (int i = 0; i < n; i++) {
        AT(&one, i, i) = 1;
    }
    compare(t, what, &one, got, n, n);
}

/* A Hermitian matrix whose eigenvalues are positive. */
static void fill_definite(const type_t *t, matrix_t *m, int n) {
    fill(t, m, n, n);
    multiply(m, m, OP_N, m, OP_C, n, n, n);
    for (int i = 0; i < n; i++) {
        AT(m, i, i) += 1;
    }
}

static void keep_triangle(matrix_t *m, int uplo, int n) {
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < n; i++) {
            if (uplo == LOWER ? i < j : i > j) {
                AT(m, i, j) = 0;
            }
        }
    }
}

static int info_at(int index) {
    int value;
    CU_OK(cuMemcpyDtoH(&value, info + (size_t) index * 4, sizeof value));
    return value;
}

static void expect_info(const char *what, int expected) {
    check_element(what, 0, expected, info_at(0));
    int wrong = 99;
    CU_OK(cuMemcpyHtoD(info, &wrong, sizeof wrong));
}

/* Makes the memory of a call's work at least so large. */
static void need(size_t bytes) {
    if (bytes > work_bytes) {
        if (work_bytes > 0) {
            CU_OK(cuMemFree(work));
        }
        work_bytes = bytes;
        CU_OK(cuMemAlloc(&work, work_bytes));
    }
}

/* The answer of a size query: elements. Asked twice: the second answer is the first one. */
#define SIZED(t, name, types, ...)                                                                                     \
    (__extension__({                                                                                                   \
        int size = -1, again = -2;                                                                                     \
        OK(CALL_OF(t, name "_bufferSize", types, __VA_ARGS__, &size));                                                 \
        OK(CALL_OF(t, name "_bufferSize", types, __VA_ARGS__, &again));                                                \
        check_element(name "_bufferSize", 1, size, again);                                                             \
        need(element_bytes(t) * (size_t) size + 16);                                                                   \
        size;                                                                                                          \
    }))

static data_t make(size_t elements) {
    data_t memory;
    CU_OK(cuMemAlloc(&memory, elements * 16));
    return memory;
}

static void check_cholesky(const type_t *t, int uplo) {
    static matrix_t a, b, factor, product;
    data_t da = make(LD * LD), db = make(LD * LD);
    fill_definite(t, &a, N);
    upload(t, da, a.a, LD * LD);
    int lwork = SIZED(t, "potrf", (handle_t, int, int, data_t, int, int *), handle, uplo, N, da, LD);
    OK(CALL_OF(t, "potrf", (handle_t, int, int, data_t, int, data_t, int, data_t), handle, uplo, N, da, LD, work, lwork,
               info));
    expect_info("the info of potrf", 0);
    download(t, factor.a, da, LD * LD);
    keep_triangle(&factor, uplo, N);
    multiply(&product, &factor, uplo == LOWER ? OP_N : OP_C, &factor, uplo == LOWER ? OP_C : OP_N, N, N, N);
    compare(t, "potrf", &a, &product, N, N);

    fill(t, &b, N, NRHS);
    upload(t, db, b.a, LD * NRHS);
    OK(CALL_OF(t, "potrs", (handle_t, int, int, int, data_t, int, data_t, int, data_t), handle, uplo, N, NRHS, da, LD,
               db, LD, info));
    expect_info("the info of potrs", 0);
    memset(&product, 0, sizeof product);
    download(t, product.a, db, LD * NRHS);
    multiply(&product, &a, OP_N, &product, OP_N, N, NRHS, N);
    compare(t, "potrs", &b, &product, N, NRHS);

    lwork = SIZED(t, "potri", (handle_t, int, int, data_t, int, int *), handle, uplo, N, da, LD);
    OK(CALL_OF(t, "potri", (handle_t, int, int, data_t, int, data_t, int, data_t), handle, uplo, N, da, LD, work, lwork,
               info));
    expect_info("the info of potri", 0);
    download(t, factor.a, da, LD * LD);
    for (int j = 0; j < N; j++) { /* the other triangle */
        for (int i = 0; i < N; i++) {
            if (uplo == LOWER ? i < j : i > j) {
                AT(&factor, i, j) = conj(AT(&factor, j, i));
            }
        }
    }
    multiply(&product, &a, OP_N, &factor, OP_N, N, N, N);
    compare_with_one(t, "potri", &product, N);

    AT(&a, 3, 3) = -1; /* the leading minor of order 4 is not positive */
    upload(t, da, a.a, LD * LD);
    OK(CALL_OF(t, "potrf", (handle_t, int, int, data_t, int, data_t, int, data_t), handle, uplo, N, da, LD, work, lwork,
               info));
    expect_info("the info of a matrix that is not positive definite", 4);
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(db));
}

static void check_lu(const type_t *t) {
    static matrix_t a, b, product, x;
    data_t da = make(LD * LD), db = make(LD * LD), pivots = make(N);
    fill(t, &a, N, N);
    fill(t, &b, N, NRHS);
    for (int operation = OP_N; operation <= OP_C; operation++) {
        upload(t, da, a.a, LD * LD);
        upload(t, db, b.a, LD * NRHS);
        (void) SIZED(t, "getrf", (handle_t, int, int, data_t, int, int *), handle, N, N, da, LD);
        OK(CALL_OF(t, "getrf", (handle_t, int, int, data_t, int, data_t, data_t, data_t), handle, N, N, da, LD, work,
                   pivots, info));
        expect_info("the info of getrf", 0);
        OK(CALL_OF(t, "getrs", (handle_t, int, int, int, data_t, int, data_t, data_t, int, data_t), handle, operation,
                   N, NRHS, da, LD, pivots, db, LD, info));
        expect_info("the info of getrs", 0);
        memset(&x, 0, sizeof x);
        download(t, x.a, db, LD * NRHS);
        if (operation == OP_T) { /* A^T x = b is A^H conj(x) = conj(b) */
            for (int i = 0; i < LD * NRHS; i++) {
                x.a[i] = conj(x.a[i]);
            }
        }
        multiply(&product, &a, operation == OP_N ? OP_N : OP_C, &x, OP_N, N, NRHS, N);
        if (operation == OP_T) {
            for (int i = 0; i < LD * NRHS; i++) {
                product.a[i] = conj(product.a[i]);
            }
        }
        compare(t, "getrs", &b, &product, N, NRHS);
    }
    for (int i = 0; i < N; i++) { /* a column of zeros */
        AT(&a, i, 5) = 0;
    }
    upload(t, da, a.a, LD * LD);
    OK(CALL_OF(t, "getrf", (handle_t, int, int, data_t, int, data_t, data_t, data_t), handle, N, N, da, LD, work,
               pivots, info));
    expect_info("the info of a singular matrix", 6);
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(db));
    CU_OK(cuMemFree(pivots));
}

static void check_qr(const type_t *t) {
    static matrix_t a, r, q, product;
    data_t da = make(LD * LD), dc = make(LD * LD), tau = make(N);
    fill(t, &a, M, N);
    upload(t, da, a.a, LD * LD);
    int lwork = SIZED(t, "geqrf", (handle_t, int, int, data_t, int, int *), handle, M, N, da, LD);
    OK(CALL_OF(t, "geqrf", (handle_t, int, int, data_t, int, data_t, data_t, int, data_t), handle, M, N, da, LD, tau,
               work, lwork, info));
    expect_info("the info of geqrf", 0);
    download(t, r.a, da, LD * LD);
    keep_triangle(&r, UPPER, LD); /* also the rows below */
    const char *apply = t->is_complex ? "unmqr" : "ormqr", *generate = t->is_complex ? "ungqr" : "orgqr";

    upload(t, dc, a.a, LD * LD);
    char query[32];
    snprintf(query, sizeof query, "%s_bufferSize", apply);
    OK(CALL_OF(t, query, (handle_t, int, int, int, int, int, data_t, int, data_t, data_t, int, int *), handle, LEFT,
               t->is_complex ? OP_C : OP_T, M, N, N, da, LD, tau, dc, LD, &lwork));
    need((size_t) lwork * 16);
    OK(CALL_OF(t, apply, (handle_t, int, int, int, int, int, data_t, int, data_t, data_t, int, data_t, int, data_t),
               handle, LEFT, t->is_complex ? OP_C : OP_T, M, N, N, da, LD, tau, dc, LD, work, lwork, info));
    expect_info("the info of ormqr", 0);
    download(t, product.a, dc, LD * LD);
    compare(t, "ormqr", &r, &product, M, N);

    snprintf(query, sizeof query, "%s_bufferSize", generate);
    OK(CALL_OF(t, query, (handle_t, int, int, int, data_t, int, data_t, int *), handle, M, N, N, da, LD, tau, &lwork));
    need((size_t) lwork * 16);
    OK(CALL_OF(t, generate, (handle_t, int, int, int, data_t, int, data_t, data_t, int, data_t), handle, M, N, N, da,
               LD, tau, work, lwork, info));
    expect_info("the info of orgqr", 0);
    download(t, q.a, da, LD * LD);
    multiply(&product, &q, OP_C, &q, OP_N, N, N, M);
    compare_with_one(t, "orgqr", &product, N);
    multiply(&product, &q, OP_N, &r, OP_N, M, N, N);
    compare(t, "geqrf", &a, &product, M, N);
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(dc));
    CU_OK(cuMemFree(tau));
}

/* Checks that v holds eigenvectors of a, and w its eigenvalues in order. */
static void check_eigen(const type_t *t, const char *what, const matrix_t *a, const matrix_t *v, const number_t *w,
                        int n) {
    static matrix_t left, right;
    multiply(&left, a, OP_N, v, OP_N, n, n, n);
    memset(&right, 0, sizeof right);
    for (int j = 0; j < n; j++) {
        check_true("eigenvalues in order", j == 0 || creal(w[j - 1]) <= creal(w[j]) + t->allowed);
        for (int i = 0; i < n; i++) {
            AT(&right, i, j) = AT(v, i, j) * w[j];
        }
    }
    compare(t, what, &left, &right, n, n);
    multiply(&left, v, OP_C, v, OP_N, n, n, n);
    compare_with_one(t, what, &left, n);
}

static void check_symmetric(const type_t *t, int uplo) {
    static matrix_t a, v;
    static number_t w[N], again[N];
    const char *name = t->is_complex ? "heevd" : "syevd", *jacobi = t->is_complex ? "heevj" : "syevj";
    char query[32];
    data_t da = make(LD * LD), dw = make(N);
    fill(t, &a, N, N);
    for (int j = 0; j < N; j++) {
        for (int i = 0; i <= j; i++) {
            AT(&a, i, j) = i == j ? creal(AT(&a, i, j)) : AT(&a, i, j);
            AT(&a, j, i) = conj(AT(&a, i, j));
        }
    }
    int lwork;
    snprintf(query, sizeof query, "%s_bufferSize", name);
    for (int job = VECTOR; job >= NOVECTOR; job--) {
        upload(t, da, a.a, LD * LD);
        OK(CALL_OF(t, query, (handle_t, int, int, int, data_t, int, data_t, int *), handle, job, uplo, N, da, LD, dw,
                   &lwork));
        need((size_t) lwork * 16);
        OK(CALL_OF(t, name, (handle_t, int, int, int, data_t, int, data_t, data_t, int, data_t), handle, job, uplo, N,
                   da, LD, dw, work, lwork, info));
        expect_info("the info of syevd", 0);
        download_real(t, job == VECTOR ? w : again, dw, N);
        if (job == VECTOR) {
            download(t, v.a, da, LD * LD);
            check_eigen(t, "syevd", &a, &v, w, N);
        }
    }
    for (int i = 0; i < N; i++) {
        check_near("an eigenvalue without vectors", i, creal(w[i]), creal(again[i]), 10 * t->allowed);
    }

    void *settings = NULL;
    OK(CALL("cusolverDnCreateSyevjInfo", (void **), &settings));
    OK(CALL("cusolverDnXsyevjSetTolerance", (void *, double), settings, t->is_double ? 1e-12 : 1e-6));
    OK(CALL("cusolverDnXsyevjSetMaxSweeps", (void *, int), settings, 30));
    OK(CALL("cusolverDnXsyevjSetSortEig", (void *, int), settings, 1));
    upload(t, da, a.a, LD * LD);
    snprintf(query, sizeof query, "%s_bufferSize", jacobi);
    OK(CALL_OF(t, query, (handle_t, int, int, int, data_t, int, data_t, int *, void *), handle, VECTOR, uplo, N, da, LD,
               dw, &lwork, settings));
    need((size_t) lwork * 16);
    OK(CALL_OF(t, jacobi, (handle_t, int, int, int, data_t, int, data_t, data_t, int, data_t, void *), handle, VECTOR,
               uplo, N, da, LD, dw, work, lwork, info, settings));
    expect_info("the info of syevj", 0);
    download(t, v.a, da, LD * LD);
    download_real(t, again, dw, N);
    check_eigen(t, "syevj", &a, &v, again, N);
    int sweeps = -1;
    int status = CALL("cusolverDnXsyevjGetSweeps", (handle_t, void *, int *), handle, settings, &sweeps);
    check_true("the sweeps are known, or not supported",
               status == NOT_SUPPORTED || (status == SUCCESS && sweeps > 0 && sweeps <= 30));

    static number_t many[SMALL * SMALL * BATCH];
    static number_t values[SMALL * BATCH];
    for (int i = 0; i < BATCH; i++) { /* parts of a, without room between columns */
        for (int j = 0; j < SMALL * SMALL; j++) {
            many[i * SMALL * SMALL + j] = AT(&a, i + j % SMALL, i + j / SMALL);
        }
    }
    upload(t, da, many, SMALL * SMALL * BATCH);
    snprintf(query, sizeof query, "%sBatched_bufferSize", jacobi);
    OK(CALL_OF(t, query, (handle_t, int, int, int, data_t, int, data_t, int *, void *, int), handle, VECTOR, uplo,
               SMALL, da, SMALL, dw, &lwork, settings, BATCH));
    need((size_t) lwork * 16);
    snprintf(query, sizeof query, "%sBatched", jacobi);
    data_t batch_values = make(SMALL * BATCH);
    OK(CALL_OF(t, query, (handle_t, int, int, int, data_t, int, data_t, data_t, int, data_t, void *, int), handle,
               VECTOR, uplo, SMALL, da, SMALL, batch_values, work, lwork, info, settings, BATCH));
    static number_t vectors[SMALL * SMALL * BATCH];
    download(t, vectors, da, SMALL * SMALL * BATCH);
    download_real(t, values, batch_values, SMALL * BATCH);
    for (int i = 0; i < BATCH; i++) {
        static matrix_t part, found;
        check_element("the info of syevjBatched", i, 0, info_at(i));
        memset(&part, 0, sizeof part);
        memset(&found, 0, sizeof found);
        for (int j = 0; j < SMALL * SMALL; j++) {
            AT(&part, j % SMALL, j / SMALL) = many[i * SMALL * SMALL + j];
            AT(&found, j % SMALL, j / SMALL) = vectors[i * SMALL * SMALL + j];
        }
        check_eigen(t, "syevjBatched", &part, &found, values + (size_t) i * SMALL, SMALL);
    }
    OK(CALL("cusolverDnDestroySyevjInfo", (void *), settings));
    CU_OK(cuMemFree(batch_values));
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(dw));
}

/* Checks a = u diag(s) v, where v is V^H or, if it is not transposed, V. */
static void check_values(const type_t *t, const char *what, const matrix_t *a, const matrix_t *u, const number_t *s,
                         const matrix_t *v, int op_v, int m, int n) {
    static matrix_t scaled, product;
    memset(&scaled, 0, sizeof scaled);
    for (int j = 0; j < n; j++) {
        check_true("singular values in order",
                   creal(s[j]) >= 0 && (j == 0 || creal(s[j - 1]) >= creal(s[j]) - t->allowed));
        for (int i = 0; i < m; i++) {
            AT(&scaled, i, j) = AT(u, i, j) * s[j];
        }
    }
    multiply(&product, &scaled, OP_N, v, op_v, m, n, n);
    compare(t, what, a, &product, m, n);
}

static void check_singular(const type_t *t) {
    static matrix_t a, u, v, product;
    static number_t s[N];
    data_t da = make(LD * LD), du = make(LD * LD), dv = make(LD * LD), ds = make(N), real_work = make(N);
    fill(t, &a, M, N);
    int lwork = SIZED(t, "gesvd", (handle_t, int, int, int *), handle, M, N);
    for (const char *job = "SA"; *job != 0; job++) {
        upload(t, da, a.a, LD * LD);
        OK(CALL_OF(t, "gesvd",
                   (handle_t, signed char, signed char, int, int, data_t, int, data_t, data_t, int, data_t, int, data_t,
                    int, data_t, data_t),
                   handle, (signed char) *job, (signed char) *job, M, N, da, LD, ds, du, LD, dv, LD, work, lwork,
                   real_work, info));
        expect_info("the info of gesvd", 0);
        download(t, u.a, du, LD * LD);
        download(t, v.a, dv, LD * LD);
        download_real(t, s, ds, N);
        check_values(t, "gesvd", &a, &u, s, &v, OP_N, M, N);
        int columns = *job == 'A' ? M : N;
        multiply(&product, &u, OP_C, &u, OP_N, columns, columns, M);
        compare_with_one(t, "the left vectors of gesvd", &product, columns);
    }
    upload(t, da, a.a, LD * LD); /* values alone: no memory for vectors */
    OK(CALL_OF(t, "gesvd",
               (handle_t, signed char, signed char, int, int, data_t, int, data_t, data_t, int, data_t, int, data_t,
                int, data_t, data_t),
               handle, 'N', 'N', M, N, da, LD, ds, 0, LD, 0, LD, work, lwork, 0, info));
    expect_info("the info of gesvd without vectors", 0);
    static number_t again[N];
    download_real(t, again, ds, N);
    for (int i = 0; i < N; i++) {
        check_near("a singular value without vectors", i, creal(s[i]), creal(again[i]), 10 * t->allowed);
    }

    void *settings = NULL;
    OK(CALL("cusolverDnCreateGesvdjInfo", (void **), &settings));
    OK(CALL("cusolverDnXgesvdjSetTolerance", (void *, double), settings, t->is_double ? 1e-12 : 1e-6));
    upload(t, da, a.a, LD * LD);
    OK(CALL_OF(t, "gesvdj_bufferSize",
               (handle_t, int, int, int, int, data_t, int, data_t, data_t, int, data_t, int, int *, void *), handle,
               VECTOR, 1, M, N, da, LD, ds, du, LD, dv, LD, &lwork, settings));
    need((size_t) lwork * 16);
    OK(CALL_OF(
        t, "gesvdj",
        (handle_t, int, int, int, int, data_t, int, data_t, data_t, int, data_t, int, data_t, int, data_t, void *),
        handle, VECTOR, 1, M, N, da, LD, ds, du, LD, dv, LD, work, lwork, info, settings));
    expect_info("the info of gesvdj", 0);
    download(t, u.a, du, LD * LD);
    download(t, v.a, dv, LD * LD);
    download_real(t, s, ds, N);
    check_values(t, "gesvdj", &a, &u, s, &v, OP_C, M, N);
    OK(CALL("cusolverDnDestroyGesvdjInfo", (void *), settings));
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(du));
    CU_OK(cuMemFree(dv));
    CU_OK(cuMemFree(ds));
    CU_OK(cuMemFree(real_work));
}

#include "drv_cusolver_generic.h"

int main(int argc, char **argv) {
    check_begin(argc, argv);
    open_library("libcusolver.so.12", "libcusolver.so.11");
    check_context();
    int made = CALL("cusolverDnCreate", (handle_t *), &handle);
    if (made == NOT_SUPPORTED) {
        check_unsupported("cusolverDnCreate: %d", made);
    }
    IS(SUCCESS, made);
    info = make(BATCH);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const type_t *t = &types[i];
        check_cholesky(t, LOWER);
        check_cholesky(t, UPPER);
        check_lu(t);
        check_qr(t);
        check_symmetric(t, LOWER);
        check_symmetric(t, UPPER);
        check_singular(t);
        check_batches(t);
        check_generic(t);
    }
    check_errors();
    check_stream();
    OK(CALL("cusolverDnDestroy", (handle_t), handle));
    return check_pass("%d results, %d calls in a stream", checked, REPEATS);
}
