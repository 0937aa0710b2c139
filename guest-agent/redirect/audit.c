/*
 * libhawser-audit.so: makes a program load our libraries, whatever its RPATH is and by whatever path it opens them.
 * When LD_AUDIT names it, as in `hawser run`, the dynamic linker passes it each library's name (rtld-audit(7),
 * la_objsearch). Wheels that auditwheel has processed contain renamed copies (libcudart.faf08d9a.so.13); it replaces
 * those too. In each object that contains a CUDA runtime it redirects the runtime's functions (la_objopen).
 */
#include "redirect.h"

#include <link.h>
#include <stdbool.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define LIBRARIES 4

static const char *const names[LIBRARIES] = {"libcuda.so.1", "libcudart.so.12", "libcudart.so.13", "libnvidia-ml.so.1"};
static char paths[LIBRARIES][HWS_REDIRECT_MAX_PATH]; /* "" for a missing one */

EXPORT unsigned int la_version(unsigned int version) {
    for (int i = 0; i < LIBRARIES; i++) {
        hws_redirect_beside(names[i], paths[i]);
    }
    hws_redirect_begin();
    return version; /* the functions that we use are the same in all versions */
}

/*
 * An object is mapped. The dynamic linker holds its lock, and has given the object's address to nobody, so no thread
 * executes it.
 */
EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
    (void) space;
    (void) cookie;
    hws_redirect_object(map->l_name, map->l_addr, map->l_ld);
    return 0; /* no binding of symbols is audited */
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
    if (strcmp(base, "libnvidia-ml.so") == 0 || is_version(base, "libnvidia-ml.so.1")) {
        return 3;
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
