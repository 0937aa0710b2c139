/*
 * The carrier rdma: a session through an end of RDMA. The session begins on a connection over TCP or TLS, on which the
 * ends are exchanged. Its end ends the session.
 *
 * A process has at most one. A forked child has neither the memory nor the descriptors.
 */
#ifndef HWS_RDMA_CARRIER_H
#define HWS_RDMA_CARRIER_H

#include "../hws_carrier.h"
#include "hws_rdma.h"

/*
 * Makes the carrier of a session that the worker has accepted, and takes both the end, which is connected, and the
 * session's connection. Copies go through the mirror's chunks from now on. Returns NULL when memory is short; both then
 * stay the caller's. Once in a process.
 */
hws_carrier_t *hws_rdma_adopt(hws_rdma_t *rdma, hws_carrier_t *connection);

/* The end of this process's session; NULL over another carrier, in a forked child, and when the session is over. */
hws_rdma_t *hws_rdma_session(void);

#endif
