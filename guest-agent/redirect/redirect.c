#include "redirect.h"

#include "block.h"
#include "functions.h"

#include "hws_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXIT_NO_CODE 127 /* as the dynamic linker exits when it cannot finish its work */

/* The code of one function, and the jump for it. */
typedef struct change {
    unsigned char *at;
    size_t bytes;
    unsigned char jump[HWS_JUMP_BYTES];
} change_t;

/* A line of /proc/self/maps. */
typedef struct mapping {
    uintptr_t start, end;
    char access[5];
    uint64_t offset;
    char path[HWS_REDIRECT_MAX_PATH];
} mapping_t;

/* An object, and all that is large: dlopen may come from a thread with a small stack. */
typedef struct object {
    int fd;
    char path[HWS_REDIRECT_MAX_PATH];
    uintptr_t base, inside;
    uintptr_t low, high; /* whole pages that contain the functions */
    size_t page;
    size_t count;                           /* of changes */
    mapping_t mapping;                      /* the one that was found last */
    char maps[HWS_REDIRECT_MAX_PATH + 256]; /* a part of /proc/self/maps, longer than a line */
    hws_functions_t functions;
    change_t changes[HWS_MAX_FUNCTIONS];
} object_t;

typedef struct beside {
    const char *name;
    char *path;
} beside_t;

/* Whether a library is this one: our code lies in one of its segments. */
static bool is_own(const struct dl_phdr_info *info) {
    uintptr_t here = (uintptr_t) is_own - info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && here >= segment->p_vaddr && here - segment->p_vaddr < segment->p_memsz) {
            return true;
        }
    }
    return false;
}

static int find_beside(struct dl_phdr_info *info, size_t size, void *argument) {
    const beside_t *beside = argument;
    (void) size;
    if (!is_own(info)) {
        return 0;
    }
    const char *slash = strrchr(info->dlpi_name, '/');
    int folder = slash == NULL ? 0 : (int) (slash - info->dlpi_name) + 1;
    int length = snprintf(beside->path, HWS_REDIRECT_MAX_PATH, "%.*s%s", folder, info->dlpi_name, beside->name);
    if (length < 0 || length >= HWS_REDIRECT_MAX_PATH || access(beside->path, R_OK) != 0) {
        beside->path[0] = '\0';
    }
    return 1;
}

void hws_redirect_beside(const char *name, char path_p[HWS_REDIRECT_MAX_PATH]) {
    beside_t beside = {name, path_p};
    path_p[0] = '\0';
    dl_iterate_phdr(find_beside, &beside); /* not dladdr: until glibc 2.34 it does not work so early */
}

void hws_redirect_begin(void) {
    static char paths[2][HWS_REDIRECT_MAX_PATH];
    for (int i = 0; i < 2; i++) {
        char found[HWS_REDIRECT_MAX_PATH];
        hws_redirect_beside(i == 0 ? "libcudart.so.12" : "libcudart.so.13", found);
        /* The first call may come after the program has changed its folder. */
        if (found[0] != '\0' && realpath(found, paths[i]) != NULL) {
            hws_block_set_library(12 + i, paths[i]);
        }
    }
}

typedef bool (*is_wanted_t)(const object_t *object);

/* Finds the first wanted mapping of this process. */
static bool find_mapping(object_t *object, is_wanted_t is_wanted) {
    mapping_t *mapping = &object->mapping;
    size_t used = 0;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; fd >= 0 && n > 0 && !found;) {
        n = read(fd, object->maps + used, sizeof object->maps - 1 - used);
        used += n > 0 ? (size_t) n : 0;
        object->maps[used] = '\0';
        char *line = object->maps, *end;
        while (!found && (end = strchr(line, '\n')) != NULL) {
            *end = '\0';
            mapping->path[0] = '\0';
            found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %*s %*s %4095[^\n]", &mapping->start,
                           &mapping->end, mapping->access, &mapping->offset, mapping->path)
                    >= 4
                && is_wanted(object);
            line = end + 1;
        }
        used -= (size_t) (line - object->maps);
        memmove(object->maps, line, used);
    }
    if (fd >= 0) {
        close(fd);
    }
    return found;
}

static bool contains_inside(const object_t *object) {
    return object->mapping.start <= object->inside && object->inside < object->mapping.end;
}

/* Whether a mapping is code of a file, not writable, and has the object's functions where the file's headers say. */
static bool contains_code(const object_t *object) {
    const mapping_t *mapping = &object->mapping;
    uint64_t wanted = object->functions.at[0].offset - object->functions.at[0].address;
    return mapping->start <= object->low && object->high <= mapping->end && strncmp(mapping->access, "r-x", 3) == 0
        && mapping->offset - (mapping->start - object->base) == wanted;
}

/*
 * Whether the memory has the file's code. A file that was replaced, or became shorter, after it was mapped fails here:
 * its table describes other code. Reads the file first, since memory behind a shorter file's end must not be touched.
 */
static bool is_same_code(const object_t *object, const hws_function_t *function) {
    unsigned char code[HWS_JUMP_BYTES];
    size_t bytes = function->size < sizeof code ? (size_t) function->size : sizeof code;
    return hws_functions_read_at(object->fd, function->offset, code, bytes)
        && memcmp(code, (const void *) (object->base + function->address), bytes) == 0;
}

/*
 * Whether the system lets code of this file change. SELinux (execmod) and MemoryDenyWriteExecute forbid it when the
 * page becomes executable again, which is too late for the program's own pages. So one page is tried elsewhere.
 */
static bool may_change(const object_t *object) {
    off_t offset = (off_t) ((object->functions.at[0].offset) / object->page * object->page);
    volatile unsigned char *copy = mmap(NULL, object->page, PROT_READ | PROT_WRITE, MAP_PRIVATE, object->fd, offset);
    if (copy == MAP_FAILED) {
        return false;
    }
    copy[0] = copy[0]; /* the page is now a changed copy of the file's */
    bool may = mprotect((void *) copy, object->page, PROT_READ | PROT_EXEC) == 0;
    int failure = errno;
    munmap((void *) copy, object->page);
    errno = failure;
    return may;
}

static void refuse(const object_t *object, const char *reason) {
    hws_log(HWS_ERROR, "%s: its CUDA runtime is not redirected, and its calls to the GPU fail: %s", object->path,
            reason);
}

static void refuse_for(const object_t *object, int failure) {
    char reason[256];
    if (failure == EACCES || failure == EPERM) {
        snprintf(reason, sizeof reason,
                 "the system forbids to change code in memory (SELinux execmod or execmem, or "
                 "MemoryDenyWriteExecute): allow it for this program, or link it with nvcc -cudart shared");
    } else {
        snprintf(reason, sizeof reason, "%s", strerror(failure));
    }
    refuse(object, reason);
}

/* Plans all changes; returns false, with a line, when they must not be made. */
static bool plan(object_t *object) {
    const hws_functions_t *functions = &object->functions;
    const hws_function_t *last = &functions->at[functions->count - 1];
    object->low = (object->base + functions->at[0].address) / object->page * object->page;
    object->high = (object->base + last->address + last->size + object->page - 1) / object->page * object->page;
    if (!find_mapping(object, contains_code)) {
        refuse(object, "/proc/self/maps does not show its code where its file says: was the file replaced?");
        return false;
    }
    if (!may_change(object)) {
        refuse_for(object, errno);
        return false;
    }
    const hws_block_t *block = hws_block_near(functions->major, object->low, object->high);
    if (block == NULL) {
        refuse_for(object, errno);
        return false;
    }
    for (size_t i = 0; i < functions->count; i++) {
        const hws_function_t *function = &functions->at[i];
        change_t *change = &object->changes[object->count];
        uintptr_t address = object->base + function->address;
        if (!is_same_code(object, function)) {
            refuse(object, "its code in memory differs from its file: was the file replaced?");
            return false;
        }
        change->at = (unsigned char *) address;
        change->bytes = hws_block_jump(block, function->name, address, (size_t) function->size, change->jump);
        object->count += change->bytes > 0; /* a function without room for a jump stays: __cudaGetProcAddress */
    }
    return true;
}

/* The pages are writable only here, and never both writable and executable. */
static void make_changes(const object_t *object) {
    size_t bytes = object->high - object->low;
    if (mprotect((void *) object->low, bytes, PROT_READ | PROT_WRITE) != 0) {
        refuse_for(object, errno);
        return;
    }
    for (size_t i = 0; i < object->count; i++) {
        memcpy(object->changes[i].at, object->changes[i].jump, object->changes[i].bytes);
    }
    if (mprotect((void *) object->low, bytes, PROT_READ | PROT_EXEC) != 0) {
        refuse_for(object, errno); /* may_change has tried the same: the program cannot go on without its code */
        _exit(EXIT_NO_CODE);
    }
    hws_log(HWS_DEBUG, "%s: %zu functions of its CUDA %d runtime lead to %s", object->path, object->count,
            object->functions.major, hws_block_library(object->functions.major));
}

static void redirect(object_t *object) {
    char error[256];
    if (hws_functions_read(object->fd, &object->functions, error, sizeof error) != 0) {
        hws_log(HWS_WARN, "%s: its symbol table is damaged, so a CUDA runtime in it would not be redirected: %s",
                object->path, error);
    } else if (object->functions.major == 11) {
        refuse(object, "it is of CUDA 11 or older: build the program with CUDA 12 or 13");
    } else if (object->functions.count > 0 && hws_block_library(object->functions.major) == NULL) {
        refuse(object,
               object->functions.major == 12 ? "libcudart.so.12 is not in Hawser's folder"
                                             : "libcudart.so.13 is not in Hawser's folder");
    } else if (object->functions.count > 0 && plan(object)) {
        make_changes(object);
    }
}

/* Opens the file of an object. The dynamic linker has no name for the program, and may itself be /proc/self/exe. */
static void open_file(object_t *object, const char *name) {
    bool is_program = name[0] == '\0';
    bool is_shown = is_program && find_mapping(object, contains_inside) && object->mapping.path[0] == '/';
    snprintf(object->path, sizeof object->path, "%s",
             is_shown         ? object->mapping.path
                 : is_program ? "/proc/self/exe"
                              : name);
    object->fd = open(object->path, O_RDONLY | O_CLOEXEC);
}

void hws_redirect_object(const char *name, uintptr_t base, const void *inside) {
    if (name[0] != '\0' && strchr(name, '/') == NULL) {
        return; /* the kernel's linux-vdso.so.1 */
    }
    object_t *object = mmap(NULL, sizeof *object, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (object == MAP_FAILED) {
        hws_log(HWS_ERROR, "%s: no memory to look for a CUDA runtime", name);
        return;
    }
    object->base = base;
    object->inside = (uintptr_t) inside;
    object->page = (size_t) sysconf(_SC_PAGESIZE);
    open_file(object, name);
    if (object->fd >= 0) { /* a user may have the right to execute a file and not to read it */
        redirect(object);
        close(object->fd);
    }
    munmap(object, sizeof *object);
}
