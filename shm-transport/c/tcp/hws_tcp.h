/* The TCP carrier: one connected stream socket (a Unix stream socket serves as well, in tests). */
#ifndef HWS_TCP_H
#define HWS_TCP_H

#include "../hws_carrier.h"

#include <stddef.h>

/*
 * Connects to host:port within timeout_ms, over all addresses of the name together (the look-up of a name has the
 * resolver's own limit). Returns the carrier, or NULL with a sentence in error_p.
 */
hws_carrier_t *hws_tcp_connect(const char *host, const char *port, uint32_t timeout_ms, char *error_p,
                               size_t error_capacity);

/*
 * The same without a carrier: returns the connected socket, with the options that make latency low and a vanished peer
 * noticed, or -1 with a sentence in error_p.
 */
int hws_tcp_open(const char *host, const char *port, uint32_t timeout_ms, char *error_p, size_t error_capacity);

/* Takes a connected stream socket; NULL when memory is short, and then the descriptor stays the caller's. */
hws_carrier_t *hws_tcp_adopt(int fd);

#endif
