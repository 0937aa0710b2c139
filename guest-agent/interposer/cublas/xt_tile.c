/* Copies of single tiles between the matrices of the program, wherever they lie, and a board. */
#include "hws_xt.h"

#include <stdlib.h>

/* A copy of rows * columns elements between two matrices. */
typedef struct box {
    uintptr_t from, to;
    size_t from_ld, to_ld, rows, columns;
} box_t;

static cublasStatus_t copy(const hws_xt_work_t *work, const box_t *box) {
    size_t bytes = work->product->type->bytes;
    CUDA_MEMCPY2D call = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = box->from,
        .srcPitch = box->from_ld * bytes,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = box->to,
        .dstPitch = box->to_ld * bytes,
        .WidthInBytes = box->rows * bytes,
        .Height = box->columns,
    };
    return hws_xt_status(cuMemcpy2DAsync_v2(&call, work->board->stream));
}

static cublasStatus_t need_staging(hws_xt_work_t *work) {
    if (work->staging == NULL) {
        work->staging = malloc(work->ld * work->ld * work->product->type->bytes);
    }
    return work->staging == NULL ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t wait(const hws_xt_work_t *work) {
    return hws_xt_status(cuStreamSynchronize(work->board->stream));
}

/* The rows of a column that are stored, in a tile of the diagonal or beside it. */
static void stored_rows(cublasFillMode_t uplo, bool diagonal, size_t rows, size_t column, size_t *first_p,
                        size_t *count_p) {
    *first_p = diagonal && uplo == CUBLAS_FILL_MODE_LOWER ? column : 0;
    size_t end = diagonal && uplo == CUBLAS_FILL_MODE_UPPER ? column + 1 : rows;
    *count_p = end - *first_p;
}

/* Place of an element of the stored triangle in a packed matrix of n columns. One of two adjoining numbers is even. */
static size_t packed_place(cublasFillMode_t uplo, size_t n, size_t row, size_t column) {
    return uplo == CUBLAS_FILL_MODE_UPPER ? row + column * (column + 1) / 2 : row + column * (2 * n - column - 1) / 2;
}

/* Columns of a packed matrix differ in length, so each is a copy: by the host in its memory, else by the device. */
static cublasStatus_t load_packed(hws_xt_work_t *work, const hws_xt_operand_t *operand, int slot, size_t row,
                                  size_t column) {
    const hws_xt_product_t *product = work->product;
    size_t bytes = product->type->bytes, rows = hws_xt_extent(product, operand->rows, row);
    size_t columns = hws_xt_extent(product, operand->rows, column), first, count;
    if (!operand->on_device) {
        HWS_XT_OK(need_staging(work));
    }
    for (size_t i = 0; i < columns; i++) {
        stored_rows(product->uplo, row == column, rows, i, &first, &count);
        size_t place =
            packed_place(product->uplo, operand->rows, row * product->block + first, column * product->block + i);
        uintptr_t from = operand->base + place * bytes;
        size_t to = (i * work->ld + first) * bytes;
        if (operand->on_device) {
            HWS_XT_OK(copy(work, &(box_t) {from, work->tile[slot] + to, count, count, count, 1}));
        } else {
            memcpy((char *) work->staging + to, (const void *) from, count * bytes);
        }
    }
    if (operand->on_device) {
        return CUBLAS_STATUS_SUCCESS;
    }
    HWS_XT_OK(copy(work, &(box_t) {(uintptr_t) work->staging, work->tile[slot], work->ld, work->ld, rows, columns}));
    return wait(work); /* before the next tile takes its place in host memory */
}

/* Whether the tile lies in the triangle that is not stored. */
static bool is_mirrored(const hws_xt_product_t *product, size_t row, size_t column) {
    return product->uplo == CUBLAS_FILL_MODE_LOWER ? row < column : row > column;
}

cublasStatus_t hws_xt_load(hws_xt_work_t *work, const hws_xt_operand_t *operand, int slot, size_t row, size_t column,
                           cublasOperation_t *op_p) {
    const hws_xt_product_t *product = work->product;
    bool swapped = operand->op != CUBLAS_OP_N;
    *op_p = operand->op;
    if (operand->mirrored) {
        swapped = is_mirrored(product, row, column);
        *op_p = !swapped ? CUBLAS_OP_N : product->hermitian ? CUBLAS_OP_C : CUBLAS_OP_T;
    }
    size_t tile_row = swapped ? column : row, tile_column = swapped ? row : column;
    if (operand->packed) {
        return load_packed(work, operand, slot, tile_row, tile_column);
    }
    size_t start = tile_column * product->block * operand->ld + tile_row * product->block;
    return copy(work,
                &(box_t) {
                    .from = operand->base + start * product->type->bytes,
                    .to = work->tile[slot],
                    .from_ld = operand->ld,
                    .to_ld = work->ld,
                    .rows = hws_xt_extent(product, swapped ? operand->columns : operand->rows, tile_row),
                    .columns = hws_xt_extent(product, swapped ? operand->rows : operand->columns, tile_column),
                });
}

/* The program may use the other triangle for something else at the same time, so it is not written. */
static cublasStatus_t store_triangle(hws_xt_work_t *work, const box_t *tile) {
    const hws_xt_product_t *product = work->product;
    size_t bytes = product->type->bytes, first, count;
    bool on_device = product->c.on_device;
    if (!on_device) {
        HWS_XT_OK(need_staging(work));
        HWS_XT_OK(copy(
            work, &(box_t) {tile->from, (uintptr_t) work->staging, work->ld, work->ld, tile->rows, tile->columns}));
        HWS_XT_OK(wait(work));
    }
    for (size_t i = 0; i < tile->columns; i++) {
        stored_rows(product->uplo, true, tile->rows, i, &first, &count);
        size_t from = (i * work->ld + first) * bytes;
        uintptr_t to = tile->to + (i * tile->to_ld + first) * bytes;
        if (on_device) {
            HWS_XT_OK(copy(work, &(box_t) {tile->from + from, to, count, count, count, 1}));
        } else {
            memcpy((void *) to, (const char *) work->staging + from, count * bytes);
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hws_xt_store(hws_xt_work_t *work, size_t row, size_t column, bool triangle) {
    const hws_xt_product_t *product = work->product;
    const hws_xt_operand_t *c = &product->c;
    box_t tile = {
        .from = work->tile[2],
        .to = c->base + (column * product->block * c->ld + row * product->block) * product->type->bytes,
        .from_ld = work->ld,
        .to_ld = c->ld,
        .rows = hws_xt_extent(product, c->rows, row),
        .columns = hws_xt_extent(product, c->columns, column),
    };
    return triangle ? store_triangle(work, &tile) : copy(work, &tile);
}
