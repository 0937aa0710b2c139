/*
 * Occupancy, which only the driver can compute: registers are split among parts of a multiprocessor, and preferences
 * for shared memory count. Launch heuristics query it often, so the guest keeps the answers.
 */
#include "occupancy.h"

#include "context.h"
#include "device.h"
#include "launch.h"
#include "module.h"

#include "hws_cuda_calls.h"

#include <stdatomic.h>

#define MAX_ATTRIBUTES 64u
#define ANSWERS 512u /* a power of two; a program asks for dozens of block sizes of some kernels */

typedef enum hws_question { HWS_ASKS_BLOCKS, HWS_ASKS_SHARED_MEMORY } hws_question_t;

/* The inputs of an answer. */
typedef struct hws_occupancy_key {
    uint64_t function;       /* handle, which is never reused */
    uint64_t context;        /* each context has its own kernel of a library */
    uint64_t size;           /* of shared memory, or a number of blocks */
    uint64_t block_and_rest; /* block size, flags, question */
} hws_occupancy_key_t;

/*
 * A kept answer. `version` is odd while a thread writes the rest. Its accesses in find() and keep() pair with each
 * other.
 */
typedef struct hws_answer {
    _Atomic uint64_t version;
    _Atomic uint64_t key[4];
    _Atomic uint64_t generation, value;
} hws_answer_t;

static hws_answer_t answers[ANSWERS];
static _Atomic uint64_t generation = 1; /* 0: the entry is empty */

void hws_occupancy_forget(void) {
    atomic_fetch_add(&generation, 1);
}

static hws_answer_t *place_of(const hws_occupancy_key_t *key) {
    uint64_t mixed = (key->function * 31 + key->context) * 31 + key->size;
    mixed = (mixed * 31 + key->block_and_rest) * 0x9E3779B97F4A7C15u; /* Knuth's multiplicative hashing */
    return &answers[mixed >> 55 & (ANSWERS - 1)];
}

static bool find(const hws_occupancy_key_t *key, uint64_t now, uint64_t *value_p) {
    hws_answer_t *place = place_of(key);
    uint64_t version = atomic_load(&place->version);
    bool found = version % 2 == 0 && atomic_load(&place->generation) == now
        && atomic_load(&place->key[0]) == key->function && atomic_load(&place->key[1]) == key->context
        && atomic_load(&place->key[2]) == key->size && atomic_load(&place->key[3]) == key->block_and_rest;
    *value_p = atomic_load(&place->value);
    return found && atomic_load(&place->version) == version;
}

static void keep(const hws_occupancy_key_t *key, uint64_t now, uint64_t value) {
    hws_answer_t *place = place_of(key);
    uint64_t version = atomic_load(&place->version);
    if (version % 2 != 0 || !atomic_compare_exchange_strong(&place->version, &version, version + 1)) {
        return; /* another thread writes there; one of the two answers is kept */
    }
    atomic_store(&place->key[0], key->function);
    atomic_store(&place->key[1], key->context);
    atomic_store(&place->key[2], key->size);
    atomic_store(&place->key[3], key->block_and_rest);
    atomic_store(&place->value, value);
    atomic_store(&place->generation, now);
    atomic_store(&place->version, version + 2);
}

static hws_occupancy_key_t key_of(CUfunction function, hws_question_t question, unsigned flags, int block_size,
                                  uint64_t size) {
    return (hws_occupancy_key_t) {.function = (uint64_t) (uintptr_t) function,
                                  .context = (uint64_t) (uintptr_t) hws_context_current(),
                                  .size = size,
                                  .block_and_rest =
                                      (uint64_t) question << 33 | (uint64_t) flags << 32 | (uint32_t) block_size};
}

static CUresult active_blocks(CUfunction function, int block_size, size_t dynamic_bytes, unsigned flags,
                              int *blocks_p) {
    const hws_occupancy_key_t key = key_of(function, HWS_ASKS_BLOCKS, flags, block_size, dynamic_bytes);
    uint64_t now = atomic_load(&generation), value;
    if (!find(&key, now, &value)) {
        int blocks;
        HWS_TRY(hws_call_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, block_size,
                                                                              dynamic_bytes, flags));
        value = (uint64_t) blocks;
        keep(&key, now, value);
    }
    *blocks_p = (int) value;
    return CUDA_SUCCESS;
}

bool hws_occupancy_is_too_large(CUfunction function, int block_size, size_t dynamic_bytes, uint64_t blocks) {
    const hws_function_t *kept = hws_function_get(function);
    int held;
    if (kept == NULL || active_blocks(function, block_size, dynamic_bytes, CU_OCCUPANCY_DEFAULT, &held) != CUDA_SUCCESS
        || held <= 0) {
        return false; /* the launch itself reports the error */
    }
    return blocks
        > (uint64_t) held * (uint64_t) hws_device_attribute(kept->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

static int device_value(const hws_function_t *function, CUdevice_attribute attribute) {
    return hws_device_attribute(function->device, attribute);
}

HWS_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                                         size_t dynamicSMemSize, unsigned int flags) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(numBlocks != NULL && flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    HWS_CHECK_HANDLE(HWS_KIND_FUNCTION, func);
    HWS_REQUIRE(blockSize > 0);
    return active_blocks(func, blockSize, dynamicSMemSize, flags, numBlocks);
}

HWS_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks,
                                                            int blockSize) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(dynamicSmemSize != NULL && numBlocks > 0);
    HWS_CHECK_HANDLE(HWS_KIND_FUNCTION, func);
    HWS_REQUIRE(blockSize > 0);
    const hws_occupancy_key_t key = key_of(func, HWS_ASKS_SHARED_MEMORY, 0, blockSize, (uint64_t) numBlocks);
    uint64_t now = atomic_load(&generation), value;
    if (!find(&key, now, &value)) {
        size_t bytes;
        HWS_TRY(hws_call_cuOccupancyAvailableDynamicSMemPerBlock(&bytes, func, numBlocks, blockSize));
        value = bytes;
        keep(&key, now, value);
    }
    *dynamicSmemSize = (size_t) value;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                              CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                              size_t dynamicSMemSize, int blockSizeLimit,
                                                              unsigned int flags) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(minGridSize != NULL && blockSize != NULL && flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    const hws_function_t *kept = hws_function_get(func);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    HWS_REQUIRE(blockSizeLimit >= 0);
    int warp = device_value(kept, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    int most_threads = device_value(kept, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    int limit = device_value(kept, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    limit = kept->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] < limit
        ? kept->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK]
        : limit;
    limit = blockSizeLimit > 0 && blockSizeLimit < limit ? blockSizeLimit : limit;
    int best_threads = 0, best_size = 0, best_blocks = 0;
    /* Chooses the largest block among those with the most resident threads, as CUDA does. */
    for (int size = (limit + warp - 1) / warp * warp; size > 0 && best_threads < most_threads; size -= warp) {
        int tried = size < limit ? size : limit, blocks;
        size_t bytes = blockSizeToDynamicSMemSize != NULL ? blockSizeToDynamicSMemSize(tried) : dynamicSMemSize;
        HWS_TRY(active_blocks(func, tried, bytes, flags, &blocks));
        if (blocks * tried > best_threads) {
            best_threads = blocks * tried;
            best_size = tried;
            best_blocks = blocks;
        }
    }
    *blockSize = best_size;
    *minGridSize = best_blocks * device_value(kept, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                                     CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                     size_t dynamicSMemSize, int blockSizeLimit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                                                     dynamicSMemSize, blockSizeLimit, CU_OCCUPANCY_DEFAULT);
}

/* Clusters depend on the grouping of a device's multiprocessors, which no attribute shows. */
static CUresult ask_clusters(CUfunction func, const CUlaunchConfig *config, int *clusters_p, int *size_p) {
    HWS_CHECK_HANDLE(HWS_KIND_FUNCTION, func);
    HWS_REQUIRE(config->numAttrs <= MAX_ATTRIBUTES && (config->numAttrs == 0 || config->attrs != NULL));
    const HwsLaunchShape dims = hws_launch_dims(config);
    return hws_call_hwsOccupancyClusters(func, &dims, config->numAttrs * (uint32_t) sizeof(CUlaunchAttribute),
                                         config->attrs, clusters_p, size_p);
}

HWS_EXPORT CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(func != NULL);
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(numClusters != NULL && config != NULL);
    int clusters, size;
    HWS_TRY(ask_clusters(func, config, &clusters, &size));
    if (clusters < 0) {
        return (CUresult) -clusters; /* occupancy.yaml, hwsOccupancyClusters: each answer has its own error */
    }
    *numClusters = clusters;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                                       const CUlaunchConfig *config) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(func != NULL);
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
