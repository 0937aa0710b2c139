/* Traps by userfaultfd(2). Accesses of system calls are trapped as well where the guest allows it. */
#include "trap.h"

#include "hws_log.h"
#include "hws_userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PRESENT_OR_SWAPPED (3ull << 62) /* of an entry in /proc/self/pagemap */
#define ENTRIES 512u

/*
 * The host mostly writes all of a large array first. Huge pages make that faster, and what follows: the kernel zeroes,
 * protects and drops them at once. A single word then costs 2 MiB. So small ranges have none, and all ranges together
 * have them only as long as they are a small part of the guest's memory.
 */
#define HUGE_FROM_BYTES (16ull << 20)
#define HUGE_SHARE 4u /* of the memory */

static uint64_t added_bytes;
static int descriptor = -1, pagemap = -1;

static bool open_userfault(void) {
    hws_userfault_t kind;
    descriptor = hws_userfault_open(&kind);
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    if (descriptor < 0 || ioctl(descriptor, UFFDIO_API, &api) != 0) {
        hws_log(HWS_DEBUG, "userfaultfd is not available: %s", strerror(errno));
        return false;
    }
    if (kind == HWS_USERFAULT_PROGRAM) {
        hws_log(HWS_DEBUG,
                "system calls cannot use managed memory whose pages lie on the GPU: this user may not open "
                "/dev/userfaultfd: group=" HWS_USERFAULT_GROUP);
    }
    pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    return true;
}

static bool next(int timeout_ms, hws_trap_fault_t *fault_p) {
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};
    struct uffd_msg message;
    if (poll(&wanted, 1, timeout_ms) <= 0 || read(descriptor, &message, sizeof message) != sizeof message
        || message.event != UFFD_EVENT_PAGEFAULT) {
        return false;
    }
    *fault_p = (hws_trap_fault_t) {
        .address = message.arg.pagefault.address,
        .is_write = (message.arg.pagefault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP)) != 0,
    };
    return true;
}

static bool add(uint64_t address, uint64_t bytes) {
    void *memory = (void *) (uintptr_t) address;
    uint64_t machine = (uint64_t) sysconf(_SC_PHYS_PAGES) * HWS_TRAP_PAGE_BYTES;
    if (mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)
        == MAP_FAILED) {
        return false;
    }
    added_bytes += bytes;
    if (bytes >= HUGE_FROM_BYTES && added_bytes <= machine / HUGE_SHARE) {
        madvise(memory, bytes, MADV_HUGEPAGE); /* refused where the kernel has none */
    }
    return true;
}

/* Private memory is all that it takes. */
static bool adopt(uint64_t address, uint64_t bytes) {
    (void) address;
    (void) bytes;
    return true;
}

static bool protect_as(uint64_t address, uint64_t bytes, uint64_t mode) {
    struct uffdio_writeprotect change = {.range = {.start = address, .len = bytes}, .mode = mode};
    while (ioctl(descriptor, UFFDIO_WRITEPROTECT, &change) != 0) {
        if (errno != EAGAIN) {
            return false;
        }
    }
    return true;
}

static bool protect(uint64_t address, uint64_t bytes) {
    return protect_as(address, bytes, UFFDIO_WRITEPROTECT_MODE_WP);
}

static bool unprotect(uint64_t address, uint64_t bytes) {
    return protect_as(address, bytes, UFFDIO_WRITEPROTECT_MODE_DONTWAKE);
}

static bool arm(uint64_t address, uint64_t bytes) {
    struct uffdio_register wanted = {
        .range = {.start = address, .len = bytes},
        .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
    };
    return ioctl(descriptor, UFFDIO_REGISTER, &wanted) == 0 && protect(address, bytes);
}

static void find_present(uint64_t address, size_t pages, uint8_t *present) {
    uint64_t entries[ENTRIES];
    for (size_t at = 0; at < pages;) {
        size_t count = pages - at < ENTRIES ? pages - at : ENTRIES;
        off_t offset = (off_t) ((address / HWS_TRAP_PAGE_BYTES + at) * sizeof *entries);
        if (pread(pagemap, entries, count * sizeof *entries, offset) != (ssize_t) (count * sizeof *entries)) {
            memset(present + at, 1, count);
        } else {
            for (size_t i = 0; i < count; i++) {
                present[at + i] = (entries[i] & PRESENT_OR_SWAPPED) != 0;
            }
        }
        at += count;
    }
}

static void wake(uint64_t address, uint64_t bytes) {
    struct uffdio_range range = {.start = address, .len = bytes};
    ioctl(descriptor, UFFDIO_WAKE, &range);
}

static void forget(uint64_t address, uint64_t bytes) {
    added_bytes -= bytes;
    wake(address, bytes);
}

/* A thread that tries again in memory that is none of ours faults: its addresses are only reserved. */
static void resume(const hws_trap_fault_t *fault, bool is_ours) {
    (void) is_ours;
    wake(fault->address / HWS_TRAP_PAGE_BYTES * HWS_TRAP_PAGE_BYTES, HWS_TRAP_PAGE_BYTES);
}

static void renew(void) {
}

static void release(uint64_t address, uint64_t bytes) {
    struct uffdio_range range = {.start = address, .len = bytes};
    ioctl(descriptor, UFFDIO_UNREGISTER, &range);
}

static bool fill(uint64_t address, const void *from, uint64_t bytes, bool is_writable) {
    for (uint64_t at = 0; at < bytes;) {
        struct uffdio_copy copy = {
            .dst = address + at,
            .src = (uint64_t) (uintptr_t) from + at,
            .len = bytes - at,
            .mode = UFFDIO_COPY_MODE_DONTWAKE | (is_writable ? 0 : UFFDIO_COPY_MODE_WP),
        };
        if (ioctl(descriptor, UFFDIO_COPY, &copy) == 0) {
            return true;
        }
        if (errno != EAGAIN) {
            return false;
        }
        at += copy.copy > 0 ? (uint64_t) copy.copy : 0;
    }
    return true;
}

static void drop(uint64_t address, uint64_t bytes) {
    madvise((void *) (uintptr_t) address, bytes, MADV_DONTNEED);
}

static const void *bytes_at(uint64_t address) {
    return (const void *) (uintptr_t) address;
}

const hws_trap_t hws_trap_userfault = {
    .name = "userfaultfd",
    .open = open_userfault,
    .next = next,
    .resume = resume,
    .renew = renew,
    .add = add,
    .adopt = adopt,
    .arm = arm,
    .find_present = find_present,
    .release = release,
    .remove = forget,
    .fill = fill,
    .wake = wake,
    .protect = protect,
    .unprotect = unprotect,
    .drop = drop,
    .bytes_at = bytes_at,
};
