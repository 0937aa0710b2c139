/*
 * libhawser-audit.so: makes a program load our libraries, whatever its RPATH is and by whatever path it opens them.
 * When LD_AUDIT names it, as in `hawser run`, the dynamic linker passes it each library's name (rtld-audit(7),
 * la_objsearch). Wheels that auditwheel has processed contain renamed copies (libcudart.faf08d9a.so.13); it replaces
 * those too. In each object that contains a CUDA runtime it redirects the runtime's functions (la_objopen).
 */
#include "redirect.h"

#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The libraries of Hawser. A program means one of them by any name of these forms: STEM.so, STEM.so.MAJOR,
 * STEM.so.MAJOR.MINOR, and in wheels STEM-HEX.so.MAJOR or STEM.HEX.so.MAJOR. */
static const struct {
    const char *file, *stem, *major;
    bool plain; /* STEM.so without a number means this file */
} libraries[] = {
    {"libcuda.so.1", "libcuda", "1", true},
    {"libnvidia-ml.so.1", "libnvidia-ml", "1", true},
    {"libcudart.so.12", "libcudart", "12", false},
    {"libcudart.so.13", "libcudart", "13", false},
    {"libcublas.so.12", "libcublas", "12", false},
    {"libcublas.so.13", "libcublas", "13", false},
    {"libcublasLt.so.12", "libcublasLt", "12", false},
    {"libcublasLt.so.13", "libcublasLt", "13", false},
    {"libcufft.so.11", "libcufft", "11", false},
    {"libcufft.so.12", "libcufft", "12", false},
    {"libcudnn.so.9", "libcudnn", "9", true},
    {"libcusolver.so.11", "libcusolver", "11", false},
    {"libcusolver.so.12", "libcusolver", "12", false},
    {"libcusparse.so.12", "libcusparse", "12", true},
    {"libcurand.so.10", "libcurand", "10", true},
    {"libnccl.so.2", "libnccl", "2", true},
    {"libcusparseLt.so.0", "libcusparseLt", "0", true},
};
#define LIBRARIES (sizeof libraries / sizeof *libraries)

static char paths[LIBRARIES][HWS_REDIRECT_MAX_PATH]; /* "" for a missing one */
static unsigned int objects[LIBRARIES];              /* loaded from these paths, one in each namespace */

/* The file to which `hawser doctor` wants each library written; NULL for none. */
static const char *list;

/* Writes a line in one piece: processes of a program share the file. */
static void write_line(const char *kind, const char *name, const char *file, const char *requester) {
    char line[4 * HWS_REDIRECT_MAX_PATH];
    int length = file == NULL ? snprintf(line, sizeof line, "%s\t%s\n", kind, name)
                              : snprintf(line, sizeof line, "%s\t%s\t%s\t%s\n", kind, name, file, requester);
    int descriptor = open(list, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor >= 0) {
        if (length > 0 && (size_t) length < sizeof line && write(descriptor, line, (size_t) length) != length) {
            list = NULL; /* the disk is full: the list stays incomplete */
        }
        close(descriptor);
    }
}

EXPORT unsigned int la_version(unsigned int version) {
    list = secure_getenv("HAWSER_LIBRARY_LIST");
    for (size_t i = 0; i < LIBRARIES; i++) {
        hws_redirect_beside(libraries[i].file, paths[i]);
    }
    hws_redirect_begin();
    return version; /* the functions that we use are the same in all versions */
}

static void count(const char *file, unsigned int change) {
    for (size_t i = 0; i < LIBRARIES; i++) {
        if (paths[i][0] != '\0' && strcmp(paths[i], file) == 0) {
            __atomic_fetch_add(&objects[i], change, __ATOMIC_RELAXED);
        }
    }
}

/*
 * An object is mapped. The dynamic linker holds its lock, and has given the object's address to nobody, so no thread
 * executes it. The cookie stays the object's link map.
 */
EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
    (void) space;
    (void) cookie;
    count(map->l_name, 1);
    if (list != NULL && map->l_name[0] == '/') {
        write_line("loaded", map->l_name, NULL, NULL);
    }
    hws_redirect_object(map->l_name, map->l_addr, map->l_ld);
    return 0; /* no binding of symbols is audited */
}

EXPORT unsigned int la_objclose(uintptr_t *cookie) {
    count(((const struct link_map *) *cookie)->l_name, -1u);
    return 0;
}

/* Whether a name without a folder means library i. */
static bool means(const char *base, size_t i) {
    size_t stem = strlen(libraries[i].stem), major = strlen(libraries[i].major);
    if (strncmp(base, libraries[i].stem, stem) != 0) {
        return false;
    }
    const char *rest = base + stem;
    if (rest[0] == '-' || (rest[0] == '.' && strncmp(rest, ".so", 3) != 0)) {
        size_t digits = strspn(rest + 1, "0123456789abcdef");
        if (digits == 0) {
            return false;
        }
        rest += 1 + digits;
    }
    if (strncmp(rest, ".so", 3) != 0) {
        return false;
    }
    rest += 3;
    if (rest[0] == '\0') {
        return libraries[i].plain;
    }
    return rest[0] == '.' && strncmp(rest + 1, libraries[i].major, major) == 0
        && (rest[1 + major] == '\0' || rest[1 + major] == '.');
}

/*
 * The linker looks for the names of a library's dependencies among those of the loaded objects, and ends the program
 * when a dependency with versions is missing. A loaded object gets the name that the linker searches in folders, but
 * not one that is replaced before. So a renamed copy of a library that is loaded is replaced in the first folder.
 */
EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag) {
    const char *slash = strrchr(name, '/');
    const char *base = slash == NULL ? name : slash + 1;
    for (size_t i = 0; i < LIBRARIES; i++) {
        if (paths[i][0] != '\0' && means(base, i)) {
            if (list != NULL && flag == LA_SER_ORIG) {
                write_line("replaced", name, libraries[i].file, ((const struct link_map *) *cookie)->l_name);
            }
            bool renamed = strncmp(base + strlen(libraries[i].stem), ".so", 3) != 0;
            bool loaded = __atomic_load_n(&objects[i], __ATOMIC_RELAXED) > 0;
            return flag == LA_SER_ORIG && slash == NULL && renamed && loaded ? (char *) name : paths[i];
        }
    }
    return (char *) name;
}
