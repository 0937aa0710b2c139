/*
 * Follows the session's vGPU to another broker while the program runs (wire.md, "Several brokers"). Its calls wait
 * meanwhile, and notice nothing else. Over TCP and TLS.
 *
 * LEAVE starts a thread, which parks a connection at the other broker, lets the open calls end, and sends LEFT. Then it
 * awaits STAY by the old connection or RESUMED by the new one. Until RESUMED every failure leaves the session where it is.
 */
#ifndef HWS_MOVE_H
#define HWS_MOVE_H

#include "../hws_config.h"
#include "../hws_handshake.h"

#include <stdint.h>

/* Keeps what a move needs: token, trust and limits as of the session. Once, before hws_channel_open(). */
void hws_move_use(const hws_config_t *config, uint64_t description_hash, const hws_welcome_t *session);

/* Follows LEAVE on a thread of its own: the hook `leave` of the channel (hws_channel.h). */
void hws_move_begin(const char *address);

/* Waits for the threads of moves, after hws_channel_close(). For tests, which open another channel. */
void hws_move_join(void);

#endif
