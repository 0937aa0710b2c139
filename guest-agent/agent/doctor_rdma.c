/* hawser doctor: whether this machine can use the carrier rdma, as far as the machine itself can tell. */
#include "doctor.h"

#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define VERBS_LIBRARY "libibverbs.so.1"
#define NAME_BYTES 64    /* Linux include/rdma/ib_verbs.h, IB_DEVICE_NAME_MAX */
#define GID_BYTES 48     /* of the text, with its NUL */
#define MAX_PORTS 255    /* an InfiniBand port number has 8 bits */
#define MAX_GIDS 256     /* of a port; limits the files that are read */
#define CAP_IPC_LOCK 14u /* Linux include/uapi/linux/capability.h */
/* A session registers its mirror of rings and chunks. */
#define SESSION_BYTES (20ull << 20)

/* Reads the first line of a file below a folder. Returns false when there is none. */
static bool read_line(const char *folder, const char *name, char *text_p, size_t capacity) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int) sizeof path) {
        return false;
    }
    FILE *file = fopen(path, "re");
    bool read = file != NULL && fgets(text_p, (int) capacity, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    if (read) {
        text_p[strcspn(text_p, "\n")] = '\0';
    }
    return read;
}

static bool check_library(bool required) {
    const char *given = secure_getenv("HAWSER_VERBS_LIBRARY"), *name = given == NULL ? VERBS_LIBRARY : given;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        OBSTACLE(required, "%s: install libibverbs1 and ibverbs-providers (RPM: libibverbs)", dlerror());
        return false;
    }
    GOOD("RDMA: %s", name);
    dlclose(library);
    return true;
}

/* Finds a port's GID for the carrier: of RoCE version 2 on Ethernet, else the first. Returns its index, or -1. */
static int find_gid(const char *port, bool ethernet, char gid_p[GID_BYTES]) {
    static const char none[] = "0000:0000:0000:0000:0000:0000:0000:0000";
    for (int index = 0; index < MAX_GIDS; index++) {
        char name[64], kind[32] = "";
        snprintf(name, sizeof name, "gids/%d", index);
        if (!read_line(port, name, gid_p, GID_BYTES)) {
            return -1;
        }
        snprintf(name, sizeof name, "gid_attrs/types/%d", index);
        if (strcmp(gid_p, none) != 0
            && (!ethernet || (read_line(port, name, kind, sizeof kind) && strcmp(kind, "RoCE v2") == 0))) {
            return index;
        }
    }
    return -1;
}

/* Checks a device's ports. Returns whether one can be used. */
static bool check_ports(const char *devices, const char *device, bool required) {
    bool usable = false;
    for (int number = 1; number <= MAX_PORTS; number++) {
        char port[PATH_MAX], state[32], layer[32] = "", gid[GID_BYTES];
        if (snprintf(port, sizeof port, "%s/%s/ports/%d", devices, device, number) >= (int) sizeof port
            || !read_line(port, "state", state, sizeof state)) {
            break;
        }
        read_line(port, "link_layer", layer, sizeof layer);
        const char *word = strchr(state, ' ') == NULL ? state : strchr(state, ' ') + 1; /* "4: ACTIVE" */
        int index = find_gid(port, strcmp(layer, "Ethernet") == 0, gid);
        if (strcmp(word, "ACTIVE") != 0) {
            OBSTACLE(required, "%s port %d (%s) is %s: %s", device, number, layer, word,
                     strcmp(layer, "InfiniBand") == 0 ? "check the cable, the subnet manager and the function's policy"
                                                      : "set its network interface up");
        } else if (index < 0) {
            OBSTACLE(required, "%s port %d (%s) has no GID: %s", device, number, layer,
                     strcmp(layer, "Ethernet") == 0 ? "give its network interface an address"
                                                    : "the function needs a GUID");
        } else {
            GOOD("RDMA: %s port %d: %s, active, GID %d %s", device, number, layer, index, gid);
            usable = true;
        }
    }
    return usable;
}

/* Checks whether this user may open a device. */
static bool check_access(const hws_doctor_rdma_t *machine, const char *device) {
    char folder[PATH_MAX], path[PATH_MAX], name[NAME_BYTES];
    snprintf(folder, sizeof folder, "%s/class/infiniband_verbs", machine->sysfs);
    DIR *list = opendir(folder);
    bool found = false, usable = false;
    for (struct dirent *entry; !found && list != NULL && (entry = readdir(list)) != NULL;) {
        snprintf(path, sizeof path, "%.200s/ibdev", entry->d_name);
        if (strncmp(entry->d_name, "uverbs", 6) == 0 && read_line(folder, path, name, sizeof name)
            && strcmp(name, device) == 0) {
            found = true;
            snprintf(path, sizeof path, "%s/infiniband/%.200s", machine->devices, entry->d_name);
            usable = access(path, R_OK | W_OK) == 0;
            if (!usable) {
                OBSTACLE(machine->required, "%s cannot be opened by this user: %m", path);
            }
        }
    }
    if (list != NULL) {
        closedir(list);
    }
    if (!found) {
        OBSTACLE(machine->required, "%s has no interface for programs: load the module ib_uverbs", device);
    }
    return usable;
}

static bool may_lock_everything(void) {
    char line[256];
    uint64_t capabilities = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "CapEff:", 7) == 0) {
            capabilities = strtoull(line + 7, NULL, 16);
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return (capabilities >> CAP_IPC_LOCK & 1) != 0;
}

static bool check_limit(bool required) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || may_lock_everything()) {
        GOOD("RDMA: locked memory is not limited");
        return true;
    }
    uint64_t kib = limit.rlim_cur >> 10;
    if (limit.rlim_cur < SESSION_BYTES) {
        OBSTACLE(required,
                 "locked memory is limited to %" PRIu64 " KiB (ulimit -l): a session needs %llu KiB and the program's "
                 "pinned memory; raise memlock in /etc/security/limits.d, or LimitMEMLOCK= of the service",
                 kib, SESSION_BYTES >> 10);
        return false;
    }
    NOTE("RDMA: locked memory is limited to %" PRIu64 " KiB (ulimit -l); the program's pinned memory counts", kib);
    return true;
}

bool hws_doctor_check_rdma(const hws_doctor_rdma_t *machine) {
    char devices[PATH_MAX];
    bool any = false, usable = false;
    if (snprintf(devices, sizeof devices, "%s/class/infiniband", machine->sysfs) >= (int) sizeof devices) {
        return false;
    }
    DIR *list = opendir(devices);
    for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        const char *name = entry->d_name;
        if (name[0] == '.' || (machine->device[0] != '\0' && strcmp(name, machine->device) != 0)) {
            continue;
        }
        any = true;
        usable |= check_ports(devices, name, machine->required) && check_access(machine, name);
    }
    if (list != NULL) {
        closedir(list);
    }
    if (!any) {
        OBSTACLE(machine->required, "this machine has no adapter%s%s", machine->device[0] == '\0' ? "" : " ",
                 machine->device);
        return false;
    }
    usable &= check_library(machine->required);
    usable &= check_limit(machine->required);
    return usable;
}
