/*
 * Sizes of images, also of hostile ones. Each input lies in a block of exactly its size, so that the sanitizer detects
 * a read beyond it.
 */
#include "hws_image.h"
#include "hws_test.h"

#include <elf.h>
#include <string.h>

/* Asks for the size of a copy in a block of its exact size. */
static bool size_of(const void *image, size_t available, uint64_t *bytes_p) {
    void *exact = malloc(available > 0 ? available : 1);
    memcpy(exact, image, available);
    bool found = hws_image_size(exact, available, bytes_p);
    free(exact);
    return found;
}

static void shouldMeasurePtxWithItsNul(void) {
    static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n";
    uint64_t bytes = 0;
    HWS_CHECK(hws_image_size(ptx, SIZE_MAX, &bytes) && bytes == sizeof ptx);
    HWS_CHECK(size_of(ptx, sizeof ptx, &bytes) && bytes == sizeof ptx);
    for (size_t available = 0; available < sizeof ptx; available++) {
        HWS_CHECK(!size_of(ptx, available, &bytes));
    }
    HWS_CHECK(!size_of("", 1, &bytes) && !size_of("x", 2, &bytes) && !size_of("\177E", 3, &bytes));
    HWS_CHECK(!size_of(".version\1", 10, &bytes));
}

typedef struct cubin {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    Elf64_Shdr sections[3];
    uint8_t text[40];
} cubin_t;

static cubin_t cubin(void) {
    cubin_t image;
    memset(&image, 0, sizeof image);
    memcpy(image.header.e_ident, ELFMAG, SELFMAG);
    image.header.e_ident[EI_CLASS] = ELFCLASS64;
    image.header.e_phoff = offsetof(cubin_t, segment);
    image.header.e_phnum = 1;
    image.header.e_phentsize = sizeof(Elf64_Phdr);
    image.header.e_shoff = offsetof(cubin_t, sections);
    image.header.e_shnum = 3;
    image.header.e_shentsize = sizeof(Elf64_Shdr);
    image.sections[1] = (Elf64_Shdr) {.sh_type = SHT_PROGBITS, .sh_offset = offsetof(cubin_t, text), .sh_size = 40};
    image.sections[2] = (Elf64_Shdr) {.sh_type = SHT_NOBITS, .sh_offset = 1u << 20, .sh_size = 1u << 20};
    return image;
}

static void shouldMeasureACubin(void) {
    cubin_t image = cubin();
    uint64_t bytes = 0;
    HWS_CHECK(hws_image_size(&image, SIZE_MAX, &bytes) && bytes == sizeof image);
    for (size_t available = 0; available < sizeof image; available++) {
        HWS_CHECK(!size_of(&image, available, &bytes));
    }
}

static void shouldRefuseCubinsWithWildHeaders(void) {
    uint64_t bytes;
    cubin_t image = cubin();
    image.header.e_shoff = UINT64_MAX - 8;
    HWS_CHECK(!size_of(&image, sizeof image, &bytes));
    image = cubin();
    image.header.e_shnum = UINT16_MAX;
    HWS_CHECK(!size_of(&image, sizeof image, &bytes));
    image = cubin();
    image.header.e_shentsize = 1;
    HWS_CHECK(!size_of(&image, sizeof image, &bytes));
    image = cubin();
    image.header.e_phoff = HWS_MAX_IMAGE_BYTES;
    HWS_CHECK(!size_of(&image, sizeof image, &bytes));
    image = cubin();
    image.sections[1].sh_size = UINT64_MAX - image.sections[1].sh_offset + 1;
    HWS_CHECK(!size_of(&image, sizeof image, &bytes));
    image = cubin();
    image.segment.p_offset = 1ull << 40;
    HWS_CHECK(!size_of(&image, sizeof image, &bytes));
    image = cubin();
    image.header.e_ident[EI_CLASS] = ELFCLASS32;
    HWS_CHECK(!size_of(&image, sizeof image, &bytes));
}

typedef struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t body_bytes;
    uint8_t body[24];
} fatbin_t;

static fatbin_t fatbin(uint8_t fill) {
    fatbin_t image = {.magic = 0xba55ed50, .version = 1, .header_bytes = 16, .body_bytes = sizeof image.body};
    memset(image.body, fill, sizeof image.body);
    return image;
}

static void shouldMeasureAFatBinary(void) {
    fatbin_t image = fatbin(1);
    uint64_t bytes = 0;
    HWS_CHECK(hws_image_size(&image, SIZE_MAX, &bytes) && bytes == sizeof image);
    for (size_t available = 0; available < sizeof image; available++) {
        HWS_CHECK(!size_of(&image, available, &bytes));
    }
    image.body_bytes = UINT64_MAX - 8;
    HWS_CHECK(!size_of(&image, sizeof image, &bytes));
    image = fatbin(1);
    image.header_bytes = 4;
    HWS_CHECK(!size_of(&image, sizeof image, &bytes));
    image = fatbin(1);
    image.version = 9;
    HWS_CHECK(!size_of(&image, sizeof image, &bytes));
}

typedef struct wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *parts;
} wrapper_t;

static void shouldUnwrapOneFatBinary(void) {
    fatbin_t image = fatbin(1);
    wrapper_t wrapper = {0x466243b1, 1, &image, NULL};
    uint64_t bytes;
    void *copy;
    HWS_CHECK(hws_image_unwrap(&wrapper, &bytes, &copy) == &image && bytes == sizeof image && copy == NULL);
    wrapper.data = NULL;
    HWS_CHECK(hws_image_unwrap(&wrapper, &bytes, &copy) == NULL && copy == NULL);
}

static void shouldJoinThePartsOfADeviceLinkedProgram(void) {
    fatbin_t linked = fatbin(1), first = fatbin(2), second = fatbin(3);
    const void *const parts[] = {&first, &second, NULL};
    wrapper_t wrapper = {0x466243b1, 2, &linked, parts};
    uint64_t bytes;
    void *copy;
    const fatbin_t *joined = hws_image_unwrap(&wrapper, &bytes, &copy);
    HWS_CHECK(joined != NULL && joined == copy && bytes == 3 * sizeof linked);
    HWS_CHECK(joined[0].body[0] == 1 && joined[1].body[0] == 2 && joined[2].body[0] == 3);
    free(copy);
    second.magic = 0;
    HWS_CHECK(hws_image_unwrap(&wrapper, &bytes, &copy) == NULL && copy == NULL);
}

static void shouldRefuseTruncatedOrNoiseInputs(void) {
    uint8_t noise[512];
    uint32_t state = 99;
    for (int round = 0; round < 3000; round++) {
        size_t available = state % sizeof noise;
        for (size_t i = 0; i < available; i++) {
            state = state * 1664525u + 1013904223u;
            noise[i] = (uint8_t) (state >> 24);
        }
        if (round % 3 == 0 && available >= sizeof(Elf64_Ehdr)) {
            memcpy(noise, ELFMAG, SELFMAG);
            noise[EI_CLASS] = ELFCLASS64;
        }
        uint64_t bytes = 0;
        HWS_CHECK(!size_of(noise, available, &bytes) || bytes <= available);
    }
}

int main(void) {
    HWS_RUN(shouldMeasurePtxWithItsNul);
    HWS_RUN(shouldMeasureACubin);
    HWS_RUN(shouldRefuseCubinsWithWildHeaders);
    HWS_RUN(shouldMeasureAFatBinary);
    HWS_RUN(shouldUnwrapOneFatBinary);
    HWS_RUN(shouldJoinThePartsOfADeviceLinkedProgram);
    HWS_RUN(shouldRefuseTruncatedOrNoiseInputs);
    return 0;
}
