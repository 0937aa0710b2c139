/*
 * Memory that lives on a device and that the program's threads use at the same address: managed memory.
 *
 * The device's bytes are the truth while it may have work. The host has copies of pages. They come when the program
 * touches them. A sequential pass gets more and more of them before it needs them (mirror_pass.h), by threads that work
 * beside the program (mirror_ahead.h), but only while no work runs. Written pages return to the device before the next
 * work, in hws_send(); then all pages are absent again. So while the host leaves the memory alone, no page travels and
 * no protection changes, and work costs one atomic addition more.
 *
 * While work runs, the host has few pages, and none for longer than a millisecond. It gets a page when two reads of it
 * are equal. It sends the bytes that have changed, and those of one page before it gets another to write. So a host
 * and a kernel that pass flags and data to each other see them in order.
 *
 * A program waits for work before it reads results. Each such wait makes stale pages absent: hws_mirror_waited().
 *
 * A program that uses the same few pages after most waits, such as one with a counter, gets them with the wait. Their
 * copies follow the work in its stream, so that neither a fault nor a round trip more is needed. The host may write
 * them at once. Before the next work they are compared with their twins, and what has changed returns. At most
 * HWS_TURN_PAGES pages travel in this way. Which ones, mirror_turns.h decides; how they travel, mirror_shuttle.h tells.
 *
 * Blocks and variables are mirrored. A block of cuMemAllocManaged has pages of its own, in addresses that the process
 * has reserved. The driver places a __managed__ variable, and code has its address in it. Several variables, also of
 * different modules, may share a page, and the worker lets the guest copy their bytes only. So mirrors of variables
 * transfer spans of pages. They take addresses that the process does not use. Where it does, the code is loaded again:
 * managed_variables.c.
 */
#ifndef HWS_MIRROR_H
#define HWS_MIRROR_H

#include "hws_driver.h"

/* Whether this process can trap accesses. Starts what is needed at the first call. Any thread, like all functions. */
bool hws_mirror_open(void);

/*
 * Mirrors device memory of the current context, in addresses that the process has reserved. It begins as zeros on both
 * sides. Address and length are whole pages of HWS_TRAP_PAGE_BYTES.
 */
CUresult hws_mirror_add(CUdeviceptr address, uint64_t bytes);

/* As hws_mirror_add(), for memory that the process has there and uses: it keeps its bytes, and the device gets them. */
CUresult hws_mirror_adopt(CUdeviceptr address, uint64_t bytes);

/* Ends that. The bytes are lost. Any access of the program then faults. No effect for another address. */
void hws_mirror_remove(CUdeviceptr address);

/*
 * Mirrors a managed variable of the current context: at least 1 byte anywhere. It keeps its value. The host may use its
 * pages as a whole. Returns CUDA_ERROR_ALREADY_MAPPED, with no effect, when the process has something else there.
 */
CUresult hws_mirror_add_variable(CUdeviceptr address, uint64_t bytes);

/* Ends that. Its pages become free addresses with their last variable. */
void hws_mirror_remove_variable(CUdeviceptr address, uint64_t bytes);

/*
 * Before the calling thread issues work to this stream. Sends what the host has written, as hws_send() would, but lets
 * the stream wait for it, and not the thread. hws_mirror_end_order() follows the work. Costs two loads at least.
 */
void hws_mirror_order(CUstream stream);
void hws_mirror_end_order(void);

/*
 * Copies bytes of mirrored memory to a buffer, or from it (`to_memory`), without faults: for threads of the library, which
 * copy much at a time. Other memory is copied as it is.
 */
CUresult hws_mirror_copy(void *buffer, uint64_t address, uint64_t bytes, bool to_memory);

/* Before a wait for work. Returns what hws_mirror_waited() needs. Costs one load without mirrored memory. */
uint64_t hws_mirror_mark(void);

/* After a function of the host that work waits for: the device gets what the host has written. */
void hws_mirror_called(void);

/* After a wait or query that succeeded. `for_all`: it covered all work of the process. */
void hws_mirror_waited(uint64_t mark, bool for_all);

typedef struct hws_mirror_wait {
    uint64_t mark;
    bool covers_all;   /* all work of the process up to the mark */
    bool brings_pages; /* mirror_shuttle.h */
} hws_mirror_wait_t;

/*
 * Around a wait for all work of a stream, or, with NULL, of the current context. Pages may come with it. The second
 * follows a wait that succeeded, the third one that failed. Without mirrored memory they cost as much as
 * hws_mirror_mark() and hws_mirror_waited().
 */
hws_mirror_wait_t hws_mirror_begin_wait(const CUstream *stream);
void hws_mirror_end_wait(const hws_mirror_wait_t *wait, bool for_all);
void hws_mirror_fail_wait(const hws_mirror_wait_t *wait);

#endif
