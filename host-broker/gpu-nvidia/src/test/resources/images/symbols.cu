// Variables of all kinds, and shared memory, which is none.
static __device__ int hidden[10];
static __device__ int counted = 7;
static __constant__ float table[8];
namespace {
__device__ int unnamed[6];
}
template <int N> __device__ int member[N];

extern "C" __global__ void use(int *p) {
    static int local = 3;
    __shared__ int shared[8];
    shared[threadIdx.x & 7] = p[0];
    __syncthreads();
    local += shared[p[1] & 7];
    hidden[1] += local;
    counted++;
    unnamed[2] += static_cast<int>(table[3]);
    member<9>[2]++;
}
