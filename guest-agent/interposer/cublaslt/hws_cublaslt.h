/* Included by every file of libcublasLt.so: the entry of a call, and the content of descriptors. */
#ifndef HWS_CUBLASLT_H
#define HWS_CUBLASLT_H

#include "hws_cublaslt_types.h"
#include "hws_math.h"

/*
 * Content of descriptors. A program may place a descriptor in its own memory, whose size NVIDIA's header sets. Content
 * without pointers to the guest's memory has the form in which it travels.
 */
struct hws_lt_layout {
    HwsLtLayout content;
};
struct hws_lt_matmul {
    HwsLtMatmulDesc content;
    cublasLtEmulationDesc_t emulation;
    int32_t sync_rows, sync_cols; /* attributes of CUDA 12, which no library of CUDA 13 has */
    uint64_t sync_in, sync_out;
};
struct hws_lt_transform {
    HwsLtTransform content;
};
struct hws_lt_preference {
    HwsLtPreference content;
};
struct hws_lt_emulation {
    HwsLtEmulation content;
};

/* Bytes of a descriptor of CUDA 12.6 and newer (cublasLt.h, cublasLt...Opaque_t). */
#define HWS_LT_OPAQUE_BYTES 64
#define HWS_LT_MATMUL_OPAQUE_BYTES 256
#define HWS_LT_MATMUL_OLD_BYTES 184 /* of CUDA 12.0 */

_Static_assert(sizeof(struct hws_lt_layout) <= HWS_LT_OPAQUE_BYTES, "cublasLtMatrixLayoutOpaque_t");
_Static_assert(sizeof(struct hws_lt_matmul) <= HWS_LT_MATMUL_OLD_BYTES, "cublasLtMatmulDescOpaque_t");
_Static_assert(sizeof(struct hws_lt_transform) <= HWS_LT_OPAQUE_BYTES, "cublasLtMatrixTransformDescOpaque_t");
_Static_assert(sizeof(struct hws_lt_preference) <= HWS_LT_OPAQUE_BYTES, "cublasLtMatmulPreferenceOpaque_t");
_Static_assert(sizeof(struct hws_lt_emulation) <= HWS_LT_OPAQUE_BYTES, "cublasLtEmulationDescOpaque_t");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "cublasLtMatmulHeuristicResult_t");

/* First line of every exported function that sends a record. */
#define HWS_ENTER() HWS_NEED(hws_math_gate() == 0, CUBLAS_STATUS_NOT_INITIALIZED)

/* Returns CUBLAS_STATUS_INVALID_VALUE unless the condition holds. */
#define HWS_REQUIRE(condition) HWS_NEED(condition, CUBLAS_STATUS_INVALID_VALUE)

#define HWS_CHECK_HANDLE(kind, handle)                                                                                 \
    HWS_NEED(hws_math_service()->handle_data((kind), (uintptr_t) (handle)) != NULL, CUBLAS_STATUS_NOT_INITIALIZED)

/* The handle as it travels; 0 for an invalid one. A handle of cuBLAS is one of cublasLt. After HWS_ENTER(). */
uint64_t hws_lt_handle(cublasLtHandle_t handle);

/* The emulation descriptor of a matmul descriptor, or the content that says that there is none. */
const HwsLtEmulation *hws_lt_emulation(cublasLtMatmulDesc_t desc);

/*
 * CUBLAS_STATUS_SUCCESS when the content of these descriptors can travel, else what `function` returns: a descriptor is
 * missing, or needs what is not supported.
 */
cublasStatus_t hws_lt_check(const char *function, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                            cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d);

/* Entries that a program allows in the cache of heuristics; 0 for no cache. */
size_t hws_lt_cache_capacity(void);

/* Logs once that a function has no implementation. Returns CUBLAS_STATUS_NOT_SUPPORTED. */
cublasStatus_t hws_unsupported(const char *name);

#endif
