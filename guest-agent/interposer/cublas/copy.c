/* Copies of vectors and matrices between host and device, as copies of the driver: one row for each element or column. */
#include "hws_cublas.h"

/* A copy of `rows` rows of `width` bytes; each row begins `from_pitch` and `to_pitch` bytes after the one before. */
typedef struct copy {
    const void *from;
    void *to;
    size_t width, rows, from_pitch, to_pitch;
} copy_t;

static CUresult copy_rows(const copy_t *copy, bool to_device, const CUstream *stream) {
    CUDA_MEMCPY2D box = {
        .srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcPitch = copy->from_pitch,
        .dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .dstPitch = copy->to_pitch,
        .WidthInBytes = copy->width,
        .Height = copy->rows,
    };
    if (to_device) {
        box.srcHost = copy->from;
        box.dstDevice = (uintptr_t) copy->to;
    } else {
        box.srcDevice = (uintptr_t) copy->from;
        box.dstHost = copy->to;
    }
    return stream == NULL ? cuMemcpy2DUnaligned_v2(&box) : cuMemcpy2DAsync_v2(&box, *stream);
}

static CUresult copy_bytes(const copy_t *copy, bool to_device, const CUstream *stream) {
    size_t bytes = copy->width * copy->rows; /* the rows adjoin, so the product is the size of real memory */
    if (to_device) {
        CUdeviceptr to = (uintptr_t) copy->to;
        return stream == NULL ? cuMemcpyHtoD_v2(to, copy->from, bytes)
                              : cuMemcpyHtoDAsync_v2(to, copy->from, bytes, *stream);
    }
    CUdeviceptr from = (uintptr_t) copy->from;
    return stream == NULL ? cuMemcpyDtoH_v2(copy->to, from, bytes)
                          : cuMemcpyDtoHAsync_v2(copy->to, from, bytes, *stream);
}

static cublasStatus_t make(const copy_t *copy, bool to_device, const CUstream *stream) {
    if (copy->width == 0 || copy->rows == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    if (!hws_math_need_context()) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    bool adjoin = copy->rows == 1 || (copy->from_pitch == copy->width && copy->to_pitch == copy->width);
    size_t bytes;
    if (adjoin && __builtin_mul_overflow(copy->width, copy->rows, &bytes)) {
        return CUBLAS_STATUS_MAPPING_ERROR;
    }
    CUresult result = adjoin ? copy_bytes(copy, to_device, stream) : copy_rows(copy, to_device, stream);
    return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

static cublasStatus_t copy_vector(bool to_device, int64_t n, int64_t element, const void *from, int64_t from_step,
                                  void *to, int64_t to_step, const CUstream *stream) {
    HWS_REQUIRE(element > 0 && from_step > 0 && to_step > 0);
    copy_t copy = {.from = from, .to = to, .width = (size_t) element, .rows = n < 0 ? 0 : (size_t) n};
    HWS_REQUIRE(!__builtin_mul_overflow(copy.width, (size_t) from_step, &copy.from_pitch));
    HWS_REQUIRE(!__builtin_mul_overflow(copy.width, (size_t) to_step, &copy.to_pitch));
    return make(&copy, to_device, stream);
}

static cublasStatus_t copy_matrix(bool to_device, int64_t rows, int64_t columns, int64_t element, const void *from,
                                  int64_t from_ld, void *to, int64_t to_ld, const CUstream *stream) {
    HWS_REQUIRE(rows >= 0 && columns >= 0 && element > 0 && from_ld > 0 && to_ld > 0);
    copy_t copy = {.from = from, .to = to, .rows = (size_t) columns};
    HWS_REQUIRE(!__builtin_mul_overflow((size_t) element, (size_t) rows, &copy.width));
    HWS_REQUIRE(!__builtin_mul_overflow((size_t) element, (size_t) from_ld, &copy.from_pitch));
    HWS_REQUIRE(!__builtin_mul_overflow((size_t) element, (size_t) to_ld, &copy.to_pitch));
    return make(&copy, to_device, stream);
}

/* The functions of one direction and one width of integers. */
#define HWS_COPIES(direction, width, integer, to_device, target)                                                       \
    HWS_EXPORT cublasStatus_t cublas##direction##Vector##width(integer n, integer elemSize, const void *x,             \
                                                               integer incx, void *target, integer incy) {             \
        return copy_vector(to_device, n, elemSize, x, incx, target, incy, NULL);                                       \
    }                                                                                                                  \
    HWS_EXPORT cublasStatus_t cublas##direction##VectorAsync##width(                                                   \
        integer n, integer elemSize, const void *x, integer incx, void *target, integer incy, CUstream stream) {       \
        return copy_vector(to_device, n, elemSize, x, incx, target, incy, &stream);                                    \
    }                                                                                                                  \
    HWS_EXPORT cublasStatus_t cublas##direction##Matrix##width(integer rows, integer cols, integer elemSize,           \
                                                               const void *A, integer lda, void *B, integer ldb) {     \
        return copy_matrix(to_device, rows, cols, elemSize, A, lda, B, ldb, NULL);                                     \
    }                                                                                                                  \
    HWS_EXPORT cublasStatus_t cublas##direction##MatrixAsync##width(integer rows, integer cols, integer elemSize,      \
                                                                    const void *A, integer lda, void *B, integer ldb,  \
                                                                    CUstream stream) {                                 \
        return copy_matrix(to_device, rows, cols, elemSize, A, lda, B, ldb, &stream);                                  \
    }

HWS_COPIES(Set, , int, true, devicePtr)
HWS_COPIES(Set, _64, int64_t, true, devicePtr)
HWS_COPIES(Get, , int, false, y)
HWS_COPIES(Get, _64, int64_t, false, y)
