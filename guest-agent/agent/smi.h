/* Shared by the files of `hawser smi`. They ask libnvidia-ml's functions, which are linked into the command. */
#ifndef HWS_SMI_H
#define HWS_SMI_H

#include "hws_nvml_types.h"

#include <stdbool.h>
#include <stddef.h>

#define HWS_SMI_MAX_GPUS 64
#define HWS_SMI_MAX_TEXT 256
#define HWS_SMI_NOT_AVAILABLE "[N/A]"

/* A property that --query-gpu names. */
typedef struct hws_smi_field {
    const char *name, *other; /* nvidia-smi's names; `other` may be NULL */
    const char *unit;         /* "" for none */
    const char *description;  /* NULL where read is NULL */
    /* Writes the value without its unit. NULL: a vGPU never has it. */
    nvmlReturn_t (*read)(nvmlDevice_t device, char text_p[HWS_SMI_MAX_TEXT]);
} hws_smi_field_t;

/* The chosen GPUs, in the order of their indexes. */
typedef struct hws_smi_gpus {
    unsigned count;
    nvmlDevice_t devices[HWS_SMI_MAX_GPUS];
} hws_smi_gpus_t;

/* The parts of --format=csv[,noheader][,nounits]. */
typedef struct hws_smi_format {
    bool header, units;
} hws_smi_format_t;

/* The field of a name of this length, or NULL. */
const hws_smi_field_t *hws_smi_field(const char *name, size_t length);

/* The field of a name, also one that only -q prints. */
const hws_smi_field_t *hws_smi_log_field(const char *name);

/*
 * Reads a field: its value, "[N/A]" where it is not supported, or NVML's text of an error in brackets. With `units`,
 * the value's unit follows.
 */
void hws_smi_read(const hws_smi_field_t *field, nvmlDevice_t device, bool units, char text_p[HWS_SMI_MAX_TEXT]);

/* Lists the fields for --help-query-gpu. */
void hws_smi_list_fields(void);

/* The time in the form of a query: 2026/11/23 07:45:12.123. */
void hws_smi_timestamp(char text_p[HWS_SMI_MAX_TEXT]);

/* Prints the properties of the GPUs. Returns 0, or -1 with a message for an unknown name. */
int hws_smi_query_gpus(const char *fields, const hws_smi_gpus_t *gpus, const hws_smi_format_t *format, char *error_p,
                       size_t error_capacity);

/* Prints the properties of the GPUs' compute processes. Returns as hws_smi_query_gpus(). */
int hws_smi_query_processes(const char *fields, const hws_smi_gpus_t *gpus, const hws_smi_format_t *format,
                            char *error_p, size_t error_capacity);

/* Lists the fields for --help-query-compute-apps. */
void hws_smi_list_process_fields(void);

/*
 * Prints all there is to say of the GPUs, as text or as XML. `parts` limits it to parts of nvidia-smi's -d, separated
 * by commas; NULL for all. Returns 0, or -1 with a message for an unknown part.
 */
int hws_smi_log(const hws_smi_gpus_t *gpus, const char *parts, bool xml, char *error_p, size_t error_capacity);

/* hawser smi dmon. argv[0] is "dmon". Returns the exit code. */
int hws_smi_dmon(int argc, char **argv);

/* Chooses GPUs: indexes, UUIDs or PCI bus ids, separated by commas; NULL for all. Returns 0, or -1: there is none. */
int hws_smi_choose(const char *ids, hws_smi_gpus_t *gpus_p);

#endif
