/*
 * Host functions: a dedicated thread runs them, so that a host function may block or wait for another thread's CUDA
 * calls.
 */
#include "hws_channel_internal.h"

#include "hws_thread.h"

#include <stdlib.h>

#define FIRST_CAPACITY 16u

static void *callback_main(void *unused) {
    (void) unused;
    hws_channel_t *channel = &hws_channel;
    hws_tls.in_callback = true;
    pthread_mutex_lock(&channel->callback_lock);
    while (atomic_load(&channel->failure) == 0) {
        if (channel->callback_count == 0) {
            pthread_cond_wait(&channel->callback_wake, &channel->callback_lock);
            continue;
        }
        hws_queued_callback_t next = channel->callbacks[channel->callback_head];
        channel->callback_head = (channel->callback_head + 1) % channel->callback_capacity;
        channel->callback_count--;
        pthread_mutex_unlock(&channel->callback_lock);
        channel->hooks.run_callback(next.id, next.status);
        hws_outgoing_t done = {
            .opcode = HWS_CONTROL_CALLBACK_DONE, .payload = &next.id, .payload_bytes = sizeof next.id};
        hws_channel_submit(&done, NULL, true); /* a failure has already been reported by the channel */
        pthread_mutex_lock(&channel->callback_lock);
    }
    pthread_mutex_unlock(&channel->callback_lock);
    return NULL;
}

/* Makes room for one callback more than are queued and expected. callback_lock held. */
static bool reserve(hws_channel_t *channel) {
    uint32_t needed = channel->callback_count + channel->callback_expected + 1;
    if (needed <= channel->callback_capacity) {
        return true;
    }
    uint32_t capacity = channel->callback_capacity == 0 ? FIRST_CAPACITY : 2 * channel->callback_capacity;
    hws_queued_callback_t *larger = malloc(capacity * sizeof *larger);
    if (larger == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < channel->callback_count; i++) {
        /* NOLINTNEXTLINE(*.DivideZero): a list without capacity has no callbacks */
        larger[i] = channel->callbacks[(channel->callback_head + i) % channel->callback_capacity];
    }
    free(channel->callbacks);
    channel->callbacks = larger;
    channel->callback_capacity = capacity;
    channel->callback_head = 0;
    return true;
}

int hws_channel_expect_callback(void) {
    hws_channel_t *channel = &hws_channel;
    if (hws_channel_status() != 0) {
        return hws_channel_status();
    }
    if (hws_background_start() != 0) {
        return 2; /* CUDA_ERROR_OUT_OF_MEMORY: no thread can be started */
    }
    pthread_mutex_lock(&channel->callback_lock);
    bool ready = reserve(channel);
    if (ready && !channel->callback_started) {
        ready = hws_thread_start(&channel->callback_thread, callback_main, NULL, "hawser-callback") == 0;
        channel->callback_started = ready;
    }
    channel->callback_expected += ready ? 1 : 0;
    pthread_mutex_unlock(&channel->callback_lock);
    if (!ready) {
        return 2;
    }
    pthread_mutex_lock(&channel->receive_lock);
    channel->background_need++;
    if (!channel->leader) {
        pthread_cond_signal(&channel->background_wake);
    }
    pthread_mutex_unlock(&channel->receive_lock);
    return 0;
}

static bool take_expected(hws_channel_t *channel) {
    bool expected = channel->callback_expected > 0;
    channel->callback_expected -= expected ? 1 : 0;
    return expected;
}

static void need_less(hws_channel_t *channel) {
    pthread_mutex_lock(&channel->receive_lock);
    channel->background_need--;
    pthread_mutex_unlock(&channel->receive_lock);
}

void hws_channel_unexpect_callback(void) {
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->callback_lock);
    bool expected = take_expected(channel);
    pthread_mutex_unlock(&channel->callback_lock);
    if (expected) {
        need_less(channel);
    }
}

int hws_callback_arrived(uint64_t id, int status) {
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->callback_lock);
    bool expected = take_expected(channel);
    if (expected) {
        uint32_t at = (channel->callback_head + channel->callback_count) % channel->callback_capacity;
        channel->callbacks[at] = (hws_queued_callback_t) {id, status};
        channel->callback_count++;
        pthread_cond_signal(&channel->callback_wake);
    }
    pthread_mutex_unlock(&channel->callback_lock);
    if (!expected) {
        return -1;
    }
    need_less(channel);
    return 0;
}
