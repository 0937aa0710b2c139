// Shared by the two files of the relocatable program.
#pragma once

struct Pair {
    int first;
    long long second;
};

extern __device__ int device_table[4];
extern __constant__ float device_scale;
extern __managed__ int managed_total;

__device__ long long combine(const Pair &pair, int factor);

void launch_from_the_other_file(int *device, int count);
