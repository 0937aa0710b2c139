/* Initialisation, the version, and profilers. */
#include "callback.h"
#include "capture.h"
#include "device.h"
#include "event.h"
#include "private_tables.h"

HWS_EXPORT CUresult cuInit(unsigned int Flags) {
    hws_private_tables_note_init(__builtin_return_address(0));
    HWS_REQUIRE(Flags == 0);
    static const hws_session_hooks_t hooks = {
        .load_devices = hws_devices_load, .run_callback = hws_hostcall_run, .event_reached = hws_event_reached};
    return hws_session_start(&hooks);
}

HWS_EXPORT CUresult cuDriverGetVersion(int *driverVersion) {
    hws_private_tables_note_version(__builtin_return_address(0));
    HWS_REQUIRE(driverVersion != NULL);
    *driverVersion = HWS_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuProfilerStart(void) {
    HWS_ENTER();
    HWS_UNSAFE();
    return CUDA_SUCCESS; /* no profiler is attached; CUDA's function then does nothing either */
}

HWS_EXPORT CUresult cuProfilerStop(void) {
    HWS_ENTER();
    HWS_UNSAFE();
    return CUDA_SUCCESS;
}
