/* Occupancy: the driver computes it for the kernel of a host function. */
#include "runtime.h"

static cudaError_t hws_occupancy_find(const void *func, CUfunction *function) {
    CUkernel kernel;
    cudaError_t error = hws_context_enter();
    if (error == cudaSuccess) {
        error = hws_kernel_find(func, &kernel);
    }
    if (error == cudaSuccess) {
        *function = (CUfunction) kernel; /* CUDA documents that a CUkernel may replace the current context's function */
    }
    return error;
}

HWS_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func, int blockSize,
                                                                  size_t dynamicSMemSize) {
    CUfunction function;
    HWS_ENTER_WORKING();
    HWS_REQUIRE(numBlocks != NULL);
    HWS_TRY(hws_occupancy_find(func, &function));
    return hws_result(cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, function, blockSize, dynamicSMemSize));
}

HWS_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, const void *func,
                                                                           int blockSize, size_t dynamicSMemSize,
                                                                           unsigned int flags) {
    CUfunction function;
    HWS_ENTER_WORKING();
    HWS_REQUIRE(numBlocks != NULL && flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    HWS_TRY(hws_occupancy_find(func, &function));
    return hws_result(
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, function, blockSize, dynamicSMemSize, flags));
}

HWS_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, const void *func, int numBlocks,
                                                              int blockSize) {
    CUfunction function;
    HWS_REQUIRE(dynamicSmemSize != NULL);
    HWS_ENTER_WORKING();
    HWS_REQUIRE(numBlocks > 0);
    HWS_TRY(hws_occupancy_find(func, &function));
    return hws_result(cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, function, numBlocks, blockSize));
}

/* The driver's form of a launch configuration; attributes are passed on unchanged. */
static CUlaunchConfig hws_occupancy_config(const cudaLaunchConfig_t *config) {
    return (CUlaunchConfig) {
        .gridDimX = config->gridDim.x,
        .gridDimY = config->gridDim.y,
        .gridDimZ = config->gridDim.z,
        .blockDimX = config->blockDim.x,
        .blockDimY = config->blockDim.y,
        .blockDimZ = config->blockDim.z,
        .sharedMemBytes = (unsigned int) config->dynamicSmemBytes,
        .hStream = config->stream,
        .attrs = (CUlaunchAttribute *) config->attrs,
        .numAttrs = config->numAttrs,
    };
}

HWS_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int *clusterSize, const void *func,
                                                         const cudaLaunchConfig_t *launchConfig) {
    CUfunction function;
    HWS_REQUIRE(clusterSize != NULL && launchConfig != NULL);
    HWS_ENTER_WORKING();
    HWS_TRY(hws_occupancy_find(func, &function));
    CUlaunchConfig config = hws_occupancy_config(launchConfig);
    return hws_result(cuOccupancyMaxPotentialClusterSize(clusterSize, function, &config));
}

HWS_API cudaError_t cudaOccupancyMaxActiveClusters(int *numClusters, const void *func,
                                                   const cudaLaunchConfig_t *launchConfig) {
    CUfunction function;
    HWS_REQUIRE(numClusters != NULL && launchConfig != NULL);
    HWS_TRY(hws_occupancy_find(func, &function));
    CUlaunchConfig config = hws_occupancy_config(launchConfig);
    return hws_result(cuOccupancyMaxActiveClusters(numClusters, function, &config));
}
