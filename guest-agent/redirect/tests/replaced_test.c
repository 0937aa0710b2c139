/* Code is changed only where the file and the memory agree. The object is this program; its file is a changed copy. */
#include "../block.h"
#include "../redirect.h"
#include "tests/hws_test.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two functions of CUDA 13's runtime, alone on their page. */
__asm__(".text\n.balign 4096\n.hidden cudaMalloc\n.globl cudaMalloc\n.type cudaMalloc, @function\n"
        "cudaMalloc: mov $99, %eax\n ret\n.size cudaMalloc, 6\n"
        ".balign 16\n.hidden cudaLogsCurrent\n.globl cudaLogsCurrent\n.type cudaLogsCurrent, @function\n"
        "cudaLogsCurrent: mov $98, %eax\n ret\n.size cudaLogsCurrent, 6\n.balign 4096\n");
int cudaMalloc(void) __attribute__((visibility("hidden")));
int cudaLogsCurrent(void) __attribute__((visibility("hidden")));

static const unsigned char plain[] = {0xb8, 99, 0, 0, 0, 0xc3};
static char copy[] = "/tmp/replaced_test.XXXXXX";
static unsigned char *bytes;
static size_t length;
static uintptr_t base;

static int find_base(struct dl_phdr_info *info, size_t size, void *ignored) {
    (void) size;
    (void) ignored;
    base = info->dlpi_addr;
    return 1; /* the program is the first */
}

static void load_self(void) {
    struct stat status;
    int fd = open("/proc/self/exe", O_RDONLY);
    HWS_CHECK(fd >= 0 && fstat(fd, &status) == 0);
    length = (size_t) status.st_size;
    bytes = malloc(length);
    for (size_t at = 0; at < length;) {
        ssize_t n = read(fd, bytes + at, length - at);
        HWS_CHECK(n > 0);
        at += (size_t) n;
    }
    close(fd);
}

/* The place of the first function in the file. */
static unsigned char *code_in_file(void) {
    Elf64_Ehdr *header = (Elf64_Ehdr *) bytes;
    Elf64_Phdr *segments = (Elf64_Phdr *) (bytes + header->e_phoff);
    uint64_t address = (uintptr_t) cudaMalloc - base;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr
            && address - segments[i].p_vaddr < segments[i].p_filesz) {
            return bytes + segments[i].p_offset + (address - segments[i].p_vaddr);
        }
    }
    HWS_CHECK(false);
    return NULL;
}

static bool is_redirected_by(size_t file_length) {
    int fd = open(copy, O_WRONLY | O_TRUNC);
    HWS_CHECK(fd >= 0 && (size_t) write(fd, bytes, file_length) == file_length);
    close(fd);
    hws_redirect_object(copy, base, (const void *) base);
    bool is_plain = memcmp((const void *) cudaMalloc, plain, sizeof plain) == 0;
    HWS_CHECK(is_plain == (((const unsigned char *) cudaLogsCurrent)[0] == plain[0]));
    return !is_plain;
}

static void shouldLeaveCodeThatDiffersFromItsFile(void) {
    unsigned char *code = code_in_file();
    code[1] ^= 1;
    HWS_CHECK(!is_redirected_by(length));
    code[1] ^= 1;
    code[16 + 1] ^= 1; /* the second function alone: all are changed or none */
    HWS_CHECK(!is_redirected_by(length));
    code[16 + 1] ^= 1;
}

static void shouldLeaveCodeThatAShorterFileLacks(void) {
    HWS_CHECK(!is_redirected_by((size_t) (code_in_file() - bytes)));
    HWS_CHECK(!is_redirected_by(length - 1));
    HWS_CHECK(!is_redirected_by(0));
}

/* The table of a file whose code lies elsewhere in memory. */
static void shouldLeaveMemoryThatIsNotMappedAsTheFileSays(void) {
    static const int64_t moves[] = {4096, -4096, 1 << 30};
    Elf64_Ehdr *header = (Elf64_Ehdr *) bytes;
    Elf64_Phdr *segments = (Elf64_Phdr *) (bytes + header->e_phoff);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        base += (uint64_t) moves[i];
        HWS_CHECK(!is_redirected_by(length));
        base -= (uint64_t) moves[i];
    }
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr *segment = &segments[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) {
            segment->p_offset -= 4096;
            HWS_CHECK(!is_redirected_by(length));
            segment->p_offset += 4096;
        }
    }
}

static void shouldChangeCodeThatEqualsItsFile(void) {
    HWS_CHECK(cudaMalloc() == 99);
    HWS_CHECK(is_redirected_by(length));
    HWS_CHECK(((const unsigned char *) cudaMalloc)[0] == 0xff && ((const unsigned char *) cudaMalloc)[1] == 0x25);
    HWS_CHECK(is_redirected_by(length)); /* now the code differs from its file, and stays as it is */
}

int main(void) {
    int fd = mkstemp(copy);
    HWS_CHECK(fd >= 0);
    close(fd);
    dl_iterate_phdr(find_base, NULL);
    load_self();
    hws_block_set_library(13, "/nonexistent/libcudart.so.13");
    HWS_RUN(shouldLeaveCodeThatDiffersFromItsFile);
    HWS_RUN(shouldLeaveCodeThatAShorterFileLacks);
    HWS_RUN(shouldLeaveMemoryThatIsNotMappedAsTheFileSays);
    HWS_RUN(shouldChangeCodeThatEqualsItsFile);
    unlink(copy);
    free(bytes);
    return 0;
}
