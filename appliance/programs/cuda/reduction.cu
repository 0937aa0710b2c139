// Sums by warp shuffles, shared memory and one atomic of each block; minimum and maximum by integer atomics.
#include "check_cuda.h"

#include <climits>

struct Result {
    double sum;
    long long integer_sum;
    int minimum;
    int maximum;
};

template <typename T> __device__ T warp_sum(T value) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
    }
    return value;
}

__global__ void reduce(const int *values, int count, Result *result) {
    __shared__ long long warp_sums[32];
    long long sum = 0;
    int minimum = INT_MAX, maximum = INT_MIN;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        sum += values[i];
        minimum = min(minimum, values[i]);
        maximum = max(maximum, values[i]);
    }
    sum = warp_sum(sum);
    for (int mask = 16; mask > 0; mask /= 2) {
        minimum = min(minimum, __shfl_xor_sync(0xFFFFFFFFu, minimum, mask));
        maximum = max(maximum, __shfl_xor_sync(0xFFFFFFFFu, maximum, mask));
    }
    int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    if (lane == 0) {
        warp_sums[warp] = sum;
        atomicMin(&result->minimum, minimum);
        atomicMax(&result->maximum, maximum);
    }
    __syncthreads();
    if (warp == 0) {
        sum = lane < blockDim.x / warpSize ? warp_sums[lane] : 0;
        sum = warp_sum(sum);
        if (lane == 0) {
            atomicAdd((unsigned long long *) &result->integer_sum, (unsigned long long) sum);
            atomicAdd(&result->sum, (double) sum);
        }
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int count = (int) check_option("--size", 200001);
    uint32_t seed = 3;
    std::vector<int> values(count);
    Result expected = {0, 0, INT_MAX, INT_MIN};
    for (int &value : values) {
        value = (int) (check_random(&seed) % 2000001) - 1000000;
        expected.integer_sum += value;
        expected.minimum = value < expected.minimum ? value : expected.minimum;
        expected.maximum = value > expected.maximum ? value : expected.maximum;
    }
    int *device_values = device_copy(values);
    std::vector<Result> results(1, Result{0, 0, INT_MAX, INT_MIN});
    Result *device_result = device_copy(results);
    reduce<<<24, 192>>>(device_values, count, device_result);
    LAUNCH_OK();
    Result got = host_copy(device_result, 1)[0];
    check_equal("integer sum", expected.integer_sum, got.integer_sum);
    // Every partial sum is an integer below 2^53, so the order of the atomics has no effect.
    check_equal("sum in double", expected.integer_sum, (long long) got.sum);
    check_equal("minimum", expected.minimum, got.minimum);
    check_equal("maximum", expected.maximum, got.maximum);
    CUDA_OK(cudaFree(device_values));
    CUDA_OK(cudaFree(device_result));
    return check_pass("%d values, sum %lld", count, got.integer_sum);
}
