/*
 * A carrier moves the bytes of one ordered stream each way. The channel above it knows no sockets and no rings. Each
 * carrier implements these operations in a folder of its own.
 */
#ifndef HWS_CARRIER_H
#define HWS_CARRIER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct hws_carrier hws_carrier_t;

typedef struct hws_carrier_ops {
    const char *name; /* as statistics show it: "tcp", "shm", "rdma" */

    /*
     * Sending is a copy into memory that the other end reads. The channel then sends each record at once, under its
     * lock, without a buffer and a sender thread.
     */
    bool direct;

    /*
     * Sends all pieces in order and blocks until that is done. Uses the array as scratch. One thread at a time. Returns
     * 0, or -1 with errno.
     */
    int (*send)(hws_carrier_t *carrier, struct iovec *pieces, int count);

    /*
     * Receives at least one byte into the pieces and blocks until there is one. One thread at a time, also while
     * another thread sends. Returns the bytes, 0 at the end of the stream, or -1 with errno. EFAULT means that a piece
     * was not writable and that no byte was lost.
     */
    ssize_t (*receive)(hws_carrier_t *carrier, const struct iovec *pieces, int count);

    /* Limits each later send and receive, which then fail with EAGAIN; 0 removes the limit. Used while connecting. */
    int (*set_timeout)(hws_carrier_t *carrier, uint32_t timeout_ms);

    /* Explains why send or receive failed; NULL where errno is enough. The function itself may be NULL. */
    const char *(*fault)(hws_carrier_t *carrier);

    /* The descriptor that is readable when something has arrived, or when the other end has closed; -1 for none. */
    int (*descriptor)(hws_carrier_t *carrier);

    /*
     * Whether receive would return at once: bytes are there, or the stream has ended. Unlike the descriptor it counts the
     * bytes that the carrier itself keeps. Only the thread that may receive. TCP and TLS only; NULL elsewhere.
     */
    bool (*is_ready)(hws_carrier_t *carrier);

    /* Makes the blocked and all later operations of every thread fail. Any thread. */
    void (*shutdown)(hws_carrier_t *carrier);

    /*
     * Closes the descriptors and sends nothing to the other end: a forked child calls it while its parent continues.
     * The object stays, because threads may still return from a call on it.
     */
    void (*close)(hws_carrier_t *carrier);

    /* Closes as `close` does and frees the object, which no other thread uses any more. TCP and TLS only. */
    void (*destroy)(hws_carrier_t *carrier);
} hws_carrier_ops_t;

struct hws_carrier {
    const hws_carrier_ops_t *ops;
};

#endif
