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
