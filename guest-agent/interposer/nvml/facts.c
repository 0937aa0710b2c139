/* Reads the text of a status. */
#include "hws_nvml.h"

#include "hws_status_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of a line of the status: hws_status.h. */
enum {
    GPU_INDEX = 1,
    GPU_NAME,
    GPU_UUID,
    GPU_TOTAL,
    GPU_USED,
    GPU_BUSY,
    GPU_CELSIUS,
    GPU_WATTS,
    GPU_PCI,
    GPU_CAPABILITY
};
enum { PROCESS_PID = 1, PROCESS_HOST, PROCESS_BYTES };
enum { SESSION_PID = 2, SESSION_HOST = 4, SESSION_STATE = 6, SESSION_BYTES = 7 };

static void copy(char *target, size_t capacity, const char *text) {
    snprintf(target, capacity, "%s", text);
}

/* An address as CUDA prints it: "0000:19:00.0", with 4 or 8 digits of the domain. */
static void read_address(const char *text, hws_nvml_gpu_t *gpu) {
    unsigned domain, bus, device;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &device) == 3 && bus <= 0xff && device <= 0x1f) {
        gpu->domain = domain;
        gpu->bus = bus;
        gpu->device = device;
    }
}

static void read_gpu(const hws_status_line_t *line, hws_nvml_facts_t *facts) {
    /* The broker counts the GPUs from 0. */
    if (facts->gpu_count == HWS_NVML_MAX_GPUS || hws_status_number(line->fields[GPU_INDEX]) != facts->gpu_count
        || line->fields[GPU_UUID][0] == '\0') {
        return;
    }
    hws_nvml_gpu_t *gpu = &facts->gpus[facts->gpu_count];
    *gpu = (hws_nvml_gpu_t) {.index = facts->gpu_count++, .present = true, .domain = -1, .bus = -1, .device = -1};
    copy(gpu->name, sizeof gpu->name, line->fields[GPU_NAME]);
    int length = snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%.*s", (int) sizeof gpu->uuid - 5, line->fields[GPU_UUID]);
    for (int i = 4; i < length; i++) {
        gpu->uuid[i] = (char) tolower((unsigned char) gpu->uuid[i]);
    }
    gpu->total_bytes = hws_status_number(line->fields[GPU_TOTAL]);
    gpu->used_bytes = hws_status_number(line->fields[GPU_USED]);
    gpu->utilization = hws_status_number(line->fields[GPU_BUSY]);
    gpu->celsius = hws_status_number(line->fields[GPU_CELSIUS]);
    read_address(line->fields[GPU_PCI], gpu);
    if (sscanf(line->fields[GPU_CAPABILITY], "%d.%d", &gpu->major, &gpu->minor) != 2) {
        gpu->major = gpu->minor = 0;
    }
    for (int i = 0; i < HWS_SENSORS; i++) {
        gpu->sensors[i] = -1;
    }
    for (int i = 0; i < HWS_TRAITS; i++) {
        gpu->traits[i] = -1;
    }
}

static void read_traits(const hws_status_line_t *line, hws_nvml_facts_t *facts) {
    long long index = hws_status_number(line->fields[1]);
    if (index < 0 || index >= facts->gpu_count) {
        return;
    }
    hws_nvml_gpu_t *gpu = &facts->gpus[index];
    for (int i = 0; i < HWS_TRAITS; i++) {
        int is_behind = i >= HWS_TRAITS_BEFORE_PEERS;
        gpu->traits[i] = hws_status_number(line->fields[2 + i + is_behind]);
    }
    copy(gpu->peers, sizeof gpu->peers, line->fields[2 + HWS_TRAITS_BEFORE_PEERS]);
}

static void read_sensors(const hws_status_line_t *line, hws_nvml_facts_t *facts) {
    long long index = hws_status_number(line->fields[1]);
    if (index < 0 || index >= facts->gpu_count) {
        return;
    }
    for (int i = 0; i < HWS_SENSORS; i++) {
        facts->gpus[index].sensors[i] = hws_status_number(line->fields[2 + i]);
    }
}

static void add_process(const char *pid_field, const char *host_field, const char *bytes_field, const char *host,
                        hws_nvml_facts_t *facts) {
    long long pid = hws_status_number(pid_field);
    if (facts->process_count < HWS_NVML_MAX_PROCESSES && pid > 0 && pid <= INT32_MAX && strcmp(host_field, host) == 0) {
        facts->processes[facts->process_count++] =
            (hws_nvml_process_t) {.pid = (unsigned) pid, .used_bytes = hws_status_number(bytes_field)};
    }
}

static void read_session(const hws_status_line_t *line, const char *host, hws_nvml_facts_t *facts) {
    if (strcmp(line->fields[SESSION_STATE], "ending") != 0) {
        add_process(line->fields[SESSION_PID], line->fields[SESSION_HOST], line->fields[SESSION_BYTES], host, facts);
    }
}

void hws_nvml_parse(char *text, const char *host, hws_nvml_facts_t *facts_p) {
    hws_status_line_t line;
    facts_p->driver[0] = '\0';
    facts_p->gpu_count = facts_p->process_count = 0;
    hws_status_clean(text);
    while (hws_status_next(&text, &line)) {
        const char *kind = line.fields[0];
        if (strcmp(kind, "driver") == 0 && strcmp(line.fields[1], "-") != 0) {
            copy(facts_p->driver, sizeof facts_p->driver, line.fields[1]);
        } else if (strcmp(kind, "gpu") == 0) {
            read_gpu(&line, facts_p);
        } else if (strcmp(kind, "traits") == 0) {
            read_traits(&line, facts_p);
        } else if (strcmp(kind, "sensors") == 0) {
            read_sensors(&line, facts_p);
        } else if (strcmp(kind, "session") == 0) {
            read_session(&line, host, facts_p);
        } else if (strcmp(kind, "process") == 0) {
            add_process(line.fields[PROCESS_PID], line.fields[PROCESS_HOST], line.fields[PROCESS_BYTES], host, facts_p);
        }
    }
}
