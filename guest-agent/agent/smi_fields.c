/* The properties of a GPU under nvidia-smi's names. */
#include "smi.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define MIB (1 << 20)

__attribute__((format(printf, 2, 3))) static nvmlReturn_t put(char text_p[HWS_SMI_MAX_TEXT], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text_p, HWS_SMI_MAX_TEXT, format, arguments);
    va_end(arguments);
    return NVML_SUCCESS;
}

/* A reader of a text that a function writes. */
#define TEXT_READER(name, call)                                                                                        \
    static nvmlReturn_t name(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {                                     \
        (void) device;                                                                                                 \
        return call;                                                                                                   \
    }

/* A reader of a number of type `kind` that a function stores in `value`; further arguments print it. */
#define NUMBER_READER(name, kind, call, ...)                                                                           \
    static nvmlReturn_t name(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {                                     \
        kind value;                                                                                                    \
        (void) device;                                                                                                 \
        nvmlReturn_t result = call;                                                                                    \
        return result == NVML_SUCCESS ? put(text_p, __VA_ARGS__) : result;                                             \
    }

#define STATE(value) ((value) == NVML_FEATURE_ENABLED ? "Enabled" : "Disabled")
#define WATTS(function) NUMBER_READER(read_##function, unsigned, function(device, &value), "%.2f", value / 1000.0)
#define CLOCK(name, function, type)                                                                                    \
    NUMBER_READER(read_##name, unsigned, function(device, NVML_CLOCK_##type, &value), "%u", value)

/* Names of nvmlDeviceArchitecture_t. */
static const char *const architectures[] = {"Unknown", "Unknown", "Kepler", "Maxwell", "Pascal",   "Volta",
                                            "Turing",  "Ampere",  "Ada",    "Hopper",  "Blackwell"};

TEXT_READER(read_driver, nvmlSystemGetDriverVersion(text_p, HWS_SMI_MAX_TEXT))
TEXT_READER(read_name, nvmlDeviceGetName(device, text_p, HWS_SMI_MAX_TEXT))
TEXT_READER(read_uuid, nvmlDeviceGetUUID(device, text_p, HWS_SMI_MAX_TEXT))
NUMBER_READER(read_count, unsigned, nvmlDeviceGetCount_v2(&value), "%u", value)
NUMBER_READER(read_index, unsigned, nvmlDeviceGetIndex(device, &value), "%u", value)
NUMBER_READER(read_bus_id, nvmlPciInfo_t, nvmlDeviceGetPciInfo_v3(device, &value), "%s", value.busId)
NUMBER_READER(read_domain, nvmlPciInfo_t, nvmlDeviceGetPciInfo_v3(device, &value), "0x%04X", value.domain)
NUMBER_READER(read_bus, nvmlPciInfo_t, nvmlDeviceGetPciInfo_v3(device, &value), "0x%02X", value.bus)
NUMBER_READER(read_device, nvmlPciInfo_t, nvmlDeviceGetPciInfo_v3(device, &value), "0x%02X", value.device)
NUMBER_READER(read_display_active, nvmlEnableState_t, nvmlDeviceGetDisplayActive(device, &value), "%s", STATE(value))
NUMBER_READER(read_persistence, nvmlEnableState_t, nvmlDeviceGetPersistenceMode(device, &value), "%s", STATE(value))
NUMBER_READER(read_compute_mode, nvmlComputeMode_t, nvmlDeviceGetComputeMode(device, &value), "%s",
              value == NVML_COMPUTEMODE_DEFAULT ? "Default" : "Prohibited")
NUMBER_READER(read_pstate, nvmlPstates_t, nvmlDeviceGetPerformanceState(device, &value), "P%d", (int) value)
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

NUMBER_READER(read_supported_reasons, unsigned long long, nvmlDeviceGetSupportedClocksEventReasons(device, &value),
              "0x%016llX", value)
NUMBER_READER(read_device_id, nvmlPciInfo_t, nvmlDeviceGetPciInfo_v3(device, &value), "0x%08X", value.pciDeviceId)
NUMBER_READER(read_sub_device_id, nvmlPciInfo_t, nvmlDeviceGetPciInfo_v3(device, &value), "0x%08X",
              value.pciSubSystemId)
NUMBER_READER(read_display_attached, nvmlEnableState_t, nvmlDeviceGetDisplayMode(device, &value), "%s",
              value == NVML_FEATURE_ENABLED ? "Yes" : "No")
NUMBER_READER(read_accounting, nvmlEnableState_t, nvmlDeviceGetAccountingMode(device, &value), "%s", STATE(value))
NUMBER_READER(read_power_management, nvmlEnableState_t, nvmlDeviceGetPowerManagementMode(device, &value), "%s",
              STATE(value))
NUMBER_READER(read_minor, unsigned, nvmlDeviceGetMinorNumber(device, &value), "%u", value)
NUMBER_READER(read_multi, unsigned, nvmlDeviceGetMultiGpuBoard(device, &value), "%s", value != 0 ? "Yes" : "No")
NUMBER_READER(read_board, unsigned, nvmlDeviceGetBoardId(device, &value), "0x%x", value)
NUMBER_READER(read_architecture, nvmlDeviceArchitecture_t, nvmlDeviceGetArchitecture(device, &value), "%s",
              value < sizeof architectures / sizeof *architectures ? architectures[value] : "Unknown")
NUMBER_READER(read_virtualization, nvmlGpuVirtualizationMode_t, nvmlDeviceGetVirtualizationMode(device, &value), "%s",
              value == NVML_GPU_VIRTUALIZATION_MODE_NONE ? "None" : "VGPU")
CLOCK(max_video, nvmlDeviceGetMaxClockInfo, VIDEO)

static nvmlReturn_t read_pci(nvmlDevice_t device, nvmlPciInfoExt_t *pci_p) {
    *pci_p = (nvmlPciInfoExt_t) {.version = nvmlPciInfoExt_v1};
    return nvmlDeviceGetPciInfoExt(device, pci_p);
}
NUMBER_READER(read_base_class, nvmlPciInfoExt_t, read_pci(device, &value), "0x%x", value.baseClass)
NUMBER_READER(read_sub_class, nvmlPciInfoExt_t, read_pci(device, &value), "0x%x", value.subClass)

#define LINK(name, function) NUMBER_READER(name, unsigned, function(device, &value), "%u", value)
LINK(read_link_generation, nvmlDeviceGetCurrPcieLinkGeneration)
LINK(read_most_generation, nvmlDeviceGetMaxPcieLinkGeneration)
LINK(read_gpu_generation, nvmlDeviceGetGpuMaxPcieLinkGeneration)
LINK(read_link_width, nvmlDeviceGetCurrPcieLinkWidth)
LINK(read_most_width, nvmlDeviceGetMaxPcieLinkWidth)
NUMBER_READER(read_link_lanes, unsigned, nvmlDeviceGetCurrPcieLinkWidth(device, &value), "%ux", value)
NUMBER_READER(read_most_lanes, unsigned, nvmlDeviceGetMaxPcieLinkWidth(device, &value), "%ux", value)

#define VIDEO(engine)                                                                                                  \
    static nvmlReturn_t read_##engine(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {                            \
        unsigned value, period_us;                                                                                     \
        nvmlReturn_t result = nvmlDeviceGet##engine##Utilization(device, &value, &period_us);                          \
        return result == NVML_SUCCESS ? put(text_p, "%u", value) : result;                                             \
    }
VIDEO(Encoder)
VIDEO(Decoder)
VIDEO(Jpg)
VIDEO(Ofa)

/* The bits are nvml.h's: nvmlClocksEventReason... */
#define REASON(name, bit)                                                                                              \
    NUMBER_READER(read_##name, unsigned long long, nvmlDeviceGetCurrentClocksEventReasons(device, &value), "%s",       \
                  (value & (bit)) != 0 ? "Active" : "Not Active")
REASON(idle, 0x1)
REASON(application_clocks, 0x2)
REASON(power_cap, 0x4)
REASON(slowdown, 0x8)
REASON(sync_boost, 0x10)
REASON(software_heat, 0x20)
REASON(hardware_heat, 0x40)
REASON(power_brake, 0x80)
REASON(display_clocks, 0x100)

#define ERRORS(name, kind, counter)                                                                                    \
    NUMBER_READER(read_##name, unsigned long long,                                                                     \
                  nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_##kind, NVML_##counter##_ECC, &value),    \
                  "%llu", value)
ERRORS(volatile_corrected, CORRECTED, VOLATILE)
ERRORS(volatile_uncorrected, UNCORRECTED, VOLATILE)
ERRORS(aggregate_corrected, CORRECTED, AGGREGATE)
ERRORS(aggregate_uncorrected, UNCORRECTED, AGGREGATE)

static nvmlReturn_t read_ecc(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    nvmlEnableState_t current, pending;
    nvmlReturn_t result = nvmlDeviceGetEccMode(device, &current, &pending);
    return result == NVML_SUCCESS ? put(text_p, "%s", STATE(current)) : result;
}

static nvmlReturn_t read_pending_ecc(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    nvmlEnableState_t current, pending;
    nvmlReturn_t result = nvmlDeviceGetEccMode(device, &current, &pending);
    return result == NVML_SUCCESS ? put(text_p, "%s", STATE(pending)) : result;
}

/* A figure that has a number instead of a function. */
static nvmlReturn_t read_figure(nvmlDevice_t device, unsigned id, unsigned *value_p) {
    nvmlFieldValue_t field = {.fieldId = id};
    nvmlReturn_t result = nvmlDeviceGetFieldValues(device, 1, &field);
    *value_p = field.value.uiVal;
    return result == NVML_SUCCESS ? field.nvmlReturn : result;
}
NUMBER_READER(read_memory_celsius, unsigned, read_figure(device, NVML_FI_DEV_MEMORY_TEMP, &value), "%u", value)
NUMBER_READER(read_instant_power, unsigned, read_figure(device, NVML_FI_DEV_POWER_INSTANT, &value), "%.2f",
              value / 1000.0)
NUMBER_READER(read_average_power, unsigned, read_figure(device, NVML_FI_DEV_POWER_AVERAGE, &value), "%.2f",
              value / 1000.0)

static nvmlReturn_t ask_memory(nvmlDevice_t device, nvmlMemory_v2_t *memory_p) {
    *memory_p = (nvmlMemory_v2_t) {.version = nvmlMemory_v2};
    return nvmlDeviceGetMemoryInfo_v2(device, memory_p);
}
NUMBER_READER(read_total, nvmlMemory_v2_t, ask_memory(device, &value), "%llu", value.total / MIB)
NUMBER_READER(read_reserved, nvmlMemory_v2_t, ask_memory(device, &value), "%llu", value.reserved / MIB)
NUMBER_READER(read_used, nvmlMemory_v2_t, ask_memory(device, &value), "%llu", value.used / MIB)
NUMBER_READER(read_free, nvmlMemory_v2_t, ask_memory(device, &value), "%llu", value.free / MIB)

static nvmlReturn_t read_capability(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    int major, minor;
    nvmlReturn_t result = nvmlDeviceGetCudaComputeCapability(device, &major, &minor);
    return result == NVML_SUCCESS ? put(text_p, "%d.%d", major, minor) : result;
}

static nvmlReturn_t read_min_limit(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    unsigned least, most;
    nvmlReturn_t result = nvmlDeviceGetPowerManagementLimitConstraints(device, &least, &most);
    return result == NVML_SUCCESS ? put(text_p, "%.2f", least / 1000.0) : result;
}

static nvmlReturn_t read_max_limit(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    unsigned least, most;
    nvmlReturn_t result = nvmlDeviceGetPowerManagementLimitConstraints(device, &least, &most);
    return result == NVML_SUCCESS ? put(text_p, "%.2f", most / 1000.0) : result;
}

/* As nvidia-smi 580, whatever NVML answers. */
static nvmlReturn_t read_display_mode(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    (void) device;
    (void) text_p;
    return NVML_ERROR_DEPRECATED;
}

static nvmlReturn_t read_timestamp(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    (void) device;
    hws_smi_timestamp(text_p);
    return NVML_SUCCESS;
}

static const hws_smi_field_t fields[] = {
    {"timestamp", NULL, "", "The time of the query.", read_timestamp},
    {"driver_version", NULL, "", "The driver beside the GPU.", read_driver},
    {"vgpu_driver_capability.heterogenous_multivGPU", NULL, "", NULL, NULL},
    {"count", NULL, "", "The number of GPUs of the vGPU.", read_count},
    {"name", "gpu_name", "", "The GPU's name.", read_name},
    {"serial", "gpu_serial", "", NULL, NULL},
    {"uuid", "gpu_uuid", "", "The GPU's UUID.", read_uuid},
    {"pci.bus_id", "gpu_bus_id", "", "The PCI address: domain:bus:device.function.", read_bus_id},
    {"pci.domain", NULL, "", "The PCI domain.", read_domain},
    {"pci.bus", NULL, "", "The PCI bus.", read_bus},
    {"pci.device", NULL, "", "The PCI device.", read_device},
    {"pci.baseClass", NULL, "", "The PCI class: a display controller.", read_base_class},
    {"pci.subClass", NULL, "", "The PCI subclass: without outputs.", read_sub_class},
    {"pci.device_id", NULL, "", "The PCI device and vendor.", read_device_id},
    {"pci.sub_device_id", NULL, "", "The board and its vendor.", read_sub_device_id},
    {"vgpu_device_capability.fractional_multiVgpu", NULL, "", NULL, NULL},
    {"vgpu_device_capability.heterogeneous_timeSlice_profile", NULL, "", NULL, NULL},
    {"vgpu_device_capability.heterogeneous_timeSlice_sizes", NULL, "", NULL, NULL},
    {"vgpu_device_capability.homogeneous_placements", NULL, "", NULL, NULL},
    {"vgpu_device_capability.mig_timeSlicing", NULL, "", NULL, NULL},
    {"vgpu_device_capability.mig_timeSlicing_mode", NULL, "", NULL, NULL},
    {"pcie.link.gen.current", NULL, "", "The generation of PCIe that a working GPU uses.", read_link_generation},
    {"pcie.link.gen.gpucurrent", NULL, "", "The same.", read_link_generation},
    {"pcie.link.gen.max", NULL, "", "The highest one of GPU and machine.", read_most_generation},
    {"pcie.link.gen.gpumax", NULL, "", "The highest one of the GPU.", read_gpu_generation},
    {"pcie.link.gen.hostmax", NULL, "", NULL, NULL},
    {"pcie.link.width.current", NULL, "", "The PCIe lanes in use.", read_link_width},
    {"pcie.link.width.max", NULL, "", "The most lanes of GPU and machine.", read_most_width},
    {"index", NULL, "", "The index in the vGPU, from 0.", read_index},
    {"display_mode", NULL, "", "Deprecated.", read_display_mode},
    {"display_attached", NULL, "", "No: a vGPU has no display.", read_display_attached},
    {"display_active", NULL, "", "Disabled: a vGPU has no display.", read_display_active},
    {"persistence_mode", NULL, "", "Enabled: the broker keeps the GPU open.", read_persistence},
    {"addressing_mode", NULL, "", NULL, NULL},
    {"accounting.mode", NULL, "", "Disabled.", read_accounting},
    {"accounting.buffer_size", NULL, "", NULL, NULL},
    {"driver_model.current", NULL, "", NULL, NULL},
    {"driver_model.pending", NULL, "", NULL, NULL},
    {"vbios_version", NULL, "", NULL, NULL},
    {"inforom.img", "inforom.image", "", NULL, NULL},
    {"inforom.oem", NULL, "", NULL, NULL},
    {"inforom.ecc", NULL, "", NULL, NULL},
    {"inforom.pwr", "inforom.power", "", NULL, NULL},
    {"inforom.checksum_validation", NULL, "", NULL, NULL},
    {"gpu_recovery_action", NULL, "", NULL, NULL},
    {"gom.current", "gpu_operation_mode.current", "", NULL, NULL},
    {"gom.pending", "gpu_operation_mode.pending", "", NULL, NULL},
    {"fan.speed", NULL, "%", NULL, NULL},
    {"pstate", NULL, "", "The performance state; exclusive vGPUs only.", read_pstate},
    {"clocks_event_reasons.supported", "clocks_throttle_reasons.supported", "",
     "Bits of reasons that the GPU can report; exclusive vGPUs only.", read_supported_reasons},
    {"clocks_event_reasons.active", "clocks_throttle_reasons.active", "",
     "Bits of reasons for the clocks; exclusive vGPUs only.", read_reasons},
    {"clocks_event_reasons.gpu_idle", "clocks_throttle_reasons.gpu_idle", "",
     "Whether the clocks are low because the GPU is idle; exclusive vGPUs only.", read_idle},
    {"clocks_event_reasons.applications_clocks_setting", "clocks_throttle_reasons.applications_clocks_setting", "",
     "Whether the applications' clocks lower the clocks; exclusive vGPUs only.", read_application_clocks},
    {"clocks_event_reasons.sw_power_cap", "clocks_throttle_reasons.sw_power_cap", "",
     "Whether the power limit lowers the clocks; exclusive vGPUs only.", read_power_cap},
    {"clocks_event_reasons.hw_slowdown", "clocks_throttle_reasons.hw_slowdown", "",
     "Whether the hardware lowers the clocks: heat or power; exclusive vGPUs only.", read_slowdown},
    {"clocks_event_reasons.hw_thermal_slowdown", "clocks_throttle_reasons.hw_thermal_slowdown", "",
     "Whether the hardware lowers the clocks: heat; exclusive vGPUs only.", read_hardware_heat},
    {"clocks_event_reasons.hw_power_brake_slowdown", "clocks_throttle_reasons.hw_power_brake_slowdown", "",
     "Whether the power brake lowers the clocks; exclusive vGPUs only.", read_power_brake},
    {"clocks_event_reasons.sw_thermal_slowdown", "clocks_throttle_reasons.sw_thermal_slowdown", "",
     "Whether the driver lowers the clocks: heat; exclusive vGPUs only.", read_software_heat},
    {"clocks_event_reasons.sync_boost", "clocks_throttle_reasons.sync_boost", "",
     "Whether a group of GPUs lowers the clocks; exclusive vGPUs only.", read_sync_boost},
    {"clocks_event_reasons_counters.sw_power_cap", NULL, "us", NULL, NULL},
    {"clocks_event_reasons_counters.sync_boost", NULL, "us", NULL, NULL},
    {"clocks_event_reasons_counters.sw_thermal_slowdown", NULL, "us", NULL, NULL},
    {"clocks_event_reasons_counters.hw_thermal_slowdown", NULL, "us", NULL, NULL},
    {"clocks_event_reasons_counters.hw_power_brake_slowdown", NULL, "us", NULL, NULL},
    {"memory.total", NULL, "MiB", "The vGPU's quota. Of a whole GPU also what the driver reserves.", read_total},
    {"memory.reserved", NULL, "MiB", "What the driver reserves of a whole GPU; 0 of a part.", read_reserved},
    {"memory.used", NULL, "MiB", "What the vGPU's sessions use.", read_used},
    {"memory.free", NULL, "MiB", "The rest of the quota.", read_free},
    {"compute_mode", NULL, "", "Default.", read_compute_mode},
    {"compute_cap", NULL, "", "The compute capability.", read_capability},
    {"utilization.gpu", NULL, "%", "The time with kernels of the vGPU; of any for an exclusive vGPU.", read_busy},
    {"utilization.memory", NULL, "%", "The time with memory in use; exclusive vGPUs only, else 0.", read_memory_busy},
    {"utilization.encoder", NULL, "%", "0: a vGPU has no video engines.", read_Encoder},
    {"utilization.decoder", NULL, "%", "0: a vGPU has no video engines.", read_Decoder},
    {"utilization.jpeg", NULL, "%", "0: a vGPU has no video engines.", read_Jpg},
    {"utilization.ofa", NULL, "%", "0: a vGPU has no video engines.", read_Ofa},
    {"encoder.stats.sessionCount", NULL, "", NULL, NULL},
    {"encoder.stats.averageFps", NULL, "", NULL, NULL},
    {"encoder.stats.averageLatency", NULL, "", NULL, NULL},
    {"dramEncryption.mode.current", NULL, "", NULL, NULL},
    {"dramEncryption.mode.pending", NULL, "", NULL, NULL},
    {"ecc.mode.current", NULL, "", "The GPU's mode.", read_ecc},
    {"ecc.mode.pending", NULL, "", "The GPU's mode after its next restart.", read_pending_ecc},
    {"ecc.errors.corrected.volatile.device_memory", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.volatile.dram", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.volatile.register_file", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.volatile.l1_cache", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.volatile.l2_cache", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.volatile.texture_memory", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.volatile.cbu", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.volatile.sram", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.volatile.total", NULL, "",
     "Memory errors since the driver was loaded; exclusive vGPUs only.", read_volatile_corrected},
    {"ecc.errors.corrected.aggregate.device_memory", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.aggregate.dram", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.aggregate.register_file", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.aggregate.l1_cache", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.aggregate.l2_cache", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.aggregate.texture_memory", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.aggregate.cbu", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.aggregate.sram", NULL, "", NULL, NULL},
    {"ecc.errors.corrected.aggregate.total", NULL, "", "Memory errors of the GPU's life; exclusive vGPUs only.",
     read_aggregate_corrected},
    {"ecc.errors.uncorrected.volatile.device_memory", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.volatile.dram", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.volatile.register_file", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.volatile.l1_cache", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.volatile.l2_cache", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.volatile.texture_memory", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.volatile.cbu", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.volatile.sram", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.volatile.total", NULL, "",
     "Memory errors since the driver was loaded; exclusive vGPUs only.", read_volatile_uncorrected},
    {"ecc.errors.uncorrected.aggregate.device_memory", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.dram", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.register_file", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.l1_cache", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.l2_cache", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.texture_memory", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.cbu", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.total", NULL, "", "Memory errors of the GPU's life; exclusive vGPUs only.",
     read_aggregate_uncorrected},
    {"ecc.errors.uncorrected.volatile.sram.parity", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.volatile.sram.secded", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram.parity", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram.secded", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram.l2", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram.sm", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram.mcu", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram.pcie", NULL, "", NULL, NULL},
    {"ecc.errors.uncorrected.aggregate.sram.other", NULL, "", NULL, NULL},
    {"retired_pages.single_bit_ecc.count", "retired_pages.sbe", "", NULL, NULL},
    {"retired_pages.double_bit.count", "retired_pages.dbe", "", NULL, NULL},
    {"retired_pages.pending", NULL, "", NULL, NULL},
    {"remapped_rows.correctable", "remapped_rows.sbe", "", NULL, NULL},
    {"remapped_rows.correctable_inactive", NULL, "", NULL, NULL},
    {"remapped_rows.uncorrectable", "remapped_rows.dbe", "", NULL, NULL},
    {"remapped_rows.uncorrectable_inactive", NULL, "", NULL, NULL},
    {"remapped_rows.pending", NULL, "", NULL, NULL},
    {"remapped_rows.failure", NULL, "", NULL, NULL},
    {"remapped_rows.histogram.max", NULL, "", NULL, NULL},
    {"remapped_rows.histogram.high", NULL, "", NULL, NULL},
    {"remapped_rows.histogram.partial", NULL, "", NULL, NULL},
    {"remapped_rows.histogram.low", NULL, "", NULL, NULL},
    {"remapped_rows.histogram.none", NULL, "", NULL, NULL},
    {"temperature.gpu", NULL, "", "Degrees Celsius; exclusive vGPUs only.", read_celsius},
    {"temperature.gpu.tlimit", NULL, "", NULL, NULL},
    {"temperature.memory", NULL, "", "Degrees Celsius; exclusive vGPUs only.", read_memory_celsius},
    {"power.management", NULL, "", "Enabled; exclusive vGPUs only.", read_power_management},
    {"power.draw", NULL, "W", "The board's power, an average of a second; exclusive vGPUs only.",
     read_nvmlDeviceGetPowerUsage},
    {"power.draw.average", "gpu.power.draw.average", "W",
     "The board's power, an average of a second; exclusive vGPUs only.", read_average_power},
    {"power.draw.instant", "gpu.power.draw.instant", "W", "The board's power at this moment; exclusive vGPUs only.",
     read_instant_power},
    {"power.limit", "gpu.power.requested_limit", "W", "The limit; exclusive vGPUs only.",
     read_nvmlDeviceGetPowerManagementLimit},
    {"enforced.power.limit", "gpu.power.current_limit", "W", "The limit in force; exclusive vGPUs only.",
     read_nvmlDeviceGetEnforcedPowerLimit},
    {"power.default_limit", "gpu.power.default_limit", "W", "The default limit; exclusive vGPUs only.",
     read_nvmlDeviceGetPowerManagementDefaultLimit},
    {"power.min_limit", "gpu.power.min_limit", "W", "The least limit; exclusive vGPUs only.", read_min_limit},
    {"power.max_limit", "gpu.power.max_limit", "W", "The greatest limit; exclusive vGPUs only.", read_max_limit},
    {"module.power.draw.average", NULL, "W", NULL, NULL},
    {"module.power.draw.instant", NULL, "W", NULL, NULL},
    {"module.power.limit", "module.power.requested_limit", "W", NULL, NULL},
    {"module.enforced.power.limit", "module.power.current_limit", "W", NULL, NULL},
    {"module.power.default_limit", NULL, "W", NULL, NULL},
    {"module.power.min_limit", NULL, "W", NULL, NULL},
    {"module.power.max_limit", NULL, "W", NULL, NULL},
    {"power_smoothing.delayed_power_smoothing_supported", NULL, "", NULL, NULL},
    {"power_smoothing.primary_power_floor", NULL, "W", NULL, NULL},
    {"power_smoothing.secondary_power_floor", NULL, "W", NULL, NULL},
    {"power_smoothing.min_primary_floor_activation_offset", NULL, "W", NULL, NULL},
    {"power_smoothing.min_primary_floor_activation_point", NULL, "W", NULL, NULL},
    {"power_smoothing.window_multiplier", NULL, "ms", NULL, NULL},
    {"power_smoothing.curr_profile.secondary_power_floor", NULL, "W", NULL, NULL},
    {"power_smoothing.curr_profile.primary_floor_act_window_multiplier", NULL, "", NULL, NULL},
    {"power_smoothing.curr_profile.primary_floor_tar_window_multiplier", NULL, "", NULL, NULL},
    {"power_smoothing.curr_profile.primary_floor_act_offset", NULL, "W", NULL, NULL},
    {"power_smoothing.admin_override.secondary_power_floor", NULL, "W", NULL, NULL},
    {"power_smoothing.admin_override.primary_floor_act_window_multiplier", NULL, "", NULL, NULL},
    {"power_smoothing.admin_override.primary_floor_tar_window_multiplier", NULL, "", NULL, NULL},
    {"power_smoothing.admin_override.primary_floor_act_offset", NULL, "W", NULL, NULL},
    {"clocks.current.graphics", "clocks.gr", "MHz", "The graphics clock; exclusive vGPUs only.", read_graphics},
    {"clocks.current.sm", "clocks.sm", "MHz", "The multiprocessors' clock; exclusive vGPUs only.", read_sm},
    {"clocks.current.memory", "clocks.mem", "MHz", "The memory clock; exclusive vGPUs only.", read_memory},
    {"clocks.current.video", "clocks.video", "MHz", "The video clock; exclusive vGPUs only.", read_video},
    {"clocks.applications.graphics", "clocks.applications.gr", "MHz", NULL, NULL},
    {"clocks.applications.memory", "clocks.applications.mem", "MHz", NULL, NULL},
    {"clocks.default_applications.graphics", "clocks.default_applications.gr", "MHz", NULL, NULL},
    {"clocks.default_applications.memory", "clocks.default_applications.mem", "MHz", NULL, NULL},
    {"clocks.max.graphics", "clocks.max.gr", "MHz", "The greatest graphics clock; exclusive vGPUs only.",
     read_max_graphics},
    {"clocks.max.sm", NULL, "MHz", "The greatest clock of multiprocessors; exclusive vGPUs only.", read_max_sm},
    {"clocks.max.memory", "clocks.max.mem", "MHz", "The greatest memory clock; exclusive vGPUs only.", read_max_memory},
    {"mig.mode.current", NULL, "", NULL, NULL},
    {"mig.mode.pending", NULL, "", NULL, NULL},
    {"gsp.mode.current", NULL, "", NULL, NULL},
    {"gsp.mode.default", NULL, "", NULL, NULL},
    {"c2c.mode", NULL, "", NULL, NULL},
    {"protected_memory.total", NULL, "MiB", NULL, NULL},
    {"protected_memory.used", NULL, "MiB", NULL, NULL},
    {"protected_memory.free", NULL, "MiB", NULL, NULL},
    {"fabric.state", NULL, "", NULL, NULL},
    {"fabric.status", NULL, "", NULL, NULL},
    {"fabric.cliqueId", NULL, "", NULL, NULL},
    {"fabric.clusterUuid", NULL, "", NULL, NULL},
    {"fabric.health.summary", NULL, "", NULL, NULL},
    {"fabric.health.bandwidth", NULL, "", NULL, NULL},
    {"fabric.health.route_recovery_in_progress", NULL, "", NULL, NULL},
    {"fabric.health.route_unhealthy", NULL, "", NULL, NULL},
    {"fabric.health.access_timeout_recovery", NULL, "", NULL, NULL},
    {"fabric.health.incorrect_configuration", NULL, "", NULL, NULL},
    {"fabric.health.partition_assigned", NULL, "", NULL, NULL},
    {"platform.chassis_serial_number", NULL, "", NULL, NULL},
    {"platform.slot_number", NULL, "", NULL, NULL},
    {"platform.tray_index", NULL, "", NULL, NULL},
    {"platform.host_id", NULL, "", NULL, NULL},
    {"platform.peer_type", NULL, "", NULL, NULL},
    {"platform.module_id", NULL, "", NULL, NULL},
    {"platform.gpu_fabric_guid", NULL, "", NULL, NULL},
    {"hostname", NULL, "", NULL, NULL},
};

/* Those that only -q prints. */
static const hws_smi_field_t log_fields[] = {
    {"architecture", NULL, "", NULL, read_architecture},
    {"minor_number", NULL, "", NULL, read_minor},
    {"multigpu_board", NULL, "", NULL, read_multi},
    {"board_id", NULL, "", NULL, read_board},
    {"virtualization_mode", NULL, "", NULL, read_virtualization},
    {"pci_base_class", NULL, "", NULL, read_base_class},
    {"current_link_width", NULL, "", NULL, read_link_lanes},
    {"max_link_width", NULL, "", NULL, read_most_lanes},
    {"pci_sub_class", NULL, "", NULL, read_sub_class},
    {"display_clocks_setting", NULL, "", NULL, read_display_clocks},
    {"max_video_clock", NULL, "MHz", NULL, read_max_video},
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

const hws_smi_field_t *hws_smi_log_field(const char *name) {
    for (size_t i = 0; i < sizeof log_fields / sizeof *log_fields; i++) {
        if (strcmp(log_fields[i].name, name) == 0) {
            return &log_fields[i];
        }
    }
    return hws_smi_field(name, strlen(name));
}

void hws_smi_read(const hws_smi_field_t *field, nvmlDevice_t device, bool units, char text_p[HWS_SMI_MAX_TEXT]) {
    nvmlReturn_t result = field->read == NULL ? NVML_ERROR_NOT_SUPPORTED : field->read(device, text_p);
    if (result == NVML_ERROR_NOT_SUPPORTED) {
        put(text_p, "%s", HWS_SMI_NOT_AVAILABLE);
    } else if (result != NVML_SUCCESS) {
        put(text_p, "[%s]", nvmlErrorString(result));
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
        printf("\n%s\n\n", fields[i].description == NULL ? "Not available to a vGPU." : fields[i].description);
    }
}

void hws_smi_timestamp(char text_p[HWS_SMI_MAX_TEXT]) {
    struct timeval now;
    struct tm local;
    gettimeofday(&now, NULL);
    size_t length = strftime(text_p, HWS_SMI_MAX_TEXT, "%Y/%m/%d %H:%M:%S", localtime_r(&now.tv_sec, &local));
    snprintf(text_p + length, HWS_SMI_MAX_TEXT - length, ".%03d", (int) (now.tv_usec / 1000));
}
