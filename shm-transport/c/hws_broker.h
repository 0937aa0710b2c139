/*
 * Finds the broker that serves the token's vGPU: the first of the configured brokers that answers, or the one that it
 * names (wire.md, "Several brokers"). Over TCP, or over TLS.
 */
#ifndef HWS_BROKER_H
#define HWS_BROKER_H

#include "hws_carrier.h"
#include "hws_config.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Runs a handshake on a fresh connection to config->brokers[0]. carrier_p has the connection, and receives the carrier
 * of the session when that is another one. Returns as hws_handshake() does. After a result other than 0 the connection
 * is still the caller's.
 */
typedef int (*hws_broker_shake_t)(hws_carrier_t **carrier_p, const hws_config_t *config, void *state, char *error_p,
                                  size_t error_capacity);

/*
 * Connects and runs `shake`, in the order of config->brokers. The next broker follows when one cannot be reached, closes
 * the connection before the handshake is over, or is silent in the TLS handshake. Any refusal is final. When a broker
 * answers MOVED, the guest connects to the address that it names, with the same trust, and follows no second MOVED.
 *
 * All connections begin within config->connect_timeout_ms, counted from this call; each TLS handshake and each record
 * has its own limit besides. With `patient`, brokers that do not answer yet are tried again (hws_dial_t).
 *
 * Returns the carrier that `shake` has left in carrier_p, and leaves in config->brokers only the broker at its other
 * end. Or returns NULL with a message in error_p that names the broker, or both after MOVED.
 */
hws_carrier_t *hws_broker_open(hws_config_t *config, bool patient, hws_broker_shake_t shake, void *state, char *error_p,
                               size_t error_capacity);

/* Connects once more to the session's broker, config->brokers[0]. Returns the carrier, or NULL with a message. */
hws_carrier_t *hws_broker_connect(const hws_config_t *config, char *error_p, size_t error_capacity);

#endif
