/* hawser smi -q: everything about the GPUs, as lines "name : value" or as XML. */
#include "smi.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define MAX_PROCESSES 1024
#define COLUMN 55 /* of the colons, as in nvidia-smi 580 */
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
    PART_NOTHING = 1 << 8, /* of a vGPU: ECC and the like */
    PART_REST = 1 << 9,
};

static const struct {
    const char *name;
    unsigned parts;
} part_names[] = {{"MEMORY", PART_MEMORY},
                  {"UTILIZATION", PART_UTILIZATION},
                  {"TEMPERATURE", PART_TEMPERATURE},
                  {"POWER", PART_POWER},
                  {"CLOCK", PART_CLOCK},
                  {"COMPUTE", PART_COMPUTE},
                  {"PIDS", PART_PIDS},
                  {"PERFORMANCE", PART_PERFORMANCE},
                  {"ECC", PART_NOTHING},
                  {"PAGE_RETIREMENT", PART_NOTHING},
                  {"ACCOUNTING", PART_NOTHING},
                  {"SUPPORTED_CLOCKS", PART_NOTHING},
                  {"ENCODER_STATS", PART_NOTHING},
                  {"ROW_REMAPPER", PART_NOTHING}};

/* A value, or the head of a group of values (field == NULL). */
typedef struct row {
    unsigned part;
    int depth; /* 1: directly below the GPU */
    const char *title, *tag, *field;
} row_t;

static const row_t rows[] = {
    {PART_REST, 1, "Product Name", "product_name", "name"},
    {PART_REST, 1, "Display Mode", "display_mode", "display_mode"},
    {PART_REST, 1, "Display Active", "display_active", "display_active"},
    {PART_REST, 1, "Persistence Mode", "persistence_mode", "persistence_mode"},
    {PART_REST, 1, "MIG Mode", "mig_mode", NULL},
    {PART_REST, 2, "Current", "current_mig", "mig.mode.current"},
    {PART_REST, 2, "Pending", "pending_mig", "mig.mode.pending"},
    {PART_REST, 1, "Serial Number", "serial", "serial"},
    {PART_REST, 1, "GPU UUID", "uuid", "uuid"},
    {PART_REST, 1, "Minor Number", "minor_number", "index"},
    {PART_REST, 1, "VBIOS Version", "vbios_version", "vbios_version"},
    {PART_REST, 1, "PCI", "pci", NULL},
    {PART_REST, 2, "Bus", "pci_bus", "pci.bus"},
    {PART_REST, 2, "Device", "pci_device", "pci.device"},
    {PART_REST, 2, "Domain", "pci_domain", "pci.domain"},
    {PART_REST, 2, "Bus Id", "pci_bus_id", "pci.bus_id"},
    {PART_REST, 1, "Fan Speed", "fan_speed", "fan.speed"},
    {PART_PERFORMANCE, 1, "Performance State", "performance_state", "pstate"},
    {PART_PERFORMANCE, 1, "Clocks Event Reasons", "clocks_event_reasons", "clocks_event_reasons.active"},
    {PART_MEMORY, 1, "FB Memory Usage", "fb_memory_usage", NULL},
    {PART_MEMORY, 2, "Total", "total", "memory.total"},
    {PART_MEMORY, 2, "Reserved", "reserved", "memory.reserved"},
    {PART_MEMORY, 2, "Used", "used", "memory.used"},
    {PART_MEMORY, 2, "Free", "free", "memory.free"},
    {PART_COMPUTE, 1, "Compute Mode", "compute_mode", "compute_mode"},
    {PART_UTILIZATION, 1, "Utilization", "utilization", NULL},
    {PART_UTILIZATION, 2, "GPU", "gpu_util", "utilization.gpu"},
    {PART_UTILIZATION, 2, "Memory", "memory_util", "utilization.memory"},
    {PART_UTILIZATION, 2, "Encoder", "encoder_util", "utilization.encoder"},
    {PART_UTILIZATION, 2, "Decoder", "decoder_util", "utilization.decoder"},
    {PART_TEMPERATURE, 1, "Temperature", "temperature", NULL},
    {PART_TEMPERATURE, 2, "GPU Current Temp", "gpu_temp", "temperature.gpu"},
    {PART_TEMPERATURE, 2, "Memory Current Temp", "memory_temp", "temperature.memory"},
    {PART_POWER, 1, "GPU Power Readings", "gpu_power_readings", NULL},
    {PART_POWER, 2, "Instantaneous Power Draw", "instant_power_draw", "power.draw.instant"},
    {PART_POWER, 2, "Current Power Limit", "current_power_limit", "enforced.power.limit"},
    {PART_POWER, 2, "Requested Power Limit", "requested_power_limit", "power.limit"},
    {PART_POWER, 2, "Default Power Limit", "default_power_limit", "power.default_limit"},
    {PART_POWER, 2, "Min Power Limit", "min_power_limit", "power.min_limit"},
    {PART_POWER, 2, "Max Power Limit", "max_power_limit", "power.max_limit"},
    {PART_CLOCK, 1, "Clocks", "clocks", NULL},
    {PART_CLOCK, 2, "Graphics", "graphics_clock", "clocks.current.graphics"},
    {PART_CLOCK, 2, "SM", "sm_clock", "clocks.current.sm"},
    {PART_CLOCK, 2, "Memory", "mem_clock", "clocks.current.memory"},
    {PART_CLOCK, 2, "Video", "video_clock", "clocks.current.video"},
    {PART_CLOCK, 1, "Max Clocks", "max_clocks", NULL},
    {PART_CLOCK, 2, "Graphics", "graphics_clock", "clocks.max.graphics"},
    {PART_CLOCK, 2, "SM", "sm_clock", "clocks.max.sm"},
    {PART_CLOCK, 2, "Memory", "mem_clock", "clocks.max.memory"},
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

/* Prints a value; a value that is not available reads N/A here. */
static void print_value(bool xml, int depth, const char *title, const char *tag, const char *value) {
    value = strcmp(value, HWS_SMI_NOT_AVAILABLE) == 0 ? "N/A" : value;
    if (xml) {
        printf("%*s<%s>", depth, "", tag);
        print_escaped(value);
        printf("</%s>\n", tag);
    } else {
        printf("%*s%-*s: %s\n", 4 * depth, "", COLUMN - 4 * depth, title, value);
    }
}

static void print_rows(bool xml, unsigned parts, nvmlDevice_t device) {
    const char *open = NULL; /* the tag of the group */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row_t *row = &rows[i];
        if ((row->part & parts) == 0) {
            continue;
        }
        if (xml && open != NULL && row->depth == 1) {
            printf("  </%s>\n", open);
            open = NULL;
        }
        if (row->field == NULL) {
            open = row->tag;
            printf(xml ? "  <%s>\n" : "    %s\n", xml ? row->tag : row->title);
        } else {
            char text[HWS_SMI_MAX_TEXT];
            hws_smi_read(hws_smi_field(row->field, strlen(row->field)), device, true, text);
            if (strncmp(row->field, "temperature.", 12) == 0 && text[0] != '[') {
                size_t length = strlen(text);
                snprintf(text + length, sizeof text - length, " C"); /* a query prints no unit */
            }
            print_value(xml, xml ? 1 + row->depth : row->depth, row->title, row->tag, text);
        }
    }
    if (xml && open != NULL) {
        printf("  </%s>\n", open);
    }
}

static void print_processes(bool xml, nvmlDevice_t device) {
    static nvmlProcessInfo_t processes[MAX_PROCESSES];
    unsigned count = MAX_PROCESSES;
    if (nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes) != NVML_SUCCESS) {
        count = 0;
    }
    if (xml) {
        puts("  <processes>");
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
            puts("   <process_info>");
        }
        print_value(xml, xml ? 4 : 2, "GPU instance ID", "gpu_instance_id", "N/A");
        print_value(xml, xml ? 4 : 2, "Compute instance ID", "compute_instance_id", "N/A");
        print_value(xml, xml ? 4 : 2, "Process ID", "pid", pid);
        print_value(xml, xml ? 4 : 3, "Type", "type", "C");
        print_value(xml, xml ? 4 : 3, "Name", "process_name", name);
        print_value(xml, xml ? 4 : 3, "Used GPU Memory", "used_memory", used);
        if (xml) {
            puts("   </process_info>");
        }
    }
    if (xml) {
        puts("  </processes>");
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
        printf(xml ? " <gpu id=\"%s\">\n" : "GPU %s\n", bus);
        print_rows(xml, parts, gpus->devices[i]);
        if ((parts & PART_PIDS) != 0) {
            print_processes(xml, gpus->devices[i]);
        }
        puts(xml ? " </gpu>" : "");
    }
    if (xml) {
        puts("</nvidia_smi_log>");
    }
    return 0;
}
