// Managed memory: host and kernels use one address in turn, copies of all kinds, a linked list, advice and prefetching
// as far as the attribute for concurrent access permits. A device without it must state so by its attribute and refuse.
#include "check_cuda.h"

struct Node {
    Node *next;
    long long value;
};

__global__ void add(int *values, int count, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += addend;
    }
}

__global__ void walk(Node *head, unsigned long long *sum) {
    for (Node *node = head; node != nullptr; node = node->next) {
        atomicAdd(sum, (unsigned long long) node->value);
        node->value *= 2;
    }
}

static const int COUNT = 100000;

template <typename T> static T *managed_array(size_t count, unsigned flags = cudaMemAttachGlobal) {
    T *array = nullptr;
    CUDA_OK(cudaMallocManaged(&array, count * sizeof(T), flags));
    return array;
}

static void launch_add(int *values, int addend, cudaStream_t stream = nullptr) {
    add<<<(COUNT + 255) / 256, 256, 0, stream>>>(values, COUNT, addend);
    LAUNCH_OK();
}

static void check_values(const char *what, const int *values, int factor, int addend) {
    for (int i = 0; i < COUNT; i++) {
        check_element(what, i, (long long) i * factor + addend, values[i]);
    }
}

static void in_turn() {
    int *values = managed_array<int>(COUNT);
    for (int i = 0; i < COUNT; i++) {
        values[i] = i;
    }
    for (int round = 1; round <= 5; round++) {
        launch_add(values, 10);
        CUDA_OK(cudaDeviceSynchronize());
        check_values("by the device", values, round, 10);
        for (int i = 0; i < COUNT; i++) {
            values[i] += i - 10;
        }
    }
    cudaPointerAttributes attributes;
    CUDA_OK(cudaPointerGetAttributes(&attributes, values + 7));
    check_equal("type", cudaMemoryTypeManaged, attributes.type);
    check_equal("device", 0, attributes.device);
    check_true("one address", attributes.devicePointer == values + 7 && attributes.hostPointer == values + 7);
    CUDA_OK(cudaFree(values));
    CUDA_OK(cudaPointerGetAttributes(&attributes, values));
    check_equal("type of freed memory", cudaMemoryTypeUnregistered, attributes.type);
}

static void copies() {
    int *managed = managed_array<int>(COUNT), *other = managed_array<int>(COUNT), *device = device_array<int>(COUNT);
    const size_t bytes = COUNT * sizeof(int);
    std::vector<int> host(COUNT);
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < COUNT; i++) {
        host[i] = 3 * i;
    }
    CUDA_OK(cudaMemcpy(managed, host.data(), bytes, cudaMemcpyDefault));
    CUDA_OK(cudaMemcpy(device, managed, bytes, cudaMemcpyDefault));
    launch_add(device, 1);
    CUDA_OK(cudaMemcpy(other, device, bytes, cudaMemcpyDefault));
    CUDA_OK(cudaDeviceSynchronize());
    check_values("host, managed, device, managed", other, 3, 1);
    CUDA_OK(cudaMemcpy(managed, other, bytes, cudaMemcpyDefault));
    CUDA_OK(cudaDeviceSynchronize());
    check_values("managed to managed", managed, 3, 1);
    launch_add(managed, 4);
    CUDA_OK(cudaMemcpy(host.data(), managed, bytes, cudaMemcpyDeviceToHost));
    check_values("as the device's to the host", host.data(), 3, 5);
    CUDA_OK(cudaMemcpy(managed, host.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(device, managed, bytes, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(other, device, bytes, cudaMemcpyDeviceToDevice));
    CUDA_OK(cudaDeviceSynchronize());
    check_values("as the host's to the device", other, 3, 5);
    CUDA_OK(cudaMemsetAsync(managed, 0, bytes, stream));
    launch_add(managed, 6, stream);
    CUDA_OK(cudaMemcpyAsync(other, managed, bytes, cudaMemcpyDefault, stream));
    launch_add(other, 2, stream);
    CUDA_OK(cudaMemcpyAsync(device, other, bytes, cudaMemcpyDefault, stream));
    CUDA_OK(cudaMemcpyAsync(managed, device, bytes, cudaMemcpyDefault, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    check_values("in a stream", managed, 0, 8);
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(managed));
    CUDA_OK(cudaFree(other));
    CUDA_OK(cudaFree(device));
}

static void linked_list() {
    const int length = 300;
    unsigned long long *sum = managed_array<unsigned long long>(1);
    Node *nodes[length];
    for (int i = 0; i < length; i++) {
        nodes[i] = managed_array<Node>(1);
        *nodes[i] = {i == 0 ? nullptr : nodes[i - 1], i};
    }
    *sum = 5;
    walk<<<1, 1>>>(nodes[length - 1], sum);
    LAUNCH_OK();
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("sum of the list", 5 + length * (length - 1) / 2, (long long) *sum);
    for (int i = 0; i < length; i++) {
        check_element("list", i, 2 * i, nodes[i]->value);
        CUDA_OK(cudaFree(nodes[i]));
    }
    CUDA_OK(cudaFree(sum));
}

static void advice() {
    int *values = managed_array<int>(COUNT);
    const size_t bytes = COUNT * sizeof(int);
    cudaMemLocation device = {}, host = {};
    device.type = cudaMemLocationTypeDevice;
    host.type = cudaMemLocationTypeHost;
    const cudaError_t concurrent =
        check_attribute(cudaDevAttrConcurrentManagedAccess) ? cudaSuccess : cudaErrorInvalidDevice;
    CUDA_OK(cudaMemAdvise(values, bytes, cudaMemAdviseSetReadMostly, device));
    int read_mostly = 9;
    CUDA_OK(cudaMemRangeGetAttribute(&read_mostly, sizeof(int), cudaMemRangeAttributeReadMostly, values, bytes));
    check_equal("read mostly", 1, read_mostly);
    CUDA_OK(cudaMemAdvise(values, bytes, cudaMemAdviseUnsetReadMostly, device));
    CUDA_OK(cudaMemRangeGetAttribute(&read_mostly, sizeof(int), cudaMemRangeAttributeReadMostly, values, bytes));
    check_equal("no longer read mostly", 0, read_mostly);
    CUDA_IS(concurrent, cudaMemAdvise(values, bytes, cudaMemAdviseSetPreferredLocation, device));
    cudaGetLastError();
    CUDA_OK(cudaMemAdvise(values, bytes, cudaMemAdviseSetPreferredLocation, host));
    int preferred = 9;
    CUDA_OK(cudaMemRangeGetAttribute(&preferred, sizeof(int), cudaMemRangeAttributePreferredLocation, values, bytes));
    check_equal("preferred location", cudaCpuDeviceId, preferred);
    CUDA_IS(concurrent, cudaMemPrefetchAsync(values, bytes, device, 0, nullptr));
    cudaGetLastError();
    launch_add(values, 3);
    CUDA_IS(concurrent, cudaMemPrefetchAsync(values, bytes, host, 0, nullptr));
    cudaGetLastError();
    CUDA_OK(cudaDeviceSynchronize());
    check_values("after advice", values, 0, 3);
    CUDA_IS(cudaErrorInvalidValue, cudaMemPrefetchAsync(values, bytes, device, 1, nullptr));
    cudaGetLastError();
    CUDA_OK(cudaFree(values));
}

static void attached() {
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreate(&stream));
    int *values = managed_array<int>(COUNT, cudaMemAttachHost);
    for (int i = 0; i < COUNT; i++) {
        values[i] = i;
    }
    CUDA_OK(cudaStreamAttachMemAsync(stream, values, 0, cudaMemAttachSingle));
    CUDA_OK(cudaStreamSynchronize(stream));
    launch_add(values, 8, stream);
    CUDA_OK(cudaStreamSynchronize(stream));
    check_values("attached to a stream", values, 1, 8);
    CUDA_OK(cudaFree(values));
    CUDA_OK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    if (!check_attribute(cudaDevAttrManagedMemory)) {
        int *managed = nullptr;
        CUDA_IS(cudaErrorNotSupported, cudaMallocManaged(&managed, COUNT * sizeof(int)));
        CUDA_IS(cudaErrorNotSupported, cudaGetLastError());
        check_true("no pointer", managed == nullptr);
        check_unsupported("cudaDevAttrManagedMemory is 0");
    }
    in_turn();
    copies();
    linked_list();
    advice();
    attached();
    int *none = nullptr;
    CUDA_IS(cudaErrorInvalidValue, cudaMallocManaged(&none, 1000, cudaMemAttachSingle));
    cudaGetLastError();
    return check_pass("host and device in turn, copies, a linked list, advice, attachment");
}
