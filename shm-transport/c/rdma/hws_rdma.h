/*
 * One end of a session over RDMA (wire.md, "Mirror"): a reliable connection of verbs, and memory of the same layout at
 * both ends. The guest writes the command ring and the chunks, the worker the reply ring and the chunks. An end writes
 * its own memory and then posts the same bytes to the other end's.
 *
 * Positions travel as immediate data of the last write of a commit. A completion so means that the bytes lie in this
 * end's memory. Positions, the states of chunks and the end of the session lie in private memory, which the other end
 * cannot write: hws_rdma_words_t.
 *
 * The guest's libraries link these functions. The worker calls them from Java.
 */
#ifndef HWS_RDMA_H
#define HWS_RDMA_H

#include "hws_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long a link may be down, when the options do not say. */
#define HWS_RDMA_RETRY_MS 8000u

typedef struct hws_rdma hws_rdma_t;

typedef struct hws_rdma_options {
    const char *device;     /* name; NULL or "": the first device with an active port */
    uint32_t port;          /* from 1; 0: the first active one */
    int32_t gid_index;      /* -1: found by itself */
    uint32_t partition;     /* index in the port's table of P_Keys, 0..65535 */
    uint32_t service_level; /* 0..15 */
    uint32_t traffic_class; /* 0..255 */
    uint32_t retry_ms;      /* how long a link may be down before the session is lost; 0: HWS_RDMA_RETRY_MS */
    uint32_t is_worker;     /* 1: the worker's end, 0: the guest's */
} hws_rdma_options_t;

/* What hws_rdma_progress() has learnt; read it with acquire. The first four words are those of hws_ring_t. */
typedef struct hws_rdma_words {
    uint64_t peer_tail;          /* bytes that the other end ever put into the ring that this end reads */
    uint64_t peer_head;          /* bytes that it ever took from the ring that this end writes */
    uint64_t own_tail, own_head; /* this end's positions */
    uint32_t peer_left;          /* 1: the other end has left in order */
    uint32_t reserved;
    uint32_t chunks[HWS_MIRROR_CHUNKS]; /* at the guest: HWS_CHUNK_BUSY, or the CUresult of the copy */
} hws_rdma_words_t;

/*
 * Opens a device and makes a protection domain. Everything that needs files happens here, so that a worker can do the
 * rest in its jail. The link of a worker's device may be down until hws_rdma_prepare(). Returns the end, or NULL with a
 * message in error_p.
 */
hws_rdma_t *hws_rdma_open(const hws_rdma_options_t *options, char *error_p, size_t error_capacity);

/*
 * Makes the mirror and the queue pair, and describes them in end_p: the fields of an end in wire.md. Once. Returns 0, or
 * -1 with a message in error_p.
 */
int hws_rdma_prepare(hws_rdma_t *rdma, uint8_t end_p[HWS_RDMA_END_BYTES], char *error_p, size_t error_capacity);

/* Connects with the other end, whose description is checked. Once. Returns 0, or -1 with a message in error_p. */
int hws_rdma_connect(hws_rdma_t *rdma, const uint8_t peer[HWS_RDMA_END_BYTES], char *error_p, size_t error_capacity);

/* The mirror: HWS_MIRROR_BYTES, at the start of a page. The other end may change it at any time. */
uint8_t *hws_rdma_mirror(hws_rdma_t *rdma);
hws_rdma_words_t *hws_rdma_words(hws_rdma_t *rdma);

/*
 * Whether a tail may be sent now: the other end has a receive for it, and the queue pair has room. Returns 1, 0, or -1
 * after the connection is lost. One sender at a time.
 */
int hws_rdma_can_send(hws_rdma_t *rdma);

/*
 * Posts the bytes [from, to) of the ring that this end writes, and the tail `to`; at most the ring's length.
 * hws_rdma_can_send() must have allowed it. Returns 0, or -1 after the connection is lost. One sender at a time.
 */
int hws_rdma_send_tail(hws_rdma_t *rdma, uint64_t from, uint64_t to);

/*
 * Notes that this end has read its ring up to `head`, and tells the other end when that is due. Returns 0, or -1 after
 * the connection is lost. One reader at a time.
 */
int hws_rdma_taken(hws_rdma_t *rdma, uint64_t head);

/*
 * Guest: posts bytes of a chunk, before the record that names them. The range must lie in the chunk. Returns 0, or -1
 * after the connection is lost. Any thread.
 */
int hws_rdma_send_chunk(hws_rdma_t *rdma, uint32_t chunk, uint32_t offset, uint32_t bytes);

/* Memory of this process that the device reads and writes by itself. */
typedef struct hws_rdma_memory hws_rdma_memory_t;

/* Uses of registered memory beside reads by this end's device, which are always possible. */
typedef enum hws_rdma_access {
    HWS_RDMA_FILLED = 1,     /* hws_rdma_read() writes it */
    HWS_RDMA_PEER_READS = 2, /* the other end reads it */
    HWS_RDMA_PEER_WRITES = 4 /* the other end writes it */
} hws_rdma_access_t;

/*
 * Registers the memory [base, base + bytes), which must stay mapped until hws_rdma_unregister() or hws_rdma_close().
 * `access` is a sum of hws_rdma_access_t. Returns NULL with a message in error_p. Any thread, after hws_rdma_prepare().
 */
hws_rdma_memory_t *hws_rdma_register(hws_rdma_t *rdma, void *base, uint64_t bytes, uint32_t access, char *error_p,
                                     size_t error_capacity);

/*
 * Worker: registers memory of a GPU at its device address, for hws_rdma_read() and hws_rdma_write(). `descriptor` is a
 * dma-buf that begins with the memory and stays the caller's. With -1 the kernel's module for peer memory must know the
 * address. The memory must stay mapped like that of hws_rdma_register(), whose results this has.
 */
hws_rdma_memory_t *hws_rdma_register_device(hws_rdma_t *rdma, uint64_t base, uint64_t bytes, int32_t descriptor,
                                            char *error_p, size_t error_capacity);

/* The key by which the other end uses the memory, at its address in this process. */
uint32_t hws_rdma_key(const hws_rdma_memory_t *memory);

/*
 * Ends the use of the memory, after the device has done all that was posted with it, the connection is lost, or the limit
 * has passed. Nobody else may use `memory` any more; the other end's next use of it loses the connection. Any thread.
 */
void hws_rdma_unregister(hws_rdma_t *rdma, hws_rdma_memory_t *memory, uint32_t limit_ms);

/*
 * Posts registered bytes to memory of the other end, whose address and key it has told. They are there before all that is
 * posted later. They must not change until hws_rdma_done() has reached *ticket_p, which may be NULL. Returns 0, or -1
 * after the connection is lost. Any thread.
 */
int hws_rdma_write(hws_rdma_t *rdma, hws_rdma_memory_t *memory, const void *from, uint32_t bytes, uint64_t to,
                   uint32_t key, uint64_t *ticket_p);

/*
 * Worker: fetches memory of the other end, whose address and key it has told, to registered memory. The bytes are here
 * when hws_rdma_done() has reached *ticket_p. Later requests do not wait for them, but their completions do. A
 * read that the other end cannot serve yet holds up all that is posted after it. Returns 0, or -1 after the connection
 * is lost. Any thread.
 */
int hws_rdma_read(hws_rdma_t *rdma, hws_rdma_memory_t *memory, void *to, uint32_t bytes, uint64_t from, uint32_t key,
                  uint64_t *ticket_p);

/* The ticket up to which all writes and reads are done; tickets grow. Any thread. */
uint64_t hws_rdma_done(hws_rdma_t *rdma);

/*
 * Guest: hws_rdma_send_chunk() of registered bytes, which go to the start of the chunk. They must not change until the
 * worker has returned the chunk.
 */
int hws_rdma_send_chunk_from(hws_rdma_t *rdma, hws_rdma_memory_t *memory, const void *from, uint32_t chunk,
                             uint32_t bytes);

/*
 * Worker: posts bytes of a chunk, if any, and returns the chunk to the guest with the CUresult of its copy, at most
 * 65,535. Returns 0, or -1 after the connection is lost. Any thread.
 */
int hws_rdma_return_chunk(hws_rdma_t *rdma, uint32_t chunk, uint32_t offset, uint32_t bytes, uint32_t result);

/*
 * Tells the other end that this end leaves, and waits until it has all that was posted. Returns 0, or -1 after the limit
 * or after the connection is lost. Any thread.
 */
int hws_rdma_leave(hws_rdma_t *rdma, uint32_t limit_ms);

/*
 * Takes completions and updates the words. Returns 1 when there was one, 0 when there was none or another thread takes
 * them, or -1 after the connection is lost. Any thread.
 */
int hws_rdma_progress(hws_rdma_t *rdma);

/*
 * Sleeping: arm, call hws_rdma_progress() and hws_rdma_done() once more, poll the channel's descriptor for POLLIN, then
 * hws_rdma_awake(). One thread at a time. hws_rdma_arm() returns 0, or -1 after the connection is lost.
 */
int hws_rdma_channel(const hws_rdma_t *rdma);
int hws_rdma_arm(hws_rdma_t *rdma);
void hws_rdma_awake(hws_rdma_t *rdma);

/* Why the connection is lost; NULL while it is not. Any thread. */
const char *hws_rdma_fault(hws_rdma_t *rdma);

/* Names the end for people: "mlx5_0 port 1, GID 3 (::ffff:10.0.0.1)". */
void hws_rdma_describe(const hws_rdma_t *rdma, char *text_p, size_t capacity);

/* The device's name, and the descriptor of its commands, which a jail must allow. */
const char *hws_rdma_device(const hws_rdma_t *rdma);
int hws_rdma_device_descriptor(const hws_rdma_t *rdma);

/* Counters since hws_rdma_connect(). */
typedef struct hws_rdma_counts {
    uint64_t messages_out; /* work requests posted */
    uint64_t bytes_out;    /* of their payloads, without reads */
    uint64_t bytes_read;   /* that reads have asked for */
    uint64_t messages_in;  /* completions with immediate data */
} hws_rdma_counts_t;

void hws_rdma_count(const hws_rdma_t *rdma, hws_rdma_counts_t *counts_p);

/* Frees everything. No other thread may use the end any more. */
void hws_rdma_close(hws_rdma_t *rdma);

/*
 * In a forked child: forgets the end, whose descriptors and memory belong to the parent. Closes the child's copies of
 * the descriptors.
 */
void hws_rdma_abandon_in_child(hws_rdma_t *rdma);

#endif
