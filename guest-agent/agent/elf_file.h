/* The properties of a program or library that matter for CUDA. */
#ifndef HWS_ELF_FILE_H
#define HWS_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define HWS_ELF_MAX_NEEDED 128 /* file-chosen, sizes a table */

typedef struct hws_elf_file {
    bool is_elf;                          /* for Linux on x86-64; otherwise the rest is empty */
    bool is_script;                       /* begins with "#!" */
    bool has_device_code;                 /* carries CUDA device code */
    bool wants_runtime;                   /* registers device code with a CUDA runtime in a library */
    bool is_dynamic;                      /* uses the dynamic linker */
    char interpreter[256];                /* dynamic linker, or a script's interpreter */
    char needed[HWS_ELF_MAX_NEEDED][128]; /* libraries that it names */
    size_t needed_count;
    char run_path[1024]; /* DT_RPATH or DT_RUNPATH, "" for none */
} hws_elf_file_t;

/*
 * Reads a file and checks every offset in it. Returns 0, also for a file that is neither ELF nor a script. Returns -1
 * with a message when it cannot be read or is a damaged ELF file.
 */
int hws_elf_read(const char *path, hws_elf_file_t *file_p, char *error_p, size_t error_capacity);

/* The same for bytes in memory. */
int hws_elf_parse(const unsigned char *bytes, size_t length, hws_elf_file_t *file_p);

/* Whether the file contains NVIDIA's CUDA runtime: it has device code, and registers it with no library. */
bool hws_elf_has_static_runtime(const hws_elf_file_t *file);

#endif
