#include "mirror_ahead.h"

#include "hws_channel.h"
#include "hws_log.h"
#include "hws_thread.h"

#include <sched.h>
#include <string.h>

#define AHEAD_THREADS 3

static const hws_ahead_owner_t *owner;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static hws_pass_t *first; /* of the queue */
static int threads = -1;  /* -1: not started yet */

static void append(hws_pass_t *pass) {
    hws_pass_t **end = &first;
    while (*end != NULL) {
        end = &(*end)->following;
    }
    pass->following = NULL;
    pass->is_queued = true;
    *end = pass;
}

/* Takes a piece of the pass that has waited longest. */
static bool take(hws_piece_t *piece_p) {
    while (first != NULL) {
        hws_pass_t *pass = first;
        first = pass->following;
        pass->is_queued = false;
        if (owner->take(pass, piece_p)) {
            append(pass);
            return true;
        }
    }
    return false;
}

static void *ahead_main(void *unused) {
    (void) unused;
    hws_staging_t staging;
    hws_tls.is_background = hws_tls.moves_pages = true;
    if (!owner->allocate(&staging)) {
        return NULL;
    }
    pthread_mutex_lock(owner->lock);
    for (;;) {
        hws_piece_t piece;
        while (!take(&piece)) {
            pthread_cond_wait(&work, owner->lock);
        }
        pthread_mutex_unlock(owner->lock);
        bool came = owner->bring(&piece, &staging);
        pthread_mutex_lock(owner->lock);
        owner->arrive(&piece, came);
    }
    return NULL;
}

/* One processor is left to the program. */
static int wanted_threads(void) {
    cpu_set_t set;
    int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1, wanted = cpus - 1;
    return wanted < 1 ? 1 : wanted > AHEAD_THREADS ? AHEAD_THREADS : wanted;
}

static void start(void) {
    int wanted = wanted_threads();
    for (threads = 0; threads < wanted; threads++) {
        pthread_t thread;
        int rc = hws_thread_start(&thread, ahead_main, NULL, "hawser-ahead");
        if (rc != 0) {
            hws_log(HWS_DEBUG, "a thread that reads managed memory ahead cannot start: %s", strerror(rc));
            return;
        }
    }
}

void hws_ahead_queue(const hws_ahead_owner_t *wanted_owner, hws_pass_t *pass) {
    owner = wanted_owner;
    if (threads < 0) {
        start();
    }
    if (!pass->is_queued) {
        append(pass);
    }
    pthread_cond_broadcast(&work);
}

void hws_ahead_stop(const void *range) {
    for (hws_pass_t **link = &first; *link != NULL;) {
        hws_pass_t *pass = *link;
        if (range == NULL || pass->range == range) {
            *link = pass->following;
            pass->is_queued = false;
        } else {
            link = &pass->following;
        }
    }
}
