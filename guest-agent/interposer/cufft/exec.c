/* Executions: one record each, for which only the first caller of a kind waits. */
#include "hws_cufft.h"

#include "hws_cufft_calls.h"

/* Executes a plan by the function `name` of a cufftType, 0 for cufftXtExec. */
static cufftResult execute(const char *name, cufftHandle handle, int type, const void *in, void *out, int direction) {
    HWS_ENTER();
    const hws_fft_plan_t *plan = hws_fft_find(handle);
    if (__builtin_expect(plan == NULL || plan->id == 0, 0)) {
        return CUFFT_INVALID_PLAN;
    }
    HWS_REQUIRE(in != NULL && out != NULL);
    CUresult asked = hws_math_may_issue((CUstream) (uintptr_t) plan->stream);
    if (__builtin_expect(asked != CUDA_SUCCESS, 0)) {
        /* A captured call would have to become a node of the graph. */
        return asked == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ? hws_unsupported(name) : CUFFT_EXEC_FAILED;
    }
    const HwsFftExec call = {.plan = plan->id,
                             .stream = plan->stream,
                             .workArea = plan->work_area,
                             .type = type,
                             .direction = direction,
                             .isInPlace = in == out};
    return hws_call_hwsFftExec(&call, in, out);
}

HWS_EXPORT cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *idata, cufftComplex *odata, int direction) {
    return execute(__func__, plan, CUFFT_C2C, idata, odata, direction);
}

HWS_EXPORT cufftResult cufftExecR2C(cufftHandle plan, cufftReal *idata, cufftComplex *odata) {
    return execute(__func__, plan, CUFFT_R2C, idata, odata, CUFFT_FORWARD);
}

HWS_EXPORT cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *idata, cufftReal *odata) {
    return execute(__func__, plan, CUFFT_C2R, idata, odata, CUFFT_INVERSE);
}

HWS_EXPORT cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleComplex *odata,
                                    int direction) {
    return execute(__func__, plan, CUFFT_Z2Z, idata, odata, direction);
}

HWS_EXPORT cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *idata, cufftDoubleComplex *odata) {
    return execute(__func__, plan, CUFFT_D2Z, idata, odata, CUFFT_FORWARD);
}

HWS_EXPORT cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *idata, cufftDoubleReal *odata) {
    return execute(__func__, plan, CUFFT_Z2D, idata, odata, CUFFT_INVERSE);
}

HWS_EXPORT cufftResult cufftXtExec(cufftHandle plan, void *input, void *output, int direction) {
    return execute(__func__, plan, 0, input, output, direction);
}
