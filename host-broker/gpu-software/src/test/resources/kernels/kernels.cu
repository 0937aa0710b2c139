// Kernels of the software GPU's tests. make-ptx.sh compiles them; the PTX is committed.
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void vectorAdd(float *c, const float *a, const float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}

template <int TILE> __device__ void tiledProduct(float *c, const float *a, const float *b, int n) {
    __shared__ float as[TILE][TILE];
    __shared__ float bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int m = 0; m < n / TILE; m++) {
        as[threadIdx.y][threadIdx.x] = a[row * n + m * TILE + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(m * TILE + threadIdx.y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++) {
            sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        }
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void matrixMul16(float *c, const float *a, const float *b, int n) {
    tiledProduct<16>(c, a, b, n);
}

extern "C" __global__ void matrixMul32(float *c, const float *a, const float *b, int n) {
    tiledProduct<32>(c, a, b, n);
}

// Block sum by warp shuffles and one atomic a block.
extern "C" __global__ void sumReduce(int *out, const int *in, int n) {
    __shared__ int partial[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? in[i] : 0;
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        partial[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
        for (int offset = 16; offset > 0; offset /= 2) {
            value += __shfl_down_sync(0xffffffffu, value, offset);
        }
        if (threadIdx.x == 0) {
            atomicAdd(out, value);
        }
    }
}

extern "C" __global__ void histogram(unsigned *bins, const unsigned char *in, int n) {
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        local[i] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[in[i]], 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        atomicAdd(&bins[i], local[i]);
    }
}

// Partial masks: odd and even lanes shuffle among themselves in different branches.
extern "C" __global__ void partialMasks(int *out) {
    int lane = threadIdx.x % 32;
    int value;
    if (lane % 2) {
        value = __shfl_xor_sync(0xaaaaaaaau, lane * 10, 2);
        value += 1000 * __popc(__ballot_sync(0xaaaaaaaau, lane > 15));
    } else {
        value = __shfl_up_sync(0x55555555u, lane * 100, 2);
        value += 100000 * __all_sync(0x55555555u, lane < 31);
    }
    __syncwarp();
    int first = __shfl_sync(0xffffffffu, value, 0, 8);
    out[2 * threadIdx.x] = value;
    out[2 * threadIdx.x + 1] = first + (__any_sync(0xffffffffu, lane == 7) ? 1 : 0);
}

// Threads leave the loop at different times; the remaining threads meet at barriers. Some threads exit early.
extern "C" __global__ void divergentBarriers(int *out, int rounds) {
    __shared__ int turn[128];
    turn[threadIdx.x] = threadIdx.x;
    if (threadIdx.x >= 96) {
        return;
    }
    for (int r = 0; r < rounds; r++) {
        __syncthreads();
        int other = turn[(threadIdx.x + 1) % 96];
        __syncthreads();
        if (threadIdx.x % 3 == 0) {
            turn[threadIdx.x] += other;
        } else {
            turn[threadIdx.x] ^= other;
        }
    }
    int odd = __syncthreads_count(turn[threadIdx.x] & 1);
    int all = __syncthreads_and(turn[threadIdx.x] >= 0);
    int any = __syncthreads_or(threadIdx.x == 95);
    out[threadIdx.x] = turn[threadIdx.x] + odd * 1000000 + all * 100000000 + any * 200000000;
}

__device__ int lockWord;

__device__ __noinline__ void lock(int *word) {
    while (atomicCAS(word, 0, 1) != 0) {
    }
    __threadfence();
}

// The lock's holder waits until the other threads of its warp have run: they must not spin forever.
extern "C" __global__ void spinLock(int *counter, volatile int *flag) {
    bool done = false;
    while (!done) {
        if (atomicCAS(&lockWord, 0, 1) == 0) {
            __threadfence();
            *(volatile int *) counter = *(volatile int *) counter + 1;
            __threadfence();
            atomicExch(&lockWord, 0);
            done = true;
        }
    }
    // Thread 0 waits for a flag that the last thread sets.
    if (threadIdx.x == 0) {
        while (flag[0] == 0) {
        }
    } else if (threadIdx.x == blockDim.x - 1) {
        flag[0] = 1;
    }
}

extern "C" __global__ void heldLock(int *counter) {
    __shared__ int word;
    if (threadIdx.x == 0) {
        word = 0;
    }
    __syncthreads();
    for (int i = 0; i < 4; i++) {
        if (threadIdx.x % 32 == 0) {
            lock(&word);
            counter[0]++;
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            __threadfence();
            atomicExch(&word, 0);
        }
    }
}

extern "C" __global__ void localArrays(int *out, int n) {
    int stack[32];
    for (int i = 0; i < 32; i++) {
        stack[i] = i * (int) threadIdx.x;
    }
    for (int i = 0; i < n; i++) {
        int j = (i * 7 + threadIdx.x) % 32;
        stack[j] += stack[(j + 5) % 32] ^ i;
    }
    int sum = 0;
    for (int i = 0; i < 32; i++) {
        sum = sum * 31 + stack[i];
    }
    out[threadIdx.x] = sum;
}

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ int ackermann(int m, int n) {
    int trace[2] = {m, n};
    int r = m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
    return r + trace[0] - m + trace[1] - n;
}

extern "C" __global__ void recursion(int *out, int n) {
    out[2 * threadIdx.x] = fibonacci(n + threadIdx.x % 4);
    out[2 * threadIdx.x + 1] = ackermann(2, threadIdx.x % 4);
}

struct Shape {
    __device__ virtual float area() const = 0;
    float side;
};
struct Square : Shape {
    __device__ float area() const override {
        return side * side;
    }
};
struct Circle : Shape {
    __device__ float area() const override {
        return 3.0f * side * side;
    }
};
__device__ int twice(int x) {
    return 2 * x;
}
__device__ int negative(int x) {
    return -x;
}
__device__ int warpSum(int x) {
    for (int o = 16; o; o /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, o);
    }
    return x;
}
__device__ int (*table[3])(int) = {twice, negative, warpSum};

extern "C" __global__ void indirectCalls(float *areas, int *out, int select) {
    Square square;
    Circle circle;
    square.side = threadIdx.x;
    circle.side = threadIdx.x;
    const Shape *shape = threadIdx.x % 2 ? (const Shape *) &square : (const Shape *) &circle;
    areas[threadIdx.x] = shape->area();
    out[threadIdx.x] = table[select](threadIdx.x);
}

struct Pair {
    int a;
    double b;
    char c[6];
};
__device__ __noinline__ Pair swapped(Pair p, int k) {
    Pair q;
    q.a = (int) p.b;
    q.b = p.a + k;
    for (int i = 0; i < 6; i++) {
        q.c[i] = p.c[5 - i];
    }
    return q;
}
extern "C" __global__ void structs(Pair *out, Pair in) {
    in.a += threadIdx.x;
    out[threadIdx.x] = swapped(in, threadIdx.x);
}

__constant__ float weights[9];
__constant__ short constants[4] = {1, -2, 300, -400};
__device__ const char *names[2] = {"zero", "one"};

extern "C" __global__ void convolve(float *out, const float *in, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    float sum = 0;
    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
            int xx = min(max(x + dx, 0), width - 1);
            int yy = min(max(y + dy, 0), height - 1);
            sum += weights[(dy + 1) * 3 + dx + 1] * in[yy * width + xx];
        }
    }
    out[y * width + x] = sum + constants[(x + y) & 3];
}

extern "C" __global__ void hello(int n) {
    printf("thread %d of %u: %5.2f|%-6s|%c|%x|%lld|%e|%g%%\n", threadIdx.x, blockDim.x, 1.5 * threadIdx.x,
           names[threadIdx.x % 2], 'a' + threadIdx.x, 255u + threadIdx.x, -1234567890123ll, 0.000123, 1e10);
    assert(threadIdx.x < n);
}

extern "C" __global__ void dynamicScan(int *data, int n) {
    extern __shared__ int temp[];
    int t = threadIdx.x;
    temp[t] = data[blockIdx.x * n + t];
    __syncthreads();
    for (int offset = 1; offset < n; offset *= 2) {
        int value = t >= offset ? temp[t - offset] : 0;
        __syncthreads();
        temp[t] += value;
        __syncthreads();
    }
    data[blockIdx.x * n + t] = temp[t];
}

extern "C" __global__ void doubles(double *out, const double *in, int n) {
    int i = threadIdx.x;
    double x = in[i];
    out[8 * i] = exp(x);
    out[8 * i + 1] = log(fabs(x) + 1e-3);
    out[8 * i + 2] = sin(x);
    out[8 * i + 3] = pow(fabs(x), 1.7);
    out[8 * i + 4] = sqrt(fabs(x));
    out[8 * i + 5] = x / (1 + x * x);
    out[8 * i + 6] = floor(x) + rint(x) + trunc(x);
    out[8 * i + 7] = erf(x) + tanh(x) + cbrt(x) + atan2(x, 2.0);
}

extern "C" __global__ void floats(float *out, const float *in, int n) {
    int i = threadIdx.x;
    float x = in[i];
    out[8 * i] = expf(x);
    out[8 * i + 1] = logf(fabsf(x) + 1e-3f);
    out[8 * i + 2] = sinf(x * 1000);
    out[8 * i + 3] = powf(fabsf(x), 1.7f);
    out[8 * i + 4] = sqrtf(fabsf(x)) + rsqrtf(fabsf(x) + 1);
    out[8 * i + 5] = x / (1 + x * x);
    out[8 * i + 6] = floorf(x) + rintf(x) + truncf(x) + fmodf(x, 0.7f);
    out[8 * i + 7] = erff(x) + tanhf(x) + cbrtf(x) + atan2f(x, 2.0f) + __expf(x) + __sinf(x);
}

extern "C" __global__ void halves(float *out, const float *in) {
    int i = threadIdx.x;
    __half h = __float2half(in[i]);
    __half2 h2 = __floats2half2_rn(in[i], -in[i]);
    h2 = __hfma2(h2, h2, __half2half2(h));
    __nv_bfloat16 b = __float2bfloat16(in[i]);
    out[4 * i] = __half2float(h * h + h);
    out[4 * i + 1] = __low2float(h2);
    out[4 * i + 2] = __high2float(h2);
    out[4 * i + 3] = __bfloat162float(b * b + b);
}

extern "C" __global__ void integers(unsigned long long *out, const unsigned *in) {
    int i = threadIdx.x;
    unsigned a = in[2 * i];
    unsigned b = in[2 * i + 1];
    unsigned long long w = (unsigned long long) a << 32 | b;
    out[12 * i] = __popc(a) + 100 * __clz(b) + 10000 * __ffs(a);
    out[12 * i + 1] = __brev(a) ^ __byte_perm(a, b, 0x3715);
    out[12 * i + 2] = __umulhi(a, b) + (unsigned long long) __mulhi((int) a, (int) b);
    out[12 * i + 3] = w / (b | 1) + w % (a | 1);
    out[12 * i + 4] = __umul64hi(w, w) ^ (w * w);
    out[12 * i + 5] = __funnelshift_l(a, b, a & 31) ^ __funnelshift_rc(a, b, b & 63);
    out[12 * i + 6] = (long long) (int) a / ((int) b | 1) + (long long) (int) a % ((int) b | 1);
    out[12 * i + 7] = __dp4a((int) a, (int) b, 7);
    out[12 * i + 8] = __sad((int) a, (int) b, 5u) + __usad(a, b, 9u);
    unsigned __int128 big = (unsigned __int128) w * w + w;
    out[12 * i + 9] = (unsigned long long) (big >> 64) + (unsigned long long) big;
    out[12 * i + 10] = (signed char) a * (short) b + (unsigned char) (a >> 3) + (unsigned short) (b >> 5);
    out[12 * i + 11] = __uint_as_float(a & 0x3fffffffu) > 1.0f ? a % 1000u : b / 10u;
}

extern "C" __global__ void atomics(int *i, unsigned *u, float *f, double *d, unsigned long long *w) {
    int t = threadIdx.x + blockIdx.x * blockDim.x;
    atomicAdd(i, t);
    atomicMin(i + 1, -t);
    atomicMax(i + 2, t);
    atomicXor(i + 3, t);
    atomicOr(i + 4, t);
    atomicAnd(i + 5, ~t);
    atomicInc(u, 17);
    atomicDec(u + 1, 29);
    atomicMax(u + 2, 0x80000000u + t);
    atomicAdd(f, 1.0f);
    atomicAdd(d, 0.5);
    atomicAdd(w, 1ull << 33);
    atomicMax(w + 1, (unsigned long long) t << 40);
    unsigned long long old = w[2];
    unsigned long long seen;
    do {
        seen = old;
        old = atomicCAS(w + 2, seen, seen * 3 + 1);
    } while (seen != old);
}

struct Vec {
    float4 a;
    int2 b;
    uchar4 c;
    short2 d;
    double2 e;
};
extern "C" __global__ void vectors(Vec *out, const Vec *in) {
    Vec v = in[threadIdx.x];
    __shared__ float4 turned[64];
    turned[threadIdx.x] = make_float4(v.a.w, v.a.z, v.a.y, v.a.x);
    __syncthreads();
    v.a = turned[63 - threadIdx.x];
    v.b = make_int2(v.b.y, v.b.x);
    v.c = make_uchar4(v.c.w, v.c.z, v.c.y, v.c.x);
    v.d = make_short2(v.d.y, v.d.x);
    v.e = make_double2(v.e.y, v.e.x);
    out[threadIdx.x] = v;
}

extern "C" __global__ void warpMatch(unsigned *out, const int *in) {
    int v = in[threadIdx.x];
    int all;
    out[4 * threadIdx.x] = __match_any_sync(0xffffffffu, v);
    out[4 * threadIdx.x + 1] = __match_all_sync(0xffffffffu, v, &all) + all;
    unsigned active = 0;
    if (v % 2) {
        active = __activemask();
    }
    out[4 * threadIdx.x + 2] = active;
    out[4 * threadIdx.x + 3] = __match_any_sync(0xffffffffu, (long long) v << 33);
}

extern "C" __global__ void outOfBounds(int *p, int index) {
    p[index] = 1;
}

extern "C" __global__ void misaligned(char *p) {
    *(int *) (p + 1) = 1;
}

extern "C" __global__ void sharedOutOfBounds(int *out, int index) {
    __shared__ int a[8];
    a[threadIdx.x % 8] = threadIdx.x;
    __syncthreads();
    out[0] = a[index];
}

extern "C" __global__ void endless(volatile int *p) {
    int i = 0;
    while (p[0] != 1) {
        i++;
    }
    p[1] = i;
}

extern "C" __global__ void endlessArithmetic(int *p, int n) {
    int x = n;
    while (x != 0) {
        x = x * 5 + 1 | 1;
    }
    p[0] = x;
}

extern "C" __global__ void deadlock(int *out) {
    if (threadIdx.x < 16) {
        out[threadIdx.x] = __shfl_sync(0xffffffffu, threadIdx.x, 0);
    } else {
        __syncthreads();
    }
}

extern "C" __global__ void stackOverflow(int *out) {
    out[0] = fibonacci(1 << 20);
}

// A producer and a consumer warp over named barriers.
extern "C" __global__ void namedBarriers(int *out) {
    __shared__ int box[32];
    int lane = threadIdx.x % 32;
    int sum = 0;
    for (int r = 0; r < 4; r++) {
        if (threadIdx.x < 32) {
            if (r) {
                asm volatile("bar.sync 2, 64;");
            }
            box[lane] = r * 100 + lane;
            asm volatile("bar.arrive 1, 64;");
        } else {
            asm volatile("bar.sync 1, 64;");
            sum += box[31 - lane];
            if (r < 3) {
                asm volatile("bar.arrive 2, 64;");
            }
        }
    }
    if (threadIdx.x >= 32) {
        out[lane] = sum;
    }
}

// All CTAs must run at the same time: the test runs them in turns.
extern "C" __global__ void gridSync(int *a, int rounds) {
    auto grid = cooperative_groups::this_grid();
    a[grid.thread_rank()] = grid.thread_rank();
    for (int r = 0; r < rounds; r++) {
        grid.sync();
        int value = a[(grid.thread_rank() + 64) % grid.size()];
        grid.sync();
        a[grid.thread_rank()] = value + 1;
    }
}
