/* The sending half: append under a lock, drain outside it. */
#include "hws_channel_internal.h"

#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/*
 * After the last asynchronous call the sender thread looks at this interval, and this many more times. Within that time
 * an asynchronous call costs its caller no wake-up. A synchronous call never depends on it: the caller sends its record
 * itself, with all records before it.
 */
#define LINGER_NS 30000
#define MAX_IDLE_LOOKS 4
#define SECOND_NS 1000000000l
/*
 * A synchronous caller sends this many times what other threads have appended meanwhile. Then it leaves the rest to the
 * sender thread.
 */
#define MAX_CALLER_DRAINS 4

static _Atomic uint32_t last_thread;
static const hws_work_hooks_t *_Atomic work_hooks;

void hws_channel_watch_work(const hws_work_hooks_t *hooks) {
    atomic_store(&work_hooks, hooks);
}

bool hws_channel_watches_work(void) {
    return atomic_load_explicit(&work_hooks, memory_order_relaxed) != NULL;
}

uint64_t hws_channel_last_sequence(void) {
    uint64_t next = atomic_load_explicit(&hws_channel.next_sequence, memory_order_relaxed);
    return next == 0 ? 0 : next - 1;
}

static uint32_t thread_number(void) {
    if (hws_tls.thread == 0) {
        hws_tls.thread = atomic_fetch_add(&last_thread, 1) + 1;
    }
    return hws_tls.thread;
}

/* Sends the filled buffer and then `extra`. send_lock held and released meanwhile; no other thread drains. */
static void drain(hws_channel_t *channel, const struct iovec *extra, int extra_count) {
    struct iovec pieces[6];
    int count = 0;
    uint64_t total = channel->fill_bytes;
    uint8_t *full = channel->fill;
    if (channel->fill_bytes > 0) {
        pieces[count++] = (struct iovec) {full, channel->fill_bytes};
    }
    for (int i = 0; i < extra_count; i++) {
        pieces[count++] = extra[i];
        total += extra[i].iov_len;
    }
    channel->fill = channel->spare;
    channel->spare = full;
    channel->fill_bytes = 0;
    channel->draining = true;
    hws_count(&channel->bytes_out, total);
    pthread_mutex_unlock(&channel->send_lock);
    hws_carrier_t *carrier = channel->carrier; /* a move replaces it only when no thread drains */
    int rc = count == 0 ? 0 : carrier->ops->send(carrier, pieces, count);
    if (rc != 0) {
        hws_channel_lose();
    }
    pthread_mutex_lock(&channel->send_lock);
    channel->draining = false;
    pthread_cond_broadcast(&channel->drained);
}

/*
 * Returns true when the caller must wake the sender thread after it has released send_lock. The sender then sleeps
 * without limit, or for a moment while a thread waits for what is left. send_lock held.
 */
static bool claim_sender(hws_channel_t *channel, bool urgent) {
    if (channel->fill_bytes == 0 || channel->draining || (channel->sender_awake && !urgent)) {
        return false;
    }
    channel->sender_awake = true;
    return true;
}

static void unlock_and_wake(hws_channel_t *channel, bool wake) {
    pthread_mutex_unlock(&channel->send_lock);
    if (wake) {
        pthread_cond_signal(&channel->sender_wake);
    }
}

/*
 * Sends what is in the buffer. If another thread is sending, that thread continues or wakes the sender thread.
 * send_lock held.
 */
static void drain_for_caller(hws_channel_t *channel) {
    for (int i = 0; i < MAX_CALLER_DRAINS && channel->fill_bytes > 0 && !channel->draining; i++) {
        drain(channel, NULL, 0);
    }
}

void hws_channel_flush(void) {
    hws_channel_t *channel = &hws_channel;
    if (channel->direct) {
        return;
    }
    pthread_mutex_lock(&channel->send_lock);
    drain_for_caller(channel);
    unlock_and_wake(channel, claim_sender(channel, true));
}

/* Sleeps for a moment, unless woken. send_lock held and released meanwhile. */
static void linger(hws_channel_t *channel) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LINGER_NS;
    if (until.tv_nsec >= SECOND_NS) {
        until.tv_nsec -= SECOND_NS;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&channel->sender_wake, &channel->send_lock, &until);
}

void *hws_channel_sender_main(void *unused) {
    (void) unused;
    hws_channel_t *channel = &hws_channel;
    int idle_looks = 0;
    uint64_t seen = 0;
    /* The kernel would otherwise stretch the short sleep by 50 us. */
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    pthread_mutex_lock(&channel->send_lock);
    /* Sleeps until a thread leaves a record to it: FOLLOWS, which may lie there already, is none. */
    while (!channel->sender_awake && atomic_load(&channel->failure) == 0) {
        pthread_cond_wait(&channel->sender_wake, &channel->send_lock);
    }
    while (atomic_load(&channel->failure) == 0) {
        if (channel->fill_bytes > 0 && !channel->draining) {
            drain(channel, NULL, 0);
            idle_looks = 0;
        } else if (idle_looks == MAX_IDLE_LOOKS) {
            /* A thread that drains, or appends without draining, wakes this one when it leaves something behind. */
            channel->sender_awake = false;
            pthread_cond_wait(&channel->sender_wake, &channel->send_lock);
            channel->sender_awake = true;
            idle_looks = 0;
        } else {
            linger(channel);
            /*
             * Records that a synchronous call has sent meanwhile count as well: more of their kind are likely to
             * follow.
             */
            idle_looks = channel->left_to_sender == seen ? idle_looks + 1 : 0;
            seen = channel->left_to_sender;
        }
    }
    pthread_mutex_unlock(&channel->send_lock);
    return NULL;
}

/* Waits until `bytes` of credit are free. No lock held. */
static int await_credit(hws_channel_t *channel, uint64_t bytes) {
    /* The records that earn the credit back may still lie in our own buffer. */
    hws_channel_flush();
    pthread_mutex_lock(&channel->send_lock);
    uint64_t target = channel->credit_used_bytes + bytes - channel->welcome.credit_window_bytes;
    pthread_mutex_unlock(&channel->send_lock);
    if (target == 0 || target > UINT64_MAX / 2) {
        return 0; /* another thread has made room in the meantime */
    }
    hws_waiter_t waiter = {.credit_target = target};
    int status = hws_waiter_register(&waiter);
    return status != 0 ? status : hws_waiter_wait(&waiter);
}

static bool lacks_credit(hws_channel_t *channel, uint64_t bytes) {
    uint64_t released = atomic_load_explicit(&channel->credit_released_bytes, memory_order_acquire);
    return channel->credit_used_bytes - released + bytes > channel->welcome.credit_window_bytes;
}

/*
 * Whether a move lets a record pass that it might hold. Records that end something must pass while the move waits for
 * that end: a callback that needs calls, and a call whose answer its thread has announced.
 */
static bool passes(hws_hold_t hold, bool through) {
    return through || (hold == HWS_HOLD_NEW && (hws_tls.in_lane || hws_tls.announced == hws_tls.sent + 1));
}

/* Waits while a move holds this thread's records. send_lock held and released meanwhile. */
static void await_release(hws_channel_t *channel, bool through) {
    while (!passes(channel->hold, through) && channel->hold != HWS_HOLD_NOTHING
           && atomic_load(&channel->failure) == 0) {
        pthread_cond_wait(&channel->released, &channel->send_lock);
    }
}

void hws_channel_await_release(void) {
    hws_channel_t *channel = &hws_channel;
    if (__builtin_expect(atomic_load_explicit(&channel->hold, memory_order_relaxed) == HWS_HOLD_NOTHING, 1)
        || hws_channel_status() != 0) {
        return; /* a forked child must take no lock */
    }
    pthread_mutex_lock(&channel->send_lock);
    await_release(channel, false);
    pthread_mutex_unlock(&channel->send_lock);
}

/* Takes send_lock and waits for credit and room. Returns 0 with the lock held, or a status without it. */
static int lock_with_room(hws_channel_t *channel, uint64_t total, bool credited, bool unbuffered, bool through) {
    pthread_mutex_lock(&channel->send_lock);
    for (;;) {
        int status = atomic_load(&channel->failure);
        if (status != 0) {
            pthread_mutex_unlock(&channel->send_lock);
            return status;
        }
        hws_hold_t hold = atomic_load_explicit(&channel->hold, memory_order_relaxed);
        if (__builtin_expect(hold != HWS_HOLD_NOTHING, 0) && !passes(hold, through)) {
            await_release(channel, through);
        } else if (credited && lacks_credit(channel, total)) {
            pthread_mutex_unlock(&channel->send_lock);
            status = await_credit(channel, total);
            if (status != 0) {
                return status;
            }
            pthread_mutex_lock(&channel->send_lock);
        } else if (unbuffered ? channel->draining : channel->fill_bytes + total > HWS_SEND_BUFFER_BYTES) {
            if (channel->draining) {
                pthread_cond_wait(&channel->drained, &channel->send_lock);
            } else {
                drain(channel, NULL, 0);
            }
        } else {
            return 0;
        }
    }
}

static void append(hws_channel_t *channel, const hws_record_header_t *header, const hws_outgoing_t *out) {
    uint8_t *p = channel->fill + channel->fill_bytes;
    memcpy(p, header, sizeof *header);
    p += sizeof *header;
    uint64_t padded = hws_pad8(out->payload_bytes);
    if (out->payload_bytes != 0) {
        memset(p + padded - 8, 0, 8);
        memcpy(p, out->payload, out->payload_bytes);
        p += padded;
    }
    if (out->bulk_bytes != 0) {
        padded = hws_pad8(out->bulk_bytes);
        memset(p + padded - 8, 0, 8);
        memcpy(p, out->bulk, out->bulk_bytes);
    }
    channel->fill_bytes += (size_t) header->length_bytes;
}

/*
 * Collects header, payload and bulk from where they lie, each with its padding. Returns the number of pieces, at most
 * 5.
 */
static int pieces_of(const hws_record_header_t *header, const hws_outgoing_t *out, struct iovec *pieces) {
    static const uint8_t zeros[8];
    const struct iovec parts[2] = {{(void *) out->payload, out->payload_bytes},
                                   {(void *) out->bulk, (size_t) out->bulk_bytes}};
    int count = 0;
    pieces[count++] = (struct iovec) {(void *) header, sizeof *header};
    for (int i = 0; i < 2; i++) {
        size_t padding = (size_t) hws_pad8(parts[i].iov_len) - parts[i].iov_len;
        if (parts[i].iov_len != 0) {
            pieces[count++] = parts[i];
        }
        if (padding != 0) {
            pieces[count++] = (struct iovec) {(void *) zeros, padding};
        }
    }
    return count;
}

/* Sends a record from where it lies, after the appended records. send_lock held. */
static void send_behind(hws_channel_t *channel, const hws_record_header_t *header, const hws_outgoing_t *out) {
    struct iovec pieces[5];
    drain(channel, pieces, pieces_of(header, out, pieces));
}

/* Sends a record over a direct carrier. Called with send_lock, which it releases. */
static int send_direct(hws_channel_t *channel, const hws_record_header_t *header, const hws_outgoing_t *out) {
    struct iovec pieces[5];
    hws_carrier_t *carrier = channel->carrier;
    int rc = carrier->ops->send(carrier, pieces, pieces_of(header, out, pieces));
    hws_count(&channel->bytes_out, (uint64_t) header->length_bytes);
    pthread_mutex_unlock(&channel->send_lock);
    /* The channel fails without the lock: failing wakes all waiting threads and takes the lock. */
    return rc == 0 ? 0 : hws_channel_lose();
}

static int submit(const hws_outgoing_t *out, hws_waiter_t *waiter, bool flush) {
    hws_channel_t *channel = &hws_channel;
    int status = hws_channel_status();
    if (status != 0) {
        return status; /* before any lock: in a forked child, threads that do not exist there may hold the locks */
    }
    if (out->bulk_bytes > HWS_MAX_RECORD_BYTES || (out->bulk_bytes != 0 && out->payload_bytes % 8 != 0)) {
        return HWS_STATUS_INVALID_VALUE;
    }
    uint64_t total = HWS_HEADER_BYTES + hws_pad8(out->payload_bytes) + hws_pad8(out->bulk_bytes);
    if (total > channel->welcome.max_record_bytes) {
        return HWS_STATUS_INVALID_VALUE;
    }
    bool credited = (out->flags & HWS_FLAG_CREDITED) != 0;
    bool direct = channel->direct;
    bool unbuffered = direct || out->bulk_bytes >= HWS_DIRECT_BYTES || total > HWS_SEND_BUFFER_BYTES;
    status = lock_with_room(channel, total, credited, unbuffered, out->through);
    if (status != 0) {
        return status;
    }
    hws_record_header_t header = {
        .length_bytes = (int32_t) total,
        .opcode = out->opcode,
        .sequence = atomic_load_explicit(&channel->next_sequence, memory_order_relaxed),
        .thread = thread_number(),
        .context = hws_tls.context,
        .flags = out->flags,
    };
    if (waiter != NULL) {
        waiter->sequence = header.sequence;
        waiter->opcode = header.opcode;
        status = hws_waiter_register(waiter);
        if (status != 0) {
            pthread_mutex_unlock(&channel->send_lock);
            return status;
        }
    }
    atomic_store_explicit(&channel->next_sequence, header.sequence + 1, memory_order_relaxed);
    hws_tls.sequence = header.sequence;
    hws_tls.sent++;
    if (credited) {
        hws_count(&channel->credit_used_bytes, total);
    }
    if (out->opcode >> 16 != 0 || waiter != NULL) {
        hws_count(&channel->calls, 1);
    }
    if (direct) {
        status = send_direct(channel, &header, out);
        return waiter != NULL ? 0 : status; /* a waiter has received the status */
    }
    if (unbuffered) {
        send_behind(channel, &header, out);
    } else {
        append(channel, &header, out);
        if (flush) {
            drain_for_caller(channel);
        } else {
            channel->left_to_sender++;
        }
    }
    unlock_and_wake(channel, claim_sender(channel, flush || unbuffered));
    return 0;
}

void hws_channel_send_with_next(uint32_t opcode) {
    hws_channel_t *channel = &hws_channel;
    const hws_outgoing_t out = {.opcode = opcode};
    pthread_mutex_lock(&channel->send_lock);
    const hws_record_header_t header = {
        .length_bytes = HWS_HEADER_BYTES, .opcode = opcode, .sequence = channel->next_sequence++};
    append(channel, &header, &out);
    pthread_mutex_unlock(&channel->send_lock);
}

int hws_channel_submit(const hws_outgoing_t *out, hws_waiter_t *waiter, bool flush) {
    const hws_work_hooks_t *hooks = atomic_load_explicit(&work_hooks, memory_order_acquire);
    bool is_work = (out->flags & HWS_FLAG_CREDITED) != 0 || (waiter != NULL && waiter->target_bytes != 0);
    if (__builtin_expect(hooks == NULL || !is_work, 1)) {
        return submit(out, waiter, flush);
    }
    hooks->begin();
    int status = submit(out, waiter, flush);
    hooks->end();
    return status;
}

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    if (hws_is_forbidden()) {
        return HWS_STATUS_NOT_PERMITTED;
    }
    hws_outgoing_t out = {opcode, flags & ~HWS_FLAG_REPLY,       payload, payload_bytes,
                          bulk,   bulk == NULL ? 0 : bulk_bytes, false};
    return hws_channel_submit(&out, NULL, false);
}

int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    if (hws_is_forbidden()) {
        return HWS_STATUS_NOT_PERMITTED;
    }
    hws_outgoing_t out = {opcode, flags | HWS_FLAG_REPLY,        payload, payload_bytes,
                          bulk,   bulk == NULL ? 0 : bulk_bytes, false};
    hws_waiter_t waiter = {.reply = reply, .reply_capacity = reply_capacity};
    int status = hws_channel_submit(&out, &waiter, true);
    if (status != 0) {
        return status;
    }
    if (!hws_tls.is_background) {
        atomic_fetch_add_explicit(&hws_channel.round_trips, 1, memory_order_relaxed);
    }
    status = hws_waiter_wait(&waiter);
    if (status == 0 && reply_bytes_p != NULL) {
        *reply_bytes_p = waiter.reply_bytes;
    }
    if (status == 0 && reply_capacity == 0) {
        /* A call without outputs, such as a synchronise, loses nothing when it reports an earlier copy's error. */
        status = hws_channel_take_deferred();
        if (status != 0 && hws_channel.hooks.error != NULL) {
            hws_channel.hooks.error(status);
        }
    }
    return status;
}
