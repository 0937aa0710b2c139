/* hawser smi --query-gpu and --query-compute-apps: rows of values separated by commas. */
#include "smi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PROCESS_FIELDS 128
#define MAX_PROCESSES 1024
#define MIB (1 << 20)

/* Properties of a process. */
typedef enum process_field {
    TIMESTAMP,
    GPU_NAME,
    GPU_BUS_ID,
    GPU_SERIAL,
    GPU_UUID,
    PID,
    PROCESS_NAME,
    USED_MEMORY
} process_field_t;

static const struct {
    const char *name, *other, *unit, *description;
} process_fields[] = {
    [TIMESTAMP] = {"timestamp", NULL, "", "The time of the query."},
    [GPU_NAME] = {"gpu_name", NULL, "", "The GPU's name."},
    [GPU_BUS_ID] = {"gpu_bus_id", NULL, "", "The GPU's PCI address."},
    [GPU_SERIAL] = {"gpu_serial", NULL, "", "Not available to a vGPU."},
    [GPU_UUID] = {"gpu_uuid", NULL, "", "The GPU's UUID."},
    [PID] = {"pid", NULL, "", "The process on this machine."},
    [PROCESS_NAME] = {"process_name", "name", "", "The name of its program."},
    [USED_MEMORY] = {"used_gpu_memory", "used_memory", "MiB", "Its device memory; with several GPUs not available."},
};

/* The next part of a list; NULL at its end. Blanks around a part do not count. */
static const char *next_part(const char **at, size_t *length_p) {
    if (*at == NULL) {
        return NULL;
    }
    const char *part = *at + strspn(*at, " "), *comma = strchr(part, ',');
    *length_p = comma == NULL ? strlen(part) : (size_t) (comma - part);
    *at = comma == NULL ? NULL : comma + 1;
    while (*length_p > 0 && part[*length_p - 1] == ' ') {
        --*length_p;
    }
    return part;
}

static int refuse(const char *part, size_t length, char *error_p, size_t error_capacity) {
    snprintf(error_p, error_capacity, "Field \"%.*s\" is not a valid field to query.\n", (int) length, part);
    return -1;
}

static void print_head(unsigned column, const char *name, const char *unit) {
    printf("%s%s", column == 0 ? "" : ", ", name);
    if (unit[0] != '\0') {
        printf(" [%s]", unit);
    }
}

int hws_smi_query_gpus(const char *fields, const hws_smi_gpus_t *gpus, const hws_smi_format_t *format, char *error_p,
                       size_t error_capacity) {
    size_t length;
    unsigned column = 0;
    const char *at = fields;
    for (const char *part; (part = next_part(&at, &length)) != NULL;) {
        if (hws_smi_field(part, length) == NULL) {
            return refuse(part, length, error_p, error_capacity);
        }
    }
    at = format->header ? fields : NULL;
    for (const char *part; (part = next_part(&at, &length)) != NULL;) {
        const hws_smi_field_t *field = hws_smi_field(part, length);
        print_head(column++, field->name, field->unit);
    }
    printf(format->header ? "\n" : "");
    for (unsigned gpu = 0; gpu < gpus->count; gpu++) {
        column = 0;
        at = fields;
        for (const char *part; (part = next_part(&at, &length)) != NULL;) {
            char text[HWS_SMI_MAX_TEXT];
            hws_smi_read(hws_smi_field(part, length), gpus->devices[gpu], format->units, text);
            printf("%s%s", column++ == 0 ? "" : ", ", text);
        }
        puts("");
    }
    return 0;
}

static void read_gpu(const char *name, nvmlDevice_t device, char text[HWS_SMI_MAX_TEXT]) {
    hws_smi_read(hws_smi_field(name, strlen(name)), device, false, text);
}

static void read_process(process_field_t field, nvmlDevice_t device, const nvmlProcessInfo_t *process, bool units,
                         char text[HWS_SMI_MAX_TEXT]) {
    snprintf(text, HWS_SMI_MAX_TEXT, "%s", HWS_SMI_NOT_AVAILABLE);
    switch (field) {
        case TIMESTAMP:
            hws_smi_timestamp(text);
            break;
        case GPU_NAME:
            read_gpu("name", device, text);
            break;
        case GPU_BUS_ID:
            read_gpu("pci.bus_id", device, text);
            break;
        case GPU_SERIAL:
            break;
        case GPU_UUID:
            read_gpu("uuid", device, text);
            break;
        case PID:
            snprintf(text, HWS_SMI_MAX_TEXT, "%u", process->pid);
            break;
        case PROCESS_NAME:
            if (nvmlSystemGetProcessName(process->pid, text, HWS_SMI_MAX_TEXT) != NVML_SUCCESS) {
                snprintf(text, HWS_SMI_MAX_TEXT, "[Not Found]");
            }
            break;
        case USED_MEMORY:
            if (process->usedGpuMemory != (unsigned long long) NVML_VALUE_NOT_AVAILABLE) {
                snprintf(text, HWS_SMI_MAX_TEXT, units ? "%llu MiB" : "%llu", process->usedGpuMemory / MIB);
            }
            break;
    }
}

/* Returns the field, or -1. */
static int find_process_field(const char *part, size_t length) {
    for (size_t i = 0; i < sizeof process_fields / sizeof *process_fields; i++) {
        const char *name = process_fields[i].name, *other = process_fields[i].other;
        if ((strlen(name) == length && memcmp(name, part, length) == 0)
            || (other != NULL && strlen(other) == length && memcmp(other, part, length) == 0)) {
            return (int) i;
        }
    }
    return -1;
}

int hws_smi_query_processes(const char *fields, const hws_smi_gpus_t *gpus, const hws_smi_format_t *format,
                            char *error_p, size_t error_capacity) {
    static nvmlProcessInfo_t processes[MAX_PROCESSES];
    int chosen[MAX_PROCESS_FIELDS];
    unsigned count = 0;
    size_t length;
    for (const char *part; (part = next_part(&fields, &length)) != NULL;) {
        int field = find_process_field(part, length);
        if (field < 0 || count == MAX_PROCESS_FIELDS) {
            return refuse(part, length, error_p, error_capacity);
        }
        chosen[count++] = field;
    }
    for (unsigned i = 0; format->header && i < count; i++) {
        print_head(i, process_fields[chosen[i]].name, process_fields[chosen[i]].unit);
    }
    printf(format->header ? "\n" : "");
    for (unsigned gpu = 0; gpu < gpus->count; gpu++) {
        unsigned found = MAX_PROCESSES;
        if (nvmlDeviceGetComputeRunningProcesses_v3(gpus->devices[gpu], &found, processes) != NVML_SUCCESS) {
            found = 0;
        }
        for (unsigned row = 0; row < found; row++) {
            for (unsigned i = 0; i < count; i++) {
                char text[HWS_SMI_MAX_TEXT];
                read_process((process_field_t) chosen[i], gpus->devices[gpu], &processes[row], format->units, text);
                printf("%s%s", i == 0 ? "" : ", ", text);
            }
            puts("");
        }
    }
    return 0;
}

void hws_smi_list_process_fields(void) {
    puts("List of valid properties to query for the switch \"--query-compute-apps=\":\n");
    for (size_t i = 0; i < sizeof process_fields / sizeof *process_fields; i++) {
        printf("\"%s\"", process_fields[i].name);
        if (process_fields[i].other != NULL) {
            printf(" or \"%s\"", process_fields[i].other);
        }
        printf("\n%s\n\n", process_fields[i].description);
    }
}
