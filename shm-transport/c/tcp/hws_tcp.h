/* The TCP carrier: one connected stream socket (a Unix stream socket serves as well, in tests). */
#ifndef HWS_TCP_H
#define HWS_TCP_H

#include "../hws_carrier.h"
#include "hws_dial.h"

#include <stddef.h>

/* Connects as hws_dial() does. Returns the carrier, or NULL with a sentence in error_p. */
hws_carrier_t *hws_tcp_connect(const hws_dial_t *dial, char *error_p, size_t error_capacity);

/* Takes a connected stream socket; NULL when memory is short, and then the descriptor stays the caller's. */
hws_carrier_t *hws_tcp_adopt(int fd);

#endif
