// Device properties compared with attributes, function attributes, occupancy, dynamic shared memory beyond the default,
// entry points.
#include "check_cuda.h"

__global__ void uses_shared(float *out) {
    __shared__ float block[512];
    block[threadIdx.x] = threadIdx.x * 2.0f;
    __syncthreads();
    out[threadIdx.x] = block[blockDim.x - 1 - threadIdx.x];
}

__global__ void uses_dynamic(int *out, int words) {
    extern __shared__ int dynamic[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
        dynamic[i] = i;
    }
    __syncthreads();
    int sum = 0;
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
        sum += dynamic[words - 1 - i];
    }
    atomicAdd(out, sum);
}

__global__ void __launch_bounds__(128) bounded(int *out) {
    out[threadIdx.x] = 1;
}

static void device_properties() {
    int count = 0, driver = 0, runtime = 0, current = -1;
    CUDA_OK(cudaGetDeviceCount(&count));
    CUDA_OK(cudaDriverGetVersion(&driver));
    CUDA_OK(cudaRuntimeGetVersion(&runtime));
    check_true("a device", count >= 1);
    check_true("the driver is as new as the runtime's major version", driver / 1000 >= runtime / 1000);
    CUDA_OK(cudaGetDevice(&current));
    check_equal("current device", 0, current);
    cudaDeviceProp properties;
    memset(&properties, 0xAA, sizeof(properties));
    CUDA_OK(cudaGetDeviceProperties(&properties, 0));
    check_true("a name", properties.name[0] != 0 && memchr(properties.name, 0, sizeof(properties.name)) != nullptr);
    check_equal("warp size", 32, properties.warpSize);
    check_equal("warp size attribute", properties.warpSize, check_attribute(cudaDevAttrWarpSize));
    check_equal("threads a block", properties.maxThreadsPerBlock, check_attribute(cudaDevAttrMaxThreadsPerBlock));
    check_equal("block x", properties.maxThreadsDim[0], check_attribute(cudaDevAttrMaxBlockDimX));
    check_equal("grid y", properties.maxGridSize[1], check_attribute(cudaDevAttrMaxGridDimY));
    check_equal("major", properties.major, check_attribute(cudaDevAttrComputeCapabilityMajor));
    check_equal("minor", properties.minor, check_attribute(cudaDevAttrComputeCapabilityMinor));
    check_equal("multiprocessors", properties.multiProcessorCount, check_attribute(cudaDevAttrMultiProcessorCount));
    check_equal("shared memory", (long long) properties.sharedMemPerBlock,
                check_attribute(cudaDevAttrMaxSharedMemoryPerBlock));
    check_equal("mapped memory", properties.canMapHostMemory, check_attribute(cudaDevAttrCanMapHostMemory));
    check_equal("managed memory", properties.managedMemory, check_attribute(cudaDevAttrManagedMemory));
    check_true("at least one multiprocessor", properties.multiProcessorCount >= 1);
    size_t available = 0, total = 0;
    CUDA_OK(cudaMemGetInfo(&available, &total));
    check_true("properties' memory is within 2% of cudaMemGetInfo's",
               properties.totalGlobalMem / 50 * 49 <= total && total / 50 * 49 <= properties.totalGlobalMem);
    char bus[32];
    int device = -1;
    CUDA_OK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
    CUDA_OK(cudaDeviceGetByPCIBusId(&device, bus));
    check_equal("device by its bus id", 0, device);
}

static void functions() {
    cudaFuncAttributes attributes;
    CUDA_OK(cudaFuncGetAttributes(&attributes, uses_shared));
    check_equal("static shared memory", 2048, (long long) attributes.sharedSizeBytes);
    check_true("threads a block", attributes.maxThreadsPerBlock >= 256 && attributes.maxThreadsPerBlock <= 1024);
    check_true("registers", attributes.numRegs > 0 && attributes.numRegs <= 255);
    CUDA_OK(cudaFuncGetAttributes(&attributes, bounded));
    check_true("launch bounds are kept", attributes.maxThreadsPerBlock >= 128);

    int blocks = 0, grid = 0, block = 0;
    CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, uses_shared, 256, 0));
    check_true("blocks a multiprocessor", blocks >= 1);
    check_true("not more threads than a multiprocessor has",
               blocks * 256 <= check_attribute(cudaDevAttrMaxThreadsPerMultiProcessor));
    int with_more = 0;
    CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&with_more, uses_shared, 256, 40000));
    check_true("more shared memory, not more blocks", with_more <= blocks);
    CUDA_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, uses_shared, 0, 0));
    check_true("a block size that can be launched", block >= 32 && block <= 1024 && grid >= 1);

    float *out = device_array<float>(512);
    uses_shared<<<1, 512>>>(out);
    LAUNCH_OK();
    check_near("a block turned round", 0, 1022, host_copy(out, 1)[0], 0);
    CUDA_OK(cudaFree(out));
}

static int large_shared_memory() {
    int limit = check_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    int plain = check_attribute(cudaDevAttrMaxSharedMemoryPerBlock);
    check_true("opt-in limit is not below the plain one", limit >= plain);
    int *out = device_array<int>(1);
    int bytes = limit / 1024 * 1024;
    if (limit > plain) {
        uses_dynamic<<<1, 128, bytes>>>(out, bytes / 4);
        CUDA_IS(cudaErrorInvalidValue, cudaGetLastError()); // before opting in
    }
    CUDA_OK(cudaFuncSetAttribute(uses_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    cudaFuncAttributes attributes;
    CUDA_OK(cudaFuncGetAttributes(&attributes, uses_dynamic));
    check_equal("dynamic shared memory allowed", bytes, attributes.maxDynamicSharedSizeBytes);
    CUDA_OK(cudaMemset(out, 0, sizeof(int)));
    uses_dynamic<<<1, 128, bytes>>>(out, bytes / 4);
    LAUNCH_OK();
    long long words = bytes / 4;
    check_equal("sum over all dynamic shared memory", (int) (words * (words - 1) / 2), host_copy(out, 1)[0]);
    CUDA_IS(cudaErrorInvalidValue,
            cudaFuncSetAttribute(uses_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, limit + 1));
    cudaGetLastError();
    CUDA_OK(cudaFree(out));
    return bytes;
}

static void entry_points() {
    void *function = nullptr;
    cudaDriverEntryPointQueryResult result;
    CUDA_OK(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &function, 12000, cudaEnableDefault, &result));
    check_equal("cuDeviceGetCount is found", cudaDriverEntryPointSuccess, result);
    int count = -1;
    check_equal("cuDeviceGetCount", 0, ((int (*)(int *)) function)(&count));
    check_true("a device by the driver", count >= 1);
    function = (void *) 1;
    CUDA_OK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault, &result));
    check_equal("an unknown name", cudaDriverEntryPointSymbolNotFound, result);
    check_true("no function of an unknown name", function == nullptr);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    device_properties();
    functions();
    int bytes = large_shared_memory();
    entry_points();
    return check_pass("properties, function attributes, occupancy, %d bytes of dynamic shared memory", bytes);
}
