/*
 * The beginning of a guest's session over RDMA (wire.md, "Mirror"): its offer in the handshake, and the worker's answer.
 */
#ifndef HWS_RDMA_BEGIN_H
#define HWS_RDMA_BEGIN_H

#include "../hws_carrier.h"
#include "../hws_config.h"
#include "../hws_handshake.h"
#include "hws_rdma.h"

/*
 * Makes this process's end as the configuration wants it. Returns the end, and in end_p its description for the worker;
 * or NULL with a message in error_p.
 */
hws_rdma_t *hws_rdma_offer(const hws_config_t *config, uint8_t end_p[HWS_RDMA_END_BYTES], char *error_p,
                           size_t error_capacity);

/*
 * Runs the handshake on the fresh connection in carrier_p and offers the end of hws_rdma_offer(). carrier_p receives the
 * session's carrier: over RDMA, or the connection itself where the worker refuses RDMA and config->carrier leaves the
 * choice. Returns as hws_handshake() does. Takes the end in any case, and the connection when the session goes over
 * RDMA.
 */
int hws_rdma_begin(hws_rdma_t *rdma, const uint8_t end[HWS_RDMA_END_BYTES], hws_carrier_t **carrier_p,
                   const hws_config_t *config, uint64_t description_hash, hws_welcome_t *welcome_p, char *error_p,
                   size_t error_capacity);

#endif
