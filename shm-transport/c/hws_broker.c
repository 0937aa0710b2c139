#include "hws_broker.h"

#include "tcp/hws_tcp.h"
#include "tls/hws_tls.h"

hws_carrier_t *hws_broker_connect(const hws_config_t *config, char *error_p, size_t error_capacity) {
    return config->tls
        ? hws_tls_connect(config->host, config->port, config->ca_file, config->connect_timeout_ms, error_p,
                          error_capacity)
        : hws_tcp_connect(config->host, config->port, config->connect_timeout_ms, error_p, error_capacity);
}
