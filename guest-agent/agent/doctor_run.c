/*
 * hawser doctor PROGRAM ARGUMENT...: what a program loads. The audit library writes each library to a file, which this
 * file reads when the program has ended.
 */
#include "agent.h"
#include "doctor.h"

#include <errno.h>
#include <glob.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIST_VARIABLE "HAWSER_LIBRARY_LIST" /* of libhawser-audit.so */
#define SITE "-packages/"                   /* site-packages and Debian's dist-packages */
#define INFO ".dist-info/RECORD"
#define MAX_SEEN 512 /* libraries that are reported; further ones are counted */

extern char **environ;

/* The versions a.b.c are compared number by number; missing numbers are 0. */
static int compare_versions(const char *a, const char *b) {
    while (*a != '\0' || *b != '\0') {
        char *end_a, *end_b;
        long left = strtol(a, &end_a, 10), right = strtol(b, &end_b, 10);
        if (left != right) {
            return left < right ? -1 : 1;
        }
        a = *end_a == '.' ? end_a + 1 : "";
        b = *end_b == '.' ? end_b + 1 : "";
    }
    return 0;
}

/* Whether a list of a wheel's files has one; the list's lines begin with the file's name. */
static bool lists(const char *record, const char *file) {
    FILE *list = fopen(record, "re");
    char *line = NULL;
    size_t capacity = 0, length = strlen(file);
    bool found = false;
    while (list != NULL && !found && getline(&line, &capacity, list) >= 0) {
        found = strncmp(line, file, length) == 0 && line[length] == ',';
    }
    free(line);
    if (list != NULL) {
        fclose(list);
    }
    return found;
}

/* The version of the wheel that has installed a file: `nvidia_cublas-13.1.0.3.dist-info` lists it. "" for none. */
static void wheel_version(const char *path, char version[64]) {
    version[0] = '\0';
    const char *site = strstr(path, SITE);
    char pattern[HWS_MAX_PATH];
    glob_t found;
    if (site == NULL) {
        return;
    }
    const char *file = site + strlen(SITE);
    snprintf(pattern, sizeof pattern, "%.*snvidia_*" INFO, (int) (file - path), path);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) {
        return;
    }
    for (size_t i = 0; i < found.gl_pathc && version[0] == '\0'; i++) {
        char *end = found.gl_pathv[i] + strlen(found.gl_pathv[i]) - strlen(INFO);
        if (lists(found.gl_pathv[i], file)) {
            *end = '\0';
            const char *dash = strrchr(found.gl_pathv[i], '-');
            snprintf(version, 64, "%s", dash == NULL ? "" : dash + 1);
        }
    }
    globfree(&found);
}

/* The file of a wheel that a library would have loaded under a name without a folder; "" for none. */
static void wheel_file(const char *requester, const char *name, char path[HWS_MAX_PATH]) {
    path[0] = '\0';
    const char *site = strstr(requester, SITE);
    char pattern[HWS_MAX_PATH];
    glob_t found;
    if (site == NULL) {
        return;
    }
    snprintf(pattern, sizeof pattern, "%.*snvidia/*/lib/%s", (int) (site + strlen(SITE) - requester), requester, name);
    if (glob(pattern, 0, NULL, &found) == 0) {
        snprintf(path, HWS_MAX_PATH, "%s", found.gl_pathv[0]);
        globfree(&found);
    }
}

/* The broker's library with the stem of a file name, whatever its number; NULL when it has none. */
static const hws_doctor_library_t *broker_library(const char *file) {
    int count;
    const hws_doctor_library_t *libraries = hws_doctor_libraries(&count);
    const char *end = strstr(file, ".so.");
    for (int i = 0; end != NULL && i < count; i++) {
        if (strncmp(libraries[i].soname, file, (size_t) (end - file) + strlen(".so.")) == 0) {
            return &libraries[i];
        }
    }
    return NULL;
}

/* Whether the worker needs a library of the broker's machine to serve ours. */
static bool needs_broker(const char *file) {
    return strncmp(file, "libcuda.so", 10) != 0 && strncmp(file, "libcudart", 9) != 0
        && strncmp(file, "libnvidia-ml", 12) != 0;
}

/* Reports a library of ours that the program has instead of another one. */
static void report_ours(const char *file, const char *name, const char *requester) {
    char place[HWS_MAX_PATH], version[64], instead[HWS_MAX_PATH + 128] = "";
    int count;
    (void) hws_doctor_libraries(&count);
    if (name[0] == '/') {
        snprintf(place, sizeof place, "%s", access(name, F_OK) == 0 ? name : "");
    } else {
        wheel_file(requester, name, place);
    }
    wheel_version(place, version);
    if (place[0] != '\0') {
        snprintf(instead, sizeof instead, ", in place of %s%s%s", place, version[0] == '\0' ? "" : " ", version);
    }
    const hws_doctor_library_t *theirs = broker_library(file);
    if (!needs_broker(file) || count < 0) {
        GOOD("%s: ours%s", file, instead);
    } else if (theirs == NULL) {
        WARN("%s: ours%s; the broker has no such library, so its calls return \"not supported\": install it beside the "
             "GPU",
             file, instead);
    } else if (version[0] != '\0' && theirs->version[0] != '-' && compare_versions(theirs->version, version) < 0) {
        WARN("%s: ours%s; the broker's %s %s is older: programs such as PyTorch may refuse it, so install %s or newer "
             "beside the GPU",
             file, instead, theirs->soname, theirs->version, version);
    } else {
        GOOD("%s: ours%s; the broker has %s %s", file, instead, theirs->soname, theirs->version);
    }
}

/* The linker also lists ours, which report_ours() has reported by the library that they replace. */
static void report_loaded(const char *path, const char *folder) {
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) == 0 && path[length] == '/') {
        return;
    }
    const char *slash = strrchr(path, '/');
    if (slash != NULL && hws_doctor_is_closed(slash + 1)) {
        WARN("%s: Hawser does not serve this library yet: its functions find no GPU here", path);
    } else {
        hws_doctor_check_code(path, false);
    }
}

/* Reports each line of the list once: kind, name, and for a replaced library the file and the requester. */
static void report(FILE *list, const char *folder) {
    static char *seen[MAX_SEEN];
    unsigned int count = 0, more = 0;
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, list) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = line;
        const char *kind = strsep(&rest, "\t"), *name = strsep(&rest, "\t"), *file = strsep(&rest, "\t");
        const char *key = file != NULL ? file : name;
        bool known = key == NULL;
        for (unsigned int i = 0; i < count && !known; i++) {
            known = strcmp(seen[i], key) == 0;
        }
        if (known) {
            continue;
        }
        if (count == MAX_SEEN || (seen[count] = strdup(key)) == NULL) {
            more++;
            continue;
        }
        count++;
        if (strcmp(kind, "replaced") == 0 && file != NULL) {
            report_ours(file, name, rest == NULL ? "" : rest);
        } else {
            report_loaded(name, folder);
        }
    }
    free(line);
    while (count > 0) {
        free(seen[--count]);
    }
    if (more > 0) {
        NOTE("%u further libraries were not checked", more);
    }
}

static void run(char **argv) {
    pid_t child;
    int outcome = 0;
    NOTE("running %s", argv[0]);
    fflush(stdout);
    int failure = posix_spawnp(&child, argv[0], NULL, NULL, argv, environ);
    if (failure != 0) {
        FAIL("%s: %s", argv[0], strerror(failure));
    } else if (waitpid(child, &outcome, 0) == child && outcome != 0) {
        WIFSIGNALED(outcome) ? FAIL("%s: ended by signal %d", argv[0], WTERMSIG(outcome))
                             : FAIL("%s: ended with exit code %d", argv[0], WEXITSTATUS(outcome));
    }
}

void hws_doctor_run(char **argv, const char *folder) {
    char path[] = "/tmp/hawser-doctor.XXXXXX";
    int descriptor = mkstemp(path);
    FILE *list = descriptor < 0 ? NULL : fdopen(descriptor, "r");
    if (list == NULL) {
        FAIL("%s: its libraries cannot be listed: %s", argv[0], strerror(errno));
        return;
    }
    if (setenv(LIST_VARIABLE, path, 1) == 0) {
        run(argv);
        report(list, folder);
    } else {
        FAIL("no memory for the environment");
    }
    fclose(list);
    unlink(path);
}
