// Kernels of the application-like loops of hawser_benchmark; extern "C" keeps their names in the PTX plain.

extern "C" __global__ void four(const float *a, const float *b, int c, float d) {
}

// values = (1 - by) * values + by * values * others, which keeps products in a loop within range.
extern "C" __global__ void blend(float *values, const float *others, int count, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] = (1 - by) * values[i] + by * values[i] * others[i];
    }
}

extern "C" __global__ void nbody_forces(const float4 *bodies, float4 *forces, int count) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 own = bodies[i];
    float x = 0, y = 0, z = 0;
    for (int first = 0; first < count; first += blockDim.x) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < blockDim.x; k++) {
            float dx = tile[k].x - own.x, dy = tile[k].y - own.y, dz = tile[k].z - own.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float weight = tile[k].w * inverse * inverse * inverse;
            x += weight * dx;
            y += weight * dy;
            z += weight * dz;
        }
        __syncthreads();
    }
    forces[i] = make_float4(x, y, z, 0);
}

extern "C" __global__ void nbody_move(float4 *bodies, float4 *velocities, const float4 *forces, float step, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float4 velocity = velocities[i], force = forces[i], body = bodies[i];
        velocity.x += force.x * step;
        velocity.y += force.y * step;
        velocity.z += force.z * step;
        velocities[i] = velocity;
        body.x += velocity.x * step;
        body.y += velocity.y * step;
        body.z += velocity.z * step;
        bodies[i] = body;
    }
}
