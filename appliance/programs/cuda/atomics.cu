// Every atomic operation, on global and shared memory, 32 and 64 bits, and a lock-free loop over compare-and-swap.
#include "check_cuda.h"

struct Cells {
    int add, sub, minimum, maximum;
    unsigned int inc, dec, andv, orv, xorv, umin, umax, exchanged;
    unsigned long long add64, cas_max, min64, max64, or64;
    long long smin64;
    float addf;
    double addd;
    int returned_sum;
    unsigned int last;
    double cas_product;
};

__device__ static double atomic_multiply(double *address, double factor) {
    unsigned long long *bits = (unsigned long long *) address, old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __double_as_longlong(factor * __longlong_as_double((long long) assumed)));
    } while (assumed != old);
    return __longlong_as_double((long long) old);
}

__device__ static void work(Cells *cells, int i) {
    int before = atomicAdd(&cells->add, i);
    (void) before;
    atomicSub(&cells->sub, 2);
    atomicMin(&cells->minimum, 500 - i);
    atomicMax(&cells->maximum, i - 500);
    atomicInc(&cells->inc, 99);
    atomicDec(&cells->dec, 49);
    atomicAnd(&cells->andv, ~(1u << (i % 32)));
    atomicOr(&cells->orv, 1u << (i % 32));
    atomicXor(&cells->xorv, (unsigned int) i);
    atomicMin(&cells->umin, 0x80000000u + i);
    atomicMax(&cells->umax, 0x80000000u + i);
    unsigned int old = atomicExch(&cells->exchanged, (unsigned int) i + 1);
    atomicAdd(&cells->returned_sum, (int) old);
    atomicAdd(&cells->add64, 0x100000001ULL);
    atomicMin(&cells->min64, 0xFFFFFFFF00000000ULL + i);
    atomicMax(&cells->max64, 0xFFFFFFFF00000000ULL + i);
    atomicMin(&cells->smin64, -5LL * i);
    atomicOr(&cells->or64, 1ULL << (i % 64));
    atomicAdd(&cells->addf, 0.5f);
    atomicAdd(&cells->addd, 0.25);
    unsigned long long seen = cells->cas_max, assumed;
    do {
        assumed = seen;
        seen = atomicCAS(&cells->cas_max, assumed,
                         assumed > (unsigned long long) i * 3 ? assumed : (unsigned long long) i * 3);
    } while (seen != assumed);
    if (i < 8) {
        atomic_multiply(&cells->cas_product, 2.0);
    }
}

__device__ static void set_up(Cells *cells) {
    memset(cells, 0, sizeof(*cells));
    cells->minimum = 1 << 30;
    cells->maximum = -(1 << 30);
    cells->andv = 0xFFFFFFFFu;
    cells->umin = 0xFFFFFFFFu;
    cells->min64 = ~0ULL;
    cells->smin64 = 1LL << 60;
    cells->cas_product = 1.5;
}

__global__ void init(Cells *cells) {
    set_up(cells);
}

__global__ void in_global(Cells *cells) {
    work(cells, blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void in_shared(Cells *cells) {
    __shared__ Cells block;
    if (threadIdx.x == 0) {
        set_up(&block);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 1000; i += blockDim.x) {
        work(&block, i);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        *cells = block;
    }
}

// Threads take elements from a pile by a counter: each ticket is drawn once.
__global__ void tickets(unsigned int *counter, unsigned char *drawn) {
    for (unsigned int ticket; (ticket = atomicAdd(counter, 1u)) < 5000;) {
        drawn[ticket]++;
    }
}

// The last block to finish computes the sum: needs __threadfence() and the order of the atomic.
__global__ void last_block(unsigned int *done, volatile int *partial, int *total) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x + 1;
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < (int) gridDim.x; i++) {
            sum += partial[i];
        }
        *total = sum;
    }
}

static void check_cells(const char *where, const Cells &got) {
    int xors = 0;
    for (int i = 0; i < 1000; i++) {
        xors ^= i;
    }
    check_equal(where, 499500, got.add);
    check_equal("sub", -2000, got.sub);
    check_equal("min", -499, got.minimum);
    check_equal("max", 499, got.maximum);
    check_equal("inc", 0, got.inc);
    check_equal("dec", 0, got.dec);
    check_equal("and", 0, got.andv);
    check_equal("or", 0xFFFFFFFFu, got.orv);
    check_equal("xor", xors, got.xorv);
    check_equal("unsigned min", 0x80000000u, got.umin);
    check_equal("unsigned max", 0x80000000u + 999, got.umax);
    check_equal("exch: all that was put in came out or is inside", 500500,
                got.returned_sum + (long long) got.exchanged);
    check_equal("64-bit add", 1000 * 0x100000001LL, (long long) got.add64);
    check_equal("64-bit min", (long long) 0xFFFFFFFF00000000ULL, (long long) got.min64);
    check_equal("64-bit max", (long long) (0xFFFFFFFF00000000ULL + 999), (long long) got.max64);
    check_equal("64-bit signed min", -5 * 999, got.smin64);
    check_equal("64-bit or", -1, (long long) got.or64);
    check_near("float add", 0, 500, got.addf, 0);
    check_near("double add", 0, 250, got.addd, 0);
    check_equal("cas maximum", 2997, (long long) got.cas_max);
    check_near("cas product", 0, 1.5 * 256, got.cas_product, 0);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    Cells *cells = device_array<Cells>(1);
    init<<<1, 1>>>(cells);
    in_global<<<8, 125>>>(cells);
    LAUNCH_OK();
    check_cells("global add", host_copy(cells, 1)[0]);
    in_shared<<<1, 256>>>(cells);
    LAUNCH_OK();
    check_cells("shared add", host_copy(cells, 1)[0]);

    unsigned int *counter = device_array<unsigned int>(1);
    unsigned char *drawn = device_array<unsigned char>(5000);
    CUDA_OK(cudaMemset(counter, 0, 4));
    CUDA_OK(cudaMemset(drawn, 0, 5000));
    tickets<<<7, 64>>>(counter, drawn);
    LAUNCH_OK();
    std::vector<unsigned char> times = host_copy(drawn, 5000);
    for (int i = 0; i < 5000; i++) {
        check_element("ticket", i, 1, times[i]);
    }
    int *partial = device_array<int>(100), *total = device_array<int>(1);
    CUDA_OK(cudaMemset(counter, 0, 4));
    last_block<<<100, 32>>>(counter, partial, total);
    LAUNCH_OK();
    check_equal("sum by the last block", 5050, host_copy(total, 1)[0]);
    CUDA_OK(cudaFree(cells));
    CUDA_OK(cudaFree(counter));
    CUDA_OK(cudaFree(drawn));
    CUDA_OK(cudaFree(partial));
    CUDA_OK(cudaFree(total));
    return check_pass("21 operations on global and shared memory, tickets, last block");
}
