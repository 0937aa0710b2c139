// Several threads capture, instantiate, launch, change and destroy their own graphs at the same time, with host
// functions, pageable copies and concurrent allocations and frees.
#include "check_cuda.h"

#include <atomic>
#include <thread>

__global__ void add(int *values, int count, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += value;
    }
}

static const int COUNT = 5000;

static void count_up(void *data) {
    ++*(std::atomic<int> *) data;
}

static void work(int thread, int rounds) {
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::vector<int> host(COUNT), back(COUNT);
    std::atomic<int> calls(0);
    int launched = 0;
    for (int round = 0; round < rounds; round++) {
        int *device = device_array<int>(COUNT);
        cudaGraph_t graph;
        CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CUDA_OK(cudaMemcpyAsync(device, host.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice, stream));
        CUDA_OK(cudaLaunchHostFunc(stream, count_up, &calls));
        add<<<(COUNT + 127) / 128, 128, 0, stream>>>(device, COUNT, thread);
        LAUNCH_OK();
        CUDA_OK(cudaMemcpyAsync(back.data(), device, COUNT * sizeof(int), cudaMemcpyDeviceToHost, stream));
        CUDA_OK(cudaStreamEndCapture(stream, &graph));
        cudaGraphExec_t exec;
        CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
        for (int launch = 0; launch < 5; launch++) {
            for (int i = 0; i < COUNT; i++) {
                host[i] = i + launch;
            }
            CUDA_OK(cudaGraphLaunch(exec, stream));
            launched++;
            CUDA_OK(cudaStreamSynchronize(stream));
            for (int i = 0; i < COUNT; i++) {
                check_element("a thread's own result", i, i + launch + thread, back[i]);
            }
        }
        for (int launch = 0; launch < 3; launch++) {
            CUDA_OK(cudaGraphLaunch(exec, stream));
            launched++;
        }
        CUDA_OK(cudaGraphExecDestroy(exec));
        CUDA_OK(cudaGraphDestroy(graph));
        CUDA_OK(cudaFree(device)); // waits for the launches
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    check_equal("a thread's host functions", launched, calls.load());
    CUDA_OK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const int threads = 4, rounds = 5;
    CUDA_OK(cudaFree(nullptr));
    std::atomic<bool> done(false);
    std::thread beside([&done] {
        while (!done) {
            void *memory, *pinned;
            CUDA_OK(cudaMalloc(&memory, 1 << 20));
            CUDA_OK(cudaMallocHost(&pinned, 1 << 16));
            CUDA_OK(cudaFreeHost(pinned));
            CUDA_OK(cudaFree(memory));
        }
    });
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++) {
        all.emplace_back(work, i, rounds);
    }
    for (std::thread &each : all) {
        each.join();
    }
    done = true;
    beside.join();
    return check_pass("%d threads, %d graphs", threads, threads * rounds);
}
