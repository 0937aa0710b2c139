#include <cstdio>

__global__ void prints() {
    printf("hello\n");
}
