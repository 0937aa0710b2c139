#include "hws_nvml.h"

#include <stdio.h>
#include <string.h>

#define DISPLAY_CONTROLLER 0x03 /* PCI base class */
#define CONTROLLER_3D 0x02      /* its subclass of GPUs without outputs */

/* nvmlPciInfo_t of NVML 1 ended behind pciDeviceId; NVML 2.285 appended pciSubSystemId and reserved words. */
#define V1_BYTES offsetof(nvmlPciInfo_t, pciSubSystemId)
#define V2_BYTES offsetof(nvmlPciInfo_t, busId)

/* Fills in the first `bytes` of the structure: an older program has no room for more. */
static nvmlReturn_t describe(nvmlDevice_t device, size_t bytes, nvmlPciInfo_t *pci) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(pci != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    if (gpu.domain < 0) {
        return NVML_ERROR_UNKNOWN;
    }
    long long id = gpu.traits[HWS_TRAIT_PCI_DEVICE_ID], subsystem = gpu.traits[HWS_TRAIT_PCI_SUBSYSTEM_ID];
    nvmlPciInfo_t all = {.domain = (unsigned) gpu.domain,
                         .bus = (unsigned) gpu.bus,
                         .device = (unsigned) gpu.device,
                         .pciDeviceId = id < 0 ? 0 : (unsigned) id,
                         .pciSubSystemId = subsystem < 0 ? 0 : (unsigned) subsystem};
    snprintf(all.busIdLegacy, sizeof all.busIdLegacy, "%04X:%02X:%02X.0", all.domain & 0xffff, all.bus, all.device);
    snprintf(all.busId, sizeof all.busId, "%08X:%02X:%02X.0", all.domain, all.bus, all.device);
    memcpy(pci, &all, bytes);
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    return describe(device, V1_BYTES, pci);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    return describe(device, V2_BYTES, pci);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    return describe(device, sizeof *pci, pci);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci) {
    nvmlPciInfo_t all;
    HWS_REQUIRE(pci != NULL);
    if (pci->version != nvmlPciInfoExt_v1) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    HWS_TRY(nvmlDeviceGetPciInfo_v3(device, &all));
    *pci = (nvmlPciInfoExt_t) {.version = nvmlPciInfoExt_v1,
                               .domain = all.domain,
                               .bus = all.bus,
                               .device = all.device,
                               .pciDeviceId = all.pciDeviceId,
                               .pciSubSystemId = all.pciSubSystemId,
                               .baseClass = DISPLAY_CONTROLLER,
                               .subClass = CONTROLLER_3D};
    memcpy(pci->busId, all.busId, sizeof pci->busId);
    return NVML_SUCCESS;
}

/* A property of the link; an older broker does not tell it. */
static nvmlReturn_t link(nvmlDevice_t device, hws_trait_t trait, unsigned *value_p) {
    hws_nvml_gpu_t gpu;
    HWS_REQUIRE(value_p != NULL);
    HWS_TRY(hws_nvml_gpu(device, false, &gpu));
    if (gpu.traits[trait] < 0) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *value_p = (unsigned) gpu.traits[trait];
    return NVML_SUCCESS;
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *maxLinkGen) {
    return link(device, HWS_TRAIT_PCIE_GENERATION, maxLinkGen);
}

/* A GPU at work has its link at full speed. When it rests is the neighbours' affair as well. */
HWS_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *currLinkGen) {
    return link(device, HWS_TRAIT_PCIE_GENERATION, currLinkGen);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *maxLinkGenDevice) {
    return link(device, HWS_TRAIT_GPU_PCIE_GENERATION, maxLinkGenDevice);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *maxLinkWidth) {
    return link(device, HWS_TRAIT_MAX_PCIE_WIDTH, maxLinkWidth);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *currLinkWidth) {
    return link(device, HWS_TRAIT_PCIE_WIDTH, currLinkWidth);
}

/* The numbers NVML_PCIE_LINK_MAX_SPEED_* are those of the generations. */
HWS_EXPORT nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned int *maxSpeed) {
    return link(device, HWS_TRAIT_PCIE_GENERATION, maxSpeed);
}

HWS_EXPORT nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int *pcieSpeed) {
    static const unsigned speeds[] = {0, 2500, 5000, 8000, 16000, 32000, 64000}; /* Mbit/s of a lane, by generation */
    unsigned generation;
    HWS_REQUIRE(pcieSpeed != NULL);
    HWS_TRY(link(device, HWS_TRAIT_PCIE_GENERATION, &generation));
    if (generation == 0 || generation >= sizeof speeds / sizeof *speeds) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *pcieSpeed = speeds[generation];
    return NVML_SUCCESS;
}
