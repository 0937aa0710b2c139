// A program may end with work in flight and with calls in destructors: it must not hang or crash, and exits with 0.
#include "check_cuda.h"

#include <thread>

__global__ void busy(float *values, int rounds) {
    float x = values[threadIdx.x];
    for (int i = 0; i < rounds; i++) {
        x = x * 0.999f + 0.5f;
    }
    values[threadIdx.x] = x;
}

struct AtExit {
    float *values = nullptr;
    ~AtExit() {
        // The runtime may be gone by now; the call may then only return an error code.
        cudaError_t error = cudaFree(values);
        if (error != cudaSuccess && error != cudaErrorCudartUnloading) {
            printf("cudaFree at exit: %d %s\n", (int) error, cudaGetErrorName(error));
        }
    }
};

static AtExit at_exit;

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CUDA_OK(cudaMalloc(&at_exit.values, 256 * sizeof(float)));
    CUDA_OK(cudaMemset(at_exit.values, 0, 256 * sizeof(float)));
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    static char host[1 << 20];
    char *device = device_array<char>(sizeof(host));
    for (int i = 0; i < 200; i++) {
        busy<<<4, 256, 0, i % 2 ? stream : 0>>>(at_exit.values, 100);
        LAUNCH_OK();
    }
    CUDA_OK(cudaMemcpyAsync(device, host, sizeof(host), cudaMemcpyHostToDevice, stream));
    // A thread that is still waiting when the process ends.
    std::thread([stream] { cudaStreamSynchronize(stream); }).detach();
    return check_pass("200 launches, a copy and a waiting thread in flight");
}
