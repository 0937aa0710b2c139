/* Devices. cuInit takes a snapshot of their properties, so that queries need no round trip. */
#include "device.h"

#include "context.h"

#include "array.h"
#include "device_memory.h"
#include "managed.h"

#include "hws_cuda_calls.h"
#include "hws_driver.h"
#include "shm/hws_shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXTURE1D_WIDTH ((size_t) 1 << 30)

#define ATTRIBUTES ((int) (sizeof(((HwsDeviceInfo *) 0)->attributes) / sizeof(int)))

static hws_device_t devices[HWS_MAX_DEVICES];
static int device_count;

/* "GPU-" and the 8-4-4-4-12 digits, as nvidia-smi prints a UUID. */
static void format_uuid(const HwsDeviceInfo *info, char text[48]) {
    const unsigned char *u = (const unsigned char *) info->uuid;
    snprintf(text, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2],
             u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* The device that one entry of the list names; -1 for none, or when it names several. */
static int match_entry(const char *entry, const hws_device_t *all, int count) {
    char *end;
    long index = strtol(entry, &end, 10);
    if (end != entry) {
        return *end == '\0' && index >= 0 && index < count ? (int) index : -1;
    }
    int found = -1;
    size_t length = strlen(entry);
    for (int i = 0; i < count && length > 4; i++) {
        char uuid[48];
        format_uuid(&all[i].info, uuid);
        if (strncasecmp(entry, uuid, length) == 0) {
            if (found >= 0) {
                return -1;
            }
            found = i;
        }
    }
    return found;
}

int hws_devices_choose(const char *list, const hws_device_t *all, int count, int *chosen_p) {
    int chosen = 0;
    if (list == NULL) {
        for (; chosen < count; chosen++) {
            chosen_p[chosen] = chosen;
        }
        return chosen;
    }
    while (*list != '\0') {
        char entry[64];
        size_t length = strcspn(list, ",");
        const char *text = list + strspn(list, " \t");
        size_t bytes = text < list + length ? (size_t) (list + length - text) : 0;
        while (bytes > 0 && (text[bytes - 1] == ' ' || text[bytes - 1] == '\t')) {
            bytes--;
        }
        if (bytes == 0 || bytes >= sizeof entry) {
            break;
        }
        memcpy(entry, text, bytes);
        entry[bytes] = '\0';
        int device = match_entry(entry, all, count);
        if (device < 0) {
            break;
        }
        for (int i = 0; i < chosen; i++) {
            if (chosen_p[i] == device) {
                return 0;
            }
        }
        chosen_p[chosen++] = device;
        list += length + (list[length] == ',');
    }
    return chosen;
}

/* Clears attributes that do not hold in the guest, even if they hold on the worker's machine. */
static void restrict_attributes(HwsDeviceInfo *info) {
    static const CUdevice_attribute absent[] = {
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
        CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
        CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
        CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, /* cuMemCreate refuses them */
        CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
    };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        info->attributes[absent[i]] = 0;
    }
    info->attributes[CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES] =
        info->arenaBytes != 0 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
    info->attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID] = 0;       /* one node */
    info->attributes[CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1; /* default-kind copies work: hws_interval.h */
    info->attributes[CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] = 1;
}

CUresult hws_devices_load(uint32_t count) {
    static hws_device_t all[HWS_MAX_DEVICES];
    for (uint32_t i = 0; i < count; i++) {
        all[i].ordinal = (int) i;
        HWS_TRY(hws_call_hwsDeviceInfo((int) i, &all[i].info));
        all[i].info.name[sizeof all[i].info.name - 1] = '\0';
        restrict_attributes(&all[i].info);
    }
    int chosen[HWS_MAX_DEVICES] = {0};
    device_count = hws_devices_choose(getenv("CUDA_VISIBLE_DEVICES"), all, (int) count, chosen);
    for (int i = 0; i < device_count; i++) {
        devices[i] = all[chosen[i]];
        hws_device_memory_open(i, &devices[i]);
        /* The GPU's own answer does not count: pages travel between the guest and any GPU. */
        bool managed = hws_managed_is_possible(i);
        devices[i].info.attributes[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] = managed;
        devices[i].info.attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = managed;
        if (hws_shm_current() == NULL) { /* there the region serves */
            devices[i].info.attributes[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = managed;
        }
        /* Memory of such pools has one address on both sides, like mapped memory. */
        devices[i].info.attributes[CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED] =
            devices[i].info.attributes[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY];
        devices[i].info.attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED] =
            devices[i].info.attributes[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY];
    }
    return device_count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

int hws_device_count(void) {
    return device_count;
}

const hws_device_t *hws_device_get(CUdevice device) {
    return device >= 0 && device < device_count ? &devices[device] : NULL;
}

int hws_device_attribute(CUdevice device, CUdevice_attribute attribute) {
    const HwsDeviceInfo *info = &devices[device].info;
    int index = (int) attribute;
    return index > 0 && index < ATTRIBUTES && index < info->attributeCount ? info->attributes[index] : 0;
}

/* Sets `info` or leaves the calling function with CUDA_ERROR_INVALID_DEVICE. */
#define ENTER_DEVICE(device, info)                                                                                     \
    HWS_ENTER_LOCAL();                                                                                                 \
    const hws_device_t *found = hws_device_get(device);                                                                \
    if (found == NULL) {                                                                                               \
        return CUDA_ERROR_INVALID_DEVICE;                                                                              \
    }                                                                                                                  \
    const HwsDeviceInfo *info = &found->info

HWS_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(device != NULL);
    if (hws_device_get(ordinal) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = ordinal;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetCount(int *count) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(count != NULL);
    *count = device_count;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(name != NULL && len > 0);
    ENTER_DEVICE(dev, info);
    snprintf(name, (size_t) len, "%s", info->name);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(uuid != NULL);
    ENTER_DEVICE(dev, info);
    memcpy(uuid->bytes, info->uuid, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev) {
    return cuDeviceGetUuid(uuid, dev);
}

HWS_EXPORT CUresult cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(luid != NULL && deviceNodeMask != NULL);
    ENTER_DEVICE(dev, info);
    (void) info;
    return CUDA_ERROR_NOT_SUPPORTED; /* CUDA documents it for Windows only */
}

HWS_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(bytes != NULL);
    ENTER_DEVICE(dev, info);
    *bytes = (size_t) info->totalBytes;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pi != NULL && (int) attrib > 0 && attrib < CU_DEVICE_ATTRIBUTE_MAX);
    ENTER_DEVICE(dev, info);
    (void) info;
    *pi = hws_device_attribute(dev, attrib);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev) {
    ENTER_DEVICE(dev, info);
    HWS_REQUIRE(major != NULL && minor != NULL);
    *major = info->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    *minor = info->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev) {
    ENTER_DEVICE(dev, info);
    HWS_REQUIRE(prop != NULL);
    const int *a = info->attributes;
    *prop = (CUdevprop) {
        .maxThreadsPerBlock = a[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
        .maxThreadsDim = {a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X], a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y],
                          a[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z]},
        .maxGridSize = {a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X], a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y],
                        a[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z]},
        .sharedMemPerBlock = a[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK],
        .totalConstantMemory = a[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY],
        .SIMDWidth = a[CU_DEVICE_ATTRIBUTE_WARP_SIZE],
        .memPitch = a[CU_DEVICE_ATTRIBUTE_MAX_PITCH],
        .regsPerBlock = a[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK],
        .clockRate = a[CU_DEVICE_ATTRIBUTE_CLOCK_RATE],
        .textureAlign = a[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT],
    };
    return CUDA_SUCCESS;
}

#define PCI_BUS_ID_BYTES 13 /* 0000:00:00.0 and its end; CUDA documents that the buffer must hold them */

HWS_EXPORT CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pciBusId != NULL);
    ENTER_DEVICE(dev, info);
    HWS_REQUIRE(len >= PCI_BUS_ID_BYTES);
    snprintf(pciBusId, (size_t) len, "%04x:%02x:%02x.0", (unsigned) info->pciDomain, (unsigned) info->pciBus,
             (unsigned) info->pciDevice);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(dev != NULL && pciBusId != NULL);
    unsigned domain = 0, bus, device;
    /* CUDA documents [domain]:[bus]:[device].[function], [domain]:[bus]:[device] and [bus]:[device].[function]. */
    if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &device) != 3) {
        domain = 0;
        HWS_REQUIRE(sscanf(pciBusId, "%x:%x", &bus, &device) == 2);
    }
    for (int i = 0; i < device_count; i++) {
        const HwsDeviceInfo *info = &devices[i].info;
        if ((unsigned) info->pciDomain == domain && (unsigned) info->pciBus == bus
            && (unsigned) info->pciDevice == device) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

HWS_EXPORT CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev) {
    ENTER_DEVICE(dev, info);
    (void) info;
    (void) type;
    HWS_REQUIRE(pi != NULL);
    *pi = 0;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format,
                                                       unsigned numChannels, CUdevice dev) {
    HWS_ENTER_LOCAL();
    uint32_t channel = hws_array_channel_bytes(format);
    HWS_REQUIRE(maxWidthInElements != NULL && channel != 0
                && (numChannels == 1 || numChannels == 2 || numChannels == 4));
    ENTER_DEVICE(dev, info);
    /* The attribute counts elements of 16 bytes. Smaller elements allow more, up to the value of an H200. */
    size_t most = (size_t) info->attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH] * 16;
    size_t width = most / (channel * numChannels);
    *maxWidthInElements = width < MAX_TEXTURE1D_WIDTH ? width : MAX_TEXTURE1D_WIDTH;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                               CUflushGPUDirectRDMAWritesScope scope) {
    CUdevice device;
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX
                && (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER
                    || scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES));
    HWS_TRY(hws_context_device(&device));
    int options = hws_device_attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
    /* No device of a guest writes to the GPU's memory, so there is nothing to flush. */
    return (options & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST) != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}
