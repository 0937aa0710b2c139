#include "hws_nvml.h"

/* A fresh reading of a GPU whose memory is known. */
static nvmlReturn_t read_memory(nvmlDevice_t device, hws_nvml_gpu_t *gpu_p) {
    HWS_TRY(hws_nvml_gpu(device, true, gpu_p));
    if (gpu_p->total_bytes < 0 || gpu_p->used_bytes < 0) {
        return NVML_ERROR_UNKNOWN;
    }
    /* A quota can shrink below what its sessions hold. */
    gpu_p->used_bytes = gpu_p->used_bytes > gpu_p->total_bytes ? gpu_p->total_bytes : gpu_p->used_bytes;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(memory != NULL);
    HWS_TRY(read_memory(device, &gpu));
    *memory = (nvmlMemory_t) {.total = (unsigned long long) gpu.total_bytes,
                              .free = (unsigned long long) (gpu.total_bytes - gpu.used_bytes),
                              .used = (unsigned long long) gpu.used_bytes};
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    nvmlMemory_t plain;
    HWS_REQUIRE(memory != NULL);
    if (memory->version != nvmlMemory_v2) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    HWS_TRY(nvmlDeviceGetMemoryInfo(device, &plain));
    /* The quota is the tenant's alone: nothing of it is reserved for the driver. */
    *memory =
        (nvmlMemory_v2_t) {.version = nvmlMemory_v2, .total = plain.total, .free = plain.free, .used = plain.used};
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
