/*
 * The heap's table: one process against a model of it, threads, and processes that share a file and die. Allocated
 * memory is written and read again, so that memory given out twice is detected.
 */
#include "../shm/hws_heap.h"
#include "hws_test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_GRANULES 4096
#define PROCESSES 4

#define DEVICE_BASE 0x10000000ull /* the test device's address of the heap */

typedef struct allocation {
    hws_heap_block_t block;
    uint8_t mark;
} allocation_t;

static _Atomic uint8_t *table;
static uint8_t *memory;
static uint64_t granules;
static _Atomic int64_t mapped_bytes; /* granules of this process that the device knows */
static _Atomic int64_t map_bytes_of[MAX_GRANULES];
static _Atomic uint64_t settles;
static _Atomic int next_status; /* result of the next hook */

static int map(uint64_t offset, uint64_t bytes, uint64_t *address_p) {
    HWS_CHECK(offset % HWS_GRANULE_BYTES == 0 && bytes % HWS_GRANULE_BYTES == 0);
    int status = atomic_exchange(&next_status, 0);
    if (status == 0) {
        /* Never twice. */
        HWS_CHECK(atomic_exchange(&map_bytes_of[offset / HWS_GRANULE_BYTES], (int64_t) bytes) == 0);
        atomic_fetch_add(&mapped_bytes, (int64_t) bytes);
        *address_p = DEVICE_BASE + offset;
    }
    return status;
}

static int unmap(uint64_t offset) {
    int status = atomic_exchange(&next_status, 0);
    if (status == 0) {
        int64_t bytes = atomic_exchange(&map_bytes_of[offset / HWS_GRANULE_BYTES], 0);
        HWS_CHECK(bytes > 0);
        atomic_fetch_sub(&mapped_bytes, bytes);
    }
    return status;
}

static int settle(void) {
    atomic_fetch_add(&settles, 1);
    return atomic_exchange(&next_status, 0);
}

static uint64_t reclaim_nothing(void) {
    return 0;
}

static const hws_heap_hooks_t hooks = {map, unmap, settle, reclaim_nothing};

static uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* A table and its heap in a real file, as in a region. */
static void make_file(uint64_t wanted) {
    char name[64];
    granules = wanted;
    snprintf(name, sizeof name, "/dev/shm/hawser-heap-test-%d", (int) getpid());
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    HWS_CHECK(fd >= 0 && unlink(name) == 0);
    HWS_CHECK(ftruncate(fd, (off_t) (MAX_GRANULES + granules * HWS_GRANULE_BYTES)) == 0);
    uint8_t *map = mmap(NULL, MAX_GRANULES + granules * HWS_GRANULE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    HWS_CHECK(map != MAP_FAILED && close(fd) == 0);
    table = (_Atomic uint8_t *) map;
    memory = map + MAX_GRANULES;
}

static void drop_file(void) {
    munmap((void *) table, MAX_GRANULES + granules * HWS_GRANULE_BYTES);
}

static void fill(const allocation_t *each) {
    memset(memory + each->block.offset, each->mark, each->block.bytes);
}

static void check_untouched(const allocation_t *each) {
    for (uint64_t i = 0; i < each->block.bytes; i++) {
        HWS_CHECK(memory[each->block.offset + i] == each->mark);
    }
}

static uint64_t random_size(uint32_t *state) {
    switch (next_random(state) % 4) {
        case 0:
            return 1 + next_random(state) % 2047;
        case 1:
            return 2048 + next_random(state) % 2100;
        case 2:
            return HWS_GRANULE_BYTES * (1 + next_random(state) % 3);
        default:
            return 1 + next_random(state) % (granules * HWS_GRANULE_BYTES / 8);
    }
}

/* Allocates and frees at random. Returns the number of allocations. */
static uint64_t churn(hws_heap_t *heap, uint32_t seed, int rounds, uint8_t first_mark) {
    enum { HELD = 48 };
    allocation_t held[HELD];
    int count = 0;
    uint64_t allocations = 0;
    for (int i = 0; i < rounds; i++) {
        if (count < HELD && next_random(&seed) % 5 < 3) {
            allocation_t new = {.mark = (uint8_t) (first_mark + i % 50)};
            uint64_t bytes = random_size(&seed);
            int status = hws_heap_allocate(heap, bytes, &new.block);
            HWS_CHECK(status == 0 || status == HWS_HEAP_FULL);
            if (status == 0) {
                uint64_t offset = new.block.offset;
                HWS_CHECK(new.block.bytes == bytes &&offset + bytes <= granules *HWS_GRANULE_BYTES);
                HWS_CHECK(new.block.address == DEVICE_BASE + offset &&offset % HWS_HEAP_UNIT_BYTES == 0);
                HWS_CHECK(bytes < 2048 || offset % HWS_GRANULE_BYTES == 0);
                fill(&new);
                held[count++] = new;
                allocations++;
            }
        } else if (count > 0) {
            int which = (int) (next_random(&seed) % (uint32_t) count);
            check_untouched(&held[which]);
            HWS_CHECK(hws_heap_free(heap, &held[which].block) == 0);
            held[which] = held[--count];
        }
    }
    while (count > 0) {
        check_untouched(&held[--count]);
        HWS_CHECK(hws_heap_free(heap, &held[count].block) == 0);
    }
    return allocations;
}

static hws_heap_t shared_heap;

static void *churn_in_thread(void *number) {
    churn(&shared_heap, 1000 + (uint32_t) (uintptr_t) number, 1500, (uint8_t) (1 + 60 * (uintptr_t) number));
    return NULL;
}

static void should_keep_threads_apart(void) {
    pthread_t threads[3];
    make_file(128);
    HWS_CHECK(hws_heap_open(&shared_heap, table, granules, 2, &hooks));
    for (uintptr_t i = 0; i < 3; i++) {
        HWS_CHECK(pthread_create(&threads[i], NULL, churn_in_thread, (void *) i) == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    HWS_CHECK(hws_heap_available(&shared_heap) == granules && atomic_load(&mapped_bytes) == 0);
    hws_heap_close(&shared_heap);
    drop_file();
}

#ifndef __SANITIZE_THREAD__ /* its runtime does not work in a forked process, and has nothing to check in one */

static uint64_t taken_by(uint32_t slot) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < granules; i++) {
        count += atomic_load(&table[i]) == slot + 1;
    }
    return count;
}

static void should_leave_nothing_taken(void) {
    static const uint64_t sizes[] = {1, 7, 8, 63, 64, 1001, MAX_GRANULES};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        hws_heap_t heap;
        make_file(sizes[i]);
        HWS_CHECK(hws_heap_open(&heap, table, granules, 63, &hooks));
        HWS_CHECK(churn(&heap, 7 + (uint32_t) i, 4000, 1) > 0);
        HWS_CHECK(hws_heap_available(&heap) == granules && heap.partial_count == 0);
        HWS_CHECK(atomic_load(&mapped_bytes) == 0);
        hws_heap_close(&heap);
        drop_file();
    }
}

/* The model: which granules are taken. Whether a run fits must agree with it, and nothing else may change. */
static void should_find_a_run_exactly_when_there_is_one(void) {
    static uint8_t model[MAX_GRANULES];
    uint32_t seed = 99;
    make_file(203);
    for (int i = 0; i < 3000; i++) {
        hws_heap_t heap;
        uint32_t density = next_random(&seed) % 10;
        uint64_t longest = 0, run = 0, wanted = 1 + next_random(&seed) % 40;
        for (uint64_t g = 0; g < granules; g++) {
            model[g] = next_random(&seed) % 10 < density ? 9 : 0;
            atomic_store(&table[g], model[g]);
            run = model[g] == 0 ? run + 1 : 0;
            longest = run > longest ? run : longest;
        }
        HWS_CHECK(hws_heap_open(&heap, table, granules, 4, &hooks));
        atomic_store(&heap.next, next_random(&seed) % (granules + 2));
        hws_heap_block_t block = {0};
        bool found = hws_heap_allocate(&heap, wanted * HWS_GRANULE_BYTES - 100, &block) == 0;
        uint64_t first = block.offset / HWS_GRANULE_BYTES;
        HWS_CHECK(found == (wanted <= longest));
        for (uint64_t g = 0; g < granules; g++) {
            bool ours = found && g >= first && g < first + wanted;
            HWS_CHECK(!ours || model[g] == 0);
            HWS_CHECK(atomic_load(&table[g]) == (ours ? 5 : model[g]));
        }
        HWS_CHECK(!found || hws_heap_free(&heap, &block) == 0);
        hws_heap_close(&heap);
    }
    drop_file();
}

static void should_pack_small_allocations(void) {
    hws_heap_t heap;
    hws_heap_block_t blocks[64];
    make_file(16);
    HWS_CHECK(hws_heap_open(&heap, table, granules, 0, &hooks));
    for (int i = 0; i < 64; i++) {
        HWS_CHECK(hws_heap_allocate(&heap, 500, &blocks[i]) == 0);
    }
    HWS_CHECK(taken_by(0) == 8 && atomic_load(&mapped_bytes) == 8 * HWS_GRANULE_BYTES);
    atomic_store(&settles, 0);
    for (int i = 0; i < 64; i += 2) {
        HWS_CHECK(hws_heap_free(&heap, &blocks[i]) == 0);
    }
    HWS_CHECK(taken_by(0) == 8 && atomic_load(&settles) == 32);
    for (int i = 0; i < 64; i += 2) {
        HWS_CHECK(hws_heap_allocate(&heap, 512, &blocks[i]) == 0);
    }
    HWS_CHECK(taken_by(0) == 8);
    for (int i = 0; i < 64; i++) {
        HWS_CHECK(hws_heap_free(&heap, &blocks[i]) == 0);
    }
    HWS_CHECK(taken_by(0) == 0 && atomic_load(&mapped_bytes) == 0);
    hws_heap_close(&heap);
    drop_file();
}

static void should_refuse_what_cannot_fit(void) {
    hws_heap_t heap;
    hws_heap_block_t block, small;
    make_file(8);
    HWS_CHECK(hws_heap_open(&heap, table, granules, 0, &hooks));
    HWS_CHECK(hws_heap_allocate(&heap, 8 * HWS_GRANULE_BYTES + 1, &block) == HWS_HEAP_FULL);
    HWS_CHECK(hws_heap_allocate(&heap, UINT64_MAX, &block) == HWS_HEAP_FULL);
    HWS_CHECK(hws_heap_allocate(&heap, 8 * HWS_GRANULE_BYTES, &block) == 0 && block.offset == 0);
    HWS_CHECK(hws_heap_allocate(&heap, 1, &small) == HWS_HEAP_FULL);
    HWS_CHECK(hws_heap_free(&heap, &block) == 0 && hws_heap_available(&heap) == 8);
    hws_heap_close(&heap);
    drop_file();
}

/* Memory that the device may still use is not given out; memory that it never knew is. */
static void should_keep_what_cannot_be_unmapped(void) {
    hws_heap_t heap;
    hws_heap_block_t block, first, second;
    make_file(16);
    HWS_CHECK(hws_heap_open(&heap, table, granules, 0, &hooks));
    atomic_store(&next_status, 2);
    HWS_CHECK(hws_heap_allocate(&heap, 5000, &block) == 2 && taken_by(0) == 0);
    atomic_store(&next_status, 2);
    HWS_CHECK(hws_heap_allocate(&heap, 50, &block) == 2 && taken_by(0) == 0);
    HWS_CHECK(hws_heap_allocate(&heap, 5000, &block) == 0 && taken_by(0) == 2);
    atomic_store(&next_status, 46);
    HWS_CHECK(hws_heap_free(&heap, &block) == 46 && taken_by(0) == 2);
    /* One of two in a granule: the other one is unchanged, and its units are not given out again. */
    HWS_CHECK(hws_heap_allocate(&heap, 50, &first) == 0 && hws_heap_allocate(&heap, 50, &second) == 0);
    HWS_CHECK(first.offset / HWS_GRANULE_BYTES == second.offset / HWS_GRANULE_BYTES && taken_by(0) == 3);
    atomic_store(&next_status, 46);
    HWS_CHECK(hws_heap_free(&heap, &first) == 46);
    HWS_CHECK(hws_heap_allocate(&heap, 50, &block) == 0 && block.offset != first.offset && taken_by(0) == 3);
    HWS_CHECK(hws_heap_free(&heap, &block) == 0 && hws_heap_free(&heap, &second) == 0 && taken_by(0) == 3);
    /* The last one in a granule: no allocation gets another part of it. */
    HWS_CHECK(hws_heap_allocate(&heap, 2000, &block) == 0 && hws_heap_allocate(&heap, 2000, &first) == 0);
    HWS_CHECK(hws_heap_free(&heap, &block) == 0);
    atomic_store(&next_status, 46);
    HWS_CHECK(hws_heap_free(&heap, &first) == 46);
    HWS_CHECK(hws_heap_allocate(&heap, 2000, &second) == 0);
    HWS_CHECK(second.offset / HWS_GRANULE_BYTES != first.offset / HWS_GRANULE_BYTES);
    HWS_CHECK(hws_heap_free(&heap, &second) == 0);
    hws_heap_close(&heap);
    for (uint64_t i = 0; i < granules; i++) {
        atomic_fetch_sub(&mapped_bytes, atomic_exchange(&map_bytes_of[i], 0));
    }
    HWS_CHECK(atomic_load(&mapped_bytes) == 0);
    drop_file();
}

static uint32_t dead_slot;

/* The steps of hws_shm_reclaim() for a slot whose process and worker are gone. */
static uint64_t reclaim_dead_slot(void) {
    uint64_t freed = 0;
    for (uint64_t i = 0; i < granules; i++) {
        uint8_t owner = (uint8_t) (dead_slot + 1);
        freed += atomic_compare_exchange_strong(&table[i], &owner, 0);
    }
    return freed;
}

static const hws_heap_hooks_t reclaiming = {map, unmap, settle, reclaim_dead_slot};

static pid_t start_child(uint32_t slot, int rounds) {
    pid_t pid = fork();
    HWS_CHECK(pid >= 0);
    if (pid == 0) {
        hws_heap_t heap;
        HWS_CHECK(hws_heap_open(&heap, table, granules, slot, &hooks));
        do {
            churn(&heap, slot * 7919 + (uint32_t) getpid(), 3000, (uint8_t) (1 + 60 * slot));
        } while (rounds < 0);
        hws_heap_close(&heap);
        _exit(0);
    }
    return pid;
}

static void should_keep_processes_apart_also_when_one_is_killed(void) {
    make_file(160);
    pid_t pids[PROCESSES];
    dead_slot = 0;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        pids[i] = start_child(i, i == dead_slot ? -1 : 1);
    }
    for (uint32_t i = 1; i < PROCESSES; i++) {
        int status;
        HWS_CHECK(waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        HWS_CHECK(taken_by(i) == 0);
    }
    /* A process that works without end is killed wherever it is, but not while it has no memory. */
    while (taken_by(dead_slot) == 0) {
        sched_yield();
    }
    kill(pids[dead_slot], SIGKILL);
    HWS_CHECK(waitpid(pids[dead_slot], NULL, 0) == pids[dead_slot]);
    drop_file();
}

static void should_reclaim_what_a_killed_process_held_when_the_heap_is_full(void) {
    hws_heap_t heap;
    hws_heap_block_t block;
    uint64_t whole;
    int ready[2];
    char byte;
    make_file(100);
    whole = granules * HWS_GRANULE_BYTES;
    dead_slot = 5;
    HWS_CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    HWS_CHECK(pid >= 0);
    if (pid == 0) {
        HWS_CHECK(hws_heap_open(&heap, table, granules, dead_slot, &hooks));
        HWS_CHECK(hws_heap_allocate(&heap, whole / 2, &block) == 0);
        HWS_CHECK(hws_heap_allocate(&heap, 100, &block) == 0);
        HWS_CHECK(write(ready[1], "x", 1) == 1);
        for (;;) {
            pause();
        }
    }
    HWS_CHECK(read(ready[0], &byte, 1) == 1);
    kill(pid, SIGKILL);
    HWS_CHECK(waitpid(pid, NULL, 0) == pid && taken_by(dead_slot) == 51);
    HWS_CHECK(hws_heap_open(&heap, table, granules, 6, &reclaiming));
    HWS_CHECK(hws_heap_allocate(&heap, HWS_GRANULE_BYTES, &block) == 0 && taken_by(dead_slot) == 51);
    HWS_CHECK(hws_heap_free(&heap, &block) == 0);
    HWS_CHECK(hws_heap_allocate(&heap, whole, &block) == 0 && block.offset == 0 && taken_by(6) == granules);
    HWS_CHECK(hws_heap_free(&heap, &block) == 0);
    hws_heap_close(&heap);
    close(ready[0]);
    close(ready[1]);
    drop_file();
}

#endif

int main(void) {
    HWS_RUN(should_keep_threads_apart);
#ifndef __SANITIZE_THREAD__
    HWS_RUN(should_leave_nothing_taken);
    HWS_RUN(should_find_a_run_exactly_when_there_is_one);
    HWS_RUN(should_pack_small_allocations);
    HWS_RUN(should_refuse_what_cannot_fit);
    HWS_RUN(should_keep_what_cannot_be_unmapped);
    HWS_RUN(should_keep_processes_apart_also_when_one_is_killed);
    HWS_RUN(should_reclaim_what_a_killed_process_held_when_the_heap_is_full);
#endif
    return 0;
}
