// Managed variables among others.
__managed__ int counter = 7;
static __managed__ char letters[5000];
__managed__ double sums[3] = {1, 2, 3};
__device__ int plain = 5;
__constant__ int constant = 6;

__global__ void touch() {
    counter += plain + constant;
    letters[4999] = 1;
    sums[1] += 1;
}
