/* A connected socket to the broker, and patience with one that is not there yet. */
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
     * A broker that refuses, cannot be reached or has no address yet is asked again, with pauses of 50 ms that grow to a
     * second, until timeout_ms: it, its network or ours may still be starting. After a second one line says so.
     */
    bool patient;
} hws_dial_t;

/*
 * Connects within timeout_ms, over all addresses of the name together (a look-up of the name has the resolver's own
 * limit besides). Returns the socket, with the options that make latency low and a vanished peer noticed, or -1 with a
 * sentence in error_p, which ends with the last reason.
 */
int hws_dial(const hws_dial_t *dial, char *error_p, size_t error_capacity);

#endif
