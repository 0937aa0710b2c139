/* Streams, events between them, queries, elapsed time; destroyed streams that have work. */
#include "check_driver.h"

#include <unistd.h>

#define COUNT 8000
#define BUSY 3
#define SHORT 40

static volatile int released;
static int finished;

static void wait_for_release(void *unused) {
    (void) unused;
    while (!released) {
        usleep(1000);
    }
    finished++; /* one thread at a time runs host functions */
}

/* The work of a destroyed stream goes on, and later streams of the same kind do not wait for it. */
static void destroy_busy_streams(void) {
    CUdeviceptr value = check_device(NULL, 4);
    CUstream stream;
    int sent, received = -1;
    for (int i = 0; i < BUSY; i++) {
        CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cuLaunchHostFunc(stream, wait_for_release, NULL));
        CU_OK(cuStreamDestroy(stream));
    }
    for (sent = 0; sent < SHORT; sent++) {
        CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cuMemcpyHtoDAsync(value, &sent, 4, stream));
        CU_OK(cuMemcpyDtoHAsync(&received, value, 4, stream));
        CU_OK(cuStreamSynchronize(stream));
        check_element("a short-lived stream", sent, sent, received);
        CU_OK(cuStreamDestroy(stream));
    }
    check_equal("host functions that have returned", 0, finished);
    released = 1;
    CU_OK(cuCtxSynchronize());
    check_equal("host functions that have returned", BUSY, finished);
    CU_OK(cuMemFree(value));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUmodule module = check_module("kernels.ptx");
    CUfunction add = check_function(module, "add_value"), multiply = check_function(module, "multiply");
    CUstream producer, consumer;
    CUevent produced, consumed, start, stop;
    CU_OK(cuStreamCreate(&producer, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamCreate(&consumer, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&produced, CU_EVENT_DISABLE_TIMING));
    CU_OK(cuEventCreate(&consumed, CU_EVENT_DISABLE_TIMING));
    CU_OK(cuEventCreate(&start, CU_EVENT_DEFAULT));
    CU_OK(cuEventCreate(&stop, CU_EVENT_BLOCKING_SYNC));
    CU_OK(cuEventQuery(produced));
    int *host, count = COUNT, one = 1;
    CU_OK(cuMemAllocHost_v2((void **) &host, COUNT * 4));
    CUdeviceptr values = check_device(NULL, COUNT * 4), factors = check_device(NULL, COUNT * 4);
    CU_OK(cuMemsetD32(values, 1, COUNT));
    CU_OK(cuMemsetD32(factors, 0, COUNT));
    CU_OK(cuCtxSynchronize());
    CU_OK(cuEventRecord(start, producer));
    for (int round = 0; round < 8; round++) {
        CU_OK(cuStreamWaitEvent(producer, consumed, 0));
        CHECK_LAUNCH(add, (COUNT + 127) / 128, 128, 0, producer, &factors, &count, &one);
        CU_OK(cuEventRecord(produced, producer));
        CU_OK(cuStreamWaitEvent(consumer, produced, 0));
        CHECK_LAUNCH(multiply, (COUNT + 127) / 128, 128, 0, consumer, &values, &factors, &count);
        CU_OK(cuEventRecord(consumed, consumer));
    }
    CU_OK(cuMemcpyDtoHAsync(host, values, COUNT * 4, consumer));
    CU_OK(cuEventRecord(consumed, consumer));
    CU_OK(cuStreamWaitEvent(producer, consumed, 0));
    CU_OK(cuEventRecord(stop, producer));
    CU_OK(cuEventSynchronize(stop));
    CU_OK(cuEventQuery(stop));
    float milliseconds = -1;
    CU_OK(cuEventElapsedTime(&milliseconds, start, stop));
    check_true("elapsed time is not negative", milliseconds >= 0);
    CU_IS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, produced));
    for (int i = 0; i < COUNT; i++) {
        check_element("8 factorial", i, 40320, host[i]);
    }
    CU_OK(cuStreamQuery(producer));
    CU_OK(cuEventDestroy(produced));
    CU_OK(cuEventDestroy(consumed));
    CU_OK(cuEventDestroy(start));
    CU_OK(cuEventDestroy(stop));
    CU_OK(cuStreamDestroy(producer));
    CU_OK(cuStreamDestroy(consumer));
    CU_OK(cuMemFreeHost(host));
    CU_OK(cuMemFree(values));
    CU_OK(cuMemFree(factors));
    destroy_busy_streams();
    return check_pass("8 rounds between two streams, %d streams destroyed with work", BUSY);
}
