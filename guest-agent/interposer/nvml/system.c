#include "hws_nvml.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DRIVER_VERSION "580"      /* of the described API, where the broker has no driver: the software GPU */
#define CUDA_DRIVER_VERSION 13000 /* libcuda.so.1 in the guest answers cuDriverGetVersion with the described version */

HWS_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
    unsigned count;
    HWS_REQUIRE(version != NULL);
    HWS_TRY(hws_nvml_vgpu(&count, driver));
    return hws_nvml_text(driver[0] == '\0' ? DRIVER_VERSION : driver, version, length);
}

HWS_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    HWS_REQUIRE(version != NULL);
    char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE], text[sizeof driver + 8];
    unsigned count;
    HWS_TRY(hws_nvml_vgpu(&count, driver));
    /* NVML's version is CUDA's major version and the driver's. */
    snprintf(text, sizeof text, "%d.%s", NVML_API_VERSION, driver[0] == '\0' ? DRIVER_VERSION : driver);
    return hws_nvml_text(text, version, length);
}

HWS_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *cudaDriverVersion) {
    HWS_REQUIRE(cudaDriverVersion != NULL);
    *cudaDriverVersion = CUDA_DRIVER_VERSION;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion) {
    return nvmlSystemGetCudaDriverVersion(cudaDriverVersion);
}

HWS_EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length) {
    char path[64], text[4096];
    HWS_REQUIRE(name != NULL && length > 0);
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NVML_ERROR_NOT_FOUND;
    }
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    if (bytes <= 0) {
        return NVML_ERROR_NOT_FOUND; /* it has ended, or belongs to the kernel */
    }
    text[bytes] = '\0'; /* ends the first argument at the latest */
    /* As NVML: a name that does not fit is shortened. */
    snprintf(name, length, "%s", text);
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlUnitGetCount(unsigned int *unitCount) {
    HWS_REQUIRE(unitCount != NULL);
    *unitCount = 0;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *deviceCount) {
    HWS_REQUIRE(deviceCount != NULL);
    *deviceCount = 0;
    return NVML_SUCCESS;
}
