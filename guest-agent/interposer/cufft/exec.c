/* Executions: one record each, for which only the first caller of a kind waits. */
#include "hws_cufft.h"

#include "hws_cufft_calls.h"

/* Executes a plan by the function of a cufftType, 0 for cufftXtExec. */
static cufftResult execute(cufftHandle handle, int type, const void *in, void *out, int direction) {
    HWS_ENTER();
    const hws_fft_plan_t *plan = hws_fft_find(handle);
    if (__builtin_expect(plan == NULL || plan->id == 0, 0)) {
        return CUFFT_INVALID_PLAN;
    }
    HWS_REQUIRE(in != NULL && out != NULL);
    HWS_NEED(hws_math_may_issue((CUstream) (uintptr_t) plan->stream) == CUDA_SUCCESS, CUFFT_EXEC_FAILED);
    const HwsFftExec call = {.plan = plan->id,
                             .stream = plan->stream,
                             .workArea = plan->work_area,
                             .type = type,
                             .direction = direction,
                             .isInPlace = in == out};
    return hws_call_hwsFftExec(&call, in, out);
}

HWS_EXPORT cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *idata, cufftComplex *odata, int direction) {
    return execute(plan, CUFFT_C2C, idata, odata, direction);
}

HWS_EXPORT cufftResult cufftExecR2C(cufftHandle plan, cufftReal *idata, cufftComplex *odata) {
    return execute(plan, CUFFT_R2C, idata, odata, CUFFT_FORWARD);
}

HWS_EXPORT cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *idata, cufftReal *odata) {
    return execute(plan, CUFFT_C2R, idata, odata, CUFFT_INVERSE);
}

HWS_EXPORT cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleComplex *odata,
                                    int direction) {
    return execute(plan, CUFFT_Z2Z, idata, odata, direction);
}

HWS_EXPORT cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *idata, cufftDoubleComplex *odata) {
    return execute(plan, CUFFT_D2Z, idata, odata, CUFFT_FORWARD);
}

HWS_EXPORT cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleReal *odata) {
    return execute(plan, CUFFT_Z2D, idata, odata, CUFFT_INVERSE);
}

HWS_EXPORT cufftResult cufftXtExec(cufftHandle plan, void *input, void *output, int direction) {
    return execute(plan, 0, input, output, direction);
}
