/* Transfers of bytes between the host and devices. Each context has a lane: a stream in which its pages travel. */
#ifndef HWS_MIRROR_LANES_H
#define HWS_MIRROR_LANES_H

#include "mirror_state.h"

typedef struct hws_page_lane hws_page_lane_t;

/* The lane of a context, which becomes current. */
CUresult hws_lane_of(uint32_t context, hws_page_lane_t **lane_p);
CUstream hws_lane_stream(const hws_page_lane_t *lane);

/* Notes that something was sent in the lane, or cleared. */
void hws_lane_note_sent(hws_page_lane_t *lane);

/* Fetches bytes to memory of the library, in a stream of the current context. Without the lock. */
CUresult hws_lanes_fetch_by(CUstream stream, uint64_t address, uint64_t bytes, const hws_staging_t *to);

/* The bytes of a mirror that travel, from one range: as hws_spans_next(). */
bool hws_lanes_next_span(const hws_mirror_t *mirror, size_t *at, uint64_t address, uint64_t bytes, hws_span_t *part_p);

/* Fetches pages. / Sends bytes: they have been read when this returns, and may arrive later. */
CUresult hws_lanes_fetch(const hws_mirror_t *mirror, size_t page, size_t pages, const hws_staging_t *to);
CUresult hws_lanes_send(const hws_mirror_t *mirror, uint64_t address, const uint8_t *from, uint64_t bytes);

/* Waits until everything that was sent has arrived. Mirrors for which that fails are lost. */
void hws_lanes_wait(void);

/* Whether streams of this context can wait for everything that was sent: hws_lanes_settle(). */
bool hws_lanes_can_order(uint32_t context);

/* Lets the work that comes next see what was sent. Without a stream, the bytes have arrived when this returns. */
void hws_lanes_settle(const CUstream *stream);

#endif
