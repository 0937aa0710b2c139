/* hawser nvidia-smi on|off|status: a symbolic link under NVIDIA's name, which makes `hawser smi` of it. */
#include "agent.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "nvidia-smi"
#define FOLDER "/usr/bin"

static const char usage[] = "usage: hawser nvidia-smi on|off|status [--root FOLDER]\n";

bool hws_agent_is_nvidia_smi(const char *program) {
    const char *slash = program == NULL ? NULL : strrchr(program, '/');
    return program != NULL && strcmp(slash == NULL ? program : slash + 1, NAME) == 0;
}

/* What stands under the name. */
typedef enum place { NOTHING, OURS, THEIRS } place_t;

/* Ours is a link to a program with the name of this command: a file of NVIDIA's is none. */
static place_t look(const char *path) {
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) {
        return errno == ENOENT ? NOTHING : THEIRS;
    }
    target[length] = '\0';
    const char *slash = strrchr(target, '/');
    return strcmp(slash == NULL ? target : slash + 1, "hawser") == 0 ? OURS : THEIRS;
}

static int switch_on(const char *path, const char *root) {
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) {
        fprintf(stderr, "hawser nvidia-smi: /proc/self/exe: %s\n", strerror(errno));
        return HWS_EXIT_PROBLEM;
    }
    self[length] = '\0';
    switch (look(path)) {
        case THEIRS:
            fprintf(stderr, "hawser nvidia-smi: %s is not Hawser's and stays as it is\n", path);
            return HWS_EXIT_PROBLEM;
        case OURS:
            break;
        case NOTHING: {
            size_t outside = strlen(root);
            const char *target = strncmp(self, root, outside) == 0 ? self + outside : self;
            /* symlink(2) replaces nothing, whatever has appeared since. */
            if (symlink(target, path) != 0) {
                fprintf(stderr, "hawser nvidia-smi: %s: %s\n", path, strerror(errno));
                return HWS_EXIT_PROBLEM;
            }
        }
    }
    printf("on: %s is `hawser smi`\n", path);
    return HWS_EXIT_OK;
}

static int switch_off(const char *path) {
    if (look(path) == OURS && unlink(path) != 0 && errno != ENOENT) {
        fprintf(stderr, "hawser nvidia-smi: %s: %s\n", path, strerror(errno));
        return HWS_EXIT_PROBLEM;
    }
    printf(look(path) == THEIRS ? "off: %s is not Hawser's\n" : "off: there is no %s\n", path);
    return HWS_EXIT_OK;
}

static int status(const char *path) {
    static const char *const texts[] = {[NOTHING] = "off: there is no %s\n",
                                        [OURS] = "on: %s is `hawser smi`\n",
                                        [THEIRS] = "off: %s is not Hawser's\n"};
    place_t place = look(path);
    printf(texts[place], path);
    return place == OURS ? HWS_EXIT_OK : HWS_EXIT_PROBLEM;
}

int hws_agent_nvidia_smi(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    bool asked = strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0;
    bool known = strcmp(what, "on") == 0 || strcmp(what, "off") == 0 || strcmp(what, "status") == 0;
    if (!known || (argc != 2 && (argc != 4 || strcmp(argv[2], "--root") != 0))) {
        fputs(usage, asked ? stdout : stderr);
        return asked ? HWS_EXIT_OK : HWS_EXIT_USAGE;
    }
    char root[PATH_MAX] = "", path[PATH_MAX + sizeof FOLDER + sizeof NAME];
    if (argc == 4 && realpath(argv[3], root) == NULL) {
        fprintf(stderr, "hawser nvidia-smi: %s: %s\n", argv[3], strerror(errno));
        return HWS_EXIT_PROBLEM;
    }
    snprintf(path, sizeof path, "%s" FOLDER "/" NAME, strcmp(root, "/") == 0 ? "" : root);
    return strcmp(what, "on") == 0 ? switch_on(path, root) : strcmp(what, "off") == 0 ? switch_off(path) : status(path);
}
