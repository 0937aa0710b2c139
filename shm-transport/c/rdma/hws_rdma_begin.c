#include "hws_rdma_begin.h"

#include "../hws_log.h"
#include "hws_rdma_carrier.h"

#include <stdio.h>

hws_rdma_t *hws_rdma_offer(const hws_config_t *config, uint8_t end_p[HWS_RDMA_END_BYTES], char *error_p,
                           size_t error_capacity) {
    hws_rdma_options_t options = config->rdma;
    options.device = config->rdma_device;
    hws_rdma_t *rdma = hws_rdma_open(&options, error_p, error_capacity);
    if (rdma != NULL && hws_rdma_prepare(rdma, end_p, error_p, error_capacity) != 0) {
        hws_rdma_close(rdma);
        return NULL;
    }
    return rdma;
}

int hws_rdma_begin(hws_rdma_t *rdma, const uint8_t end[HWS_RDMA_END_BYTES], hws_carrier_t **carrier_p,
                   const hws_config_t *config, uint64_t description_hash, hws_welcome_t *welcome_p, char *error_p,
                   size_t error_capacity) {
    hws_rdma_answer_t answer;
    hws_carrier_t *carrier = NULL;
    int rc = hws_handshake_with_offer(*carrier_p, config, description_hash, end, welcome_p, &answer, error_p,
                                      error_capacity);
    if (rc != 0) {
        hws_rdma_close(rdma);
        return rc;
    }
    if (!answer.accepted) {
        hws_rdma_close(rdma);
        if (config->carrier == HWS_CARRIER_RDMA) {
            snprintf(error_p, error_capacity, "no RDMA: %s", answer.reason);
            return -1;
        }
        hws_log(HWS_WARN, "no RDMA, so over TCP: %s", answer.reason);
        return 0;
    }
    if (hws_rdma_connect(rdma, answer.end, error_p, error_capacity) == 0) {
        carrier = hws_rdma_adopt(rdma, *carrier_p);
        if (carrier == NULL) {
            snprintf(error_p, error_capacity, "no memory for RDMA");
        }
    }
    if (carrier == NULL) {
        hws_rdma_close(rdma);
        return -1;
    }
    *carrier_p = carrier;
    return 0;
}
