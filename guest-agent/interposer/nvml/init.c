#include "hws_nvml.h"

HWS_EXPORT nvmlReturn_t nvmlInit(void) {
    return hws_nvml_start();
}

HWS_EXPORT nvmlReturn_t nvmlInit_v2(void) {
    return hws_nvml_start();
}

HWS_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void) flags; /* NVML_INIT_FLAG_NO_GPUS, NO_ATTACH: a vGPU without GPUs is no error, and nothing is attached */
    return hws_nvml_start();
}

HWS_EXPORT nvmlReturn_t nvmlShutdown(void) {
    return hws_nvml_stop();
}

HWS_EXPORT const char *nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
#define HWS_RESULT(name, value, text)                                                                                  \
    case name:                                                                                                         \
        return text;
#include "hws_nvml_results.inc"
#undef HWS_RESULT
    }
    return "Unknown Error";
}
