#include "elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct image {
    const unsigned char *bytes;
    size_t length;
} image_t;

static bool holds(const image_t *image, uint64_t offset, uint64_t bytes) {
    return offset <= image->length && bytes <= image->length - offset;
}

/* Copies a text that ends inside the image, cut to the capacity. */
static bool take_text(const image_t *image, uint64_t offset, char *text_p, size_t capacity) {
    if (offset >= image->length) {
        return false;
    }
    const char *text = (const char *) image->bytes + offset;
    size_t bound = image->length - offset, length = strnlen(text, bound);
    if (length == bound) {
        return false;
    }
    snprintf(text_p, capacity, "%s", text);
    return true;
}

/* The file offset of an address, by the loaded segments. */
static bool offset_of(const image_t *image, const Elf64_Ehdr *header, uint64_t address, uint64_t *offset_p) {
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image->bytes + header->e_phoff + (uint64_t) i * sizeof segment, sizeof segment);
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
            *offset_p = segment.p_offset + (address - segment.p_vaddr);
            return true;
        }
    }
    return false;
}

static int read_dynamic(const image_t *image, const Elf64_Ehdr *header, const Elf64_Phdr *segment,
                        hws_elf_file_t *file) {
    uint64_t strings = 0;
    for (int pass = 0; pass < 2; pass++) { /* first the place of the texts, then the texts */
        for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment->p_filesz; at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn entry;
            memcpy(&entry, image->bytes + segment->p_offset + at, sizeof entry);
            if (entry.d_tag == DT_NULL) {
                break;
            }
            if (pass == 0 && entry.d_tag == DT_STRTAB && !offset_of(image, header, entry.d_un.d_ptr, &strings)) {
                return -1;
            }
            if (pass == 0 || (entry.d_tag != DT_NEEDED && entry.d_tag != DT_RPATH && entry.d_tag != DT_RUNPATH)) {
                continue;
            }
            if (strings == 0 || entry.d_un.d_val > image->length) {
                return -1;
            }
            bool is_library = entry.d_tag == DT_NEEDED;
            if (is_library && file->needed_count == HWS_ELF_MAX_NEEDED) {
                continue;
            }
            char *target = is_library ? file->needed[file->needed_count] : file->run_path;
            if (!take_text(image, strings + entry.d_un.d_val, target,
                           is_library ? sizeof file->needed[0] : sizeof file->run_path)) {
                return -1;
            }
            file->needed_count += is_library;
        }
    }
    return 0;
}

static int read_segments(const image_t *image, const Elf64_Ehdr *header, hws_elf_file_t *file) {
    if (header->e_phnum > 0
        && (header->e_phentsize != sizeof(Elf64_Phdr)
            || !holds(image, header->e_phoff, (uint64_t) header->e_phnum * sizeof(Elf64_Phdr)))) {
        return -1;
    }
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image->bytes + header->e_phoff + (uint64_t) i * sizeof segment, sizeof segment);
        if (segment.p_type != PT_INTERP && segment.p_type != PT_DYNAMIC) {
            continue;
        }
        if (!holds(image, segment.p_offset, segment.p_filesz)) {
            return -1;
        }
        if (segment.p_type == PT_INTERP) {
            file->is_dynamic = true;
            if (!take_text(image, segment.p_offset, file->interpreter, sizeof file->interpreter)) {
                return -1;
            }
        } else if (read_dynamic(image, header, &segment, file) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Whether a table of dynamic symbols lacks the function by which nvcc's code registers with the runtime. */
static int read_symbols(const image_t *image, const Elf64_Shdr *symbols, const Elf64_Shdr *strings,
                        hws_elf_file_t *file) {
    static const char wanted[] = "__cudaRegisterFatBinary";
    if (!holds(image, symbols->sh_offset, symbols->sh_size) || !holds(image, strings->sh_offset, strings->sh_size)) {
        return -1;
    }
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        char name[sizeof wanted + 1];
        memcpy(&symbol, image->bytes + symbols->sh_offset + at, sizeof symbol);
        if (symbol.st_shndx == SHN_UNDEF && symbol.st_name < strings->sh_size
            && take_text(image, strings->sh_offset + symbol.st_name, name, sizeof name)) {
            file->wants_runtime = file->wants_runtime || strcmp(name, wanted) == 0;
        }
    }
    return 0;
}

/* Section names stay when a program is stripped. Those of nvcc show that the file has device code. */
static int read_sections(const image_t *image, const Elf64_Ehdr *header, hws_elf_file_t *file) {
    static const char *const device_code[] = {".nv_fatbin", ".nvFatBinSegment", "__nv_relfatbin"};
    Elf64_Shdr names;
    if (header->e_shnum == 0 || header->e_shstrndx >= header->e_shnum) {
        return 0; /* nothing is known without sections */
    }
    if (header->e_shentsize != sizeof(Elf64_Shdr)
        || !holds(image, header->e_shoff, (uint64_t) header->e_shnum * sizeof(Elf64_Shdr))) {
        return -1;
    }
    const unsigned char *table = image->bytes + header->e_shoff;
    memcpy(&names, table + (uint64_t) header->e_shstrndx * sizeof names, sizeof names);
    if (!holds(image, names.sh_offset, names.sh_size)) {
        return -1;
    }
    for (unsigned i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section;
        char name[32];
        memcpy(&section, table + (uint64_t) i * sizeof section, sizeof section);
        if (section.sh_name >= names.sh_size
            || !take_text(image, names.sh_offset + section.sh_name, name, sizeof name)) {
            return -1;
        }
        if (section.sh_type == SHT_DYNSYM && section.sh_link < header->e_shnum) {
            Elf64_Shdr strings;
            memcpy(&strings, table + (uint64_t) section.sh_link * sizeof strings, sizeof strings);
            if (read_symbols(image, &section, &strings, file) != 0) {
                return -1;
            }
        }
        for (size_t k = 0; k < sizeof device_code / sizeof *device_code; k++) {
            file->has_device_code = file->has_device_code || strcmp(name, device_code[k]) == 0;
        }
    }
    return 0;
}

static void read_script(const image_t *image, hws_elf_file_t *file) {
    size_t at = 2, length = 0;
    while (at < image->length && (image->bytes[at] == ' ' || image->bytes[at] == '\t')) {
        at++;
    }
    while (at + length < image->length && length < sizeof file->interpreter - 1 && image->bytes[at + length] > ' '
           && image->bytes[at + length] < 0x7f) {
        length++;
    }
    memcpy(file->interpreter, image->bytes + at, length);
    file->is_script = length > 0;
}

int hws_elf_parse(const unsigned char *bytes, size_t length, hws_elf_file_t *file_p) {
    const image_t image = {bytes, length};
    Elf64_Ehdr header;
    memset(file_p, 0, sizeof *file_p);
    if (length >= 2 && memcmp(bytes, "#!", 2) == 0) {
        read_script(&image, file_p);
        return 0;
    }
    if (length < sizeof header || memcmp(bytes, ELFMAG, SELFMAG) != 0) {
        return 0;
    }
    memcpy(&header, bytes, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
        return 0;
    }
    file_p->is_elf = true;
    return read_segments(&image, &header, file_p) != 0 || read_sections(&image, &header, file_p) != 0 ? -1 : 0;
}

int hws_elf_read(const char *path, hws_elf_file_t *file_p, char *error_p, size_t error_capacity) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        snprintf(error_p, error_capacity, "%s: %s", path, fd < 0 ? strerror(errno) : "not a file");
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    size_t length = (size_t) status.st_size;
    void *bytes = length == 0 ? NULL : mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (length == 0 || bytes == MAP_FAILED) {
        snprintf(error_p, error_capacity, "%s: %s", path, length == 0 ? "an empty file" : "cannot be mapped");
        return -1;
    }
    int rc = hws_elf_parse(bytes, length, file_p);
    munmap(bytes, length);
    if (rc != 0) {
        snprintf(error_p, error_capacity, "%s: a damaged ELF file", path);
    }
    return rc;
}

bool hws_elf_has_static_runtime(const hws_elf_file_t *file) {
    return file->has_device_code && !file->wants_runtime;
}
