// Results of warp operations for lanes that are absent, exited, diverged or outside the mask. Built for sm_90 with nvcc
// and run on a GPU, this program prints lines like those of warp-h200.txt. make-ptx.sh compiles its kernels to PTX.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

struct Out {
    unsigned value[32];
    unsigned pred[32];
};

enum How {
    ALL,
    EXITED_FULL,
    EXITED_EXACT,
    DIVERGED_EXACT,
    ODD_EXACT,
    HALVES,
    GUARDED,
    OTHER_BRANCH,
    EXITED_LATE,
    HOWS
};
static const char *HOW[] = {"all",
                            "exited,mask=full",
                            "exited,mask=exact",
                            "diverged,mask=exact",
                            "even lanes,mask=exact",
                            "halves, one instruction, two masks",
                            "guarded,mask=exact",
                            "both branches",
                            "exited behind a syncwarp"};

template <int MODE>
__device__ __forceinline__ void shfl(unsigned a, unsigned b, unsigned c, unsigned mask, unsigned &v, unsigned &p) {
    if (MODE == 0)
        asm volatile("{.reg .pred q; shfl.sync.up.b32 %0|q, %2, %3, %4, %5; selp.u32 %1,1,0,q;}"
                     : "=r"(v), "=r"(p)
                     : "r"(a), "r"(b), "r"(c), "r"(mask));
    if (MODE == 1)
        asm volatile("{.reg .pred q; shfl.sync.down.b32 %0|q, %2, %3, %4, %5; selp.u32 %1,1,0,q;}"
                     : "=r"(v), "=r"(p)
                     : "r"(a), "r"(b), "r"(c), "r"(mask));
    if (MODE == 2)
        asm volatile("{.reg .pred q; shfl.sync.bfly.b32 %0|q, %2, %3, %4, %5; selp.u32 %1,1,0,q;}"
                     : "=r"(v), "=r"(p)
                     : "r"(a), "r"(b), "r"(c), "r"(mask));
    if (MODE == 3)
        asm volatile("{.reg .pred q; shfl.sync.idx.b32 %0|q, %2, %3, %4, %5; selp.u32 %1,1,0,q;}"
                     : "=r"(v), "=r"(p)
                     : "r"(a), "r"(b), "r"(c), "r"(mask));
}

template <int OP> __device__ __forceinline__ void other(unsigned a, unsigned mask, unsigned &v, unsigned &p) {
    v = p = 0;
    if (OP == 0)
        asm volatile("{.reg .pred q,r; setp.ne.u32 r,%1,0; vote.sync.ballot.b32 %0, r, %2;}"
                     : "=r"(v)
                     : "r"(a & 1), "r"(mask));
    if (OP == 1)
        asm volatile("{.reg .pred q,r; setp.ne.u32 r,%1,0; vote.sync.all.pred q, r, %2; selp.u32 %0,1,0,q;}"
                     : "=r"(v)
                     : "r"(1), "r"(mask));
    if (OP == 2)
        asm volatile("{.reg .pred q,r; setp.ne.u32 r,%1,0; vote.sync.any.pred q, r, %2; selp.u32 %0,1,0,q;}"
                     : "=r"(v)
                     : "r"(0), "r"(mask));
    if (OP == 3)
        asm volatile("{.reg .pred q,r; setp.ne.u32 r,%1,0; vote.sync.uni.pred q, r, %2; selp.u32 %0,1,0,q;}"
                     : "=r"(v)
                     : "r"(1), "r"(mask));
    if (OP == 4)
        asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(v) : "r"(a % 3), "r"(mask));
    if (OP == 5)
        asm volatile("{.reg .pred q; match.all.sync.b32 %0|q, %2, %3; selp.u32 %1,1,0,q;}"
                     : "=r"(v), "=r"(p)
                     : "r"(7), "r"(mask));
    if (OP == 6)
        v = __reduce_add_sync(mask, a);
    if (OP == 7)
        v = __reduce_min_sync(mask, a);
    if (OP == 8)
        v = __reduce_max_sync(mask, a);
    if (OP == 9)
        v = __reduce_and_sync(mask, a | 0x100);
    if (OP == 10)
        v = __reduce_or_sync(mask, a);
    if (OP == 11)
        v = __reduce_xor_sync(mask, a);
    if (OP == 12)
        v = __activemask();
    if (OP == 13)
        asm volatile("{.reg .pred q; elect.sync %0|q, %2; selp.u32 %1,1,0,q;}" : "=r"(v), "=r"(p) : "r"(mask));
    if (OP == 14)
        asm volatile("{.reg .pred q; match.any.sync.b64 %0, %1, %2;}"
                     : "=r"(v)
                     : "l"((unsigned long long) (a % 5) << 33), "r"(mask));
}

template <int K>
__device__ __forceinline__ void one(unsigned a, unsigned b, unsigned c, unsigned mask, unsigned &v, unsigned &p) {
    if (K < 4)
        shfl<(K < 4 ? K : 0)>(a, b, c, mask, v, p);
    else
        other<(K < 4 ? 0 : K - 4)>(a, mask, v, p);
}

template <int K> __global__ void kernel(Out *out, int how, unsigned b, unsigned c, volatile int *zero) {
    unsigned lane = threadIdx.x;
    unsigned a = 100 + lane, v = 0xdead, p = 9;
    unsigned valid = blockDim.x == 32 ? ~0u : (1u << blockDim.x) - 1;
    switch (how) {
        case ALL:
            one<K>(a, b, c, ~0u, v, p);
            break;
        case EXITED_FULL:
            if (lane % 8 >= 5)
                return;
            one<K>(a, b, c, ~0u, v, p);
            break;
        case EXITED_EXACT:
            if (lane % 8 >= 5)
                return;
            one<K>(a, b, c, 0x1f1f1f1fu & valid, v, p);
            break;
        case EXITED_LATE:
            if (lane % 8 >= 5) {
                __nanosleep(10000);
                if (*zero == 0)
                    return;
            }
            one<K>(a, b, c, ~0u, v, p);
            break;
        case DIVERGED_EXACT:
            if (lane % 8 < 5)
                one<K>(a, b, c, 0x1f1f1f1fu & valid, v, p);
            else
                v = 0xbeef + *zero;
            __syncwarp();
            break;
        case ODD_EXACT:
            if (lane % 2 == 0)
                one<K>(a, b, c, 0x55555555u & valid, v, p);
            __syncwarp();
            break;
        case HALVES:
            one<K>(a, b, c, (lane < 16 ? 0xffffu : 0xffff0000u) & valid, v, p);
            break;
        case GUARDED: {
            bool yes = lane % 8 < 5;
            if (K == 1)
                asm volatile(
                    "{.reg .pred q,g; setp.ne.u32 g,%6,0; mov.u32 %0,0xdead; mov.u32 %1,9; @g shfl.sync.down.b32 %0|q, %2, %3, %4, %5; @g selp.u32 %1,1,0,q;}"
                    : "=&r"(v), "=&r"(p)
                    : "r"(a), "r"(b), "r"(c), "r"(0x1f1f1f1fu & valid), "r"((unsigned) yes));
            break;
        }
        case OTHER_BRANCH:
            if (lane % 8 < 5)
                one<K>(a, b, c, 0x1f1f1f1fu & valid, v, p);
            else {
                one<K>(a + 1000, b, c, 0xe0e0e0e0u & valid, v, p);
                v += *zero;
            }
            __syncwarp();
            break;
    }
    out->value[lane] = v;
    out->pred[lane] = p;
}

static Out *out;
static int *zero;

template <int K> static void run(const char *name, unsigned b, unsigned c) {
    const int blocks[] = {32, 20};
    for (int how = 0; how < HOWS; how++) {
        for (int threads : blocks) {
            if (how == GUARDED && K != 1)
                continue;
            // A mask with lanes that the block does not have.
            memset(out, 0xee, sizeof *out);
            kernel<K><<<1, threads>>>(out, how, b, c, zero);
            cudaError_t e = cudaDeviceSynchronize();
            printf("%s b=%u c=%04x %s threads=%d:", name, b, c, HOW[how], threads);
            if (e != cudaSuccess) {
                printf(" %s\n", cudaGetErrorString(e));
                exit(1);
            }
            for (int i = 0; i < threads; i++) {
                if (out->value[i] == 0xeeeeeeee && out->pred[i] == 0xeeeeeeee)
                    printf(" -");
                else if (K < 4)
                    printf(" %u%s", out->value[i], out->pred[i] == 1 ? "" : out->pred[i] == 0 ? "!" : "?");
                else
                    printf(" %x%s", out->value[i], out->pred[i] == 1 ? "+" : "");
            }
            printf("\n");
        }
    }
}

int main() {
    cudaMallocManaged(&out, sizeof *out);
    cudaMallocManaged(&zero, sizeof *zero);
    *zero = 0;
    cudaDeviceProp prop;
    cudaGetDeviceProperties(&prop, 0);
    printf("# %s\n", prop.name);
    const unsigned widths[] = {32, 16, 8, 4};
    for (unsigned w : widths) {
        unsigned seg = (32 - w) << 8;
        for (unsigned b : {1u, 3u}) {
            run<0>("up", b, seg);
            run<1>("down", b, seg | 31);
            run<2>("bfly", b, seg | 31);
        }
        for (unsigned b : {0u, 6u, 18u, 40u})
            run<3>("idx", b, seg | 31);
    }
    run<1>("down", 17, 31);
    run<2>("bfly", 16, 31);
    run<3>("idx", 29, 31);
    run<4>("ballot", 0, 0);
    run<5>("all", 0, 0);
    run<6>("any", 0, 0);
    run<7>("uni", 0, 0);
    run<8>("match.any", 0, 0);
    run<9>("match.all", 0, 0);
    run<10>("redux.add", 0, 0);
    run<11>("redux.min", 0, 0);
    run<12>("redux.max", 0, 0);
    run<13>("redux.and", 0, 0);
    run<14>("redux.or", 0, 0);
    run<15>("redux.xor", 0, 0);
    run<16>("activemask", 0, 0);
    run<17>("elect", 0, 0);
    run<18>("match.any.b64", 0, 0);
    return 0;
}
