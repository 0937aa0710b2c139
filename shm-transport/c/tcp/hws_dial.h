/* Connects a socket to a broker, and retries brokers that do not answer yet. */
#ifndef HWS_DIAL_H
#define HWS_DIAL_H

#include "../hws_address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hws_dial {
    const hws_address_t *brokers; /* tried in this order */
    unsigned count;               /* 1..HWS_MAX_BROKERS */
    uint32_t timeout_ms;          /* for all together */
    /*
     * Retries until timeout_ms while brokers refuse, are unreachable or have no address: they or a network may still be
     * starting. The pauses grow from 50 ms to a second. After a second it logs one line.
     */
    bool patient;
} hws_dial_t;

/*
 * Connects to the first broker that accepts, within timeout_ms. Each gets an equal share of the time that is left, over
 * all addresses of its name together; a look-up of the name has the resolver's own limit. Returns the socket, with
 * options that lower latency and detect a vanished peer, and in chosen_p the broker's index. Or returns -1 with a message
 * in error_p, which has the last error of each broker.
 */
int hws_dial(const hws_dial_t *dial, unsigned *chosen_p, char *error_p, size_t error_capacity);

#endif
