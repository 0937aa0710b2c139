/*
 * Managed variables from a program's side, against a broker in a thread, where the kernel forbids none of the ways to
 * trap accesses. Each rule runs in a process of its own.
 */
#include "fake_broker.h"
#include "rules.h"

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

int main(void) {
    RUN(shouldShowTheHostEachVariableOfAPage, 0);
    RUN(shouldKeepVariablesOfAModuleWhenAnotherOfTheSamePageGoes, 0);
    RUN(shouldLoadAgainWhereTheProcessUsesTheAddresses, 0);
    RUN(shouldGiveUpAfterSomeLoads, 1);
    RUN(shouldRefuseVariablesThatAHostileWorkerPlaces, 1);
    RUN(shouldTakeVariablesAwayWithTheirContext, 0);
    return 0;
}
