// match.any and match.all: finds the lanes with equal values.
#include "check_cuda.h"

__global__ void match(unsigned int *out) {
    unsigned int lane = threadIdx.x;
    int all_same = -1, none = -1;
    out[lane * 4] = __match_any_sync(0xFFFFFFFFu, lane % 5);
    out[lane * 4 + 1] = __match_any_sync(0xFFFFFFFFu, (unsigned long long) (lane / 8) << 40);
    out[lane * 4 + 2] = __match_all_sync(0xFFFFFFFFu, 77, &all_same);
    out[lane * 4 + 3] = __match_all_sync(0xFFFFFFFFu, lane, &none) + all_same * 2 + none * 4;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    if (check_attribute(cudaDevAttrComputeCapabilityMajor) < 7) {
        check_unsupported("compute capability below 7.0");
    }
    unsigned int *device = device_array<unsigned int>(128);
    match<<<1, 32>>>(device);
    LAUNCH_OK();
    std::vector<unsigned int> out = host_copy(device, 128);
    for (unsigned int lane = 0; lane < 32; lane++) {
        unsigned int fifths = 0;
        for (unsigned int other = lane % 5; other < 32; other += 5) {
            fifths |= 1u << other;
        }
        check_element("match_any", lane, fifths, out[lane * 4]);
        check_element("match_any of 64 bits", lane, 0xFFu << (lane / 8 * 8), out[lane * 4 + 1]);
        check_element("match_all of one value", lane, 0xFFFFFFFFu, out[lane * 4 + 2]);
        check_element("match_all of different ones", lane, 2, out[lane * 4 + 3]);
    }
    CUDA_OK(cudaFree(device));
    return check_pass("any and all, 32 and 64 bits");
}
