/* The state of an event in the guest. */
#ifndef HWS_EVENT_H
#define HWS_EVENT_H

#include "hws_driver.h"

/* Whether the event was ever recorded, in a stream or in a capture. */
bool hws_event_is_recorded(CUevent event);

/* Whether its last record was captured; capture_event.c has the place in the graph. */
bool hws_event_is_captured(CUevent event);
void hws_event_set_captured(CUevent event, bool captured);

/* A graph or a call for a whole context records the event from now on, so the guest never knows whether it is reached. */
void hws_event_set_elsewhere(CUevent event);

/* The worker has announced that the record of an event by the request `sequence` is reached. Any thread. */
void hws_event_reached(uint64_t event_id, uint64_t sequence);

/* Requests an event at the worker under this handle. `data` is the caller's. */
typedef CUresult hws_event_maker_t(CUevent event, const void *data);

/* Makes an event and tracks it. `is_shared`: other processes know it and may have recorded it. */
CUresult hws_event_new(CUevent *event_p, hws_event_maker_t *make, const void *data, bool is_shared);

/*
 * Ends a record of the event or a wait for it. If other processes know the event, this returns when the GPU's driver
 * has the call. Otherwise a process that learns of it from this one, for instance over a pipe, could wait for the
 * previous record. Or it could record again before this process waits: each process has its own channel. Costs a round
 * trip for such events, nothing for others.
 */
CUresult hws_event_settle(CUevent event, CUresult result);

#endif
