// Cooperative groups: tiles of a block, coalesced threads, and a barrier of the whole grid where the device attribute
// permits it.
#include "check_cuda.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void tiles(int *out) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int value = (int) block.thread_rank();
    for (int offset = tile.size() / 2; offset > 0; offset /= 2) {
        value += tile.shfl_down(value, offset);
    }
    if (tile.thread_rank() == 0) {
        out[tile.meta_group_rank()] = value;
    }
    block.sync();
    if (threadIdx.x % 4 == 1) {
        cg::coalesced_group active = cg::coalesced_threads();
        if (active.thread_rank() == 0) {
            atomicAdd(&out[100], (int) active.size());
        }
    }
}

__global__ void grid_barrier(int *values, int count, int rounds) {
    cg::grid_group grid = cg::this_grid();
    int stride = (int) grid.size(), first = (int) grid.thread_rank();
    for (int round = 0; round < rounds; round++) {
        // Each element takes its right neighbour's value: the result is right only if all read before one writes.
        int read[4], n = 0;
        for (int i = first; i < count; i += stride) {
            read[n++] = values[(i + 1) % count];
        }
        grid.sync();
        n = 0;
        for (int i = first; i < count; i += stride) {
            values[i] = read[n++];
        }
        grid.sync();
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int *out = device_array<int>(101);
    CUDA_OK(cudaMemset(out, 0, 101 * sizeof(int)));
    tiles<<<1, 64>>>(out);
    LAUNCH_OK();
    std::vector<int> got = host_copy(out, 101);
    for (int tile = 0; tile < 8; tile++) {
        check_element("tile's sum", tile, 28 + 64 * tile, got[tile]);
    }
    check_equal("coalesced threads", 16, got[100]);
    CUDA_OK(cudaFree(out));

    int count = 700, rounds = 5;
    int *values = device_array<int>(count);
    void *arguments[] = {&values, &count, &rounds};
    int blocks = check_attribute(cudaDevAttrMultiProcessorCount);
    blocks = blocks > 4 ? 4 : blocks;
    if (!check_attribute(cudaDevAttrCooperativeLaunch)) {
        check_true("a cooperative launch is refused",
                   cudaLaunchCooperativeKernel((void *) grid_barrier, blocks, 192, arguments, 0, 0) != cudaSuccess);
        check_here("cooperative launch refused");
        return check_pass("tiles and coalesced groups");
    }
    std::vector<int> numbers(count);
    for (int i = 0; i < count; i++) {
        numbers[i] = i * i;
    }
    CUDA_OK(cudaMemcpy(values, numbers.data(), count * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_OK(cudaLaunchCooperativeKernel((void *) grid_barrier, blocks, 192, arguments, 0, 0));
    got = host_copy(values, count);
    for (int i = 0; i < count; i++) {
        int from = (i + rounds) % count;
        check_element("shifted", i, from * from, got[i]);
    }
    CUDA_OK(cudaFree(values));
    return check_pass("tiles, coalesced groups, %d barriers of %d blocks", 2 * rounds, blocks);
}
