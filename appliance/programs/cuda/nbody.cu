// Gravity between all pairs of bodies, tile by tile through shared memory, with rsqrtf and float4, in several steps.
#include "check_cuda.h"

#include <cmath>

constexpr int BLOCK = 64;
constexpr float SOFTENING = 0.01f;
constexpr float STEP = 0.001f;

__global__ void step(const float4 *positions, float4 *next, float4 *velocities, int count) {
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 own = positions[i];
    float3 force = make_float3(0, 0, 0);
    for (int start = 0; start < count; start += BLOCK) {
        tile[threadIdx.x] = positions[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < BLOCK; j++) {
            float4 other = tile[j];
            float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
            float weight = other.w * inverse * inverse * inverse;
            force.x += dx * weight;
            force.y += dy * weight;
            force.z += dz * weight;
        }
        __syncthreads();
    }
    float4 velocity = velocities[i];
    velocity.x += force.x * STEP;
    velocity.y += force.y * STEP;
    velocity.z += force.z * STEP;
    velocities[i] = velocity;
    next[i] = make_float4(own.x + velocity.x * STEP, own.y + velocity.y * STEP, own.z + velocity.z * STEP, own.w);
}

static void host_step(const std::vector<double> &positions, std::vector<double> &next, std::vector<double> &velocities,
                      int count) {
    for (int i = 0; i < count; i++) {
        double force[3] = {0, 0, 0};
        for (int j = 0; j < count; j++) {
            double d[3], square = SOFTENING;
            for (int k = 0; k < 3; k++) {
                d[k] = positions[4 * j + k] - positions[4 * i + k];
                square += d[k] * d[k];
            }
            double inverse = 1 / std::sqrt(square);
            for (int k = 0; k < 3; k++) {
                force[k] += d[k] * positions[4 * j + 3] * inverse * inverse * inverse;
            }
        }
        for (int k = 0; k < 3; k++) {
            velocities[4 * i + k] += force[k] * STEP;
            next[4 * i + k] = positions[4 * i + k] + velocities[4 * i + k] * STEP;
        }
        next[4 * i + 3] = positions[4 * i + 3];
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int count = (int) check_option("--size", 256);
    int steps = (int) check_option("--steps", 4);
    if (count <= 0 || count % BLOCK != 0) {
        check_fail("--size, expected a multiple of %d, got %d", BLOCK, count);
    }
    uint32_t seed = 42;
    std::vector<float4> bodies(count), zero(count, make_float4(0, 0, 0, 0));
    std::vector<double> positions(4 * count), next(4 * count), velocities(4 * count);
    for (int i = 0; i < count; i++) {
        bodies[i] = make_float4(check_random_float(&seed), check_random_float(&seed), check_random_float(&seed),
                                1.0f + 0.5f * check_random_float(&seed));
        positions[4 * i] = bodies[i].x;
        positions[4 * i + 1] = bodies[i].y;
        positions[4 * i + 2] = bodies[i].z;
        positions[4 * i + 3] = bodies[i].w;
    }
    float4 *from = device_copy(bodies), *to = device_array<float4>(count), *device_velocities = device_copy(zero);
    for (int s = 0; s < steps; s++) {
        step<<<count / BLOCK, BLOCK>>>(from, to, device_velocities, count);
        LAUNCH_OK();
        std::swap(from, to);
        host_step(positions, next, velocities, count);
        std::swap(positions, next);
    }
    std::vector<float4> got = host_copy(from, count);
    for (int i = 0; i < count; i++) {
        check_near("x", i, positions[4 * i], got[i].x, 1e-4);
        check_near("y", i, positions[4 * i + 1], got[i].y, 1e-4);
        check_near("z", i, positions[4 * i + 2], got[i].z, 1e-4);
        check_near("mass", i, positions[4 * i + 3], got[i].w, 0);
    }
    CUDA_OK(cudaFree(from));
    CUDA_OK(cudaFree(to));
    CUDA_OK(cudaFree(device_velocities));
    return check_pass("%d bodies, %d steps", count, steps);
}
