/* Finds our libraries and makes programs use them. */
#include "agent.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AUDIT "libhawser-audit.so"

/*
 * The reserve for static thread memory, which each thread has. Under LD_AUDIT the dynamic linker counts the memory of a
 * program's own libraries against it, such as jemalloc's 2,632 bytes. The default of 512 bytes ends such a program
 * (glibc bug 31991).
 */
#define STATIC_TLS "glibc.rtld.optional_static_tls"
#define STATIC_TLS_BYTES "16384"

/* Relative to the program's folder: in the archive, in a package, in the build tree. */
static const char *const places[] = {"../lib/guest", "../lib/hawser/guest", "../lib"};

static bool has_libraries(const char *folder) {
    char path[HWS_MAX_PATH + 32];
    snprintf(path, sizeof path, "%s/" AUDIT, folder);
    if (access(path, R_OK) != 0) {
        return false;
    }
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
    return access(path, R_OK) == 0;
}

int hws_agent_libraries(char folder[HWS_MAX_PATH], char *error_p, size_t error_capacity) {
    const char *named = getenv("HAWSER_LIBRARY_DIR");
    if (named != NULL) {
        if (realpath(named, folder) != NULL && has_libraries(folder)) {
            return 0;
        }
        snprintf(error_p, error_capacity, "HAWSER_LIBRARY_DIR has no " AUDIT " and libcuda.so.1: %s", named);
        return -1;
    }
    char self[HWS_MAX_PATH], candidate[HWS_MAX_PATH + 64];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) {
        snprintf(error_p, error_capacity, "/proc/self/exe cannot be read; set HAWSER_LIBRARY_DIR");
        return -1;
    }
    self[length] = '\0';
    const char *own = dirname(self);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s", own, places[i]);
        if (realpath(candidate, folder) != NULL && has_libraries(folder)) {
            return 0;
        }
    }
    snprintf(error_p, error_capacity, "the guest libraries are not beside %s; set HAWSER_LIBRARY_DIR to their folder",
             own);
    return -1;
}

/* Puts `first` at the head of a variable, unless it is there already. */
static int put_first(const char *variable, const char *first) {
    const char *before = getenv(variable);
    size_t length = strlen(first);
    if (before == NULL || before[0] == '\0') {
        return setenv(variable, first, 1);
    }
    if (strncmp(before, first, length) == 0 && (before[length] == '\0' || before[length] == ':')) {
        return 0;
    }
    char *both;
    if (asprintf(&both, "%s:%s", first, before) < 0) {
        return -1;
    }
    int rc = setenv(variable, both, 1);
    free(both);
    return rc;
}

/* Enlarges the reserve for static thread memory, unless the user has chosen its size. */
static int reserve_thread_memory(void) {
    const char *tunables = getenv("GLIBC_TUNABLES");
    return tunables != NULL && strstr(tunables, STATIC_TLS "=") != NULL
        ? 0
        : put_first("GLIBC_TUNABLES", STATIC_TLS "=" STATIC_TLS_BYTES);
}

int hws_agent_prefer(const char *folder) {
    char audit[HWS_MAX_PATH + 32];
    snprintf(audit, sizeof audit, "%s/" AUDIT, folder);
    return put_first("LD_LIBRARY_PATH", folder) != 0 || put_first("LD_AUDIT", audit) != 0
            || reserve_thread_memory() != 0
        ? -1
        : 0;
}

int hws_agent_find_program(const char *name, char path[HWS_MAX_PATH]) {
    if (strchr(name, '/') != NULL) {
        return snprintf(path, HWS_MAX_PATH, "%s", name) < HWS_MAX_PATH && access(path, X_OK) == 0 ? 0 : -1;
    }
    const char *folders = getenv("PATH");
    for (const char *p = folders == NULL ? "/usr/bin:/bin" : folders; p != NULL;) {
        const char *colon = strchr(p, ':');
        int length = colon == NULL ? (int) strlen(p) : (int) (colon - p);
        if (snprintf(path, HWS_MAX_PATH, "%.*s/%s", length == 0 ? 1 : length, length == 0 ? "." : p, name)
                < HWS_MAX_PATH
            && access(path, X_OK) == 0) {
            return 0;
        }
        p = colon == NULL ? NULL : colon + 1;
    }
    return -1;
}
