#include "hws_nvml.h"

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    nvmlMemory_v2_t newer = {.version = nvmlMemory_v2};
    HWS_REQUIRE(memory != NULL);
    HWS_TRY(nvmlDeviceGetMemoryInfo_v2(device, &newer));
    /* This version counts what is reserved as used. */
    *memory = (nvmlMemory_t) {.total = newer.total, .free = newer.free, .used = newer.used + newer.reserved};
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(memory != NULL);
    if (memory->version != nvmlMemory_v2) {
        return NVML_ERROR_FUNCTION_NOT_FOUND; /* as driver 580 */
    }
    HWS_TRY(hws_nvml_gpu(device, true, &gpu));
    if (gpu.total_bytes < 0 || gpu.used_bytes < 0) {
        return NVML_ERROR_UNKNOWN;
    }
    long long reserved = gpu.traits[HWS_TRAIT_RESERVED_BYTES];
    unsigned long long total = (unsigned long long) gpu.total_bytes, used = (unsigned long long) gpu.used_bytes;
    used = used > total ? total : used; /* a quota can shrink below what its sessions hold */
    *memory = (nvmlMemory_v2_t) {.version = nvmlMemory_v2,
                                 .reserved = reserved < 0 ? 0 : (unsigned long long) reserved,
                                 .free = total - used,
                                 .used = used};
    memory->total = total + memory->reserved;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(utilization != NULL);
    HWS_TRY(hws_nvml_gpu(device, true, &gpu));
    if (gpu.utilization < 0) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    long long memory = gpu.sensors[HWS_SENSOR_MEMORY_UTILIZATION];
    /* The use of the memory's bandwidth is known of a whole GPU only. */
    *utilization =
        (nvmlUtilization_t) {.gpu = (unsigned) gpu.utilization, .memory = memory < 0 ? 0 : (unsigned) memory};
    return NVML_SUCCESS;
}

static nvmlReturn_t read_video(nvmlDevice_t device, unsigned *utilization_p, unsigned *period_us_p) {
    HWS_REQUIRE(utilization_p != NULL && period_us_p != NULL);
    HWS_TRY(hws_nvml_answer(device, 0, utilization_p));
    *period_us_p = 0; /* nothing is sampled */
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *utilization,
                                                        unsigned int *samplingPeriodUs) {
    return read_video(device, utilization, samplingPeriodUs);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *utilization,
                                                        unsigned int *samplingPeriodUs) {
    return read_video(device, utilization, samplingPeriodUs);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int *utilization,
                                                    unsigned int *samplingPeriodUs) {
    return read_video(device, utilization, samplingPeriodUs);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int *utilization,
                                                    unsigned int *samplingPeriodUs) {
    return read_video(device, utilization, samplingPeriodUs);
}
