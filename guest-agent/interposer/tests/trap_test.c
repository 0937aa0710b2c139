/* Both ways to trap accesses, by one suite. The kernel forbids neither to the tests. */
#include "trap.h"

#include "hws_test.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE HWS_TRAP_PAGE_BYTES
#define PAGES 64u
#define BASE 0x210000000000ull
#define THREADS 8

static const hws_trap_t *trap;

/* The thread that provides pages: page n has the bytes n + 1. A fault outside of the range is refused. */
static _Atomic int reads, writes, refused;
static uint8_t present[PAGES]; /* changed by that thread */

static void serve(const hws_trap_fault_t *fault) {
    uint64_t page = (fault->address - BASE) / PAGE;
    bool is_ours = page < PAGES;
    if (!is_ours) {
        refused++;
    } else if (present[page] == 0) {
        uint8_t bytes[PAGE];
        memset(bytes, (int) page + 1, sizeof bytes);
        reads++;
        present[page] = fault->is_write ? 2 : 1;
        HWS_CHECK(trap->fill(BASE + page * PAGE, bytes, PAGE, fault->is_write));
    } else if (present[page] == 1 && fault->is_write) {
        writes++;
        present[page] = 2;
        HWS_CHECK(trap->unprotect(BASE + page * PAGE, PAGE));
    }
    trap->resume(fault, is_ours);
}

static void *service_main(void *unused) {
    (void) unused;
    for (;;) {
        hws_trap_fault_t fault;
        if (trap->next(-1, &fault)) {
            serve(&fault);
        }
    }
    return NULL;
}

static volatile uint8_t *byte_at(unsigned page, unsigned offset) {
    return (volatile uint8_t *) (uintptr_t) (BASE + page * PAGE + offset);
}

static void reserve(void) {
    void *wanted = (void *) (uintptr_t) BASE;
    HWS_CHECK(mmap(wanted, 2ul * PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
              == wanted);
}

static void begin(void) {
    pthread_t thread;
    reserve();
    HWS_CHECK(trap->open());
    HWS_CHECK(pthread_create(&thread, NULL, service_main, NULL) == 0);
    HWS_CHECK(trap->add(BASE, PAGES * PAGE));
}

static void begin_armed(void) {
    begin();
    HWS_CHECK(trap->arm(BASE, PAGES * PAGE));
    trap->drop(BASE, PAGES * PAGE);
}

static void shouldProvideZerosUntilArmed(void) {
    uint8_t found[PAGES];
    begin();
    *byte_at(3, 5) = 9;
    HWS_CHECK(*byte_at(3, 6) == 0 && *byte_at(40, 0) == 0);
    *byte_at(63, 0) = 7;
    HWS_CHECK(reads == 0 && writes == 0);
    HWS_CHECK(trap->arm(BASE, PAGES * PAGE));
    trap->find_present(BASE, PAGES, found);
    HWS_CHECK(found[3] == 1 && found[63] == 1 && found[10] == 0);
    HWS_CHECK(((const uint8_t *) trap->bytes_at(BASE + 3 * PAGE))[5] == 9);
}

static void shouldTrapReadsAndWritesWhenArmed(void) {
    begin();
    *byte_at(3, 5) = 9;
    HWS_CHECK(trap->arm(BASE, PAGES * PAGE));
    present[3] = 1;
    HWS_CHECK(*byte_at(3, 5) == 9 && reads == 0); /* present and readable */
    *byte_at(3, 6) = 1;
    HWS_CHECK(writes == 1 && *byte_at(3, 5) == 9);
    trap->drop(BASE + 4 * PAGE, (PAGES - 4) * PAGE);
    HWS_CHECK(*byte_at(20, 100) == 21 && reads == 1 && writes == 1);
    *byte_at(20, 100) = 5;
    HWS_CHECK(reads == 1 && writes == 2 && *byte_at(20, 100) == 5 && *byte_at(20, 101) == 21);
    *byte_at(30, 0) = 5; /* a write to an absent page needs one fault */
    HWS_CHECK(reads == 2 && writes == 2 && *byte_at(30, 1) == 31);
}

#define ADOPTED_PAGES 16384u /* enough to give another thread time to write meanwhile */
#define SLOTS 16384u         /* words of pages 16 to 31 */

static _Atomic bool adopted;
static _Atomic uint32_t written;

/* Writes the slots in turn, and checks that each has kept its last value. */
static void *write_slots(void *unused) {
    (void) unused;
    volatile uint32_t *slots = (volatile uint32_t *) byte_at(16, 0);
    uint32_t end = UINT32_MAX;
    for (uint32_t i = 0; i < end; i++) {
        HWS_CHECK(slots[i % SLOTS] == (i < SLOTS ? 0 : i - SLOTS + 1));
        slots[i % SLOTS] = i + 1;
        atomic_store_explicit(&written, i, memory_order_relaxed);
        end = end == UINT32_MAX && atomic_load(&adopted) ? i + 2 * SLOTS : end;
    }
    return NULL;
}

static void shouldKeepTheBytesOfMemoryInUse(void) {
    static uint8_t found[ADOPTED_PAGES];
    pthread_t service, writer;
    HWS_CHECK(trap->open());
    HWS_CHECK(mmap((void *) (uintptr_t) BASE, ADOPTED_PAGES * PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
              == (void *) (uintptr_t) BASE);
    memset((void *) byte_at(PAGES, 0), 7, (ADOPTED_PAGES - PAGES - 1) * PAGE);
    *byte_at(3, 5) = 9;
    HWS_CHECK(pthread_create(&writer, NULL, write_slots, NULL) == 0);
    while (atomic_load(&written) < SLOTS) {
    }
    HWS_CHECK(trap->adopt(BASE, ADOPTED_PAGES * PAGE));
    memset(present, 2, sizeof present); /* free memory: an access that has met the change is only tried again */
    HWS_CHECK(pthread_create(&service, NULL, service_main, NULL) == 0);
    atomic_store(&adopted, true);
    HWS_CHECK(pthread_join(writer, NULL) == 0);
    HWS_CHECK(*byte_at(3, 5) == 9 && *byte_at(ADOPTED_PAGES - 2, 9) == 7 && *byte_at(ADOPTED_PAGES - 1, 9) == 0);
    HWS_CHECK(trap->arm(BASE, ADOPTED_PAGES * PAGE));
    trap->find_present(BASE, ADOPTED_PAGES, found);
    HWS_CHECK(found[3] == 1 && found[16] == 1 && found[40] == 0 && found[ADOPTED_PAGES - 2] == 1);
    HWS_CHECK(((const uint8_t *) trap->bytes_at(BASE + 3 * PAGE))[5] == 9);
    memset(present, 0, sizeof present);
    trap->drop(BASE, ADOPTED_PAGES * PAGE);
    HWS_CHECK(*byte_at(3, 5) == 4 && reads == 1);
}

static void shouldTrapAgainAfterProtectAndDrop(void) {
    begin_armed();
    *byte_at(1, 0) = 50;
    HWS_CHECK(reads == 1 && writes == 0);
    present[1] = 1;
    HWS_CHECK(trap->protect(BASE + PAGE, PAGE));
    HWS_CHECK(*byte_at(1, 0) == 50);
    *byte_at(1, 0) = 51;
    HWS_CHECK(writes == 1 && ((const uint8_t *) trap->bytes_at(BASE + PAGE))[0] == 51);
    present[1] = 0;
    trap->drop(BASE + PAGE, PAGE);
    HWS_CHECK(*byte_at(1, 0) == 2 && reads == 2);
}

static void *touch_all(void *argument) {
    unsigned start = (unsigned) (uintptr_t) argument;
    for (unsigned i = 0; i < PAGES; i++) {
        unsigned page = (start * 8 + i) % PAGES;
        HWS_CHECK(*byte_at(page, PAGE - 1) == page + 1);
        *byte_at(page, start) = 200;
    }
    return NULL;
}

static void shouldServeManyThreads(void) {
    pthread_t threads[THREADS];
    begin_armed();
    for (uintptr_t i = 0; i < THREADS; i++) {
        HWS_CHECK(pthread_create(&threads[i], NULL, touch_all, (void *) i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        HWS_CHECK(pthread_join(threads[i], NULL) == 0);
    }
    HWS_CHECK(reads == (int) PAGES && *byte_at(17, 3) == 200 && *byte_at(17, THREADS) == 18);
}

/* Fills an eighth of the pages, as a thread that brings them ahead. */
static void *fill_share(void *argument) {
    uint64_t first = (uintptr_t) argument * (PAGES / THREADS);
    uint8_t bytes[PAGES / THREADS * PAGE];
    for (unsigned i = 0; i < PAGES / THREADS; i++) {
        memset(bytes + (size_t) i * PAGE, (int) (first + i + 1), PAGE);
    }
    HWS_CHECK(trap->fill(BASE + first * PAGE, bytes, sizeof bytes, first % (2 * PAGES / THREADS) == 0));
    trap->wake(BASE + first * PAGE, sizeof bytes);
    return NULL;
}

static void shouldFillByManyThreads(void) {
    pthread_t threads[THREADS];
    begin_armed();
    for (uintptr_t i = 0; i < THREADS; i++) {
        HWS_CHECK(pthread_create(&threads[i], NULL, fill_share, (void *) i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        HWS_CHECK(pthread_join(threads[i], NULL) == 0);
    }
    for (unsigned page = 0; page < PAGES; page++) {
        present[page] = 1;
        HWS_CHECK(*byte_at(page, 77) == page + 1);
        *byte_at(page, 78) = 0;
    }
    HWS_CHECK(reads == 0 && writes == PAGES / 2); /* every second share was filled for writing */
}

static sigjmp_buf escape;
static _Atomic int own_faults;

static void jump(int number, siginfo_t *info, void *context) {
    (void) number;
    (void) info;
    (void) context;
    own_faults++;
    siglongjmp(escape, 1);
}

static void install(void) {
    struct sigaction action = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO};
    HWS_CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
}

static void fault_elsewhere(volatile uint8_t *address) {
    if (sigsetjmp(escape, 1) == 0) {
        *address = 1;
        HWS_CHECK(false);
    }
}

static void shouldLeaveOtherFaultsToTheProgram(void) {
    install();
    begin_armed();
    fault_elsewhere((volatile uint8_t *) 16);
    fault_elsewhere(byte_at(PAGES + 1, 0)); /* reserved, but none of ours */
    HWS_CHECK(own_faults == 2 && *byte_at(5, 0) == 6);
}

static void shouldSurviveAHandlerThatIsInstalledLater(void) {
    begin_armed();
    install();
    trap->renew();
    HWS_CHECK(*byte_at(5, 0) == 6 && own_faults == 0);
    fault_elsewhere((volatile uint8_t *) 16);
    HWS_CHECK(own_faults == 1 && *byte_at(6, 0) == 7);
}

static void shouldEndTheProcessAtAFaultWithoutHandler(void) {
    pid_t child = fork();
    if (child == 0) {
        begin();
        *byte_at(PAGES + 1, 0) = 1;
        _exit(0);
    }
    int outcome;
    HWS_CHECK(waitpid(child, &outcome, 0) == child && WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGSEGV);
}

typedef void test_t(void);

/* Each test has a process of its own: a trap is opened once. */
static void run(const hws_trap_t *way, const char *name, test_t *test) {
    pid_t child = fork();
    if (child == 0) {
        trap = way;
        test();
        _exit(0);
    }
    int outcome;
    HWS_CHECK(waitpid(child, &outcome, 0) == child);
    fprintf(stderr, "%s: %s\n", way->name, name);
    if (outcome != 0) {
        fprintf(stderr, "outcome=%d\n", outcome);
        exit(1);
    }
}

#define RUN(test) run(ways[i], #test, test)

int main(void) {
    const hws_trap_t *const ways[] = {&hws_trap_userfault, &hws_trap_signal};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        RUN(shouldProvideZerosUntilArmed);
        RUN(shouldTrapReadsAndWritesWhenArmed);
        RUN(shouldKeepTheBytesOfMemoryInUse);
        RUN(shouldTrapAgainAfterProtectAndDrop);
        RUN(shouldServeManyThreads);
        RUN(shouldFillByManyThreads);
        RUN(shouldLeaveOtherFaultsToTheProgram);
        RUN(shouldSurviveAHandlerThatIsInstalledLater);
        RUN(shouldEndTheProcessAtAFaultWithoutHandler);
    }
    return 0;
}
