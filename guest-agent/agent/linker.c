/* hawser libraries on|off|auto|status: whether all programs of this machine find our libraries. */
#include "linker.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *ldconfig(void) {
    return access("/sbin/ldconfig", X_OK) == 0 ? "/sbin/ldconfig" : "/usr/sbin/ldconfig";
}

/* Runs ldconfig, with a file for its output or NULL. Returns 0, or -1 with a message. */
static int run_ldconfig(const char *root, const char *option, FILE **output_p, pid_t *child_p, char *error_p,
                        size_t error_capacity) {
    char *arguments[5] = {(char *) ldconfig()};
    int count = 1, ends[2] = {-1, -1};
    if (root[0] != '\0') {
        arguments[count++] = "-r";
        arguments[count++] = (char *) root;
    }
    arguments[count] = (char *) option;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (output_p != NULL) {
        if (pipe2(ends, O_CLOEXEC) != 0) {
            snprintf(error_p, error_capacity, "no pipe can be made: %s", strerror(errno));
            posix_spawn_file_actions_destroy(&actions);
            return -1;
        }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    }
    fflush(stdout);
    int failure = posix_spawn(child_p, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (output_p != NULL) {
        close(ends[1]);
        *output_p = failure == 0 ? fdopen(ends[0], "r") : NULL;
        if (*output_p == NULL) {
            close(ends[0]);
        }
    }
    if (failure != 0) {
        snprintf(error_p, error_capacity, "%s cannot be started: %s", arguments[0], strerror(failure));
        return -1;
    }
    return 0;
}

static int wait_ldconfig(pid_t child, char *error_p, size_t error_capacity) {
    int outcome;
    while (waitpid(child, &outcome, 0) < 0) {
        if (errno != EINTR) {
            snprintf(error_p, error_capacity, "%s cannot be waited for: %s", ldconfig(), strerror(errno));
            return -1;
        }
    }
    if (outcome != 0) {
        snprintf(error_p, error_capacity, "%s has failed", ldconfig());
        return -1;
    }
    return 0;
}

int hws_linker_driver(const char *root, char path_p[HWS_MAX_PATH], char *error_p, size_t error_capacity) {
    FILE *list;
    pid_t child;
    path_p[0] = '\0';
    if (run_ldconfig(root, "-p", &list, &child, error_p, error_capacity) != 0) {
        return -1;
    }
    char *line = NULL;
    size_t capacity = 0;
    /* "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/..."; programs use the first one. */
    while (getline(&line, &capacity, list) >= 0) {
        char *name = line + strspn(line, "\t "), *arrow = strstr(name, " => ");
        if (path_p[0] == '\0' && strncmp(name, "libcuda.so.1 ", 13) == 0 && strstr(name, "x86-64") != NULL
            && arrow != NULL) {
            arrow[4 + strcspn(arrow + 4, "\n")] = '\0';
            snprintf(path_p, HWS_MAX_PATH, "%s", arrow + 4);
        }
    }
    free(line);
    fclose(list);
    return wait_ldconfig(child, error_p, error_capacity);
}

int hws_linker_check_owner(const char *root, const char *folder, char *error_p, size_t error_capacity) {
    char path[2 * HWS_MAX_PATH];
    snprintf(path, sizeof path, "%s%s", root, folder);
    size_t least = strlen(root);
    for (;;) {
        struct stat status;
        if (stat(path[0] == '\0' ? "/" : path, &status) != 0) {
            snprintf(error_p, error_capacity, "%s: %s", path, strerror(errno));
            return -1;
        }
        if (status.st_uid != 0 || (status.st_mode & 022) != 0) {
            snprintf(error_p, error_capacity,
                     "%s must belong to root and be writable only by root, because programs "
                     "of all users would take libraries from there: owner %u, mode %o",
                     path, status.st_uid, status.st_mode & 07777);
            return -1;
        }
        char *slash = strrchr(path, '/');
        if (slash == NULL || (size_t) (slash - path) < least || path[0] == '\0') {
            return 0;
        }
        *slash = '\0';
        if (strlen(path) < least || (least > 0 && strlen(path) == least)) {
            return 0;
        }
    }
}

int hws_linker_replace(const char *path, const char *text, char *error_p, size_t error_capacity) {
    char part[HWS_MAX_PATH + 64];
    snprintf(part, sizeof part, "%s.new", path);
    unlink(part);
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    bool written = fd >= 0 && dprintf(fd, "%s", text) > 0 && fchmod(fd, 0644) == 0;
    int failure = errno;
    if (fd >= 0 && close(fd) != 0 && written) {
        written = false;
        failure = errno;
    }
    if (!written || rename(part, path) != 0) {
        snprintf(error_p, error_capacity, "%s: %s", path, strerror(written ? errno : failure));
        unlink(part);
        return -1;
    }
    return 0;
}

static int write_conf(const char *conf, const char *folder, char *error_p, size_t error_capacity) {
    char text[HWS_MAX_PATH + 128];
    snprintf(text, sizeof text, "# Hawser's libcuda.so.1; `hawser libraries off` removes this file.\n%s\n", folder);
    return hws_linker_replace(conf, text, error_p, error_capacity);
}

static int refresh(const char *root, char *error_p, size_t error_capacity) {
    pid_t child;
    return run_ldconfig(root, NULL, NULL, &child, error_p, error_capacity) == 0
        ? wait_ldconfig(child, error_p, error_capacity)
        : -1;
}

static int switch_on(const char *root, const char *conf, const char *folder, char *error_p, size_t error_capacity) {
    if (hws_linker_check_owner(root, folder, error_p, error_capacity) != 0
        || write_conf(conf, folder, error_p, error_capacity) != 0 || refresh(root, error_p, error_capacity) != 0) {
        return -1;
    }
    printf("on: programs take libcuda.so.1 from %s\n", folder);
    return 0;
}

static int switch_off(const char *root, const char *conf, char *error_p, size_t error_capacity) {
    if (unlink(conf) != 0 && errno != ENOENT) {
        snprintf(error_p, error_capacity, "%s: %s", conf, strerror(errno));
        return -1;
    }
    if (refresh(root, error_p, error_capacity) != 0) {
        return -1;
    }
    printf("off: `hawser run PROGRAM` uses the vGPU, other programs do not\n");
    return 0;
}

static bool is_in(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Switches on, unless programs of this machine already use a libcuda.so.1, which they keep. */
static int switch_by_itself(const char *root, const char *conf, const char *folder, char *error_p,
                            size_t error_capacity) {
    char driver[HWS_MAX_PATH];
    if (hws_linker_driver(root, driver, error_p, error_capacity) != 0) {
        return -1;
    }
    if (driver[0] == '\0' || is_in(driver, folder)) {
        return switch_on(root, conf, folder, error_p, error_capacity);
    }
    printf("This machine has a libcuda.so.1 of its own, which programs go on using: %s.\n"
           "`hawser run PROGRAM` uses the vGPU; `hawser libraries on` makes that the rule.\n",
           driver);
    return 0;
}

static int status(const char *root, const char *conf, const char *folder, char *error_p, size_t error_capacity) {
    char driver[HWS_MAX_PATH];
    if (hws_linker_driver(root, driver, error_p, error_capacity) != 0) {
        return -1;
    }
    bool on = access(conf, F_OK) == 0;
    printf("%s: %s %s\n", on ? "on" : "off", conf, on ? "is there" : "is not there");
    printf("libcuda.so.1: %s%s\n", driver[0] == '\0' ? "programs find none" : driver,
           driver[0] == '\0'           ? ""
               : is_in(driver, folder) ? " (Hawser's)"
                                       : " (not Hawser's)");
    return on ? HWS_EXIT_OK : HWS_EXIT_PROBLEM;
}

int hws_linker_root(int argc, char **argv, char root_p[HWS_MAX_PATH], char folder_p[HWS_MAX_PATH],
                    const char **inside_p, char *error_p, size_t error_capacity) {
    root_p[0] = '\0';
    if (argc != 2 && (argc != 4 || strcmp(argv[2], "--root") != 0)) {
        snprintf(error_p, error_capacity, "the only option is --root FOLDER");
        return -1;
    }
    if (argc == 4 && realpath(argv[3], root_p) == NULL) {
        snprintf(error_p, error_capacity, "%s: %s", argv[3], strerror(errno));
        return -1;
    }
    if (strcmp(root_p, "/") == 0) {
        root_p[0] = '\0';
    }
    if (hws_agent_libraries(folder_p, error_p, error_capacity) != 0) {
        return -1;
    }
    *inside_p = root_p[0] != '\0' && is_in(folder_p, root_p) ? folder_p + strlen(root_p) : folder_p;
    return 0;
}

int hws_agent_linker(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "", *inside;
    char root[HWS_MAX_PATH], folder[HWS_MAX_PATH], conf[HWS_MAX_PATH + 64], error[3 * HWS_MAX_PATH];
    if (strcmp(what, "on") != 0 && strcmp(what, "off") != 0 && strcmp(what, "auto") != 0
        && strcmp(what, "status") != 0) {
        bool asked = strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0;
        fputs("usage: hawser libraries on|off|auto|status [--root FOLDER]\n", asked ? stdout : stderr);
        return asked ? HWS_EXIT_OK : HWS_EXIT_USAGE;
    }
    int rc = hws_linker_root(argc, argv, root, folder, &inside, error, sizeof error);
    if (rc == 0) {
        snprintf(conf, sizeof conf, "%s" HWS_LINKER_CONF, root);
        rc = strcmp(what, "on") == 0    ? switch_on(root, conf, inside, error, sizeof error)
            : strcmp(what, "off") == 0  ? switch_off(root, conf, error, sizeof error)
            : strcmp(what, "auto") == 0 ? switch_by_itself(root, conf, inside, error, sizeof error)
                                        : status(root, conf, inside, error, sizeof error);
    }
    if (rc < 0) {
        fprintf(stderr, "hawser libraries: %s\n", error);
        return HWS_EXIT_PROBLEM;
    }
    return rc;
}
