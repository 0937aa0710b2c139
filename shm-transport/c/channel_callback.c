/*
 * Callbacks: the program's host functions, and copies whose bytes the worker asks for. Each kind has a dedicated
 * thread. A host function may thus block, or wait for another thread's CUDA calls, while copies go on.
 */
#include "hws_channel_internal.h"

#include "hws_thread.h"

#include <stdlib.h>

#define FIRST_CAPACITY 16u

static hws_callback_lane_t *lane_of(uint64_t id) {
    return &hws_channel.lanes[(id & HWS_CALLBACK_COPY_BIT) != 0 ? HWS_LANE_COPIES : HWS_LANE_PROGRAM];
}

/*
 * Waits for a callback: spins while one is expected, since the stream waits for it, then sleeps. callback_lock held, and
 * released meanwhile. May return without one.
 */
static void await_callback(hws_channel_t *channel, hws_callback_lane_t *lane) {
    if (lane->expected == 0) {
        pthread_cond_wait(&lane->wake, &channel->callback_lock);
        return;
    }
    uint32_t before = atomic_load(&lane->arrived);
    pthread_mutex_unlock(&channel->callback_lock);
    hws_spin_begin(&lane->spin);
    while (atomic_load_explicit(&lane->arrived, memory_order_acquire) == before
           && atomic_load_explicit(&channel->failure, memory_order_relaxed) == 0 && hws_spin_once(&lane->spin)) {
    }
    pthread_mutex_lock(&channel->callback_lock);
    bool sleeps = lane->count == 0 && atomic_load(&channel->failure) == 0;
    hws_spin_end(&lane->spin, sleeps);
    lane->spins = lane->spin.budget_ns != 0;
    if (sleeps) {
        pthread_cond_wait(&lane->wake, &channel->callback_lock);
    }
}

static void *lane_main(void *argument) {
    hws_channel_t *channel = &hws_channel;
    hws_callback_lane_t *lane = argument;
    hws_tls.in_callback = lane == &channel->lanes[HWS_LANE_PROGRAM];
    hws_tls.is_background = !hws_tls.in_callback;
    hws_tls.in_lane = true;
    hws_spin_init(&lane->spin);
    pthread_mutex_lock(&channel->callback_lock);
    while (atomic_load(&channel->failure) == 0) {
        if (lane->count == 0) {
            await_callback(channel, lane);
            continue;
        }
        hws_queued_callback_t next = lane->queue[lane->head];
        lane->head = (lane->head + 1) % lane->capacity;
        lane->count--;
        lane->runs = true;
        pthread_mutex_unlock(&channel->callback_lock);
        channel->hooks.run_callback(next.id, next.status);
        hws_outgoing_t done = {
            .opcode = HWS_CONTROL_CALLBACK_DONE, .payload = &next.id, .payload_bytes = sizeof next.id};
        hws_channel_submit(&done, NULL, true); /* a failure has already been reported by the channel */
        pthread_mutex_lock(&channel->callback_lock);
        lane->runs = false;
    }
    pthread_mutex_unlock(&channel->callback_lock);
    return NULL;
}

/* Makes room for one callback more than are queued and expected. callback_lock held. */
static bool reserve(hws_callback_lane_t *lane) {
    uint32_t needed = lane->count + lane->expected + 1;
    if (needed <= lane->capacity) {
        return true;
    }
    uint32_t capacity = lane->capacity == 0 ? FIRST_CAPACITY : 2 * lane->capacity;
    hws_queued_callback_t *larger = malloc(capacity * sizeof *larger);
    if (larger == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < lane->count; i++) {
        /* NOLINTNEXTLINE(*.DivideZero): a list without capacity has no callbacks */
        larger[i] = lane->queue[(lane->head + i) % lane->capacity];
    }
    free(lane->queue);
    lane->queue = larger;
    lane->capacity = capacity;
    lane->head = 0;
    return true;
}

static bool start(hws_callback_lane_t *lane) {
    if (!lane->started) {
        bool program = lane == &hws_channel.lanes[HWS_LANE_PROGRAM];
        lane->started =
            hws_thread_start(&lane->thread, lane_main, lane, program ? "hawser-callback" : "hawser-bytes") == 0;
    }
    return lane->started;
}

int hws_channel_expect_callback(hws_lane_t which) {
    hws_channel_t *channel = &hws_channel;
    hws_callback_lane_t *lane = &channel->lanes[which];
    if (hws_channel_status() != 0) {
        return hws_channel_status();
    }
    hws_channel_await_release();
    if (hws_background_start() != 0) {
        return 2; /* CUDA_ERROR_OUT_OF_MEMORY: no thread can be started */
    }
    pthread_mutex_lock(&channel->callback_lock);
    bool ready = reserve(lane) && start(lane);
    lane->expected += ready ? 1 : 0;
    if (lane->spins && lane->count == 0) {
        pthread_cond_signal(&lane->wake);
    }
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
    hws_channel_announce();
    return 0;
}

static bool take_expected(hws_callback_lane_t *lane) {
    bool expected = lane->expected > 0;
    lane->expected -= expected ? 1 : 0;
    return expected;
}

static void need_less(hws_channel_t *channel) {
    pthread_mutex_lock(&channel->receive_lock);
    channel->background_need--;
    pthread_mutex_unlock(&channel->receive_lock);
}

void hws_channel_unexpect_callback(hws_lane_t which) {
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->callback_lock);
    bool expected = take_expected(&channel->lanes[which]);
    pthread_mutex_unlock(&channel->callback_lock);
    if (expected) {
        need_less(channel);
    }
}

int hws_callback_arrived(uint64_t id, int status) {
    hws_channel_t *channel = &hws_channel;
    hws_callback_lane_t *lane = lane_of(id);
    pthread_mutex_lock(&channel->callback_lock);
    bool expected = take_expected(lane);
    if (expected) {
        lane->queue[(lane->head + lane->count) % lane->capacity] = (hws_queued_callback_t) {id, status};
        lane->count++;
        atomic_fetch_add_explicit(&lane->arrived, 1, memory_order_release);
        pthread_cond_signal(&lane->wake);
    }
    pthread_mutex_unlock(&channel->callback_lock);
    if (!expected) {
        return -1;
    }
    need_less(channel);
    return 0;
}
