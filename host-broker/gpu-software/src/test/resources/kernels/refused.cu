// One program with kernels that the software GPU refuses and kernels that it runs. make-ptx.sh compiles it.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <mma.h>

// The barrier is initialised by init().
#pragma nv_diag_suppress 20054

namespace cg = cooperative_groups;
using namespace nvcuda;

__device__ int doubled = 2;

extern "C" __global__ void plain(int *p) {
    p[threadIdx.x] = p[threadIdx.x] * doubled + 1;
}

extern "C" __global__ void tensorCores(half *a, half *b, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::fill_fragment(fc, 0.0f);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

extern "C" __global__ void launches(int *p) {
    plain<<<1, 32>>>(p);
}

extern "C" __global__ void texture(cudaTextureObject_t t, float *p) {
    p[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0);
}

extern "C" __global__ void surface(cudaSurfaceObject_t s, float *p) {
    surf2Dread(p + threadIdx.x, s, 4 * threadIdx.x, 0);
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) clusters(int *p) {
    __shared__ int x;
    auto cluster = cg::this_cluster();
    x = cluster.block_rank();
    cluster.sync();
    p[blockIdx.x] = *cluster.map_shared_rank(&x, 1 - cluster.block_rank());
}

extern "C" __global__ void bulkCopies(int *p) {
    __shared__ alignas(16) int x[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
    }
    __syncthreads();
    cuda::memcpy_async(x, p, cuda::aligned_size_t<16>(sizeof x), bar);
    bar.arrive_and_wait();
    p[threadIdx.x] = x[63 - threadIdx.x];
}

__device__ __noinline__ int inner(int x) {
    int r;
    asm volatile("{ .reg .b64 %d; cvt.u64.u32 %d, %1; mapa.u64 %d, %d, 0; cvt.u32.u64 %0, %d; }" : "=r"(r) : "r"(x));
    return r;
}
__device__ __noinline__ int outer(int x) {
    return inner(x) + 1;
}
__device__ __noinline__ int harmless(int x) {
    return x + 1;
}

extern "C" __global__ void callsRefused(int *p) {
    p[0] = outer(p[0]);
}

typedef int (*Function)(int);
typedef int (*Other)(int, int);
__device__ __noinline__ int sum(int a, int b) {
    return a + b;
}
__device__ Function table[2] = {outer, harmless};
__device__ Other others[1] = {sum};

extern "C" __global__ void callsByTable(int *p, int which) {
    p[0] = table[which](p[0]);
}
extern "C" __global__ void callsByOtherTable(int *p, int which) {
    p[0] = others[which](p[0], 2);
}
