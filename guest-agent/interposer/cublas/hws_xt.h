/* cublasXt: the guest's handles, and products of tiles that its calls describe. */
#ifndef HWS_XT_H
#define HWS_XT_H

#include "hws_cublas.h"

/* A device of a handle, with a context, a stream and a handle of cuBLAS of its own. */
typedef struct hws_xt_board {
    CUdevice device;
    CUcontext context;
    CUstream stream;
    cublasHandle_t blas;
} hws_xt_board_t;

struct cublasXtContext {
    uint64_t magic;
    int block; /* rows and columns of a tile */
    cublasXtPinnedMemMode_t pinning;
    int boards;
    hws_xt_board_t *board;
};

/* Whether the pointer is a handle that exists. */
bool hws_xt_is_handle(cublasXtHandle_t handle);

cublasStatus_t hws_xt_status(CUresult result);

/* A scalar of any type. A real one has an imaginary part of 0, so it serves complex and real parameters. */
typedef union hws_xt_number {
    float single[2];
    double wide[2];
} hws_xt_number_t;

/* The functions of cuBLAS with pointers to any type; their tables cast those of each type. */
typedef cublasStatus_t hws_xt_gemm_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *,
                                     const void *, int, const void *, int, const void *, void *, int);
typedef cublasStatus_t hws_xt_symm_t(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int, int, const void *,
                                     const void *, int, const void *, int, const void *, void *, int);
typedef cublasStatus_t hws_xt_rank_t(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const void *,
                                     const void *, int, const void *, void *, int);
typedef cublasStatus_t hws_xt_rank_2_t(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const void *,
                                       const void *, int, const void *, int, const void *, void *, int);
typedef cublasStatus_t hws_xt_trmm_t(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                                     cublasDiagType_t, int, int, const void *, const void *, int, const void *, int,
                                     void *, int);
typedef cublasStatus_t hws_xt_trsm_t(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                                     cublasDiagType_t, int, int, const void *, const void *, int, void *, int);

/* A type of elements. Pairs of functions: symmetric and Hermitian. */
typedef struct hws_xt_type {
    size_t bytes;
    bool is_complex, is_double;
    hws_xt_gemm_t *gemm;
    hws_xt_symm_t *symm[2];
    hws_xt_rank_t *rank[2];
    hws_xt_rank_2_t *rank_2[2];
    hws_xt_trmm_t *trmm;
    hws_xt_trsm_t *trsm;
} hws_xt_type_t;

typedef enum hws_xt_routine {
    HWS_XT_GENERAL,
    HWS_XT_SYMMETRIC,  /* symm, hemm, spmm */
    HWS_XT_TRIANGULAR, /* trmm */
    HWS_XT_SOLVE,      /* trsm */
    HWS_XT_RANK,       /* syrk, herk */
    HWS_XT_RANK_2,     /* syr2k, her2k */
    HWS_XT_RANK_X,     /* syrkx, herkx */
} hws_xt_routine_t;

/* A factor of a product, with the rows and columns of op(matrix). */
typedef struct hws_xt_operand {
    uintptr_t base;
    size_t ld, rows, columns;
    cublasOperation_t op;
    bool mirrored; /* of a symmetric or Hermitian matrix, only one triangle is stored */
    bool packed;
    bool on_device; /* or managed */
} hws_xt_operand_t;

/* c = alpha * left * right + beta * c; of routines with a side, one of the two is the special matrix. */
typedef struct hws_xt_product {
    const hws_xt_type_t *type;
    hws_xt_routine_t routine;
    bool hermitian;
    cublasSideMode_t side;
    cublasFillMode_t uplo;
    cublasOperation_t trans;
    cublasDiagType_t diag;
    hws_xt_number_t alpha, beta;
    hws_xt_operand_t left, right, c;
    hws_xt_operand_t left_2, right_2; /* the second product of HWS_XT_RANK_2 */
    size_t block;
} hws_xt_product_t;

hws_xt_number_t hws_xt_real(const hws_xt_type_t *type, double value);
bool hws_xt_equals(const hws_xt_type_t *type, const hws_xt_number_t *number, double value);

/* Computes the product on the handle's boards, and returns when it is complete. */
cublasStatus_t hws_xt_compute(cublasXtHandle_t handle, const hws_xt_product_t *product);

/* The work of one board: every `count`th tile, or line of tiles that depend on each other, from `index`. */
typedef struct hws_xt_work {
    const hws_xt_product_t *product;
    const hws_xt_board_t *board;
    size_t index, count;
    size_t ld;           /* of each tile on the device */
    CUdeviceptr tile[3]; /* of left, right and c */
    void *staging;       /* host memory of a tile; NULL until it is needed */
    cublasStatus_t status;
} hws_xt_work_t;

/* Rows or columns of the tile `index` of a matrix that has `total`. */
static inline size_t hws_xt_extent(const hws_xt_product_t *product, size_t total, size_t index) {
    size_t rest = total - index * product->block;
    return rest < product->block ? rest : product->block;
}

static inline size_t hws_xt_tiles(const hws_xt_product_t *product, size_t total) {
    return total / product->block + (total % product->block != 0);
}

/* Copies the tile of op(operand) to the work's tile `slot`. Sets *op_p to the operation that cuBLAS is to apply. */
cublasStatus_t hws_xt_load(hws_xt_work_t *work, const hws_xt_operand_t *operand, int slot, size_t row, size_t column,
                           cublasOperation_t *op_p);

/* Copies the tile of c back: the whole one, or the stored triangle of a tile of the diagonal. */
cublasStatus_t hws_xt_store(hws_xt_work_t *work, size_t row, size_t column, bool triangle);

#define HWS_XT_OK(call)                                                                                                \
    do {                                                                                                               \
        cublasStatus_t hws_xt_result = (call);                                                                         \
        if (hws_xt_result != CUBLAS_STATUS_SUCCESS) {                                                                  \
            return hws_xt_result;                                                                                      \
        }                                                                                                              \
    } while (0)

#endif
