/*
 * Stripes: further connections of a session over TCP or TLS, which share the bytes of long copies (wire.md, "Stripes").
 * One connection moves only as many bytes as one thread at each end can copy between the program and the kernel.
 *
 * The helpers of hws_bulk_run() open the stripes whose chunks share synchronous copies. A thread without a stripe copies
 * by the session's own connection. Other stripes carry the DATA of copies that no call waits for. Threads of their own
 * open and serve them, once such copies have had 16 MiB.
 */
#ifndef HWS_STRIPE_H
#define HWS_STRIPE_H

#include "../hws_config.h"
#include "../hws_handshake.h"

#include <stdint.h>

/*
 * Lets the session's long copies use stripes, unless only one thread may share a copy. Called once, when the session
 * has begun over TCP. The stripes join it at config->brokers[0], until hws_stripe_move().
 */
void hws_stripe_use(const hws_config_t *config, uint64_t description_hash, const hws_welcome_t *session);

/*
 * Ends all stripes. Later copies open new ones at config->brokers[0]. The session has moved there, no copy is under way,
 * and hws_bulk_hold() lets none begin.
 */
void hws_stripe_move(const hws_config_t *config);

/* In a forked child: closes the child's copies of the descriptors and touches no lock. */
void hws_stripe_abandon_in_child(void);

#endif
