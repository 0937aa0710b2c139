#include "functions.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SEGMENTS 64              /* file-chosen, sizes a table */
#define MAX_NAMES_BYTES (1ull << 30) /* file-chosen, sizes a buffer */
#define CHUNK 64                     /* sections that are read at once: 4 KiB of the stack */
#define SYMBOLS_CHUNK 256            /* the same for symbols: 6 KiB */

enum { CUDA_11 = 1, CUDA_12 = 2, CUDA_13 = 4 };

typedef struct name {
    const char *text;
    unsigned versions;
} name_t;

static const name_t names[HWS_RUNTIME_NAMES] = {
#define HWS_RUNTIME_NAME(name, versions) {name, versions},
#include "hws_runtime_names.h"
#undef HWS_RUNTIME_NAME
};

typedef struct elf {
    int fd;
    uint64_t bytes;
    Elf64_Ehdr header;
    Elf64_Phdr segments[MAX_SEGMENTS];
    bool is_program; /* has a dynamic linker */
    Elf64_Shdr symbols, strings;
    char *error;
    size_t error_capacity;
} elf_t;

#define DAMAGED(elf, ...) (snprintf((elf)->error, (elf)->error_capacity, __VA_ARGS__), -1)

const char *hws_runtime_name(uint32_t name) {
    return names[name].text;
}

int hws_runtime_has(int major, uint32_t name) {
    return (names[name].versions & (major == 13 ? CUDA_13 : CUDA_12)) != 0;
}

static int compare_name(const void *text, const void *name) {
    return strcmp(text, ((const name_t *) name)->text);
}

static bool is_inside(const elf_t *elf, uint64_t offset, uint64_t bytes) {
    return offset <= elf->bytes && bytes <= elf->bytes - offset;
}

bool hws_functions_read_at(int fd, uint64_t offset, void *to, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, (char *) to + done, bytes - done, (off_t) (offset + done));
        if (n > 0) {
            done += (size_t) n;
        } else if (n == 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}

static bool read_at(const elf_t *elf, uint64_t offset, void *to, uint64_t bytes) {
    return is_inside(elf, offset, bytes) && hws_functions_read_at(elf->fd, offset, to, bytes);
}

static int read_segments(elf_t *elf) {
    if (elf->header.e_phentsize != sizeof(Elf64_Phdr) || elf->header.e_phnum > MAX_SEGMENTS) {
        return DAMAGED(elf, "a file has at most %d segments of %zu bytes: %u of %u", MAX_SEGMENTS, sizeof(Elf64_Phdr),
                       elf->header.e_phnum, elf->header.e_phentsize);
    }
    if (!read_at(elf, elf->header.e_phoff, elf->segments, elf->header.e_phnum * sizeof(Elf64_Phdr))) {
        return DAMAGED(elf, "the segments lie outside the file");
    }
    for (unsigned i = 0; i < elf->header.e_phnum; i++) {
        elf->is_program = elf->is_program || elf->segments[i].p_type == PT_INTERP;
    }
    return 0;
}

/* Finds the symbol table and its names. Returns 1 when there is no table. */
static int find_symbols(elf_t *elf) {
    Elf64_Shdr chunk[CHUNK] = {0};
    bool found = false;
    unsigned count = elf->header.e_shnum;
    if (elf->header.e_shoff == 0 || count == 0) {
        return 1;
    }
    if (elf->header.e_shentsize != sizeof *chunk || !is_inside(elf, elf->header.e_shoff, count * sizeof *chunk)) {
        return DAMAGED(elf, "the sections lie outside the file");
    }
    for (unsigned first = 0; first < count && !found; first += CHUNK) {
        unsigned part = count - first < CHUNK ? count - first : CHUNK;
        if (!read_at(elf, elf->header.e_shoff + first * sizeof *chunk, chunk, part * sizeof *chunk)) {
            return DAMAGED(elf, "the sections cannot be read");
        }
        for (unsigned i = 0; i < part && !found; i++) {
            found = chunk[i].sh_type == SHT_SYMTAB;
            elf->symbols = chunk[i];
        }
    }
    if (!found) {
        return 1;
    }
    if (elf->symbols.sh_entsize != sizeof(Elf64_Sym) || !is_inside(elf, elf->symbols.sh_offset, elf->symbols.sh_size)) {
        return DAMAGED(elf, "the symbol table lies outside the file");
    }
    if (elf->symbols.sh_link >= count
        || !read_at(elf, elf->header.e_shoff + elf->symbols.sh_link * sizeof *chunk, &elf->strings, sizeof *chunk)
        || elf->strings.sh_type != SHT_STRTAB || elf->strings.sh_size > MAX_NAMES_BYTES
        || !is_inside(elf, elf->strings.sh_offset, elf->strings.sh_size)) {
        return DAMAGED(elf, "the symbol table has no valid table of names");
    }
    return 0;
}

/*
 * Whether a symbol may be a runtime's own function. NVIDIA's archive hides its functions, so in a library they are not
 * exported. A library that exports them is a shared runtime, or a tool that stands in front of one. Symbols without a
 * size are jumps in assembly to a shared runtime that the library loads by itself, as those of JAX do.
 */
static bool is_candidate(const elf_t *elf, const Elf64_Sym *symbol) {
    bool exported = ELF64_ST_BIND(symbol->st_info) != STB_LOCAL && ELF64_ST_VISIBILITY(symbol->st_other) == STV_DEFAULT;
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF && symbol->st_size != 0
        && (elf->is_program || !exported);
}

/* Keeps all functions with known names, and the bits of the versions to which alone some of the names belong. */
static int read_symbols(elf_t *elf, const char *strings, hws_functions_t *functions, unsigned *alone_p) {
    Elf64_Sym chunk[SYMBOLS_CHUNK];
    uint64_t count = elf->symbols.sh_size / sizeof *chunk;
    for (uint64_t first = 0; first < count; first += SYMBOLS_CHUNK) {
        uint64_t part = count - first < SYMBOLS_CHUNK ? count - first : SYMBOLS_CHUNK;
        if (!read_at(elf, elf->symbols.sh_offset + first * sizeof *chunk, chunk, part * sizeof *chunk)) {
            return DAMAGED(elf, "the symbol table cannot be read");
        }
        for (uint64_t i = 0; i < part; i++) {
            const Elf64_Sym *symbol = &chunk[i];
            if (!is_candidate(elf, symbol)) {
                continue;
            }
            if (symbol->st_name >= elf->strings.sh_size) {
                return DAMAGED(elf, "a symbol's name lies outside the table of names");
            }
            const char *text = strings + symbol->st_name;
            if (strncmp(text, "cuda", 4) != 0 && strncmp(text, "__cuda", 6) != 0) {
                continue;
            }
            const name_t *name = bsearch(text, names, HWS_RUNTIME_NAMES, sizeof *names, compare_name);
            if (name == NULL) {
                continue;
            }
            if (functions->count == HWS_MAX_FUNCTIONS) {
                return DAMAGED(elf, "a file has at most %d functions of the CUDA runtime", HWS_MAX_FUNCTIONS);
            }
            functions->at[functions->count++] =
                (hws_function_t) {symbol->st_value, 0, symbol->st_size, (uint32_t) (name - names)};
            bool is_alone = (name->versions & (name->versions - 1)) == 0;
            *alone_p |= is_alone ? name->versions : 0;
        }
    }
    return 0;
}

/* The executable segment of an address; NULL for none. */
static const Elf64_Phdr *segment_of(const elf_t *elf, uint64_t address) {
    for (unsigned i = 0; i < elf->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & (PF_X | PF_W)) == PF_X && address >= segment->p_vaddr
            && address - segment->p_vaddr < segment->p_filesz) {
            return segment;
        }
    }
    return NULL;
}

static int compare_address(const void *left, const void *right) {
    const hws_function_t *a = left, *b = right;
    return a->address != b->address ? (a->address < b->address ? -1 : 1) : (int) a->name - (int) b->name;
}

/* Checks the places of the functions, and orders them. */
static int place(elf_t *elf, hws_functions_t *functions) {
    const Elf64_Phdr *first = segment_of(elf, functions->at[0].address);
    size_t kept = 0;
    qsort(functions->at, functions->count, sizeof *functions->at, compare_address);
    for (size_t i = 0; i < functions->count; i++) {
        hws_function_t *at = &functions->at[i], *before = kept > 0 ? &functions->at[kept - 1] : NULL;
        const Elf64_Phdr *segment = segment_of(elf, at->address);
        if (segment == NULL || segment != first || at->size > segment->p_filesz - (at->address - segment->p_vaddr)) {
            return DAMAGED(elf, "the functions of a runtime lie in one segment with code: %s, address=0x%llx size=%llu",
                           names[at->name].text, (unsigned long long) at->address, (unsigned long long) at->size);
        }
        at->offset = segment->p_offset + (at->address - segment->p_vaddr);
        if (!is_inside(elf, at->offset, at->size)) {
            return DAMAGED(elf, "the code lies outside the file: %s", names[at->name].text);
        }
        if (before != NULL && before->address == at->address && before->name == at->name) {
            continue; /* the same symbol twice */
        }
        if (before != NULL && at->address - before->address < before->size) {
            return DAMAGED(elf, "two functions overlap: %s and %s", names[before->name].text, names[at->name].text);
        }
        functions->at[kept++] = *at;
    }
    functions->count = kept;
    return 0;
}

static int read_functions(elf_t *elf, hws_functions_t *functions) {
    unsigned alone = 0;
    int rc = read_segments(elf) != 0 ? -1 : find_symbols(elf);
    if (rc != 0) {
        return rc < 0 ? -1 : 0;
    }
    size_t bytes = (size_t) elf->strings.sh_size + 1; /* a zero byte ends the last name */
    char *strings = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (strings == MAP_FAILED) {
        return DAMAGED(elf, "no memory for a table of names: bytes=%zu", bytes);
    }
    rc = read_at(elf, elf->strings.sh_offset, strings, bytes - 1) ? read_symbols(elf, strings, functions, &alone)
                                                                  : DAMAGED(elf, "the table of names cannot be read");
    munmap(strings, bytes);
    if (rc != 0) {
        return -1;
    }
    functions->major = (alone & CUDA_11) != 0 ? 11 : (alone & CUDA_12) != 0 ? 12 : (alone & CUDA_13) != 0 ? 13 : 0;
    size_t known = functions->count;
    functions->count = 0;
    for (size_t i = 0; functions->major > 11 && i < known; i++) {
        if (hws_runtime_has(functions->major, functions->at[i].name)) {
            functions->at[functions->count++] = functions->at[i];
        }
    }
    return functions->count == 0 ? 0 : place(elf, functions);
}

int hws_functions_read(int fd, hws_functions_t *functions_p, char *error_p, size_t error_capacity) {
    elf_t elf = {.fd = fd, .error = error_p, .error_capacity = error_capacity};
    struct stat status;
    functions_p->major = 0;
    functions_p->count = 0;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        return 0;
    }
    elf.bytes = (uint64_t) status.st_size;
    if (!read_at(&elf, 0, &elf.header, sizeof elf.header) || memcmp(elf.header.e_ident, ELFMAG, SELFMAG) != 0
        || elf.header.e_ident[EI_CLASS] != ELFCLASS64 || elf.header.e_machine != EM_X86_64
        || (elf.header.e_type != ET_EXEC && elf.header.e_type != ET_DYN)) {
        return 0;
    }
    int rc = read_functions(&elf, functions_p);
    if (rc != 0) {
        functions_p->major = 0;
        functions_p->count = 0;
    }
    return rc;
}
