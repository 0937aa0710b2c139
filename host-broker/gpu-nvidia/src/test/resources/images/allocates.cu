extern "C" __global__ void allocates(int **p) {
    p[0] = new int[5];
}
