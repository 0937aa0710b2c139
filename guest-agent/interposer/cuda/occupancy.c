/*
 * Occupancy, from attributes that the guest has: the rules of the CUDA programming guide's occupancy calculation.
 * Launch-time heuristics ask for it often, so that it must not travel.
 */
#include "module.h"

#include "hws_cuda_calls.h"
#include "hws_device.h"

#define REGISTER_UNIT 256 /* registers are given to a warp in this many; all architectures since 3.0 */
#define SHARED_UNIT 128   /* and shared memory to a block in this many bytes; since 8.0 */
#define MAX_ATTRIBUTES 64u

static int64_t round_up(int64_t value, int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t device_value(const hws_function_t *function, CUdevice_attribute attribute) {
    return hws_device_attribute(function->device, attribute);
}

/* Blocks that a multiprocessor holds at once, shared memory left aside. */
static int64_t blocks_by_threads(const hws_function_t *function, int64_t block_size) {
    int64_t warp = device_value(function, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    int64_t warps = (block_size + warp - 1) / warp;
    int64_t blocks = device_value(function, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / warp / warps;
    int64_t limit = device_value(function, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    blocks = limit > 0 ? least(blocks, limit) : blocks;
    int64_t registers = function->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS];
    if (registers > 0) {
        int64_t of_warp = round_up(registers * warp, REGISTER_UNIT);
        int64_t warps_held = device_value(function, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) / of_warp;
        blocks = least(blocks, warps_held / warps);
    }
    return blocks;
}

static int64_t shared_of_block(const hws_function_t *function, int64_t dynamic_bytes) {
    int64_t reserved = device_value(function, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    return round_up(function->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] + dynamic_bytes + reserved, SHARED_UNIT);
}

static int64_t active_blocks(const hws_function_t *function, int64_t block_size, int64_t dynamic_bytes) {
    if (block_size > function->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK]
        || block_size > device_value(function, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)) {
        return 0;
    }
    int64_t blocks = blocks_by_threads(function, block_size);
    int64_t shared = shared_of_block(function, dynamic_bytes);
    int64_t held = device_value(function, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    return shared > 0 ? least(blocks, held / shared) : blocks;
}

/* Sets `kept`, or leaves the calling function: not a kernel. */
#define ENTER_FUNCTION(function, kept)                          \
    HWS_ENTER();                                                \
    const hws_function_t *kept = hws_function_get(function);    \
    if (kept == NULL) {                                         \
        return CUDA_ERROR_INVALID_HANDLE;                       \
    }

HWS_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                                         size_t dynamicSMemSize, unsigned int flags) {
    ENTER_FUNCTION(func, kept);
    HWS_REQUIRE(numBlocks != NULL && blockSize > 0 && flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    HWS_REQUIRE(dynamicSMemSize <= INT32_MAX);
    *numBlocks = (int) active_blocks(kept, blockSize, (int64_t) dynamicSMemSize);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks,
                                                            int blockSize) {
    ENTER_FUNCTION(func, kept);
    HWS_REQUIRE(dynamicSmemSize != NULL && numBlocks > 0 && blockSize > 0);
    HWS_REQUIRE(numBlocks <= blocks_by_threads(kept, blockSize));
    int64_t held = device_value(kept, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    int64_t of_block = held / numBlocks / SHARED_UNIT * SHARED_UNIT
        - device_value(kept, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    of_block = least(of_block, device_value(kept, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    int64_t dynamic_bytes = of_block - kept->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    *dynamicSmemSize = dynamic_bytes > 0 ? (size_t) dynamic_bytes : 0;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                              CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                              size_t dynamicSMemSize, int blockSizeLimit,
                                                              unsigned int flags) {
    ENTER_FUNCTION(func, kept);
    HWS_REQUIRE(minGridSize != NULL && blockSize != NULL && blockSizeLimit >= 0);
    HWS_REQUIRE(flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    int64_t warp = device_value(kept, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    int64_t limit = least(device_value(kept, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                          kept->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK]);
    limit = blockSizeLimit > 0 ? least(limit, blockSizeLimit) : limit;
    int64_t best_threads = 0, best_size = 0, best_blocks = 0;
    /* The largest block among those with the most resident threads, as CUDA chooses. */
    for (int64_t size = round_up(limit, warp); size > 0; size -= warp) {
        int64_t tried = least(size, limit);
        size_t bytes = blockSizeToDynamicSMemSize != NULL ? blockSizeToDynamicSMemSize((int) tried) : dynamicSMemSize;
        int64_t blocks = bytes > INT32_MAX ? 0 : active_blocks(kept, tried, (int64_t) bytes);
        if (blocks * tried > best_threads) {
            best_threads = blocks * tried;
            best_size = tried;
            best_blocks = blocks;
        }
    }
    HWS_REQUIRE(best_size > 0);
    *blockSize = (int) best_size;
    *minGridSize = (int) (best_blocks * device_value(kept, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                                     CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                     size_t dynamicSMemSize, int blockSizeLimit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                                                     dynamicSMemSize, blockSizeLimit, CU_OCCUPANCY_DEFAULT);
}

/* Clusters depend on how a device's multiprocessors are grouped, which no attribute tells. */
static CUresult ask_clusters(CUfunction func, const CUlaunchConfig *config, int *clusters_p, int *size_p) {
    HWS_CHECK_HANDLE(HWS_KIND_FUNCTION, func);
    HWS_REQUIRE(config->numAttrs <= MAX_ATTRIBUTES && (config->numAttrs == 0 || config->attrs != NULL));
    return hws_call_hwsOccupancyClusters(func, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                                         config->blockDimY, config->blockDimZ, config->sharedMemBytes,
                                         config->numAttrs * (uint32_t) sizeof(CUlaunchAttribute), config->attrs,
                                         clusters_p, size_p);
}

HWS_EXPORT CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(numClusters != NULL && config != NULL);
    int clusters, size;
    HWS_TRY(ask_clusters(func, config, &clusters, &size));
    if (clusters < 0) {
        return (CUresult) -clusters; /* wire.yaml, hwsOccupancyClusters: each answer has its own error */
    }
    *numClusters = clusters;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                                       const CUlaunchConfig *config) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(clusterSize != NULL && config != NULL);
    int clusters, size;
    HWS_TRY(ask_clusters(func, config, &clusters, &size));
    if (size < 0) {
        return (CUresult) -size;
    }
    *clusterSize = size;
    return CUDA_SUCCESS;
}
