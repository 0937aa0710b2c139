/* Passes through a range of pages: which pages they ask for. The program is a loop that faults at absent pages. */
#include "mirror_pass.h"

#include "hws_test.h"

#include <stdlib.h>
#include <string.h>

#define PAGES 100000u
#define SHARE 64u /* of a pass, that the fault itself gets */
#define PIECE 256u

enum { ABSENT, READABLE, WRITABLE };

/* A range, and what its faults have cost. */
static struct {
    hws_pass_t passes[HWS_PASSES];
    uint8_t pages[PAGES];
    hws_habit_t habit;
    size_t faults, write_faults, brought;
} range;

static size_t least(size_t one, size_t other) {
    return one < other ? one : other;
}

static void begin(void) {
    memset(&range, 0, sizeof range);
}

/* Brings what all passes want, as threads would that are faster than the program. */
static void bring_all(void) {
    for (size_t i = 0; i < HWS_PASSES; i++) {
        hws_pass_t *pass = &range.passes[i];
        bool is_write;
        size_t count;
        while ((count = hws_pass_ahead(pass, PIECE, &is_write)) != 0) {
            HWS_CHECK(count <= PIECE && pass->next + count <= PAGES);
            for (size_t page = pass->next; page < pass->next + count; page++) {
                range.brought += range.pages[page] == ABSENT;
                range.pages[page] = range.pages[page] != ABSENT ? range.pages[page] : is_write ? WRITABLE : READABLE;
            }
            pass->next += count;
        }
    }
}

static void fault(size_t page, bool is_write) {
    hws_pass_t *pass = hws_pass_find(range.passes, page), before = *pass;
    bool is_lone = !hws_pass_step(pass, page);
    is_write = is_write || (is_lone && hws_habit_expects_write(&range.habit, &before));
    size_t count = 0, limit = least(least(pass->pages, SHARE), PAGES - page);
    while (count < limit && range.pages[page + count] == ABSENT) {
        range.pages[page + count++] = is_write ? WRITABLE : READABLE;
    }
    hws_pass_advance(pass, page, count, PAGES);
    if (is_write) {
        hws_pass_note_write(range.passes, page, page + 1);
    }
    range.faults++;
    range.brought += count;
}

static void use(size_t page, bool is_write) {
    if (range.pages[page] == ABSENT) {
        fault(page, is_write);
    } else if (range.pages[page] == READABLE && is_write) {
        if (hws_pass_note_write(range.passes, page, page + 1)) {
            hws_habit_note_write(&range.habit);
        }
        range.pages[page] = WRITABLE;
        range.write_faults++;
    }
    bring_all();
}

static void pass_through(size_t first, size_t last, bool reads, bool writes) {
    for (size_t page = first; page < last; page++) {
        if (reads) {
            use(page, false);
        }
        if (writes) {
            use(page, true);
        }
    }
}

static size_t count_of(size_t first, size_t last, uint8_t state) {
    size_t count = 0;
    for (size_t page = first; page < last; page++) {
        count += range.pages[page] == state;
    }
    return count;
}

static void shouldBringFewPagesForALoneFault(void) {
    begin();
    for (size_t page = 7; page < PAGES; page += 1000) {
        use(page, false);
    }
    HWS_CHECK(range.brought == range.faults * HWS_PASS_FIRST_PAGES);
}

static void shouldFaultSeldomInALongPass(void) {
    begin();
    pass_through(0, PAGES, true, false);
    HWS_CHECK(count_of(0, PAGES, READABLE) == PAGES);
    HWS_CHECK(range.faults < 12 + 2 * PAGES / HWS_PASS_PAGES);
}

static void shouldHavePagesInFrontWhenATripwireFaults(void) {
    begin();
    size_t in_front = 0;
    for (size_t page = 0; page < PAGES / 2; page++) {
        bool is_absent = range.pages[page] == ABSENT;
        if (is_absent && page > HWS_PASS_PAGES * 4) {
            in_front = count_of(page, page + HWS_PASS_PAGES, READABLE);
            HWS_CHECK(in_front >= HWS_PASS_PAGES / 2 - 1);
        }
        use(page, false);
    }
    HWS_CHECK(in_front != 0);
}

static void shouldNotBringMoreThanAPassAhead(void) {
    begin();
    for (size_t page = 0; page < PAGES / 2; page++) {
        use(page, false);
        HWS_CHECK(range.brought <= page + HWS_PASS_PAGES + 1);
    }
}

static void shouldEndWithTheRange(void) {
    begin();
    pass_through(PAGES - 3000, PAGES, true, false);
    HWS_CHECK(range.pages[PAGES - 1] == READABLE && range.brought == 3000);
}

static void shouldBringWritablePagesToAPassOfUpdates(void) {
    begin();
    pass_through(0, PAGES, true, true);
    HWS_CHECK(count_of(0, PAGES, WRITABLE) == PAGES);
    HWS_CHECK(range.write_faults < 1000 + range.faults);
}

static void shouldStopToBringWritablePagesWhenThePassOnlyReads(void) {
    begin();
    pass_through(0, PAGES / 2, true, true);
    pass_through(PAGES / 2, PAGES, true, false);
    HWS_CHECK(count_of(PAGES / 2 + 3 * HWS_PASS_PAGES / 2 + 1, PAGES, WRITABLE) == 0);
}

static void shouldBringNoWritablePageToAPassOfReads(void) {
    begin();
    pass_through(0, PAGES, true, false);
    HWS_CHECK(count_of(0, PAGES, WRITABLE) == 0);
}

static void shouldBringOnlyWritablePagesToAPassOfWrites(void) {
    begin();
    pass_through(0, PAGES, false, true);
    HWS_CHECK(count_of(0, PAGES, WRITABLE) == PAGES && range.write_faults <= range.faults * SHARE);
}

static void shouldKeepPassesOfSeveralThreadsApart(void) {
    begin();
    for (size_t page = 0; page < PAGES / HWS_PASSES; page++) {
        for (size_t thread = 0; thread < HWS_PASSES; thread++) {
            use((thread + page / 8) % HWS_PASSES * (PAGES / HWS_PASSES) + page, false);
        }
    }
    HWS_CHECK(range.faults < HWS_PASSES * 12 + 2 * PAGES / HWS_PASS_PAGES);
}

static void shouldForgetThePassThatFaultedLongestAgo(void) {
    begin();
    for (size_t i = 0; i <= HWS_PASSES; i++) {
        use(i * 1000, false);
    }
    size_t brought = range.brought;
    use(1000 + HWS_PASS_FIRST_PAGES, false); /* goes on */
    HWS_CHECK(range.brought == brought + 2 * HWS_PASS_FIRST_PAGES);
    use(HWS_PASS_FIRST_PAGES, false); /* was forgotten */
    HWS_CHECK(range.brought == brought + 3 * HWS_PASS_FIRST_PAGES);
}

/* A program that uses one page between kernels, which take all pages away. */
static void use_between_kernels(int kernels, bool writes) {
    for (int i = 0; i < kernels; i++) {
        memset(range.pages, ABSENT, sizeof range.pages);
        use((size_t) i * 37 % 5000, false);
        if (writes) {
            use((size_t) i * 37 % 5000, true);
        }
    }
}

static void shouldLearnThatLonePagesAreWritten(void) {
    begin();
    use_between_kernels(100, true);
    HWS_CHECK(range.write_faults < 100 / HWS_HABIT_TURN + 10);
}

static void shouldLearnThatLonePagesAreOnlyRead(void) {
    begin();
    use_between_kernels(100, true);
    use_between_kernels(100, false);
    size_t before = range.write_faults;
    use_between_kernels(2, true);
    HWS_CHECK(range.write_faults == before + 2); /* it had stopped to expect writes */
}

static void shouldProvideEachPageOfAnyWalk(void) {
    srand(1);
    for (int walk = 0; walk < 200; walk++) {
        begin();
        for (int leg = 0; leg < 20; leg++) {
            size_t first = (size_t) rand() % PAGES, length = (size_t) rand() % 3000, step = 1 + (size_t) rand() % 3;
            bool writes = rand() % 2 == 0;
            for (size_t page = first; page < least(first + length, PAGES); page += step) {
                use(page, writes);
                HWS_CHECK(range.pages[page] == WRITABLE || (!writes && range.pages[page] == READABLE));
            }
        }
    }
}

int main(void) {
    HWS_RUN(shouldBringFewPagesForALoneFault);
    HWS_RUN(shouldFaultSeldomInALongPass);
    HWS_RUN(shouldHavePagesInFrontWhenATripwireFaults);
    HWS_RUN(shouldNotBringMoreThanAPassAhead);
    HWS_RUN(shouldEndWithTheRange);
    HWS_RUN(shouldBringWritablePagesToAPassOfUpdates);
    HWS_RUN(shouldStopToBringWritablePagesWhenThePassOnlyReads);
    HWS_RUN(shouldBringNoWritablePageToAPassOfReads);
    HWS_RUN(shouldBringOnlyWritablePagesToAPassOfWrites);
    HWS_RUN(shouldKeepPassesOfSeveralThreadsApart);
    HWS_RUN(shouldForgetThePassThatFaultedLongestAgo);
    HWS_RUN(shouldLearnThatLonePagesAreWritten);
    HWS_RUN(shouldLearnThatLonePagesAreOnlyRead);
    HWS_RUN(shouldProvideEachPageOfAnyWalk);
    return 0;
}
