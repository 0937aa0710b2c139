// Concurrent streams, dependencies by events, queries, priorities, timing, and the legacy default stream's barrier.
#include "check_cuda.h"

__global__ void add(int *values, int count, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += addend;
    }
}

__global__ void multiply(int *values, const int *factors, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] *= factors[i];
    }
}

constexpr int COUNT = 20000;
constexpr int STREAMS = 4;
constexpr int ROUNDS = 10;

// Each stream: copy in, kernels, copy out; the program issues all before it waits for any.
static void overlap() {
    cudaStream_t streams[STREAMS];
    int *host[STREAMS], *device[STREAMS];
    int least = 0, greatest = 0;
    CUDA_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    check_true("priorities: greatest is numerically the lowest", greatest <= least);
    for (int s = 0; s < STREAMS; s++) {
        CUDA_OK(cudaStreamCreateWithPriority(&streams[s], cudaStreamNonBlocking, s % 2 ? greatest : least));
        CUDA_OK(cudaMallocHost(&host[s], COUNT * sizeof(int)));
        device[s] = device_array<int>(COUNT);
        for (int i = 0; i < COUNT; i++) {
            host[s][i] = i * (s + 1);
        }
    }
    for (int s = 0; s < STREAMS; s++) {
        CUDA_OK(cudaMemcpyAsync(device[s], host[s], COUNT * sizeof(int), cudaMemcpyHostToDevice, streams[s]));
        for (int round = 0; round < ROUNDS; round++) {
            add<<<(COUNT + 127) / 128, 128, 0, streams[s]>>>(device[s], COUNT, s);
            LAUNCH_OK();
        }
        CUDA_OK(cudaMemcpyAsync(host[s], device[s], COUNT * sizeof(int), cudaMemcpyDeviceToHost, streams[s]));
    }
    for (int s = STREAMS - 1; s >= 0; s--) {
        CUDA_OK(cudaStreamSynchronize(streams[s]));
        CUDA_OK(cudaStreamQuery(streams[s]));
        for (int i = 0; i < COUNT; i++) {
            check_element("stream's result", i, i * (s + 1) + ROUNDS * s, host[s][i]);
        }
        unsigned int flags = 0;
        int priority = 99;
        CUDA_OK(cudaStreamGetFlags(streams[s], &flags));
        CUDA_OK(cudaStreamGetPriority(streams[s], &priority));
        check_equal("flags", cudaStreamNonBlocking, flags);
        check_equal("priority", s % 2 ? greatest : least, priority);
        CUDA_OK(cudaStreamDestroy(streams[s]));
        CUDA_OK(cudaFreeHost(host[s]));
        CUDA_OK(cudaFree(device[s]));
    }
}

// Two streams compute values and factors in turn, ordered only by events.
static void dependencies() {
    cudaStream_t producer, consumer;
    cudaEvent_t produced, consumed, start, stop;
    CUDA_OK(cudaStreamCreateWithFlags(&producer, cudaStreamNonBlocking));
    CUDA_OK(cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking));
    CUDA_OK(cudaEventCreateWithFlags(&produced, cudaEventDisableTiming));
    CUDA_OK(cudaEventCreateWithFlags(&consumed, cudaEventDisableTiming | cudaEventBlockingSync));
    CUDA_OK(cudaEventCreate(&start));
    CUDA_OK(cudaEventCreate(&stop));
    CUDA_OK(cudaEventQuery(produced)); // never recorded: complete
    int *values = device_array<int>(COUNT), *factors = device_array<int>(COUNT);
    std::vector<int> ones(COUNT, 1);
    CUDA_OK(cudaMemcpy(values, ones.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemset(factors, 0, COUNT * sizeof(int)));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaEventRecord(start, producer));
    for (int round = 0; round < 6; round++) {
        CUDA_OK(cudaStreamWaitEvent(producer, consumed, 0)); // the first round waits for nothing
        add<<<(COUNT + 127) / 128, 128, 0, producer>>>(factors, COUNT, 1);
        LAUNCH_OK();
        CUDA_OK(cudaEventRecord(produced, producer));
        CUDA_OK(cudaStreamWaitEvent(consumer, produced, 0));
        multiply<<<(COUNT + 127) / 128, 128, 0, consumer>>>(values, factors, COUNT);
        LAUNCH_OK();
        CUDA_OK(cudaEventRecord(consumed, consumer));
    }
    CUDA_OK(cudaStreamWaitEvent(producer, consumed, 0));
    CUDA_OK(cudaEventRecord(stop, producer));
    CUDA_OK(cudaEventSynchronize(stop));
    CUDA_OK(cudaEventQuery(stop));
    float milliseconds = -1;
    CUDA_OK(cudaEventElapsedTime(&milliseconds, start, stop));
    check_true("elapsed time is not negative", milliseconds >= 0);
    CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, produced)); // no timing
    cudaGetLastError();
    std::vector<int> got = host_copy(values, COUNT);
    for (int i = 0; i < COUNT; i++) {
        check_element("6 factorial", i, 720, got[i]);
    }
    CUDA_OK(cudaEventDestroy(produced));
    CUDA_OK(cudaEventDestroy(consumed));
    CUDA_OK(cudaEventDestroy(start));
    CUDA_OK(cudaEventDestroy(stop));
    CUDA_OK(cudaStreamDestroy(producer));
    CUDA_OK(cudaStreamDestroy(consumer));
    CUDA_OK(cudaFree(values));
    CUDA_OK(cudaFree(factors));
}

// A blocking stream and the legacy default stream wait for each other without an event. The program names the legacy
// stream, because --default-stream per-thread changes the default stream.
static void legacy_default_stream() {
    cudaStream_t blocking;
    CUDA_OK(cudaStreamCreate(&blocking));
    int *values = device_array<int>(COUNT), *factors = device_array<int>(COUNT);
    std::vector<int> threes(COUNT, 3);
    CUDA_OK(cudaMemcpy(factors, threes.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemset(values, 0, COUNT * sizeof(int)));
    CUDA_OK(cudaDeviceSynchronize());
    for (int round = 0; round < 4; round++) {
        add<<<(COUNT + 127) / 128, 128, 0, blocking>>>(values, COUNT, 1);
        LAUNCH_OK();
        multiply<<<(COUNT + 127) / 128, 128, 0, cudaStreamLegacy>>>(values, factors, COUNT);
        LAUNCH_OK();
    }
    add<<<(COUNT + 127) / 128, 128, 0, blocking>>>(values, COUNT, 1000);
    LAUNCH_OK();
    std::vector<int> got(COUNT);
    CUDA_OK(cudaMemcpyAsync(got.data(), values, COUNT * sizeof(int), cudaMemcpyDeviceToHost, cudaStreamLegacy));
    CUDA_OK(cudaStreamSynchronize(cudaStreamLegacy)); // the copy waits for the blocking stream
    int expected = 0;
    for (int round = 0; round < 4; round++) {
        expected = (expected + 1) * 3;
    }
    for (int i = 0; i < COUNT; i++) {
        check_element("turns", i, expected + 1000, got[i]);
    }
    CUDA_OK(cudaStreamDestroy(blocking));
    CUDA_OK(cudaFree(values));
    CUDA_OK(cudaFree(factors));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    overlap();
    dependencies();
    legacy_default_stream();
    return check_pass("%d streams in flight, 6 hand-overs, default stream's barrier", STREAMS);
}
