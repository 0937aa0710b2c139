// Integer operations of all widths compared with the host's: division, remainder, high products, shifts, bit fields,
// funnel shifts, saturation, byte-wise operations, conversions.
#include "check_cuda.h"

constexpr int RESULTS = 40;

__host__ __device__ static long long high64(long long a, long long b) {
#ifdef __CUDA_ARCH__
    return __mul64hi(a, b);
#else
    return (long long) (((__int128) a * b) >> 64);
#endif
}

__host__ __device__ static unsigned int funnel(unsigned int low, unsigned int high, unsigned int shift) {
#ifdef __CUDA_ARCH__
    return __funnelshift_l(low, high, shift);
#else
    return (unsigned int) ((((unsigned long long) high << 32 | low) << (shift & 31)) >> 32);
#endif
}

__host__ __device__ static int sad(int a, int b, unsigned int c) {
#ifdef __CUDA_ARCH__
    return (int) __sad(a, b, c);
#else
    return (int) ((unsigned int) (a > b ? (long long) a - b : (long long) b - a) + c);
#endif
}

__host__ __device__ static long long to_long(double value) {
#ifdef __CUDA_ARCH__
    return __double2ll_rn(value);
#else
    return llrint(value);
#endif
}

// The same code on both sides, with operations that C defines for all inputs.
__host__ __device__ static void compute(long long a, long long b, long long *out) {
    int ia = (int) a, ib = (int) b;
    unsigned int ua = (unsigned int) a, ub = (unsigned int) b;
    unsigned long long la = (unsigned long long) a, lb = (unsigned long long) b;
    short sa = (short) a, sb = (short) b;
    unsigned char ca = (unsigned char) a, cb = (unsigned char) b;
    int n = 0;
    out[n++] = (long long) (la + lb);
    out[n++] = (long long) (la - lb);
    out[n++] = (long long) (la * lb);
    out[n++] = lb != 0 ? (long long) (la / lb) : 1;
    out[n++] = lb != 0 ? (long long) (la % lb) : 1;
    out[n++] = b != 0 && b != -1 ? a / b : 1;
    out[n++] = b != 0 && b != -1 ? a % b : 1;
    out[n++] = ub != 0 ? ua / ub : 1;
    out[n++] = ub != 0 ? ua % ub : 1;
    out[n++] = ib != 0 && ib != -1 ? ia / ib : 1;
    out[n++] = ib != 0 && ib != -1 ? ia % ib : 1;
    out[n++] = ia / 7 + ia % 10;
    out[n++] = a / 1000003 + a % 37;
    out[n++] = (long long) (ua * ub);
    out[n++] = (long long) ((unsigned long long) ua * ub);
    out[n++] = (long long) ia * ib;
    out[n++] = high64(a, b);
    out[n++] = (long long) (la << (b & 63));
    out[n++] = (long long) (la >> (b & 63));
    out[n++] = a >> (b & 63);
    out[n++] = ua << (b & 31);
    out[n++] = ua >> (b & 31);
    out[n++] = ia >> (b & 31);
    out[n++] = a & b;
    out[n++] = a | b;
    out[n++] = a ^ ~b;
    out[n++] = (short) (sa * sb);
    out[n++] = (short) (sa + sb) >> 3;
    out[n++] = (unsigned char) (ca * cb + 1);
    out[n++] = (signed char) (ca - cb);
    out[n++] = a < b ? 1 : a == b ? 2 : 3;
    out[n++] = la < lb ? 1 : la == lb ? 2 : 3;
    out[n++] = (ia < ib) + 2 * (ua < ub) + 4 * (sa < sb) + 8 * (ca <= cb);
    out[n++] = funnel(ua, ub, ca);
    out[n++] = sad(ia, ib, ua);
    out[n++] = (long long) ((double) (a >> 1) + 0.0 * (double) b);
    out[n++] = to_long((double) (a >> 12) * 0.5);
    out[n++] = (long long) (unsigned int) (float) (ua >> 8);
    out[n++] = (ia & 0xFFF0) >> 4 | (ib & 0xFF) << 12;
    out[n++] = (a < 0 ? -(unsigned long long) a : la) > 1000;
}

__global__ void run(const long long *a, const long long *b, long long *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        compute(a[i], b[i], out + (size_t) i * RESULTS);
    }
}

__global__ void special(unsigned int *out) {
    unsigned int x = 0x12345678u + threadIdx.x * 0x01010101u;
    out[0] = __vadd4(x, 0xFF01FF01u);
    out[1] = __vcmpgtu4(x, 0x40404040u);
    out[2] = __dp4a((int) x, 0x01020304, 5);
    out[3] = __vmaxu4(x, 0x50505050u);
    out[4] = __umulhi(x, 0x9ABCDEF0u);
    out[5] = (unsigned int) __mulhi((int) x, -77777);
    out[6] = __popcll(0xF0F0F0F012345678ULL) * 1000 + __clzll(0x0000001000000000LL) * 10 + __ffsll(0x100000LL) % 10;
    out[7] = __uhadd(0xFFFFFFFFu, 0xFFFFFFFDu) ^ __urhadd(6u, 9u);
    unsigned int field;
    asm("bfe.u32 %0, %1, 8, 12;" : "=r"(field) : "r"(x));
    out[8] = field;
    asm("bfi.b32 %0, %1, %2, 4, 8;" : "=r"(field) : "r"(0xABu), "r"(x));
    out[9] = field;
    int saturated;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(saturated) : "r"(0x7FFFFFF0), "r"(100));
    out[10] = (unsigned int) saturated;
    asm("cvt.sat.u8.s32 %0, %1;" : "=r"(saturated) : "r"(300));
    out[11] = (unsigned int) saturated;
    unsigned int low, high;
    asm("add.cc.u32 %0, %2, %3;\n\taddc.u32 %1, 7, 0;" : "=r"(low), "=r"(high) : "r"(0xFFFFFFFFu), "r"(2u));
    out[12] = low;
    out[13] = high;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    std::vector<long long> a, b;
    const long long edges[] = {0,
                               1,
                               -1,
                               2,
                               7,
                               -7,
                               31,
                               32,
                               63,
                               255,
                               256,
                               32767,
                               -32768,
                               65535,
                               0x7FFFFFFFLL,
                               -0x80000000LL,
                               0xFFFFFFFFLL,
                               0x100000000LL,
                               0x7FFFFFFFFFFFFFFFLL,
                               (long long) 0x8000000000000001ULL,
                               1000003};
    for (long long x : edges) {
        for (long long y : edges) {
            a.push_back(x);
            b.push_back(y);
        }
    }
    uint32_t seed = 99;
    for (int i = 0; i < 3000; i++) {
        a.push_back((long long) ((unsigned long long) check_random(&seed) << 32 | check_random(&seed)) >> (i % 60));
        b.push_back((long long) ((unsigned long long) check_random(&seed) << 32 | check_random(&seed)) >> (i % 57));
    }
    int count = (int) a.size();
    long long *device_a = device_copy(a), *device_b = device_copy(b);
    long long *device_out = device_array<long long>((size_t) count * RESULTS);
    run<<<(count + 127) / 128, 128>>>(device_a, device_b, device_out, count);
    LAUNCH_OK();
    std::vector<long long> out = host_copy(device_out, (size_t) count * RESULTS);
    for (int i = 0; i < count; i++) {
        long long expected[RESULTS];
        compute(a[i], b[i], expected);
        for (int n = 0; n < RESULTS; n++) {
            if (expected[n] != out[(size_t) i * RESULTS + n]) {
                check_fail("result %d of a=%lld b=%lld, expected %lld, got %lld", n, a[i], b[i], expected[n],
                           out[(size_t) i * RESULTS + n]);
            }
        }
    }
    unsigned int *words = device_array<unsigned int>(14);
    special<<<1, 1>>>(words);
    LAUNCH_OK();
    const unsigned int specials[] = {
        0x11355579u,
        0x0000FFFFu,
        0x12 * 1 + 0x34 * 2 + 0x56 * 3 + 0x78 * 4 + 5,
        0x50505678u,
        (unsigned int) (((unsigned long long) 0x12345678u * 0x9ABCDEF0u) >> 32),
        (unsigned int) (((long long) 0x12345678 * -77777) >> 32),
        (unsigned int) (__builtin_popcountll(0xF0F0F0F012345678ULL) * 1000 + 27 * 10 + 21 % 10),
        0xFFFFFFFEu ^ 8u,
        0x12345678u >> 8 & 0xFFF,
        (0x12345678u & ~0xFF0u) | 0xAB0u,
        0x7FFFFFFF,
        255,
        1,
        8};
    std::vector<unsigned int> got = host_copy(words, 14);
    for (int i = 0; i < 14; i++) {
        check_element("special", i, specials[i], got[i]);
    }
    CUDA_OK(cudaFree(device_a));
    CUDA_OK(cudaFree(device_b));
    CUDA_OK(cudaFree(device_out));
    CUDA_OK(cudaFree(words));
    return check_pass("%d pairs, %d results each, 14 special ones", count, RESULTS);
}
