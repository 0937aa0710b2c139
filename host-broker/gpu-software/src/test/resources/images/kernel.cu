__device__ int table[1024] = {1, 2, 3};
__constant__ float c[64];
extern "C" __global__ void vadd(const float *a, const float *b, float *r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        r[i] = a[i] + b[i] + c[0] + table[0];
}
