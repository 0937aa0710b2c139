#include "hws_image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC 0xba55ed50u
#define FATBIN_HEADER_BYTES 16

typedef struct hws_wrapper {
    uint32_t magic;
    uint32_t version;
    const void *data;
    const void *const *parts; /* version 2: the parts of a device-linked program, ended by NULL */
} hws_wrapper_t;

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Raises *end to the end of [offset, offset + bytes). Returns false when that is larger than any image. */
static bool take_extent(uint64_t offset, uint64_t bytes, uint64_t *end) {
    if (offset > HWS_MAX_IMAGE_BYTES || bytes > HWS_MAX_IMAGE_BYTES) {
        return false;
    }
    *end = larger(*end, offset + bytes);
    return true;
}

static bool elf_size(const uint8_t *image, size_t available, uint64_t *bytes_p) {
    Elf64_Ehdr header;
    if (available < sizeof header) {
        return false;
    }
    memcpy(&header, image, sizeof header);
    uint64_t end = sizeof header, table = 0;
    bool sane = header.e_ident[EI_CLASS] == ELFCLASS64
        && (header.e_shnum == 0 || header.e_shentsize == sizeof(Elf64_Shdr))
        && (header.e_phnum == 0 || header.e_phentsize == sizeof(Elf64_Phdr))
        && take_extent(header.e_shoff, (uint64_t) header.e_shnum * sizeof(Elf64_Shdr), &table)
        && take_extent(header.e_phoff, (uint64_t) header.e_phnum * sizeof(Elf64_Phdr), &table);
    if (!sane || table > available) {
        return false;
    }
    end = larger(end, table);
    for (unsigned i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, image + header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL
            && !take_extent(section.sh_offset, section.sh_size, &end)) {
            return false;
        }
    }
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image + header.e_phoff + i * sizeof segment, sizeof segment);
        if (!take_extent(segment.p_offset, segment.p_filesz, &end)) {
            return false;
        }
    }
    *bytes_p = end;
    return true;
}

static bool fatbin_size(const uint8_t *image, size_t available, uint64_t *bytes_p) {
    uint16_t version, header_bytes;
    uint64_t body_bytes;
    if (available < FATBIN_HEADER_BYTES) {
        return false;
    }
    memcpy(&version, image + 4, sizeof version);
    memcpy(&header_bytes, image + 6, sizeof header_bytes);
    memcpy(&body_bytes, image + 8, sizeof body_bytes);
    *bytes_p = header_bytes + body_bytes;
    return version == 1 && header_bytes >= FATBIN_HEADER_BYTES && body_bytes <= HWS_MAX_IMAGE_BYTES;
}

/*
 * Finds the length of PTX text: printable bytes and white space up to a NUL, with the directive that every module has.
 */
static bool ptx_size(const char *image, size_t available, uint64_t *bytes_p) {
    size_t limit = available < HWS_MAX_IMAGE_BYTES ? available : HWS_MAX_IMAGE_BYTES;
    size_t length = 0;
    for (; length < limit && image[length] != '\0'; length++) {
        unsigned char c = (unsigned char) image[length];
        if (c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\v') {
            return false;
        }
    }
    *bytes_p = length + 1;
    return length < limit && strstr(image, ".version") != NULL;
}

bool hws_image_size(const void *image, size_t available, uint64_t *bytes_p) {
    uint32_t magic = 0;
    uint64_t bytes = 0;
    bool found;
    for (size_t i = 0; i < sizeof magic && i < available; i++) {
        uint8_t byte = ((const uint8_t *) image)[i];
        magic |= (uint32_t) byte << 8 * i;
        if (byte == 0) {
            break; /* the text is too short; bytes after it must not be read */
        }
    }
    if (magic == FATBIN_MAGIC) {
        found = fatbin_size(image, available, &bytes);
    } else if (memcmp(&magic, ELFMAG, SELFMAG) == 0) {
        found = elf_size(image, available, &bytes);
    } else {
        found = ptx_size(image, available, &bytes);
    }
    if (!found || bytes > HWS_MAX_IMAGE_BYTES || bytes > available) {
        return false;
    }
    *bytes_p = bytes;
    return true;
}

/* Copies the linked fat binary and its parts into one block. */
static void *join_parts(const hws_wrapper_t *wrapper, uint64_t *bytes_p) {
    uint64_t total = 0, bytes;
    int count = 0;
    *bytes_p = 0;
    for (const void *const *part = wrapper->parts; *part != NULL; part++) {
        if (++count > HWS_MAX_IMAGE_PARTS || !hws_image_size(*part, SIZE_MAX, &bytes)) {
            return NULL;
        }
        total += (bytes + 7) & ~7ull;
        if (total > HWS_MAX_IMAGE_BYTES) {
            return NULL;
        }
    }
    bool linked = wrapper->data != NULL && hws_image_size(wrapper->data, SIZE_MAX, &bytes);
    total += linked ? (bytes + 7) & ~7ull : 0;
    if (total == 0) {
        return NULL;
    }
    uint8_t *joined = calloc(1, total), *at = joined;
    if (joined == NULL) {
        *bytes_p = 1;
        return NULL;
    }
    if (linked) {
        memcpy(at, wrapper->data, bytes);
        at += (bytes + 7) & ~7ull;
    }
    for (const void *const *part = wrapper->parts; *part != NULL; part++) {
        if (hws_image_size(*part, SIZE_MAX, &bytes)) {
            memcpy(at, *part, bytes);
            at += (bytes + 7) & ~7ull;
        }
    }
    *bytes_p = total;
    return joined;
}

const void *hws_image_unwrap(const void *image, uint64_t *bytes_p, void **copy_p) {
    uint32_t magic;
    *copy_p = NULL;
    *bytes_p = 0;
    /* Byte by byte: a text may end before the fourth byte. */
    const uint8_t *p = image;
    if (p[0] == (WRAPPER_MAGIC & 0xff) && p[1] == (WRAPPER_MAGIC >> 8 & 0xff)) {
        memcpy(&magic, p, sizeof magic);
        hws_wrapper_t wrapper;
        if (magic == WRAPPER_MAGIC) {
            memcpy(&wrapper, image, sizeof wrapper);
            if (wrapper.version == 2 && wrapper.parts != NULL) {
                *copy_p = join_parts(&wrapper, bytes_p);
                return *copy_p;
            }
            if (wrapper.data == NULL) {
                return NULL;
            }
            image = wrapper.data;
        }
    }
    return hws_image_size(image, SIZE_MAX, bytes_p) ? image : NULL;
}
