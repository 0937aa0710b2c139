#include "mirror_turns.h"

static hws_turn_page_t *find(hws_turn_page_t *pages, size_t count, uint64_t address) {
    for (size_t i = 0; i < count; i++) {
        if (pages[i].address == address) {
            return &pages[i];
        }
    }
    return NULL;
}

static hws_turn_page_t *member_at(hws_turns_t *turns, uint64_t address) {
    return turns->count == 0 ? NULL : find(turns->members, HWS_TURN_PAGES, address);
}

static void leave(hws_turns_t *turns, hws_turn_page_t *member) {
    member->address = 0;
    turns->count--;
}

static void insert(uint64_t *addresses, size_t count, uint64_t address) {
    while (count > 0 && addresses[count - 1] > address) {
        addresses[count] = addresses[count - 1];
        count--;
    }
    addresses[count] = address;
}

size_t hws_turns_choose(hws_turns_t *turns, uint64_t addresses[HWS_TURN_PAGES]) {
    size_t chosen = 0;
    for (size_t i = 0; i < HWS_TURN_PAGES; i++) {
        hws_turn_page_t *member = &turns->members[i];
        if (member->address == 0) {
            continue;
        }
        if (member->left == 0) {
            if (turns->turn - member->last > HWS_TURNS_GAP) {
                leave(turns, member);
            }
        } else if (--member->left == 0) {
            member->last = turns->turn;
        } else {
            insert(addresses, chosen++, member->address);
        }
    }
    return chosen;
}

static bool join(hws_turns_t *turns, hws_turn_page_t *candidate) {
    hws_turn_page_t *member = find(turns->members, HWS_TURN_PAGES, 0);
    if (member == NULL) {
        return false;
    }
    *member = (hws_turn_page_t) {
        .address = candidate->address, .last = turns->turn, .count = HWS_TURNS_FIRST, .left = HWS_TURNS_FIRST + 1};
    candidate->address = 0;
    turns->count++;
    return true;
}

static hws_turn_page_t *candidate_at(hws_turns_t *turns, uint64_t address) {
    hws_turn_page_t *found = find(turns->candidates, HWS_TURN_CANDIDATES, address), *oldest = turns->candidates;
    for (size_t i = 0; i < HWS_TURN_CANDIDATES && found == NULL; i++) {
        oldest = turns->candidates[i].last < oldest->last ? &turns->candidates[i] : oldest;
    }
    if (found == NULL) {
        *oldest = (hws_turn_page_t) {.address = address};
    }
    return found == NULL ? oldest : found;
}

bool hws_turns_note_fault(hws_turns_t *turns, uint64_t address, bool is_lone) {
    hws_turn_page_t *member = member_at(turns, address);
    if (member != NULL) {
        if (member->left == 0) {
            member->count = 2 * member->count < HWS_TURNS_LONGEST ? 2 * member->count : HWS_TURNS_LONGEST;
            member->left = member->count + 1;
        }
        return true;
    }
    if (!is_lone) {
        return false;
    }
    hws_turn_page_t *candidate = candidate_at(turns, address);
    if (candidate->count == 0 || turns->turn - candidate->last > HWS_TURNS_GAP) {
        candidate->count = 1;
    } else if (candidate->last != turns->turn) {
        candidate->count++;
    }
    candidate->last = turns->turn;
    return candidate->count >= HWS_TURNS_TO_JOIN && join(turns, candidate);
}

void hws_turns_note_change(hws_turns_t *turns, uint64_t address) {
    hws_turn_page_t *member = member_at(turns, address);
    if (member != NULL && member->left != 0) {
        member->left = member->count + 1;
    }
}

size_t hws_turns_limit(const hws_turns_t *turns, uint64_t address, size_t limit, uint64_t page_bytes) {
    for (size_t i = 0; i < HWS_TURN_PAGES && turns->count != 0; i++) {
        uint64_t member = turns->members[i].address;
        if (member > address && (member - address) / page_bytes < limit) {
            limit = (size_t) ((member - address) / page_bytes);
        }
    }
    return limit;
}

void hws_turns_forget(hws_turns_t *turns, uint64_t address, uint64_t bytes) {
    for (size_t i = 0; i < HWS_TURN_PAGES; i++) {
        hws_turn_page_t *member = &turns->members[i];
        if (member->address != 0 && member->address - address < bytes) {
            leave(turns, member);
        }
    }
    for (size_t i = 0; i < HWS_TURN_CANDIDATES; i++) {
        hws_turn_page_t *candidate = &turns->candidates[i];
        candidate->address = candidate->address - address < bytes ? 0 : candidate->address;
    }
}
