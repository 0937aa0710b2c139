/* Connects a socket to the broker, and retries a broker that does not answer yet. */
#ifndef HWS_DIAL_H
#define HWS_DIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hws_dial {
    const char *host; /* a name or an address */
    const char *port; /* decimal */
    uint32_t timeout_ms;
    /*
     * Retries until timeout_ms when the broker refuses, is unreachable or has no address: the broker or a network may
     * still be starting. The pauses grow from 50 ms to a second. After a second it logs one line.
     */
    bool patient;
} hws_dial_t;

/*
 * Connects within timeout_ms, over all addresses of the name together; a look-up of the name has the resolver's own
 * limit. Returns the socket, with options that lower latency and detect a vanished peer. Or returns -1 with a message
 * in error_p, which ends with the last error.
 */
int hws_dial(const hws_dial_t *dial, char *error_p, size_t error_capacity);

#endif
