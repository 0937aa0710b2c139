/* What is kept about an event. */
#ifndef HWS_EVENT_H
#define HWS_EVENT_H

#include "hws_driver.h"

/* Whether it was ever recorded, in a stream or in a capture. */
bool hws_event_is_recorded(CUevent event);

/* Whether its last record was captured; capture_event.c knows where. */
bool hws_event_is_captured(CUevent event);
void hws_event_set_captured(CUevent event, bool captured);

/* Asks the worker for an event by its handle; `data` is the caller's. */
typedef CUresult hws_event_maker_t(CUevent event, const void *data);

/* A new event, kept track of here. `is_shared`: with other processes, by which it may have been recorded, too. */
CUresult hws_event_new(CUevent *event_p, hws_event_maker_t *make, const void *data, bool is_shared);

/*
 * Ends a record of the event or a wait for it: for one that other processes know, when the GPU's driver has the call.
 * A process that hears of it from this one, over a pipe, say, could else wait for the record before, or record anew
 * before this one waits: their calls travel by a channel of their own. Costs a round trip, nothing for other events.
 */
CUresult hws_event_settle(CUevent event, CUresult result);

#endif
