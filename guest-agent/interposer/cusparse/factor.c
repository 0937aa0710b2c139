/* Zero pivots of factorizations and solutions. */
#include "hws_cusparse.h"

#include "hws_cuda_functions.h"
#include "hws_cusparse_calls.h"

/* The library returns the position together with CUSPARSE_STATUS_ZERO_PIVOT. */
static cusparseStatus_t pivot(cusparseHandle_t handle, hws_kind_t kind, const void *info, int *position) {
    HWS_ENTER();
    const HwsSparseHandle *state = HWS_DESCRIPTOR(HwsSparseHandle, handle);
    HWS_REQUIRE(info != NULL && position != NULL);
    int found = -1;
    HWS_TRY(hws_call_hwsSparseZeroPivot(state, (unsigned int) kind, (uintptr_t) info, &found));
    if (state->pointerMode == CUSPARSE_POINTER_MODE_DEVICE) {
        HWS_NEED(cuMemcpyHtoD_v2((CUdeviceptr) (uintptr_t) position, &found, sizeof found) == CUDA_SUCCESS,
                 CUSPARSE_STATUS_INTERNAL_ERROR);
    } else {
        *position = found;
    }
    return found >= 0 ? CUSPARSE_STATUS_ZERO_PIVOT : CUSPARSE_STATUS_SUCCESS;
}

#define ZERO_PIVOT(name, type, kind)                                                                                   \
    HWS_EXPORT cusparseStatus_t cusparseX##name##_zeroPivot(cusparseHandle_t handle, type info, int *position) {       \
        return pivot(handle, HWS_KIND_##kind, info, position);                                                         \
    }

ZERO_PIVOT(csric02, csric02Info_t, CSRIC02)
ZERO_PIVOT(csrilu02, csrilu02Info_t, CSRILU02)
ZERO_PIVOT(bsric02, bsric02Info_t, BSRIC02)
ZERO_PIVOT(bsrilu02, bsrilu02Info_t, BSRILU02)
ZERO_PIVOT(bsrsv2, bsrsv2Info_t, BSRSV2)
ZERO_PIVOT(bsrsm2, bsrsm2Info_t, BSRSM2)
