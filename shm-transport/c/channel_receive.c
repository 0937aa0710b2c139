/* Waiting for replies: one of the waiting threads reads for all. */
#include "hws_channel_internal.h"

#include "hws_thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How often the background reader of a session that may move looks for LEAVE. */
#define LOOK_INTERVAL_S 1

static void futex_wait(_Atomic uint32_t *word, uint32_t expected) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void signal_waiter(hws_waiter_t *waiter) {
    /* Under receive_lock: the sleeper needs it to leave, so its stack frame still exists for the wake. */
    if (atomic_exchange_explicit(&waiter->signal, HWS_SIGNAL_LOOK, memory_order_release) == HWS_SIGNAL_ASLEEP) {
        syscall(SYS_futex, &waiter->signal, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

static void link_last(hws_channel_t *channel, hws_waiter_t *waiter) {
    waiter->next = NULL;
    waiter->previous = channel->last;
    if (channel->last != NULL) {
        channel->last->next = waiter;
    } else {
        channel->first = waiter;
    }
    channel->last = waiter;
}

static void unlink_waiter(hws_channel_t *channel, hws_waiter_t *waiter) {
    if (waiter->previous != NULL) {
        waiter->previous->next = waiter->next;
    } else {
        channel->first = waiter->next;
    }
    if (waiter->next != NULL) {
        waiter->next->previous = waiter->previous;
    } else {
        channel->last = waiter->previous;
    }
}

int hws_waiter_register(hws_waiter_t *waiter) {
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->receive_lock);
    /*
     * Set before the waiters are failed under this lock. So fail_all finds this waiter, or this waiter finds the
     * failure.
     */
    int status = atomic_load(&channel->failure);
    if (status == 0) {
        link_last(channel, waiter);
        if (waiter->credit_target != 0 && atomic_load(&channel->credit_released_bytes) >= waiter->credit_target) {
            hws_waiter_finish(waiter, 0);
        }
    }
    pthread_mutex_unlock(&channel->receive_lock);
    return status;
}

void hws_waiter_finish(hws_waiter_t *waiter, int status) {
    hws_channel_t *channel = &hws_channel;
    unlink_waiter(channel, waiter);
    waiter->status = status;
    if (!waiter->detached) {
        waiter->done = true;
        signal_waiter(waiter);
        return;
    }
    if (status != 0 && channel->deferred == 0) {
        channel->deferred = status;
    }
    channel->background_need--;
    waiter->next = channel->free_detached;
    channel->free_detached = waiter;
    pthread_cond_broadcast(&channel->detached_done);
}

void hws_waiter_fail_all(void) {
    hws_channel_t *channel = &hws_channel;
    for (hws_waiter_t *each = channel->first, *next; each != NULL; each = next) {
        next = each->next;
        if (each->writers == 0) {
            hws_waiter_finish(each, atomic_load(&channel->failure));
        }
    }
}

hws_waiter_t *hws_waiter_find(uint64_t sequence) {
    hws_waiter_t *each = hws_channel.first;
    while (each != NULL && (each->sequence != sequence || each->credit_target != 0)) {
        each = each->next;
    }
    return each;
}

/* Gives the free role of the reader to a thread that needs it. receive_lock held. */
static void pass_role_on(hws_channel_t *channel) {
    for (hws_waiter_t *each = channel->first; each != NULL; each = each->next) {
        if (!each->detached) {
            signal_waiter(each);
            return;
        }
    }
    if (channel->background_need > 0) {
        pthread_cond_signal(&channel->background_wake);
    }
}

/* Gives the role of the reader back. receive_lock held; reading releases it. */
static void give_role_back(hws_channel_t *channel) {
    channel->leader = false;
    if (atomic_load(&channel->failure) != 0) {
        hws_waiter_fail_all();
    }
}

int hws_waiter_wait(hws_waiter_t *waiter) {
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->receive_lock);
    while (!waiter->done) {
        /* After a failure nothing can be read: whichever thread ends this waiter wakes it. */
        if (!channel->leader && atomic_load(&channel->failure) == 0) {
            channel->leader = true;
            pthread_mutex_unlock(&channel->receive_lock);
            /* Only the reader writes `done`, and this thread is the reader. */
            while (!waiter->done && hws_channel_receive() == 0) {
            }
            pthread_mutex_lock(&channel->receive_lock);
            give_role_back(channel);
        } else {
            atomic_store_explicit(&waiter->signal, HWS_SIGNAL_ASLEEP, memory_order_relaxed);
            pthread_mutex_unlock(&channel->receive_lock);
            futex_wait(&waiter->signal, HWS_SIGNAL_ASLEEP);
            pthread_mutex_lock(&channel->receive_lock);
        }
    }
    if (!channel->leader) {
        pass_role_on(channel);
    }
    pthread_mutex_unlock(&channel->receive_lock);
    if (waiter->status != 0 && channel->hooks.error != NULL) {
        channel->hooks.error(waiter->status);
    }
    return waiter->status;
}

void hws_reader_leave(void) {
    give_role_back(&hws_channel);
    pass_role_on(&hws_channel);
}

/* Sleeps until this thread may have to read, at most for the interval. Returns false after the interval. */
static bool sleep_in_background(hws_channel_t *channel) {
    if (!channel->follows) {
        pthread_cond_wait(&channel->background_wake, &channel->receive_lock);
        return true;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOOK_INTERVAL_S;
    return pthread_cond_timedwait(&channel->background_wake, &channel->receive_lock, &until) != ETIMEDOUT;
}

/* Reads once if something has arrived: an idle program waits for nothing, and LEAVE would lie there for ever. */
static void look_for_records(hws_channel_t *channel) {
    hws_carrier_t *carrier = channel->carrier;
    channel->leader = true;
    pthread_mutex_unlock(&channel->receive_lock);
    if (carrier->ops->is_ready(carrier)) {
        hws_channel_receive();
    }
    pthread_mutex_lock(&channel->receive_lock);
    hws_reader_leave();
}

static void *background_main(void *unused) {
    (void) unused;
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->receive_lock);
    while (atomic_load(&channel->failure) == 0) {
        if (channel->leader || channel->background_need == 0) {
            if (!sleep_in_background(channel) && !channel->leader && atomic_load(&channel->failure) == 0) {
                look_for_records(channel);
            }
            continue;
        }
        channel->leader = true;
        bool needed = true;
        while (needed) {
            pthread_mutex_unlock(&channel->receive_lock);
            int rc = hws_channel_receive();
            pthread_mutex_lock(&channel->receive_lock);
            needed = rc == 0 && channel->background_need > 0;
        }
        hws_reader_leave();
    }
    pthread_mutex_unlock(&channel->receive_lock);
    return NULL;
}

int hws_background_start(void) {
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->receive_lock);
    int rc = 0;
    if (!channel->background_started) {
        rc = hws_thread_start(&channel->background, background_main, NULL, "hawser-receive");
        channel->background_started = rc == 0;
    }
    pthread_mutex_unlock(&channel->receive_lock);
    return rc;
}

int hws_channel_take_deferred(void) {
    hws_channel_t *channel = &hws_channel;
    pthread_mutex_lock(&channel->receive_lock);
    int status = channel->deferred;
    channel->deferred = 0;
    pthread_mutex_unlock(&channel->receive_lock);
    return status;
}
