// Surfaces: kernels read and write arrays in one, two and three dimensions and in layers; textures read the written
// values.
#include "check_texture.h"

enum { WIDTH = 40, HEIGHT = 24, DEPTH = 6 };

__global__ void write1D(cudaSurfaceObject_t surface) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < WIDTH) {
        surf1Dwrite(x * 3 + 1, surface, x * (int) sizeof(int));
    }
}

__global__ void increment2D(cudaSurfaceObject_t surface) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < WIDTH && y < HEIGHT) {
        float2 value;
        surf2Dread(&value, surface, x * (int) sizeof(float2), y);
        value.x += 1000;
        value.y = -value.y;
        surf2Dwrite(value, surface, x * (int) sizeof(float2), y);
    }
}

__global__ void write3D(cudaSurfaceObject_t surface, int layered) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x < WIDTH && y < HEIGHT) {
        unsigned short value = (unsigned short) (x + y * 100 + z * 7000);
        if (layered) {
            surf2DLayeredwrite(value, surface, x * (int) sizeof value, y, z);
        } else {
            surf3Dwrite(value, surface, x * (int) sizeof value, y, z);
        }
    }
}

// Outside the array: reads return 0 or the edge, and writes have no effect.
__global__ void borders(cudaSurfaceObject_t surface, int *out) {
    out[0] = surf1Dread<int>(surface, -4, cudaBoundaryModeZero);
    out[1] = surf1Dread<int>(surface, WIDTH * 4, cudaBoundaryModeZero);
    out[2] = surf1Dread<int>(surface, -4, cudaBoundaryModeClamp);
    out[3] = surf1Dread<int>(surface, WIDTH * 4, cudaBoundaryModeClamp);
    surf1Dwrite(-1, surface, WIDTH * 4, cudaBoundaryModeZero);
    out[4] = surf1Dread<int>(surface, (WIDTH - 1) * 4);
}

static cudaSurfaceObject_t surface_of(cudaArray_t array) {
    cudaResourceDesc resource = {}, got;
    cudaSurfaceObject_t surface;
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    CUDA_OK(cudaCreateSurfaceObject(&surface, &resource));
    CUDA_OK(cudaGetSurfaceObjectResourceDesc(&got, surface));
    check_true("what the surface was made of", got.resType == cudaResourceTypeArray && got.res.array.array == array);
    return surface;
}

static void one_dimension() {
    std::vector<int> zeros(WIDTH), back(WIDTH);
    cudaArray_t array = array_of(WIDTH, 0, 0, zeros.data(), cudaArraySurfaceLoadStore);
    cudaSurfaceObject_t surface = surface_of(array);
    write1D<<<1, 64>>>(surface);
    LAUNCH_OK();
    CUDA_OK(cudaMemcpy2DFromArray(back.data(), WIDTH * 4, array, 0, 0, WIDTH * 4, 1, cudaMemcpyDeviceToHost));
    for (int i = 0; i < WIDTH; i++) {
        check_element("written in one dimension", i, i * 3 + 1, back[i]);
    }
    int *out = device_array<int>(5);
    borders<<<1, 1>>>(surface, out);
    LAUNCH_OK();
    std::vector<int> outside = host_copy(out, 5);
    const int expected[] = {0, 0, 1, (WIDTH - 1) * 3 + 1, (WIDTH - 1) * 3 + 1};
    for (int i = 0; i < 5; i++) {
        check_element("outside of the surface", i, expected[i], outside[i]);
    }
    CUDA_OK(cudaFree(out));
    CUDA_OK(cudaDestroySurfaceObject(surface));
    CUDA_OK(cudaFreeArray(array));
}

static void two_dimensions() {
    std::vector<float2> values(WIDTH * HEIGHT), back(WIDTH * HEIGHT);
    for (size_t i = 0; i < values.size(); i++) {
        values[i] = make_float2((float) i, (float) (i % 13));
    }
    cudaArray_t array = array_of(WIDTH, HEIGHT, 0, values.data(), cudaArraySurfaceLoadStore);
    cudaSurfaceObject_t surface = surface_of(array);
    increment2D<<<dim3(3, 3), dim3(16, 8)>>>(surface);
    LAUNCH_OK();
    increment2D<<<dim3(3, 3), dim3(16, 8)>>>(surface);
    LAUNCH_OK();
    CUDA_OK(cudaMemcpy2DFromArray(back.data(), WIDTH * 8, array, 0, 0, WIDTH * 8, HEIGHT, cudaMemcpyDeviceToHost));
    Image image = image_of(WIDTH, HEIGHT, 1);
    cudaTextureObject_t texture = texture_of(array, reading(image));
    std::vector<float4> at;
    for (size_t i = 0; i < values.size(); i++) {
        at.push_back(make_float4((float) (i % WIDTH) + 0.5f, (float) (i / WIDTH) + 0.5f, 0, 0));
    }
    std::vector<float2> read = fetched<TWO, float2>(texture, at);
    for (size_t i = 0; i < values.size(); i++) {
        check_near("written in two dimensions, x", (long long) i, (double) i + 2000, back[i].x, 0);
        check_near("written in two dimensions, y", (long long) i, (double) (i % 13), back[i].y, 0);
        check_near("read by a texture", (long long) i, back[i].x, read[i].x, 0);
    }
    CUDA_OK(cudaDestroyTextureObject(texture));
    CUDA_OK(cudaDestroySurfaceObject(surface));
    CUDA_OK(cudaFreeArray(array));
}

static void three_dimensions(int layered) {
    std::vector<unsigned short> zeros(WIDTH * HEIGHT * DEPTH), back(zeros.size());
    cudaArray_t array =
        array_of(WIDTH, HEIGHT, DEPTH, zeros.data(), cudaArraySurfaceLoadStore | (layered ? cudaArrayLayered : 0));
    cudaSurfaceObject_t surface = surface_of(array);
    write3D<<<dim3(3, 3, DEPTH), dim3(16, 8)>>>(surface, layered);
    LAUNCH_OK();
    cudaMemcpy3DParms copy = {};
    copy.srcArray = array;
    copy.dstPtr = make_cudaPitchedPtr(back.data(), WIDTH * 2, WIDTH, HEIGHT);
    copy.extent = make_cudaExtent(WIDTH, HEIGHT, DEPTH);
    copy.kind = cudaMemcpyDeviceToHost;
    CUDA_OK(cudaMemcpy3D(&copy));
    for (int i = 0; i < WIDTH * HEIGHT * DEPTH; i++) {
        int x = i % WIDTH, y = i / WIDTH % HEIGHT, z = i / WIDTH / HEIGHT;
        check_element(layered ? "written in layers" : "written in three dimensions", i, x + y * 100 + z * 7000,
                      back[i]);
    }
    CUDA_OK(cudaDestroySurfaceObject(surface));
    CUDA_OK(cudaFreeArray(array));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    one_dimension();
    two_dimensions();
    three_dimensions(0);
    three_dimensions(1);
    return check_pass("surfaces of one, two and three dimensions, of layers, and their borders");
}
