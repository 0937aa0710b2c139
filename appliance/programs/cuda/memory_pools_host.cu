// Memory pools of the host and of managed memory: the host and kernels use the memory at one address.
#include "check_cuda.h"

static const int COUNT = 100000;
static const int ROUNDS = 20;

__global__ void add(int *values, int count, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += addend;
    }
}

static cudaMemPoolProps properties(cudaMemLocationType type) {
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = type;
    return props;
}

static unsigned long long used(cudaMemPool_t pool) {
    unsigned long long bytes = 0;
    CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes));
    return bytes;
}

static void check_refusals() {
    cudaMemPool_t pool;
    cudaMemPoolProps props = properties(cudaMemLocationTypeHostNumaCurrent);
    CUDA_IS(cudaErrorInvalidValue, cudaMemPoolCreate(&pool, &props));
    props = properties(cudaMemLocationTypeHostNuma);
    props.location.id = 4321; // no machine has such a node
    CUDA_IS(cudaErrorInvalidValue, cudaMemPoolCreate(&pool, &props));
    props = properties(cudaMemLocationTypeHost);
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    CUDA_IS(cudaErrorInvalidValue, cudaMemPoolCreate(&pool, &props));
    cudaGetLastError();
}

static void allow_device(cudaMemPool_t pool, cudaMemLocationType location) {
    cudaMemAccessDesc access = {};
    access.location.type = cudaMemLocationTypeDevice;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    CUDA_OK(cudaMemPoolSetAccess(pool, &access, 1));
    cudaMemAccessFlags flags;
    CUDA_OK(cudaMemPoolGetAccess(&flags, pool, &access.location));
    check_equal("the device's access", cudaMemAccessFlagsProtReadWrite, flags);
    cudaMemLocation host = {};
    host.type = location;
    CUDA_OK(cudaMemPoolGetAccess(&flags, pool, &host));
    check_equal("the host's access", cudaMemAccessFlagsProtReadWrite, flags);
}

// The host and kernels change the memory in turns.
static void take_turns(cudaMemPool_t pool, cudaStream_t stream, cudaMemoryType type) {
    for (int round = 0; round < ROUNDS; round++) {
        int *values;
        CUDA_OK(cudaMallocFromPoolAsync((void **) &values, COUNT * sizeof(int), pool, stream));
        CUDA_OK(cudaStreamSynchronize(stream));
        check_true("memory in use", used(pool) >= COUNT * sizeof(int));
        for (int i = 0; i < COUNT; i++) {
            values[i] = i;
        }
        add<<<(COUNT + 255) / 256, 256, 0, stream>>>(values, COUNT, round);
        LAUNCH_OK();
        CUDA_OK(cudaStreamSynchronize(stream));
        for (int i = 0; i < COUNT; i++) {
            check_element("after the kernel", i, i + round, values[i]);
        }
        int *device = device_array<int>(COUNT);
        CUDA_OK(cudaMemcpyAsync(device, values, COUNT * sizeof(int), cudaMemcpyDefault, stream));
        CUDA_OK(cudaStreamSynchronize(stream));
        std::vector<int> got = host_copy(device, COUNT);
        check_equal("a copy's last value", COUNT - 1 + round, got[COUNT - 1]);
        cudaPointerAttributes attributes;
        CUDA_OK(cudaPointerGetAttributes(&attributes, values));
        check_equal("the memory's type", type, attributes.type);
        check_true("one address", attributes.devicePointer == values);
        CUDA_OK(cudaFree(device));
        if (round % 2 == 0) {
            CUDA_OK(cudaFreeAsync(values, stream));
        } else {
            CUDA_OK(cudaFree(values));
        }
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    // Driver 580 counts memory of cudaFree as used.
    check_true("freed memory", used(pool) <= ROUNDS / 2 * COUNT * sizeof(int));
}

// A pool of managed memory, the device's default one and the one that is set.
static void use_managed_pools(cudaStream_t stream) {
    cudaMemPool_t pool, standard, current;
    cudaMemPoolProps props = properties(cudaMemLocationTypeDevice);
    props.allocType = cudaMemAllocationTypeManaged;
    CUDA_OK(cudaMemPoolCreate(&pool, &props));
    take_turns(pool, stream, cudaMemoryTypeManaged);
    CUDA_OK(cudaMemGetDefaultMemPool(&standard, &props.location, cudaMemAllocationTypeManaged));
    take_turns(standard, stream, cudaMemoryTypeManaged);
    CUDA_OK(cudaMemSetMemPool(&props.location, cudaMemAllocationTypeManaged, pool));
    CUDA_OK(cudaMemGetMemPool(&current, &props.location, cudaMemAllocationTypeManaged));
    check_true("the pool that was set", current == pool);
    CUDA_OK(cudaMemPoolDestroy(pool));
    CUDA_OK(cudaMemGetMemPool(&current, &props.location, cudaMemAllocationTypeManaged));
    check_true("the default pool", current == standard);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CUDA_OK(cudaSetDevice(0));
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreate(&stream));
    check_refusals();
    if (check_attribute(cudaDevAttrConcurrentManagedAccess)) {
        use_managed_pools(stream);
    }
    cudaMemPool_t pool, standard;
    cudaMemPoolProps props = properties(cudaMemLocationTypeHost);
    if (!check_attribute(cudaDevAttrHostMemoryPoolsSupported)) {
        CUDA_IS(cudaErrorNotSupported, cudaMemPoolCreate(&pool, &props));
        check_unsupported("no memory pools of the host");
    }
    const cudaMemLocationType places[] = {cudaMemLocationTypeHost, cudaMemLocationTypeHostNuma};
    for (cudaMemLocationType place : places) {
        if (place == cudaMemLocationTypeHostNuma && !check_attribute(cudaDevAttrHostNumaMemoryPoolsSupported)) {
            continue;
        }
        props = properties(place);
        CUDA_OK(cudaMemPoolCreate(&pool, &props));
        allow_device(pool, place);
        take_turns(pool, stream, cudaMemoryTypeHost);
        CUDA_OK(cudaMemPoolDestroy(pool));
        CUDA_OK(cudaMemGetDefaultMemPool(&standard, &props.location, cudaMemAllocationTypePinned));
        allow_device(standard, place);
        take_turns(standard, stream, cudaMemoryTypeHost);
        CUDA_OK(cudaMemGetMemPool(&pool, &props.location, cudaMemAllocationTypePinned));
        check_true("the default pool is the current one", pool == standard);
    }
    CUDA_OK(cudaStreamDestroy(stream));
    return check_pass("%d rounds of pools of the host and of its NUMA node", ROUNDS);
}
