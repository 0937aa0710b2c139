/*
 * The TLS carrier: TLS 1.3 or 1.2 over one TCP connection, with the machine's OpenSSL. The broker's certificate must
 * come from a trusted authority and name the broker's host name or address.
 */
#ifndef HWS_TLS_H
#define HWS_TLS_H

#include "../hws_address.h"
#include "../hws_carrier.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Does the TLS handshake on a connected socket within timeout_ms. The certificate must be for broker->host. Takes the
 * socket in any case.
 *
 * ca_file: PEM of the authorities to trust; "" for those of the machine.
 * is_closed_p: whether it failed because the broker closed the connection or did not answer: another broker may serve.
 * Returns the carrier, or NULL with a message in error_p.
 */
hws_carrier_t *hws_tls_begin(int fd, const hws_address_t *broker, const char *ca_file, uint32_t timeout_ms,
                             bool *is_closed_p, char *error_p, size_t error_capacity);

#endif
