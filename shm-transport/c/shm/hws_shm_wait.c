/* Sleeping until the worker has acted, waking it, and detecting the end of the session. */
#include "hws_shm_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define SECOND_NS 1000000000ll
#define MS_NS 1000000ll
/*
 * A sleeping thread checks this often whether the session still exists. Only the detection of a lost session depends on
 * it.
 */
#define LOOK_NS (50 * MS_NS)
/*
 * Nothing wakes a virtual machine. It looks again after an eighth of the time that it has waited, within these limits.
 */
#define FIRST_NAP_NS 20000ll
#define LAST_NAP_NS MS_NS
#define SHORT_NAP_NS 200000ll
#define NAP_SHARE 8
/* The broker increments its beat each half second. After this time of watching without a change it counts as dead. */
#define GONE_MS 5000ll

int64_t hws_shm_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * SECOND_NS + now.tv_nsec;
}

void hws_shm_set_fault(hws_shm_t *shm, const char *format, ...) {
    pthread_mutex_lock(&shm->lock);
    if (!shm->faulted) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(shm->fault, sizeof shm->fault, format, arguments);
        va_end(arguments);
        shm->faulted = true;
    }
    pthread_mutex_unlock(&shm->lock);
}

bool hws_shm_is_still(const hws_shm_t *shm, hws_shm_look_t *look, int64_t still_ms) {
    uint64_t beat = __atomic_load_n(&shm->live->host_beat, __ATOMIC_RELAXED);
    int64_t now_ns = hws_shm_now_ns();
    if (look->since_ns == 0 || beat != look->beat) {
        *look = (hws_shm_look_t) {beat, now_ns};
    }
    return now_ns - look->since_ns > still_ms * MS_NS;
}

/* Copies the host's message for its state before printing it, because the host may change it meanwhile. */
static void set_fault_of_host(hws_shm_t *shm, const char *what) {
    char reason[sizeof shm->host->reason];
    const volatile char *from = shm->host->reason;
    for (size_t i = 0; i < sizeof reason; i++) {
        reason[i] = from[i];
    }
    hws_shm_set_fault(shm, "%s: %.*s", what, (int) strnlen(reason, sizeof reason), reason);
}

bool hws_shm_is_lost(hws_shm_t *shm, hws_shm_look_t *look) {
    if (__atomic_load_n(&shm->live->magic, __ATOMIC_ACQUIRE) != HWS_REGION_MAGIC
        || __atomic_load_n(&shm->live->epoch, __ATOMIC_RELAXED) != shm->header.epoch) {
        hws_shm_set_fault(shm, "the broker has formatted the region again: %s", shm->path);
        return true;
    }
    uint32_t state = __atomic_load_n(&shm->host->state, __ATOMIC_ACQUIRE);
    uint64_t id = __atomic_load_n(&shm->host->session_id, __ATOMIC_RELAXED), ours = atomic_load(&shm->session_id);
    if (ours != 0 ? state == HWS_HOST_SERVING && id != ours
                  : state != HWS_HOST_STARTING && state != HWS_HOST_SERVING && state != HWS_HOST_REFUSED
                && state != HWS_HOST_ENDED) {
        hws_shm_set_fault(shm, "the slot has been given to another session: %s, slot %u", shm->path, shm->view.slot);
        return true;
    }
    if (state == HWS_HOST_REFUSED) {
        set_fault_of_host(shm, "the broker refused the session");
        return true;
    }
    if (state == HWS_HOST_ENDED) {
        set_fault_of_host(shm, "the session was ended");
        return true;
    }
    if (ours != 0 && state != HWS_HOST_SERVING) {
        hws_shm_set_fault(shm, "the broker has taken the slot away: %s, slot %u", shm->path, shm->view.slot);
        return true;
    }
    if (hws_shm_is_still(shm, look, GONE_MS)) {
        hws_shm_set_fault(shm, "the region's broker has shown no sign of life for %lld s: %s", GONE_MS / 1000,
                          shm->path);
        return true;
    }
    return false;
}

static void nap(int64_t waited_ns) {
    int64_t ns = waited_ns / NAP_SHARE;
    ns = ns < FIRST_NAP_NS ? FIRST_NAP_NS : ns > LAST_NAP_NS ? LAST_NAP_NS : ns;
    struct timespec time = {.tv_nsec = ns};
    /* The kernel stretches short sleeps by 50 us. The thread belongs to the program, so its own setting is restored. */
    int slack_ns = ns < SHORT_NAP_NS ? prctl(PR_GET_TIMERSLACK) : -1;
    if (slack_ns > 0) {
        prctl(PR_SET_TIMERSLACK, 1000ul);
    }
    nanosleep(&time, NULL); /* a signal only makes the thread look earlier */
    if (slack_ns > 0) {
        prctl(PR_SET_TIMERSLACK, (unsigned long) slack_ns);
    }
}

static int wait_asleep(hws_shm_t *shm, const hws_shm_wish_t *wish) {
    int64_t began_ns = hws_shm_now_ns();
    hws_shm_look_t look = {0};
    while (!wish->is_granted(shm, wish->argument)) {
        int64_t waited_ns = hws_shm_now_ns() - began_ns;
        uint32_t timeout_ms = wish->bounded ? atomic_load_explicit(&shm->timeout_ms, memory_order_relaxed) : 0;
        if (atomic_load(&shm->closed)) {
            errno = ESHUTDOWN;
            return -1;
        }
        if (hws_shm_is_lost(shm, &look)) {
            /* Replies that the worker wrote before it ended come first. */
            errno = ECONNRESET;
            return wish->is_granted(shm, wish->argument) ? 0 : -1;
        }
        if (timeout_ms != 0 && waited_ns > timeout_ms * MS_NS) {
            errno = EAGAIN;
            return -1;
        }
        if (shm->view.kind == HWS_KIND_MACHINE) {
            nap(waited_ns);
            continue;
        }
        uint32_t seen = hws_wait_prepare(wish->waiting, &shm->host->reply_signal);
        if (!wish->is_granted(shm, wish->argument)) {
            int64_t left_ns = timeout_ms == 0 ? LOOK_NS : timeout_ms * MS_NS - waited_ns;
            hws_wait_sleep(&shm->host->reply_signal, seen, (uint64_t) (left_ns < LOOK_NS ? left_ns + MS_NS : LOOK_NS));
        }
    }
    return 0;
}

int hws_shm_wait(hws_shm_t *shm, const hws_shm_wish_t *wish) {
    hws_spin_begin(wish->spin);
    do {
        if (wish->is_granted(shm, wish->argument)) {
            hws_spin_end(wish->spin, false);
            return 0;
        }
    } while (hws_spin_once(wish->spin));
    hws_spin_end(wish->spin, true);
    if (wish->patient) {
        hws_patient_t wait;
        bool granted = false;
        hws_patient_begin(&wait, &shm->patience);
        while (!granted && hws_patient_once(&wait)) {
            granted = wish->is_granted(shm, wish->argument);
        }
        hws_patient_end(&wait, granted);
        if (granted) {
            return 0;
        }
    }
    return wait_asleep(shm, wish);
}

static void ring(hws_shm_t *shm, uint32_t vector) {
    if (shm->doorbell != NULL && vector < shm->header.doorbell_vectors) {
        *shm->doorbell = vector; /* peer 0, the broker's server, in the upper half */
    }
}

void hws_shm_ring_broker(hws_shm_t *shm) {
    if (shm->view.kind == HWS_KIND_PROCESS) {
        hws_wait_signal(&shm->live->slot_signal); /* seldom; no word shows whether the broker sleeps */
    } else {
        ring(shm, 0);
    }
}

void hws_shm_wake_worker(hws_shm_t *shm, uint32_t *waiting) {
    if (shm->view.kind == HWS_KIND_MACHINE && shm->doorbell == NULL) {
        return; /* the worker polls */
    }
    if (!hws_waiting_take(waiting)) {
        return;
    }
    if (shm->view.kind == HWS_KIND_PROCESS) {
        hws_wait_signal(&shm->guest->command_signal);
    } else {
        ring(shm, 1 + shm->view.slot);
    }
}
