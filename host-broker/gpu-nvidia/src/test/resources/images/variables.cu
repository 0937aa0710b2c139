__device__ char large[3 << 20];

__global__ void variables(int i) {
    large[i]++;
}
