/*
 * Sparse systems of cuSOLVER beside the Driver API: solutions by QR and by Cholesky's factors, and the eigenvalue
 * closest to a number, in float and double, real and complex, with both index bases. The program multiplies the results
 * by the matrices. It also checks the singularity of matrices without a solution, calls in a stream, and wrong calls.
 * The matrices have descriptions of cuSPARSE. The functions are found by name. Without a cuSOLVER at the other end,
 * cusolverSpCreate returns CUSOLVER_STATUS_NOT_SUPPORTED.
 */
#include "check_numbers.h"

#include <math.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 3, NOT_SUPPORTED = 9 };
enum { N = 41, MOST = 8 * N, NO_ORDER = 0, RCM_ORDER = 1 };

typedef void *handle_t;
typedef void *descr_t;
typedef struct complex32 {
    float x, y;
} complex32_t;
typedef struct complex64 {
    double x, y;
} complex64_t;

static const type_t types[] = {
    {'S', 0, 0, 2e-4, 0, 0}, {'D', 0, 1, 1e-11, 1, 1}, {'C', 1, 0, 2e-4, 4, 0}, {'Z', 1, 1, 1e-11, 5, 1}};

DECLARE(cusparseCreateMatDescr, descr_t *);
DECLARE(cusparseDestroyMatDescr, descr_t);
DECLARE(cusparseSetMatIndexBase, descr_t, int);
DECLARE(cusolverSpCreate, handle_t *);
DECLARE(cusolverSpDestroy, handle_t);
DECLARE(cusolverSpSetStream, handle_t, CUstream);
DECLARE(cusolverSpGetStream, handle_t, CUstream *);
#define CSR handle_t, int, int, descr_t, data_t, data_t, data_t
typedef int (*solve32_t)(CSR, data_t, float, int, data_t, int *);
typedef int (*solve64_t)(CSR, data_t, double, int, data_t, int *);
typedef int (*eigen_s_t)(CSR, float, data_t, int, float, data_t, data_t);
typedef int (*eigen_d_t)(CSR, double, data_t, int, double, data_t, data_t);
typedef int (*eigen_c_t)(CSR, complex32_t, data_t, int, float, data_t, data_t);
typedef int (*eigen_z_t)(CSR, complex64_t, data_t, int, double, data_t, data_t);

static void load(void) {
    open_library("libcusparse.so.12", NULL);
    FIND(cusparseCreateMatDescr);
    FIND(cusparseDestroyMatDescr);
    FIND(cusparseSetMatIndexBase);
    open_library("libcusolver.so.12", "libcusolver.so.11");
    FIND(cusolverSpCreate);
    FIND(cusolverSpDestroy);
    FIND(cusolverSpSetStream);
    FIND(cusolverSpGetStream);
}

static handle_t handle;
static CUstream stream;
static int checked;

/* A sparse matrix, in the program by rows and on the device in CSR. */
typedef struct matrix {
    number_t a[N][N];
    int nnz;
    data_t values, offsets, columns;
    descr_t descr;
} matrix_t;

static void *find_of(const type_t *t, const char *name) {
    char full[64];
    snprintf(full, sizeof full, "cusolverSp%c%s", t->letter, name);
    return find(full);
}

static data_t upload(const void *bytes, size_t count) {
    data_t memory;
    CU_OK(cuMemAlloc(&memory, count));
    CU_OK(cuMemcpyHtoD(memory, bytes, count));
    return memory;
}

static data_t upload_numbers(const type_t *t, const number_t *numbers, int count) {
    static unsigned char bytes[MOST * 16];
    encode(t, bytes, numbers, count);
    return upload(bytes, (size_t) count * element_bytes(t));
}

static void download(const type_t *t, number_t *to, data_t from, int count) {
    unsigned char bytes[N * 16];
    CU_OK(cuMemcpyDtoH(bytes, from, (size_t) count * element_bytes(t)));
    decode(t, to, bytes, count);
}

/* Puts a matrix on the device. Its zeros are absent, except for those on the diagonal. */
static void put(const type_t *t, matrix_t *m, int base) {
    number_t values[MOST];
    int offsets[N + 1], columns[MOST];
    m->nnz = 0;
    for (int row = 0; row < N; row++) {
        offsets[row] = m->nnz + base;
        for (int col = 0; col < N; col++) {
            if (m->a[row][col] != 0 || row == col) {
                check_true("the matrix is sparse", m->nnz < MOST);
                values[m->nnz] = m->a[row][col];
                columns[m->nnz++] = col + base;
            }
        }
    }
    offsets[N] = m->nnz + base;
    m->values = upload_numbers(t, values, m->nnz);
    m->offsets = upload(offsets, sizeof offsets);
    m->columns = upload(columns, (size_t) m->nnz * sizeof *columns);
    IS(SUCCESS, cusparseCreateMatDescr(&m->descr));
    IS(SUCCESS, cusparseSetMatIndexBase(m->descr, base));
}

static void drop(matrix_t *m) {
    CU_OK(cuMemFree(m->values));
    CU_OK(cuMemFree(m->offsets));
    CU_OK(cuMemFree(m->columns));
    IS(SUCCESS, cusparseDestroyMatDescr(m->descr));
}

/* Compares a x with b, all elements of b being of the size of 1. */
static void check_product(const type_t *t, const char *what, const matrix_t *m, const number_t *x, const number_t *b) {
    for (int row = 0; row < N; row++) {
        number_t sum = 0;
        for (int col = 0; col < N; col++) {
            sum += m->a[row][col] * x[col];
        }
        if (!(cabs(sum - b[row]) <= t->allowed)) {
            check_fail("%c %s: row %d, expected %g%+gi, got %g%+gi", t->letter, what, row, creal(b[row]), cimag(b[row]),
                       creal(sum), cimag(sum));
        }
    }
    checked++;
}

#define ARGUMENTS(m) handle, N, (m)->nnz, (m)->descr, (m)->values, (m)->offsets, (m)->columns

/* The status of csrlsvqr or csrlsvchol. */
static int solve(const type_t *t, const char *name, const matrix_t *m, data_t b, double tol, int order, data_t x,
                 int *singularity) {
    void *function = find_of(t, name);
    return t->is_double ? ((solve64_t) function)(ARGUMENTS(m), b, tol, order, x, singularity)
                        : ((solve32_t) function)(ARGUMENTS(m), b, (float) tol, order, x, singularity);
}

static void check_solution(const type_t *t, const char *name, const matrix_t *m) {
    number_t b[N], x[N];
    for (int i = 0; i < N; i++) {
        b[i] = next_number(t);
    }
    data_t on_b = upload_numbers(t, b, N), on_x = upload_numbers(t, b, N);
    for (int order = NO_ORDER; order <= RCM_ORDER; order++) {
        int singularity = 77;
        CU_OK(cuMemsetD8(on_x, 0xff, N * element_bytes(t)));
        OK(solve(t, name, m, on_b, 0, order, on_x, &singularity));
        check_element("the singularity of a regular matrix", order, -1, singularity);
        CU_OK(cuStreamSynchronize(stream));
        download(t, x, on_x, N);
        check_product(t, name, m, x, b);
    }
    CU_OK(cuMemFree(on_b));
    CU_OK(cuMemFree(on_x));
}

static void check_singularity(const type_t *t, const char *name, const matrix_t *m) {
    number_t b[N] = {1};
    data_t on_b = upload_numbers(t, b, N), on_x = upload_numbers(t, b, N);
    int singularity = -1;
    OK(solve(t, name, m, on_b, t->allowed, NO_ORDER, on_x, &singularity));
    check_true("a matrix without a solution has a singularity", singularity >= 0 && singularity < N);
    CU_OK(cuMemFree(on_b));
    CU_OK(cuMemFree(on_x));
    checked++;
}

/* The eigenvalue of a Hermitian matrix that is closest to a number. */
static void check_eigenvalue(const type_t *t, const matrix_t *m, number_t shift) {
    number_t x[N], b[N], mu;
    for (int i = 0; i < N; i++) {
        x[i] = next_number(t);
    }
    data_t on_first = upload_numbers(t, x, N), on_x = upload_numbers(t, x, N), on_mu = upload_numbers(t, x, 1);
    enum { STEPS = 2000 };
    double eps = t->allowed / 8;
    void *function = find_of(t, "csreigvsi");
    int status;
    if (t->is_complex) {
        complex64_t wide = {creal(shift), cimag(shift)};
        complex32_t narrow = {(float) wide.x, (float) wide.y};
        status = t->is_double ? ((eigen_z_t) function)(ARGUMENTS(m), wide, on_first, STEPS, eps, on_mu, on_x)
                              : ((eigen_c_t) function)(ARGUMENTS(m), narrow, on_first, STEPS, (float) eps, on_mu, on_x);
    } else {
        status = t->is_double
            ? ((eigen_d_t) function)(ARGUMENTS(m), creal(shift), on_first, STEPS, eps, on_mu, on_x)
            : ((eigen_s_t) function)(ARGUMENTS(m), (float) creal(shift), on_first, STEPS, (float) eps, on_mu, on_x);
    }
    IS(SUCCESS, status);
    CU_OK(cuStreamSynchronize(stream));
    download(t, x, on_x, N);
    download(t, &mu, on_mu, 1);
    double length = 0;
    for (int i = 0; i < N; i++) {
        length = hypot(length, cabs(x[i]));
        b[i] = mu * x[i];
    }
    check_true("an eigenvector has the length 1", fabs(length - 1) < 1e-3);
    check_product(t, "csreigvsi", m, x, b);
    CU_OK(cuMemFree(on_first));
    CU_OK(cuMemFree(on_x));
    CU_OK(cuMemFree(on_mu));
}

static void check_type(const type_t *t, int base) {
    static matrix_t m;
    memset(m.a, 0, sizeof m.a);
    for (int row = 0; row < N; row++) { /* not symmetric: a band, and distant elements */
        m.a[row][row] = 4 + next_number(t);
        m.a[row][(row + 1) % N] = next_number(t);
        m.a[row][(row * 5 + 7) % N] += next_number(t);
    }
    put(t, &m, base);
    check_solution(t, "csrlsvqr", &m);
    drop(&m);

    for (int row = 0; row < N; row++) {
        m.a[row][13] = 0;
    }
    put(t, &m, base);
    check_singularity(t, "csrlsvqr", &m);
    drop(&m);

    memset(m.a, 0, sizeof m.a);
    for (int row = 0; row < N; row++) { /* Hermitian, and diagonally dominant */
        m.a[row][row] = 3 + row * 0.125;
        if (row > 0) {
            m.a[row][row - 1] = next_number(t);
            m.a[row - 1][row] = conj(m.a[row][row - 1]);
        }
    }
    put(t, &m, base);
    check_solution(t, "csrlsvchol", &m);
    check_eigenvalue(t, &m, 2);
    drop(&m);

    m.a[20][20] = -1;
    put(t, &m, base);
    check_singularity(t, "csrlsvchol", &m);
    drop(&m);
}

static void check_errors(void) {
    static matrix_t m;
    const type_t *t = &types[1];
    for (int i = 0; i < N; i++) {
        m.a[i][i] = 1;
    }
    put(t, &m, 0);
    number_t b[N] = {1};
    data_t on_b = upload_numbers(t, b, N);
    int singularity = 77;
    solve64_t function = (solve64_t) find_of(t, "csrlsvqr");
    IS(NOT_INITIALIZED,
       function(NULL, N, m.nnz, m.descr, m.values, m.offsets, m.columns, on_b, 0, 0, on_b, &singularity));
    IS(INVALID_VALUE,
       function(handle, -1, m.nnz, m.descr, m.values, m.offsets, m.columns, on_b, 0, 0, on_b, &singularity));
    IS(INVALID_VALUE,
       function(handle, N, m.nnz, m.descr, m.values, m.offsets, m.columns, on_b, 0, 9, on_b, &singularity));
    CU_OK(cuMemFree(on_b));
    drop(&m);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    int made = cusolverSpCreate(&handle);
    if (made == NOT_SUPPORTED) {
        check_unsupported("cusolverSpCreate: %d", made);
    }
    IS(SUCCESS, made);
    for (int i = 0; i < 8; i++) {
        check_type(&types[i % 4], i / 4);
    }
    CUstream found = (CUstream) (uintptr_t) 1;
    OK(cusolverSpGetStream(handle, &found));
    check_true("a new handle has the default stream", found == NULL);
    CU_OK(cuStreamCreate(&stream, 0));
    OK(cusolverSpSetStream(handle, stream));
    OK(cusolverSpGetStream(handle, &found));
    check_true("a handle has its stream", found == stream);
    for (int i = 0; i < 4; i++) {
        check_type(&types[i], i % 2);
    }
    check_errors();
    OK(cusolverSpDestroy(handle));
    CU_OK(cuStreamDestroy(stream));
    return check_pass("%d results", checked);
}
