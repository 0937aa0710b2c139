/* What a math library asks before it issues work. */
#include "hws_math.h"

CUresult hws_math_may_issue(CUstream stream) {
    CUresult asked = hws_math_service()->may_issue(stream);
    if (__builtin_expect(asked == CUDA_ERROR_INVALID_CONTEXT, 0) && hws_math_need_context()) {
        asked = hws_math_service()->may_issue(stream); /* a thread without a context, as natively */
    }
    if (__builtin_expect(asked == CUDA_SUCCESS, 1)) {
        hws_math_stream = (uintptr_t) stream;
    }
    return asked;
}

void hws_math_unsupported(const char *name) {
    const hws_service_t *service = hws_math_service();
    if (service != NULL) {
        service->unsupported(name);
    }
}
