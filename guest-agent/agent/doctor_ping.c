/* hawser doctor: whether the broker answers over RDMA. Verbs have no echo of their own: a short session makes calls. */
#include "doctor.h"

#include "hws_broker.h"
#include "hws_cuda_opcodes.h"
#include "hws_description.h"
#include "rdma/hws_rdma_begin.h"
#include "rdma/hws_rdma_carrier.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

/* The shortest of so many round trips is the fabric's: the first ones start code at both ends. */
#define ROUNDS 16
/* The most that a session's limit for a link without an acknowledgement may be: the user waits for the report. */
#define RETRY_MS 2000u
#define NEEDS                                                                                                          \
    "both ends need a GID of the same type and the same partition or VLAN, and no firewall may stop UDP port 4791 "    \
    "(RoCE)"

typedef struct ping {
    hws_carrier_t *carrier;
    uint64_t sequence;
    uint32_t limit_ms;
    char error[512];
} ping_t;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Makes a call that changes nothing. Returns the time of its round trip in nanoseconds, or -1. */
static int64_t call(ping_t *self) {
    const uint64_t first_device = 0;
    int64_t began_ns = now_ns();
    int rc = hws_handshake_call(self->carrier, HWS_OPCODE_hwsDeviceInfo, self->sequence++, &first_device,
                                sizeof first_device, self->limit_ms, self->error, sizeof self->error);
    return rc == 0 ? now_ns() - began_ns : -1;
}

/* A call behind a chunk, which fills the fabric's longest packets: the worker sees the call after all of them. */
static bool pass_long_packets(ping_t *self) {
    hws_rdma_send_chunk(hws_rdma_session(), 0, 0, HWS_MIRROR_CHUNK_BYTES); /* a failure is the call's, too */
    return call(self) >= 0;
}

static void exchange(ping_t *self, const hws_config_t *config, const char *end) {
    int64_t shortest_ns = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t time_ns = call(self);
        if (time_ns < 0) {
            FAIL("RDMA: the broker at %s:%s does not answer over %s: %s; " NEEDS, config->brokers[0].host,
                 config->brokers[0].port, end, self->error);
            return;
        }
        shortest_ns = time_ns < shortest_ns ? time_ns : shortest_ns;
    }
    if (pass_long_packets(self)) {
        GOOD("RDMA: the broker at %s:%s answers over %s, in %" PRId64 " us", config->brokers[0].host,
             config->brokers[0].port, end, (shortest_ns + 999) / 1000);
    } else {
        FAIL("RDMA: the broker at %s:%s answers short packets over %s, but not long ones: %s; both ends and the "
             "switches between them need the same MTU",
             config->brokers[0].host, config->brokers[0].port, end, self->error);
    }
}

/* A session that begins over RDMA. */
typedef struct beginning {
    hws_rdma_t *rdma; /* the end of the next offer; NULL when a broker has taken it */
    uint8_t offer[HWS_RDMA_END_BYTES];
    hws_welcome_t welcome;
} beginning_t;

static int begin(hws_carrier_t **carrier_p, const hws_config_t *config, void *state, char *error_p,
                 size_t error_capacity) {
    beginning_t *self = state;
    hws_rdma_t *rdma = self->rdma != NULL ? self->rdma : hws_rdma_offer(config, self->offer, error_p, error_capacity);
    self->rdma = NULL;
    return rdma == NULL ? -1
                        : hws_rdma_begin(rdma, self->offer, carrier_p, config, HWS_DESCRIPTION_HASH, &self->welcome,
                                         error_p, error_capacity);
}

void hws_doctor_ping_rdma(const hws_config_t *config, bool usable) {
    hws_config_t own = *config;
    own.carrier = HWS_CARRIER_RDMA; /* a session that goes on over TCP answers nothing here */
    if (own.rdma.retry_ms == 0 || own.rdma.retry_ms > RETRY_MS) {
        own.rdma.retry_ms = RETRY_MS;
    }
    bool required = config->carrier == HWS_CARRIER_RDMA;
    char end[160];
    ping_t ping = {.limit_ms = config->connect_timeout_ms};
    beginning_t beginning;
    beginning.rdma = hws_rdma_offer(&own, beginning.offer, ping.error, sizeof ping.error);
    if (beginning.rdma == NULL) {
        if (usable) { /* else hws_doctor_check_rdma() has said what is missing */
            OBSTACLE(required, "%s", ping.error);
        }
        return;
    }
    hws_rdma_describe(beginning.rdma, end, sizeof end);
    ping.carrier = hws_broker_open(&own, false, begin, &beginning, ping.error, sizeof ping.error);
    if (beginning.rdma != NULL) {
        hws_rdma_close(beginning.rdma); /* no broker has taken it */
    }
    if (ping.carrier == NULL) {
        OBSTACLE(required, "no session over %s: %s", end, ping.error);
        return;
    }
    ping.sequence = beginning.welcome.next_sequence;
    exchange(&ping, &own, end);
    ping.carrier->ops->shutdown(ping.carrier);
    ping.carrier->ops->close(ping.carrier);
    free(ping.carrier);
}
