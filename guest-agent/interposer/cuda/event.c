/* Making events and waiting for one; the rest of the events' functions is generated. */
#include "hws_driver.h"

#include "hws_cuda_calls.h"

#define KNOWN_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

HWS_EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(phEvent != NULL && (Flags & ~KNOWN_FLAGS) == 0);
    /* CUDA: an event for other processes must not measure time. */
    HWS_REQUIRE((Flags & CU_EVENT_INTERPROCESS) == 0 || (Flags & CU_EVENT_DISABLE_TIMING) != 0);
    uint64_t handle = hws_handle_new(HWS_KIND_EVENT);
    if (handle == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUevent event = (CUevent) (uintptr_t) handle;
    CUresult result = hws_call_cuEventCreate(event, Flags);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_EVENT, handle);
        return result;
    }
    *phEvent = event;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuEventSynchronize(CUevent hEvent) {
    HWS_ENTER();
    HWS_CHECK_HANDLE(HWS_KIND_EVENT, hEvent);
    return hws_call_cuEventSynchronize(hEvent);
}
