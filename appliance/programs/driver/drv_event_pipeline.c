/*
 * Work in flight, each piece with an event of its own, as programs pipeline batches. When an event is reached, the
 * results before it must be in the host's memory: pinned, by a long copy, and managed. The program waits, polls, and
 * asks after other calls in turn. An event whose new record is not reached must not be taken for the old one.
 */
#include "check_graphs.h"

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream);

enum { SLOTS = 8, ROUNDS = 25, SMALL = 1 << 12, LARGE = 1 << 21 };

static CUstream streams[2];
static CUevent events[SLOTS];

/* The value of a piece; no two pieces in flight have the same. */
static uint32_t value_of(int piece) {
    return 0x5a000000u + (uint32_t) piece;
}

static void await(int piece) {
    CUevent event = events[piece % SLOTS];
    if (piece % 3 == 0) {
        CU_OK(cuEventSynchronize(event));
        CU_OK(cuEventQuery(event)); /* still reached */
        return;
    }
    CUresult result;
    do {
        result = cuEventQuery(event);
    } while (result == CUDA_ERROR_NOT_READY);
    CU_OK(result);
}

static void verify_word(const char *what, int piece, const uint32_t *words, size_t at) {
    if (words[at] != value_of(piece)) {
        check_fail("%s, piece %d, word %zu, expected %#x, got %#x", what, piece, at, value_of(piece), words[at]);
    }
}

/* Checks a word in every 509, so that all pages have some, and the last one. */
static void verify(const char *what, int piece, const uint32_t *words, size_t bytes) {
    for (size_t at = 0; at < bytes / 4; at += 509) {
        verify_word(what, piece, words, at);
    }
    verify_word(what, piece, words, bytes / 4 - 1);
}

/* Pieces of one size; in managed memory without a copy. */
static void run(const char *what, size_t bytes, int managed) {
    CUdeviceptr device[SLOTS];
    uint32_t *host[SLOTS];
    for (int i = 0; i < SLOTS; i++) {
        if (managed) {
            CU_OK(cuMemAllocManaged(&device[i], bytes, CU_MEM_ATTACH_GLOBAL));
            host[i] = (uint32_t *) (uintptr_t) device[i];
        } else {
            CU_OK(cuMemAlloc(&device[i], bytes));
            CU_OK(cuMemHostAlloc((void **) &host[i], bytes, 0));
        }
    }
    int pieces = SLOTS * ROUNDS;
    for (int piece = 0; piece < pieces + SLOTS; piece++) {
        int slot = piece % SLOTS;
        if (piece >= SLOTS) {
            await(piece - SLOTS);
            verify(what, piece - SLOTS, host[slot], bytes);
        }
        if (piece < pieces) {
            CUstream stream = streams[piece % 2];
            CU_OK(cuMemsetD32Async(device[slot], value_of(piece), bytes / 4, stream));
            if (!managed) {
                CU_OK(cuMemcpyDtoHAsync(host[slot], device[slot], bytes, stream));
            }
            CU_OK(cuEventRecord(events[slot], stream));
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        CU_OK(cuMemFree(device[i]));
        if (!managed) {
            CU_OK(cuMemFreeHost(host[i]));
        }
    }
}

static void wait_for_word(void *word) {
    while (!__atomic_load_n((int *) word, __ATOMIC_ACQUIRE)) {
        usleep(100); /* the main thread writes the word */
    }
}

/* A record behind work that has not ended is not reached, whatever earlier records of the event were. */
static void check_new_records(void) {
    for (int i = 0; i < 5; i++) {
        int word = 0;
        CU_OK(cuLaunchHostFunc(streams[0], wait_for_word, &word));
        CU_OK(cuEventRecord(events[0], streams[0]));
        check_equal("an event behind a host function", CUDA_ERROR_NOT_READY, cuEventQuery(events[0]));
        CU_OK(cuStreamQuery(streams[1]));
        check_equal("the same, later", CUDA_ERROR_NOT_READY, cuEventQuery(events[0]));
        __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
        CU_OK(cuEventSynchronize(events[0]));
        CU_OK(cuEventQuery(events[0]));
    }
}

/* A graph records the event at each launch. */
static void check_graph(void) {
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode host, record;
    int word = 0;
    CUDA_HOST_NODE_PARAMS function = {.fn = wait_for_word, .userData = &word};
    CU_OK(cuGraphCreate(&graph, 0));
    CU_OK(cuGraphAddHostNode(&host, graph, NULL, 0, &function));
    CU_OK(cuGraphAddEventRecordNode(&record, graph, &host, 1, events[1]));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        __atomic_store_n(&word, 0, __ATOMIC_RELEASE);
        CU_OK(cuEventRecord(events[1], streams[0]));
        CU_OK(cuStreamSynchronize(streams[0]));
        CU_OK(cuEventQuery(events[1]));
        CU_OK(cuGraphLaunch(exec, streams[0]));
        check_equal("an event of a graph that runs", CUDA_ERROR_NOT_READY, cuEventQuery(events[1]));
        __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
        CU_OK(cuEventSynchronize(events[1]));
    }
    CU_OK(cuStreamSynchronize(streams[0]));
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    for (int i = 0; i < 2; i++) {
        CU_OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    for (int i = 0; i < SLOTS; i++) {
        CU_OK(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
    }
    run("short copies", SMALL, 0);
    run("long copies", LARGE, 0);
    run("managed memory", LARGE, 1);
    check_new_records();
    check_graph();
    for (int i = 0; i < SLOTS; i++) {
        CU_OK(cuEventDestroy(events[i]));
    }
    return check_pass("3 kinds of memory, %d pieces each", SLOTS * ROUNDS);
}
