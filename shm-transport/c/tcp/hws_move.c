#include "hws_move.h"

#include "../hws_broker.h"
#include "../hws_channel.h"
#include "../hws_channel_move.h"
#include "../hws_log.h"
#include "../hws_thread.h"
#include "../shm/hws_bulk_job.h"
#include "hws_stripe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The session works on meanwhile, but its threads wait one after the other. wire.md names the limit. */
#define QUIET_MS 1000
#define LOOK_INTERVAL_NS 200000
/* After a failed attempt. A broker must not make its guests connect to addresses of its choice faster than this. */
#define PAUSE_MS 500
#define REASON_BYTES 512

static struct {
    pthread_mutex_t turn; /* one move at a time: the next LEAVE may come while the thread of the last one still ends */
    hws_config_t config;  /* of the session's broker; under `turn`, as the next three */
    hws_welcome_t session;
    uint64_t description_hash;
    int64_t next_ms; /* no earlier connection */

    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned threads; /* under the lock */
} move = {.turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void hws_move_use(const hws_config_t *config, uint64_t description_hash, const hws_welcome_t *session) {
    pthread_mutex_lock(&move.turn);
    move.config = *config;
    move.session = *session;
    move.description_hash = description_hash;
    pthread_mutex_unlock(&move.turn);
}

static void pause_until(int64_t time_ms) {
    const int64_t left_ms = time_ms - now_ms();
    const struct timespec left = {.tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000};
    if (left_ms > 0) {
        nanosleep(&left, NULL); /* every signal is blocked here */
    }
}

/* Parks a connection at config->brokers[0]. Returns 0, or -1 with a reason. */
static int park(const hws_config_t *config, char *reason, size_t capacity) {
    char error[REASON_BYTES];
    pause_until(move.next_ms);
    hws_carrier_t *carrier = hws_broker_connect(config, error, sizeof error);
    if (carrier != NULL) {
        hws_channel_park(carrier); /* before the handshake, so that the end of the channel ends it */
        if (hws_handshake_resume(carrier, config, move.description_hash, &move.session, error, sizeof error) == 0) {
            return 0;
        }
        hws_channel_unpark();
    }
    move.next_ms = now_ms() + PAUSE_MS;
    snprintf(reason, capacity, "the guest does not reach the broker %.255s:%.7s: %.*s", config->brokers[0].host,
             config->brokers[0].port, 200, error);
    return -1;
}

/* Holds new copies and calls, and waits for those that have begun. Returns 0, or -1 with a reason and without a hold. */
static int become_quiet(char *reason, size_t capacity) {
    const int64_t deadline_ms = now_ms() + QUIET_MS;
    const struct timespec interval = {.tv_nsec = LOOK_INTERVAL_NS};
    const char *busy = NULL;
    /* Before the calls: a long copy is many of them, and each waits for the ones before it. */
    while (busy == NULL && hws_bulk_hold() > 0) {
        busy = now_ms() < deadline_ms && hws_channel_status() == 0 ? NULL : "a long copy is under way";
        nanosleep(&interval, NULL);
    }
    busy = busy != NULL ? busy : hws_channel_hold(deadline_ms);
    if (busy == NULL) {
        return 0;
    }
    hws_bulk_release();
    snprintf(reason, capacity, "the guest is not quiet after %d ms: %s", QUIET_MS, busy);
    return -1;
}

/* Goes to the broker, unless the session must stay. Returns 0; or -1 with a reason, when LEFT has not been sent. */
static int go(const char *address, char *reason, size_t capacity) {
    hws_config_t config = move.config;
    config.broker_count = 1;
    if (hws_address_split_moved(address, &config.brokers[0]) != 0) {
        snprintf(reason, capacity, "the address of LEAVE does not read host:port or [v6 address]:port");
        return -1;
    }
    if (park(&config, reason, capacity) != 0) {
        return -1;
    }
    if (become_quiet(reason, capacity) != 0) {
        hws_channel_unpark();
        return -1;
    }
    const hws_leave_end_t end = hws_channel_leave();
    if (end == HWS_LEAVE_MOVED) {
        move.config = config;
        hws_stripe_move(&config);
        hws_log(HWS_INFO, "session %llu has moved to the broker %s:%s", (unsigned long long) move.session.session_id,
                config.brokers[0].host, config.brokers[0].port);
    } else if (end == HWS_LEAVE_STAYED) {
        hws_log(HWS_DEBUG, "session %llu stays, and does not move to the broker %s:%s",
                (unsigned long long) move.session.session_id, config.brokers[0].host, config.brokers[0].port);
    }
    hws_channel_release();
    hws_bulk_release();
    return 0;
}

static void *move_main(void *argument) {
    char *address = argument, reason[REASON_BYTES];
    pthread_mutex_lock(&move.turn);
    const int rc = go(address, reason, sizeof reason);
    pthread_mutex_unlock(&move.turn);
    if (rc != 0) {
        hws_log(HWS_DEBUG, "the session stays at its broker: %s", reason);
        hws_channel_decline(reason);
    }
    free(address);
    pthread_mutex_lock(&move.lock);
    move.threads--;
    pthread_cond_broadcast(&move.ended);
    pthread_mutex_unlock(&move.lock);
    return NULL;
}

void hws_move_begin(const char *address) {
    pthread_t thread;
    char *copy = strdup(address);
    pthread_mutex_lock(&move.lock);
    const bool starts = copy != NULL && hws_thread_start(&thread, move_main, copy, "hawser-move") == 0;
    move.threads += starts ? 1 : 0;
    pthread_mutex_unlock(&move.lock);
    if (starts) {
        pthread_detach(thread);
    } else {
        free(copy);
        hws_channel_decline("the guest has no memory or thread for the move");
    }
}

void hws_move_join(void) {
    pthread_mutex_lock(&move.lock);
    while (move.threads > 0) {
        pthread_cond_wait(&move.ended, &move.lock);
    }
    pthread_mutex_unlock(&move.lock);
}
