/* Opening, failing and closing the channel. */
#include "hws_channel_internal.h"

#include "hws_log.h"
#include "hws_thread.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

hws_channel_t hws_channel;
_Thread_local hws_tls_t hws_tls;
hws_stream_watcher_t *_Atomic hws_stream_watcher;

static void init_locks(hws_channel_t *channel) {
    pthread_mutex_init(&channel->send_lock, NULL);
    pthread_cond_init(&channel->drained, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&channel->sender_wake, &monotonic);
    pthread_cond_init(&channel->released, NULL);
    pthread_mutex_init(&channel->receive_lock, NULL);
    pthread_cond_init(&channel->background_wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&channel->detached_done, NULL);
    pthread_cond_init(&channel->data_arrived, NULL);
    pthread_mutex_init(&channel->callback_lock, NULL);
    for (int i = 0; i < HWS_LANE_COUNT; i++) {
        pthread_cond_init(&channel->lanes[i].wake, NULL);
    }
}

/* Starts the sender thread. A direct carrier needs none: it sends each record at once. */
static int start_sender(hws_channel_t *channel) {
    channel->fill = malloc(HWS_SEND_BUFFER_BYTES);
    channel->spare = malloc(HWS_SEND_BUFFER_BYTES);
    channel->sender_started = channel->fill != NULL && channel->spare != NULL
        && hws_thread_start(&channel->sender, hws_channel_sender_main, NULL, "hawser-send") == 0;
    return channel->sender_started ? 0 : -1;
}

/*
 * Allows the worker to send LEAVE, where both ends can do that. FOLLOWS waits for the first call, which takes it along.
 * The background reader finds LEAVE while no thread of the program waits for a reply.
 */
static void begin_to_follow(hws_channel_t *channel) {
    channel->follows = channel->welcome.may_leave && !channel->direct && channel->hooks.leave != NULL;
    if (channel->follows && hws_background_start() != 0) {
        channel->follows = false; /* nobody would find LEAVE */
    }
    if (channel->follows) {
        hws_channel_send_with_next(HWS_CONTROL_FOLLOWS);
    }
}

int hws_channel_open(hws_carrier_t *carrier, const hws_welcome_t *welcome, const hws_channel_hooks_t *hooks) {
    hws_channel_t *channel = &hws_channel;
    memset(channel, 0, sizeof *channel);
    init_locks(channel);
    channel->carrier = carrier;
    channel->carrier_name = carrier->ops->name;
    channel->direct = carrier->ops->direct;
    channel->welcome = *welcome;
    channel->hooks = *hooks;
    channel->next_sequence = welcome->next_sequence;
    channel->buffer = malloc(HWS_RECEIVE_BUFFER_BYTES);
    atomic_store(&channel->next_blob, 1);
    for (int i = 0; i < HWS_MAX_DETACHED; i++) {
        channel->detached[i].next = channel->free_detached;
        channel->free_detached = &channel->detached[i];
    }
    if (channel->buffer == NULL || (!carrier->ops->direct && start_sender(channel) != 0)) {
        free(channel->fill);
        free(channel->spare);
        free(channel->buffer);
        return -1;
    }
    begin_to_follow(channel);
    return 0;
}

/* Wakes every sleeping thread, so that it sees the failure. */
static void wake_everyone(hws_channel_t *channel) {
    pthread_mutex_lock(&channel->send_lock);
    pthread_cond_broadcast(&channel->drained);
    pthread_cond_broadcast(&channel->sender_wake);
    pthread_cond_broadcast(&channel->released);
    pthread_mutex_unlock(&channel->send_lock);

    pthread_mutex_lock(&channel->receive_lock);
    if (!channel->leader) {
        /*
         * A reader may still write to the memory of waiting copies. It fails the waiters itself when it stops reading.
         */
        hws_waiter_fail_all();
    }
    pthread_cond_broadcast(&channel->background_wake);
    pthread_cond_broadcast(&channel->detached_done);
    pthread_cond_broadcast(&channel->data_arrived);
    pthread_mutex_unlock(&channel->receive_lock);

    pthread_mutex_lock(&channel->callback_lock);
    for (int i = 0; i < HWS_LANE_COUNT; i++) {
        pthread_cond_broadcast(&channel->lanes[i].wake);
    }
    pthread_mutex_unlock(&channel->callback_lock);
}

/*
 * Makes all threads at the carriers return. The failure is set already. So a move that has just replaced a carrier sees
 * the failure, or this thread sees the new carrier (all these operations are sequentially consistent).
 */
static void shut_down(hws_channel_t *channel) {
    hws_carrier_t *carrier = channel->carrier, *next = channel->next_carrier;
    carrier->ops->shutdown(carrier);
    if (next != NULL) {
        next->ops->shutdown(next);
    }
    hws_stripes_shutdown();
}

int hws_channel_fail(int status, const char *format, ...) {
    hws_channel_t *channel = &hws_channel;
    int none = 0;
    if (!atomic_compare_exchange_strong(&channel->failure, &none, status)) {
        return none;
    }
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    hws_log(HWS_ERROR, "%s", text);
    shut_down(channel);
    if (channel->hooks.failed != NULL) {
        channel->hooks.failed(status);
    }
    wake_everyone(channel);
    return status;
}

int hws_channel_lose(void) {
    hws_carrier_t *carrier = hws_channel.carrier;
    int error = errno;
    const char *fault = carrier->ops->fault == NULL ? NULL : carrier->ops->fault(carrier);
    if (fault != NULL) {
        return hws_channel_fail(HWS_LOST_STATUS, "%s", fault);
    }
    return hws_channel_fail(HWS_LOST_STATUS, "the connection to the broker is lost: %s",
                            error == 0 ? "closed by the other end" : strerror(error));
}

void hws_channel_close(int status) {
    hws_channel_t *channel = &hws_channel;
    if (channel->carrier == NULL) {
        return;
    }
    int none = 0;
    atomic_compare_exchange_strong(&channel->failure, &none, status);
    shut_down(channel);
    wake_everyone(channel);
}

void hws_channel_abandon_in_child(void) {
    hws_channel_t *channel = &hws_channel;
    hws_carrier_t *carrier = channel->carrier, *next = channel->next_carrier;
    if (carrier != NULL) {
        atomic_store(&channel->failure, HWS_STATUS_NOT_INITIALIZED);
        carrier->ops->close(carrier);
    }
    if (next != NULL) {
        next->ops->close(next);
    }
}

void hws_channel_join(void) {
    hws_channel_t *channel = &hws_channel;
    if (channel->sender_started) {
        pthread_join(channel->sender, NULL);
    }
    if (channel->background_started) {
        pthread_join(channel->background, NULL);
    }
    for (int i = 0; i < HWS_LANE_COUNT; i++) {
        if (channel->lanes[i].started) {
            pthread_join(channel->lanes[i].thread, NULL);
        }
        free(channel->lanes[i].queue);
    }
    hws_carrier_t *carrier = channel->carrier, *next = channel->next_carrier;
    carrier->ops->close(carrier);
    free(carrier);
    if (next != NULL) {
        next->ops->destroy(next);
    }
    free(channel->fill);
    free(channel->spare);
    free(channel->buffer);
    channel->carrier = NULL;
}

int hws_channel_status(void) {
    return atomic_load_explicit(&hws_channel.failure, memory_order_relaxed);
}

const hws_welcome_t *hws_channel_welcome(void) {
    return &hws_channel.welcome;
}

void hws_channel_statistics(hws_statistics_t *statistics_p) {
    hws_channel_t *channel = &hws_channel;
    *statistics_p = (hws_statistics_t) {
        .carrier = channel->carrier != NULL ? channel->carrier_name : "none",
        .calls = atomic_load(&channel->calls),
        .round_trips = atomic_load(&channel->round_trips),
        .bytes_out = atomic_load(&channel->bytes_out) + atomic_load(&channel->stripe_bytes_out),
        .bytes_in = atomic_load(&channel->bytes_in) + atomic_load(&channel->stripe_bytes_in),
        .stripes = atomic_load(&channel->stripes),
    };
}

void hws_channel_count_stripe(void) {
    atomic_fetch_add_explicit(&hws_channel.stripes, 1, memory_order_relaxed);
}

void hws_channel_count_stripe_bytes(uint64_t bytes_out, uint64_t bytes_in) {
    atomic_fetch_add_explicit(&hws_channel.stripe_bytes_out, bytes_out, memory_order_relaxed);
    atomic_fetch_add_explicit(&hws_channel.stripe_bytes_in, bytes_in, memory_order_relaxed);
}
