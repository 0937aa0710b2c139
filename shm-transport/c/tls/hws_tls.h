/*
 * The TLS carrier: TLS 1.3 or 1.2 over one TCP connection, with the machine's OpenSSL. The broker's certificate must
 * come from a trusted authority and name the broker's host name or address.
 */
#ifndef HWS_TLS_H
#define HWS_TLS_H

#include "../hws_carrier.h"
#include "../tcp/hws_dial.h"

#include <stddef.h>

/*
 * Connects as hws_dial() does, then does the TLS handshake within another dial->timeout_ms.
 *
 * ca_file: PEM of the authorities to trust; "" for those of the machine.
 * Returns the carrier, or NULL with a message in error_p.
 */
hws_carrier_t *hws_tls_connect(const hws_dial_t *dial, const char *ca_file, char *error_p, size_t error_capacity);

#endif
