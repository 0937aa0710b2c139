#include "hws_broker.h"

#include "hws_handshake.h"
#include "hws_log.h"
#include "tcp/hws_dial.h"
#include "tcp/hws_tcp.h"
#include "tls/hws_tls.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REASON_BYTES 512
/* A reason with the longest address after it. */
#define MESSAGE_BYTES 1024

/* The values that all attempts of a search share. */
typedef struct search {
    hws_broker_shake_t shake;
    void *state;
    bool patient;
    int64_t deadline_ms;
} search_t;

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * Connects to the first of the dial's brokers that accepts. Returns the carrier, or NULL with a message. *is_closed_p:
 * whether a broker after the chosen one may serve.
 */
static hws_carrier_t *connect_to(const hws_config_t *config, const hws_dial_t *dial, unsigned *chosen_p,
                                 bool *is_closed_p, char *error, size_t capacity) {
    *is_closed_p = false;
    int fd = hws_dial(dial, chosen_p, error, capacity);
    if (fd < 0) {
        return NULL;
    }
    if (config->tls) {
        /* A broker that is silent from here on leaves the brokers after it their share. */
        const uint32_t share_ms = dial->timeout_ms / (dial->count - *chosen_p);
        return hws_tls_begin(fd, &dial->brokers[*chosen_p], config->ca_file, share_ms, is_closed_p, error, capacity);
    }
    hws_carrier_t *carrier = hws_tcp_adopt(fd);
    if (carrier == NULL) {
        snprintf(error, capacity, "no memory for the connection");
        close(fd);
    }
    return carrier;
}

hws_carrier_t *hws_broker_connect(const hws_config_t *config, char *error_p, size_t error_capacity) {
    const hws_dial_t dial = {.brokers = config->brokers, .count = 1, .timeout_ms = config->connect_timeout_ms};
    unsigned chosen;
    bool is_closed;
    return connect_to(config, &dial, &chosen, &is_closed, error_p, error_capacity);
}

/* Removes so many brokers from the head of the list. */
static void drop(hws_config_t *config, unsigned count) {
    config->broker_count -= count;
    memmove(config->brokers, config->brokers + count, config->broker_count * sizeof config->brokers[0]);
}

/*
 * Connects to the first broker that accepts, which becomes the head of the list, and runs the handshake. Returns as the
 * handshake does; its messages name the broker.
 */
static int attempt(hws_config_t *config, const search_t *search, hws_carrier_t **carrier_p, char *error,
                   size_t capacity) {
    const int64_t left_ms = search->deadline_ms - now_ms();
    const hws_dial_t dial = {.brokers = config->brokers,
                             .count = config->broker_count,
                             .timeout_ms = left_ms > 0 ? (uint32_t) left_ms : 0,
                             .patient = search->patient};
    unsigned chosen = 0;
    bool is_closed;
    hws_carrier_t *connection = connect_to(config, &dial, &chosen, &is_closed, error, capacity);
    drop(config, chosen);
    if (connection == NULL) {
        return is_closed ? HWS_HANDSHAKE_CLOSED : -1;
    }
    char reason[REASON_BYTES];
    *carrier_p = connection;
    int rc = search->shake(carrier_p, config, search->state, reason, sizeof reason);
    if (rc == 0) {
        return 0;
    }
    connection->ops->destroy(connection);
    if (rc == HWS_HANDSHAKE_MOVED) {
        snprintf(error, capacity, "%s", reason);
    } else {
        snprintf(error, capacity, "%s (broker %.255s:%.7s)", reason, config->brokers[0].host, config->brokers[0].port);
    }
    return rc;
}

/* Follows the head of the list to the address that it has named. Returns 0, or -1 with a message. */
static int follow(hws_config_t *config, const search_t *search, const char *address, hws_carrier_t **carrier_p,
                  char *error, size_t capacity) {
    const hws_address_t from = config->brokers[0];
    char reason[MESSAGE_BYTES];
    if (hws_address_split_moved(address, &config->brokers[0]) != 0) {
        /* The bytes are the broker's choice, and stay out of the message. */
        snprintf(error, capacity,
                 "the broker %s:%s sends the guest to another broker whose address does not read host:port or [v6 "
                 "address]:port",
                 from.host, from.port);
        return -1;
    }
    const hws_address_t to = config->brokers[0];
    config->broker_count = 1;
    hws_log(HWS_DEBUG, "the broker %s:%s sends the guest to %s:%s", from.host, from.port, to.host, to.port);
    int rc = attempt(config, search, carrier_p, reason, sizeof reason);
    if (rc == HWS_HANDSHAKE_MOVED) {
        snprintf(error, capacity,
                 "the broker %s:%s sends the guest to the broker %s:%s, which sends it on: they disagree about the "
                 "vGPU's broker",
                 from.host, from.port, to.host, to.port);
    } else if (rc != 0) {
        snprintf(error, capacity, "%s; the broker %s:%s has sent the guest there", reason, from.host, from.port);
    }
    return rc == 0 ? 0 : -1;
}

hws_carrier_t *hws_broker_open(hws_config_t *config, bool patient, hws_broker_shake_t shake, void *state, char *error_p,
                               size_t error_capacity) {
    const search_t search = {shake, state, patient, now_ms() + config->connect_timeout_ms};
    hws_carrier_t *carrier = NULL;
    char reason[MESSAGE_BYTES];
    int rc;
    while ((rc = attempt(config, &search, &carrier, reason, sizeof reason)) == HWS_HANDSHAKE_CLOSED
           && config->broker_count > 1) {
        hws_log(HWS_INFO, "%s; trying the next broker", reason);
        drop(config, 1);
    }
    if (rc == HWS_HANDSHAKE_MOVED) {
        rc = follow(config, &search, reason, &carrier, error_p, error_capacity);
    } else if (rc != 0) {
        snprintf(error_p, error_capacity, "%s", reason);
    }
    if (rc != 0) {
        return NULL;
    }
    config->broker_count = 1;
    return carrier;
}
