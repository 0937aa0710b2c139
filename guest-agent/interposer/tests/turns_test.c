/* Which pages come with waits. The program is a loop that faults at pages that have not come. */
#include "mirror_turns.h"

#include "hws_test.h"

#include <stdlib.h>
#include <string.h>

#define BASE 0x200000000000ull
#define PAGE 4096u
#define PAGES 64u
#define LONG 1000

static hws_turns_t turns;
static bool has[PAGES]; /* the host has the page, without a fault */
static unsigned faults, brought;

static uint64_t address_of(unsigned page) {
    return BASE + (uint64_t) page * PAGE;
}

static void begin(void) {
    memset(&turns, 0, sizeof turns);
    memset(has, 0, sizeof has);
    faults = brought = 0;
}

/* Work takes all pages, and the wait for it brings some. */
static void wait_for_work(void) {
    uint64_t addresses[HWS_TURN_PAGES];
    memset(has, 0, sizeof has);
    turns.turn++;
    size_t count = hws_turns_choose(&turns, addresses);
    HWS_CHECK(count <= turns.count && turns.count <= HWS_TURN_PAGES);
    for (size_t i = 0; i < count; i++) {
        HWS_CHECK(i == 0 || addresses[i] > addresses[i - 1]);
        has[(addresses[i] - BASE) / PAGE] = true;
    }
    brought += (unsigned) count;
}

static void use(unsigned page, bool writes) {
    if (!has[page]) {
        faults++;
        hws_turns_note_fault(&turns, address_of(page), true);
    } else if (writes) {
        hws_turns_note_change(&turns, address_of(page));
    }
    has[page] = true;
}

/* Uses a page after every `period`th wait. */
static void use_in_turns(unsigned page, unsigned period, bool writes, unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        wait_for_work();
        if (i % period == 0) {
            use(page, writes);
        }
    }
}

static void shouldBringAPageThatIsWrittenInEachTurn(void) {
    begin();
    use_in_turns(5, 1, true, LONG);
    HWS_CHECK(faults == HWS_TURNS_TO_JOIN && brought == LONG - faults);
}

static void shouldBringAPageThatIsWrittenInEverySecondTurn(void) {
    begin();
    use_in_turns(5, 2, true, LONG);
    HWS_CHECK(faults == HWS_TURNS_TO_JOIN);
}

static void shouldSeldomTryWithoutAPageThatIsOnlyRead(void) {
    begin();
    use_in_turns(5, 1, false, LONG);
    HWS_CHECK(faults > HWS_TURNS_TO_JOIN && faults < HWS_TURNS_TO_JOIN + 5 + LONG / HWS_TURNS_LONGEST);
    HWS_CHECK(faults + brought == LONG && turns.count == 1);
}

static void shouldIgnoreAPageThatIsSeldomUsed(void) {
    begin();
    use_in_turns(5, HWS_TURNS_GAP + 1, true, LONG);
    HWS_CHECK(brought == 0 && faults == LONG / (HWS_TURNS_GAP + 1));
}

static void shouldIgnoreSeveralFaultsInOneTurn(void) {
    begin();
    wait_for_work();
    for (int i = 0; i < LONG; i++) {
        HWS_CHECK(!hws_turns_note_fault(&turns, address_of(5), true));
    }
}

static void shouldIgnoreFaultsOfPasses(void) {
    begin();
    for (int i = 0; i < LONG; i++) {
        wait_for_work();
        HWS_CHECK(!hws_turns_note_fault(&turns, address_of(5), false));
    }
}

static void shouldStopSoonWhenTheProgramDoes(void) {
    for (int reads = 0; reads <= 1; reads++) {
        begin();
        use_in_turns(5, 1, reads == 0, HWS_TURNS_TO_JOIN + 2);
        unsigned before = brought;
        use_in_turns(9, LONG, true, LONG);
        HWS_CHECK(brought - before <= HWS_TURNS_FIRST && turns.count == 0);
    }
}

static void shouldStopAfterALongUseInLimitedTime(void) {
    begin();
    use_in_turns(5, 1, false, LONG);
    unsigned before = brought;
    use_in_turns(9, LONG, true, LONG);
    HWS_CHECK(brought - before <= HWS_TURNS_LONGEST && turns.count == 0);
}

static void shouldFindAPageAmongManyLoneFaults(void) {
    begin();
    for (unsigned i = 0; i < LONG; i++) {
        wait_for_work();
        use(10 + i * 7 % 50, false);
        use(5, true);
    }
    HWS_CHECK(hws_turns_note_fault(&turns, address_of(5), true));
}

static void shouldBoundTheMembers(void) {
    begin();
    for (unsigned i = 0; i < LONG; i++) {
        wait_for_work();
        for (unsigned page = 0; page < HWS_TURN_CANDIDATES + 8; page++) {
            use(page * 2, true);
        }
    }
    HWS_CHECK(turns.count <= HWS_TURN_PAGES && brought <= LONG * HWS_TURN_PAGES);
}

static void shouldLeaveMembersToTheirOwnFaults(void) {
    begin();
    use_in_turns(8, 1, true, HWS_TURNS_TO_JOIN);
    HWS_CHECK(turns.count == 1);
    HWS_CHECK(hws_turns_limit(&turns, address_of(4), 64, PAGE) == 4);
    HWS_CHECK(hws_turns_limit(&turns, address_of(4), 3, PAGE) == 3);
    HWS_CHECK(hws_turns_limit(&turns, address_of(8), 64, PAGE) == 64);
    HWS_CHECK(hws_turns_limit(&turns, address_of(9), 64, PAGE) == 64);
}

static void shouldForgetARange(void) {
    begin();
    for (int i = 0; i < 6; i++) {
        wait_for_work();
        use(7, true);
        use(8, true);
        use(12, true);
    }
    wait_for_work();
    use(20, true);
    HWS_CHECK(turns.count == 3);
    hws_turns_forget(&turns, address_of(8), 4 * PAGE);
    HWS_CHECK(turns.count == 2);
    brought = 0;
    wait_for_work();
    HWS_CHECK(brought == 2 && has[7] && has[12] && !has[8]);
    hws_turns_forget(&turns, 0, UINT64_MAX);
    HWS_CHECK(turns.count == 0 && !hws_turns_note_fault(&turns, address_of(20), true));
}

/* A page that is brought counts once; a page that the program needs is brought or has a fault. */
static void shouldCountItsMembersInAnyProgram(void) {
    srand(3);
    for (int program = 0; program < 200; program++) {
        begin();
        for (int i = 0; i < 300; i++) {
            wait_for_work();
            for (int uses = rand() % 30; uses > 0; uses--) {
                use((unsigned) rand() % (1 + (unsigned) program % PAGES), rand() % 2 == 0);
            }
            size_t members = 0;
            for (size_t at = 0; at < HWS_TURN_PAGES; at++) {
                members += turns.members[at].address != 0;
                for (size_t other = 0; other < at && turns.members[at].address != 0; other++) {
                    HWS_CHECK(turns.members[other].address != turns.members[at].address);
                }
            }
            HWS_CHECK(members == turns.count);
        }
    }
}

int main(void) {
    HWS_RUN(shouldBringAPageThatIsWrittenInEachTurn);
    HWS_RUN(shouldBringAPageThatIsWrittenInEverySecondTurn);
    HWS_RUN(shouldSeldomTryWithoutAPageThatIsOnlyRead);
    HWS_RUN(shouldIgnoreAPageThatIsSeldomUsed);
    HWS_RUN(shouldIgnoreSeveralFaultsInOneTurn);
    HWS_RUN(shouldIgnoreFaultsOfPasses);
    HWS_RUN(shouldStopSoonWhenTheProgramDoes);
    HWS_RUN(shouldStopAfterALongUseInLimitedTime);
    HWS_RUN(shouldFindAPageAmongManyLoneFaults);
    HWS_RUN(shouldBoundTheMembers);
    HWS_RUN(shouldLeaveMembersToTheirOwnFaults);
    HWS_RUN(shouldForgetARange);
    HWS_RUN(shouldCountItsMembersInAnyProgram);
    return 0;
}
