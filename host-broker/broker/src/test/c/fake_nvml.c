/*
 * A fake of NVIDIA's management library, with two GPUs. The words in the file FAKE_NVML_STATE select the faults, and a
 * test changes the file at any time: "lost0" (GPU 0 fell off the bus), "xid=N" (GPU 1 reports this error, once for each
 * new text), "hang" (the query of GPU 0's memory blocks while the word is there), "nopower" (no power sensor).
 * Compiled with FAKE_NVML_OLD, the library lacks the functions that old drivers lack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, LOST = 15 };

typedef struct {
    unsigned long long total, free, used;
} memory_t;
typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} memory_v2_t;
typedef struct {
    unsigned gpu, memory;
} utilization_t;
typedef struct {
    unsigned pid;
    unsigned long long bytes;
} process_v1_t;
typedef struct {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
} process_v2_t;
typedef struct {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
} event_t;

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type;
    int result;
    unsigned long long value;
} field_t;
typedef struct {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_t;

/* Greater than Linux's greatest process id (2 to the 22nd), so that no worker of a test has such an id. */
enum { FIRST_PID = 5000000 };

static int devices[2];

static const char *state(void) {
    static char text[256];
    FILE *file = fopen(FAKE_NVML_STATE, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = 0;
    if (file) {
        fclose(file);
    }
    return text;
}

static int index_of(void *device) {
    return (int) ((int *) device - devices);
}

static int lost(void *device) {
    return index_of(device) == 0 && strstr(state(), "lost0") ? LOST : SUCCESS;
}

int nvmlInit_v2(void) {
    return SUCCESS;
}
int nvmlShutdown(void) {
    return SUCCESS;
}
int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 2;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = &devices[index];
    return lost(*device);
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-%s",
             index_of(device) ? "BBBBBBBB-0000-4000-8000-000000000002" : "aaaaaaaa-0000-4000-8000-000000000001");
    return lost(device);
}

int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
    *memory = (memory_t) {.total = 1000, .free = 600, .used = 400};
    return lost(device);
}

int nvmlDeviceGetUtilizationRates(void *device, utilization_t *rates) {
    *rates = (utilization_t) {.gpu = 37, .memory = 99};
    return lost(device);
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
    *celsius = sensor == 0 ? 41 : 0;
    return lost(device);
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    snprintf(version, length, "580.159.03");
    return SUCCESS;
}

#ifdef FAKE_NVML_OLD

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, process_v1_t *processes) {
    if (*count < 2) {
        *count = 2;
        return INSUFFICIENT_SIZE;
    }
    *count = 2;
    processes[0] = (process_v1_t) {.pid = FIRST_PID, .bytes = 111};
    processes[1] = (process_v1_t) {.pid = FIRST_PID + 1, .bytes = ~0ULL};
    return lost(device);
}

#else

int nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2_t *memory) {
    if (memory->version != (sizeof *memory | 2u << 24)) {
        return 25;
    }
    while (index_of(device) == 0 && strstr(state(), "hang")) {
        usleep(1000);
    }
    *memory = (memory_v2_t) {.version = memory->version, .total = 1000, .reserved = 50, .free = 600, .used = 350};
    return lost(device);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    *milliwatts = 71500;
    return strstr(state(), "nopower") ? NOT_SUPPORTED : lost(device);
}

static int set(void *device, unsigned value, unsigned *value_p) {
    *value_p = value;
    return lost(device);
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
    return set(device, 700000, milliwatts);
}

int nvmlDeviceGetPowerManagementLimit(void *device, unsigned *milliwatts) {
    return set(device, 690000, milliwatts);
}

int nvmlDeviceGetPowerManagementDefaultLimit(void *device, unsigned *milliwatts) {
    return set(device, 680000, milliwatts);
}

int nvmlDeviceGetPowerManagementLimitConstraints(void *device, unsigned *least, unsigned *most) {
    *least = 200000;
    return set(device, 710000, most);
}

int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz) {
    return set(device, 1000 + (unsigned) clock, mhz);
}

int nvmlDeviceGetMaxClockInfo(void *device, int clock, unsigned *mhz) {
    return clock == 3 ? NOT_SUPPORTED : set(device, 2000 + (unsigned) clock, mhz);
}

int nvmlDeviceGetPerformanceState(void *device, unsigned *state) {
    return set(device, 2, state);
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
    *millijoules = 5000000000;
    return lost(device);
}

int nvmlDeviceGetSupportedClocksEventReasons(void *device, unsigned long long *reasons) {
    *reasons = 0x1ff;
    return lost(device);
}

int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *errors) {
    *errors = 100 + 10 * (unsigned) counter + (unsigned) kind;
    return lost(device);
}

/* Has the temperature of the memory and no other field. */
int nvmlDeviceGetFieldValues(void *device, int count, field_t *fields) {
    for (int i = 0; i < count; i++) {
        fields[i].value = 50;
        fields[i].result = fields[i].field == 82 ? SUCCESS : NOT_SUPPORTED;
    }
    return lost(device);
}

int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending) {
    *pending = 0;
    return set(device, 1, current);
}

int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *generation) {
    return set(device, 4, generation);
}

int nvmlDeviceGetGpuMaxPcieLinkGeneration(void *device, unsigned *generation) {
    return set(device, 5, generation);
}

int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *width) {
    return set(device, 16, width);
}

int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *width) {
    return set(device, 8, width);
}

int nvmlDeviceGetPciInfo_v3(void *device, pci_t *pci) {
    *pci = (pci_t) {.device_id = 0x233510DE, .subsystem_id = 0x18BE10DE};
    return lost(device);
}

/* Reading is possible, writing is not, and of other capabilities it says nothing. */
int nvmlDeviceGetP2PStatus(void *first, void *second, int capability, int *status) {
    *status = capability;
    return first == second || capability > 1 ? NOT_SUPPORTED : lost(first);
}

/* Reports more processes than a caller's first buffer holds. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_v2_t *processes) {
    unsigned room = *count;
    *count = 100;
    if (room < 100) {
        return INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; i < 100; i++) {
        processes[i] =
            (process_v2_t) {.pid = FIRST_PID + i, .bytes = 1000000 + i, .gpu_instance = ~0u, .compute_instance = ~0u};
    }
    return lost(device);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count, process_v2_t *processes) {
    if (index_of(device) == 0) {
        return NOT_SUPPORTED;
    }
    *count = 1;
    processes[0] = (process_v2_t) {.pid = 6000000, .bytes = 77};
    return SUCCESS;
}

static char seen_xid[64];

int nvmlEventSetCreate(void **set) {
    *set = seen_xid;
    return SUCCESS;
}

int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set) {
    return types == 8 && set == seen_xid ? lost(device) : NOT_FOUND;
}

int nvmlEventSetWait_v2(void *set, event_t *event, unsigned timeout_ms) {
    const char *xid = strstr(state(), "xid=");
    if (set != seen_xid || timeout_ms != 0) {
        return NOT_FOUND;
    }
    if (!xid || strncmp(xid, seen_xid, sizeof seen_xid - 1) == 0) {
        return TIMEOUT;
    }
    strncpy(seen_xid, xid, sizeof seen_xid - 1);
    *event = (event_t) {.device = &devices[1], .type = 8, .data = strtoull(xid + 4, NULL, 10)};
    return SUCCESS;
}

#endif
