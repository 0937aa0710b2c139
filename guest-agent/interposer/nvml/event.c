#include "hws_nvml.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct nvmlEventSet_st {
    char unused;
};

HWS_EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    HWS_REQUIRE(set != NULL);
    *set = malloc(sizeof **set);
    return *set == NULL ? NVML_ERROR_MEMORY : NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *eventTypes) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(eventTypes != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    *eventTypes = 0;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long eventTypes,
                                                 nvmlEventSet_t set) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(set != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    return eventTypes == 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

HWS_EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms) {
    HWS_REQUIRE(set != NULL && data != NULL);
    struct timespec left = {timeoutms / 1000, (long) (timeoutms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    return NVML_ERROR_TIMEOUT;
}

HWS_EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms) {
    return nvmlEventSetWait_v2(set, data, timeoutms);
}

HWS_EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    HWS_REQUIRE(set != NULL);
    free(set);
    return NVML_SUCCESS;
}
