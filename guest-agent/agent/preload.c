/*
 * hawser preload on|off|status: whether all programs of this machine load libhawser-preload.so, by /etc/ld.so.preload.
 * It redirects statically linked CUDA runtimes of what programs load at their start.
 */
#include "linker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRELOAD "/etc/ld.so.preload"
#define LIBRARY "/libhawser-preload.so"
#define MAX_LIST_BYTES 65536 /* a longer file is not one that an administrator has written */

/* Reads the list; a file that does not exist is empty. Returns 0, or -1 with a message. */
static int read_list(const char *path, char text_p[MAX_LIST_BYTES + 1], char *error_p, size_t error_capacity) {
    size_t used = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    text_p[0] = '\0';
    if (fd < 0 && errno == ENOENT) {
        return 0;
    }
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && used <= MAX_LIST_BYTES) {
        n = read(fd, text_p + used, MAX_LIST_BYTES + 1 - used);
        used += n > 0 ? (size_t) n : 0;
    }
    if (n < 0) {
        snprintf(error_p, error_capacity, "%s: %s", path, strerror(errno));
    } else if (used > MAX_LIST_BYTES) {
        snprintf(error_p, error_capacity, "%s has more than %d bytes", path, MAX_LIST_BYTES);
    }
    if (fd >= 0) {
        close(fd);
    }
    text_p[used > MAX_LIST_BYTES ? 0 : used] = '\0';
    return n < 0 || used > MAX_LIST_BYTES ? -1 : 0;
}

static bool is_ours(const char *entry, size_t length) {
    size_t suffix = strlen(LIBRARY);
    return length >= suffix && memcmp(entry + length - suffix, LIBRARY, suffix) == 0;
}

/* Removes our library, of any folder, from a list; returns whether it was there. Entries end at blanks and colons. */
static bool drop(char *text) {
    bool found = false;
    for (char *entry = text + strspn(text, " \t\n:"); *entry != '\0'; entry += strspn(entry, " \t\n:")) {
        size_t length = strcspn(entry, " \t\n:");
        if (is_ours(entry, length)) {
            found = true;
            length += entry[length] != '\0';
            memmove(entry, entry + length, strlen(entry + length) + 1);
        } else {
            entry += length;
        }
    }
    return found;
}

static int change(const char *root, const char *path, const char *folder, bool on, char *error_p,
                  size_t error_capacity) {
    static char text[MAX_LIST_BYTES + 1 + HWS_MAX_PATH + sizeof LIBRARY + 2];
    char library[2 * HWS_MAX_PATH + sizeof LIBRARY];
    if (read_list(path, text, error_p, error_capacity) != 0) {
        return -1;
    }
    bool was_on = drop(text);
    if (on) {
        snprintf(library, sizeof library, "%s%s" LIBRARY, root, folder);
        if (hws_linker_check_owner(root, folder, error_p, error_capacity) != 0) {
            return -1;
        }
        if (access(library, R_OK) != 0) {
            snprintf(error_p, error_capacity, "%s: %s", library, strerror(errno));
            return -1;
        }
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s" LIBRARY "\n", used == 0 || text[used - 1] == '\n' ? "" : "\n",
                 folder);
    } else if (!was_on) {
        return 0;
    }
    if (text[0] != '\0') {
        return hws_linker_replace(path, text, error_p, error_capacity);
    }
    if (unlink(path) != 0) {
        snprintf(error_p, error_capacity, "%s: %s", path, strerror(errno));
        return -1;
    }
    return 0;
}

static int status(const char *path, char *error_p, size_t error_capacity) {
    static char text[MAX_LIST_BYTES + 1];
    if (read_list(path, text, error_p, error_capacity) != 0) {
        return -1;
    }
    bool on = drop(text);
    printf("%s: %s %s libhawser-preload.so\n", on ? "on" : "off", path, on ? "names" : "does not name");
    return on ? HWS_EXIT_OK : HWS_EXIT_PROBLEM;
}

int hws_agent_preload(int argc, char **argv) {
    char root[HWS_MAX_PATH], folder[HWS_MAX_PATH], path[HWS_MAX_PATH + sizeof PRELOAD], error[3 * HWS_MAX_PATH];
    const char *inside;
    if (argc < 2 || (strcmp(argv[1], "on") != 0 && strcmp(argv[1], "off") != 0 && strcmp(argv[1], "status") != 0)) {
        bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        fputs("usage: hawser preload on|off|status [--root FOLDER]\n", asked ? stdout : stderr);
        return asked ? HWS_EXIT_OK : HWS_EXIT_USAGE;
    }
    int rc = hws_linker_root(argc, argv, root, folder, &inside, error, sizeof error);
    if (rc == 0) {
        snprintf(path, sizeof path, "%s" PRELOAD, root);
        bool on = strcmp(argv[1], "on") == 0;
        if (strcmp(argv[1], "status") == 0) {
            rc = status(path, error, sizeof error);
        } else if ((rc = change(root, path, inside, on, error, sizeof error)) == 0) {
            printf(on ? "on: programs load %s" LIBRARY " at their start; what they open later needs `hawser run`\n"
                      : "off: `hawser run PROGRAM` redirects a static CUDA runtime, other programs do not\n",
                   inside);
        }
    }
    if (rc < 0) {
        fprintf(stderr, "hawser preload: %s\n", error);
        return HWS_EXIT_PROBLEM;
    }
    return rc;
}
