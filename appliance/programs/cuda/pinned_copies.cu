// Large copies from and to pinned memory: allocated, registered, and in many chunks in two streams. `--size MiB`.
#include "check_cuda.h"

__global__ void invert(unsigned int *words, size_t count) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t) gridDim.x * blockDim.x) {
        words[i] = ~words[i];
    }
}

static unsigned int word(size_t i) {
    return (unsigned int) (i * 2654435761u) ^ (unsigned int) (i >> 20);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    size_t megabytes = (size_t) check_option("--size", 24);
    size_t bytes = megabytes << 20, count = bytes / 4;
    unsigned int *host = nullptr, *device = device_array<unsigned int>(count);
    CUDA_OK(cudaHostAlloc(&host, bytes, cudaHostAllocDefault));
    for (size_t i = 0; i < count; i++) {
        host[i] = word(i);
    }
    double start = check_seconds();
    CUDA_OK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, 0));
    CUDA_OK(cudaStreamSynchronize(0));
    double in = check_seconds() - start;

    // Back through registered memory, in chunks of an odd size in two streams.
    std::vector<unsigned int> registered(count + 16);
    CUDA_OK(cudaHostRegister(registered.data(), bytes, cudaHostRegisterDefault));
    CUDA_IS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(registered.data(), bytes, 0));
    cudaGetLastError();
    cudaStream_t streams[2];
    CUDA_OK(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking));
    CUDA_OK(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
    invert<<<64, 256>>>(device, count);
    LAUNCH_OK();
    CUDA_OK(cudaDeviceSynchronize());
    start = check_seconds();
    const size_t chunk = 777777;
    int turn = 0;
    for (size_t at = 0; at < bytes; at += chunk) {
        size_t length = bytes - at < chunk ? bytes - at : chunk;
        CUDA_OK(cudaMemcpyAsync((char *) registered.data() + at, (char *) device + at, length, cudaMemcpyDeviceToHost,
                                streams[turn++ % 2]));
    }
    CUDA_OK(cudaStreamSynchronize(streams[0]));
    CUDA_OK(cudaStreamSynchronize(streams[1]));
    double out = check_seconds() - start;
    for (size_t i = 0; i < count; i++) {
        check_element("words", (long long) i, (unsigned int) ~word(i), registered[i]);
    }
    CUDA_OK(cudaHostUnregister(registered.data()));
    CUDA_IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(registered.data()));
    cudaGetLastError();

    // An event recorded after an asynchronous copy to the host completes only after the bytes have arrived.
    cudaEvent_t done;
    CUDA_OK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    memset(host, 0, bytes);
    CUDA_OK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, streams[0]));
    CUDA_OK(cudaEventRecord(done, streams[0]));
    CUDA_OK(cudaEventSynchronize(done));
    for (size_t i = 0; i < count; i++) {
        check_element("after the event", (long long) i, (unsigned int) ~word(i), host[i]);
    }
    // The program may overwrite the source as soon as the stream has completed the copy.
    CUDA_OK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, streams[0]));
    CUDA_OK(cudaEventRecord(done, streams[0]));
    while (cudaEventQuery(done) == cudaErrorNotReady) {
    }
    CUDA_OK(cudaEventQuery(done));
    memset(host, 0x5A, bytes);
    std::vector<unsigned int> again = host_copy(device, count);
    for (size_t i = 0; i < count; i++) {
        check_element("before the overwriting", (long long) i, (unsigned int) ~word(i), again[i]);
    }
    CUDA_OK(cudaEventDestroy(done));
    CUDA_OK(cudaStreamDestroy(streams[0]));
    CUDA_OK(cudaStreamDestroy(streams[1]));
    CUDA_OK(cudaFreeHost(host));
    CUDA_OK(cudaFree(device));
    check_measured("in %.0f MB/s, out in chunks %.0f MB/s", bytes / in / 1e6, bytes / out / 1e6);
    return check_pass("%zu MiB", megabytes);
}
