/* Finds the region's file: the configured one, or the memory of an ivshmem device. */
#include "hws_shm_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SYSFS_MAGIC_NUMBER 0x62656572 /* linux/magic.h, SYSFS_MAGIC */

/* Reads a small file of sysfs as a number ("0x1af4\n", "1\n"); -1 when it cannot be read. */
static long read_number(const char *device, const char *name) {
    char path[640], text[32];
    int length = snprintf(path, sizeof path, "%s/%s", device, name);
    int fd = length < (int) sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return -1;
    }
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    if (bytes <= 0) {
        return -1;
    }
    text[bytes] = '\0';
    return strtol(text, NULL, 0);
}

/* Enables a device. Without a driver its memory is accessible only then. Needs root, once after each boot. */
static void enable(const char *device) {
    char path[640];
    snprintf(path, sizeof path, "%s/enable", device);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        /* If this fails, the region shows no magic, and the user gets that message. */
        ssize_t ignored = write(fd, "1", 1);
        (void) ignored;
        close(fd);
    }
}

/*
 * Tries a device. Returns 0 when its memory is one of our regions; else -1, with a message in error_p where it helps.
 */
static int try_device(hws_shm_t *shm, const char *device, bool *found_p, char *error_p, size_t error_capacity) {
    if (read_number(device, "vendor") != HWS_PCI_VENDOR || read_number(device, "device") != HWS_PCI_DEVICE
        || snprintf(shm->path, sizeof shm->path, "%s/resource2", device) >= (int) sizeof shm->path
        || snprintf(shm->doorbell_path, sizeof shm->doorbell_path, "%s/resource0", device)
            >= (int) sizeof shm->doorbell_path) {
        return -1;
    }
    if (read_number(device, "enable") == 0) {
        enable(device);
    }
    bool ours;
    shm->view.kind = HWS_KIND_MACHINE;
    if (hws_shm_map(shm, &ours, error_p, error_capacity) == 0) {
        *found_p = true;
        return 0;
    }
    *found_p = *found_p || ours;
    hws_shm_unmap(shm);
    return -1;
}

static int scan_devices(hws_shm_t *shm, const char *sysfs, bool *found_p, char *error_p, size_t error_capacity) {
    char folder[320], device[320 + 264];
    struct dirent **entries;
    snprintf(folder, sizeof folder, "%s/bus/pci/devices", sysfs);
    snprintf(error_p, error_capacity, "there is no ivshmem device, and no region is configured");
    int count = scandir(folder, &entries, NULL, alphasort), rc = -1;
    for (int i = 0; i < count; i++) {
        if (rc != 0 && entries[i]->d_name[0] != '.') {
            snprintf(device, sizeof device, "%s/%s", folder, entries[i]->d_name);
            rc = try_device(shm, device, found_p, error_p, error_capacity);
        }
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
    return rc;
}

int hws_shm_find(hws_shm_t *shm, const hws_config_t *config, bool *found_p, char *error_p, size_t error_capacity) {
    *found_p = false;
    if (config->region[0] == '\0') {
        return scan_devices(shm, config->sysfs, found_p, error_p, error_capacity);
    }
    *found_p = true;
    snprintf(shm->path, sizeof shm->path, "%s", config->region);
    /* A device's memory that the user has named: the host runs another kernel, so it cannot wake us. */
    struct statfs status;
    bool is_device = statfs(shm->path, &status) == 0 && status.f_type == SYSFS_MAGIC_NUMBER;
    shm->view.kind = is_device ? HWS_KIND_MACHINE : HWS_KIND_PROCESS;
    char *resource = is_device ? strstr(shm->path, "/resource2") : NULL;
    if (resource != NULL) {
        snprintf(shm->doorbell_path, sizeof shm->doorbell_path, "%.*s/resource0", (int) (resource - shm->path),
                 shm->path);
    }
    bool ours;
    int rc = hws_shm_map(shm, &ours, error_p, error_capacity);
    if (rc != 0) {
        hws_shm_unmap(shm);
    }
    return rc;
}
