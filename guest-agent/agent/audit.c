/*
 * libhawser-audit.so: makes a program load our libraries, whatever its RPATH is and by whatever path it opens them.
 * When LD_AUDIT names it, as in `hawser run`, the dynamic linker passes it each library's name (rtld-audit(7),
 * la_objsearch). Wheels that auditwheel has processed contain renamed copies (libcudart.faf08d9a.so.13); it replaces
 * those too.
 */
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define LIBRARIES 3
#define MAX_PATH 4096

static const char *const names[LIBRARIES] = {"libcuda.so.1", "libcudart.so.12", "libcudart.so.13"};
static char paths[LIBRARIES][MAX_PATH]; /* "" for a missing one */

/* Whether a library is this one: our data lies in one of its segments. */
static bool is_own(const struct dl_phdr_info *info) {
    uintptr_t here = (uintptr_t) paths - info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && here >= segment->p_vaddr && here - segment->p_vaddr < segment->p_memsz) {
            return true;
        }
    }
    return false;
}

static int find_ours(struct dl_phdr_info *info, size_t size, void *ignored) {
    (void) size;
    (void) ignored;
    if (!is_own(info)) {
        return 0;
    }
    const char *slash = strrchr(info->dlpi_name, '/');
    int folder = slash == NULL ? 0 : (int) (slash - info->dlpi_name) + 1;
    for (int i = 0; i < LIBRARIES; i++) {
        int length = snprintf(paths[i], sizeof paths[i], "%.*s%s", folder, info->dlpi_name, names[i]);
        if (length < 0 || length >= MAX_PATH || access(paths[i], R_OK) != 0) {
            paths[i][0] = '\0';
        }
    }
    return 1;
}

EXPORT unsigned int la_version(unsigned int version) {
    /* Not dladdr: until glibc 2.34 it does not work so early. */
    dl_iterate_phdr(find_ours, NULL);
    return version; /* the functions that we use are the same in all versions */
}

/* Whether the text is the word, or the word followed by ".number". */
static bool is_version(const char *text, const char *word) {
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && (text[length] == '\0' || text[length] == '.');
}

/* The index of our library that replaces a name without a folder; -1 for none. */
static int ours(const char *base) {
    if (strcmp(base, "libcuda.so") == 0 || is_version(base, "libcuda.so.1")) {
        return 0;
    }
    static const char stem[] = "libcudart";
    if (strncmp(base, stem, sizeof stem - 1) != 0) {
        return -1;
    }
    const char *rest = base + sizeof stem - 1;
    if (rest[0] == '-' || (rest[0] == '.' && strncmp(rest, ".so", 3) != 0)) {
        size_t digits = strspn(rest + 1, "0123456789abcdef");
        if (digits == 0) {
            return -1;
        }
        rest += 1 + digits;
    }
    return is_version(rest, ".so.12") ? 1 : is_version(rest, ".so.13") ? 2 : -1;
}

EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag) {
    (void) cookie;
    (void) flag;
    const char *slash = strrchr(name, '/');
    int which = ours(slash == NULL ? name : slash + 1);
    return which >= 0 && paths[which][0] != '\0' ? paths[which] : (char *) name;
}
