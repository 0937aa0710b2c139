/* Connects to the configured broker over TCP, or over TLS. */
#ifndef HWS_BROKER_H
#define HWS_BROKER_H

#include "hws_carrier.h"
#include "hws_config.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Connects within the configuration's time. With `patient`, it retries a broker that does not answer yet (hws_dial_t).
 * Returns the carrier, or NULL with a message in error_p.
 */
hws_carrier_t *hws_broker_connect(const hws_config_t *config, bool patient, char *error_p, size_t error_capacity);

#endif
