// Managed variables of a module.
extern "C" {

__managed__ int counter = 7;
__managed__ long long sums[3] = {1, 2, 3};
__managed__ char large[100000];
__device__ int plain = 5;

__global__ void touch(int addend) {
    counter += addend;
    sums[1] += addend + plain;
    large[99999] = (char) addend;
}

__global__ void follow(long long *value, int addend) {
    *value += addend;
}
}
