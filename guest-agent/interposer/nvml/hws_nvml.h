/*
 * Included by every file of libnvidia-ml.so.1. The library has no session: it answers from the vGPU's status
 * (hws_status.h). nvmlInit reads the status. A function whose answer changes reads it again when it is older than
 * HWS_NVML_REFRESH_MS. The GPUs stay those that nvmlInit found. Any thread.
 */
#ifndef HWS_NVML_H
#define HWS_NVML_H

#include "hws_nvml_types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HWS_EXPORT __attribute__((visibility("default")))

#define HWS_NVML_REFRESH_MS 500
#define HWS_NVML_MAX_GPUS 64        /* broker-chosen; sizes the table of handles */
#define HWS_NVML_MAX_PROCESSES 1024 /* broker-chosen; sizes the table of processes */

/* Figures of the line "sensors" of the status, in its order. */
typedef enum hws_sensor {
    HWS_SENSOR_MEMORY_UTILIZATION,
    HWS_SENSOR_POWER_MW,
    HWS_SENSOR_ENFORCED_LIMIT_MW,
    HWS_SENSOR_LIMIT_MW,
    HWS_SENSOR_DEFAULT_LIMIT_MW,
    HWS_SENSOR_MIN_LIMIT_MW,
    HWS_SENSOR_MAX_LIMIT_MW,
    HWS_SENSOR_ENERGY_MJ,
    HWS_SENSOR_CLOCK_MHZ,                                /* four, in the order of nvmlClockType_t */
    HWS_SENSOR_MAX_CLOCK_MHZ = HWS_SENSOR_CLOCK_MHZ + 4, /* four */
    HWS_SENSOR_PERFORMANCE_STATE = HWS_SENSOR_MAX_CLOCK_MHZ + 4,
    HWS_SENSOR_CLOCK_REASONS,
    HWS_SENSOR_SUPPORTED_CLOCK_REASONS,
    HWS_SENSOR_MEMORY_CELSIUS,
    HWS_SENSOR_INSTANT_POWER_MW,
    HWS_SENSOR_ERRORS, /* four: nvmlEccCounterType_t times nvmlMemoryErrorType_t */
    HWS_SENSORS = HWS_SENSOR_ERRORS + 4,
} hws_sensor_t;

/* Figures of the line "traits" of the status, in its order. The peers are among them. */
typedef enum hws_trait {
    HWS_TRAIT_RESERVED_BYTES,
    HWS_TRAIT_ECC_MODE,
    HWS_TRAIT_PENDING_ECC_MODE,
    HWS_TRAIT_PCI_DEVICE_ID,
    HWS_TRAIT_PCI_SUBSYSTEM_ID,
    HWS_TRAITS_BEFORE_PEERS,
    HWS_TRAIT_PCIE_GENERATION = HWS_TRAITS_BEFORE_PEERS, /* an older broker does not tell this and the following */
    HWS_TRAIT_GPU_PCIE_GENERATION,
    HWS_TRAIT_MAX_PCIE_WIDTH,
    HWS_TRAIT_PCIE_WIDTH,
    HWS_TRAITS,
} hws_trait_t;

#define HWS_PEER_DIGITS 4 /* of the line "traits": reading, writing, atomics, properties */

/* A GPU of the vGPU. A figure is -1 where the broker reports none. */
typedef struct hws_nvml_gpu {
    unsigned index;
    bool present; /* in the last status */
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
    char uuid[48]; /* "GPU-" and the digits */
    long long total_bytes, used_bytes, utilization, celsius;
    long long domain, bus, device; /* of the PCI address */
    int major, minor;              /* compute capability; 0: unknown */
    long long traits[HWS_TRAITS], sensors[HWS_SENSORS];
    char peers[HWS_PEER_DIGITS * HWS_NVML_MAX_GPUS + 1]; /* by the index of the other GPU; may be too short */
} hws_nvml_gpu_t;

/* A process of this machine that has a session of the vGPU. */
typedef struct hws_nvml_process {
    unsigned pid;
    long long used_bytes;
} hws_nvml_process_t;

/* What the status says. */
typedef struct hws_nvml_facts {
    char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE]; /* "": unknown */
    unsigned gpu_count, process_count;
    hws_nvml_gpu_t gpus[HWS_NVML_MAX_GPUS];
    hws_nvml_process_t processes[HWS_NVML_MAX_PROCESSES];
} hws_nvml_facts_t;

/*
 * Reads a status. Changes the text: ends of fields become NULs. The text is a broker's and may have any bytes; lines
 * that are malformed or too many are skipped. `host`: sessions of other machines are skipped.
 */
void hws_nvml_parse(char *text, const char *host, hws_nvml_facts_t *facts_p);

/* Counts an initialisation; the first one reads the status. */
nvmlReturn_t hws_nvml_start(void);

/* Counts it down. */
nvmlReturn_t hws_nvml_stop(void);

/* NVML_SUCCESS, or NVML_ERROR_UNINITIALIZED. */
nvmlReturn_t hws_nvml_entered(void);

/* Sets a number that is the same for each device of a vGPU. */
nvmlReturn_t hws_nvml_answer(nvmlDevice_t device, unsigned value, unsigned *value_p);

/* The number of GPUs, and the version of the driver beside them. NVML_ERROR_UNINITIALIZED before nvmlInit. */
nvmlReturn_t hws_nvml_vgpu(unsigned *count_p, char driver_p[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE]);

/* The handle of a GPU; an index beyond the count is invalid. */
nvmlDevice_t hws_nvml_handle(unsigned index);

/*
 * Copies what is known of a GPU. With `fresh`, reads the status again when it is old; then a GPU that the broker no
 * longer reports is lost. Returns NVML_ERROR_UNINITIALIZED, NVML_ERROR_INVALID_ARGUMENT for an unknown handle,
 * NVML_ERROR_GPU_IS_LOST.
 */
nvmlReturn_t hws_nvml_gpu(nvmlDevice_t device, bool fresh, hws_nvml_gpu_t *gpu_p);

/*
 * Copies the processes, at most `capacity`, from a fresh status. *count_p: how many there are. Returns as
 * hws_nvml_gpu().
 */
nvmlReturn_t hws_nvml_processes(nvmlDevice_t device, hws_nvml_process_t *processes_p, unsigned capacity,
                                unsigned *count_p);

/* Copies a text with its NUL. NVML_ERROR_INSUFFICIENT_SIZE when it does not fit. */
nvmlReturn_t hws_nvml_text(const char *text, char *buffer_p, unsigned capacity);

/* Logs once that a function is not supported. NVML_ERROR_NOT_SUPPORTED, or NVML_ERROR_UNINITIALIZED. */
nvmlReturn_t hws_unsupported(const char *name);

/* Returns an error to the caller. */
#define HWS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        nvmlReturn_t hws_tried = (call);                                                                               \
        if (hws_tried != NVML_SUCCESS) {                                                                               \
            return hws_tried;                                                                                          \
        }                                                                                                              \
    } while (0)

/* Returns NVML_ERROR_INVALID_ARGUMENT unless the condition holds; before nvmlInit, NVML_ERROR_UNINITIALIZED. */
#define HWS_REQUIRE(condition)                                                                                         \
    do {                                                                                                               \
        HWS_TRY(hws_nvml_entered());                                                                                   \
        if (!(condition)) {                                                                                            \
            return NVML_ERROR_INVALID_ARGUMENT;                                                                        \
        }                                                                                                              \
    } while (0)

#endif
