/*
 * Single pages that the host and the device use in turn, such as one with a flag, a counter or a result. Finds them,
 * and notices when the program stops. Each function is called with the lock of the mirrors.
 *
 * A turn is the time from one wait for work to the next. A page becomes a member when lone faults have asked for it in
 * HWS_TURNS_TO_JOIN turns, with gaps of at most HWS_TURNS_GAP. From then on it is brought with the waits, without a
 * fault. The members' changes show that the program still uses them. Reads show nothing. So after some waits without a
 * change, a member is not brought. If the program does not ask for it within HWS_TURNS_GAP turns, it leaves. Else it is
 * brought for twice as many waits. So a program that no longer uses a page pays for HWS_TURNS_FIRST waits after a short
 * use, and for HWS_TURNS_LONGEST after a long one.
 */
#ifndef HWS_MIRROR_TURNS_H
#define HWS_MIRROR_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HWS_TURN_PAGES 16u /* members of a process: 64 KiB that travel with a wait */
#define HWS_TURN_CANDIDATES 16u
#define HWS_TURNS_TO_JOIN 3u
#define HWS_TURNS_GAP 4u
#define HWS_TURNS_FIRST 4u /* waits that bring a new member */
#define HWS_TURNS_LONGEST 64u

typedef struct hws_turn_page {
    uint64_t address; /* of a page; 0: unused */
    uint64_t last;    /* turn of the last fault; of a member: turn from which it has not been brought */
    uint32_t count;   /* of a candidate: turns with faults; of a member: waits between two tries without it */
    uint32_t left;    /* of a member: waits until the next try without it; 0: this is one */
} hws_turn_page_t;

/* All zeros: no page. Addresses are those of pages. */
typedef struct hws_turns {
    uint64_t turn; /* the present one; the owner sets it before each call */
    size_t count;  /* of members */
    hws_turn_page_t members[HWS_TURN_PAGES];
    hws_turn_page_t candidates[HWS_TURN_CANDIDATES];
} hws_turns_t;

/* Stores the members that this wait is to bring, by address. Returns their number. Once a turn. */
size_t hws_turns_choose(hws_turns_t *turns, uint64_t addresses[HWS_TURN_PAGES]);

/* Notes a fault. `is_lone`: it continues no pass. Returns whether the page is a member now. */
bool hws_turns_note_fault(hws_turns_t *turns, uint64_t address, bool is_lone);

/* Notes that the program has changed a member that was brought. */
void hws_turns_note_change(hws_turns_t *turns, uint64_t address);

/* Pages from this one on, at most `limit`, before the next member behind it. A fault brings no member with others. */
size_t hws_turns_limit(const hws_turns_t *turns, uint64_t address, size_t limit, uint64_t page_bytes);

/* Forgets the pages in a range. */
void hws_turns_forget(hws_turns_t *turns, uint64_t address, uint64_t bytes);

#endif
