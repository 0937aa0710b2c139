// Events shared between processes: a child's kernel waits for the parent's event, and the parent's kernel for the
// child's. The fork comes before the first CUDA call of either process.
#include "check_cuda.h"
#include "check_processes.h"

static const int COUNT = 200000;
static const int ROUNDS = 10;

struct Shared {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t filled, changed;
    int supported;
};

// Runs for a while, so that a reader that does not wait sees the old values.
__global__ void change(int *values, int count, int addend, int spins) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        int value = values[i] + addend;
        for (int spin = 0; spin < spins; spin++) {
            value = value ^ spin;
            value = value ^ spin;
        }
        values[i] = value;
    }
}

static void child(int in, int out) {
    Shared theirs;
    receive_bytes(in, &theirs, sizeof theirs);
    if (!theirs.supported) {
        return;
    }
    cudaEvent_t filled, changed;
    CUDA_OK(cudaFree(nullptr));
    cudaIpcEventHandle_t forged;
    memset(&forged, 0x5a, sizeof forged);
    CUDA_IS(cudaErrorMapBufferObjectFailed, cudaIpcOpenEventHandle(&filled, forged));
    cudaGetLastError();
    CUDA_OK(cudaIpcOpenEventHandle(&filled, theirs.filled));
    CUDA_OK(cudaIpcOpenEventHandle(&changed, theirs.changed));
    void *address = nullptr;
    CUDA_OK(cudaIpcOpenMemHandle(&address, theirs.memory, cudaIpcMemLazyEnablePeerAccess));
    int *values = (int *) address;
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    send_bytes(out, "", 1);
    for (int round = 0; round < ROUNDS; round++) {
        char recorded;
        receive_bytes(in, &recorded, 1);
        CUDA_OK(cudaStreamWaitEvent(stream, filled, 0)); // the parent's kernel may still run
        change<<<(COUNT + 255) / 256, 256, 0, stream>>>(values, COUNT, 100, 50);
        LAUNCH_OK();
        CUDA_OK(cudaEventRecord(changed, stream));
        send_bytes(out, "", 1);
    }
    CUDA_OK(cudaEventSynchronize(changed));
    CUDA_OK(cudaEventQuery(changed));
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaIpcCloseMemHandle(values));
    CUDA_OK(cudaEventDestroy(filled));
    CUDA_OK(cudaEventDestroy(changed));
    CUDA_OK(cudaStreamDestroy(stream));
}

static cudaEvent_t interprocess_event() {
    cudaEvent_t event;
    CUDA_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
    return event;
}

static void parent(int in, int out) {
    cudaEvent_t filled, changed, plain, none;
    Shared ours = {};
    ours.supported = check_attribute(cudaDevAttrIpcEventSupport);
    if (!ours.supported) {
        CUDA_IS(cudaErrorNotSupported,
                cudaEventCreateWithFlags(&filled, cudaEventDisableTiming | cudaEventInterprocess));
        CUDA_IS(cudaErrorNotSupported, cudaGetLastError());
        send_bytes(out, &ours, sizeof ours);
        return;
    }
    filled = interprocess_event();
    changed = interprocess_event();
    CUDA_OK(cudaIpcGetEventHandle(&ours.filled, filled));
    CUDA_OK(cudaIpcGetEventHandle(&ours.changed, changed));
    cudaIpcEventHandle_t other;
    CUDA_OK(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
    CUDA_IS(cudaErrorInvalidResourceHandle, cudaIpcGetEventHandle(&other, plain));
    CUDA_IS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&none, cudaEventInterprocess));
    CUDA_IS(cudaErrorDeviceUninitialized, cudaIpcOpenEventHandle(&none, ours.filled));
    cudaGetLastError();
    int *values = device_array<int>(COUNT);
    CUDA_OK(cudaMemset(values, 0, COUNT * sizeof(int)));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaIpcGetMemHandle(&ours.memory, values));
    send_bytes(out, &ours, sizeof ours);
    char turn;
    receive_bytes(in, &turn, 1);
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 0; round < ROUNDS; round++) {
        change<<<(COUNT + 255) / 256, 256, 0, stream>>>(values, COUNT, 1, 50);
        LAUNCH_OK();
        CUDA_OK(cudaEventRecord(filled, stream));
        send_bytes(out, "", 1);
        receive_bytes(in, &turn, 1); // the child has recorded
        CUDA_OK(cudaStreamWaitEvent(stream, changed, 0));
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    std::vector<int> got = host_copy(values, COUNT);
    for (int i = 0; i < COUNT; i++) {
        check_element("changed in turns", i, ROUNDS * 101, got[i]);
    }
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaEventDestroy(plain));
    CUDA_OK(cudaEventDestroy(filled));
    CUDA_OK(cudaEventDestroy(changed));
    CUDA_OK(cudaFree(values));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_processes(child, parent);
    if (!check_attribute(cudaDevAttrIpcEventSupport)) {
        check_unsupported("events are not shared between processes");
    }
    return check_pass("%d turns of two processes, each after the other's event", ROUNDS);
}
