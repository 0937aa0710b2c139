/* The TCP carrier: one connected stream socket. Tests use a Unix stream socket. */
#ifndef HWS_TCP_H
#define HWS_TCP_H

#include "../hws_carrier.h"
#include "hws_dial.h"

#include <stddef.h>

/* Connects as hws_dial() does. Returns the carrier, or NULL with a message in error_p. */
hws_carrier_t *hws_tcp_connect(const hws_dial_t *dial, char *error_p, size_t error_capacity);

/* Takes a connected stream socket. Returns NULL when memory is short; the descriptor then stays the caller's. */
hws_carrier_t *hws_tcp_adopt(int fd);

#endif
