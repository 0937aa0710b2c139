#include "hws_nvml.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static nvmlReturn_t count_devices(unsigned *count_p) {
    char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
    return hws_nvml_vgpu(count_p, driver);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount) {
    HWS_REQUIRE(deviceCount != NULL);
    return count_devices(deviceCount);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *deviceCount) {
    return nvmlDeviceGetCount_v2(deviceCount);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    unsigned count;
    HWS_REQUIRE(device != NULL);
    HWS_TRY(count_devices(&count));
    if (index >= count) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *device = hws_nvml_handle(index);
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
    HWS_REQUIRE(serial != NULL && device != NULL);
    return NVML_ERROR_NOT_FOUND;
}

/* Finds the GPU that `matches` accepts. */
static nvmlReturn_t find(bool (*matches)(const hws_nvml_gpu_t *, const void *), const void *wanted,
                         nvmlDevice_t *device_p) {
    unsigned count;
    hws_nvml_gpu_t gpu;
    HWS_TRY(count_devices(&count));
    for (unsigned i = 0; i < count; i++) {
        HWS_TRY(hws_nvml_gpu(hws_nvml_handle(i), false, &gpu));
        if (matches(&gpu, wanted)) {
            *device_p = hws_nvml_handle(i);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

static bool has_uuid(const hws_nvml_gpu_t *gpu, const void *uuid) {
    return strcasecmp(gpu->uuid, uuid) == 0;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    HWS_REQUIRE(uuid != NULL && device != NULL);
    return find(has_uuid, uuid, device);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device) {
    HWS_REQUIRE(uuid != NULL && device != NULL);
    if (uuid->version != nvmlUUID_v1) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    char text[sizeof uuid->value.str + 1] = "GPU-";
    if (uuid->type == NVML_UUID_TYPE_ASCII) {
        memcpy(text, uuid->value.str, sizeof uuid->value.str); /* may lack its NUL */
    } else if (uuid->type == NVML_UUID_TYPE_BINARY) {
        size_t length = 4;
        for (size_t i = 0; i < sizeof uuid->value.bytes; i++) {
            bool begins_part = i == 4 || i == 6 || i == 8 || i == 10;
            length += (size_t) snprintf(text + length, sizeof text - length, begins_part ? "-%02x" : "%02x",
                                        uuid->value.bytes[i]);
        }
    } else {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return find(has_uuid, text, device);
}

typedef struct address {
    unsigned domain, bus, device;
} address_t;

static bool has_address(const hws_nvml_gpu_t *gpu, const void *wanted) {
    const address_t *address = wanted;
    return gpu->domain == address->domain && gpu->bus == address->bus && gpu->device == address->device;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device) {
    address_t address = {0};
    HWS_REQUIRE(pciBusId != NULL && device != NULL);
    /* domain:bus:device.function, or without the domain */
    if (sscanf(pciBusId, "%x:%x:%x", &address.domain, &address.bus, &address.device) != 3) {
        address.domain = 0;
        if (sscanf(pciBusId, "%x:%x", &address.bus, &address.device) != 2) {
            return NVML_ERROR_INVALID_ARGUMENT;
        }
    }
    return find(has_address, &address, device);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pciBusId, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByPciBusId_v2(pciBusId, device);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(name != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    return hws_nvml_text(gpu.name, name, length);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *type) {
    static const struct {
        const char *part;
        nvmlBrandType_t brand;
    } brands[] = {{"GeForce", NVML_BRAND_GEFORCE},       {"TITAN", NVML_BRAND_TITAN},
                  {"Quadro RTX", NVML_BRAND_QUADRO_RTX}, {"Quadro", NVML_BRAND_QUADRO},
                  {"NVIDIA RTX", NVML_BRAND_NVIDIA_RTX}, {"Tesla", NVML_BRAND_TESLA},
                  {"NVIDIA", NVML_BRAND_NVIDIA}};
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(type != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    *type = NVML_BRAND_UNKNOWN;
    for (size_t i = 0; i < sizeof brands / sizeof *brands && *type == NVML_BRAND_UNKNOWN; i++) {
        *type = strstr(gpu.name, brands[i].part) != NULL ? brands[i].brand : NVML_BRAND_UNKNOWN;
    }
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(uuid != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    return hws_nvml_text(gpu.uuid, uuid, length);
}

nvmlReturn_t hws_nvml_answer(nvmlDevice_t device, unsigned value, unsigned *value_p) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(value_p != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    *value_p = value;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(index != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    *index = gpu.index;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minorNumber) {
    return nvmlDeviceGetIndex(device, minorNumber);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int *multiGpuBool) {
    return hws_nvml_answer(device, 0, multiGpuBool);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device1, nvmlDevice_t device2, int *onSameBoard) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(onSameBoard != NULL);
    HWS_TRY(hws_nvml_gpu(device1, false, &gpu));
    HWS_TRY(hws_nvml_gpu(device2, false, &gpu));
    *onSameBoard = device1 == device2;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(major != NULL && minor != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    if (gpu.major == 0) {
        return NVML_ERROR_UNKNOWN;
    }
    *major = gpu.major;
    *minor = gpu.minor;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *arch) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(arch != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    switch (gpu.major * 10 + gpu.minor) {
        case 70:
        case 72:
            *arch = NVML_DEVICE_ARCH_VOLTA;
            break;
        case 75:
            *arch = NVML_DEVICE_ARCH_TURING;
            break;
        case 80:
        case 86:
        case 87:
            *arch = NVML_DEVICE_ARCH_AMPERE;
            break;
        case 89:
            *arch = NVML_DEVICE_ARCH_ADA;
            break;
        default:
            *arch = gpu.major == 9                                      ? NVML_DEVICE_ARCH_HOPPER
                : gpu.major == 10 || gpu.major == 11 || gpu.major == 12 ? NVML_DEVICE_ARCH_BLACKWELL
                                                                        : NVML_DEVICE_ARCH_UNKNOWN;
    }
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode) {
    return hws_nvml_answer(device, NVML_COMPUTEMODE_DEFAULT, (unsigned *) mode);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
    return hws_nvml_answer(device, NVML_FEATURE_ENABLED, (unsigned *) mode);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t *display) {
    return hws_nvml_answer(device, NVML_FEATURE_DISABLED, (unsigned *) display);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t *isActive) {
    return hws_nvml_answer(device, NVML_FEATURE_DISABLED, (unsigned *) isActive);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device,
                                                        nvmlGpuVirtualizationMode_t *pVirtualMode) {
    return hws_nvml_answer(device, NVML_GPU_VIRTUALIZATION_MODE_NONE, (unsigned *) pVirtualMode);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *isMigDevice) {
    return hws_nvml_answer(device, 0, isMigDevice);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    return hws_nvml_answer(device, 0, count);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current,
                                             nvmlEnableState_t *pending) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(current != NULL && pending != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    if (gpu.traits[HWS_TRAIT_ECC_MODE] < 0 || gpu.traits[HWS_TRAIT_PENDING_ECC_MODE] < 0) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *current = (nvmlEnableState_t) gpu.traits[HWS_TRAIT_ECC_MODE];
    *pending = (nvmlEnableState_t) gpu.traits[HWS_TRAIT_PENDING_ECC_MODE];
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
    return hws_nvml_answer(device, NVML_FEATURE_DISABLED, (unsigned *) mode);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *boardId) {
    nvmlPciInfo_t pci;
    HWS_REQUIRE(boardId != NULL);
    HWS_TRY(nvmlDeviceGetPciInfo_v3(device, &pci));
    *boardId = pci.bus << 8 | pci.device;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2,
                                                            nvmlGpuTopologyLevel_t *pathInfo) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(pathInfo != NULL);
    HWS_TRY(hws_nvml_gpu(device1, false, &gpu));
    HWS_TRY(hws_nvml_gpu(device2, false, &gpu));
    *pathInfo = device1 == device2 ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
                                               nvmlGpuP2PCapsIndex_t p2pIndex, nvmlGpuP2PStatus_t *p2pStatus) {
    /* The digit of a capability, or -1. The guest sees no NVLink. */
    static const int digits[NVML_P2P_CAPS_INDEX_UNKNOWN] = {[NVML_P2P_CAPS_INDEX_READ] = 0,
                                                            [NVML_P2P_CAPS_INDEX_WRITE] = 1,
                                                            [NVML_P2P_CAPS_INDEX_NVLINK] = -1,
                                                            [NVML_P2P_CAPS_INDEX_ATOMICS] = 2,
                                                            [NVML_P2P_CAPS_INDEX_PROP] = 3};
    hws_nvml_gpu_t gpu, peer;
    HWS_REQUIRE(p2pStatus != NULL && p2pIndex < NVML_P2P_CAPS_INDEX_UNKNOWN);
    HWS_TRY(hws_nvml_gpu(device1, false, &gpu));
    HWS_TRY(hws_nvml_gpu(device2, false, &peer));
    *p2pStatus = NVML_P2P_STATUS_NOT_SUPPORTED; /* also, as NVML, within one GPU */
    if (device1 != device2 && digits[p2pIndex] >= 0) {
        size_t at = HWS_PEER_DIGITS * (size_t) peer.index + (size_t) digits[p2pIndex];
        char digit = at < strlen(gpu.peers) ? gpu.peers[at] : '-';
        bool known = digit >= '0' && digit <= '0' + NVML_P2P_STATUS_UNKNOWN;
        *p2pStatus = known ? (nvmlGpuP2PStatus_t) (digit - '0') : NVML_P2P_STATUS_UNKNOWN;
    }
    return NVML_SUCCESS;
}
