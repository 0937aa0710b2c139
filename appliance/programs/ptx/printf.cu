// printf from a kernel, for the driver programs.
#include <cstdio>

extern "C" __global__ void print_lines(int number, double value, const char *text) {
    if (threadIdx.x == 0) {
        printf("device says %d %.3f %s\n", number, value, text);
        printf("block %u of %u: 64-bit %lld, hexadecimal %08x, 100%%\n", blockIdx.x, gridDim.x,
               (long long) number << 40, (unsigned int) number);
    }
}
