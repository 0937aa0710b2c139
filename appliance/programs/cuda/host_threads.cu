// Several host threads in one process, each with its own stream or default stream, last error and current device. Also
// built with --default-stream per-thread.
#include "check_cuda.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

constexpr int THREADS = 6;
constexpr int COUNT = 5000;
constexpr int ROUNDS = 20;

__global__ void add(int *values, int count, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += addend;
    }
}

static void independent(int number) {
    int *values = device_array<int>(COUNT);
    CUDA_OK(cudaMemset(values, 0, COUNT * sizeof(int)));
    cudaStream_t stream = 0;
    if (number % 2 == 1) {
        CUDA_OK(cudaStreamCreate(&stream));
        // The memset is in the default stream. If that is this thread's own stream, it does not order the memset before
        // `stream`.
        CUDA_OK(cudaStreamSynchronize(0));
    }
    for (int round = 0; round < ROUNDS; round++) {
        add<<<(COUNT + 63) / 64, 64, 0, stream>>>(values, COUNT, number);
        LAUNCH_OK();
        if (round % 7 == number) {
            // An error belongs to the thread that caused it: the LAUNCH_OK() of other threads must not see it.
            CUDA_IS(cudaErrorInvalidValue, cudaMalloc((void **) nullptr, 1));
            CUDA_IS(cudaErrorInvalidValue, cudaPeekAtLastError());
            CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
        }
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    std::vector<int> got = host_copy(values, COUNT);
    for (int i = 0; i < COUNT; i++) {
        check_element("thread's result", i, ROUNDS * number, got[i]);
    }
    if (stream != 0) {
        CUDA_OK(cudaStreamDestroy(stream));
    }
    CUDA_OK(cudaFree(values));
}

// Threads pass one array on under a lock: their launches must run in the order of the lock. All use one stream.
static void hand_over() {
    std::mutex lock;
    std::condition_variable changed;
    int turn = 0;
    int *values = device_array<int>(COUNT);
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OK(cudaMemsetAsync(values, 0, COUNT * sizeof(int), stream));
    std::vector<int> host(COUNT);
    std::vector<std::thread> threads;
    for (int number = 0; number < THREADS; number++) {
        threads.emplace_back([&, number] {
            for (int round = 0; round < ROUNDS; round++) {
                std::unique_lock<std::mutex> held(lock);
                changed.wait(held, [&] { return turn % THREADS == number; });
                add<<<(COUNT + 63) / 64, 64, 0, stream>>>(values, COUNT, 1);
                LAUNCH_OK();
                if (round % 5 == number % 5) {
                    CUDA_OK(cudaMemcpyAsync(host.data(), values, COUNT * sizeof(int), cudaMemcpyDeviceToHost, stream));
                    CUDA_OK(cudaStreamSynchronize(stream));
                    for (int i = 0; i < COUNT; i++) {
                        check_element("after the hand-over", i, turn + 1, host[i]);
                    }
                }
                turn++;
                changed.notify_all();
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(values));
}

struct Gate {
    std::mutex lock;
    std::condition_variable changed;
    bool open = false;
};

static void wait_at_gate(void *data) {
    Gate *gate = (Gate *) data;
    std::unique_lock<std::mutex> held(gate->lock);
    gate->changed.wait(held, [gate] { return gate->open; });
}

// One thread waits for a stream that a host function blocks; the others continue to work and finally release the
// function.
static void blocking_synchronise() {
    Gate gate;
    cudaStream_t held_up;
    CUDA_OK(cudaStreamCreateWithFlags(&held_up, cudaStreamNonBlocking));
    int *values = device_array<int>(COUNT);
    CUDA_OK(cudaMemset(values, 0, COUNT * sizeof(int)));
    CUDA_OK(cudaDeviceSynchronize());
    std::atomic<bool> returned(false);
    CUDA_OK(cudaLaunchHostFunc(held_up, wait_at_gate, &gate));
    std::thread waiter([&] {
        CUDA_OK(cudaStreamSynchronize(held_up));
        returned = true;
    });
    std::thread worker([&] {
        cudaStream_t stream;
        CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (int round = 0; round < ROUNDS; round++) {
            add<<<(COUNT + 63) / 64, 64, 0, stream>>>(values, COUNT, 2);
            LAUNCH_OK();
            CUDA_OK(cudaStreamSynchronize(stream));
        }
        CUDA_IS(cudaErrorNotReady, cudaStreamQuery(held_up));
        check_true("the other thread still waits", !returned);
        CUDA_OK(cudaStreamDestroy(stream));
        std::unique_lock<std::mutex> held(gate.lock);
        gate.open = true;
        gate.changed.notify_all();
    });
    worker.join();
    waiter.join();
    check_true("the waiting thread returned", returned);
    std::vector<int> got = host_copy(values, COUNT);
    for (int i = 0; i < COUNT; i++) {
        check_element("work done meanwhile", i, 2 * ROUNDS, got[i]);
    }
    CUDA_OK(cudaStreamDestroy(held_up));
    CUDA_OK(cudaFree(values));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    std::vector<std::thread> threads;
    for (int number = 0; number < THREADS; number++) {
        threads.emplace_back(independent, number);
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    hand_over();
    blocking_synchronise();
    return check_pass("%d threads, %d hand-overs, a blocking synchronise beside work", THREADS, THREADS * ROUNDS);
}
