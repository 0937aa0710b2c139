/*
 * Stripes that carry DATA of copies to the host beside the session's connection (wire.md, "Stripes"). Each has a
 * thread. AWAIT, on the session's connection, restores the order: the reader waits until a copy's DATA has arrived.
 *
 * The reader waits without a lock, and the threads of stripes need nothing but receive_lock and the program's memory.
 * So these threads always go on, whatever the reader waits for.
 */
#include "hws_channel_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (64u << 10)

_Static_assert(HWS_DATA_FIXED_BYTES == 16 && HWS_DATA_BYTES_OFFSET == 8, "as read below");
_Static_assert(HWS_READ_FIXED_BYTES == 8, "as sent below");
_Static_assert(HWS_AWAIT_FIXED_BYTES == 8, "as the reader takes it");

/* One stripe, of its thread alone. */
typedef struct hws_data_stripe {
    hws_carrier_t *carrier;
    uint8_t buffer[BUFFER_BYTES]; /* for targets with gaps, and for bytes that the program's memory cannot take */
} hws_data_stripe_t;

/*
 * Receives all bytes. When the target cannot be written, *faulted_p becomes true and the rest is dropped, so that the
 * stripe stays in step; NULL for the library's own memory. Returns false when the connection has ended, with an errno.
 */
static bool receive(hws_data_stripe_t *stripe, uint8_t *target, uint64_t bytes, _Atomic bool *faulted_p) {
    while (bytes > 0) {
        const bool drops = faulted_p != NULL && atomic_load_explicit(faulted_p, memory_order_relaxed);
        struct iovec piece = {target, bytes};
        if (drops) {
            piece = (struct iovec) {stripe->buffer, bytes < BUFFER_BYTES ? bytes : BUFFER_BYTES};
        }
        errno = 0;
        ssize_t received = stripe->carrier->ops->receive(stripe->carrier, &piece, 1);
        if (received < 0 && errno == EFAULT && faulted_p != NULL && !drops) {
            atomic_store_explicit(faulted_p, true, memory_order_relaxed);
            continue;
        }
        if (received <= 0) {
            return false;
        }
        hws_channel_count_stripe_bytes(0, (uint64_t) received);
        target += received;
        bytes -= (uint64_t) received;
    }
    return true;
}

/* Notes that a stripe has ended, for this errno. receive_lock held. */
static void note_loss(hws_channel_t *channel, int error) {
    if (!channel->stripe_lost) {
        /* No failure yet: the session's connection may still bring the worker's reason. */
        channel->stripe_lost = true;
        channel->stripe_error = error;
    }
    pthread_cond_broadcast(&channel->data_arrived);
}

/* Receives the bytes of a piece to their place, and their padding. */
static bool receive_piece(hws_data_stripe_t *stripe, hws_waiter_t *waiter, uint64_t offset, uint64_t bytes) {
    const hws_target_t *target = &waiter->target;
    const uint64_t padding = hws_pad8(bytes) - bytes;
    if (target->rows == 1 && target->slices == 1) {
        if (!receive(stripe, (uint8_t *) target->base + offset, bytes, &waiter->faulted)) {
            return false;
        }
    } else {
        while (bytes > 0) {
            const uint64_t part = bytes < BUFFER_BYTES ? bytes : BUFFER_BYTES;
            if (!receive(stripe, stripe->buffer, part, NULL)) {
                return false;
            }
            hws_target_scatter(target, offset, stripe->buffer, part);
            offset += part;
            bytes -= part;
        }
    }
    return receive(stripe, stripe->buffer, padding, NULL);
}

/* Returns false when the connection has ended, with an errno, or the channel has failed. */
static bool take_piece(hws_channel_t *channel, hws_data_stripe_t *stripe) {
    struct {
        hws_record_header_t header;
        uint64_t offset;
        uint32_t bytes;
        uint32_t padding;
    } data;
    _Static_assert(sizeof data == HWS_HEADER_BYTES + HWS_DATA_FIXED_BYTES, "without gaps");
    if (!receive(stripe, (uint8_t *) &data, sizeof data, NULL)) {
        return false;
    }
    if (data.header.opcode != HWS_CONTROL_DATA) {
        hws_channel_refuse("a record of a stripe that is no DATA, opcode", data.header.opcode);
        return false;
    }
    if (data.bytes > HWS_MAX_BULK_BYTES
        || (uint64_t) (uint32_t) data.header.length_bytes != sizeof data + hws_pad8(data.bytes)) {
        hws_channel_refuse("DATA of a stripe whose length differs from its bytes", data.bytes);
        return false;
    }
    hws_waiter_t *waiter = hws_copy_claim(data.header.sequence, data.offset, data.bytes, true);
    if (waiter == NULL) {
        return false;
    }
    const bool is_whole = receive_piece(stripe, waiter, data.offset, data.bytes);
    const int error = errno;
    pthread_mutex_lock(&channel->receive_lock);
    if (!is_whole) {
        waiter->received_bytes -= data.bytes; /* the copy never becomes whole */
        note_loss(channel, error);
    }
    hws_copy_release(waiter);
    pthread_mutex_unlock(&channel->receive_lock);
    return is_whole;
}

static bool send_read(hws_carrier_t *carrier, uint32_t first_chunk) {
    struct {
        hws_record_header_t header;
        uint32_t first_chunk, padding;
    } read = {
        .header = {.length_bytes = sizeof read, .opcode = HWS_CONTROL_READ},
        .first_chunk = first_chunk,
    };
    struct iovec piece = {&read, sizeof read};
    if (carrier->ops->send(carrier, &piece, 1) != 0) {
        return false;
    }
    hws_channel_count_stripe_bytes(sizeof read, 0);
    return true;
}

/* Adds a stripe, before the worker can send AWAIT because of it. Returns false when no more are allowed. */
static bool add(hws_channel_t *channel, hws_carrier_t *carrier) {
    pthread_mutex_lock(&channel->receive_lock);
    const bool fits = channel->stripe_carrier_count < HWS_MAX_STRIPES;
    if (fits) {
        atomic_store(&channel->stripe_carriers[channel->stripe_carrier_count++], carrier);
    }
    pthread_mutex_unlock(&channel->receive_lock);
    /* Sequentially consistent: the thread that sets the failure then sees the carrier, or this one sees the failure. */
    if (fits && atomic_load(&channel->failure) != 0) {
        carrier->ops->shutdown(carrier);
    }
    return fits;
}

void hws_channel_serve_stripe(hws_carrier_t *carrier, uint32_t first_chunk) {
    hws_channel_t *channel = &hws_channel;
    hws_data_stripe_t *stripe = malloc(sizeof *stripe);
    if (stripe == NULL || !add(channel, carrier)) {
        free(stripe);
        return; /* DATA comes by the session's connection, since the worker gets no READ */
    }
    stripe->carrier = carrier;
    if (send_read(carrier, first_chunk)) {
        while (take_piece(channel, stripe)) {
        }
    }
    const int error = errno;
    free(stripe);
    pthread_mutex_lock(&channel->receive_lock);
    note_loss(channel, error);
    pthread_mutex_unlock(&channel->receive_lock);
}

/* Whether all these bytes have arrived; the bytes of records that are being received do not count. receive_lock held. */
static bool has_arrived(const hws_waiter_t *copy, uint64_t bytes) {
    return copy->received_bytes >= bytes && copy->writers == 0;
}

int hws_copy_await(uint64_t sequence, uint64_t bytes) {
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->receive_lock);
    /* The waiter stays in the list: only the reader removes waiters while it reads. */
    const hws_waiter_t *copy = hws_waiter_find(sequence);
    const bool is_valid = channel->stripe_carrier_count > 0 && copy != NULL && bytes <= copy->target_bytes;
    bool is_lost = false;
    channel->awaited = copy;
    while (is_valid && !has_arrived(copy, bytes) && atomic_load(&channel->failure) == 0) {
        if (channel->stripe_lost) {
            is_lost = true; /* by that stripe, or by one that is no faster than this thread */
            break;
        }
        pthread_cond_wait(&channel->data_arrived, &channel->receive_lock);
    }
    channel->awaited = NULL;
    const int error = channel->stripe_error;
    pthread_mutex_unlock(&channel->receive_lock);
    if (!is_valid) {
        return hws_channel_refuse("AWAIT without stripes, or for bytes that are not a copy's", sequence);
    }
    if (is_lost) {
        hws_channel_fail(HWS_LOST_STATUS, "a connection of the session is lost: %s",
                         error == 0 ? "closed by the other end" : strerror(error));
    }
    return atomic_load(&channel->failure) == 0 ? 0 : -1;
}

void hws_stripes_shutdown(void) {
    for (unsigned i = 0; i < HWS_MAX_STRIPES; i++) {
        hws_carrier_t *carrier = atomic_load(&hws_channel.stripe_carriers[i]);
        if (carrier != NULL) {
            carrier->ops->shutdown(carrier);
        }
    }
}
