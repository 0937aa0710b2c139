/* Handles of cublasXt: memory of the guest with the chosen devices and the settings. */
#include "hws_xt.h"

#include <stdlib.h>

#define HWS_XT_MAGIC 0x7878746c62756375
#define HWS_XT_BLOCK 2048
#define HWS_XT_MAX_BOARDS 1024 /* as of cuBLAS 13 on an H200 */

#define HWS_XT_HANDLE(handle) HWS_NEED(hws_xt_is_handle(handle), CUBLAS_STATUS_NOT_INITIALIZED)

bool hws_xt_is_handle(cublasXtHandle_t handle) {
    return handle != NULL && handle->magic == HWS_XT_MAGIC;
}

cublasStatus_t hws_xt_status(CUresult result) {
    switch (result) {
        case CUDA_SUCCESS:
            return CUBLAS_STATUS_SUCCESS;
        case CUDA_ERROR_OUT_OF_MEMORY:
            return CUBLAS_STATUS_ALLOC_FAILED;
        default:
            return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

HWS_EXPORT cublasStatus_t cublasXtCreate(cublasXtHandle_t *handle) {
    HWS_REQUIRE(handle != NULL);
    HWS_NEED(cuInit(0) == CUDA_SUCCESS, CUBLAS_STATUS_NOT_INITIALIZED);
    cublasXtHandle_t made = calloc(1, sizeof *made);
    HWS_NEED(made != NULL, CUBLAS_STATUS_ALLOC_FAILED);
    made->magic = HWS_XT_MAGIC;
    made->block = HWS_XT_BLOCK;
    made->pinning = CUBLASXT_PINNING_DISABLED;
    *handle = made;
    return CUBLAS_STATUS_SUCCESS;
}

/* Gives back what the board has, also after an opening that failed half way. */
static void close_board(const hws_xt_board_t *board) {
    if (board->context == NULL) {
        return;
    }
    if (cuCtxPushCurrent_v2(board->context) == CUDA_SUCCESS) {
        CUcontext popped;
        if (board->blas != NULL) {
            cublasDestroy_v2(board->blas);
        }
        if (board->stream != NULL) {
            cuStreamDestroy_v2(board->stream);
        }
        cuCtxPopCurrent_v2(&popped);
    }
    cuDevicePrimaryCtxRelease_v2(board->device);
}

static void close_boards(hws_xt_board_t *board, int count) {
    for (int i = 0; i < count; i++) {
        close_board(&board[i]);
    }
    free(board);
}

/* As cuBLAS 13 answers for a device that does not exist. Lack of memory and of the library stay what they are. */
static cublasStatus_t refusal(cublasStatus_t status) {
    return status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_NOT_SUPPORTED ? status
                                                                                         : CUBLAS_STATUS_INTERNAL_ERROR;
}

/*
 * The stream is one that work of the default stream precedes: the program may have filled its matrices there. The
 * board's context is current.
 */
static cublasStatus_t equip(hws_xt_board_t *board) {
    HWS_XT_OK(cublasCreate_v2(&board->blas));
    HWS_XT_OK(hws_xt_status(cuStreamCreate(&board->stream, CU_STREAM_DEFAULT)));
    return cublasSetStream_v2(board->blas, board->stream);
}

static cublasStatus_t open_board(hws_xt_board_t *board, int ordinal) {
    CUcontext popped;
    HWS_XT_OK(hws_xt_status(cuDeviceGet(&board->device, ordinal)));
    CUresult retained = cuDevicePrimaryCtxRetain(&board->context, board->device);
    if (retained != CUDA_SUCCESS) {
        board->context = NULL;
        return hws_xt_status(retained);
    }
    HWS_XT_OK(hws_xt_status(cuCtxPushCurrent_v2(board->context)));
    cublasStatus_t status = equip(board);
    cuCtxPopCurrent_v2(&popped);
    return status;
}

HWS_EXPORT cublasStatus_t cublasXtDestroy(cublasXtHandle_t handle) {
    HWS_XT_HANDLE(handle);
    close_boards(handle->board, handle->boards);
    handle->magic = 0;
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasXtDeviceSelect(cublasXtHandle_t handle, int nbDevices, int *deviceId) {
    HWS_XT_HANDLE(handle);
    HWS_REQUIRE(nbDevices > 0 && deviceId != NULL);
    hws_xt_board_t *board = calloc((size_t) nbDevices, sizeof *board);
    HWS_NEED(board != NULL, CUBLAS_STATUS_ALLOC_FAILED);
    for (int i = 0; i < nbDevices; i++) {
        cublasStatus_t status = open_board(&board[i], deviceId[i]);
        if (status != CUBLAS_STATUS_SUCCESS) {
            close_boards(board, i + 1);
            return refusal(status);
        }
    }
    close_boards(handle->board, handle->boards);
    handle->board = board;
    handle->boards = nbDevices;
    return CUBLAS_STATUS_SUCCESS;
}

/* The limit of the library, not what the machine has. */
HWS_EXPORT cublasStatus_t cublasXtMaxBoards(int *nbGpuBoards) {
    HWS_REQUIRE(nbGpuBoards != NULL);
    *nbGpuBoards = HWS_XT_MAX_BOARDS;
    return CUBLAS_STATUS_SUCCESS;
}

/* Each GPU is a board. */
HWS_EXPORT cublasStatus_t cublasXtGetNumBoards(int nbDevices, int *deviceId, int *nbBoards) {
    int devices;
    HWS_REQUIRE(nbDevices > 0 && deviceId != NULL && nbBoards != NULL);
    HWS_NEED(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&devices) == CUDA_SUCCESS, CUBLAS_STATUS_NOT_INITIALIZED);
    int different = 0;
    for (int i = 0; i < nbDevices; i++) {
        HWS_REQUIRE(deviceId[i] >= 0 && deviceId[i] < devices);
        int before = 0;
        while (before < i && deviceId[before] != deviceId[i]) {
            before++;
        }
        different += before == i;
    }
    *nbBoards = different;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasXtSetBlockDim(cublasXtHandle_t handle, int blockDim) {
    HWS_XT_HANDLE(handle);
    HWS_REQUIRE(blockDim > 0);
    handle->block = blockDim;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasXtGetBlockDim(cublasXtHandle_t handle, int *blockDim) {
    HWS_XT_HANDLE(handle);
    HWS_REQUIRE(blockDim != NULL);
    *blockDim = handle->block;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasXtSetPinningMemMode(cublasXtHandle_t handle, cublasXtPinnedMemMode_t mode) {
    HWS_XT_HANDLE(handle);
    HWS_REQUIRE((uint32_t) mode <= CUBLASXT_PINNING_ENABLED);
    handle->pinning = mode;
    return CUBLAS_STATUS_SUCCESS;
}

HWS_EXPORT cublasStatus_t cublasXtGetPinningMemMode(cublasXtHandle_t handle, cublasXtPinnedMemMode_t *mode) {
    HWS_XT_HANDLE(handle);
    HWS_REQUIRE(mode != NULL);
    *mode = handle->pinning;
    return CUBLAS_STATUS_SUCCESS;
}

/* Documented: only gemm can share its work with the CPU, and Hermitian routines have complex types only. */
static cublasStatus_t check_share(cublasXtBlasOp_t op, cublasXtOpType_t type) {
    HWS_REQUIRE((uint32_t) op < CUBLASXT_ROUTINE_MAX && (uint32_t) type <= CUBLASXT_DOUBLECOMPLEX);
    bool hermitian = op == CUBLASXT_HERK || op == CUBLASXT_HEMM || op == CUBLASXT_HER2K || op == CUBLASXT_HERKX;
    HWS_REQUIRE(!hermitian || type >= CUBLASXT_COMPLEX);
    return op == CUBLASXT_GEMM ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* The share of the CPU is a hint, and none is used: the GPU computes everything, so the result is the same. */
HWS_EXPORT cublasStatus_t cublasXtSetCpuRoutine(cublasXtHandle_t handle, cublasXtBlasOp_t blasOp,
                                                cublasXtOpType_t type_, void *blasFunctor) {
    HWS_XT_HANDLE(handle);
    (void) blasFunctor;
    return check_share(blasOp, type_);
}

HWS_EXPORT cublasStatus_t cublasXtSetCpuRatio(cublasXtHandle_t handle, cublasXtBlasOp_t blasOp, cublasXtOpType_t type_,
                                              float ratio) {
    HWS_XT_HANDLE(handle);
    (void) ratio;
    return check_share(blasOp, type_);
}
