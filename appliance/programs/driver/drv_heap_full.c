/*
 * More pinned memory than there is room for. An allocation of mapped memory then fails with CUDA_ERROR_OUT_OF_MEMORY
 * and changes nothing else; unmapped allocations continue to work, and freed memory can be allocated again. `--limit
 * MiB` where memory is unlimited.
 */
#include "check_driver.h"

#define BLOCK_BYTES ((size_t) 4 << 20)
#define BLOCK_WORDS (BLOCK_BYTES / 8)
#define MAX_BLOCKS 4096

static uint64_t *blocks[MAX_BLOCKS];

static uint64_t word(int block, size_t i) {
    return (uint64_t) block << 32 | i;
}

static void fill(int block) {
    for (size_t i = 0; i < BLOCK_WORDS; i += 64) {
        blocks[block][i] = word(block, i);
    }
}

static void check_block(int block, const uint64_t *words) {
    for (size_t i = 0; i < BLOCK_WORDS; i += 64) {
        if (words[i] != word(block, i)) {
            check_fail("block %d, word %zu, expected %llx, got %llx", block, i, (unsigned long long) word(block, i),
                       (unsigned long long) words[i]);
        }
    }
}

/* Copies of memory that had no room in the region give the same results. */
static void check_without_room(CUdeviceptr device) {
    uint64_t *large, *small;
    CU_OK(cuMemHostAlloc((void **) &large, BLOCK_BYTES, CU_MEMHOSTALLOC_PORTABLE));
    CU_OK(cuMemHostAlloc((void **) &small, 100, 0));
    memcpy(large, blocks[0], BLOCK_BYTES);
    CU_OK(cuMemcpyHtoDAsync(device, large, BLOCK_BYTES, NULL));
    CU_OK(cuStreamSynchronize(NULL));
    memset(large, 0, BLOCK_BYTES);
    CU_OK(cuMemcpyDtoHAsync(large, device, BLOCK_BYTES, NULL));
    CU_OK(cuStreamSynchronize(NULL));
    check_block(0, large);
    CU_OK(cuMemcpyDtoH(small, device, 100));
    check_equal("a small one", (long long) word(0, 0), (long long) small[0]);
    CU_OK(cuMemFreeHost(large));
    CU_OK(cuMemFreeHost(small));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    unsigned int flags = check_can_map() ? CU_MEMHOSTALLOC_DEVICEMAP : 0;
    int limit = (int) ((size_t) check_option("--limit", flags != 0 ? 1024 : 64) * 1024 * 1024 / BLOCK_BYTES);
    int count = 0, full = 0;
    limit = limit < MAX_BLOCKS ? limit : MAX_BLOCKS;
    CUdeviceptr device = check_device(NULL, BLOCK_BYTES);
    for (; count < limit; count++) {
        CUresult result = cuMemHostAlloc((void **) &blocks[count], BLOCK_BYTES, flags);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            full = 1;
            break;
        }
        CU_OK(result);
        fill(count);
    }
    check_true("room for two blocks", count >= 2);
    if (full) {
        CU_IS(CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc((void **) &blocks[count], BLOCK_BYTES, flags));
    }
    check_without_room(device);
    uint64_t *words = check_memory(BLOCK_BYTES);
    for (int block = 0; block < count; block++) {
        CU_OK(cuMemcpyHtoDAsync(device, blocks[block], BLOCK_BYTES, NULL));
        CU_OK(cuMemcpyDtoH(words, device, BLOCK_BYTES));
        check_block(block, words);
    }
    /* Memory that one allocation frees is available to another. */
    for (int block = 0; block < count; block += 2) {
        CU_OK(cuMemFreeHost(blocks[block]));
    }
    for (int block = 0; block < count; block += 2) {
        CU_OK(cuMemHostAlloc((void **) &blocks[block], BLOCK_BYTES, flags));
        fill(block);
    }
    for (int block = 0; block < count; block++) {
        check_block(block, blocks[block]);
        CU_OK(cuMemFreeHost(blocks[block]));
    }
    uint64_t *large;
    CU_OK(cuMemHostAlloc((void **) &large, BLOCK_BYTES * (size_t) count, flags));
    CU_OK(cuMemFreeHost(large));
    CU_OK(cuMemFree(device));
    free(words);
    check_here("%zu MiB%s", count * BLOCK_BYTES >> 20, full ? ", then the room was full" : "");
    return check_pass("as much pinned memory as there is room for");
}
