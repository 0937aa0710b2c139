/* Copies that the worker answers when they are done: the table of their memory here. */
#include "hws_channel_internal.h"

#include <string.h>

static void (*_Atomic note_read)(uint64_t bytes);

void hws_channel_note_reads(void (*note)(uint64_t bytes)) {
    atomic_store(&note_read, note);
}

/* Checks a target and simplifies it: rows without gaps between them become one row. Returns false for invalid sizes. */
static bool normalise(const hws_target_t *given, hws_target_t *target_p, uint64_t *bytes_p) {
    hws_target_t target = *given;
    uint64_t slice_bytes, total;
    if (target.base == NULL || target.width_bytes == 0 || target.rows == 0 || target.slices == 0
        || __builtin_mul_overflow(target.width_bytes, target.rows, &slice_bytes)
        || __builtin_mul_overflow(slice_bytes, target.slices, &total)
        || (target.rows > 1 && target.pitch_bytes < target.width_bytes)) {
        return false;
    }
    if (target.rows > 1 && target.pitch_bytes == target.width_bytes) {
        target.width_bytes = slice_bytes;
        target.rows = 1;
    }
    if (target.rows == 1 && target.slices > 1 && target.slice_pitch_bytes == target.width_bytes) {
        target.width_bytes = total;
        target.slices = 1;
    }
    *target_p = target;
    *bytes_p = total;
    return true;
}

/* Optional copies leave half of the table to the others. */
static hws_waiter_t *take_detached(hws_channel_t *channel, bool optional) {
    pthread_mutex_lock(&channel->receive_lock);
    bool leaves = optional && channel->background_need >= HWS_MAX_DETACHED / 2;
    hws_waiter_t *waiter = leaves ? NULL : channel->free_detached;
    if (waiter != NULL) {
        channel->free_detached = waiter->next;
        channel->background_need++;
        hws_channel_announce();
    }
    pthread_mutex_unlock(&channel->receive_lock);
    return waiter;
}

/* Wakes the background reader, so that it checks whether there is something to read. */
static void wake_background(hws_channel_t *channel) {
    pthread_mutex_lock(&channel->receive_lock);
    if (!channel->leader) {
        pthread_cond_signal(&channel->background_wake);
    }
    pthread_mutex_unlock(&channel->receive_lock);
}

/* Waits for the bytes of a copy. Those of a direct one count as received: DATA for it breaks the protocol. */
static hws_waiter_t waiter_for(const hws_target_t *target, uint64_t bytes, bool detached) {
    return (hws_waiter_t) {
        .detached = detached, .target = *target, .target_bytes = bytes, .received_bytes = target->direct ? bytes : 0};
}

static int read_detached(hws_channel_t *channel, const hws_outgoing_t *out, hws_waiter_t *waiter,
                         const hws_target_t *target, uint64_t bytes) {
    *waiter = waiter_for(target, bytes, true);
    int status = hws_channel_submit(out, waiter, false);
    if (status != 0) {
        pthread_mutex_lock(&channel->receive_lock);
        channel->background_need--;
        waiter->next = channel->free_detached;
        channel->free_detached = waiter;
        pthread_mutex_unlock(&channel->receive_lock);
        return status;
    }
    wake_background(channel);
    if (bytes >= HWS_LONG_COPY_BYTES && !target->direct) {
        void (*note)(uint64_t) = atomic_load(&note_read);
        if (note != NULL) {
            note(bytes);
        }
    }
    return 0;
}

int hws_read(uint32_t opcode, const void *payload, uint32_t payload_bytes, const hws_target_t *target, bool wait) {
    hws_channel_t *channel = &hws_channel;
    if (hws_is_forbidden()) {
        return HWS_STATUS_NOT_PERMITTED;
    }
    hws_target_t normal;
    uint64_t bytes;
    if (!normalise(target, &normal, &bytes)) {
        return HWS_STATUS_INVALID_VALUE;
    }
    hws_outgoing_t out = {
        .opcode = opcode, .flags = HWS_FLAG_REPLY, .payload = payload, .payload_bytes = payload_bytes};
    if (!wait) {
        hws_channel_await_release();
    }
    if (!wait && hws_channel_status() == 0 && hws_background_start() == 0) {
        hws_waiter_t *detached = take_detached(channel, target->optional);
        if (detached != NULL) {
            return read_detached(channel, &out, detached, &normal, bytes);
        }
    }
    if (!wait && (hws_tls.moves_pages || target->optional)) {
        return HWS_STATUS_NOT_READY;
    }
    hws_waiter_t waiter = waiter_for(&normal, bytes, false);
    int status = hws_channel_submit(&out, &waiter, true);
    if (status != 0) {
        return status;
    }
    atomic_fetch_add_explicit(&channel->round_trips, 1, memory_order_relaxed);
    return hws_waiter_wait(&waiter);
}

hws_waiter_t *hws_copy_claim(uint64_t sequence, uint64_t offset, uint32_t bytes, bool by_stripe) {
    hws_channel_t *channel = &hws_channel;
    bool fits = false;
    pthread_mutex_lock(&channel->receive_lock);
    hws_waiter_t *waiter = hws_waiter_find(sequence);
    bool expected = waiter != NULL && waiter->target.base != NULL;
    if (expected) {
        fits = offset <= waiter->target_bytes && bytes <= waiter->target_bytes - offset
            && bytes <= waiter->target_bytes - waiter->received_bytes;
    }
    if (fits) {
        /* Without `writers` the waiter stays in the list as well: only the reader removes waiters while it reads. */
        waiter->received_bytes += bytes;
        waiter->writers += by_stripe ? 1 : 0;
    }
    pthread_mutex_unlock(&channel->receive_lock);
    if (fits) {
        return waiter;
    }
    hws_channel_refuse(expected ? "DATA outside the copy's target, offset" : "DATA for a call that expects none",
                       expected ? offset : sequence);
    return NULL;
}

void hws_copy_release(hws_waiter_t *waiter) {
    hws_channel_t *channel = &hws_channel;
    int failure = atomic_load(&channel->failure);
    if (--waiter->writers != 0) {
        return;
    }
    if (channel->awaited == waiter) {
        pthread_cond_signal(&channel->data_arrived);
    }
    /* With a reader, its end fails the waiter. */
    if (failure != 0 && !channel->leader) {
        hws_waiter_finish(waiter, failure);
    }
}

void hws_target_scatter(const hws_target_t *target, uint64_t offset, const uint8_t *bytes, uint64_t count) {
    uint64_t row = offset / target->width_bytes;
    uint64_t column = offset % target->width_bytes;
    while (count > 0) {
        uint64_t part = target->width_bytes - column;
        part = part < count ? part : count;
        uint8_t *to = (uint8_t *) target->base + row / target->rows * target->slice_pitch_bytes
            + row % target->rows * target->pitch_bytes + column;
        memcpy(to, bytes, part);
        bytes += part;
        count -= part;
        column = 0;
        row++;
    }
}

static bool touches(const hws_waiter_t *waiter, uintptr_t base, uint64_t bytes) {
    const hws_target_t *target = &waiter->target;
    uintptr_t from = (uintptr_t) target->base;
    uint64_t extent = (target->slices - 1) * target->slice_pitch_bytes + (target->rows - 1) * target->pitch_bytes
        + target->width_bytes;
    return waiter->detached && from < base + bytes && base < from + extent;
}

void hws_channel_wait_for_target(const void *base, uint64_t bytes) {
    hws_channel_t *channel = &hws_channel;
    if (channel->carrier == NULL || hws_channel_status() == HWS_STATUS_NOT_INITIALIZED) {
        return;
    }
    hws_channel_flush();
    pthread_mutex_lock(&channel->receive_lock);
    for (hws_waiter_t *each = channel->first; each != NULL;) {
        if (touches(each, (uintptr_t) base, bytes)) {
            /* The background reader ends it, or the failure of the channel does. */
            pthread_cond_wait(&channel->detached_done, &channel->receive_lock);
            each = channel->first;
        } else {
            each = each->next;
        }
    }
    pthread_mutex_unlock(&channel->receive_lock);
}
