/* Waiting for an event; the rest of the events' functions is generated. */
#include "hws_driver.h"

#include "hws_cuda_calls.h"

HWS_EXPORT CUresult cuEventSynchronize(CUevent hEvent) {
    HWS_ENTER();
    HWS_CHECK_HANDLE(HWS_KIND_EVENT, hEvent);
    return hws_call_cuEventSynchronize(hEvent);
}
