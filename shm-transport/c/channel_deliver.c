/* The reader: splits the stream into records and delivers them. The worker is not trusted: every length is checked. */
#include "hws_channel_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DATA_PREFIX_BYTES (HWS_HEADER_BYTES + 16u)
/* A direct read takes at most this much beyond the piece: the next record's header, seldom more. */
#define OVERSHOOT_BYTES 4096u

int hws_channel_refuse(const char *rule, uint64_t value) {
    hws_channel_fail(HWS_LOST_STATUS, "the worker broke the protocol, the session is over: %s (%llu)", rule,
                     (unsigned long long) value);
    return -1;
}

static int lost(void) {
    hws_channel_lose();
    return -1;
}

/*
 * Receives once and counts the bytes. Returns the bytes; -1 after the channel has failed, or after LEFT the connection
 * has ended; -2 for a target that is not writable.
 */
static ssize_t receive(hws_channel_t *channel, const struct iovec *pieces, int count) {
    errno = 0;
    hws_carrier_t *carrier = channel->carrier; /* only the reader replaces it */
    ssize_t bytes = carrier->ops->receive(carrier, pieces, count);
    if (bytes > 0) {
        hws_count(&channel->bytes_in, (uint64_t) bytes);
        return bytes;
    }
    if (bytes < 0 && errno == EFAULT) {
        return -2;
    }
    if (channel->has_left) {
        /* The session may have gone with the worker, and go on over the other connection. */
        channel->has_ended = true;
        channel->end_error = bytes == 0 ? 0 : errno;
        return -1;
    }
    return lost();
}

/* Fills the buffer up to at least `wanted` bytes from its start. */
static int fill_to(hws_channel_t *channel, size_t wanted) {
    if (channel->start > 0) {
        memmove(channel->buffer, channel->buffer + channel->start, channel->end - channel->start);
        channel->end -= channel->start;
        channel->start = 0;
    }
    while (channel->end < wanted) {
        size_t room = HWS_RECEIVE_BUFFER_BYTES - channel->end;
        size_t piece_bytes = wanted - channel->end;
        piece_bytes = piece_bytes < HWS_RECEIVE_PIECE_BYTES ? HWS_RECEIVE_PIECE_BYTES : piece_bytes;
        struct iovec piece = {channel->buffer + channel->end, piece_bytes < room ? piece_bytes : room};
        ssize_t bytes = receive(channel, &piece, 1);
        if (bytes < 0) {
            return bytes == -2 ? lost() : -1;
        }
        channel->end += (size_t) bytes;
    }
    return 0;
}

/* Receives the rest of a piece, [offset, offset + left), straight into a target that is one row. */
static int receive_direct(hws_channel_t *channel, hws_waiter_t *waiter, uint64_t offset, uint64_t left) {
    channel->start = channel->end = 0;
    while (left > 0) {
        struct iovec pieces[2] = {{(uint8_t *) waiter->target.base + offset, left}, {channel->buffer, OVERSHOOT_BYTES}};
        if (waiter->faulted) {
            pieces[0] = (struct iovec) {channel->buffer + OVERSHOOT_BYTES,
                                        left < HWS_RECEIVE_PIECE_BYTES ? left : HWS_RECEIVE_PIECE_BYTES};
        }
        bool last = pieces[0].iov_len == left;
        ssize_t bytes = receive(channel, pieces, last ? 2 : 1);
        if (bytes == -2) {
            waiter->faulted = true; /* the rest is received and discarded, so that the stream stays in step */
            continue;
        }
        if (bytes < 0) {
            return -1;
        }
        uint64_t taken = (uint64_t) bytes < pieces[0].iov_len ? (uint64_t) bytes : pieces[0].iov_len;
        channel->end = (size_t) ((uint64_t) bytes - taken);
        offset += taken;
        left -= taken;
    }
    return 0;
}

static int receive_scattered(hws_channel_t *channel, hws_waiter_t *waiter, uint64_t offset, uint64_t left) {
    while (left > 0) {
        channel->start = channel->end = 0;
        if (fill_to(channel, 1) != 0) {
            return -1;
        }
        uint64_t part = channel->end < left ? channel->end : left;
        hws_target_scatter(&waiter->target, offset, channel->buffer, part);
        channel->start = (size_t) part;
        offset += part;
        left -= part;
    }
    return 0;
}

/*
 * Delivers a piece of a device-to-host copy. Its header and prefix are in the buffer; its bytes may still be on the
 * way.
 */
static int deliver_data(hws_channel_t *channel, const hws_record_header_t *header) {
    uint64_t offset;
    uint32_t bytes;
    memcpy(&offset, channel->buffer + channel->start + HWS_HEADER_BYTES, sizeof offset);
    memcpy(&bytes, channel->buffer + channel->start + HWS_HEADER_BYTES + 8, sizeof bytes);
    if ((uint64_t) header->length_bytes != DATA_PREFIX_BYTES + hws_pad8(bytes)) {
        return hws_channel_refuse("a DATA record whose length differs from its bytes", bytes);
    }
    hws_waiter_t *waiter = hws_copy_claim(header->sequence, offset, bytes, false);
    if (waiter == NULL) {
        return -1;
    }
    uint64_t there = channel->end - channel->start - DATA_PREFIX_BYTES;
    uint64_t part = there < bytes ? there : bytes;
    if (part > 0) {
        hws_target_scatter(&waiter->target, offset, channel->buffer + channel->start + DATA_PREFIX_BYTES, part);
    }
    channel->start += DATA_PREFIX_BYTES + (size_t) part;
    if (part < bytes) {
        bool one_row = waiter->target.rows == 1 && waiter->target.slices == 1;
        int rc = one_row ? receive_direct(channel, waiter, offset + part, bytes - part)
                         : receive_scattered(channel, waiter, offset + part, bytes - part);
        if (rc != 0) {
            return -1;
        }
    }
    size_t padding = (size_t) (hws_pad8(bytes) - bytes);
    if (channel->end - channel->start < padding && fill_to(channel, padding) != 0) {
        return -1;
    }
    channel->start += padding;
    return 0;
}

static int deliver_reply(hws_channel_t *channel, const hws_record_header_t *header, const uint8_t *payload,
                         uint32_t bytes) {
    pthread_mutex_lock(&channel->receive_lock);
    hws_waiter_t *waiter = hws_waiter_find(header->sequence);
    const char *fault = NULL;
    int status = (int) header->flags;
    if (waiter == NULL) {
        fault = "a reply without a call";
    } else if ((waiter->opcode | HWS_REPLY_BIT) != header->opcode) {
        fault = "a reply of another opcode than its call's";
    } else if (status != 0 && bytes != 0) {
        fault = "a failed reply with outputs";
    } else if (bytes > waiter->reply_capacity) {
        fault = "a reply longer than its call allows";
    } else if (waiter->writers != 0) {
        fault = "a reply before all DATA of its copy";
    } else if (status == 0 && waiter->received_bytes != waiter->target_bytes) {
        fault = "a copy that ended before all bytes had arrived";
    } else {
        if (bytes > 0) {
            memcpy(waiter->reply, payload, bytes);
        }
        waiter->reply_bytes = bytes;
        hws_waiter_finish(waiter, waiter->faulted ? HWS_STATUS_INVALID_VALUE : status);
    }
    pthread_mutex_unlock(&channel->receive_lock);
    return fault == NULL ? 0 : hws_channel_refuse(fault, header->sequence);
}

static int deliver_credit(hws_channel_t *channel, const uint8_t *payload, uint32_t bytes) {
    uint64_t released;
    if (bytes != sizeof released) {
        return hws_channel_refuse("a CREDIT record of a wrong length", bytes);
    }
    memcpy(&released, payload, sizeof released);
    /* The sender counts credit before it sends the record, and so before the worker can see the record. */
    if (released > atomic_load(&channel->credit_used_bytes)
        || released < atomic_load(&channel->credit_released_bytes)) {
        return hws_channel_refuse("CREDIT for bytes that were not sent", released);
    }
    pthread_mutex_lock(&channel->receive_lock);
    /* Pairs with the acquire load in lacks_credit(). */
    atomic_store_explicit(&channel->credit_released_bytes, released, memory_order_release);
    for (hws_waiter_t *each = channel->first, *next; each != NULL; each = next) {
        next = each->next;
        if (each->credit_target != 0 && each->credit_target <= released) {
            hws_waiter_finish(each, 0);
        }
    }
    pthread_mutex_unlock(&channel->receive_lock);
    return 0;
}

/* Returns the bytes from `from` on whose u32 length stands at `at`; NULL when they leave the payload. */
static const uint8_t *buffer_of(const uint8_t *payload, uint32_t bytes, uint32_t at, uint32_t from,
                                uint32_t *length_p) {
    if (bytes < from) {
        return NULL;
    }
    memcpy(length_p, payload + at, sizeof *length_p);
    return *length_p <= bytes - from ? payload + from : NULL;
}

static int deliver_control(hws_channel_t *channel, const hws_record_header_t *header, const uint8_t *payload,
                           uint32_t bytes) {
    uint32_t length = 0, status = 0;
    uint64_t id = 0;
    const uint8_t *text;
    switch (header->opcode) {
        case HWS_CONTROL_CREDIT:
            return deliver_credit(channel, payload, bytes);
        case HWS_CONTROL_OUTPUT:
            text = buffer_of(payload, bytes, 0, 8, &length);
            if (text == NULL) {
                return hws_channel_refuse("an OUTPUT record of a wrong length", bytes);
            }
            /* Through stdio, like the program's own printf, so that both keep their order. */
            fwrite(text, 1, length, stdout);
            return 0;
        case HWS_CONTROL_CALLBACK:
            if (bytes != 16) {
                return hws_channel_refuse("a CALLBACK record of a wrong length", bytes);
            }
            memcpy(&id, payload, sizeof id);
            memcpy(&status, payload + 8, sizeof status);
            return hws_callback_arrived(id, (int) status) == 0 ? 0 : hws_channel_refuse("an unexpected CALLBACK", id);
        case HWS_CONTROL_REACHED:
            if (bytes != sizeof id || channel->hooks.event_reached == NULL) {
                return hws_channel_refuse("an unexpected REACHED record, bytes", bytes);
            }
            memcpy(&id, payload, sizeof id);
            channel->hooks.event_reached(id, header->sequence);
            return 0;
        case HWS_CONTROL_AWAIT:
            if (bytes != sizeof id) {
                return hws_channel_refuse("an AWAIT record of a wrong length", bytes);
            }
            memcpy(&id, payload, sizeof id);
            return hws_copy_await(header->sequence, id);
        case HWS_CONTROL_LEAVE:
            return hws_leave_arrived(payload, bytes);
        case HWS_CONTROL_STAY:
            return hws_stay_arrived(bytes);
        case HWS_CONTROL_LOST:
            text = buffer_of(payload, bytes, 4, 8, &length);
            if (text == NULL) {
                return hws_channel_refuse("a LOST record of a wrong length", bytes);
            }
            memcpy(&status, payload, sizeof status);
            hws_channel_fail(status == 0 || status > 999 ? HWS_LOST_STATUS : (int) status,
                             "the session was ended: %.*s", (int) (length < 400 ? length : 400), (const char *) text);
            return -1;
        default:
            return hws_channel_refuse("an unknown record, opcode", header->opcode);
    }
}

int hws_channel_receive(void) {
    hws_channel_t *channel = &hws_channel;
    size_t wanted = channel->end - channel->start + 1;
    for (;;) {
        if (fill_to(channel, wanted) != 0) {
            return -1;
        }
        /* Handles every complete record. Then the caller checks whether its own reply was among them. */
        bool handled = false;
        for (;;) {
            size_t there = channel->end - channel->start;
            hws_record_header_t header;
            if (there < sizeof header) {
                wanted = sizeof header;
                break;
            }
            memcpy(&header, channel->buffer + channel->start, sizeof header);
            if (header.length_bytes < HWS_HEADER_BYTES || header.length_bytes % 8 != 0
                || header.length_bytes > (int32_t) HWS_MAX_RECORD_BYTES) {
                return hws_channel_refuse("a record of a wrong length", (uint32_t) header.length_bytes);
            }
            size_t length = (size_t) header.length_bytes;
            bool data = header.opcode == HWS_CONTROL_DATA;
            if (data && length < DATA_PREFIX_BYTES) {
                return hws_channel_refuse("a DATA record of a wrong length", length);
            }
            wanted = data ? DATA_PREFIX_BYTES : length;
            if (there < wanted) {
                break;
            }
            if (data) {
                if (deliver_data(channel, &header) != 0) {
                    return -1;
                }
            } else {
                const uint8_t *payload = channel->buffer + channel->start + HWS_HEADER_BYTES;
                uint32_t bytes = (uint32_t) length - HWS_HEADER_BYTES;
                int rc = header.opcode & HWS_REPLY_BIT ? deliver_reply(channel, &header, payload, bytes)
                                                       : deliver_control(channel, &header, payload, bytes);
                if (rc != 0) {
                    return -1;
                }
                channel->start += length;
            }
            handled = true;
        }
        if (handled) {
            return 0;
        }
    }
}
