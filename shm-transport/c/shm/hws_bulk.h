/*
 * Copies of pageable memory in parts, so that the program's memory and the GPU work at the same time. Several threads
 * share a long copy. Over shared memory and RDMA each part travels through a chunk that both ends have. Over TCP parts of
 * long copies travel through the chunks of stripes (hws_stripe.h).
 *
 * Threads share the chunks, but no thread waits for a chunk that another thread's copy uses. A part that gets no chunk
 * travels in records. So a stalled stream delays only the threads that copy in it.
 */
#ifndef HWS_BULK_H
#define HWS_BULK_H

#include <stdbool.h>
#include <stdint.h>

/* Part of a copy: bytes [x, x + width) of rows [row, row + rows) of slices [slice, slice + slices). */
typedef struct hws_bulk_part {
    uint64_t x, width;
    uint64_t row, rows;
    uint64_t slice, slices;
} hws_bulk_part_t;

/* A copy between a device and memory of the program. A plain copy is one row of one slice. */
typedef struct hws_bulk_copy {
    bool to_device;
    bool eager;           /* to_device: takes every free chunk before it waits for the device */
    uint8_t *host;        /* the first byte; only read when to_device */
    uint64_t width;       /* bytes a row, at least 1 */
    uint64_t rows;        /* rows a slice, at least 1 */
    uint64_t slices;      /* at least 1; width * rows * slices fits 64 bits */
    uint64_t pitch;       /* from a row to the next */
    uint64_t slice_pitch; /* from a slice to the next */
    void *registered;     /* to_device: what `put_from` of the chunks takes for all of this memory; NULL: nothing */

    /*
     * Sends the record of a part whose bytes lie without gaps at an offset of the region, in a chunk that is marked as
     * used. In a stripe's chunk the offset counts from the chunk. Returns 0 or a CUresult. Any thread, several at a time, all with the caller's hws_tls.
     */
    int (*send)(const struct hws_bulk_copy *copy, const hws_bulk_part_t *part, uint64_t region_offset, uint32_t chunk);

    /*
     * Copies a part without the region, and returns when the caller may reuse the memory. Returns 0 or a CUresult.
     * Threads as for `send`.
     */
    int (*copy_part)(const struct hws_bulk_copy *copy, const hws_bulk_part_t *part);

    /*
     * Only to the host: waits for the stream, so that printed text and errors of earlier work arrive. Called once, by
     * the caller's thread, after the records of all parts. Returns 0 or a CUresult.
     */
    int (*synchronise)(const struct hws_bulk_copy *copy);

    const void *argument; /* for these functions */
} hws_bulk_copy_t;

/* A copy's parts: whole slices, else whole rows of one slice, else pieces of one row. */
typedef struct hws_bulk_plan {
    uint64_t width, rows, slices;       /* of a whole part */
    uint64_t per_row, per_slice, count; /* parts in a row, in a slice, and in the whole copy */
} hws_bulk_plan_t;

/* Splits a copy into parts of at most `limit` bytes, at least 1. */
hws_bulk_plan_t hws_bulk_plan(const hws_bulk_copy_t *copy, uint64_t limit);

/* Part number `index`, from 0. */
hws_bulk_part_t hws_bulk_part(const hws_bulk_plan_t *plan, const hws_bulk_copy_t *copy, uint64_t index);

/* Bytes from the first to the last one of a copy in the program's memory, with the gaps between them. */
uint64_t hws_bulk_span(const hws_bulk_copy_t *copy);

/* Where a part begins in the program's memory. */
uint8_t *hws_bulk_place(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part);

/* Whether the bytes of a part lie in the program's memory without gaps. */
bool hws_bulk_is_unbroken(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part);

/* Moves a part between the program's memory and a buffer, in which rows and slices lie one after the other. */
void hws_bulk_move(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part, uint8_t *buffer);

/*
 * Memory that both ends of a session have, in chunks: those of a region's slot, or of a mirror. A chunk belongs to one
 * copy at a time. All functions come from any thread, for different chunks also at the same time.
 */
typedef struct hws_chunks {
    uint8_t *bytes;  /* of the first chunk; the others follow */
    uint64_t offset; /* of the first chunk, as records name it */
    uint64_t chunk_bytes;
    uint32_t count; /* 1..HWS_MAX_CHUNKS */

    /* Marks a chunk as used by a copy, before the copy's record is sent. */
    void (*begin)(uint32_t chunk);

    /* Takes the first bytes of a chunk to the other end, before the record that names them. NULL: it has the same memory. */
    int (*put)(uint32_t chunk, uint32_t bytes);

    /*
     * Does the same with registered memory of the program, which the carrier reads by itself, until the chunk returns at
     * the latest. May be NULL if no copy has `registered`.
     */
    int (*put_from)(void *registered, const uint8_t *from, uint32_t chunk, uint32_t bytes);

    /* Removes the mark when the record could not be sent. */
    void (*cancel)(uint32_t chunk);

    /* Whether the copy that uses the chunk is done. `wait` then returns at once. */
    bool (*is_ready)(uint32_t chunk);

    /*
     * Waits until the worker has finished with a chunk. Returns the CUresult of its copy, with all bytes of the chunk
     * visible; or the channel's failure, after which the chunk must not be used again.
     */
    int (*wait)(uint32_t chunk);
} hws_chunks_t;

/* Copies go through these chunks from now on; NULL: not any more, because the process is exiting. They must stay. */
void hws_bulk_use_chunks(const hws_chunks_t *chunks);

/* Whether copies of so many bytes can go by hws_bulk_run(). Any thread. */
bool hws_bulk_serves(uint64_t bytes);

/*
 * Copies. To the device it returns when all bytes have been read and all records sent. Bytes of registered memory may be
 * read later, but before the device copies them. To the host it returns when all bytes have arrived and the stream is
 * finished. hws_bulk_serves() must have allowed it. Any thread.
 *
 * @return 0; the first error of a part; or, to the host, that of `synchronise`.
 */
int hws_bulk_run(const hws_bulk_copy_t *copy);

/*
 * Reclaims the chunks that finished copies have left, without waiting, and returns the number of free chunks. For
 * tests.
 */
uint32_t hws_bulk_free_chunks(void);

#endif
