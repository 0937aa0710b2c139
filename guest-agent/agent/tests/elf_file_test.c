/* Files with any damage are refused or read; no offset leads out of bounds. */
#include "../elf_file.h"
#include "tests/hws_test.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned char *load(const char *path, size_t *length_p) {
    struct stat status;
    int fd = open(path, O_RDONLY);
    HWS_CHECK(fd >= 0 && fstat(fd, &status) == 0);
    unsigned char *bytes = malloc((size_t) status.st_size);
    *length_p = (size_t) status.st_size;
    for (size_t at = 0; at < *length_p;) {
        ssize_t n = read(fd, bytes + at, *length_p - at);
        HWS_CHECK(n > 0);
        at += (size_t) n;
    }
    close(fd);
    return bytes;
}

static void shouldReadThisProgram(void) {
    hws_elf_file_t file;
    char error[256];
    HWS_CHECK(hws_elf_read("/proc/self/exe", &file, error, sizeof error) == 0);
    HWS_CHECK(file.is_elf && file.is_dynamic && !file.is_script && !file.has_device_code);
    HWS_CHECK(strstr(file.interpreter, "ld-linux") != NULL);
    bool libc = false;
    for (size_t i = 0; i < file.needed_count; i++) {
        libc = libc || strcmp(file.needed[i], "libc.so.6") == 0;
    }
    HWS_CHECK(libc);
}

static void shouldReadScriptsAndOtherFiles(void) {
    hws_elf_file_t file;
    char error[256];
    HWS_CHECK(hws_elf_parse((const unsigned char *) "#! /usr/bin/env python3\n", 24, &file) == 0);
    HWS_CHECK(file.is_script && strcmp(file.interpreter, "/usr/bin/env") == 0);
    HWS_CHECK(hws_elf_parse((const unsigned char *) "#!", 2, &file) == 0 && !file.is_script);
    HWS_CHECK(hws_elf_parse((const unsigned char *) "hello", 5, &file) == 0 && !file.is_elf && !file.is_script);
    HWS_CHECK(hws_elf_read("/nonexistent", &file, error, sizeof error) != 0 && strstr(error, "/nonexistent") != NULL);
    HWS_CHECK(hws_elf_read("/", &file, error, sizeof error) != 0);
}

/* Each length of the file's start, and the file without its end: the sanitizer detects an access out of bounds. */
static void shouldRefuseOrReadTruncatedFiles(void) {
    size_t length;
    unsigned char *whole = load("/proc/self/exe", &length);
    for (size_t cut = 0; cut < length; cut += cut < 4096 ? 1 : 997) {
        unsigned char *part = malloc(cut + 1);
        hws_elf_file_t file;
        memcpy(part, whole, cut);
        hws_elf_parse(part, cut, &file);
        free(part);
    }
    free(whole);
}

static void shouldSurviveRandomChanges(void) {
    size_t length;
    unsigned char *whole = load("/proc/self/exe", &length), *changed = malloc(length);
    uint64_t state = 88172645463325252ull;
    Elf64_Ehdr header;
    memcpy(&header, whole, sizeof header);
    for (int round = 0; round < 3000; round++) {
        hws_elf_file_t file;
        memcpy(changed, whole, length);
        for (int i = 0; i < 8; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            /* Only headers and tables contain offsets that are followed. */
            size_t at = i < 4 ? state % 1024
                : i < 6       ? header.e_shoff + state % (length - header.e_shoff)
                              : state % length;
            changed[at] = (unsigned char) (state >> 32);
        }
        hws_elf_parse(changed, length, &file);
        HWS_CHECK(file.needed_count <= HWS_ELF_MAX_NEEDED);
    }
    free(changed);
    free(whole);
}

int main(void) {
    shouldReadThisProgram();
    shouldReadScriptsAndOtherFiles();
    shouldRefuseOrReadTruncatedFiles();
    shouldSurviveRandomChanges();
    return 0;
}
