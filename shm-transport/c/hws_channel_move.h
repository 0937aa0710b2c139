/*
 * The channel's part of a move of the session to another broker (wire.md, "Several brokers"). Only tcp/hws_move.c calls
 * these functions, one thread at a time, in the order in which they stand here.
 */
#ifndef HWS_CHANNEL_MOVE_H
#define HWS_CHANNEL_MOVE_H

#include "hws_carrier.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Announces the connection to the other broker, so that the channel's end shuts it down as well. Once, before
 * hws_channel_hold(). The carrier becomes the channel's.
 */
void hws_channel_park(hws_carrier_t *next);

/* Shuts down the connection of hws_channel_park() and frees it. Does nothing when there is none any more. */
void hws_channel_unpark(void);

/*
 * Holds all further calls, and waits for the end of those that have begun, at most until deadline_ms of CLOCK_MONOTONIC.
 * Returns NULL, and then this thread is the reader and only hws_channel_leave() and hws_channel_release() may follow. Or
 * returns what has not ended, for people, and holds nothing.
 */
const char *hws_channel_hold(int64_t deadline_ms);

typedef enum hws_leave_end {
    HWS_LEAVE_STAYED, /* the session goes on where it was */
    HWS_LEAVE_MOVED,  /* the session goes on over the connection of hws_channel_park() */
    HWS_LEAVE_FAILED  /* the channel has failed */
} hws_leave_end_t;

/*
 * Sends LEFT as the last record, and waits for STAY or RESUMED. After hws_channel_hold() has returned NULL. Meanwhile
 * records of the old connection are delivered, and its end alone is no failure. After HWS_LEAVE_MOVED the channel
 * has the new connection, and the old one is gone.
 */
hws_leave_end_t hws_channel_leave(void);

/*
 * Forgets the stripes that carry DATA, whose threads have ended. Returns whether no thread of the channel can use their
 * carriers any more, so that they may be freed.
 */
bool hws_channel_forget_stripes(void);

/* Lets calls go on, and gives the role of the reader back. */
void hws_channel_release(void);

/*
 * Answers LEAVE when the session does not move: sends LEFT with the reason, which is cut. The worker may send LEAVE again
 * at once, so this is the last step of the attempt.
 */
void hws_channel_decline(const char *reason);

#endif
