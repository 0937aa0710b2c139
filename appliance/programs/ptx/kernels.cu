// Kernels for the programs over the Driver API; extern "C" keeps their names in the PTX plain.

extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        c[i] = a[i] + b[i];
    }
}

extern "C" __global__ void add_value(int *values, int count, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += addend;
    }
}

extern "C" __global__ void multiply(int *values, const int *factors, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] *= factors[i];
    }
}

extern "C" __global__ void matrix_mul(const float *a, const float *b, float *c, int size) {
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < size / 16; tile++) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * size + tile * 16 + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(tile * 16 + threadIdx.y) * size + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) {
            sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        }
        __syncthreads();
    }
    c[row * size + column] = sum;
}

extern "C" __global__ void reduce(const int *values, int count, unsigned long long *total) {
    __shared__ long long warps[32];
    long long sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        sum += values[i];
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xFFFFFFFFu, sum, offset);
    }
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0;
        for (int warp = 0; warp < (int) (blockDim.x + 31) / 32; warp++) {
            sum += warps[warp];
        }
        atomicAdd(total, (unsigned long long) sum);
    }
}

extern "C" __global__ void histogram(const unsigned char *bytes, int count, unsigned int *bins) {
    extern __shared__ unsigned int block_bins[];
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        block_bins[bin] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        atomicAdd(&block_bins[bytes[i]], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        atomicAdd(&bins[bin], block_bins[bin]);
    }
}

extern "C" __global__ void scan_block(const unsigned int *in, unsigned int *out, unsigned int *sums, int count) {
    __shared__ unsigned int buffer[2][256];
    int i = blockIdx.x * 256 + threadIdx.x, from = 0;
    unsigned int own = i < count ? in[i] : 0;
    buffer[0][threadIdx.x] = own;
    __syncthreads();
    for (int offset = 1; offset < 256; offset *= 2) {
        unsigned int value = buffer[from][threadIdx.x];
        if (threadIdx.x >= offset) {
            value += buffer[from][threadIdx.x - offset];
        }
        from = 1 - from;
        buffer[from][threadIdx.x] = value;
        __syncthreads();
    }
    if (i < count) {
        out[i] = buffer[from][threadIdx.x] - own;
    }
    if (threadIdx.x == 255 && sums != 0) {
        sums[blockIdx.x] = buffer[from][threadIdx.x];
    }
}

extern "C" __global__ void scan_add(unsigned int *out, const unsigned int *sums, int count) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) {
        out[i] += sums[blockIdx.x];
    }
}

extern "C" __global__ void store_at(int *address, long long offset, int value) {
    address[offset] = value;
}

extern "C" __global__ void empty() {
}

extern "C" __global__ void busy(float *values, int rounds) {
    float x = values[threadIdx.x];
    for (int i = 0; i < rounds; i++) {
        x = x * 0.999f + 0.5f;
    }
    values[threadIdx.x] = x;
}
