// Host functions and callbacks: in stream order, between kernels, in several streams, with the stream's status.
#include "check_cuda.h"

#include <atomic>
#include <mutex>

__global__ void set(int *value, int number) {
    *value = number;
}

static std::mutex lock;
static std::vector<int> order;

struct Step {
    int number;
    volatile int *seen; // pinned memory, filled by a copy before the function
    int expected;
};

static void host_function(void *data) {
    Step *step = (Step *) data;
    if (*step->seen != step->expected) {
        check_fail("what the host function of step %d sees, expected %d, got %d", step->number, step->expected,
                   *step->seen);
    }
    std::lock_guard<std::mutex> held(lock);
    order.push_back(step->number);
}

static void CUDART_CB callback(cudaStream_t stream, cudaError_t status, void *data) {
    (void) stream;
    if (status != cudaSuccess) {
        check_fail("status given to the callback, expected 0, got %d", (int) status);
    }
    host_function(data);
}

static void count_up(void *data) {
    ++*(std::atomic<int> *) data;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const int steps = 20;
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *device = device_array<int>(1);
    int *seen;
    CUDA_OK(cudaMallocHost(&seen, sizeof(int)));
    *seen = -1;
    std::vector<Step> all(steps);
    for (int i = 0; i < steps; i++) {
        all[i] = Step{i, seen, 100 + i};
        set<<<1, 1, 0, stream>>>(device, 100 + i);
        LAUNCH_OK();
        CUDA_OK(cudaMemcpyAsync(seen, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
        if (i % 2 == 0) {
            CUDA_OK(cudaLaunchHostFunc(stream, host_function, &all[i]));
        } else {
            CUDA_OK(cudaStreamAddCallback(stream, callback, &all[i], 0));
        }
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    check_equal("host functions run", steps, (long long) order.size());
    for (int i = 0; i < steps; i++) {
        check_element("order", i, i, order[i]);
    }

    // Many functions in several streams; an event and the device wait for them.
    std::atomic<int> count(0);
    cudaStream_t streams[3];
    for (cudaStream_t &each : streams) {
        CUDA_OK(cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking));
        for (int i = 0; i < 30; i++) {
            CUDA_OK(cudaLaunchHostFunc(each, count_up, &count));
        }
    }
    cudaEvent_t done;
    CUDA_OK(cudaEventCreate(&done));
    CUDA_OK(cudaStreamSynchronize(streams[0]));
    CUDA_OK(cudaEventRecord(done, streams[1]));
    CUDA_OK(cudaEventSynchronize(done));
    check_true("two streams' functions ran", count >= 60);
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("all functions ran", 90, count.load());
    for (cudaStream_t each : streams) {
        CUDA_OK(cudaStreamDestroy(each));
    }
    CUDA_OK(cudaEventDestroy(done));
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFreeHost(seen));
    CUDA_OK(cudaFree(device));
    return check_pass("%d in order between kernels, 90 in three streams", steps);
}
