#include "hws_nvml.h"

#define NO_INSTANCE 0xffffffffu /* of MIG */

/*
 * Reads the processes for a caller with room for *count_p. *count_p becomes their number.
 * NVML_ERROR_INSUFFICIENT_SIZE when the room is too small, and also when the caller has none and there are some.
 */
static nvmlReturn_t read_processes(nvmlDevice_t device, unsigned *count_p, const void *infos,
                                   hws_nvml_process_t processes[HWS_NVML_MAX_PROCESSES]) {
    HWS_REQUIRE(count_p != NULL && (infos != NULL || *count_p == 0));
    unsigned room = *count_p, found = 0;
    HWS_TRY(hws_nvml_processes(device, processes, HWS_NVML_MAX_PROCESSES, &found));
    *count_p = found;
    return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static unsigned long long bytes_of(const hws_nvml_process_t *process) {
    return process->used_bytes < 0 ? (unsigned long long) NVML_VALUE_NOT_AVAILABLE
                                   : (unsigned long long) process->used_bytes;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                                             nvmlProcessInfo_v1_t *infos) {
    hws_nvml_process_t processes[HWS_NVML_MAX_PROCESSES];
    HWS_TRY(read_processes(device, infoCount, infos, processes));
    for (unsigned i = 0; i < *infoCount; i++) {
        infos[i] = (nvmlProcessInfo_v1_t) {.pid = processes[i].pid, .usedGpuMemory = bytes_of(&processes[i])};
    }
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                                nvmlProcessInfo_v2_t *infos) {
    hws_nvml_process_t processes[HWS_NVML_MAX_PROCESSES];
    HWS_TRY(read_processes(device, infoCount, infos, processes));
    for (unsigned i = 0; i < *infoCount; i++) {
        infos[i] = (nvmlProcessInfo_v2_t) {.pid = processes[i].pid,
                                           .usedGpuMemory = bytes_of(&processes[i]),
                                           .gpuInstanceId = NO_INSTANCE,
                                           .computeInstanceId = NO_INSTANCE};
    }
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
                                                                nvmlProcessInfo_v2_t *infos) {
    return nvmlDeviceGetComputeRunningProcesses_v3(device, infoCount, infos);
}

/* The answer for a kind of processes that a vGPU does not have. */
static nvmlReturn_t read_none(nvmlDevice_t device, unsigned *count_p, const void *infos) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(count_p != NULL && (infos != NULL || *count_p == 0));
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    *count_p = 0;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                                              nvmlProcessInfo_v1_t *infos) {
    return read_none(device, infoCount, infos);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
                                                                 nvmlProcessInfo_v2_t *infos) {
    return read_none(device, infoCount, infos);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                                 nvmlProcessInfo_v2_t *infos) {
    return read_none(device, infoCount, infos);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                                                nvmlProcessInfo_v1_t *infos) {
    return read_none(device, infoCount, infos);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
                                                                   nvmlProcessInfo_v2_t *infos) {
    return read_none(device, infoCount, infos);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                                   nvmlProcessInfo_v2_t *infos) {
    return read_none(device, infoCount, infos);
}

/* mode: 0 compute, 1 graphics, 2 MPS. */
HWS_EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *plist) {
    hws_nvml_process_t processes[HWS_NVML_MAX_PROCESSES];
    HWS_REQUIRE(plist != NULL);
    if (plist->version != nvmlProcessDetailList_v1) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    HWS_REQUIRE(plist->mode <= 2);
    if (plist->mode != 0) {
        return read_none(device, &plist->numProcArrayEntries, plist->procArray);
    }
    HWS_TRY(read_processes(device, &plist->numProcArrayEntries, plist->procArray, processes));
    for (unsigned i = 0; i < plist->numProcArrayEntries; i++) {
        plist->procArray[i] = (nvmlProcessDetail_v1_t) {.pid = processes[i].pid,
                                                        .usedGpuMemory = bytes_of(&processes[i]),
                                                        .gpuInstanceId = NO_INSTANCE,
                                                        .computeInstanceId = NO_INSTANCE};
    }
    return NVML_SUCCESS;
}
