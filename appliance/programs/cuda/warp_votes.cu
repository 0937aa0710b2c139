// Votes, shuffles of all kinds and widths, bit functions, block-wide votes and named lanes.
#include "check_cuda.h"

__global__ void votes(unsigned int *out) {
    unsigned int lane = threadIdx.x & 31;
    unsigned int all = 0xFFFFFFFFu;
    unsigned int *own = out + threadIdx.x * 16;
    own[0] = __ballot_sync(all, lane % 3 == 0);
    own[1] = __any_sync(all, lane == 31);
    own[2] = __all_sync(all, lane < 31);
    own[3] = __shfl_sync(all, lane * 10, 5);
    own[4] = __shfl_up_sync(all, lane, 3);
    own[5] = __shfl_down_sync(all, lane, 4, 8);
    own[6] = __shfl_xor_sync(all, lane, 9, 16);
    own[7] = __shfl_sync(all, lane, lane + 1, 4);
    if (lane % 2 == 0) {
        own[8] = __ballot_sync(0x55555555u, lane > 10);
    } else {
        own[8] = __ballot_sync(0xAAAAAAAAu, lane > 10);
    }
    own[9] = __syncthreads_count(threadIdx.x % 5 == 0);
    own[10] = __syncthreads_and(threadIdx.x < 1000) + 2 * __syncthreads_or(threadIdx.x == 63);
    own[11] = __popc(lane * 0x01010101u) + 100 * __clz(lane) + 10000 * __ffs(lane);
    own[12] = __brev(lane) ^ __byte_perm(0x33221100u, 0x77665544u, 0x6420 + lane % 2);
    unsigned long long wide = __shfl_xor_sync(all, (unsigned long long) lane << 33, 1);
    own[13] = (unsigned int) (wide >> 33);
    own[14] = __float_as_uint(__shfl_down_sync(all, lane * 0.5f, 2));
    __syncwarp();
    unsigned int mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    own[15] = __popc(mask);
}

static unsigned int bits(float value) {
    unsigned int result;
    memcpy(&result, &value, 4);
    return result;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const int threads = 96;
    unsigned int *device = device_array<unsigned int>(threads * 16);
    votes<<<1, threads>>>(device);
    LAUNCH_OK();
    std::vector<unsigned int> out = host_copy(device, threads * 16);
    unsigned int thirds = 0, above_even = 0, above_odd = 0;
    for (int lane = 0; lane < 32; lane++) {
        thirds |= (lane % 3 == 0 ? 1u : 0u) << lane;
        above_even |= (lane % 2 == 0 && lane > 10 ? 1u : 0u) << lane;
        above_odd |= (lane % 2 == 1 && lane > 10 ? 1u : 0u) << lane;
    }
    for (int thread = 0; thread < threads; thread++) {
        const unsigned int *own = &out[thread * 16];
        unsigned int lane = thread % 32;
        check_element("ballot", thread, thirds, own[0]);
        check_element("any", thread, 1, own[1]);
        check_element("all", thread, 0, own[2]);
        check_element("shfl", thread, 50, own[3]);
        check_element("shfl_up", thread, lane < 3 ? lane : lane - 3, own[4]);
        check_element("shfl_down of 8", thread, lane % 8 + 4 < 8 ? lane + 4 : lane, own[5]);
        // Source lane = lane ^ 9, used where it lies in the same or an earlier group of 16.
        check_element("shfl_xor of 16", thread, lane ^ 9, own[6]);
        check_element("shfl of 4", thread, lane / 4 * 4 + (lane + 1) % 4, own[7]);
        check_element("ballot of half a warp", thread, lane % 2 == 0 ? above_even : above_odd, own[8]);
        check_element("syncthreads_count", thread, (threads + 4) / 5, own[9]);
        check_element("syncthreads_and/or", thread, 3, own[10]);
        unsigned int leading = lane == 0 ? 32 : __builtin_clz(lane);
        check_element("popc, clz, ffs", thread,
                      4 * __builtin_popcount(lane) + 100 * leading + 10000 * __builtin_ffs(lane), own[11]);
        unsigned int reversed = 0;
        for (int bit = 0; bit < 32; bit++) {
            reversed |= (lane >> bit & 1u) << (31 - bit);
        }
        unsigned int permuted = lane % 2 ? 0x66442211u : 0x66442200u;
        check_element("brev, byte_perm", thread, reversed ^ permuted, own[12]);
        check_element("64-bit shuffle", thread, lane ^ 1, own[13]);
        check_element("float shuffle", thread, bits((lane + 2 < 32 ? lane + 2 : lane) * 0.5f), own[14]);
        check_element("lanemask_lt", thread, lane, own[15]);
    }
    CUDA_OK(cudaFree(device));
    return check_pass("%d threads, 16 functions each", threads);
}
