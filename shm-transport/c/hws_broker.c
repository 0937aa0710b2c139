#include "hws_broker.h"

#include "tcp/hws_tcp.h"
#include "tls/hws_tls.h"

hws_carrier_t *hws_broker_connect(const hws_config_t *config, bool patient, char *error_p, size_t error_capacity) {
    const hws_dial_t dial = {config->host, config->port, config->connect_timeout_ms, patient};
    return config->tls ? hws_tls_connect(&dial, config->ca_file, error_p, error_capacity)
                       : hws_tcp_connect(&dial, error_p, error_capacity);
}
