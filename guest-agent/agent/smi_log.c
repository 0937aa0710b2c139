/* hawser smi -q: everything about the GPUs, as lines "name : value" or as XML. */
#include "smi.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define MAX_PROCESSES 1024
#define COLUMN 55         /* of the colons, as in nvidia-smi 580 */
#define PROCESS_COLUMN 42 /* the same of processes */
#define MAX_DEPTH 4
#define MIB (1 << 20)

/* Parts of -d. */
enum {
    PART_MEMORY = 1 << 0,
    PART_UTILIZATION = 1 << 1,
    PART_TEMPERATURE = 1 << 2,
    PART_POWER = 1 << 3,
    PART_CLOCK = 1 << 4,
    PART_COMPUTE = 1 << 5,
    PART_PIDS = 1 << 6,
    PART_PERFORMANCE = 1 << 7,
    PART_ECC = 1 << 8,
    PART_PAGES = 1 << 9,
    PART_ACCOUNTING = 1 << 10,
    PART_ENCODER = 1 << 11,
    PART_FBC = 1 << 12,
    PART_ROWS = 1 << 13,
    PART_SMOOTHING = 1 << 14,
    PART_PROFILES = 1 << 15,
    PART_REST = 1 << 16,
};

static const struct {
    const char *name;
    unsigned parts; /* 0: a vGPU has none of it */
} part_names[] = {{"MEMORY", PART_MEMORY},
                  {"UTILIZATION", PART_UTILIZATION},
                  {"TEMPERATURE", PART_TEMPERATURE},
                  {"POWER", PART_POWER},
                  {"CLOCK", PART_CLOCK},
                  {"COMPUTE", PART_COMPUTE},
                  {"PIDS", PART_PIDS},
                  {"PERFORMANCE", PART_PERFORMANCE},
                  {"ECC", PART_ECC},
                  {"PAGE_RETIREMENT", PART_PAGES},
                  {"ACCOUNTING", PART_ACCOUNTING},
                  {"ENCODER_STATS", PART_ENCODER},
                  {"FBC_STATS", PART_FBC},
                  {"ROW_REMAPPER", PART_ROWS},
                  {"POWER_SMOOTHING", PART_SMOOTHING},
                  {"POWER_PROFILES", PART_PROFILES},
                  {"SUPPORTED_CLOCKS", 0},
                  {"SUPPORTED_GPU_TARGET_TEMP", 0},
                  {"VOLTAGE", 0},
                  {"GSP_FIRMWARE_VERSION", 0}};

#define NONE "" /* a vGPU does not have it */

/* A value, or the head of a group of values (field == NULL). The order is that of nvidia-smi 580. */
typedef struct row {
    unsigned part;
    int depth; /* 1: directly below the GPU */
    const char *title, *tag, *field;
} row_t;

static const row_t rows[] = {
    {PART_REST, 1, "Product Name", "product_name", "name"},
    {PART_REST, 1, "Product Brand", "product_brand", NONE},
    {PART_REST, 1, "Product Architecture", "product_architecture", "architecture"},
    {PART_REST, 1, "Display Mode", "display_mode", "display_mode"},
    {PART_REST, 1, "Display Attached", "display_attached", "display_attached"},
    {PART_REST, 1, "Display Active", "display_active", "display_active"},
    {PART_REST, 1, "Persistence Mode", "persistence_mode", "persistence_mode"},
    {PART_REST, 1, "Addressing Mode", "addressing_mode", NONE},
    {PART_REST, 1, "MIG Mode", "mig_mode", NULL},
    {PART_REST, 2, "Current", "current_mig", "mig.mode.current"},
    {PART_REST, 2, "Pending", "pending_mig", "mig.mode.pending"},
    {PART_ACCOUNTING, 1, "Accounting Mode", "accounting_mode", "accounting.mode"},
    {PART_ACCOUNTING, 1, "Accounting Mode Buffer Size", "accounting_mode_buffer_size", NONE},
    {PART_REST, 1, "Driver Model", "driver_model", NULL},
    {PART_REST, 2, "Current", "current_dm", NONE},
    {PART_REST, 2, "Pending", "pending_dm", NONE},
    {PART_REST, 1, "Serial Number", "serial", "serial"},
    {PART_REST, 1, "GPU UUID", "uuid", "uuid"},
    {PART_REST, 1, "GPU PDI", "pdi", NONE},
    {PART_REST, 1, "Minor Number", "minor_number", "minor_number"},
    {PART_REST, 1, "VBIOS Version", "vbios_version", "vbios_version"},
    {PART_REST, 1, "MultiGPU Board", "multigpu_board", "multigpu_board"},
    {PART_REST, 1, "Board ID", "board_id", "board_id"},
    {PART_REST, 1, "Board Part Number", "board_part_number", NONE},
    {PART_REST, 1, "GPU Part Number", "gpu_part_number", NONE},
    {PART_REST, 1, "FRU Part Number", "gpu_fru_part_number", NONE},
    {PART_REST, 1, "Platform Info", "platformInfo", NULL},
    {PART_REST, 2, "Chassis Serial Number", "chassis_serial_number", NONE},
    {PART_REST, 2, "Slot Number", "slot_number", NONE},
    {PART_REST, 2, "Tray Index", "tray_index", NONE},
    {PART_REST, 2, "Host ID", "host_id", NONE},
    {PART_REST, 2, "Peer Type", "peer_type", NONE},
    {PART_REST, 2, "Module Id", "module_id", NONE},
    {PART_REST, 2, "GPU Fabric GUID", "gpu_fabric_guid", NONE},
    {PART_REST, 1, "Inforom Version", "inforom_version", NULL},
    {PART_REST, 2, "Image Version", "img_version", NONE},
    {PART_REST, 2, "OEM Object", "oem_object", NONE},
    {PART_REST, 2, "ECC Object", "ecc_object", NONE},
    {PART_REST, 2, "Power Management Object", "pwr_object", NONE},
    {PART_REST, 1, "Inforom BBX Object Flush", "inforom_bbx_flush", NULL},
    {PART_REST, 2, "Latest Timestamp", "latest_timestamp", NONE},
    {PART_REST, 2, "Latest Duration", "latest_duration", NONE},
    {PART_REST, 1, "GPU Operation Mode", "gpu_operation_mode", NULL},
    {PART_REST, 2, "Current", "current_gom", NONE},
    {PART_REST, 2, "Pending", "pending_gom", NONE},
    {PART_REST, 1, "GPU C2C Mode", "c2c_mode", NONE},
    {PART_REST, 1, "GPU Virtualization Mode", "gpu_virtualization_mode", NULL},
    {PART_REST, 2, "Virtualization Mode", "virtualization_mode", "virtualization_mode"},
    {PART_REST, 2, "Host VGPU Mode", "host_vgpu_mode", NONE},
    {PART_REST, 2, "vGPU Heterogeneous Mode", "vgpu_heterogeneous_mode", NONE},
    {PART_REST, 1, "GPU Recovery Action", "gpu_recovery_action", NONE},
    {PART_REST, 1, "GSP Firmware Version", "gsp_firmware_version", NONE},
    {PART_REST, 1, "IBMNPU", "ibmnpu", NULL},
    {PART_REST, 2, "Relaxed Ordering Mode", "relaxed_ordering_mode", NONE},
    {PART_REST, 1, "PCI", "pci", NULL},
    {PART_REST, 2, "Bus", "pci_bus", "pci.bus"},
    {PART_REST, 2, "Device", "pci_device", "pci.device"},
    {PART_REST, 2, "Domain", "pci_domain", "pci.domain"},
    {PART_REST, 2, "Base Classcode", "pci_base_class", "pci_base_class"},
    {PART_REST, 2, "Sub Classcode", "pci_sub_class", "pci_sub_class"},
    {PART_REST, 2, "Device Id", "pci_device_id", "pci.device_id"},
    {PART_REST, 2, "Bus Id", "pci_bus_id", "pci.bus_id"},
    {PART_REST, 2, "Sub System Id", "pci_sub_system_id", "pci.sub_device_id"},
    {PART_REST, 2, "GPU Link Info", "pci_gpu_link_info", NULL},
    {PART_REST, 3, "PCIe Generation", "pcie_gen", NULL},
    {PART_REST, 4, "Max", "max_link_gen", "pcie.link.gen.max"},
    {PART_REST, 4, "Current", "current_link_gen", "pcie.link.gen.current"},
    {PART_REST, 4, "Device Current", "device_current_link_gen", "pcie.link.gen.gpucurrent"},
    {PART_REST, 4, "Device Max", "max_device_link_gen", "pcie.link.gen.gpumax"},
    {PART_REST, 4, "Host Max", "max_host_link_gen", NONE},
    {PART_REST, 3, "Link Width", "link_widths", NULL},
    {PART_REST, 4, "Max", "max_link_width", "max_link_width"},
    {PART_REST, 4, "Current", "current_link_width", "current_link_width"},
    {PART_REST, 2, "Bridge Chip", "pci_bridge_chip", NULL},
    {PART_REST, 3, "Type", "bridge_chip_type", NONE},
    {PART_REST, 3, "Firmware", "bridge_chip_fw", NONE},
    {PART_REST, 2, "Replays Since Reset", "replay_counter", NONE},
    {PART_REST, 2, "Replay Number Rollovers", "replay_rollover_counter", NONE},
    {PART_REST, 2, "Tx Throughput", "tx_util", NONE},
    {PART_REST, 2, "Rx Throughput", "rx_util", NONE},
    {PART_REST, 2, "Atomic Caps Outbound", "atomic_caps_outbound", NONE},
    {PART_REST, 2, "Atomic Caps Inbound", "atomic_caps_inbound", NONE},
    {PART_REST, 1, "Fan Speed", "fan_speed", "fan.speed"},
    {PART_PERFORMANCE, 1, "Performance State", "performance_state", "pstate"},
    {PART_PERFORMANCE, 1, "Clocks Event Reasons", "clocks_event_reasons", NULL},
    {PART_PERFORMANCE, 2, "Idle", "clocks_event_reason_gpu_idle", "clocks_event_reasons.gpu_idle"},
    {PART_PERFORMANCE, 2, "Applications Clocks Setting", "clocks_event_reason_applications_clocks_setting",
     "clocks_event_reasons.applications_clocks_setting"},
    {PART_PERFORMANCE, 2, "SW Power Cap", "clocks_event_reason_sw_power_cap", "clocks_event_reasons.sw_power_cap"},
    {PART_PERFORMANCE, 2, "HW Slowdown", "clocks_event_reason_hw_slowdown", "clocks_event_reasons.hw_slowdown"},
    {PART_PERFORMANCE, 3, "HW Thermal Slowdown", "clocks_event_reason_hw_thermal_slowdown",
     "clocks_event_reasons.hw_thermal_slowdown"},
    {PART_PERFORMANCE, 3, "HW Power Brake Slowdown", "clocks_event_reason_hw_power_brake_slowdown",
     "clocks_event_reasons.hw_power_brake_slowdown"},
    {PART_PERFORMANCE, 2, "Sync Boost", "clocks_event_reason_sync_boost", "clocks_event_reasons.sync_boost"},
    {PART_PERFORMANCE, 2, "SW Thermal Slowdown", "clocks_event_reason_sw_thermal_slowdown",
     "clocks_event_reasons.sw_thermal_slowdown"},
    {PART_PERFORMANCE, 2, "Display Clock Setting", "clocks_event_reason_display_clocks_setting",
     "display_clocks_setting"},
    {PART_PERFORMANCE, 1, "Clocks Event Reasons Counters", "clocks_event_reasons_counters", NULL},
    {PART_PERFORMANCE, 2, "SW Power Capping", "clocks_event_reasons_counters_sw_power_cap", NONE},
    {PART_PERFORMANCE, 2, "Sync Boost", "clocks_event_reasons_counters_sync_boost", NONE},
    {PART_PERFORMANCE, 2, "SW Thermal Slowdown", "clocks_event_reasons_counters_sw_therm_slowdown", NONE},
    {PART_PERFORMANCE, 2, "HW Thermal Slowdown", "clocks_event_reasons_counters_hw_therm_slowdown", NONE},
    {PART_PERFORMANCE, 2, "HW Power Braking", "clocks_event_reasons_counters_hw_power_brake", NONE},
    {PART_PERFORMANCE, 1, "Sparse Operation Mode", "sparse_operation_mode", NONE},
    {PART_MEMORY, 1, "FB Memory Usage", "fb_memory_usage", NULL},
    {PART_MEMORY, 2, "Total", "total", "memory.total"},
    {PART_MEMORY, 2, "Reserved", "reserved", "memory.reserved"},
    {PART_MEMORY, 2, "Used", "used", "memory.used"},
    {PART_MEMORY, 2, "Free", "free", "memory.free"},
    {PART_MEMORY, 1, "BAR1 Memory Usage", "bar1_memory_usage", NULL},
    {PART_MEMORY, 2, "Total", "total", NONE},
    {PART_MEMORY, 2, "Used", "used", NONE},
    {PART_MEMORY, 2, "Free", "free", NONE},
    {PART_MEMORY, 1, "Conf Compute Protected Memory Usage", "cc_protected_memory_usage", NULL},
    {PART_MEMORY, 2, "Total", "total", NONE},
    {PART_MEMORY, 2, "Used", "used", NONE},
    {PART_MEMORY, 2, "Free", "free", NONE},
    {PART_COMPUTE, 1, "Compute Mode", "compute_mode", "compute_mode"},
    {PART_UTILIZATION, 1, "Utilization", "utilization", NULL},
    {PART_UTILIZATION, 2, "GPU", "gpu_util", "utilization.gpu"},
    {PART_UTILIZATION, 2, "Memory", "memory_util", "utilization.memory"},
    {PART_UTILIZATION, 2, "Encoder", "encoder_util", "utilization.encoder"},
    {PART_UTILIZATION, 2, "Decoder", "decoder_util", "utilization.decoder"},
    {PART_UTILIZATION, 2, "JPEG", "jpeg_util", "utilization.jpeg"},
    {PART_UTILIZATION, 2, "OFA", "ofa_util", "utilization.ofa"},
    {PART_ENCODER, 1, "Encoder Stats", "encoder_stats", NULL},
    {PART_ENCODER, 2, "Active Sessions", "session_count", NONE},
    {PART_ENCODER, 2, "Average FPS", "average_fps", NONE},
    {PART_ENCODER, 2, "Average Latency", "average_latency", NONE},
    {PART_FBC, 1, "FBC Stats", "fbc_stats", NULL},
    {PART_FBC, 2, "Active Sessions", "session_count", NONE},
    {PART_FBC, 2, "Average FPS", "average_fps", NONE},
    {PART_FBC, 2, "Average Latency", "average_latency", NONE},
    {PART_REST, 1, "DRAM Encryption Mode", "dram_encryption_mode", NULL},
    {PART_REST, 2, "Current", "current_dram_encryption", NONE},
    {PART_REST, 2, "Pending", "pending_dram_encryption", NONE},
    {PART_ECC, 1, "ECC Mode", "ecc_mode", NULL},
    {PART_ECC, 2, "Current", "current_ecc", "ecc.mode.current"},
    {PART_ECC, 2, "Pending", "pending_ecc", "ecc.mode.pending"},
    {PART_ECC, 1, "ECC Errors", "ecc_errors", NULL},
    {PART_ECC, 2, "Volatile", "volatile", NULL},
    {PART_ECC, 3, "SRAM Correctable", "sram_correctable", NONE},
    {PART_ECC, 3, "SRAM Uncorrectable Parity", "sram_uncorrectable_parity", NONE},
    {PART_ECC, 3, "SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", NONE},
    {PART_ECC, 3, "DRAM Correctable", "dram_correctable", NONE},
    {PART_ECC, 3, "DRAM Uncorrectable", "dram_uncorrectable", NONE},
    {PART_ECC, 2, "Aggregate", "aggregate", NULL},
    {PART_ECC, 3, "SRAM Correctable", "sram_correctable", NONE},
    {PART_ECC, 3, "SRAM Uncorrectable Parity", "sram_uncorrectable_parity", NONE},
    {PART_ECC, 3, "SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", NONE},
    {PART_ECC, 3, "DRAM Correctable", "dram_correctable", NONE},
    {PART_ECC, 3, "DRAM Uncorrectable", "dram_uncorrectable", NONE},
    {PART_ECC, 3, "SRAM Threshold Exceeded", "sram_threshold_exceeded", NONE},
    {PART_ECC, 2, "Aggregate Uncorrectable SRAM Sources", "aggregate_uncorrectable_sram_sources", NULL},
    {PART_ECC, 3, "SRAM L2", "sram_l2", NONE},
    {PART_ECC, 3, "SRAM SM", "sram_sm", NONE},
    {PART_ECC, 3, "SRAM Microcontroller", "sram_microcontroller", NONE},
    {PART_ECC, 3, "SRAM PCIE", "sram_pcie", NONE},
    {PART_ECC, 3, "SRAM Other", "sram_other", NONE},
    {PART_ECC, 2, "Channel Repair Pending", "channel_repair_pending", NONE},
    {PART_ECC, 2, "TPC Repair Pending", "tpc_repair_pending", NONE},
    {PART_ECC, 2, "Unrepairable Memory", "unrepairable_memory", NONE},
    {PART_PAGES, 1, "Retired Pages", "retired_pages", NONE},
    {PART_ROWS, 1, "Remapped Rows", "remapped_rows", NONE},
    {PART_TEMPERATURE, 1, "Temperature", "temperature", NULL},
    {PART_TEMPERATURE, 2, "GPU Current Temp", "gpu_temp", "temperature.gpu"},
    {PART_TEMPERATURE, 2, "GPU T.Limit Temp", "gpu_temp_tlimit", NONE},
    {PART_TEMPERATURE, 2, "GPU Shutdown T.Limit Temp", "gpu_temp_max_tlimit_threshold", NONE},
    {PART_TEMPERATURE, 2, "GPU Slowdown T.Limit Temp", "gpu_temp_slow_tlimit_threshold", NONE},
    {PART_TEMPERATURE, 2, "GPU Max Operating T.Limit Temp", "gpu_temp_max_gpu_tlimit_threshold", NONE},
    {PART_TEMPERATURE, 2, "GPU Target Temperature", "gpu_target_temperature", NONE},
    {PART_TEMPERATURE, 2, "Memory Current Temp", "memory_temp", "temperature.memory"},
    {PART_TEMPERATURE, 2, "Memory Max Operating T.Limit Temp", "gpu_temp_max_mem_tlimit_threshold", NONE},
    {PART_POWER, 1, "GPU Power Readings", "gpu_power_readings", NULL},
    {PART_POWER, 2, "Average Power Draw", "average_power_draw", "power.draw.average"},
    {PART_POWER, 2, "Instantaneous Power Draw", "instant_power_draw", "power.draw.instant"},
    {PART_POWER, 2, "Current Power Limit", "current_power_limit", "enforced.power.limit"},
    {PART_POWER, 2, "Requested Power Limit", "requested_power_limit", "power.limit"},
    {PART_POWER, 2, "Default Power Limit", "default_power_limit", "power.default_limit"},
    {PART_POWER, 2, "Min Power Limit", "min_power_limit", "power.min_limit"},
    {PART_POWER, 2, "Max Power Limit", "max_power_limit", "power.max_limit"},
    {PART_POWER, 1, "GPU Memory Power Readings ", "gpu_memory_power_readings", NULL},
    {PART_POWER, 2, "Average Power Draw", "average_power_draw", NONE},
    {PART_POWER, 2, "Instantaneous Power Draw", "instant_power_draw", NONE},
    {PART_POWER, 1, "Module Power Readings", "module_power_readings", NULL},
    {PART_POWER, 2, "Average Power Draw", "average_power_draw", NONE},
    {PART_POWER, 2, "Instantaneous Power Draw", "instant_power_draw", NONE},
    {PART_POWER, 2, "Current Power Limit", "current_power_limit", NONE},
    {PART_POWER, 2, "Requested Power Limit", "requested_power_limit", NONE},
    {PART_POWER, 2, "Default Power Limit", "default_power_limit", NONE},
    {PART_POWER, 2, "Min Power Limit", "min_power_limit", NONE},
    {PART_POWER, 2, "Max Power Limit", "max_power_limit", NONE},
    {PART_SMOOTHING, 1, "Power Smoothing", "power_smoothing", NONE},
    {PART_PROFILES, 1, "Workload Power Profiles", "power_profiles", NULL},
    {PART_PROFILES, 2, "Requested Profiles", "power_profile_requested_profiles", NONE},
    {PART_PROFILES, 2, "Enforced Profiles", "power_profile_enforced_profiles", NONE},
    {PART_CLOCK, 1, "Clocks", "clocks", NULL},
    {PART_CLOCK, 2, "Graphics", "graphics_clock", "clocks.current.graphics"},
    {PART_CLOCK, 2, "SM", "sm_clock", "clocks.current.sm"},
    {PART_CLOCK, 2, "Memory", "mem_clock", "clocks.current.memory"},
    {PART_CLOCK, 2, "Video", "video_clock", "clocks.current.video"},
    {PART_CLOCK, 1, "Applications Clocks", "applications_clocks", NULL},
    {PART_CLOCK, 2, "Graphics", "graphics_clock", NONE},
    {PART_CLOCK, 2, "Memory", "mem_clock", NONE},
    {PART_CLOCK, 1, "Default Applications Clocks", "default_applications_clocks", NULL},
    {PART_CLOCK, 2, "Graphics", "graphics_clock", NONE},
    {PART_CLOCK, 2, "Memory", "mem_clock", NONE},
    {PART_CLOCK, 1, "Deferred Clocks", "deferred_clocks", NULL},
    {PART_CLOCK, 2, "Memory", "mem_clock", NONE},
    {PART_CLOCK, 1, "Max Clocks", "max_clocks", NULL},
    {PART_CLOCK, 2, "Graphics", "graphics_clock", "clocks.max.graphics"},
    {PART_CLOCK, 2, "SM", "sm_clock", "clocks.max.sm"},
    {PART_CLOCK, 2, "Memory", "mem_clock", "clocks.max.memory"},
    {PART_CLOCK, 2, "Video", "video_clock", "max_video_clock"},
    {PART_CLOCK, 1, "Max Customer Boost Clocks", "max_customer_boost_clocks", NULL},
    {PART_CLOCK, 2, "Graphics", "graphics_clock", NONE},
    {PART_CLOCK, 1, "Clock Policy", "clock_policy", NULL},
    {PART_CLOCK, 2, "Auto Boost", "auto_boost", NONE},
    {PART_CLOCK, 2, "Auto Boost Default", "auto_boost_default", NONE},
    {PART_REST, 1, "Fabric", "fabric", NULL},
    {PART_REST, 2, "State", "state", NONE},
    {PART_REST, 2, "Status", "status", NONE},
    {PART_REST, 2, "CliqueId", "cliqueId", NONE},
    {PART_REST, 2, "ClusterUUID", "clusterUuid", NONE},
    {PART_REST, 2, "Health", "health", NULL},
    {PART_REST, 3, "Summary", "summary", NONE},
    {PART_REST, 3, "Bandwidth", "bandwidth", NONE},
    {PART_REST, 3, "Route Recovery in progress", "route_recovery_in_progress", NONE},
    {PART_REST, 3, "Route Unhealthy", "route_unhealthy", NONE},
    {PART_REST, 3, "Access Timeout Recovery", "access_timeout_recovery", NONE},
    {PART_REST, 3, "Incorrect Configuration", "incorrect_configuration", NONE},
    {PART_REST, 3, "Partition Assigned", "partition_assigned", NONE},
};

static void print_escaped(const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
            case '<':
                printf("&lt;");
                break;
            case '>':
                printf("&gt;");
                break;
            case '&':
                printf("&amp;");
                break;
            case '"':
                printf("&quot;");
                break;
            default:
                putchar(*text);
        }
    }
}

static void indent(int tabs) {
    for (int i = 0; i < tabs; i++) {
        putchar('\t');
    }
}

/* Prints a value. In XML the depth counts from the GPU's element. */
static void print_value_at(bool xml, int depth, int column, const char *title, const char *tag, const char *value) {
    if (xml) {
        indent(1 + depth);
        printf("<%s>", tag);
        print_escaped(value);
        printf("</%s>\n", tag);
    } else {
        printf("%*s%-*s: %s\n", 4 * depth, "", column - 4 * depth, title, value);
    }
}

static void print_value(bool xml, int depth, const char *title, const char *tag, const char *value) {
    print_value_at(xml, depth, COLUMN, title, tag, value);
}

/* Reads a value as -q prints it: a text in place of a value has no brackets. */
static void read_value(bool xml, const row_t *row, nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]) {
    char text[HWS_SMI_MAX_TEXT] = HWS_SMI_NOT_AVAILABLE;
    if (row->field[0] != '\0') {
        hws_smi_read(hws_smi_log_field(row->field), device, true, text);
    }
    size_t length = strlen(text);
    if (text[0] == '[') {
        snprintf(text_p, HWS_SMI_MAX_TEXT, "%.*s", (int) length - 2, text + 1);
    } else if (strncmp(row->field, "temperature.", 12) == 0) {
        snprintf(text_p, HWS_SMI_MAX_TEXT, "%.*s C", HWS_SMI_MAX_TEXT - 3, text); /* a query prints no unit */
    } else {
        /* The numbers of the PCI address have no prefix in XML. */
        bool prefixed = xml && strncmp(row->tag, "pci_", 4) == 0 && strncmp(text, "0x", 2) == 0;
        snprintf(text_p, HWS_SMI_MAX_TEXT, "%s", prefixed ? text + 2 : text);
    }
}

static void print_rows(bool xml, unsigned parts, nvmlDevice_t device) {
    const char *open[MAX_DEPTH]; /* the tags of the open groups; the depth of open[i] is i + 1 */
    int count = 0;
    for (size_t i = 0; i <= sizeof rows / sizeof *rows; i++) {
        const row_t *row = i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
        if (row != NULL && (row->part & parts) == 0) {
            continue;
        }
        for (; xml && count > 0 && (row == NULL || count >= row->depth); count--) {
            indent(1 + count);
            printf("</%s>\n", open[count - 1]);
        }
        if (row != NULL && row->field == NULL) {
            if (xml) {
                indent(1 + row->depth);
                printf("<%s>\n", row->tag);
                open[count++] = row->tag;
            } else {
                printf("%*s%s\n", 4 * row->depth, "", row->title);
            }
        } else if (row != NULL) {
            char text[HWS_SMI_MAX_TEXT];
            read_value(xml, row, device, text);
            print_value(xml, row->depth, row->title, row->tag, text);
        }
    }
}

static void print_processes(bool xml, nvmlDevice_t device) {
    static nvmlProcessInfo_t processes[MAX_PROCESSES];
    unsigned count = MAX_PROCESSES;
    if (nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes) != NVML_SUCCESS) {
        count = 0;
    }
    if (xml) {
        puts("\t\t<processes>");
    } else if (count == 0) {
        print_value(false, 1, "Processes", "", "None");
    } else {
        puts("    Processes");
    }
    for (unsigned i = 0; i < count; i++) {
        char pid[32], name[HWS_SMI_MAX_TEXT], used[64] = "N/A";
        snprintf(pid, sizeof pid, "%u", processes[i].pid);
        if (nvmlSystemGetProcessName(processes[i].pid, name, sizeof name) != NVML_SUCCESS) {
            snprintf(name, sizeof name, "[Not Found]");
        }
        if (processes[i].usedGpuMemory != (unsigned long long) NVML_VALUE_NOT_AVAILABLE) {
            snprintf(used, sizeof used, "%llu MiB", processes[i].usedGpuMemory / MIB);
        }
        if (xml) {
            puts("\t\t\t<process_info>");
        }
        print_value_at(xml, xml ? 3 : 2, PROCESS_COLUMN, "GPU instance ID", "gpu_instance_id", "N/A");
        print_value_at(xml, xml ? 3 : 2, PROCESS_COLUMN, "Compute instance ID", "compute_instance_id", "N/A");
        print_value_at(xml, xml ? 3 : 2, PROCESS_COLUMN, "Process ID", "pid", pid);
        print_value_at(xml, 3, PROCESS_COLUMN, "Type", "type", "C");
        print_value_at(xml, 3, PROCESS_COLUMN, "Name", "process_name", name);
        print_value_at(xml, 3, PROCESS_COLUMN, "Used GPU Memory", "used_memory", used);
        if (xml) {
            puts("\t\t\t</process_info>");
        }
    }
    if (xml) {
        puts("\t\t</processes>");
    }
}

static int read_parts(const char *text, unsigned *parts_p, char *error_p, size_t error_capacity) {
    *parts_p = text == NULL ? ~0u : 0;
    while (text != NULL) {
        size_t length = strcspn(text, ","), i = 0, count = sizeof part_names / sizeof *part_names;
        while (i < count
               && (strlen(part_names[i].name) != length || strncasecmp(part_names[i].name, text, length) != 0)) {
            i++;
        }
        if (i == count) {
            snprintf(error_p, error_capacity, "Display type \"%.*s\" is not valid.", (int) length, text);
            return -1;
        }
        *parts_p |= part_names[i].parts;
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return 0;
}

int hws_smi_log(const hws_smi_gpus_t *gpus, const char *parts_text, bool xml, char *error_p, size_t error_capacity) {
    unsigned parts, count = 0;
    char when[64], driver[HWS_SMI_MAX_TEXT] = "", cuda[32], attached[32], bus[HWS_SMI_MAX_TEXT];
    int version = 0;
    time_t now = time(NULL);
    struct tm local;
    if (read_parts(parts_text, &parts, error_p, error_capacity) != 0) {
        return -1;
    }
    strftime(when, sizeof when, "%a %b %e %H:%M:%S %Y", localtime_r(&now, &local));
    nvmlSystemGetDriverVersion(driver, sizeof driver);
    nvmlSystemGetCudaDriverVersion_v2(&version);
    nvmlDeviceGetCount_v2(&count);
    snprintf(cuda, sizeof cuda, "%d.%d", version / 1000, version / 10 % 100);
    snprintf(attached, sizeof attached, "%u", count);
    puts(xml ? "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>" : "\n==============NVSMI LOG==============\n");
    print_value(xml, 0, "Timestamp", "timestamp", when);
    print_value(xml, 0, "Driver Version", "driver_version", driver);
    print_value(xml, 0, "CUDA Version", "cuda_version", cuda);
    printf(xml ? "" : "\n");
    print_value(xml, 0, "Attached GPUs", "attached_gpus", attached);
    for (unsigned i = 0; i < gpus->count; i++) {
        hws_smi_read(hws_smi_field("pci.bus_id", 10), gpus->devices[i], false, bus);
        printf(xml ? "\t<gpu id=\"%s\">\n" : "GPU %s\n", bus);
        print_rows(xml, parts, gpus->devices[i]);
        if ((parts & PART_PIDS) != 0) {
            print_processes(xml, gpus->devices[i]);
        }
        puts(xml ? "\t</gpu>\n" : "");
    }
    if (xml) {
        puts("</nvidia_smi_log>");
    }
    return 0;
}
