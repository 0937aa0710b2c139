/*
 * Descriptors that stand for memory in the guest. cuMemExportToShareableHandle gives them to a program.
 *
 * A descriptor is one end of a pair of connected sockets. The name of the memory, by which the broker finds it, waits
 * in its queue. Every process that has the descriptor can look at it there (MSG_PEEK). The exporting process keeps the
 * other end. It learns there when the last copy of the descriptor is closed, in any process of the guest. Until then
 * it keeps the memory, as CUDA does.
 *
 * Known deviations: a descriptor whose exporter has exited names no memory any more; memory that was imported before
 * stays. Memory without handles and mappings, whose last descriptor has been closed, is freed at the next call that
 * creates, exports, imports or releases memory.
 */
#ifndef HWS_SHARE_H
#define HWS_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HWS_SHARE_NAME_WORDS 2

/* The exporter's end. Another part of the program may have closed and reused the number, so the inode is compared. */
typedef struct hws_share_end {
    int fd;
    dev_t device;
    ino_t inode;
} hws_share_end_t;

/*
 * Makes a descriptor for the name. Returns false when the process has no descriptors left.
 *
 * @param descriptor_p receives the program's descriptor, which it closes; closed on exec, as CUDA's.
 * @param end_p receives the end to ask.
 */
bool hws_share_make(const uint64_t name[HWS_SHARE_NAME_WORDS], int *descriptor_p, hws_share_end_t *end_p);

/* Reads the name of a descriptor, without waiting. Returns false for every other file. */
bool hws_share_read(int descriptor, uint64_t name[HWS_SHARE_NAME_WORDS]);

/* Whether the other end of a descriptor is closed: its exporter has ended. */
bool hws_share_orphaned(int descriptor);

/* Whether no process has the descriptor any more. Closes the end then. */
bool hws_share_ended(const hws_share_end_t *end);

#endif
