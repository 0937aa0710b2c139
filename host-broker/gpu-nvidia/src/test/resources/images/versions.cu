// Another variable for each architecture.
#if __CUDA_ARCH__ >= 900
__device__ int hopper;
#define VARIABLE hopper
#else
__device__ int ampere;
#define VARIABLE ampere
#endif

extern "C" __global__ void count() {
#ifdef __CUDA_ARCH__
    VARIABLE++;
#endif
}
