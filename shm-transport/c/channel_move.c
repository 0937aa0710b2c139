/*
 * A move of the session to another broker: the hold of calls, the wait between two connections, and the exchange of the
 * carrier. Calls need nothing new for it but a look at `hold`: the moving thread looks again and again whether they have
 * ended, since a signal at the end of each call would cost all of them time.
 */
#include "hws_channel_move.h"

#include "hws_channel_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#define LOOK_INTERVAL_NS 200000
/* A worker that has sent RESUMED has sent all else before. The limit stops one that sends on and on. */
#define LAST_WORDS_MS 1000
#define MAX_REASON_BYTES 400u

_Static_assert(HWS_LEAVE_FIXED_BYTES == 8 && HWS_LEAVE_ADDRESS_OFFSET == 0, "as read below");
_Static_assert(HWS_LEFT_FIXED_BYTES == 8 && HWS_LEFT_REASON_OFFSET == 0, "as sent below");

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int hws_leave_arrived(const uint8_t *payload, uint32_t bytes) {
    hws_channel_t *channel = &hws_channel;
    char address[HWS_MAX_ADDRESS_BYTES + 1];
    uint32_t length = 0;
    if (!channel->follows) {
        return hws_channel_refuse("LEAVE to a guest that has not sent FOLLOWS, bytes", bytes);
    }
    if (bytes >= HWS_LEAVE_FIXED_BYTES) {
        memcpy(&length, payload, sizeof length);
    }
    if (length == 0 || length > HWS_MAX_ADDRESS_BYTES || bytes != HWS_LEAVE_FIXED_BYTES + hws_pad8(length)
        || memchr(payload + HWS_LEAVE_FIXED_BYTES, '\0', length) != NULL) {
        return hws_channel_refuse("a LEAVE record without a valid address, bytes", bytes);
    }
    if (atomic_exchange(&channel->asked, true)) {
        return hws_channel_refuse("LEAVE before the answer to the one before, bytes", bytes);
    }
    memcpy(address, payload + HWS_LEAVE_FIXED_BYTES, length);
    address[length] = '\0';
    channel->hooks.leave(address);
    return 0;
}

int hws_stay_arrived(uint32_t bytes) {
    hws_channel_t *channel = &hws_channel;
    if (bytes != 0 || !channel->has_left || channel->stays) {
        return hws_channel_refuse("an unexpected STAY record, bytes", bytes);
    }
    channel->stays = true;
    atomic_store(&channel->asked, false); /* the next record may be LEAVE */
    return 0;
}

void hws_channel_park(hws_carrier_t *next) {
    hws_channel_t *channel = &hws_channel;
    atomic_store(&channel->next_carrier, next);
    /* Sequentially consistent: the thread that sets the failure then sees the carrier, or this one sees the failure. */
    if (atomic_load(&channel->failure) != 0) {
        next->ops->shutdown(next);
    }
}

/*
 * Shuts down and frees next_carrier. A thread that shuts the channel's carriers down has set the failure before it reads
 * next_carrier. So without a failure no thread has the pointer. With one the object stays, for the rest of the process.
 */
void hws_channel_unpark(void) {
    hws_channel_t *channel = &hws_channel;
    hws_carrier_t *next = atomic_exchange(&channel->next_carrier, NULL);
    if (next == NULL) {
        return;
    }
    next->ops->shutdown(next);
    if (atomic_load(&channel->failure) == 0) {
        next->ops->destroy(next);
    } else {
        atomic_store(&channel->next_carrier, next);
    }
}

static void set_hold(hws_channel_t *channel, hws_hold_t hold) {
    pthread_mutex_lock(&channel->send_lock);
    atomic_store(&channel->hold, hold);
    pthread_cond_broadcast(&channel->released);
    pthread_mutex_unlock(&channel->send_lock);
}

/* What a session with open calls waits for, for people; NULL when it is quiet. All locks held. */
static const char *unquiet(hws_channel_t *channel) {
    for (int i = 0; i < HWS_LANE_COUNT; i++) {
        const hws_callback_lane_t *lane = &channel->lanes[i];
        if (lane->expected != 0 || lane->count != 0 || lane->runs) {
            return i == HWS_LANE_PROGRAM ? "a host function is pending" : "the bytes of a copy are pending";
        }
    }
    const hws_waiter_t *first = channel->first;
    if (first != NULL) {
        return first->detached          ? "an asynchronous copy is under way"
            : first->credit_target != 0 ? "a call waits for credit"
                                        : "a call waits for its reply";
    }
    if (channel->background_need != 0) {
        return "an asynchronous copy begins";
    }
    if (channel->leader) {
        return "a thread receives";
    }
    return channel->draining || channel->fill_bytes != 0 ? "records have not been sent" : NULL;
}

/* Holds everything and takes the reader's role, when all calls have ended. Returns NULL, or what has not. */
static const char *close_when_quiet(hws_channel_t *channel) {
    pthread_mutex_lock(&channel->send_lock);
    pthread_mutex_lock(&channel->receive_lock);
    pthread_mutex_lock(&channel->callback_lock);
    const char *busy = unquiet(channel);
    if (busy == NULL) {
        atomic_store(&channel->hold, HWS_HOLD_ALL);
        channel->leader = true;
    }
    pthread_mutex_unlock(&channel->callback_lock);
    pthread_mutex_unlock(&channel->receive_lock);
    pthread_mutex_unlock(&channel->send_lock);
    return busy;
}

const char *hws_channel_hold(int64_t deadline_ms) {
    hws_channel_t *channel = &hws_channel;
    const struct timespec interval = {.tv_nsec = LOOK_INTERVAL_NS};
    const char *busy;
    set_hold(channel, HWS_HOLD_NEW);
    while ((busy = close_when_quiet(channel)) != NULL && hws_channel_status() == 0 && now_ms() < deadline_ms) {
        nanosleep(&interval, NULL);
    }
    if (busy != NULL) {
        set_hold(channel, HWS_HOLD_NOTHING);
    }
    return busy;
}

/* Submits LEFT. The reason is cut, and only its printable bytes of ASCII stay: a broker may have chosen some. */
static void send_left(const char *reason, bool flush) {
    struct {
        uint32_t bytes, padding;
        char text[MAX_REASON_BYTES];
    } left = {.bytes = (uint32_t) strnlen(reason, MAX_REASON_BYTES)};
    for (uint32_t i = 0; i < left.bytes; i++) {
        left.text[i] = (char) (reason[i] < ' ' || reason[i] > '~' ? '?' : reason[i]);
    }
    const hws_outgoing_t out = {.opcode = HWS_CONTROL_LEFT,
                                .payload = &left,
                                .payload_bytes = HWS_LEFT_FIXED_BYTES + left.bytes,
                                .through = true};
    hws_channel_submit(&out, NULL, flush); /* a failure has already been reported by the channel */
}

/* The other connection while it is parked. */
typedef struct parked {
    hws_record_header_t header;
    size_t bytes; /* of the header, so far */
} parked_t;

/*
 * Receives a part of RESUMED. Returns whether it is whole. An end, and every other record, end the connection: only the
 * old one counts then.
 */
static bool take_resumed(hws_channel_t *channel, parked_t *parked) {
    hws_carrier_t *next = channel->next_carrier;
    struct iovec piece = {(uint8_t *) &parked->header + parked->bytes, sizeof parked->header - parked->bytes};
    ssize_t received = next->ops->receive(next, &piece, 1);
    if (received > 0) {
        hws_count(&channel->bytes_in, (uint64_t) received);
        parked->bytes += (size_t) received;
        if (parked->bytes < sizeof parked->header) {
            return false;
        }
        if (parked->header.opcode == HWS_CONTROL_RESUMED && parked->header.length_bytes == HWS_HEADER_BYTES) {
            return true;
        }
    }
    hws_channel_unpark();
    return false;
}

static bool is_ready(hws_carrier_t *carrier) {
    return carrier->ops->is_ready(carrier);
}

/*
 * Waits until one of the connections has something. It has no limit: the broker has one, and ends both when it has
 * passed. The end of the channel, and of the process, shuts both down.
 */
static void await_either(hws_channel_t *channel) {
    hws_carrier_t *carrier = channel->carrier, *next = channel->next_carrier;
    struct pollfd wanted[2] = {
        {.fd = channel->has_ended ? -1 : carrier->ops->descriptor(carrier), .events = POLLIN},
        {.fd = next == NULL ? -1 : next->ops->descriptor(next), .events = POLLIN},
    };
    poll(wanted, 2, -1);
}

/* Waits for the worker's decision, after LEFT. */
static hws_leave_end_t await_decision(hws_channel_t *channel) {
    parked_t parked = {.bytes = 0};
    while (hws_channel_status() == 0 && !channel->stays) {
        if (!channel->has_ended && is_ready(channel->carrier)) {
            hws_channel_receive();
        } else if (channel->next_carrier == NULL) {
            if (channel->has_ended) {
                hws_channel_fail(HWS_LOST_STATUS, "the connections to both brokers of a move are lost: %s",
                                 channel->end_error == 0 ? "closed by the other end" : strerror(channel->end_error));
            } else {
                await_either(channel);
            }
        } else if (!is_ready(channel->next_carrier)) {
            await_either(channel);
        } else if (take_resumed(channel, &parked)) {
            return HWS_LEAVE_MOVED;
        }
    }
    return hws_channel_status() == 0 ? HWS_LEAVE_STAYED : HWS_LEAVE_FAILED;
}

/* Delivers what the old worker has sent before it stopped, such as text of kernels. It has all arrived by now. */
static void take_last_words(hws_channel_t *channel) {
    const int64_t deadline_ms = now_ms() + LAST_WORDS_MS;
    while (hws_channel_status() == 0 && !channel->has_ended && is_ready(channel->carrier) && now_ms() < deadline_ms) {
        hws_channel_receive();
    }
    if (channel->stays) {
        hws_channel_refuse("STAY after RESUMED, session", channel->welcome.session_id);
    }
}

/*
 * Makes the new connection the channel's. No thread sends, and this one receives, so none is at a carrier. A thread that
 * shuts both down at this moment has set the failure, and this one sees that in hws_channel_unpark() and below.
 */
static void exchange_carriers(hws_channel_t *channel) {
    hws_carrier_t *old = channel->carrier;
    atomic_store(&channel->carrier, atomic_load(&channel->next_carrier));
    atomic_store(&channel->next_carrier, old);
    if (atomic_load(&channel->failure) != 0) {
        hws_carrier_t *carrier = channel->carrier;
        carrier->ops->shutdown(carrier);
    }
    hws_channel_unpark();
    channel->start = channel->end = 0;
}

hws_leave_end_t hws_channel_leave(void) {
    hws_channel_t *channel = &hws_channel;
    channel->has_left = true;
    channel->stays = channel->has_ended = false;
    send_left("", true);
    hws_leave_end_t end = await_decision(channel);
    if (end == HWS_LEAVE_MOVED) {
        take_last_words(channel);
        exchange_carriers(channel);
        atomic_store(&channel->asked, false);
        end = hws_channel_status() == 0 ? HWS_LEAVE_MOVED : HWS_LEAVE_FAILED;
    } else {
        hws_channel_unpark();
    }
    channel->has_left = false;
    return end;
}

bool hws_channel_forget_stripes(void) {
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->receive_lock);
    for (unsigned i = 0; i < HWS_MAX_STRIPES; i++) {
        atomic_store(&channel->stripe_carriers[i], NULL);
    }
    channel->stripe_carrier_count = 0;
    channel->stripe_lost = false; /* they have ended because this end has shut them down */
    pthread_mutex_unlock(&channel->receive_lock);
    /* As in hws_channel_unpark(). */
    return atomic_load(&channel->failure) == 0;
}

void hws_channel_release(void) {
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->receive_lock);
    hws_reader_leave();
    pthread_mutex_unlock(&channel->receive_lock);
    set_hold(channel, HWS_HOLD_NOTHING);
}

void hws_channel_decline(const char *reason) {
    atomic_store(&hws_channel.asked, false);
    send_left(reason, false);
}
