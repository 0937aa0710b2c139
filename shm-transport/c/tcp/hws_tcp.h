/* The TCP carrier: one connected stream socket. Tests use a Unix stream socket. */
#ifndef HWS_TCP_H
#define HWS_TCP_H

#include "../hws_carrier.h"

/* Takes a connected stream socket. Returns NULL when memory is short; the descriptor then stays the caller's. */
hws_carrier_t *hws_tcp_adopt(int fd);

#endif
