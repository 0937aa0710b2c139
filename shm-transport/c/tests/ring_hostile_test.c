/*
 * A process writes arbitrary values over a ring's positions and bytes while both ends are in use here. The ring lies
 * between inaccessible pages; private memory is under the address sanitizer.
 */
#include "../shm/hws_ring.h"
#include "hws_test.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define LIES 3000 /* false positions detected, and accepted, at each size of ring */

typedef struct words {
    uint64_t head;
    uint8_t gap[56];
    uint64_t tail;
} words_t;

static words_t *words;
static uint8_t *ring_bytes;

static uint64_t draw(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* A false position: mostly near the present one, because a distant one is detected at once. */
static uint64_t lie(uint64_t near, uint64_t *state) {
    uint64_t choice = draw(state);
    switch (choice & 7) {
        case 0:
            return draw(state);
        case 1:
            return near + (choice >> 8) % (2 * PAGE);
        case 2:
            return near - ((choice >> 8) % PAGE & ~7ull);
        default: /* one that a ring of some size can hold */
            return near + ((choice >> 8) % (16u << ((choice >> 3) % 9)) & ~7ull);
    }
}

static void scribble(uint64_t *state) {
    uint64_t head = __atomic_load_n(&words->head, __ATOMIC_RELAXED);
    uint64_t tail = __atomic_load_n(&words->tail, __ATOMIC_RELAXED);
    __atomic_store_n(&words->head, lie(head, state), __ATOMIC_RELAXED);
    __atomic_store_n(&words->tail, lie(tail, state), __ATOMIC_RELAXED);
    ring_bytes[draw(state) % PAGE] = (uint8_t) *state;
}

static pid_t start(void) {
    pid_t parent = getpid(), child = fork();
    HWS_CHECK(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        uint64_t state = 88172645463325252u;
        while (getppid() == parent) {
            scribble(&state);
        }
        _exit(0);
    }
    return child;
}

static void end(pid_t child) {
    int status;
    HWS_CHECK(kill(child, SIGKILL) == 0);
    HWS_CHECK(waitpid(child, &status, 0) == child);
    HWS_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void shouldReadOnlyTheRingWhateverTheWriterSays(void) {
    uint64_t state = 1;
    for (uint64_t size = 8; size <= PAGE; size *= 8) {
        uint8_t *bytes = ring_bytes + PAGE - size; /* its end is the page's end: one byte more is a fault */
        uint8_t *target = malloc(size);
        HWS_CHECK(target != NULL);
        hws_ring_t ring;
        hws_ring_attach_reader(&ring, bytes, size, &words->head, &words->tail);
        uint64_t corrupt = 0, believed = 0;
        while (corrupt < LIES || believed < LIES) {
            scribble(&state); /* this process also writes false positions: the other one may get no processor */
            uint64_t available = hws_ring_available(&ring);
            if (available == HWS_RING_CORRUPT) {
                corrupt++;
                uint64_t position = __atomic_load_n(&words->tail, __ATOMIC_RELAXED) & ~7ull;
                hws_ring_attach_reader(&ring, bytes, size, &words->head, &words->tail);
                ring.own_position = ring.published = ring.peer_cached = position;
                hws_ring_release(&ring);
                continue;
            }
            HWS_CHECK(available <= size);
            uint64_t part = available == 0 ? 0 : 1 + draw(&state) % available;
            hws_ring_take(&ring, target, part);
            believed += part != 0;
            if ((draw(&state) & 1) == 0) {
                hws_ring_release(&ring);
            }
        }
        free(target);
    }
}

static void shouldWriteOnlyTheRingWhateverTheReaderSays(void) {
    uint64_t state = 1;
    for (uint64_t size = 8; size <= PAGE; size *= 8) {
        uint8_t *bytes = ring_bytes + PAGE - size;
        uint8_t *source = calloc(1, size);
        HWS_CHECK(source != NULL);
        hws_ring_t ring;
        hws_ring_attach_writer(&ring, bytes, size, &words->head, &words->tail);
        uint64_t corrupt = 0, believed = 0;
        while (corrupt < LIES || believed < LIES) {
            scribble(&state); /* this process also writes false positions: the other one may get no processor */
            uint64_t room = hws_ring_room(&ring);
            if (room == HWS_RING_CORRUPT) {
                corrupt++;
                uint64_t position = __atomic_load_n(&words->head, __ATOMIC_RELAXED) & ~7ull;
                hws_ring_attach_writer(&ring, bytes, size, &words->head, &words->tail);
                ring.own_position = ring.published = ring.peer_cached = position;
                hws_ring_commit(&ring);
                continue;
            }
            HWS_CHECK(room <= size);
            uint64_t part = room == 0 ? 0 : 1 + draw(&state) % room;
            hws_ring_put(&ring, source, part);
            believed += part != 0;
            if ((draw(&state) & 1) == 0) {
                hws_ring_commit(&ring);
            }
        }
        free(source);
    }
}

int main(void) {
    /* words, inaccessible page, ring, inaccessible page */
    uint8_t *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    HWS_CHECK(memory != MAP_FAILED);
    HWS_CHECK(mprotect(memory + PAGE, PAGE, PROT_NONE) == 0);
    HWS_CHECK(mprotect(memory + 3 * PAGE, PAGE, PROT_NONE) == 0);
    words = (words_t *) memory;
    ring_bytes = memory + 2 * PAGE;
    pid_t child = start();
    HWS_RUN(shouldReadOnlyTheRingWhateverTheWriterSays);
    HWS_RUN(shouldWriteOnlyTheRingWhateverTheReaderSays);
    end(child);
    return 0;
}
