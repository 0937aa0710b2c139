/*
 * A carrier moves the bytes of one ordered stream each way. The channel above it knows nothing of sockets or rings;
 * a new carrier (shared memory, RDMA) is one implementation of these operations in a folder of its own.
 */
#ifndef HWS_CARRIER_H
#define HWS_CARRIER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct hws_carrier hws_carrier_t;

typedef struct hws_carrier_ops {
    const char *name; /* as statistics show it: "tcp", "shm" */

    /*
     * Sending is a copy into memory that the other end reads: the channel sends each record at once, under its lock,
     * without a buffer and a sender thread.
     */
    bool direct;

    /*
     * Sends all the pieces, in order, blocking as long as that takes; the array is used as scratch.
     * One thread at a time. Returns 0, or -1 with errno.
     */
    int (*send)(hws_carrier_t *carrier, struct iovec *pieces, int count);

    /*
     * Receives at least one byte into the pieces, blocking until there is one; one thread at a time, at the same time
     * as a sender. Returns the bytes, 0 at the end of the stream, or -1 with errno: EFAULT means that a piece was no
     * writable memory and nothing was lost.
     */
    ssize_t (*receive)(hws_carrier_t *carrier, const struct iovec *pieces, int count);

    /*
     * Bounds each later send and receive, which then fail with EAGAIN; 0 takes the bound away. Used while connecting.
     */
    int (*set_timeout)(hws_carrier_t *carrier, uint32_t timeout_ms);

    /* A sentence on why send or receive failed, or NULL where errno says it all; may be NULL itself. */
    const char *(*fault)(hws_carrier_t *carrier);

    /* Makes the blocked and all later operations of every thread fail. Any thread. */
    void (*shutdown)(hws_carrier_t *carrier);

    /*
     * Frees the descriptors, without a word to the other end: also called in a forked child, whose parent goes on.
     * The object itself stays, because threads may still come out of a call on it.
     */
    void (*close)(hws_carrier_t *carrier);
} hws_carrier_ops_t;

struct hws_carrier {
    const hws_carrier_ops_t *ops;
};

#endif
