#include "mirror_pass.h"

#define HABIT_RISE 2u
#define HABIT_FALL 4u
#define HABIT_MOST 8u
#define HABIT_FROM 4u

static size_t least(size_t one, size_t other) {
    return one < other ? one : other;
}

static bool continues(const hws_pass_t *pass, size_t page) {
    return pass->pages != 0 && (page == pass->next || page == pass->tripwire);
}

hws_pass_t *hws_pass_find(hws_pass_t *passes, size_t page) {
    hws_pass_t *oldest = passes;
    for (size_t i = 0; i < HWS_PASSES; i++) {
        if (continues(&passes[i], page)) {
            return &passes[i];
        }
        oldest = passes[i].used < oldest->used ? &passes[i] : oldest;
    }
    return oldest;
}

bool hws_pass_step(hws_pass_t *pass, size_t page) {
    static uint64_t steps;
    bool goes_on = continues(pass, page);
    if (goes_on) {
        pass->pages = least(2 * pass->pages, HWS_PASS_PAGES);
        pass->write_until = pass->probe == HWS_PASS_NO_PAGE ? pass->write_until : 0;
    } else {
        pass->pages = HWS_PASS_FIRST_PAGES;
        pass->next = pass->until = page;
        pass->tripwire = HWS_PASS_NO_PAGE;
        pass->write_until = 0;
    }
    pass->probe = page;
    pass->used = ++steps;
    return goes_on;
}

void hws_pass_advance(hws_pass_t *pass, size_t page, size_t pages, size_t end) {
    size_t middle = page + pass->pages / 2;
    pass->next = pass->next < page + pages ? page + pages : pass->next;
    pass->until = least(page + pass->pages, end);
    pass->tripwire = middle < pass->next ? pass->next : middle;
    if (pass->pages < HWS_PASS_WIRE_PAGES || pass->tripwire >= pass->until || pass->until == end) {
        pass->tripwire = HWS_PASS_NO_PAGE;
    }
}

static bool is_lone(const hws_pass_t *pass) {
    return pass->pages == HWS_PASS_FIRST_PAGES;
}

bool hws_pass_note_write(hws_pass_t *passes, size_t first, size_t end) {
    bool was_lone = false;
    for (size_t i = 0; i < HWS_PASSES; i++) {
        hws_pass_t *pass = &passes[i];
        if (pass->pages != 0 && pass->probe >= first && pass->probe < end) {
            pass->write_until = pass->probe + least(4 * pass->pages, 2 * HWS_PASS_PAGES);
            pass->probe = HWS_PASS_NO_PAGE;
            was_lone |= is_lone(pass);
        }
    }
    return was_lone;
}

void hws_habit_note_write(hws_habit_t *habit) {
    habit->writes = (uint8_t) least(habit->writes + HABIT_RISE, HABIT_MOST);
}

bool hws_habit_expects_write(hws_habit_t *habit, const hws_pass_t *forgotten) {
    if (is_lone(forgotten) && forgotten->probe != HWS_PASS_NO_PAGE) { /* a lone read that no write has followed */
        habit->writes = habit->writes < HABIT_FALL ? 0 : (uint8_t) (habit->writes - HABIT_FALL);
    }
    habit->reads = (habit->reads + 1) % HWS_HABIT_TURN;
    return habit->writes >= HABIT_FROM && habit->reads != 0;
}

size_t hws_pass_ahead(hws_pass_t *pass, size_t limit, bool *is_write_p) {
    pass->next += pass->next == pass->tripwire;
    if (pass->next >= pass->until) {
        return 0;
    }
    size_t end = pass->next < pass->tripwire ? least(pass->until, pass->tripwire) : pass->until;
    *is_write_p = pass->next < pass->write_until;
    return least(least(end, *is_write_p ? pass->write_until : end) - pass->next, limit);
}
