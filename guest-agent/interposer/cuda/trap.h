/*
 * Traps accesses of the program to ranges of memory, so that another thread can provide the pages. One way is
 * userfaultfd(2). Where the guest forbids it, memory protection and a handler of SIGSEGV do the same.
 *
 * A range begins free: the kernel provides zeros, and no access is trapped. arm() and drop() end that. From then on an
 * absent page stops each access, and a protected page each write, until the page is filled or unprotected. Only fill()
 * and wake() may be called by several threads at a time. Addresses and lengths are whole pages.
 */
#ifndef HWS_TRAP_H
#define HWS_TRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HWS_TRAP_PAGE_BYTES 4096u

/* An access that a thread of the program waits for. */
typedef struct hws_trap_fault {
    uint64_t address;
    bool is_write;
    unsigned thread; /* for the trap */
} hws_trap_fault_t;

/* One way to trap accesses. Functions that return bool return false when the kernel refuses, with errno. */
typedef struct hws_trap {
    const char *name;
    /* Prepares it, once in a process. */
    bool (*open)(void);
    /* Waits for an access. Returns false when none came within the time; -1: no limit. One thread. */
    bool (*next)(int timeout_ms, hws_trap_fault_t *fault_p);
    /* Lets the thread try again, or, if the memory is none of ours, fault. Nothing else resumes it but wake(). */
    void (*resume)(const hws_trap_fault_t *fault, bool is_ours);
    /* Undoes what the program has done to the trap meanwhile. Before work, and after a wait for it. */
    void (*renew)(void);
    /* Makes a range of addresses that the process has reserved usable and free. */
    bool (*add)(uint64_t address, uint64_t bytes);
    /* As add(), for memory of the process at these addresses, which other threads may be using: it keeps its bytes. */
    bool (*adopt)(uint64_t address, uint64_t bytes);
    /* Traps writes. Pages that are absent may still be read, as zeros, until they are dropped. */
    bool (*arm)(uint64_t address, uint64_t bytes);
    /* Sets present[i] to whether page i of a free or armed range is present; true where that cannot be known. */
    void (*find_present)(uint64_t address, size_t pages, uint8_t *present);
    /* Ends the traps of a range. Pages that are present keep their bytes, others are zeros. */
    void (*release)(uint64_t address, uint64_t bytes);
    /* Forgets a range of which the caller has left only the reservation of its addresses. */
    void (*remove)(uint64_t address, uint64_t bytes);
    /* Gives absent pages these bytes. Several threads may fill separate pages of ranges at a time. */
    bool (*fill)(uint64_t address, const void *from, uint64_t bytes, bool is_writable);
    /* Lets threads that wait for these pages try again before resume(), if the trap can. */
    void (*wake)(uint64_t address, uint64_t bytes);
    /* Traps writes to present pages. / Allows them. */
    bool (*protect)(uint64_t address, uint64_t bytes);
    bool (*unprotect)(uint64_t address, uint64_t bytes);
    /* Makes pages absent. */
    void (*drop)(uint64_t address, uint64_t bytes);
    /* Where a thread of the library reads the bytes of a present page. */
    const void *(*bytes_at)(uint64_t address);
} hws_trap_t;

extern const hws_trap_t hws_trap_userfault;
extern const hws_trap_t hws_trap_signal;

#endif
