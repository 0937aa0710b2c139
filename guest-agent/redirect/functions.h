/* The functions of a statically linked CUDA runtime, found by their public names in a file's symbol table. */
#ifndef HWS_FUNCTIONS_H
#define HWS_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of names that we know; a name's number is its place in their order. */
enum {
    HWS_RUNTIME_NAMES = 0
#define HWS_RUNTIME_NAME(name, versions) +1
#include "hws_runtime_names.h"
#undef HWS_RUNTIME_NAME
};

#define HWS_MAX_FUNCTIONS 2048 /* file-chosen, sizes a table; a runtime has fewer than 450 */

typedef struct hws_function {
    uint64_t address; /* before relocation */
    uint64_t offset;  /* of its first byte in the file */
    uint64_t size;    /* in bytes; at least 1 */
    uint32_t name;
} hws_function_t;

typedef struct hws_functions {
    int major;    /* of the CUDA runtime in the file: 12, 13, 11 for 11 and older, or 0 for no runtime */
    size_t count; /* 0 unless the major is 12 or 13 */
    hws_function_t at[HWS_MAX_FUNCTIONS]; /* in the order of addresses, without overlaps, in one executable segment */
} hws_functions_t;

/* The name with this number. */
const char *hws_runtime_name(uint32_t name);

/* Whether our library for this major, 12 or 13, has the function. */
int hws_runtime_has(int major, uint32_t name);

/*
 * Reads bytes of a file from an offset. Returns false when it has fewer: it has become shorter, or its disk fails. Any
 * thread.
 */
bool hws_functions_read_at(int fd, uint64_t offset, void *to, size_t bytes);

/*
 * Reads the functions that our library of the same major has. Reads the file in pieces and checks each offset, because
 * a file may be damaged, and may change while it is read. Returns 0, also for a file that is not ELF for x86-64 or has
 * no symbol table. Returns -1 with a message when the file is damaged. Any thread.
 */
int hws_functions_read(int fd, hws_functions_t *functions_p, char *error_p, size_t error_capacity);

#endif
