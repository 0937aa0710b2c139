/*
 * Traps by memory protection and SIGSEGV. The memory is a file without a name, mapped twice: the program's mapping is
 * protected, the library's is not. The handler only asks the library's thread and waits.
 *
 * A program may have a handler of its own. It gets the faults that are none of ours: those before this trap opened a
 * handler, and those that it installs later at the next renew(). System calls are not trapped: they fail with EFAULT.
 */
#include "trap.h"

#include "hws_log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define MAX_ADDRESS (1ull << 47)
#define THREADS 256u /* that may wait at the same time; others try again */
#define WRITE_BIT 2  /* of a page fault's error code on x86-64 */

typedef enum { UNUSED, WAITING, OURS, NOT_OURS } hws_wait_state_t;

/* A thread that waits in the handler. */
typedef struct hws_wait {
    _Atomic uint32_t state; /* hws_wait_state_t; a futex */
    uint64_t address;
    bool is_write;
} hws_wait_t;

typedef struct hws_alias {
    uint64_t base, bytes;
    uint8_t *bytes_at;
} hws_alias_t;

static int file = -1, requests[2] = {-1, -1};
static hws_wait_t waits[THREADS];
static struct sigaction program; /* the handler that gets other faults */
static pthread_rwlock_t aliases_lock = PTHREAD_RWLOCK_INITIALIZER;
static hws_alias_t *aliases; /* sorted by base */
static size_t alias_count, alias_capacity;

static void wait_for_answer(hws_wait_t *wait) {
    while (atomic_load(&wait->state) == WAITING) {
        syscall(SYS_futex, &wait->state, FUTEX_WAIT_PRIVATE, WAITING, NULL, NULL, 0);
    }
}

/* Asks the library's thread. Returns whether the access may be tried again. */
static bool ask(uint64_t address, bool is_write) {
    for (uint8_t i = 0;; i++) {
        uint32_t unused = UNUSED;
        hws_wait_t *wait = &waits[i];
        if (!atomic_compare_exchange_strong(&wait->state, &unused, WAITING)) {
            if (i == UINT8_MAX) {
                sched_yield();
            }
            continue;
        }
        wait->address = address;
        wait->is_write = is_write;
        if (write(requests[1], &i, sizeof i) != sizeof i) {
            atomic_store(&wait->state, UNUSED);
            return false;
        }
        wait_for_answer(wait);
        return atomic_exchange(&wait->state, UNUSED) == OURS;
    }
}

/* Gives a fault to the program's handler; without one, it ends the process when the access is tried again. */
static void give_to_program(int number, siginfo_t *info, void *context) {
    if ((program.sa_flags & SA_SIGINFO) != 0) {
        program.sa_sigaction(number, info, context);
    } else if (program.sa_handler != SIG_DFL && program.sa_handler != SIG_IGN) {
        program.sa_handler(number);
    } else {
        signal(number, SIG_DFL);
    }
}

static bool is_write_access(const void *context) {
#ifdef __x86_64__
    return (((const ucontext_t *) context)->uc_mcontext.gregs[REG_ERR] & WRITE_BIT) != 0;
#else
    (void) context;
    return false;
#endif
}

static void handle(int number, siginfo_t *info, void *context) {
    int kept = errno;
    bool is_fault = info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR;
    bool is_ours = is_fault && ask((uint64_t) (uintptr_t) info->si_addr, is_write_access(context));
    errno = kept;
    if (!is_ours) {
        give_to_program(number, info, context);
    }
}

static void renew(void) {
    struct sigaction now;
    if (sigaction(SIGSEGV, NULL, &now) == 0 && ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != handle)) {
        program = now;
        struct sigaction own = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigaction(SIGSEGV, &own, NULL);
    }
}

static bool open_signal(void) {
#ifndef __x86_64__
    return false; /* a fault does not tell whether it is a write */
#endif
    file = memfd_create("hawser-pages", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t) MAX_ADDRESS) != 0 || pipe2(requests, O_CLOEXEC) != 0) {
        hws_log(HWS_DEBUG, "memory cannot be mapped twice: %s", strerror(errno));
        return false;
    }
    renew();
    return true;
}

static bool next(int timeout_ms, hws_trap_fault_t *fault_p) {
    struct pollfd wanted = {.fd = requests[0], .events = POLLIN};
    uint8_t number;
    if (poll(&wanted, 1, timeout_ms) <= 0 || read(requests[0], &number, sizeof number) != sizeof number) {
        return false;
    }
    *fault_p =
        (hws_trap_fault_t) {.address = waits[number].address, .is_write = waits[number].is_write, .thread = number};
    return true;
}

static void resume(const hws_trap_fault_t *fault, bool is_ours) {
    hws_wait_t *wait = &waits[fault->thread];
    atomic_store(&wait->state, is_ours ? OURS : NOT_OURS);
    syscall(SYS_futex, &wait->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Index of the first alias above the address. */
static size_t above(uint64_t address) {
    size_t at = 0;
    while (at < alias_count && aliases[at].base <= address) {
        at++;
    }
    return at;
}

static uint8_t *own_bytes(uint64_t address) {
    pthread_rwlock_rdlock(&aliases_lock);
    const hws_alias_t *alias = &aliases[above(address) - 1];
    uint8_t *bytes = alias->bytes_at + (address - alias->base);
    pthread_rwlock_unlock(&aliases_lock);
    return bytes;
}

static const void *bytes_at(uint64_t address) {
    return own_bytes(address);
}

static void *pointer(uint64_t address) {
    return (void *) (uintptr_t) address;
}

/* Copies the pages that are not zeros; the others stay absent. */
static void copy_present(uint8_t *to, const uint8_t *from, uint64_t bytes) {
    static const uint8_t zeros[HWS_TRAP_PAGE_BYTES];
    for (uint64_t at = 0; at < bytes; at += HWS_TRAP_PAGE_BYTES) {
        if (memcmp(from + at, zeros, sizeof zeros) != 0) {
            memcpy(to + at, from + at, HWS_TRAP_PAGE_BYTES);
        }
    }
}

static bool insert_alias(uint64_t address, uint64_t bytes, uint8_t *bytes_at) {
    if (alias_count == alias_capacity) {
        size_t wanted = alias_capacity == 0 ? 64 : 2 * alias_capacity;
        hws_alias_t *larger = realloc(aliases, wanted * sizeof *larger);
        if (larger == NULL) {
            return false;
        }
        aliases = larger;
        alias_capacity = wanted;
    }
    size_t at = above(address);
    memmove(aliases + at + 1, aliases + at, (alias_count - at) * sizeof *aliases);
    aliases[at] = (hws_alias_t) {.base = address, .bytes = bytes, .bytes_at = bytes_at};
    alias_count++;
    return true;
}

static void *remove_alias(uint64_t address) {
    size_t at = above(address) - 1;
    void *own = aliases[at].bytes_at;
    alias_count--;
    memmove(aliases + at, aliases + at + 1, (alias_count - at) * sizeof *aliases);
    return own;
}

/* Adds a range; `kept`: the memory at its addresses whose bytes it takes over. */
static bool add_range(uint64_t address, uint64_t bytes, const uint8_t *kept) {
    void *own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, (off_t) address);
    if (own == MAP_FAILED) {
        return false;
    }
    if (kept != NULL) {
        copy_present(own, kept, bytes);
    }
    bool added = mmap(pointer(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file,
                      (off_t) address)
        != MAP_FAILED;
    if (added) {
        pthread_rwlock_wrlock(&aliases_lock);
        added = insert_alias(address, bytes, own);
        pthread_rwlock_unlock(&aliases_lock);
    }
    if (!added) {
        munmap(own, bytes);
    }
    return added;
}

static bool protect_as(uint64_t address, uint64_t bytes, int protection) {
    return mprotect(pointer(address), bytes, protection) == 0;
}

static bool protect(uint64_t address, uint64_t bytes) {
    return protect_as(address, bytes, PROT_READ);
}

static bool unprotect(uint64_t address, uint64_t bytes) {
    return protect_as(address, bytes, PROT_READ | PROT_WRITE);
}

static bool add(uint64_t address, uint64_t bytes) {
    return add_range(address, bytes, NULL);
}

/* From the protection on, threads that write wait for the library's thread. The caller keeps that thread waiting. */
static bool adopt(uint64_t address, uint64_t bytes) {
    if (!protect(address, bytes)) {
        return false;
    }
    bool added = add_range(address, bytes, pointer(address));
    if (!added) {
        unprotect(address, bytes);
    }
    return added;
}

static void find_present(uint64_t address, size_t pages, uint8_t *present) {
    off_t base = (off_t) address, end = base + (off_t) (pages * HWS_TRAP_PAGE_BYTES);
    memset(present, 0, pages);
    for (off_t first = lseek(file, base, SEEK_DATA); first >= 0 && first < end;) {
        off_t hole = lseek(file, first, SEEK_HOLE);
        hole = hole < 0 || hole > end ? end : hole;
        memset(present + (first - base) / HWS_TRAP_PAGE_BYTES, 1, (size_t) (hole - first) / HWS_TRAP_PAGE_BYTES);
        first = lseek(file, hole, SEEK_DATA);
    }
}

static void free_bytes(uint64_t address, uint64_t bytes) {
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) address, (off_t) bytes);
}

static void release(uint64_t address, uint64_t bytes) {
    unprotect(address, bytes);
}

static void forget(uint64_t address, uint64_t bytes) {
    pthread_rwlock_wrlock(&aliases_lock);
    void *own = remove_alias(address);
    pthread_rwlock_unlock(&aliases_lock);
    munmap(own, bytes);
    free_bytes(address, bytes);
}

static bool fill(uint64_t address, const void *from, uint64_t bytes, bool is_writable) {
    memcpy(own_bytes(address), from, bytes);
    return is_writable ? unprotect(address, bytes) : protect(address, bytes);
}

/* A thread waits for its own answer. */
static void wake(uint64_t address, uint64_t bytes) {
    (void) address;
    (void) bytes;
}

static void drop(uint64_t address, uint64_t bytes) {
    protect_as(address, bytes, PROT_NONE);
    free_bytes(address, bytes);
}

const hws_trap_t hws_trap_signal = {
    .name = "SIGSEGV",
    .open = open_signal,
    .next = next,
    .resume = resume,
    .renew = renew,
    .add = add,
    .adopt = adopt,
    .arm = protect,
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
