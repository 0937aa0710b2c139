// __device__ and __constant__ variables: initial values, copies to and from symbols, addresses, sizes, and pointers to
// variables.
#include "check_cuda.h"

struct Settings {
    int number;
    double factor;
    char name[8];
};

__device__ int counter = 5;
__device__ float table[4] = {1.5f, 2.5f, 3.5f, 4.5f};
__device__ Settings settings = {42, 0.5, "hawser"};
__device__ int *indirect;
__device__ int target[3] = {10, 20, 30};
__device__ int *const pointer_to_second = &target[1];
static __device__ unsigned char zeros[1000];
__constant__ int constants[3] = {7, 8, 9};
__constant__ Settings constant_settings;

__global__ void use(double *out) {
    out[0] = counter;
    out[1] = table[0] + table[1] + table[2] + table[3];
    out[2] = settings.number * settings.factor;
    out[3] = settings.name[5];
    out[4] = indirect != nullptr ? *indirect : -1;
    out[5] = *pointer_to_second;
    out[6] = constants[0] * 100 + constants[1] * 10 + constants[2];
    out[7] = constant_settings.number + constant_settings.factor;
    int sum = 0;
    for (int i = 0; i < 1000; i++) {
        sum += zeros[i];
    }
    out[8] = sum;
    counter++;
}

static void run(double *device, const double *expected) {
    use<<<1, 1>>>(device);
    LAUNCH_OK();
    std::vector<double> got = host_copy(device, 9);
    for (int i = 0; i < 9; i++) {
        check_near("variable", i, expected[i], got[i], 0);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    double *device = device_array<double>(9);
    const double first[] = {5, 12, 21, 'r', -1, 20, 789, 0, 0};
    run(device, first);

    int value = 100;
    CUDA_OK(cudaMemcpyToSymbol(counter, &value, sizeof(value)));
    float quarter = 0.25f;
    CUDA_OK(cudaMemcpyToSymbol(table, &quarter, sizeof(quarter), 2 * sizeof(float)));
    int nine = 90;
    CUDA_OK(cudaMemcpyToSymbol(constants, &nine, sizeof(nine), sizeof(int)));
    Settings mine = {3, 0.125, "x"};
    CUDA_OK(cudaMemcpyToSymbolAsync(constant_settings, &mine, sizeof(mine), 0, cudaMemcpyHostToDevice, 0));
    void *address = nullptr;
    size_t size = 0;
    CUDA_OK(cudaGetSymbolAddress(&address, target));
    CUDA_OK(cudaGetSymbolSize(&size, target));
    check_equal("size of target", 3 * sizeof(int), (long long) size);
    int *third = (int *) address + 2;
    CUDA_OK(cudaMemcpyToSymbol(indirect, &third, sizeof(third)));
    CUDA_OK(cudaGetSymbolAddress(&address, zeros));
    CUDA_OK(cudaMemset((char *) address + 10, 2, 5));
    const double second[] = {100, 8.75, 21, 'r', 30, 20, 1609, 3.125, 10};
    run(device, second);

    CUDA_OK(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
    check_equal("counter", 101, value);
    float back[2];
    CUDA_OK(cudaMemcpyFromSymbol(back, table, sizeof(back), 2 * sizeof(float)));
    check_near("table", 2, 0.25, back[0], 0);
    check_near("table", 3, 4.5, back[1], 0);
    Settings read;
    CUDA_OK(cudaMemcpyFromSymbolAsync(&read, constant_settings, sizeof(read), 0, cudaMemcpyDeviceToHost, 0));
    CUDA_OK(cudaStreamSynchronize(0));
    check_equal("constant_settings.number", 3, read.number);
    CUDA_OK(cudaFree(device));
    return check_pass("9 variables, initial and set");
}
