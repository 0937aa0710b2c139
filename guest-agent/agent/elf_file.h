/* What a program or library says of itself, as far as it matters for CUDA. */
#ifndef HWS_ELF_FILE_H
#define HWS_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define HWS_ELF_MAX_NEEDED 128 /* file-chosen, sizes a table */

typedef struct hws_elf_file {
    bool is_elf;             /* for Linux on x86-64; the rest is empty otherwise */
    bool is_script;          /* begins with "#!" */
    bool has_device_code;    /* carries CUDA device code */
    bool wants_runtime;      /* registers device code with a CUDA runtime that is a library */
    bool is_dynamic;         /* uses the dynamic linker */
    char interpreter[256];   /* dynamic linker, or a script's interpreter */
    char needed[HWS_ELF_MAX_NEEDED][128]; /* libraries that it names */
    size_t needed_count;
    char run_path[1024];     /* DT_RPATH or DT_RUNPATH, "" for none */
} hws_elf_file_t;

/*
 * Reads a file; every offset in it is checked. Returns 0, also for a file that is neither ELF nor a script; or -1 with a
 * sentence: it cannot be read, or is a damaged ELF file.
 */
int hws_elf_read(const char *path, hws_elf_file_t *file_p, char *error_p, size_t error_capacity);

/* The same for bytes in memory. */
int hws_elf_parse(const unsigned char *bytes, size_t length, hws_elf_file_t *file_p);

/* Whether it contains NVIDIA's CUDA runtime: device code, and no library to register it with. */
bool hws_elf_has_static_runtime(const hws_elf_file_t *file);

#endif
