/*
 * NVML beside CUDA in one process, as PyTorch uses both: the functions are found by name in libnvidia-ml.so.1. The
 * device is CUDA's device by PCI address, UUID, name and capability; its used memory grows with an allocation. Many
 * initialisations leave the session as it is.
 */
#include "check_driver.h"

#include <dlfcn.h>
#include <strings.h>
#include <time.h>

#define MAX_PROCESSES 4096
#define ALLOCATION_BYTES ((size_t) 64 << 20)
#define PATIENCE_S 30 /* ends the test when a figure never changes */
#define ROUND_S 4     /* readings may be a second old */
#define ROUNDS 200

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7 };

typedef struct memory {
    unsigned long long total, free, used;
} memory_t;
typedef struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
} process_t;
typedef struct nvmlDevice_st *device_t;

#ifndef HAWSER_NVIDIA_HEADER
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev);
CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev);
#endif

static void *library;

static void *find(const char *name) {
    void *function = dlsym(library, name);
    if (function == NULL) {
        check_fail("libnvidia-ml.so.1 lacks %s", name);
    }
    return function;
}

/* Calls a function of NVML by its name. */
#define NVML(name, parameters, ...) (((int(*) parameters) find(name))(__VA_ARGS__))
#define NVML_PLAIN(name) (((int (*)(void)) find(name))())

static void expect(const char *name, int wanted, int got) {
    check_equal(name, wanted, got);
}

static unsigned long long used(device_t device) {
    memory_t memory;
    expect("nvmlDeviceGetMemoryInfo", SUCCESS,
           NVML("nvmlDeviceGetMemoryInfo", (device_t, memory_t *), device, &memory));
    check_true("used and free memory must fit into the total", memory.used + memory.free <= memory.total);
    return memory.used;
}

static int lists_this_process(device_t device) {
    static process_t processes[MAX_PROCESSES];
    unsigned count = MAX_PROCESSES;
    expect("nvmlDeviceGetComputeRunningProcesses_v3", SUCCESS,
           NVML("nvmlDeviceGetComputeRunningProcesses_v3", (device_t, unsigned *, process_t *), device, &count,
                processes));
    for (unsigned i = 0; i < count; i++) {
        if (processes[i].pid == (unsigned) getpid()) {
            return 1;
        }
    }
    return 0;
}

/* Locks of files that this process holds, as the kernel lists them. libcuda.so.1 of Hawser holds its slot by one. */
static int held_locks(void) {
    char line[512];
    int count = 0, pid;
    FILE *file = fopen("/proc/locks", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        count += sscanf(line, "%*d: POSIX %*s %*s %d", &pid) == 1 && pid == getpid();
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

static device_t open_device(CUdevice cuda) {
    char bus[64], name[256], wanted[256], uuid[96], text[64];
    int major, minor, cuda_major, cuda_minor, length;
    CUuuid bytes;
    device_t device, other;
    CU_OK(cuDeviceGetPCIBusId(bus, sizeof bus, cuda));
    expect("nvmlDeviceGetHandleByPciBusId_v2", SUCCESS,
           NVML("nvmlDeviceGetHandleByPciBusId_v2", (const char *, device_t *), bus, &device));
    expect("nvmlDeviceGetName", SUCCESS,
           NVML("nvmlDeviceGetName", (device_t, char *, unsigned), device, name, sizeof name));
    CU_OK(cuDeviceGetName(wanted, sizeof wanted, cuda));
    check_text("the name", wanted, name);
    CU_OK(cuDeviceGetUuid(&bytes, cuda));
    length = snprintf(text, sizeof text, "GPU-");
    for (int i = 0; i < 16; i++) {
        length += snprintf(text + length, sizeof text - (size_t) length,
                           i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", (unsigned char) bytes.bytes[i]);
    }
    expect("nvmlDeviceGetUUID", SUCCESS,
           NVML("nvmlDeviceGetUUID", (device_t, char *, unsigned), device, uuid, sizeof uuid));
    check_text("the UUID", text, uuid);
    expect("nvmlDeviceGetUUID", INSUFFICIENT_SIZE,
           NVML("nvmlDeviceGetUUID", (device_t, char *, unsigned), device, uuid, 10));
    expect("nvmlDeviceGetHandleByUUID", SUCCESS,
           NVML("nvmlDeviceGetHandleByUUID", (const char *, device_t *), text, &other));
    check_true("the UUID must lead to the same device", device == other);
    CU_OK(cuDeviceGetAttribute(&cuda_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, cuda));
    CU_OK(cuDeviceGetAttribute(&cuda_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, cuda));
    expect("nvmlDeviceGetCudaComputeCapability", SUCCESS,
           NVML("nvmlDeviceGetCudaComputeCapability", (device_t, int *, int *), device, &major, &minor));
    check_equal("the capability", cuda_major * 10 + cuda_minor, major * 10 + minor);
    return device;
}

/* Calls NVML until `done` returns true. Returns whether it did in that time. */
static int wait_until(int (*done)(device_t, unsigned long long), device_t device, unsigned long long value,
                      double seconds) {
    const struct timespec pause = {0, 20000000};
    double end = check_seconds() + seconds;
    while (!done(device, value)) {
        if (check_seconds() > end) {
            return 0;
        }
        nanosleep(&pause, NULL);
    }
    return 1;
}

static int holds(device_t device, unsigned long long bytes) {
    return used(device) >= bytes;
}

static int holds_at_most(device_t device, unsigned long long bytes) {
    return used(device) <= bytes;
}

/*
 * Whether used memory follows an allocation and its end. A first reading may be older than the process's context, and
 * other processes may use the device, so a round can fail.
 */
static int follows(device_t device) {
    unsigned long long before = used(device);
    CUdeviceptr memory = check_device(NULL, ALLOCATION_BYTES);
    int has_grown = wait_until(holds, device, before + ALLOCATION_BYTES, ROUND_S);
    unsigned long long held = used(device);
    CU_OK(cuMemFree(memory));
    /* Also after a failure: the next round must not begin with memory that the process still keeps. */
    int has_fallen = wait_until(holds_at_most, device, held - ALLOCATION_BYTES, ROUND_S);
    return has_grown && has_fallen;
}

static int is_listed(device_t device, unsigned long long unused) {
    (void) unused;
    return lists_this_process(device);
}

int main(int argc, char **argv) {
    unsigned count, locks;
    size_t free_bytes, total_bytes;
    CUdevice cuda;
    check_begin(argc, argv);
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == NULL) {
        check_unsupported("libnvidia-ml.so.1 cannot be loaded: %s", dlerror());
    }
    check_context();
    CU_OK(cuDeviceGet(&cuda, 0));
    expect("nvmlDeviceGetCount_v2", UNINITIALIZED, NVML("nvmlDeviceGetCount_v2", (unsigned *), &count));
    locks = (unsigned) held_locks();
    expect("nvmlInit_v2", SUCCESS, NVML_PLAIN("nvmlInit_v2"));
    expect("nvmlDeviceGetCount_v2", SUCCESS, NVML("nvmlDeviceGetCount_v2", (unsigned *), &count));
    check_true("there must be a device", count > 0);
    device_t device = open_device(cuda), nothing;
    int mode;
    expect("nvmlDeviceGetHandleByIndex_v2", INVALID_ARGUMENT,
           NVML("nvmlDeviceGetHandleByIndex_v2", (unsigned, device_t *), count, &nothing));
    expect("nvmlDeviceGetComputeMode", SUCCESS, NVML("nvmlDeviceGetComputeMode", (device_t, int *), device, &mode));
    CU_OK(cuMemGetInfo(&free_bytes, &total_bytes));

    double end = check_seconds() + PATIENCE_S;
    while (!follows(device)) {
        check_true("used memory must follow an allocation", check_seconds() < end);
    }
    /* A container may hide the process from the driver, or have other process ids. */
    check_here("process: %s", wait_until(is_listed, device, 0, ROUND_S) ? "listed" : "not listed");
    for (int i = 0; i < ROUNDS; i++) {
        expect("nvmlInit_v2", SUCCESS, NVML_PLAIN("nvmlInit_v2"));
        used(device);
        expect("nvmlShutdown", SUCCESS, NVML_PLAIN("nvmlShutdown"));
    }
    expect("nvmlShutdown", SUCCESS, NVML_PLAIN("nvmlShutdown"));
    expect("nvmlShutdown", UNINITIALIZED, NVML_PLAIN("nvmlShutdown"));
    expect("nvmlInit_v2", SUCCESS, NVML_PLAIN("nvmlInit_v2"));
    used(open_device(cuda)); /* handles end with NVML */
    check_equal("locks of files after NVML", (long long) locks, held_locks());
    CU_OK(cuCtxSynchronize());
    return check_pass("the device is CUDA's, and its memory follows allocations");
}
