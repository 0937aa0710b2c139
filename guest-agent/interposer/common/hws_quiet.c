#include "hws_quiet.h"

#include "hws_channel.h"

#include <stdatomic.h>

#define CONTEXT_BITS 16

/*
 * A sequence and a context, as far as both fit; 0 for none. A word is valid only while its sequence is the last one
 * sent, so an old word is never used.
 */
static _Atomic uint64_t quiet, fresh;

static uint64_t word(uint64_t sequence) {
    bool fits = hws_tls.context != 0 && hws_tls.context >> CONTEXT_BITS == 0 && sequence >> (64 - CONTEXT_BITS) == 0;
    return fits ? sequence << CONTEXT_BITS | hws_tls.context : 0;
}

static bool is_now(uint64_t kept) {
    return kept != 0 && kept == word(hws_channel_last_sequence());
}

void hws_quiet_note(void) {
    atomic_store_explicit(&quiet, word(hws_tls.sequence), memory_order_release);
}

hws_quiet_t hws_quiet_begin(void) {
    return (hws_quiet_t) {
        .was_quiet = is_now(atomic_load_explicit(&quiet, memory_order_acquire)),
        .sent = hws_tls.sent,
        .sequence = hws_channel_last_sequence(),
    };
}

/* Whether only this thread has sent records since then. Another thread's work may be unfinished. */
static bool is_alone(const hws_quiet_t *began) {
    return began->was_quiet && hws_tls.sequence == began->sequence + (hws_tls.sent - began->sent);
}

void hws_quiet_end(const hws_quiet_t *began) {
    if (is_alone(began)) {
        uint64_t now = word(hws_tls.sequence);
        atomic_store_explicit(&quiet, now, memory_order_release);
        atomic_store_explicit(&fresh, now, memory_order_release);
    }
}

void hws_quiet_keep(const hws_quiet_t *began) {
    if (is_alone(began)) {
        hws_quiet_note();
    }
}

bool hws_quiet_is(void) {
    return is_now(atomic_load_explicit(&quiet, memory_order_acquire));
}

bool hws_quiet_take(void) {
    uint64_t kept = atomic_load_explicit(&fresh, memory_order_acquire);
    return is_now(kept) && atomic_compare_exchange_strong(&fresh, &kept, 0);
}
