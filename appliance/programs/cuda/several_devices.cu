// All devices by the Runtime API: kernels and variables on each, threads, copies between devices, peer access.
#include "check_cuda.h"

#include <thread>

static const int COUNT = 10000;
static const int MAX_DEVICES = 8;

__device__ int factor = 2;
__constant__ int offset = 1;

__global__ void scale(int *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        values[i] = values[i] * factor + offset;
    }
}

__global__ void sum_of(const int *one, const int *other, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = one[i] + other[i];
    }
}

struct Device {
    int *values;
    cudaStream_t stream;
    cudaEvent_t event;
    std::vector<int> expected;
};

static void compare(const char *what, const Device &device) {
    std::vector<int> got(COUNT);
    CUDA_OK(cudaMemcpy(got.data(), device.values, COUNT * sizeof(int), cudaMemcpyDefault));
    for (int i = 0; i < COUNT; i++) {
        if (got[i] != device.expected[i]) {
            check_fail("%s: element %d, expected %d, got %d", what, i, device.expected[i], got[i]);
        }
    }
}

static void launch(Device &device, int factor_here, int offset_here) {
    scale<<<(COUNT + 255) / 256, 256, 0, device.stream>>>(device.values, COUNT);
    LAUNCH_OK();
    for (int &value : device.expected) {
        value = value * factor_here + offset_here;
    }
}

// Each device has its own copy of the variables.
static void compute(int number, Device &device) {
    CUDA_OK(cudaSetDevice(number));
    launch(device, 2, 1);
    CUDA_OK(cudaStreamSynchronize(device.stream));
    int mine = number + 3, my_offset = 10 * number;
    CUDA_OK(cudaMemcpyToSymbol(factor, &mine, sizeof(mine)));
    CUDA_OK(cudaMemcpyToSymbol(offset, &my_offset, sizeof(my_offset)));
    launch(device, mine, my_offset);
    CUDA_OK(cudaDeviceSynchronize());
}

static void check_peers(std::vector<Device> &devices) {
    int count = (int) devices.size();
    for (int here = 0; here < count; here++) {
        int can = -1;
        CUDA_OK(cudaDeviceCanAccessPeer(&can, here, here));
        check_equal("a device and itself", 0, can);
        int peer = (here + 1) % count;
        if (peer == here) {
            continue;
        }
        CUDA_OK(cudaSetDevice(here));
        CUDA_OK(cudaDeviceCanAccessPeer(&can, here, peer));
        int supported = -1;
        CUDA_OK(cudaDeviceGetP2PAttribute(&supported, cudaDevP2PAttrAccessSupported, here, peer));
        check_equal("the attribute agrees", can, supported);
        CUDA_IS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(peer));
        (void) cudaGetLastError();
        if (!can) {
            CUDA_IS(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(peer, 0));
            (void) cudaGetLastError();
            continue;
        }
        CUDA_OK(cudaDeviceEnablePeerAccess(peer, 0));
        CUDA_IS(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(peer, 0));
        (void) cudaGetLastError();
        int *out = device_array<int>(COUNT);
        sum_of<<<(COUNT + 255) / 256, 256>>>(devices[here].values, devices[peer].values, out, COUNT);
        LAUNCH_OK();
        std::vector<int> got = host_copy(out, COUNT);
        for (int i = 0; i < COUNT; i++) {
            if (got[i] != devices[here].expected[i] + devices[peer].expected[i]) {
                check_fail("a kernel with another device's memory: element %d, expected %d, got %d", i,
                           devices[here].expected[i] + devices[peer].expected[i], got[i]);
            }
        }
        CUDA_OK(cudaFree(out));
        CUDA_OK(cudaDeviceDisablePeerAccess(peer));
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int count = 0, current = -1;
    CUDA_OK(cudaGetDeviceCount(&count));
    check_true("a device", count > 0);
    CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(count));
    (void) cudaGetLastError();
    count = count < MAX_DEVICES ? count : MAX_DEVICES;
    std::vector<Device> devices((size_t) count);
    for (int number = 0; number < count; number++) {
        Device &device = devices[number];
        CUDA_OK(cudaSetDevice(number));
        CUDA_OK(cudaGetDevice(&current));
        check_equal("the current device", number, current);
        for (int i = 0; i < COUNT; i++) {
            device.expected.push_back(i % 1000 + number);
        }
        device.values = device_copy(device.expected);
        CUDA_OK(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking));
        CUDA_OK(cudaEventCreateWithFlags(&device.event, cudaEventDisableTiming));
        cudaPointerAttributes attributes;
        CUDA_OK(cudaPointerGetAttributes(&attributes, device.values));
        check_equal("the memory's device", number, attributes.device);
        size_t free_bytes = 0, total = 0;
        CUDA_OK(cudaMemGetInfo(&free_bytes, &total));
        check_true("memory of its own", free_bytes > 0 && free_bytes <= total);
    }
    // One thread for each device; a new thread's device is 0 until the thread sets it.
    std::vector<std::thread> threads;
    for (int number = 0; number < count; number++) {
        threads.emplace_back([&devices, number] { compute(number, devices[number]); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (int number = 0; number < count; number++) {
        compare("computed by a thread of its own", devices[number]);
        int value = 0;
        CUDA_OK(cudaSetDevice(number));
        CUDA_OK(cudaMemcpyFromSymbol(&value, factor, sizeof(value)));
        check_equal("the device's variable", number + 3, value);
    }
    // Through all devices in a ring; each receives the values of the previous one.
    for (int turn = 0; turn < 3 * count; turn++) {
        int number = turn % count, next = (turn + 1) % count;
        CUDA_OK(cudaSetDevice(number));
        launch(devices[number], number + 3, 10 * number);
        CUDA_OK(cudaMemcpyPeerAsync(devices[next].values, next, devices[number].values, number, COUNT * sizeof(int),
                                    devices[number].stream));
        CUDA_OK(cudaEventRecord(devices[number].event, devices[number].stream));
        CUDA_OK(cudaSetDevice(next));
        CUDA_OK(cudaStreamWaitEvent(devices[next].stream, devices[number].event, 0));
        devices[next].expected = devices[number].expected;
        for (int &value : devices[next].expected) {
            value %= 1000003; // as the next kernel reads it: a copy from the host below keeps it small
        }
        CUDA_OK(cudaStreamSynchronize(devices[next].stream));
        CUDA_OK(cudaMemcpy(devices[next].values, devices[next].expected.data(), COUNT * sizeof(int),
                           cudaMemcpyHostToDevice));
    }
    for (int number = 0; number < count; number++) {
        int next = (number + 1) % count;
        CUDA_OK(cudaSetDevice(number));
        CUDA_OK(cudaMemcpyPeer(devices[number].values, number, devices[next].values, next, COUNT * sizeof(int)));
        devices[number].expected = devices[next].expected;
        compare("a copy between devices", devices[number]);
    }
    check_peers(devices);
    // Pinned memory serves every device.
    int *pinned = nullptr;
    CUDA_OK(cudaHostAlloc(&pinned, (size_t) count * COUNT * sizeof(int), cudaHostAllocPortable));
    for (int number = 0; number < count; number++) {
        CUDA_OK(cudaSetDevice(number));
        CUDA_OK(cudaMemcpyAsync(pinned + (size_t) number * COUNT, devices[number].values, COUNT * sizeof(int),
                                cudaMemcpyDeviceToHost, devices[number].stream));
    }
    for (int number = 0; number < count; number++) {
        CUDA_OK(cudaStreamSynchronize(devices[number].stream));
        for (int i = 0; i < COUNT; i++) {
            if (pinned[(size_t) number * COUNT + i] != devices[number].expected[i]) {
                check_fail("in pinned memory: element %d, expected %d, got %d", i, devices[number].expected[i],
                           pinned[(size_t) number * COUNT + i]);
            }
        }
    }
    CUDA_OK(cudaFreeHost(pinned));
    for (int number = 0; number < count; number++) {
        CUDA_OK(cudaSetDevice(number));
        CUDA_OK(cudaStreamDestroy(devices[number].stream));
        CUDA_OK(cudaEventDestroy(devices[number].event));
        CUDA_OK(cudaFree(devices[number].values));
    }
    return check_pass("every device computed, copied and answered for its peers");
}
