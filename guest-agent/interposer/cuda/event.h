/* What is kept about an event. */
#ifndef HWS_EVENT_H
#define HWS_EVENT_H

#include "hws_driver.h"

/* Whether it was ever recorded, in a stream or in a capture. */
bool hws_event_is_recorded(CUevent event);

/* Whether its last record was captured; capture_event.c knows where. */
bool hws_event_is_captured(CUevent event);
void hws_event_set_captured(CUevent event, bool captured);

#endif
