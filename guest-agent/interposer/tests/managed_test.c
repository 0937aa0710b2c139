/*
 * Managed variables from a program's side, against a broker in a thread, where the kernel forbids none of the ways to
 * trap accesses. Each rule runs in a process of its own.
 */
#include "mirror_turns.h"

#include "fake_broker.h"
#include "rules.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define BASE 0x230000000000ull
#define PAGE 4096u
#define TRIES 8u /* loads of one image */

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

static void start(uint32_t count, uint64_t step) {
    CUdevice device;
    CUcontext context;
    broker_managed.base = broker_managed.address = BASE;
    broker_managed.step = step;
    broker_managed.distance = 0x10000;
    broker_managed.count = count;
    broker_start(BROKER_KIND);
    HWS_CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

static volatile int *variable(uint64_t offset) {
    return (volatile int *) (BASE + offset);
}

static int on_device(uint64_t offset) {
    int value;
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS); /* a round trip: the broker has done what came before */
    memcpy(&value, broker_managed.bytes + offset, sizeof value);
    return value;
}

static void put_on_device(uint64_t offset, int value) {
    HWS_CHECK(cuMemsetD8_v2(BASE, 0, 1) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
    memcpy(broker_managed.bytes + offset, &value, sizeof value);
    atomic_thread_fence(memory_order_seq_cst); /* before the library's thread reads it */
}

static CUmodule load(void) {
    CUmodule module;
    HWS_CHECK(cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
    return module;
}

/* Loads a module whose variables begin at this address. */
static CUmodule load_at(uint64_t address) {
    broker_managed.address = address;
    return load();
}

static void *take(uint64_t address, size_t bytes) {
    void *wanted = (void *) (uintptr_t) address;
    HWS_CHECK(mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
              == wanted);
    memset(wanted, 'o', bytes);
    return wanted;
}

static sigjmp_buf fault;

static void leave(int number) {
    (void) number;
    siglongjmp(fault, 1);
}

static bool is_readable(volatile int *address) {
    struct sigaction action = {.sa_handler = leave}, before;
    sigaction(SIGSEGV, &action, &before);
    bool readable = sigsetjmp(fault, 1) == 0 && (*address, true);
    sigaction(SIGSEGV, &before, NULL);
    return readable;
}

static void shouldShowTheHostEachVariableOfAPage(void) {
    start(10, 512);
    for (int i = 0; i < 10; i++) {
        memcpy(broker_managed.bytes + 512 * i, &(int) {100 + i}, sizeof(int));
        memset(broker_managed.bytes + 512 * i + 4, 0xEE, 508); /* other bytes of the GPU do not travel */
    }
    load();
    for (unsigned i = 0; i < 10; i++) {
        HWS_CHECK(*variable(512 * i) == 100 + (int) i && *variable(512 * i + 4) == 0);
    }
    *variable(512) = 7;
    *variable(9 * 512) = 9;
    *variable(516) = 1; /* outside of variables */
    HWS_CHECK(cuMemsetD8_v2(BASE, 0, 1) == CUDA_SUCCESS);
    HWS_CHECK(on_device(512) == 7 && on_device(9 * 512) == 9 && on_device(0) == 100);
    HWS_CHECK(on_device(516) == (int) 0xEEEEEEEE);
    put_on_device(2 * 512, 55);
    HWS_CHECK(*variable(2 * 512) == 55 && *variable(512) == 7);
}

static void shouldKeepVariablesOfAModuleWhenAnotherOfTheSamePageGoes(void) {
    start(3, 512);
    CUmodule first = load();
    *variable(0) = 1;
    broker_managed.address += 3 * 512; /* of the next module */
    memcpy(broker_managed.bytes + 3 * 512, &(int) {77}, sizeof(int));
    CUmodule second = load();
    HWS_CHECK(*variable(3 * 512) == 77);
    *variable(3 * 512) = 78;
    HWS_CHECK(cuModuleUnload(first) == CUDA_SUCCESS);
    HWS_CHECK(*variable(3 * 512) == 78);
    HWS_CHECK(cuModuleUnload(second) == CUDA_SUCCESS && !is_readable(variable(0)));
    HWS_CHECK(munmap(take(BASE, PAGE), PAGE) == 0); /* the addresses are free */
}

static void shouldLoadAgainWhereTheProcessUsesTheAddresses(void) {
    start(3, PAGE);
    uint8_t *own = take(BASE + PAGE, PAGE), *other = take(BASE + 0x10000 + 2 * PAGE, PAGE);
    CUmodule module = load();
    CUdeviceptr address;
    size_t bytes;
    HWS_CHECK(cuModuleGetGlobal_v2(&address, &bytes, module, "counter") == CUDA_SUCCESS && bytes == 4);
    HWS_CHECK(address == BASE + 2 * 0x10000 && broker_managed.loads == 3);
    *(volatile int *) (uintptr_t) address = 5;
    HWS_CHECK(on_device(0) == 0 && broker_managed.unloads == 2);
    for (unsigned i = 0; i < PAGE; i++) {
        HWS_CHECK(own[i] == 'o' && other[i] == 'o');
    }
    HWS_CHECK(munmap(take(BASE, PAGE), PAGE) == 0); /* no try has left a page */
    int managed = 0;
    HWS_CHECK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS && managed);
    HWS_CHECK(cuMemFree_v2(address) == CUDA_ERROR_INVALID_VALUE);
}

static void shouldGiveUpAfterSomeLoads(void) {
    start(1, PAGE);
    take(BASE, TRIES * 0x10000);
    CUmodule module = NULL;
    HWS_CHECK(cuModuleLoadData(&module, ptx) == CUDA_ERROR_OUT_OF_MEMORY && module == NULL);
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS && broker_managed.loads == TRIES && broker_managed.unloads == TRIES);
    broker_managed.count = 0;
    load();
}

static void shouldRefuseVariablesThatAHostileWorkerPlaces(void) {
    start(1, PAGE);
    static const uint64_t addresses[] = {0, 8, 1ull << 47, ~0ull - 2, ~0ull};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        CUmodule module;
        broker_managed.address = addresses[i];
        broker_managed.distance = 0;
        HWS_CHECK(cuModuleLoadData(&module, ptx) != CUDA_SUCCESS);
    }
    int local = 3; /* memory of the guest */
    CUmodule module;
    broker_managed.address = (uint64_t) (uintptr_t) &local;
    HWS_CHECK(cuModuleLoadData(&module, ptx) == CUDA_ERROR_OUT_OF_MEMORY && local == 3);
}

static void shouldTakeVariablesAwayWithTheirContext(void) {
    start(1, PAGE);
    CUcontext context;
    HWS_CHECK(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    CUmodule module = load();
    HWS_CHECK(is_readable(variable(0)));
    HWS_CHECK(cuCtxDestroy_v2(context) == CUDA_SUCCESS && !is_readable(variable(0)));
    HWS_CHECK(cuModuleUnload(module) != CUDA_ERROR_NOT_INITIALIZED);
}

/* Pages that both sides use in turn ------------------------------------------------------------------------------ */

#define TURNS 300 /* long enough to see that something ends */
#define LEARNING 20

static CUfunction kernel;

/* A program whose kernel adds 1 to variables. */
static void start_turns(uint32_t count, uint64_t step, uint32_t counters) {
    start(count, step);
    broker_managed.counters = counters;
    HWS_CHECK(cuModuleGetFunction(&kernel, load(), "kernel") == CUDA_SUCCESS);
}

static void launch(CUstream stream) {
    int first = 0;
    double second = 0;
    char third = 0;
    void *params[] = {&first, &second, &third};
    HWS_CHECK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL) == CUDA_SUCCESS);
}

static void launch_and_wait(void) {
    launch(NULL);
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
}

/* Reads of the device since the last call: by faults, and with waits. */
static unsigned late_reads(void) {
    return atomic_exchange(&broker_late_reads, 0);
}

static unsigned early_reads(void) {
    return atomic_exchange(&broker_early_reads, 0);
}

static void shouldBringAPageThatBothSidesWriteInTurn(void) {
    start_turns(1, PAGE, 1);
    for (int i = 0; i < TURNS; i++) {
        *variable(0) = 3 * i;
        launch_and_wait();
        HWS_CHECK(*variable(0) == 3 * i + 1);
        if (i == LEARNING) {
            late_reads();
            early_reads();
        }
    }
    HWS_CHECK(late_reads() == 0 && early_reads() == TURNS - 1 - LEARNING);
}

static void shouldBringAPageThatTheHostOnlyReads(void) {
    start_turns(1, PAGE, 1);
    for (int i = 0; i < TURNS; i++) {
        launch_and_wait();
        HWS_CHECK(*variable(0) == i + 1);
    }
    unsigned late = late_reads();
    HWS_CHECK(late >= HWS_TURNS_TO_JOIN && late < TURNS / 20 && early_reads() > TURNS * 9 / 10);
}

/* The copies cannot follow the work of two streams. The values are right all the same. */
static void shouldBringAPageWhoseWorkIsInSeveralStreams(void) {
    CUstream streams[2];
    start_turns(1, PAGE, 1);
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    }
    for (int i = 0; i < TURNS; i++) {
        *variable(0) = 5 * i;
        launch(streams[i % 2]);
        launch(streams[1 - i % 2]);
        HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
        HWS_CHECK(*variable(0) == 5 * i + 2);
    }
}

static void shouldForgetAPageThatTheHostNoLongerUses(void) {
    start_turns(1, PAGE, 1);
    for (int i = 0; i < LEARNING; i++) {
        *variable(0) = 0;
        launch_and_wait();
        HWS_CHECK(*variable(0) == 1);
    }
    for (int i = 0; i < LEARNING; i++) {
        launch_and_wait();
    }
    HWS_CHECK(early_reads() != 0);
    late_reads();
    for (int i = 0; i < TURNS; i++) {
        launch_and_wait();
    }
    HWS_CHECK(early_reads() == 0 && late_reads() == 0);
    HWS_CHECK(*variable(0) == 1 + LEARNING + TURNS);
}

/* 100 pages are more than travel with a wait. */
static void shouldBringFewOfManyPages(void) {
    start_turns(100, 2 * PAGE, 0);
    for (int i = 0; i < LEARNING; i++) {
        for (unsigned page = 0; page < 100; page++) {
            *variable(2 * PAGE * page) += 1;
        }
        early_reads();
        launch_and_wait();
    }
    unsigned early = early_reads();
    HWS_CHECK(early != 0 && early <= HWS_TURN_PAGES);
    for (unsigned page = 0; page < 100; page++) {
        HWS_CHECK(*variable(2 * PAGE * page) == LEARNING);
    }
}

static void shouldMergeWhatBothSidesWriteToAPage(void) {
    start_turns(6, 512, 3); /* the kernel has the first three, the host the others */
    for (int i = 1; i <= TURNS; i++) {
        *variable(3 * 512) = i;
        *variable(5 * 512) = -i;
        launch_and_wait();
        HWS_CHECK(*variable(0) == i && *variable(2 * 512) == i);
        HWS_CHECK(*variable(3 * 512) == i && *variable(4 * 512) == 0 && *variable(5 * 512) == -i);
    }
    HWS_CHECK(on_device(5 * 512) == -TURNS && on_device(0) == TURNS);
}

static _Atomic bool is_over;

static void *count_up(void *offset) {
    volatile int *counter = variable((uint64_t) (uintptr_t) offset);
    int before = *counter;
    while (!atomic_load(&is_over)) {
        HWS_CHECK(*counter == before); /* only this thread writes it */
        *counter = ++before;
    }
    return (void *) (intptr_t) before;
}

static void *watch_counter(void *unused) {
    int before = 0;
    (void) unused;
    while (!atomic_load(&is_over)) {
        int now = *variable(0);
        HWS_CHECK(now >= before);
        before = now;
    }
    return NULL;
}

/* Threads use the page at any time: what each writes stays, and what they read does not go back. */
static void shouldLoseNothingThatThreadsWriteMeanwhile(void) {
    pthread_t writers[2], reader;
    void *last[2];
    start_turns(8, 512, 1);
    for (uint64_t i = 0; i < 2; i++) {
        HWS_CHECK(pthread_create(&writers[i], NULL, count_up, (void *) (uintptr_t) ((i + 3) * 512)) == 0);
    }
    HWS_CHECK(pthread_create(&reader, NULL, watch_counter, NULL) == 0);
    for (int i = 1; i <= TURNS; i++) {
        *variable(2 * 512) = i;
        launch_and_wait();
        HWS_CHECK(*variable(0) == i && *variable(2 * 512) == i);
    }
    atomic_store(&is_over, true);
    HWS_CHECK(pthread_join(reader, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(pthread_join(writers[i], &last[i]) == 0);
    }
    launch_and_wait();
    for (uint64_t i = 0; i < 2; i++) {
        HWS_CHECK(on_device((i + 3) * 512) == (int) (intptr_t) last[i]);
    }
}

static CUstream own_stream;

static void *wait_for_own_stream(void *unused) {
    CUcontext context;
    (void) unused;
    HWS_CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamSynchronize(own_stream) == CUDA_SUCCESS);
    return NULL;
}

/* The page came with the wait, but before the wait has ended, other work has changed it, and has ended. */
static void shouldNotShowAPageThatLaterWorkHasChanged(void) {
    CUstream other;
    pthread_t waiter;
    start_turns(1, PAGE, 1);
    HWS_CHECK(cuStreamCreate(&own_stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    for (int i = 0; i < LEARNING; i++) {
        *variable(0) = 10;
        launch(own_stream);
        HWS_CHECK(cuStreamSynchronize(own_stream) == CUDA_SUCCESS && *variable(0) == 11);
    }
    early_reads();
    *variable(0) = 20;
    launch(own_stream);
    atomic_store(&broker_hold, HOLD_NEXT);
    HWS_CHECK(pthread_create(&waiter, NULL, wait_for_own_stream, NULL) == 0);
    while (atomic_load(&broker_hold) != HOLD_ONE) {
        sched_yield();
    }
    HWS_CHECK(early_reads() == 1);
    launch(other);
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
    atomic_store(&broker_hold, HOLD_NONE);
    HWS_CHECK(cuStreamQuery(other) == CUDA_SUCCESS);
    HWS_CHECK(pthread_join(waiter, NULL) == 0);
    HWS_CHECK(*variable(0) == 22);
}

/* The host gets the page after the first stream's wait, while the second stream's kernel may still write it. */
static void shouldNotShowAPageThatUnfinishedWorkHasChanged(void) {
    CUstream streams[2];
    start_turns(1, PAGE, 0);
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    }
    for (int i = 1; i <= TURNS; i++) {
        launch(streams[0]);
        launch(streams[1]);
        atomic_store(&broker_is_busy, true);
        HWS_CHECK(cuStreamSynchronize(streams[0]) == CUDA_SUCCESS);
        HWS_CHECK(*variable(0) == i - 1);
        memcpy(broker_managed.bytes, &i, sizeof i); /* by the second kernel */
        atomic_store(&broker_is_busy, false);
        HWS_CHECK(cuStreamSynchronize(streams[1]) == CUDA_SUCCESS);
        HWS_CHECK(*variable(0) == i);
    }
}

/* The copies of the failed wait have not been waited for: the next wait covers them, and brings nothing. */
static void shouldBringPagesAgainAfterAWaitThatFailed(void) {
    start_turns(1, PAGE, 1);
    for (int i = 0; i < TURNS; i++) {
        *variable(0) = 3 * i;
        launch(NULL);
        bool fails = i == LEARNING;
        if (fails) {
            while (cuStreamQuery(NULL) != CUDA_SUCCESS) { /* the broker has done what came before */
            }
            atomic_store(&broker_status_of_next_sync, CUDA_ERROR_INVALID_VALUE);
        }
        HWS_CHECK(cuCtxSynchronize() == (fails ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS));
        HWS_CHECK(*variable(0) == 3 * i + 1);
        if (i == LEARNING + 2) {
            late_reads();
            early_reads();
        }
    }
    HWS_CHECK(late_reads() == 0 && early_reads() == TURNS - 3 - LEARNING);
}

static void shouldKeepPagesOfAModuleApartFromThoseOfTheNext(void) {
    start_turns(1, PAGE, 1);
    CUmodule module = load_at(BASE + PAGE);
    for (int i = 0; i < LEARNING; i++) {
        *variable(0) = i;
        *variable(PAGE) = -i;
        launch_and_wait();
        HWS_CHECK(*variable(0) == i + 1 && *variable(PAGE) == -i);
    }
    HWS_CHECK(cuModuleUnload(module) == CUDA_SUCCESS && !is_readable(variable(PAGE)));
    memset(broker_managed.bytes + PAGE, 0x11, PAGE);
    load_at(BASE + PAGE);
    launch_and_wait();
    HWS_CHECK(*variable(PAGE) == 0x11111111 && *variable(0) == LEARNING + 1);
}

int main(void) {
    RUN(shouldShowTheHostEachVariableOfAPage, 0);
    RUN(shouldKeepVariablesOfAModuleWhenAnotherOfTheSamePageGoes, 0);
    RUN(shouldLoadAgainWhereTheProcessUsesTheAddresses, 0);
    RUN(shouldGiveUpAfterSomeLoads, 1);
    RUN(shouldRefuseVariablesThatAHostileWorkerPlaces, 1);
    RUN(shouldTakeVariablesAwayWithTheirContext, 0);
    RUN(shouldBringAPageThatBothSidesWriteInTurn, 0);
    RUN(shouldBringAPageThatTheHostOnlyReads, 0);
    RUN(shouldBringAPageWhoseWorkIsInSeveralStreams, 0);
    RUN(shouldForgetAPageThatTheHostNoLongerUses, 0);
    RUN(shouldBringFewOfManyPages, 0);
    RUN(shouldMergeWhatBothSidesWriteToAPage, 0);
    RUN(shouldLoseNothingThatThreadsWriteMeanwhile, 0);
    RUN(shouldNotShowAPageThatLaterWorkHasChanged, 0);
    RUN(shouldNotShowAPageThatUnfinishedWorkHasChanged, 0);
    RUN(shouldBringPagesAgainAfterAWaitThatFailed, 0);
    RUN(shouldKeepPagesOfAModuleApartFromThoseOfTheNext, 0);
    return 0;
}
