/* A damaged file is refused, or all functions that are found lie inside it, in order and without overlaps. */
#include "../functions.h"
#include "tests/hws_test.h"

#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_SYMBOLS 4096
#define CODE_ADDRESS 0x401000
#define CODE_BYTES 0x10000
#define FUNCTION_BYTES 16

/* A file as a linker makes it: headers, code, symbols and their names, sections. */
typedef struct image {
    Elf64_Ehdr header;
    Elf64_Phdr segments[2];
    unsigned char code[CODE_BYTES];
    Elf64_Sym symbols[MAX_SYMBOLS];
    char names[MAX_SYMBOLS * 48];
    Elf64_Shdr sections[3];
} image_t;

static image_t image;
static size_t symbol_count, names_length;
static hws_functions_t functions;
static char error[256];

static void add(const char *name, unsigned char info, unsigned char visibility) {
    Elf64_Sym *symbol = &image.symbols[symbol_count];
    *symbol = (Elf64_Sym) {.st_name = (Elf64_Word) names_length,
                           .st_info = info,
                           .st_other = visibility,
                           .st_shndx = 1,
                           .st_value = CODE_ADDRESS + symbol_count * FUNCTION_BYTES,
                           .st_size = FUNCTION_BYTES};
    strcpy(image.names + names_length, name);
    names_length += strlen(name) + 1;
    image.sections[1].sh_size = ++symbol_count * sizeof *symbol;
    image.sections[2].sh_size = names_length;
}

static void add_function(const char *name) {
    add(name, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), STV_DEFAULT);
}

/* A program without functions. */
static void begin(void) {
    memset(&image, 0, sizeof image);
    symbol_count = 0;
    names_length = 1;
    memcpy(image.header.e_ident, ELFMAG, SELFMAG);
    image.header.e_ident[EI_CLASS] = ELFCLASS64;
    image.header.e_type = ET_EXEC;
    image.header.e_machine = EM_X86_64;
    image.header.e_phoff = offsetof(image_t, segments);
    image.header.e_phentsize = sizeof(Elf64_Phdr);
    image.header.e_phnum = 2;
    image.header.e_shoff = offsetof(image_t, sections);
    image.header.e_shentsize = sizeof(Elf64_Shdr);
    image.header.e_shnum = 3;
    image.segments[0] = (Elf64_Phdr) {.p_type = PT_INTERP};
    image.segments[1] = (Elf64_Phdr) {.p_type = PT_LOAD,
                                      .p_flags = PF_R | PF_X,
                                      .p_vaddr = CODE_ADDRESS,
                                      .p_offset = offsetof(image_t, code),
                                      .p_filesz = CODE_BYTES,
                                      .p_memsz = CODE_BYTES};
    image.sections[1] = (Elf64_Shdr) {
        .sh_type = SHT_SYMTAB, .sh_link = 2, .sh_entsize = sizeof(Elf64_Sym), .sh_offset = offsetof(image_t, symbols)};
    image.sections[2] = (Elf64_Shdr) {.sh_type = SHT_STRTAB, .sh_offset = offsetof(image_t, names)};
    add("", 0, 0);
}

/* The same with functions of CUDA 13. */
static void begin_13(void) {
    begin();
    add_function("main");
    add_function("cudaMalloc");
    add_function("cudaLogsCurrent");
    add_function("__cudaRegisterFatBinary");
    add_function("cudaLookalike");
}

static int read_bytes(const void *bytes, size_t length) {
    int fd = memfd_create("image", MFD_CLOEXEC);
    HWS_CHECK(fd >= 0 && (size_t) write(fd, bytes, length) == length);
    error[0] = '\0';
    int rc = hws_functions_read(fd, &functions, error, sizeof error);
    close(fd);
    HWS_CHECK(rc == 0 || (functions.count == 0 && functions.major == 0 && error[0] != '\0'));
    for (size_t i = 0; i < functions.count; i++) {
        const hws_function_t *at = &functions.at[i];
        HWS_CHECK(at->size > 0 && at->offset <= length && at->size <= length - at->offset);
        HWS_CHECK(at->name < HWS_RUNTIME_NAMES && hws_runtime_has(functions.major, at->name));
        HWS_CHECK(i == 0 || at[-1].address + at[-1].size <= at->address);
    }
    return rc;
}

static int read_image(void) {
    return read_bytes(&image, sizeof image);
}

static void expect_damage(const char *reason) {
    HWS_CHECK(read_image() == -1);
    if (strstr(error, reason) == NULL) {
        fprintf(stderr, "wanted \"%s\", got \"%s\"\n", reason, error);
        exit(1);
    }
}

static void shouldOrderNamesAsTheSearchDoes(void) {
    for (uint32_t i = 1; i < HWS_RUNTIME_NAMES; i++) {
        HWS_CHECK(strcmp(hws_runtime_name(i - 1), hws_runtime_name(i)) < 0);
    }
}

static void shouldFindFunctionsByTheirNames(void) {
    begin_13();
    HWS_CHECK(read_image() == 0 && functions.major == 13 && functions.count == 3);
    HWS_CHECK(strcmp(hws_runtime_name(functions.at[0].name), "cudaMalloc") == 0);
    HWS_CHECK(functions.at[0].address == CODE_ADDRESS + 2 * FUNCTION_BYTES);
    HWS_CHECK(functions.at[0].offset == offsetof(image_t, code) + 2 * FUNCTION_BYTES);
    image.header.e_type = ET_DYN;
    HWS_CHECK(read_image() == 0 && functions.count == 3);
}

static void shouldDistinguishVersionsByNames(void) {
    begin_13();
    add_function("cudaGetDeviceProperties_v2");
    HWS_CHECK(read_image() == 0 && functions.major == 12 && functions.count == 3);
    add_function("cudaBindTexture");
    HWS_CHECK(read_image() == 0 && functions.major == 11 && functions.count == 0);
    begin();
    add_function("cudaMalloc"); /* a name of every version alone shows no runtime */
    HWS_CHECK(read_image() == 0 && functions.major == 0 && functions.count == 0);
}

/* A library that exports the names is a shared runtime, or a tool in front of one. A program exports nothing. */
static void shouldLeaveFunctionsThatALibraryExports(void) {
    begin();
    add("cudaMalloc", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT);
    add("cudaLogsCurrent", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT);
    HWS_CHECK(read_image() == 0 && functions.count == 2);
    image.segments[0].p_type = PT_NULL;
    HWS_CHECK(read_image() == 0 && functions.major == 0 && functions.count == 0);
    image.symbols[1].st_other = image.symbols[2].st_other = STV_HIDDEN;
    HWS_CHECK(read_image() == 0 && functions.count == 2);
}

static void shouldLeaveJumpsToASharedRuntime(void) {
    begin_13();
    image.symbols[2].st_size = 0;
    HWS_CHECK(read_image() == 0 && functions.count == 2);
    image.symbols[3].st_size = image.symbols[4].st_size = 0;
    HWS_CHECK(read_image() == 0 && functions.major == 0 && functions.count == 0);
}

static void shouldLeaveFilesWithoutASymbolTable(void) {
    begin_13();
    image.sections[1].sh_type = SHT_NULL;
    HWS_CHECK(read_image() == 0 && functions.major == 0);
    image.header.e_shoff = 0;
    HWS_CHECK(read_image() == 0 && functions.major == 0);
    HWS_CHECK(read_bytes("#!/bin/sh\n", 10) == 0 && read_bytes("", 0) == 0);
    begin_13();
    image.header.e_machine = EM_AARCH64;
    HWS_CHECK(read_image() == 0 && functions.major == 0);
    int ends[2];
    HWS_CHECK(pipe(ends) == 0 && hws_functions_read(ends[0], &functions, error, sizeof error) == 0);
    close(ends[0]);
    close(ends[1]);
}

static void shouldRefuseTablesOutsideTheFile(void) {
    static const uint64_t far[] = {sizeof image, sizeof image - 1, UINT64_MAX, UINT64_MAX - 8, 1ull << 62};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        begin_13();
        image.sections[1].sh_offset = far[i];
        expect_damage("the symbol table lies outside the file");
        begin_13();
        image.sections[1].sh_size = far[i];
        expect_damage("the symbol table lies outside the file");
        begin_13();
        image.sections[2].sh_offset = far[i];
        expect_damage("no valid table of names");
        begin_13();
        image.sections[2].sh_size = far[i];
        expect_damage("no valid table of names");
        begin_13();
        image.header.e_shoff = far[i];
        expect_damage("the sections lie outside the file");
        begin_13();
        image.header.e_phoff = far[i];
        expect_damage("the segments lie outside the file");
    }
    begin_13();
    image.sections[1].sh_link = 3;
    expect_damage("no valid table of names");
    begin_13();
    image.symbols[2].st_name = (Elf64_Word) names_length;
    expect_damage("a symbol's name lies outside");
    begin_13();
    image.header.e_shnum = UINT16_MAX;
    expect_damage("the sections lie outside the file");
    begin_13();
    image.header.e_phnum = UINT16_MAX;
    expect_damage("at most 64 segments");
}

static void shouldEndTheLastName(void) {
    begin_13();
    image.sections[2].sh_size = names_length - 1; /* without the last name's zero byte */
    HWS_CHECK(read_image() == 0 && functions.count == 3);
}

static void shouldRefuseFunctionsOutsideTheCode(void) {
    static const uint64_t far[] = {0, CODE_ADDRESS - 1, CODE_ADDRESS + CODE_BYTES, UINT64_MAX};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        begin_13();
        image.symbols[2].st_value = far[i];
        expect_damage("lie in one segment with code");
    }
    begin_13();
    image.symbols[2].st_size = CODE_BYTES;
    expect_damage("lie in one segment with code");
    begin_13();
    image.segments[1].p_flags = PF_R | PF_W | PF_X;
    expect_damage("lie in one segment with code");
    begin_13();
    image.segments[1].p_offset = UINT64_MAX - CODE_BYTES;
    expect_damage("the code lies outside the file");
}

static void shouldRefuseFunctionsThatOverlap(void) {
    begin_13();
    image.symbols[3].st_value = image.symbols[2].st_value + FUNCTION_BYTES - 1;
    expect_damage("two functions overlap: cudaMalloc and cudaLogsCurrent");
    begin_13();
    image.symbols[3].st_value = image.symbols[2].st_value;
    expect_damage("two functions overlap");
    begin_13();
    image.symbols[5] = image.symbols[2]; /* the same symbol twice is no contradiction */
    HWS_CHECK(read_image() == 0 && functions.count == 3);
}

static void shouldBoundTheNumberOfFunctions(void) {
    begin_13();
    while (symbol_count < HWS_MAX_FUNCTIONS + 2) {
        add_function("cudaMalloc");
    }
    HWS_CHECK(read_image() == 0 && functions.count == HWS_MAX_FUNCTIONS - 1);
    add_function("cudaMalloc");
    add_function("cudaMalloc");
    expect_damage("at most 2048 functions");
}

static void shouldRefuseOrReadTruncatedFiles(void) {
    static const size_t starts[] = {0, offsetof(image_t, symbols), offsetof(image_t, sections)};
    begin_13();
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        for (size_t cut = starts[i]; cut < starts[i] + 400 && cut < sizeof image; cut++) {
            read_bytes(&image, cut);
            HWS_CHECK(functions.count == 0); /* the sections are at the end */
        }
    }
}

static void shouldSurviveRandomChanges(void) {
    uint64_t state = 88172645463325252ull;
    unsigned read_well = 0;
    for (int round = 0; round < 4000; round++) {
        begin_13();
        for (int i = 0; i < 3; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            size_t header = sizeof image.header + sizeof image.segments, table = symbol_count * sizeof(Elf64_Sym);
            size_t at = state % 3 == 0 ? state / 3 % header
                : state % 3 == 1       ? offsetof(image_t, symbols) + state / 3 % table
                                       : offsetof(image_t, sections) + state / 3 % sizeof image.sections;
            ((unsigned char *) &image)[at] = (unsigned char) (state >> 40);
        }
        read_well += read_image() == 0 && functions.count > 0;
    }
    HWS_CHECK(read_well > 200); /* the changes reach all parts of the reader */
}

typedef struct change {
    int fd;
    _Atomic bool done;
} change_t;

static void *cut_and_restore(void *argument) {
    change_t *change = argument;
    while (!atomic_load(&change->done)) {
        HWS_CHECK(ftruncate(change->fd, sizeof image / 2) == 0);
        HWS_CHECK(pwrite(change->fd, &image, sizeof image, 0) == sizeof image);
    }
    return NULL;
}

/* Memory behind the end of a shorter file would end the process by SIGBUS. */
static void shouldSurviveAFileThatBecomesShorter(void) {
    pthread_t thread;
    change_t change = {memfd_create("image", MFD_CLOEXEC), false};
    begin_13();
    HWS_CHECK(pwrite(change.fd, &image, sizeof image, 0) == sizeof image);
    HWS_CHECK(pthread_create(&thread, NULL, cut_and_restore, &change) == 0);
    for (int i = 0; i < 500; i++) {
        int rc = hws_functions_read(change.fd, &functions, error, sizeof error);
        HWS_CHECK((rc == 0 || rc == -1) && functions.count <= 3); /* names behind the end read as empty */
    }
    atomic_store(&change.done, true);
    pthread_join(thread, NULL);
    close(change.fd);
}

int main(void) {
    HWS_RUN(shouldOrderNamesAsTheSearchDoes);
    HWS_RUN(shouldFindFunctionsByTheirNames);
    HWS_RUN(shouldDistinguishVersionsByNames);
    HWS_RUN(shouldLeaveFunctionsThatALibraryExports);
    HWS_RUN(shouldLeaveJumpsToASharedRuntime);
    HWS_RUN(shouldLeaveFilesWithoutASymbolTable);
    HWS_RUN(shouldRefuseTablesOutsideTheFile);
    HWS_RUN(shouldEndTheLastName);
    HWS_RUN(shouldRefuseFunctionsOutsideTheCode);
    HWS_RUN(shouldRefuseFunctionsThatOverlap);
    HWS_RUN(shouldBoundTheNumberOfFunctions);
    HWS_RUN(shouldRefuseOrReadTruncatedFiles);
    HWS_RUN(shouldSurviveRandomChanges);
    HWS_RUN(shouldSurviveAFileThatBecomesShorter);
    return 0;
}
