// Memory shared between processes: a child fills the parent's allocation, and the parent fills the child's. Handles
// travel through pipes. The fork comes before the first CUDA call of either process.
#include "check_cuda.h"
#include "check_processes.h"

static const int COUNT = 300000;
static const int SMALL = 100;

struct Shared {
    cudaIpcMemHandle_t large, small, middle;
    int supported;
};

__global__ void fill(int *values, int count, int factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] = factor * i + 1;
    }
}

static void fill_all(int *values, int count, int factor) {
    fill<<<(count + 255) / 256, 256>>>(values, count, factor);
    LAUNCH_OK();
    CUDA_OK(cudaDeviceSynchronize());
}

static void check_filled(const char *what, const int *device, int count, int factor) {
    std::vector<int> values = host_copy(device, count);
    for (int i = 0; i < count; i++) {
        check_element(what, i, factor * i + 1, values[i]);
    }
}

static void turn(int out) {
    send_bytes(out, "", 1);
}

static void wait_turn(int in) {
    char byte;
    receive_bytes(in, &byte, 1);
}

static int *open_memory(const cudaIpcMemHandle_t &handle) {
    void *address = nullptr;
    CUDA_OK(cudaIpcOpenMemHandle(&address, handle, cudaIpcMemLazyEnablePeerAccess));
    return (int *) address;
}

static void child(int in, int out) {
    Shared theirs;
    receive_bytes(in, &theirs, sizeof theirs);
    if (!theirs.supported) {
        return;
    }
    CUDA_OK(cudaFree(nullptr)); // initialises CUDA, so that the calls below fail only for their own errors
    void *none = nullptr;
    CUDA_IS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&none, theirs.large, 0));
    cudaIpcMemHandle_t forged;
    memset(&forged, 0x5a, sizeof forged);
    CUDA_IS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&none, forged, cudaIpcMemLazyEnablePeerAccess));
    cudaGetLastError();
    int *large = open_memory(theirs.large), *small = open_memory(theirs.small);
    check_filled("the parent's values", large, COUNT, 3);
    check_filled("the parent's few values", small, SMALL, 5);
    check_true("one address for one memory", open_memory(theirs.large) == large);
    check_true("a handle from the middle is the whole's", open_memory(theirs.middle) == large);
    CUDA_OK(cudaIpcCloseMemHandle(large));
    CUDA_OK(cudaIpcCloseMemHandle(large));
    fill_all(large, COUNT, 7);
    CUDA_OK(cudaMemcpy(small, large, SMALL * sizeof(int), cudaMemcpyDeviceToDevice));
    CUDA_OK(cudaDeviceSynchronize());
    cudaPointerAttributes attributes;
    CUDA_OK(cudaPointerGetAttributes(&attributes, large + 5));
    check_equal("type", cudaMemoryTypeDevice, attributes.type);
    CUDA_OK(cudaIpcCloseMemHandle(large));
    CUDA_OK(cudaIpcCloseMemHandle(small));
    turn(out);

    int *mine = device_array<int>(COUNT);
    fill_all(mine, COUNT, 11);
    cudaIpcMemHandle_t handle;
    CUDA_OK(cudaIpcGetMemHandle(&handle, mine));
    send_bytes(out, &handle, sizeof handle);
    wait_turn(in);
    check_filled("what the parent has done", mine, COUNT, 13);
    CUDA_OK(cudaFree(mine));
}

static void parent(int in, int out) {
    int *large = device_array<int>(COUNT), *small = device_array<int>(SMALL);
    fill_all(large, COUNT, 3);
    fill_all(small, SMALL, 5);
    Shared ours = {};
    cudaError_t answer = cudaIpcGetMemHandle(&ours.large, large);
    ours.supported = answer != cudaErrorNotSupported;
    if (!ours.supported) {
        CUDA_IS(cudaErrorNotSupported, cudaGetLastError());
        send_bytes(out, &ours, sizeof ours);
        return;
    }
    CUDA_OK(answer);
    CUDA_OK(cudaIpcGetMemHandle(&ours.small, small));
    CUDA_OK(cudaIpcGetMemHandle(&ours.middle, large + COUNT / 2));
    cudaIpcMemHandle_t again;
    CUDA_OK(cudaIpcGetMemHandle(&again, large));
    check_true("one handle for one memory", memcmp(&again, &ours.large, sizeof again) == 0);
    CUDA_IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&again, nullptr));
    void *own = nullptr;
    CUDA_IS(cudaErrorDeviceUninitialized, cudaIpcOpenMemHandle(&own, ours.large, cudaIpcMemLazyEnablePeerAccess));
    cudaGetLastError();
    send_bytes(out, &ours, sizeof ours);
    wait_turn(in);
    check_filled("the child's values", large, COUNT, 7);
    check_filled("the child's copy", small, SMALL, 7);

    cudaIpcMemHandle_t theirs;
    receive_bytes(in, &theirs, sizeof theirs);
    int *opened = open_memory(theirs);
    check_filled("the child's own memory", opened, COUNT, 11);
    fill_all(opened, COUNT, 13);
    CUDA_OK(cudaIpcCloseMemHandle(opened));
    turn(out);
    CUDA_OK(cudaFree(large));
    CUDA_OK(cudaFree(small));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_processes(child, parent);
    int *probe = device_array<int>(1);
    cudaIpcMemHandle_t handle;
    if (cudaIpcGetMemHandle(&handle, probe) == cudaErrorNotSupported) {
        check_unsupported("memory is not shared between processes");
    }
    CUDA_OK(cudaFree(probe));
    return check_pass("two processes, each in the other's memory");
}
