// Variables of a module: initial values, addresses in initial values, constant memory, parameters of odd shapes.
__device__ int counter = 5;
__device__ double table[3] = {0.5, 1.5, 2.5};
__device__ int target[2] = {11, 22};
__device__ int *const second = &target[1];
__constant__ short weights[4] = {1, -2, 3, -4};

struct Odd {
    char tag;
    double value;
    short pair[3];
};

extern "C" __global__ void read_globals(double *out) {
    out[0] = counter;
    out[1] = table[0] + table[1] * 10 + table[2] * 100;
    out[2] = *second;
    out[3] = weights[0] + weights[1] * 10 + weights[2] * 100 + weights[3] * 1000;
    counter++;
}

extern "C" __global__ void odd_parameters(double *out, char a, Odd odd, short b, float c, unsigned long long d,
                                          bool e) {
    out[0] = a;
    out[1] = odd.tag + odd.value + odd.pair[0] * 100 + odd.pair[2] * 10000;
    out[2] = b;
    out[3] = c;
    out[4] = (double) (d >> 32);
    out[5] = e ? 1 : 0;
}
