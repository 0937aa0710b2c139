/* Finds Hawser's region without the guest libraries, as any guest could: reads the PCI devices in sysfs, maps BAR2 of each ivshmem
 * device and checks the header. Prints a line for each device; exit 0 if a broker serves one of them as a region. */
#define _GNU_SOURCE
#include "hws_region.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEVICES "/sys/bus/pci/devices"

/* A number from a sysfs file such as "0x1af4"; -1 if there is none. */
static long read_number(const char *device, const char *name) {
    char path[512], text[64] = "";
    snprintf(path, sizeof(path), DEVICES "/%s/%s", device, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -1;
    }
    int read = fgets(text, sizeof(text), file) != NULL;
    fclose(file);
    return read ? strtol(text, NULL, 0) : -1;
}

/* Enables the device's memory, because no driver has done so. */
static void enable(const char *device) {
    char path[512];
    snprintf(path, sizeof(path), DEVICES "/%s/enable", device);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "1", 1) != 1) {
        printf("%s cannot be enabled: %s\n", device, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Whether the broker increments its heartbeat within three times the period of the layout. */
static int beats(const volatile uint64_t *beat) {
    uint64_t first = __atomic_load_n(beat, __ATOMIC_ACQUIRE);
    for (int i = 0; i < 30; i++) {
        nanosleep(&(struct timespec) {0, HWS_BEAT_MS / 10 * 1000000L}, NULL);
        if (__atomic_load_n(beat, __ATOMIC_ACQUIRE) != first) {
            return 1;
        }
    }
    return 0;
}

static int look_at(const char *device) {
    char path[512];
    struct stat status;
    enable(device);
    snprintf(path, sizeof(path), DEVICES "/%s/resource2", device);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        printf("%s: BAR2 cannot be opened: %s\n", device, strerror(errno));
        return 0;
    }
    void *base = mmap(NULL, HWS_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (base == MAP_FAILED) {
        printf("%s: BAR2 cannot be mapped: %s\n", device, strerror(errno));
        return 0;
    }
    hws_region_header_t *header = base;
    uint64_t magic = __atomic_load_n(&header->magic, __ATOMIC_ACQUIRE);
    if (magic != HWS_REGION_MAGIC) {
        printf("%s: BAR2 of %lld bytes is not a region: it begins with %#llx\n", device, (long long) status.st_size,
               (unsigned long long) magic);
        return 0;
    }
    printf(
        "%s: region of %llu bytes, layout %u, protocol %u, %u slots, %u doorbell vectors, %llu chunks of %llu bytes, heap of "
        "%llu bytes, vGPU \"%.64s\"\n",
        device, (unsigned long long) header->region_bytes, header->region_version, header->protocol_version,
        header->slot_count, header->doorbell_vectors, (unsigned long long) header->chunk_count,
        (unsigned long long) header->chunk_bytes, (unsigned long long) header->heap_bytes, header->vgpu);
    int good = header->region_version == HWS_REGION_VERSION && header->region_bytes <= (uint64_t) status.st_size;
    if (!good) {
        printf("%s: of another layout, or longer than its BAR2 of %lld bytes\n", device, (long long) status.st_size);
    } else if (!beats(&header->host_beat)) {
        printf("%s: no broker serves it: its heartbeat does not change\n", device);
        good = 0;
    }
    munmap(base, HWS_PAGE_BYTES);
    return good;
}

int main(void) {
    DIR *devices = opendir(DEVICES);
    if (devices == NULL) {
        printf("no PCI devices: %s: %s\n", DEVICES, strerror(errno));
        return 1;
    }
    int good = 0, seen = 0;
    for (struct dirent *entry; (entry = readdir(devices)) != NULL;) {
        if (entry->d_name[0] != '.' && read_number(entry->d_name, "vendor") == HWS_PCI_VENDOR
            && read_number(entry->d_name, "device") == HWS_PCI_DEVICE) {
            seen++;
            good += look_at(entry->d_name);
        }
    }
    closedir(devices);
    if (seen == 0) {
        printf("no ivshmem device (%04x:%04x) on the PCI bus\n", HWS_PCI_VENDOR, HWS_PCI_DEVICE);
    }
    return good > 0 ? 0 : 1;
}
