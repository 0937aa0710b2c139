/* The properties of a GPU under nvidia-smi's names. */
#include "smi.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define MIB (1 << 20)

__attribute__((format(printf, 2, 3))) static bool put(char text_p[HWS_SMI_MAX_TEXT], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text_p, HWS_SMI_MAX_TEXT, format, arguments);
    va_end(arguments);
    return true;
}

/* A reader of a text that a function writes. */
#define TEXT_READER(name, call)                                                                                        \
    static bool name(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {                                             \
        (void) device;                                                                                                 \
        return (call) == NVML_SUCCESS;                                                                                 \
    }

/* A reader of a number of type `kind` that a function stores in `value`; further arguments print it. */
#define NUMBER_READER(name, kind, call, ...)                                                                           \
    static bool name(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {                                             \
        kind value;                                                                                                    \
        (void) device;                                                                                                 \
        return (call) == NVML_SUCCESS && put(text_p, __VA_ARGS__);                                                     \
    }

#define STATE(value) ((value) == NVML_FEATURE_ENABLED ? "Enabled" : "Disabled")
#define WATTS(function) NUMBER_READER(read_##function, unsigned, function(device, &value), "%.2f", value / 1000.0)
#define CLOCK(name, function, type)                                                                                    \
    NUMBER_READER(read_##name, unsigned, function(device, NVML_CLOCK_##type, &value), "%u", value)

TEXT_READER(read_driver, nvmlSystemGetDriverVersion(text_p, HWS_SMI_MAX_TEXT))
TEXT_READER(read_name, nvmlDeviceGetName(device, text_p, HWS_SMI_MAX_TEXT))
TEXT_READER(read_uuid, nvmlDeviceGetUUID(device, text_p, HWS_SMI_MAX_TEXT))
NUMBER_READER(read_count, unsigned, nvmlDeviceGetCount_v2(&value), "%u", value)
NUMBER_READER(read_index, unsigned, nvmlDeviceGetIndex(device, &value), "%u", value)
NUMBER_READER(read_bus_id, nvmlPciInfo_t, nvmlDeviceGetPciInfo_v3(device, &value), "%s", value.busId)
NUMBER_READER(read_domain, nvmlPciInfo_t, nvmlDeviceGetPciInfo_v3(device, &value), "0x%04X", value.domain)
NUMBER_READER(read_bus, nvmlPciInfo_t, nvmlDeviceGetPciInfo_v3(device, &value), "0x%02X", value.bus)
NUMBER_READER(read_device, nvmlPciInfo_t, nvmlDeviceGetPciInfo_v3(device, &value), "0x%02X", value.device)
NUMBER_READER(read_display_mode, nvmlEnableState_t, nvmlDeviceGetDisplayMode(device, &value), "%s", STATE(value))
NUMBER_READER(read_display_active, nvmlEnableState_t, nvmlDeviceGetDisplayActive(device, &value), "%s", STATE(value))
NUMBER_READER(read_persistence, nvmlEnableState_t, nvmlDeviceGetPersistenceMode(device, &value), "%s", STATE(value))
NUMBER_READER(read_compute_mode, nvmlComputeMode_t, nvmlDeviceGetComputeMode(device, &value), "%s",
              value == NVML_COMPUTEMODE_DEFAULT ? "Default" : "Prohibited")
NUMBER_READER(read_pstate, nvmlPstates_t, nvmlDeviceGetPerformanceState(device, &value), "P%d", (int) value)
NUMBER_READER(read_total, nvmlMemory_t, nvmlDeviceGetMemoryInfo(device, &value), "%llu", value.total / MIB)
NUMBER_READER(read_used, nvmlMemory_t, nvmlDeviceGetMemoryInfo(device, &value), "%llu", value.used / MIB)
NUMBER_READER(read_free, nvmlMemory_t, nvmlDeviceGetMemoryInfo(device, &value), "%llu", value.free / MIB)
NUMBER_READER(read_busy, nvmlUtilization_t, nvmlDeviceGetUtilizationRates(device, &value), "%u", value.gpu)
NUMBER_READER(read_memory_busy, nvmlUtilization_t, nvmlDeviceGetUtilizationRates(device, &value), "%u", value.memory)
NUMBER_READER(read_celsius, unsigned, nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &value), "%u", value)
WATTS(nvmlDeviceGetPowerUsage)
WATTS(nvmlDeviceGetPowerManagementLimit)
WATTS(nvmlDeviceGetEnforcedPowerLimit)
WATTS(nvmlDeviceGetPowerManagementDefaultLimit)
CLOCK(graphics, nvmlDeviceGetClockInfo, GRAPHICS)
CLOCK(sm, nvmlDeviceGetClockInfo, SM)
CLOCK(memory, nvmlDeviceGetClockInfo, MEM)
CLOCK(video, nvmlDeviceGetClockInfo, VIDEO)
CLOCK(max_graphics, nvmlDeviceGetMaxClockInfo, GRAPHICS)
CLOCK(max_sm, nvmlDeviceGetMaxClockInfo, SM)
CLOCK(max_memory, nvmlDeviceGetMaxClockInfo, MEM)
NUMBER_READER(read_reasons, unsigned long long, nvmlDeviceGetCurrentClocksEventReasons(device, &value), "0x%016llX",
              value)

static bool read_reserved(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    return nvmlDeviceGetMemoryInfo_v2(device, &memory) == NVML_SUCCESS && put(text_p, "%llu", memory.reserved / MIB);
}

static bool read_capability(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    int major, minor;
    return nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == NVML_SUCCESS
        && put(text_p, "%d.%d", major, minor);
}

static bool read_min_limit(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    unsigned least, most;
    return nvmlDeviceGetPowerManagementLimitConstraints(device, &least, &most) == NVML_SUCCESS
        && put(text_p, "%.2f", least / 1000.0);
}

static bool read_max_limit(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    unsigned least, most;
    return nvmlDeviceGetPowerManagementLimitConstraints(device, &least, &most) == NVML_SUCCESS
        && put(text_p, "%.2f", most / 1000.0);
}

static bool read_timestamp(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    (void) device;
    hws_smi_timestamp(text_p);
    return true;
}

static const hws_smi_field_t fields[] = {
    {"timestamp", NULL, "", "The time of the query.", read_timestamp},
    {"driver_version", NULL, "", "The driver beside the GPU.", read_driver},
    {"count", NULL, "", "The number of GPUs of the vGPU.", read_count},
    {"name", "gpu_name", "", "The GPU's name.", read_name},
    {"serial", "gpu_serial", "", "Not available to a vGPU.", NULL},
    {"uuid", "gpu_uuid", "", "The GPU's UUID.", read_uuid},
    {"index", NULL, "", "The index in the vGPU, from 0.", read_index},
    {"pci.bus_id", "gpu_bus_id", "", "The PCI address: domain:bus:device.function.", read_bus_id},
    {"pci.domain", NULL, "", "The PCI domain.", read_domain},
    {"pci.bus", NULL, "", "The PCI bus.", read_bus},
    {"pci.device", NULL, "", "The PCI device.", read_device},
    {"pci.device_id", NULL, "", "Not available to a vGPU.", NULL},
    {"pci.sub_device_id", NULL, "", "Not available to a vGPU.", NULL},
    {"pcie.link.gen.current", "pcie.link.gen.gpucurrent", "", "Not available to a vGPU.", NULL},
    {"pcie.link.gen.max", NULL, "", "Not available to a vGPU.", NULL},
    {"pcie.link.width.current", NULL, "", "Not available to a vGPU.", NULL},
    {"pcie.link.width.max", NULL, "", "Not available to a vGPU.", NULL},
    {"display_mode", NULL, "", "Disabled: a vGPU has no display.", read_display_mode},
    {"display_active", NULL, "", "Disabled: a vGPU has no display.", read_display_active},
    {"persistence_mode", NULL, "", "Enabled: the broker keeps the GPU open.", read_persistence},
    {"accounting.mode", NULL, "", "Not available to a vGPU.", NULL},
    {"vbios_version", NULL, "", "Not available to a vGPU.", NULL},
    {"fan.speed", NULL, "%", "Not available to a vGPU.", NULL},
    {"pstate", NULL, "", "The performance state; exclusive vGPUs only.", read_pstate},
    {"clocks_event_reasons.active", "clocks_throttle_reasons.active", "",
     "Bits of reasons for the clocks; exclusive vGPUs only.", read_reasons},
    {"memory.total", NULL, "MiB", "The vGPU's quota.", read_total},
    {"memory.reserved", NULL, "MiB", "0: the quota is the tenant's alone.", read_reserved},
    {"memory.used", NULL, "MiB", "What the vGPU's sessions use.", read_used},
    {"memory.free", NULL, "MiB", "The rest of the quota.", read_free},
    {"compute_mode", NULL, "", "Default.", read_compute_mode},
    {"compute_cap", NULL, "", "The compute capability.", read_capability},
    {"utilization.gpu", NULL, "%", "The time with kernels of the vGPU; of any for an exclusive vGPU.", read_busy},
    {"utilization.memory", NULL, "%", "The time with memory in use; exclusive vGPUs only, else 0.", read_memory_busy},
    {"utilization.encoder", NULL, "%", "Not available to a vGPU.", NULL},
    {"utilization.decoder", NULL, "%", "Not available to a vGPU.", NULL},
    {"ecc.mode.current", NULL, "", "Not available to a vGPU.", NULL},
    {"ecc.mode.pending", NULL, "", "Not available to a vGPU.", NULL},
    {"ecc.errors.corrected.volatile.total", NULL, "", "Not available to a vGPU.", NULL},
    {"ecc.errors.uncorrected.volatile.total", NULL, "", "Not available to a vGPU.", NULL},
    {"ecc.errors.corrected.aggregate.total", NULL, "", "Not available to a vGPU.", NULL},
    {"ecc.errors.uncorrected.aggregate.total", NULL, "", "Not available to a vGPU.", NULL},
    {"temperature.gpu", NULL, "", "Degrees Celsius; exclusive vGPUs only.", read_celsius},
    {"temperature.memory", NULL, "", "Not available to a vGPU.", NULL},
    {"power.management", NULL, "", "Not available to a vGPU.", NULL},
    {"power.draw", NULL, "W", "The board's power; exclusive vGPUs only.", read_nvmlDeviceGetPowerUsage},
    {"power.draw.average", NULL, "W", "Not available to a vGPU.", NULL},
    {"power.draw.instant", NULL, "W", "The board's power; exclusive vGPUs only.", read_nvmlDeviceGetPowerUsage},
    {"power.limit", NULL, "W", "The limit; exclusive vGPUs only.", read_nvmlDeviceGetPowerManagementLimit},
    {"enforced.power.limit", NULL, "W", "The limit in force; exclusive vGPUs only.",
     read_nvmlDeviceGetEnforcedPowerLimit},
    {"power.default_limit", NULL, "W", "The default limit; exclusive vGPUs only.",
     read_nvmlDeviceGetPowerManagementDefaultLimit},
    {"power.min_limit", NULL, "W", "The least limit; exclusive vGPUs only.", read_min_limit},
    {"power.max_limit", NULL, "W", "The greatest limit; exclusive vGPUs only.", read_max_limit},
    {"clocks.current.graphics", "clocks.gr", "MHz", "The graphics clock; exclusive vGPUs only.", read_graphics},
    {"clocks.current.sm", "clocks.sm", "MHz", "The multiprocessors' clock; exclusive vGPUs only.", read_sm},
    {"clocks.current.memory", "clocks.mem", "MHz", "The memory clock; exclusive vGPUs only.", read_memory},
    {"clocks.current.video", "clocks.video", "MHz", "The video clock; exclusive vGPUs only.", read_video},
    {"clocks.max.graphics", "clocks.max.gr", "MHz", "The greatest graphics clock; exclusive vGPUs only.",
     read_max_graphics},
    {"clocks.max.sm", NULL, "MHz", "The greatest clock of multiprocessors; exclusive vGPUs only.", read_max_sm},
    {"clocks.max.memory", "clocks.max.mem", "MHz", "The greatest memory clock; exclusive vGPUs only.", read_max_memory},
    {"clocks.applications.graphics", "clocks.applications.gr", "MHz", "Not available to a vGPU.", NULL},
    {"clocks.applications.memory", "clocks.applications.mem", "MHz", "Not available to a vGPU.", NULL},
    {"mig.mode.current", NULL, "", "Not available: a vGPU has no MIG.", NULL},
    {"mig.mode.pending", NULL, "", "Not available: a vGPU has no MIG.", NULL},
};

static bool is_name(const char *name, const char *text, size_t length) {
    return name != NULL && strlen(name) == length && memcmp(name, text, length) == 0;
}

const hws_smi_field_t *hws_smi_field(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (is_name(fields[i].name, name, length) || is_name(fields[i].other, name, length)) {
            return &fields[i];
        }
    }
    return NULL;
}

void hws_smi_read(const hws_smi_field_t *field, nvmlDevice_t device, bool units, char text_p[HWS_SMI_MAX_TEXT]) {
    if (field->read == NULL || !field->read(device, text_p)) {
        put(text_p, "%s", HWS_SMI_NOT_AVAILABLE);
    } else if (units && field->unit[0] != '\0') {
        size_t length = strlen(text_p);
        snprintf(text_p + length, HWS_SMI_MAX_TEXT - length, " %s", field->unit);
    }
}

void hws_smi_list_fields(void) {
    puts("List of valid properties to query for the switch \"--query-gpu=\":\n");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        printf("\"%s\"", fields[i].name);
        if (fields[i].other != NULL) {
            printf(" or \"%s\"", fields[i].other);
        }
        printf("\n%s\n\n", fields[i].description);
    }
}

void hws_smi_timestamp(char text_p[HWS_SMI_MAX_TEXT]) {
    struct timeval now;
    struct tm local;
    gettimeofday(&now, NULL);
    size_t length = strftime(text_p, HWS_SMI_MAX_TEXT, "%Y/%m/%d %H:%M:%S", localtime_r(&now.tv_sec, &local));
    snprintf(text_p + length, HWS_SMI_MAX_TEXT - length, ".%03d", (int) (now.tv_usec / 1000));
}
