/* The routines of cublasXt: their arguments, as the description of a product of tiles. */
#include "hws_xt.h"

#define HWS_XT_CAST(type, function) ((type *) (void (*)(void))(function))
#define HWS_XT_TYPE(form, size, complex, wide, rank_k, rank_2k, mm)                                                    \
    {                                                                                                                  \
        .bytes = (size),                                                                                               \
        .is_complex = (complex),                                                                                       \
        .is_double = (wide),                                                                                           \
        .gemm = HWS_XT_CAST(hws_xt_gemm_t, cublas##form##gemm_v2),                                                     \
        .symm = {HWS_XT_CAST(hws_xt_symm_t, cublas##form##symm_v2), HWS_XT_CAST(hws_xt_symm_t, mm)},                   \
        .rank = {HWS_XT_CAST(hws_xt_rank_t, cublas##form##syrk_v2), HWS_XT_CAST(hws_xt_rank_t, rank_k)},               \
        .rank_2 = {HWS_XT_CAST(hws_xt_rank_2_t, cublas##form##syr2k_v2), HWS_XT_CAST(hws_xt_rank_2_t, rank_2k)},       \
        .trmm = HWS_XT_CAST(hws_xt_trmm_t, cublas##form##trmm_v2),                                                     \
        .trsm = HWS_XT_CAST(hws_xt_trsm_t, cublas##form##trsm_v2),                                                     \
    }

enum { TYPE_S, TYPE_D, TYPE_C, TYPE_Z };
static const hws_xt_type_t types[] = {
    [TYPE_S] = HWS_XT_TYPE(S, sizeof(float), false, false, NULL, NULL, NULL),
    [TYPE_D] = HWS_XT_TYPE(D, sizeof(double), false, true, NULL, NULL, NULL),
    [TYPE_C] = HWS_XT_TYPE(C, sizeof(cuComplex), true, false, cublasCherk_v2, cublasCher2k_v2, cublasChemm_v2),
    [TYPE_Z] = HWS_XT_TYPE(Z, sizeof(cuDoubleComplex), true, true, cublasZherk_v2, cublasZher2k_v2, cublasZhemm_v2),
};

/* Numbers of the program in host memory, NULL for a routine without one. A Hermitian routine has real ones, too. */
typedef struct scalars {
    const void *alpha, *beta;
    bool real_alpha, real_beta;
} scalars_t;

static hws_xt_number_t read_number(const hws_xt_type_t *type, const void *pointer, bool is_real) {
    hws_xt_number_t number = {.wide = {0, 0}};
    memcpy(&number, pointer, is_real ? type->bytes / 2 : type->bytes);
    return number;
}

static hws_xt_operand_t operand(const void *base, size_t ld, cublasOperation_t op, size_t rows, size_t columns) {
    return (hws_xt_operand_t) {.base = (uintptr_t) base, .ld = ld, .rows = rows, .columns = columns, .op = op};
}

/* Sizes that a pointer can reach. A packed matrix has no leading dimension. */
static bool is_valid(const hws_xt_operand_t *matrix, const hws_xt_type_t *type) {
    size_t stored = matrix->op == CUBLAS_OP_N ? matrix->rows : matrix->columns, most = PTRDIFF_MAX / type->bytes;
    return matrix->rows <= most && matrix->columns <= most
        && (matrix->packed || (matrix->ld >= 1 && matrix->ld >= stored && matrix->ld <= most));
}

static bool is_operation(cublasOperation_t op) {
    return (uint32_t) op <= CUBLAS_OP_C;
}

/* Pageable memory of the host is unknown to the driver. */
static bool is_on_device(uintptr_t address) {
    CUmemorytype type = 0;
    return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS
        && type == CU_MEMORYTYPE_DEVICE;
}

/* alpha == 0: A and B are not read, and c is scaled, or becomes 0 where the routine does not add to it. */
static void drop_terms(hws_xt_product_t *product) {
    product->left.columns = 0;
    product->right.rows = 0;
    if (product->routine < HWS_XT_RANK) {
        product->routine = HWS_XT_GENERAL;
    }
}

/* Completes the description, with the checks that all routines share, and computes it. */
static cublasStatus_t compute(cublasXtHandle_t handle, hws_xt_product_t *product, const scalars_t *scalars) {
    const hws_xt_type_t *type = product->type;
    bool adds = product->routine != HWS_XT_TRIANGULAR && product->routine != HWS_XT_SOLVE;
    HWS_NEED(hws_xt_is_handle(handle) && handle->boards > 0, CUBLAS_STATUS_NOT_INITIALIZED);
    HWS_REQUIRE(is_valid(&product->left, type) && is_valid(&product->right, type) && is_valid(&product->c, type));
    HWS_REQUIRE(scalars->alpha != NULL && (!adds || scalars->beta != NULL));
    if (product->c.rows == 0 || product->c.columns == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    if (product->routine == HWS_XT_GENERAL && product->left.columns == 0) {
        return CUBLAS_STATUS_SUCCESS; /* NVIDIA's library does not scale c then */
    }
    product->block = (size_t) handle->block;
    product->alpha = read_number(type, scalars->alpha, scalars->real_alpha);
    product->beta = adds ? read_number(type, scalars->beta, scalars->real_beta) : hws_xt_real(type, 0);
    if (hws_xt_equals(type, &product->alpha, 0)) {
        drop_terms(product);
    }
    if (product->left.columns == 0 && hws_xt_equals(type, &product->beta, 1)) {
        return CUBLAS_STATUS_SUCCESS;
    }
    HWS_REQUIRE(product->c.base != 0);
    HWS_REQUIRE(product->left.columns == 0 || (product->left.base != 0 && product->right.base != 0));
    product->c.on_device = is_on_device(product->c.base);
    product->left.on_device = product->left.packed && is_on_device(product->left.base);
    product->right.on_device = product->right.packed && is_on_device(product->right.base);
    return hws_xt_compute(handle, product);
}

static cublasStatus_t gemm(cublasXtHandle_t handle, const hws_xt_type_t *type, cublasOperation_t transa,
                           cublasOperation_t transb, size_t m, size_t n, size_t k, const scalars_t *scalars,
                           const void *a, size_t lda, const void *b, size_t ldb, void *c, size_t ldc) {
    hws_xt_product_t product = {
        .type = type,
        .routine = HWS_XT_GENERAL,
        .left = operand(a, lda, transa, m, k),
        .right = operand(b, ldb, transb, k, n),
        .c = operand(c, ldc, CUBLAS_OP_N, m, n),
    };
    HWS_REQUIRE(is_operation(transa) && is_operation(transb));
    return compute(handle, &product, scalars);
}

/* Updates of a triangle: c = alpha * op(a) * op(b) transposed + beta * c, and for HWS_XT_RANK_2 its mirror image. */
static cublasStatus_t rank(cublasXtHandle_t handle, const hws_xt_type_t *type, hws_xt_routine_t routine, bool hermitian,
                           cublasFillMode_t uplo, cublasOperation_t trans, size_t n, size_t k, const scalars_t *scalars,
                           const void *a, size_t lda, const void *b, size_t ldb, void *c, size_t ldc) {
    cublasOperation_t transposed = hermitian ? CUBLAS_OP_C : CUBLAS_OP_T;
    if (trans == CUBLAS_OP_C && !type->is_complex) {
        trans = CUBLAS_OP_T; /* the same for real numbers */
    }
    cublasOperation_t second = trans == CUBLAS_OP_N ? transposed : CUBLAS_OP_N;
    hws_xt_product_t product = {
        .type = type,
        .routine = routine,
        .hermitian = hermitian,
        .uplo = uplo,
        .trans = trans,
        .left = operand(a, lda, trans, n, k),
        .right = operand(b, ldb, second, k, n),
        .c = operand(c, ldc, CUBLAS_OP_N, n, n),
        .left_2 = operand(b, ldb, trans, n, k),
        .right_2 = operand(a, lda, second, k, n),
    };
    HWS_REQUIRE((uint32_t) uplo <= CUBLAS_FILL_MODE_UPPER && (trans == CUBLAS_OP_N || trans == transposed));
    return compute(handle, &product, scalars);
}

/* The factors of a routine with a side: the special square matrix from the left or from the right of the other one. */
static void take_sides(hws_xt_product_t *product, cublasSideMode_t side, hws_xt_operand_t special,
                       const hws_xt_operand_t *other) {
    bool is_left = side == CUBLAS_SIDE_LEFT;
    special.rows = special.columns = is_left ? product->c.rows : product->c.columns;
    product->side = side;
    product->left = is_left ? special : *other;
    product->right = is_left ? *other : special;
}

static bool are_modes(cublasSideMode_t side, cublasFillMode_t uplo) {
    return (uint32_t) side <= CUBLAS_SIDE_RIGHT && (uint32_t) uplo <= CUBLAS_FILL_MODE_UPPER;
}

/* A symmetric or Hermitian matrix; a packed one has no leading dimension, here 0. */
static cublasStatus_t symm(cublasXtHandle_t handle, const hws_xt_type_t *type, bool hermitian, bool packed,
                           cublasSideMode_t side, cublasFillMode_t uplo, size_t m, size_t n, const scalars_t *scalars,
                           const void *a, size_t lda, const void *b, size_t ldb, void *c, size_t ldc) {
    hws_xt_product_t product = {
        .type = type,
        .routine = HWS_XT_SYMMETRIC,
        .hermitian = hermitian,
        .uplo = uplo,
        .c = operand(c, ldc, CUBLAS_OP_N, m, n),
    };
    hws_xt_operand_t special = operand(a, lda, CUBLAS_OP_N, 0, 0), other = operand(b, ldb, CUBLAS_OP_N, m, n);
    special.mirrored = true;
    special.packed = packed;
    HWS_REQUIRE(are_modes(side, uplo));
    take_sides(&product, side, special, &other);
    return compute(handle, &product, scalars);
}

/* A triangular matrix: trmm multiplies by it, trsm, whose b is also c, by its inverse. */
static cublasStatus_t triangle(cublasXtHandle_t handle, const hws_xt_type_t *type, hws_xt_routine_t routine,
                               cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
                               cublasDiagType_t diag, size_t m, size_t n, const void *alpha, const void *a, size_t lda,
                               const void *b, size_t ldb, void *c, size_t ldc) {
    hws_xt_product_t product = {
        .type = type,
        .routine = routine,
        .uplo = uplo,
        .trans = trans,
        .diag = diag,
        .c = operand(c, ldc, CUBLAS_OP_N, m, n),
    };
    hws_xt_operand_t other = operand(b, ldb, CUBLAS_OP_N, m, n);
    HWS_REQUIRE(are_modes(side, uplo) && is_operation(trans) && (uint32_t) diag <= CUBLAS_DIAG_UNIT);
    take_sides(&product, side, operand(a, lda, trans, 0, 0), &other);
    return compute(handle, &product, &(scalars_t) {.alpha = alpha});
}

#define HWS_XT_GEMM(form, t)                                                                                           \
    HWS_EXPORT cublasStatus_t cublasXt##form##gemm(                                                                    \
        cublasXtHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, size_t m, size_t n, size_t k,     \
        const t *alpha, const t *A, size_t lda, const t *B, size_t ldb, const t *beta, t *C, size_t ldc) {             \
        return gemm(handle, &types[TYPE_##form], transa, transb, m, n, k, &(scalars_t) {alpha, beta, false, false}, A, \
                    lda, B, ldb, C, ldc);                                                                              \
    }

/* syrk and herk, whose numbers are real. */
#define HWS_XT_RANK_K(form, name, hermitian, t, r)                                                                     \
    HWS_EXPORT cublasStatus_t cublasXt##form##name(cublasXtHandle_t handle, cublasFillMode_t uplo,                     \
                                                   cublasOperation_t trans, size_t n, size_t k, const r *alpha,        \
                                                   const t *A, size_t lda, const r *beta, t *C, size_t ldc) {          \
        return rank(handle, &types[TYPE_##form], HWS_XT_RANK, hermitian, uplo, trans, n, k,                            \
                    &(scalars_t) {alpha, beta, hermitian, hermitian}, A, lda, A, lda, C, ldc);                         \
    }

/* syr2k and syrkx, her2k and herkx, whose beta is real. */
#define HWS_XT_RANK_2K(form, name, routine, hermitian, t, r)                                                           \
    HWS_EXPORT cublasStatus_t cublasXt##form##name(                                                                    \
        cublasXtHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, size_t n, size_t k, const t *alpha,   \
        const t *A, size_t lda, const t *B, size_t ldb, const r *beta, t *C, size_t ldc) {                             \
        return rank(handle, &types[TYPE_##form], routine, hermitian, uplo, trans, n, k,                                \
                    &(scalars_t) {alpha, beta, false, hermitian}, A, lda, B, ldb, C, ldc);                             \
    }

#define HWS_XT_SYMM(form, name, hermitian, t)                                                                          \
    HWS_EXPORT cublasStatus_t cublasXt##form##name(                                                                    \
        cublasXtHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, size_t m, size_t n, const t *alpha,     \
        const t *A, size_t lda, const t *B, size_t ldb, const t *beta, t *C, size_t ldc) {                             \
        return symm(handle, &types[TYPE_##form], hermitian, false, side, uplo, m, n,                                   \
                    &(scalars_t) {alpha, beta, false, false}, A, lda, B, ldb, C, ldc);                                 \
    }

#define HWS_XT_SPMM(form, t)                                                                                           \
    HWS_EXPORT cublasStatus_t cublasXt##form##spmm(                                                                    \
        cublasXtHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, size_t m, size_t n, const t *alpha,     \
        const t *AP, const t *B, size_t ldb, const t *beta, t *C, size_t ldc) {                                        \
        return symm(handle, &types[TYPE_##form], false, true, side, uplo, m, n,                                        \
                    &(scalars_t) {alpha, beta, false, false}, AP, 0, B, ldb, C, ldc);                                  \
    }

#define HWS_XT_TRMM(form, t)                                                                                           \
    HWS_EXPORT cublasStatus_t cublasXt##form##trmm(cublasXtHandle_t handle, cublasSideMode_t side,                     \
                                                   cublasFillMode_t uplo, cublasOperation_t trans,                     \
                                                   cublasDiagType_t diag, size_t m, size_t n, const t *alpha,          \
                                                   const t *A, size_t lda, const t *B, size_t ldb, t *C, size_t ldc) { \
        return triangle(handle, &types[TYPE_##form], HWS_XT_TRIANGULAR, side, uplo, trans, diag, m, n, alpha, A, lda,  \
                        B, ldb, C, ldc);                                                                               \
    }

#define HWS_XT_TRSM(form, t)                                                                                           \
    HWS_EXPORT cublasStatus_t cublasXt##form##trsm(                                                                    \
        cublasXtHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,                \
        cublasDiagType_t diag, size_t m, size_t n, const t *alpha, const t *A, size_t lda, t *B, size_t ldb) {         \
        return triangle(handle, &types[TYPE_##form], HWS_XT_SOLVE, side, uplo, trans, diag, m, n, alpha, A, lda, B,    \
                        ldb, B, ldb);                                                                                  \
    }

#define HWS_XT_ALL(form, t)                                                                                            \
    HWS_XT_GEMM(form, t)                                                                                               \
    HWS_XT_RANK_K(form, syrk, false, t, t)                                                                             \
    HWS_XT_RANK_2K(form, syr2k, HWS_XT_RANK_2, false, t, t)                                                            \
    HWS_XT_RANK_2K(form, syrkx, HWS_XT_RANK_X, false, t, t)                                                            \
    HWS_XT_SYMM(form, symm, false, t)                                                                                  \
    HWS_XT_SPMM(form, t)                                                                                               \
    HWS_XT_TRMM(form, t)                                                                                               \
    HWS_XT_TRSM(form, t)

#define HWS_XT_HERMITIAN(form, t, r)                                                                                   \
    HWS_XT_RANK_K(form, herk, true, t, r)                                                                              \
    HWS_XT_RANK_2K(form, her2k, HWS_XT_RANK_2, true, t, r)                                                             \
    HWS_XT_RANK_2K(form, herkx, HWS_XT_RANK_X, true, t, r)                                                             \
    HWS_XT_SYMM(form, hemm, true, t)

HWS_XT_ALL(S, float)
HWS_XT_ALL(D, double)
HWS_XT_ALL(C, cuComplex)
HWS_XT_ALL(Z, cuDoubleComplex)
HWS_XT_HERMITIAN(C, cuComplex, float)
HWS_XT_HERMITIAN(Z, cuDoubleComplex, double)
