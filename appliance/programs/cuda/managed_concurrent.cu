// Managed memory that the host and running kernels use at the same time: flags in both directions, data behind a flag,
// bytes of one page from both sides, several streams, events, host functions and threads.
#include "check_conversation.h"

#include <atomic>
#include <string.h>
#include <thread>

static const int PAGE = 4096, COUNT = 1 << 18;

template <typename T> static T *managed_array(size_t count) {
    T *array = nullptr;
    CUDA_OK(cudaMallocManaged(&array, count * sizeof(T)));
    return array;
}

__global__ void write_bytes(volatile unsigned char *bytes, int first, int step, int count, volatile int *go) {
    while (*go == 0) {
    }
    for (int i = first; i < count; i += step) {
        bytes[i] = (unsigned char) (i % 251 + 1);
    }
}

__global__ void add(int *values, int count, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += addend;
    }
}

static void launch_add(int *values, int count, int addend, cudaStream_t stream) {
    add<<<(count + 255) / 256, 256, 0, stream>>>(values, count, addend);
    LAUNCH_OK();
}

static void converse_managed(size_t apart) {
    int *words = managed_array<int>(conversation_size(apart));
    converse(words, apart);
    CUDA_OK(cudaFree(words));
}

// Even bytes from the host and odd ones from the kernel, in the same pages at the same time.
static void merge() {
    const int bytes = 4 * PAGE;
    unsigned char *shared = managed_array<unsigned char>(bytes);
    int *go = managed_array<int>(1);
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    write_bytes<<<1, 1, 0, stream>>>(shared, 1, 2, bytes, go);
    LAUNCH_OK();
    shared[0] = 1;
    *go = 1;
    for (int i = 0; i < bytes; i += 2) {
        shared[i] = (unsigned char) (i % 251 + 1);
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < bytes; i++) {
        check_element("merged byte", i, i % 251 + 1, shared[i]);
    }
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(shared));
    CUDA_OK(cudaFree(go));
}

static void check_values(const char *what, const int *values, int count, int addend) {
    for (int i = 0; i < count; i++) {
        check_element(what, i, i + addend, values[i]);
    }
}

// Waits of every kind, after which the host sees the kernel's results.
static void waits() {
    int *values = managed_array<int>(COUNT), sum = 0;
    cudaStream_t streams[2];
    cudaEvent_t event;
    CUDA_OK(cudaEventCreate(&event));
    for (cudaStream_t &stream : streams) {
        CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    for (int i = 0; i < COUNT; i++) {
        values[i] = i;
    }
    launch_add(values, COUNT, 1, streams[0]);
    CUDA_OK(cudaStreamSynchronize(streams[0]));
    check_values("after cudaStreamSynchronize", values, COUNT, sum += 1);
    launch_add(values, COUNT, 2, streams[0]);
    CUDA_OK(cudaEventRecord(event, streams[0]));
    CUDA_OK(cudaEventSynchronize(event));
    check_values("after cudaEventSynchronize", values, COUNT, sum += 2);
    launch_add(values, COUNT, 3, streams[0]);
    while (cudaStreamQuery(streams[0]) == cudaErrorNotReady) {
    }
    check_values("after cudaStreamQuery", values, COUNT, sum += 3);
    launch_add(values, COUNT, 4, streams[0]);
    CUDA_OK(cudaEventRecord(event, streams[0]));
    CUDA_OK(cudaStreamWaitEvent(streams[1], event, 0));
    launch_add(values, COUNT, 5, streams[1]);
    while (cudaStreamQuery(streams[1]) == cudaErrorNotReady) {
    }
    check_values("after a stream that waited", values, COUNT, sum += 9);
    launch_add(values, COUNT, 6, nullptr);
    int last = 0;
    CUDA_OK(cudaMemcpy(&last, values + COUNT - 1, sizeof last, cudaMemcpyDefault));
    check_equal("a copy", COUNT - 1 + sum + 6, last);
    check_values("after a blocking copy", values, COUNT, sum += 6);
    launch_add(values, COUNT, 7, streams[0]);
    struct Seen {
        const int *values;
        std::atomic<long long> sum;
    } seen = {values, {0}};
    CUDA_OK(cudaLaunchHostFunc(
        streams[0],
        [](void *data) {
            Seen *into = (Seen *) data;
            long long total = 0;
            for (int i = 0; i < COUNT; i++) {
                total += into->values[i];
            }
            into->sum = total;
        },
        &seen));
    CUDA_OK(cudaStreamSynchronize(streams[0]));
    sum += 7;
    check_true("in a host function", seen.sum == (long long) COUNT * (COUNT - 1) / 2 + (long long) COUNT * sum);
    CUDA_OK(cudaMemset(values, 0, COUNT * sizeof(int)));
    check_equal("after cudaMemset", 0, values[COUNT - 1]);
    for (cudaStream_t stream : streams) {
        CUDA_OK(cudaStreamDestroy(stream));
    }
    CUDA_OK(cudaEventDestroy(event));
    CUDA_OK(cudaFree(values));
}

// The host uses one array while kernels use another, and copies take managed memory as the host's.
static void apart() {
    const int width = 100, height = 60;
    int *values = managed_array<int>(COUNT), *other = managed_array<int>(COUNT);
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    long long total = 0;
    for (int round = 0; round < 30; round++) {
        launch_add(values, COUNT, 1, stream);
        for (int i = round; i < COUNT; i += 4099) {
            other[i] += round;
            total += round;
        }
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++) {
        check_element("the kernels' array", i, 30, values[i]);
        total -= other[i];
    }
    check_true("the host's array", total == 0);
    for (int i = 0; i < width * height; i++) {
        other[i] = i;
    }
    int *device = device_array<int>(width * height);
    CUDA_OK(cudaMemcpy2D(device, width * sizeof(int), other, width * sizeof(int), width * sizeof(int), height,
                         cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy2DAsync(values, width * sizeof(int), device, width * sizeof(int), width * sizeof(int), height,
                              cudaMemcpyDeviceToHost, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    check_values("a box", values, width * height, 0);
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaFree(values));
    CUDA_OK(cudaFree(other));
}

// Each thread has its own stream and its own part of one array; parts share pages.
static void threads() {
    const int workers = 4, part = 10000, rounds = 10;
    int *values = managed_array<int>(workers * part);
    std::vector<std::thread> running;
    for (int t = 0; t < workers; t++) {
        running.emplace_back([=] {
            cudaStream_t stream;
            CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            int *mine = values + t * part;
            for (int round = 0; round < rounds; round++) {
                for (int i = 0; i < part; i += 7) {
                    mine[i] += 1;
                }
                launch_add(mine, part, 10, stream);
                CUDA_OK(cudaStreamSynchronize(stream));
            }
            CUDA_OK(cudaStreamDestroy(stream));
        });
    }
    for (std::thread &thread : running) {
        thread.join();
    }
    for (int i = 0; i < workers * part; i++) {
        check_element("threads", i, rounds * (10 + (i % part % 7 == 0)), values[i]);
    }
    CUDA_OK(cudaFree(values));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    if (!check_attribute(cudaDevAttrConcurrentManagedAccess)) {
        check_unsupported("the device has no concurrent access to managed memory (attribute 89)");
    }
    waits();
    apart();
    converse_managed(16);
    converse_managed(PAGE);
    merge();
    threads();
    return check_pass("waits, flags in both directions, merged bytes, %d values", COUNT);
}
