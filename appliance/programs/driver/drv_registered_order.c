/*
 * Copies from registered memory read it when the stream reaches them: after writes of the program, of host functions
 * and of earlier copies. No copy waits for a host function of another stream.
 */
#include "check_driver.h"

#include <pthread.h>
#include <stdbool.h>

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream);
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream);
CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags);
CUresult cuMemHostUnregister(void *p);

#define BYTES (5u << 20) /* more than one part of a copy */
#define STREAMS 24

static uint8_t *memory, *back;
static CUdeviceptr device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool open_gate;

static uint8_t byte(size_t i, int seed) {
    return (uint8_t) (i * 2654435761u >> 13 ^ i ^ (size_t) seed * 77);
}

static void fill(uint8_t *bytes, size_t count, int seed) {
    for (size_t i = 0; i < count; i++) {
        bytes[i] = byte(i, seed);
    }
}

static void check_bytes(const char *what, const uint8_t *bytes, size_t count, int seed) {
    for (size_t i = 0; i < count; i++) {
        check_element(what, (long long) i, byte(i, seed), bytes[i]);
    }
}

static void wait_at_gate(void *unused) {
    (void) unused;
    pthread_mutex_lock(&lock);
    while (!open_gate) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void set_gate(bool value) {
    pthread_mutex_lock(&lock);
    open_gate = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* The program writes after the call has returned and before the stream can reach the copy. */
static void written_by_the_program(CUstream stream, size_t bytes) {
    set_gate(false);
    fill(memory, bytes, 1);
    CU_OK(cuLaunchHostFunc(stream, wait_at_gate, NULL));
    CU_OK(cuMemcpyHtoDAsync(device, memory, bytes, stream));
    fill(memory, bytes, 2);
    set_gate(true);
    CU_OK(cuMemcpyDtoHAsync(back, device, bytes, stream));
    CU_OK(cuStreamSynchronize(stream));
    check_bytes("written by the program", back, bytes, 2);
    /* The stream has no work any more. */
    fill(memory, bytes, 3);
    CU_OK(cuMemcpyHtoDAsync(device, memory, bytes, stream));
    CU_OK(cuMemcpyDtoHAsync(back, device, bytes, stream));
    CU_OK(cuStreamSynchronize(stream));
    check_bytes("in an idle stream", back, bytes, 3);
}

/* A copy to the memory, and then copies from it, also a blocking one. */
static void written_by_a_copy(CUstream stream, CUdeviceptr other) {
    fill(back, BYTES, 4);
    CU_OK(cuMemcpyHtoD(device, back, BYTES));
    for (int blocking = 0; blocking < 2; blocking++) {
        memset(memory, 0, BYTES);
        CU_OK(cuMemcpyDtoHAsync(memory, device, BYTES, blocking ? NULL : stream));
        CU_OK(blocking ? cuMemcpyHtoD(other, memory, BYTES) : cuMemcpyHtoDAsync(other, memory, BYTES, stream));
        memset(back, 0, BYTES);
        CU_OK(cuMemcpyDtoHAsync(back, other, BYTES, blocking ? NULL : stream));
        CU_OK(cuStreamSynchronize(blocking ? NULL : stream));
        check_bytes(blocking ? "by a blocking copy" : "through registered memory", back, BYTES, 4);
    }
}

/* Rows with a pitch, in several slices. */
static void boxes(CUstream stream) {
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = memory,
                          .srcPitch = 1000,
                          .srcHeight = 50,
                          .srcXInBytes = 7,
                          .srcY = 3,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = device,
                          .dstPitch = 900,
                          .dstHeight = 40,
                          .WidthInBytes = 900,
                          .Height = 40,
                          .Depth = 90};
    set_gate(false);
    memset(memory, 0, BYTES);
    CU_OK(cuLaunchHostFunc(stream, wait_at_gate, NULL));
    CU_OK(cuMemcpy3DAsync_v2(&copy, stream));
    fill(memory, BYTES, 5);
    set_gate(true);
    CU_OK(cuMemcpyDtoHAsync(back, device, 900 * 40 * 90, stream));
    CU_OK(cuStreamSynchronize(stream));
    for (size_t i = 0; i < 900 * 40 * 90; i++) {
        size_t row = i / 900, from = ((row / 40) * 50 + 3 + row % 40) * 1000 + 7 + i % 900;
        check_element("a box", (long long) i, byte(from, 5), back[i]);
    }
}

/* A host function of one stream waits for the program, which waits for copies in other streams. */
static void beside_a_waiting_host_function(CUstream stream) {
    CUstream streams[STREAMS];
    size_t part = BYTES / STREAMS;
    set_gate(false);
    fill(memory, BYTES, 6);
    CU_OK(cuLaunchHostFunc(stream, wait_at_gate, NULL));
    for (int i = 0; i < STREAMS; i++) {
        CU_OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cuMemsetD8Async(device + part * (size_t) i, 0, part, streams[i]));
        CU_OK(cuMemcpyHtoDAsync(device + part * (size_t) i, memory + part * (size_t) i, part, streams[i]));
    }
    set_gate(true); /* natively streams share queues, so some would wait for the gate */
    for (int i = 0; i < STREAMS; i++) {
        CU_OK(cuStreamSynchronize(streams[i]));
        CU_OK(cuStreamDestroy(streams[i]));
    }
    CU_OK(cuMemcpyDtoH(back, device, part * STREAMS));
    check_bytes("of many streams", back, part * STREAMS, 6);
}

/* Streams come and go, more than any number of buffers. */
static void streams_that_come_and_go(void) {
    fill(memory, BYTES, 7);
    for (int i = 0; i < 200; i++) {
        CUstream stream;
        size_t at = (size_t) i * 20000;
        CU_OK(cuStreamCreate(&stream, i % 2));
        CU_OK(cuMemsetD8Async(device + at, 0, 20000, stream));
        CU_OK(cuMemcpyHtoDAsync(device + at, memory + at, 20000, stream));
        CU_OK(cuStreamDestroy(stream));
    }
    CU_OK(cuCtxSynchronize());
    CU_OK(cuMemcpyDtoH(back, device, 200 * 20000));
    check_bytes("of streams that come and go", back, 200 * 20000, 7);
}

/* More copies behind a host function than any queue holds, and a call that may wait for the device. */
static void many_behind_a_gate(CUstream stream) {
    set_gate(false);
    CU_OK(cuLaunchHostFunc(stream, wait_at_gate, NULL));
    for (size_t i = 0; i < 700; i++) {
        CU_OK(cuMemcpyHtoDAsync(device + i * 1000, memory + i * 1000, 1000, stream));
    }
    fill(memory, BYTES, 8);
    set_gate(true);
    CU_OK(cuMemFree(check_device(NULL, 1 << 20)));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemcpyDtoH(back, device, 700000));
    check_bytes("of many copies", back, 700000, 8);
}

/* The call waits for the copies that use the memory. */
static void unregistered_under_way(CUstream stream) {
    fill(memory, BYTES, 9);
    CU_OK(cuMemsetD8Async(device, 0, BYTES, stream));
    CU_OK(cuMemcpyHtoDAsync(device, memory, BYTES, stream));
    CU_OK(cuMemHostUnregister(memory));
    memset(memory, 0, BYTES);
    CU_OK(cuMemcpyDtoH(back, device, BYTES));
    check_bytes("unregistered at once", back, BYTES, 9);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    memory = check_memory(BYTES);
    back = check_memory(BYTES);
    device = check_device(NULL, BYTES);
    CUdeviceptr other = check_device(NULL, BYTES);
    CU_OK(cuMemHostRegister_v2(memory, BYTES, 0));
    static const size_t sizes[] = {1, 1000, 65536, 65537, 1 << 20, BYTES};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        written_by_the_program(stream, sizes[i]);
        written_by_the_program(NULL, sizes[i]);
    }
    written_by_a_copy(stream, other);
    boxes(stream);
    beside_a_waiting_host_function(stream);
    streams_that_come_and_go();
    many_behind_a_gate(stream);
    unregistered_under_way(stream);
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(device));
    CU_OK(cuMemFree(other));
    free(memory);
    free(back);
    return check_pass("%u bytes", BYTES);
}
