/*
 * When CUDA reads and writes pinned memory. A copy from it reads in stream order, even a small copy, so that an earlier
 * host function may still fill the memory. A copy to it has written before any later work.
 */
#include "check_driver.h"

#include <pthread.h>
#include <sys/wait.h>

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount);
CUresult cuMemcpyDtoH_v2_ptds(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount);

static const size_t sizes[] = {1, 64, 4000, 16384, 16385, 100000, 1 << 20, 5000001};
#define LARGEST 5000001

static uint8_t *pinned, *other, *plain;
static CUdeviceptr device;
static size_t size;

static uint8_t byte(size_t i, int seed) {
    return (uint8_t) (i * 2654435761u >> 13 ^ i ^ (size_t) seed * 77);
}

static void fill(uint8_t *bytes, int seed) {
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte(i, seed);
    }
}

static void check_bytes(const char *what, const uint8_t *bytes, int seed) {
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != byte(i, seed)) {
            check_fail("%s of %zu bytes, byte %zu, expected %d, got %d", what, size, i, byte(i, seed), bytes[i]);
        }
    }
}

static void fill_in_its_turn(void *seed) {
    fill(pinned, (int) (intptr_t) seed);
}

static int seen_in_its_turn;

static void look_in_its_turn(void *seed) {
    seen_in_its_turn =
        pinned[0] == byte(0, (int) (intptr_t) seed) && pinned[size - 1] == byte(size - 1, (int) (intptr_t) seed);
}

static void read_in_stream_order(CUstream stream) {
    fill(pinned, 1);
    CU_OK(cuLaunchHostFunc(stream, fill_in_its_turn, (void *) 2));
    CU_OK(cuMemcpyHtoDAsync(device, pinned, size, stream));
    CU_OK(cuLaunchHostFunc(stream, fill_in_its_turn, (void *) 3));
    CU_OK(cuMemcpyDtoHAsync(other, device, size, stream));
    CU_OK(cuStreamSynchronize(stream));
    check_bytes("read when the stream was there", other, 2);
    check_bytes("the memory afterwards", pinned, 3);
}

static void written_before_what_follows(CUstream stream) {
    fill(plain, 4);
    memset(pinned, 0, size);
    seen_in_its_turn = 0;
    CU_OK(cuMemcpyHtoDAsync(device, plain, size, stream));
    memset(plain, 0, size); /* pageable memory has been read when the call returns */
    CU_OK(cuMemcpyDtoHAsync(pinned, device, size, stream));
    CU_OK(cuLaunchHostFunc(stream, look_in_its_turn, (void *) 4));
    CU_OK(cuStreamSynchronize(stream));
    check_equal("the bytes are there for a host function", 1, seen_in_its_turn);
    CUevent event;
    CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    memset(pinned, 0, size);
    CU_OK(cuMemcpyDtoHAsync(pinned, device, size, stream));
    CU_OK(cuEventRecord(event, stream));
    CU_OK(cuEventSynchronize(event));
    check_bytes("behind an event", pinned, 4);
    CU_OK(cuEventDestroy(event));
}

/* A blocking copy from pinned memory is complete when it returns: another stream, which waits for nothing, sees the
 * data. */
static void over_when_it_returns(CUstream stream) {
    fill(pinned, 5);
    CU_OK(cuMemcpyHtoD(device, pinned, size));
    CU_OK(cuMemcpyDtoHAsync(other, device, size, stream));
    memset(pinned, 0, size);
    CU_OK(cuStreamSynchronize(stream));
    check_bytes("seen by another stream", other, 5);
    CU_OK(cuMemcpyDtoH(other, device, size));
    check_bytes("the source may be used again", other, 5);
    CU_OK(cuMemcpyDtoH(plain, device, size));
    check_bytes("to pageable memory", plain, 5);
    /* Copies between pinned and pageable memory determine the kind of each end from its address. */
    CU_OK(cuMemcpy((CUdeviceptr) (uintptr_t) pinned, device, size));
    check_bytes("of unified addresses", pinned, 5);
    CU_OK(cuMemcpy(device, (CUdeviceptr) (uintptr_t) plain, size));
}

/* A program may free memory while copies wait in a stream: the call waits for them. */
static void freed_with_copies_under_way(CUstream stream) {
    uint8_t *source, *target;
    CU_OK(cuMemAllocHost_v2((void **) &source, size));
    CU_OK(cuMemHostAlloc((void **) &target, size, CU_MEMHOSTALLOC_PORTABLE));
    for (size_t i = 0; i < size; i++) {
        source[i] = byte(i, 6);
    }
    CU_OK(cuMemcpyHtoDAsync(device, source, size, stream));
    CU_OK(cuMemcpyDtoHAsync(target, device, size, stream));
    CU_OK(cuMemFreeHost(source));
    CU_OK(cuMemFreeHost(target));
    CU_OK(cuMemcpyDtoH(other, device, size));
    check_bytes("freed at once", other, 6);
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(source));
}

static void *own_default_stream(void *argument) {
    CUcontext context = argument;
    CU_OK(cuCtxSetCurrent(context));
    size_t bytes = 300000;
    uint8_t *memory, *result = check_memory(bytes);
    CU_OK(cuMemAllocHost_v2((void **) &memory, bytes));
    CUdeviceptr mine = check_device(NULL, bytes);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < bytes; i++) {
            memory[i] = byte(i, round);
        }
        CU_OK(cuMemcpyHtoD_v2_ptds(mine, memory, bytes));
        memset(memory, 0, bytes);
        CU_OK(round % 2 == 0 ? cuMemcpyDtoH_v2_ptds(memory, mine, bytes) : cuMemcpyDtoH_v2_ptds(result, mine, bytes));
        const uint8_t *got = round % 2 == 0 ? memory : result;
        for (size_t i = 0; i < bytes; i++) {
            check_element("by the thread's default stream", (long long) i, byte(i, round), got[i]);
        }
    }
    CU_OK(cuMemFree(mine));
    CU_OK(cuMemFreeHost(memory));
    free(result);
    return NULL;
}

/* A forked child has neither the session nor the memory; its parent keeps both. */
static void forked(void) {
    fill(pinned, 8);
    pid_t pid = fork();
    if (pid == 0) {
        void *memory;
        _exit(cuMemAllocHost_v2(&memory, 100) == CUDA_ERROR_NOT_INITIALIZED
                      && cuMemcpyHtoD(device, other, 1) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    }
    int status = -1;
    check_true("a child process", pid > 0 && waitpid(pid, &status, 0) == pid);
    check_equal("the child's status", 0, status);
    check_bytes("the parent's memory", pinned, 8);
    CU_OK(cuMemcpyHtoD(device, pinned, size));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CUcontext context = check_context();
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuMemHostAlloc((void **) &pinned, LARGEST, 0));
    CU_OK(cuMemHostAlloc((void **) &other, LARGEST, CU_MEMHOSTALLOC_PORTABLE));
    plain = check_memory(LARGEST);
    device = check_device(NULL, LARGEST);
    for (size_t i = 0; i < LARGEST; i++) {
        check_element("pinned memory comes as zeros", (long long) i, 0, pinned[i]);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size = sizes[i];
        read_in_stream_order(stream);
        written_before_what_follows(stream);
        over_when_it_returns(stream);
        freed_with_copies_under_way(stream);
    }
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        check_equal("a thread", 0, pthread_create(&threads[i], NULL, own_default_stream, context));
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    forked();
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(device));
    CU_OK(cuMemFreeHost(pinned));
    CU_OK(cuMemFreeHost(other));
    free(plain);
    return check_pass("%zu sizes", sizeof sizes / sizeof *sizes);
}
