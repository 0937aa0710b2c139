/* The context of a thread that calls a math library. */
#include "hws_math.h"

bool hws_math_need_context(void) {
    CUcontext context = NULL;
    return cuInit(0) == CUDA_SUCCESS && cuCtxGetCurrent(&context) == CUDA_SUCCESS
        && (context != NULL
            || (cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS));
}
