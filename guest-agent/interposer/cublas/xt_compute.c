/* Products of tiles: the order of a board's tiles, and the calls of cuBLAS for each of them. */
#include "hws_xt.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum { HWS_XT_LEFT, HWS_XT_RIGHT, HWS_XT_C };

hws_xt_number_t hws_xt_real(const hws_xt_type_t *type, double value) {
    hws_xt_number_t number = {.wide = {0, 0}};
    if (type->is_double) {
        number.wide[0] = value;
    } else {
        number.single[0] = (float) value;
    }
    return number;
}

bool hws_xt_equals(const hws_xt_type_t *type, const hws_xt_number_t *number, double value) {
    double real = type->is_double ? number->wide[0] : (double) number->single[0];
    double imaginary = type->is_double ? number->wide[1] : (double) number->single[1];
    return real == value && imaginary == 0;
}

static hws_xt_number_t conjugate(const hws_xt_type_t *type, hws_xt_number_t number) {
    if (type->is_double) {
        number.wide[1] = -number.wide[1];
    } else {
        number.single[1] = -number.single[1];
    }
    return number;
}

static bool is_rank(const hws_xt_product_t *product) {
    return product->routine >= HWS_XT_RANK;
}

/* Lines of tiles, along which a result is the next one's argument. trmm in place reads what its last steps replace. */
static bool has_lines(const hws_xt_product_t *product) {
    return product->routine == HWS_XT_TRIANGULAR || product->routine == HWS_XT_SOLVE;
}

static void *tile(const hws_xt_work_t *work, int slot) {
    return (void *) (uintptr_t) work->tile[slot];
}

/* The sizes of a step: rows and columns of the tile of c, and terms of each sum. */
typedef struct step {
    size_t row, column, inner;
    int rows, columns, terms;
} step_t;

static step_t step_of(const hws_xt_work_t *work, size_t row, size_t column, size_t inner) {
    const hws_xt_product_t *product = work->product;
    return (step_t) {
        .row = row,
        .column = column,
        .inner = inner,
        .rows = (int) hws_xt_extent(product, product->c.rows, row),
        .columns = (int) hws_xt_extent(product, product->c.columns, column),
        .terms = (int) hws_xt_extent(product, product->left.columns, inner),
    };
}

static cublasStatus_t multiply(hws_xt_work_t *work, const hws_xt_operand_t *left, const hws_xt_operand_t *right,
                               const step_t *step, const hws_xt_number_t *alpha, const hws_xt_number_t *beta) {
    cublasOperation_t left_op, right_op;
    HWS_XT_OK(hws_xt_load(work, left, HWS_XT_LEFT, step->row, step->inner, &left_op));
    HWS_XT_OK(hws_xt_load(work, right, HWS_XT_RIGHT, step->inner, step->column, &right_op));
    int ld = (int) work->ld;
    return work->product->type->gemm(work->board->blas, left_op, right_op, step->rows, step->columns, step->terms,
                                     alpha, tile(work, HWS_XT_LEFT), ld, tile(work, HWS_XT_RIGHT), ld, beta,
                                     tile(work, HWS_XT_C), ld);
}

/* A tile of a symmetric or triangular matrix's diagonal times one of the other matrix. */
static cublasStatus_t multiply_special(hws_xt_work_t *work, const step_t *step, const hws_xt_number_t *beta) {
    const hws_xt_product_t *product = work->product;
    const hws_xt_type_t *type = product->type;
    cublasOperation_t op;
    HWS_XT_OK(hws_xt_load(work, &product->left, HWS_XT_LEFT, step->row, step->inner, &op));
    HWS_XT_OK(hws_xt_load(work, &product->right, HWS_XT_RIGHT, step->inner, step->column, &op));
    bool is_left = product->side == CUBLAS_SIDE_LEFT;
    const void *special = tile(work, is_left ? HWS_XT_LEFT : HWS_XT_RIGHT);
    const void *other = tile(work, is_left ? HWS_XT_RIGHT : HWS_XT_LEFT);
    int ld = (int) work->ld;
    if (product->routine == HWS_XT_TRIANGULAR) {
        return type->trmm(work->board->blas, product->side, product->uplo, product->trans, product->diag, step->rows,
                          step->columns, &product->alpha, special, ld, other, ld, tile(work, HWS_XT_C), ld);
    }
    return type->symm[product->hermitian](work->board->blas, product->side, product->uplo, step->rows, step->columns,
                                          &product->alpha, special, ld, other, ld, beta, tile(work, HWS_XT_C), ld);
}

/* A tile of c's diagonal. */
static cublasStatus_t update_diagonal(hws_xt_work_t *work, const step_t *step, const hws_xt_number_t *beta) {
    const hws_xt_product_t *product = work->product;
    const hws_xt_type_t *type = product->type;
    if (product->routine == HWS_XT_RANK_X) { /* the software GPU has no syrkx */
        return multiply(work, &product->left, &product->right, step, &product->alpha, beta);
    }
    cublasOperation_t op;
    int ld = (int) work->ld;
    HWS_XT_OK(hws_xt_load(work, &product->left, HWS_XT_LEFT, step->row, step->inner, &op));
    if (product->routine == HWS_XT_RANK) {
        return type->rank[product->hermitian](work->board->blas, product->uplo, product->trans, step->rows, step->terms,
                                              &product->alpha, tile(work, HWS_XT_LEFT), ld, beta, tile(work, HWS_XT_C),
                                              ld);
    }
    HWS_XT_OK(hws_xt_load(work, &product->right, HWS_XT_RIGHT, step->inner, step->column, &op));
    return type->rank_2[product->hermitian](work->board->blas, product->uplo, product->trans, step->rows, step->terms,
                                            &product->alpha, tile(work, HWS_XT_LEFT), ld, tile(work, HWS_XT_RIGHT), ld,
                                            beta, tile(work, HWS_XT_C), ld);
}

/* Adds one term to the tile of c. */
static cublasStatus_t add(hws_xt_work_t *work, const step_t *step, const hws_xt_number_t *beta) {
    const hws_xt_product_t *product = work->product;
    size_t along = product->side == CUBLAS_SIDE_LEFT ? step->row : step->column;
    if (is_rank(product) && step->row == step->column) {
        return update_diagonal(work, step, beta);
    }
    if ((product->routine == HWS_XT_SYMMETRIC || product->routine == HWS_XT_TRIANGULAR) && along == step->inner) {
        return multiply_special(work, step, beta);
    }
    HWS_XT_OK(multiply(work, &product->left, &product->right, step, &product->alpha, beta));
    if (product->routine != HWS_XT_RANK_2) {
        return CUBLAS_STATUS_SUCCESS;
    }
    hws_xt_number_t one = hws_xt_real(product->type, 1);
    hws_xt_number_t second = product->hermitian ? conjugate(product->type, product->alpha) : product->alpha;
    return multiply(work, &product->left_2, &product->right_2, step, &second, &one);
}

/* Whether op(A) of trmm or trsm has nonzero elements above its diagonal. */
static bool is_upper(const hws_xt_product_t *product) {
    return (product->uplo == CUBLAS_FILL_MODE_UPPER) == (product->trans == CUBLAS_OP_N);
}

/* Whether the tile of the sum is not zero by the form of a triangle. */
static bool has_term(const hws_xt_product_t *product, size_t along, size_t inner) {
    if (!has_lines(product) || along == inner) {
        return true;
    }
    bool is_left = product->side == CUBLAS_SIDE_LEFT;
    return (inner > along) == (is_upper(product) == is_left);
}

/* Without terms, c is only scaled. */
static cublasStatus_t scale(hws_xt_work_t *work, const step_t *step) {
    const hws_xt_product_t *product = work->product;
    int ld = (int) work->ld;
    return product->type->gemm(work->board->blas, CUBLAS_OP_N, CUBLAS_OP_N, step->rows, step->columns, 0,
                               &product->alpha, tile(work, HWS_XT_LEFT), ld, tile(work, HWS_XT_RIGHT), ld,
                               &product->beta, tile(work, HWS_XT_C), ld);
}

/* The diagonal of a Hermitian matrix is real: documented for c after each routine. */
static cublasStatus_t make_real(const hws_xt_work_t *work, const step_t *step) {
    const hws_xt_type_t *type = work->product->type;
    size_t half = type->bytes / 2;
    return hws_xt_status(cuMemsetD2D32Async(work->tile[HWS_XT_C] + half, (work->ld + 1) * type->bytes, 0, half / 4,
                                            (size_t) step->rows, work->board->stream));
}

/* Loads the tile of c unless the factor is 0: it may hold no numbers then. */
static cublasStatus_t load_c(hws_xt_work_t *work, const step_t *step, const hws_xt_number_t *factor) {
    const hws_xt_product_t *product = work->product;
    cublasOperation_t op;
    return hws_xt_equals(product->type, factor, 0)
        ? CUBLAS_STATUS_SUCCESS
        : hws_xt_load(work, &product->c, HWS_XT_C, step->row, step->column, &op);
}

static cublasStatus_t compute_tile(hws_xt_work_t *work, size_t row, size_t column) {
    const hws_xt_product_t *product = work->product;
    hws_xt_number_t one = hws_xt_real(product->type, 1);
    const hws_xt_number_t *beta = &product->beta;
    size_t along = product->side == CUBLAS_SIDE_LEFT ? row : column;
    size_t inner = hws_xt_tiles(product, product->left.columns);
    size_t first = has_lines(product) ? along : 0; /* trmm writes c, so it comes before what adds to c */
    step_t step = step_of(work, row, column, 0);
    HWS_XT_OK(load_c(work, &step, beta));
    for (size_t i = 0; i < inner; i++) {
        size_t at = (first + i) % inner;
        if (has_term(product, along, at)) {
            step = step_of(work, row, column, at);
            HWS_XT_OK(add(work, &step, beta));
            beta = &one;
        }
    }
    if (inner == 0) {
        HWS_XT_OK(scale(work, &step));
    }
    bool triangle = is_rank(product) && row == column;
    if (triangle && product->hermitian) {
        HWS_XT_OK(make_real(work, &step));
    }
    return hws_xt_store(work, row, column, triangle);
}

/* op(A) X = alpha B: the known tiles of X leave B, then the tile of the diagonal is solved. The same from the right. */
static cublasStatus_t solve_tile(hws_xt_work_t *work, size_t row, size_t column) {
    const hws_xt_product_t *product = work->product;
    hws_xt_number_t one = hws_xt_real(product->type, 1), minus = hws_xt_real(product->type, -1);
    const hws_xt_number_t *factor = &product->alpha;
    bool is_left = product->side == CUBLAS_SIDE_LEFT;
    size_t along = is_left ? row : column, inner = hws_xt_tiles(product, product->left.columns);
    step_t step = step_of(work, row, column, along);
    HWS_XT_OK(load_c(work, &step, factor));
    for (size_t at = 0; at < inner; at++) {
        if (at != along && has_term(product, along, at)) {
            step = step_of(work, row, column, at);
            HWS_XT_OK(multiply(work, &product->left, &product->right, &step, &minus, factor));
            factor = &one;
        }
    }
    cublasOperation_t op;
    const hws_xt_operand_t *special = is_left ? &product->left : &product->right;
    HWS_XT_OK(hws_xt_load(work, special, HWS_XT_LEFT, along, along, &op));
    int ld = (int) work->ld;
    HWS_XT_OK(product->type->trsm(work->board->blas, product->side, product->uplo, product->trans, product->diag,
                                  step.rows, step.columns, factor, tile(work, HWS_XT_LEFT), ld, tile(work, HWS_XT_C),
                                  ld));
    return hws_xt_store(work, row, column, false);
}

/* A line in the order in which trsm gets its results, or in which trmm needs a tile of B no more. */
static cublasStatus_t compute_line(hws_xt_work_t *work, size_t line) {
    const hws_xt_product_t *product = work->product;
    bool is_left = product->side == CUBLAS_SIDE_LEFT, solves = product->routine == HWS_XT_SOLVE;
    size_t tiles = hws_xt_tiles(product, is_left ? product->c.rows : product->c.columns);
    bool forward = (is_upper(product) == is_left) != solves;
    for (size_t i = 0; i < tiles; i++) {
        size_t at = forward ? i : tiles - 1 - i, row = is_left ? at : line, column = is_left ? line : at;
        HWS_XT_OK(solves ? solve_tile(work, row, column) : compute_tile(work, row, column));
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* Whether c has the tile: of a triangle, only one half. */
static bool has_tile(const hws_xt_product_t *product, size_t row, size_t column) {
    return !is_rank(product) || row == column || (product->uplo == CUBLAS_FILL_MODE_UPPER) == (row < column);
}

static cublasStatus_t compute_tiles(hws_xt_work_t *work) {
    const hws_xt_product_t *product = work->product;
    size_t rows = hws_xt_tiles(product, product->c.rows), columns = hws_xt_tiles(product, product->c.columns);
    if (has_lines(product)) {
        size_t lines = product->side == CUBLAS_SIDE_LEFT ? columns : rows;
        for (size_t line = work->index; line < lines; line += work->count) {
            HWS_XT_OK(compute_line(work, line));
        }
        return CUBLAS_STATUS_SUCCESS;
    }
    size_t dealt = 0;
    for (size_t i = 0; i < rows * columns; i++) {
        if (has_tile(product, i % rows, i / rows) && dealt++ % work->count == work->index) {
            HWS_XT_OK(compute_tile(work, i % rows, i / rows));
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Allocates the tiles, computes, and waits for the end. The board's context is current. */
static cublasStatus_t compute_with_memory(hws_xt_work_t *work) {
    const hws_xt_product_t *product = work->product;
    size_t most = larger(larger(product->c.rows, product->c.columns), product->left.columns), bytes;
    work->ld = most < product->block ? most : product->block;
    bool overflows = __builtin_mul_overflow(work->ld * work->ld, product->type->bytes, &bytes)
        || bytes > SIZE_MAX / 4 - 255; /* a block dimension has 31 bits, so its square cannot overflow */
    HWS_NEED(!overflows, CUBLAS_STATUS_ALLOC_FAILED);
    bytes = (bytes + 255) / 256 * 256; /* the alignment of allocations, which cuBLAS prefers */
    HWS_XT_OK(hws_xt_status(cuMemAlloc_v2(&work->tile[0], 3 * bytes)));
    work->tile[1] = work->tile[0] + bytes;
    work->tile[2] = work->tile[1] + bytes;
    cublasStatus_t status = compute_tiles(work);
    cublasStatus_t end = hws_xt_status(cuStreamSynchronize(work->board->stream));
    cuMemFree_v2(work->tile[0]);
    free(work->staging);
    return status != CUBLAS_STATUS_SUCCESS ? status : end;
}

static void *run(void *argument) {
    hws_xt_work_t *work = argument;
    CUcontext popped;
    work->status = hws_xt_status(cuCtxPushCurrent_v2(work->board->context));
    if (work->status == CUBLAS_STATUS_SUCCESS) {
        work->status = compute_with_memory(work);
        cuCtxPopCurrent_v2(&popped);
    }
    return NULL;
}

/* Starts a thread that the program's signals do not interrupt. Returns whether it runs. */
static bool start(pthread_t *thread, hws_xt_work_t *work) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, run, work) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* A thread for each board but the first: a copy of pageable memory keeps its caller. */
static cublasStatus_t run_all(hws_xt_work_t *works, pthread_t *threads, size_t count) {
    size_t started = 1;
    while (started < count && start(&threads[started], &works[started])) {
        started++;
    }
    run(&works[0]);
    for (size_t i = 1; i < count; i++) {
        if (i < started) {
            pthread_join(threads[i], NULL);
        } else {
            run(&works[i]);
        }
    }
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; i++) {
        status = works[i].status;
    }
    return status;
}

cublasStatus_t hws_xt_compute(cublasXtHandle_t handle, const hws_xt_product_t *product) {
    size_t rows = hws_xt_tiles(product, product->c.rows), columns = hws_xt_tiles(product, product->c.columns);
    size_t boards = (size_t) handle->boards, lines = product->side == CUBLAS_SIDE_LEFT ? columns : rows;
    size_t pieces = has_lines(product) ? lines : rows * columns;
    size_t count = boards < pieces ? boards : pieces;
    HWS_NEED(count > 0, CUBLAS_STATUS_SUCCESS);
    hws_xt_work_t *works = calloc(count, sizeof *works);
    pthread_t *threads = calloc(count, sizeof *threads);
    cublasStatus_t status = CUBLAS_STATUS_ALLOC_FAILED;
    if (works != NULL && threads != NULL) {
        for (size_t i = 0; i < count; i++) {
            works[i] = (hws_xt_work_t) {.product = product, .board = &handle->board[i], .index = i, .count = count};
        }
        status = run_all(works, threads, count);
    }
    free(works);
    free(threads);
    return status;
}
