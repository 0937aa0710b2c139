// Surfaces of every width of elements in all geometries, inside and outside of the array, with each boundary mode.
// Reductions into surfaces, and surfaces of a level. The host computes every value again.
#include "check_texture.h"

#include <algorithm>

enum { WIDTH = 12, HEIGHT = 5, DEPTH = 6 };

enum Geometry { LINE, PLANE, SOLID, LINES, PLANES, FACES, CUBES };

static const char *const NAMES[] = {"one dimension",           "two dimensions",           "three dimensions",
                                    "layers of one dimension", "layers of two dimensions", "faces",
                                    "layers of faces"};

// Writes values everywhere, also around the array, and reads the same places afterwards.
template <typename T>
__global__ void write(Geometry geometry, cudaSurfaceObject_t surface, const T *values, int3 from, int3 count,
                      cudaSurfaceBoundaryMode mode) {
    for (int i = 0; i < count.x * count.y * count.z; i++) { // in order: with clamping, places are written repeatedly
        int x = (from.x + i % count.x) * (int) sizeof(T), y = from.y + i / count.x % count.y;
        int z = from.z + i / count.x / count.y;
        T value = values[i];
        if (geometry == LINE) {
            mode == cudaBoundaryModeClamp ? surf1Dwrite(value, surface, x, cudaBoundaryModeClamp)
                                          : surf1Dwrite(value, surface, x, cudaBoundaryModeZero);
        } else if (geometry == PLANE) {
            mode == cudaBoundaryModeClamp ? surf2Dwrite(value, surface, x, y, cudaBoundaryModeClamp)
                                          : surf2Dwrite(value, surface, x, y, cudaBoundaryModeZero);
        } else if (geometry == SOLID) {
            mode == cudaBoundaryModeClamp ? surf3Dwrite(value, surface, x, y, z, cudaBoundaryModeClamp)
                                          : surf3Dwrite(value, surface, x, y, z, cudaBoundaryModeZero);
        } else if (geometry == LINES) {
            surf1DLayeredwrite(value, surface, x, z, cudaBoundaryModeZero);
        } else if (geometry == PLANES) {
            surf2DLayeredwrite(value, surface, x, y, z, cudaBoundaryModeZero);
        } else if (geometry == FACES) {
            surfCubemapwrite(value, surface, x, y, z, cudaBoundaryModeZero);
        } else {
            surfCubemapLayeredwrite(value, surface, x, y, z, cudaBoundaryModeZero);
        }
    }
}

template <typename T>
__global__ void read(Geometry geometry, cudaSurfaceObject_t surface, T *values, int3 from, int3 count,
                     cudaSurfaceBoundaryMode mode) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count.x * count.y * count.z) {
        return;
    }
    int x = (from.x + i % count.x) * (int) sizeof(T), y = from.y + i / count.x % count.y;
    int z = from.z + i / count.x / count.y;
    T value;
    if (geometry == LINE) {
        mode == cudaBoundaryModeClamp ? surf1Dread(&value, surface, x, cudaBoundaryModeClamp)
                                      : surf1Dread(&value, surface, x, cudaBoundaryModeZero);
    } else if (geometry == PLANE) {
        mode == cudaBoundaryModeClamp ? surf2Dread(&value, surface, x, y, cudaBoundaryModeClamp)
                                      : surf2Dread(&value, surface, x, y, cudaBoundaryModeZero);
    } else if (geometry == SOLID) {
        mode == cudaBoundaryModeClamp ? surf3Dread(&value, surface, x, y, z, cudaBoundaryModeClamp)
                                      : surf3Dread(&value, surface, x, y, z, cudaBoundaryModeZero);
    } else if (geometry == LINES) {
        surf1DLayeredread(&value, surface, x, z, cudaBoundaryModeZero);
    } else if (geometry == PLANES) {
        surf2DLayeredread(&value, surface, x, y, z, cudaBoundaryModeZero);
    } else if (geometry == FACES) {
        surfCubemapread(&value, surface, x, y, z, cudaBoundaryModeZero);
    } else {
        surfCubemapLayeredread(&value, surface, x, y, z, cudaBoundaryModeZero);
    }
    values[i] = value;
}

static cudaSurfaceObject_t surface_of(cudaArray_t array) {
    cudaResourceDesc resource = {};
    cudaSurfaceObject_t surface;
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    CUDA_OK(cudaCreateSurfaceObject(&surface, &resource));
    return surface;
}

template <typename T> static void access(const char *type, Geometry geometry, cudaSurfaceBoundaryMode mode) {
    int width = geometry >= FACES ? HEIGHT : WIDTH;
    int height = geometry == LINE || geometry == LINES ? 1 : HEIGHT;
    int depth = geometry == CUBES ? 2 * DEPTH : geometry >= SOLID ? DEPTH : 1;
    unsigned int flags = cudaArraySurfaceLoadStore
        | (geometry == LINES || geometry == PLANES || geometry == CUBES ? cudaArrayLayered : 0)
        | (geometry >= FACES ? cudaArrayCubemap : 0);
    const cudaChannelFormatDesc desc = sizeof(T) == 8 ? cudaCreateChannelDesc<int2>()
        : sizeof(T) == 16                             ? cudaCreateChannelDesc<int4>()
                                                      : cudaCreateChannelDesc<T>();
    cudaArray_t array;
    CUDA_OK(cudaMalloc3DArray(&array, &desc, make_cudaExtent(width, height == 1 ? 0 : height, depth == 1 ? 0 : depth),
                              flags));
    // One place around the array in the dimensions that it has; layers only inside.
    int3 from = {-1, height > 1 ? -1 : 0, geometry == SOLID ? -1 : 0};
    int3 count = {width + 2, height > 1 ? height + 2 : 1, geometry == SOLID ? depth + 2 : depth};
    std::vector<T> values((size_t) count.x * count.y * count.z), expected(values.size());
    std::vector<T> inside((size_t) width * height * depth);
    uint32_t state = 99;
    for (T &value : values) {
        for (size_t b = 0; b < sizeof(T); b++) {
            ((unsigned char *) &value)[b] = (unsigned char) (check_random(&state) >> 8);
        }
    }
    bool clamp = mode == cudaBoundaryModeClamp;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < (int) values.size(); i++) {
            int x = from.x + i % count.x, y = from.y + i / count.x % count.y, z = from.z + i / count.x / count.y;
            int nx = std::min(std::max(x, 0), width - 1), ny = std::min(std::max(y, 0), height - 1);
            int nz = std::min(std::max(z, 0), depth - 1);
            bool hit = clamp || (nx == x && ny == y && nz == z);
            T &texel = inside[((size_t) nz * height + ny) * width + nx];
            if (pass == 0 && hit) {
                texel = values[i];
            } else if (pass == 1) {
                expected[i] = hit ? texel : T();
            }
        }
    }
    cudaSurfaceObject_t surface = surface_of(array);
    T *in = device_copy(values), *out = device_array<T>(values.size());
    write<T><<<1, 1>>>(geometry, surface, in, from, count, mode);
    LAUNCH_OK();
    read<T><<<(unsigned int) (values.size() + 63) / 64, 64>>>(geometry, surface, out, from, count, mode);
    LAUNCH_OK();
    std::vector<T> got = host_copy(out, values.size());
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < values.size(); i++) {
        check_element(NAMES[geometry], (long long) i, 0, memcmp(&expected[i], &got[i], sizeof(T)));
        for (size_t b = 0; b < sizeof(T); b++) {
            sum = (sum ^ ((unsigned char *) &got[i])[b]) * 16777619u;
        }
    }
    printf("%s, %s, %s: %08x\n", NAMES[geometry], type, clamp ? "clamp" : "zero", sum);
    // The array's own bytes, by a copy.
    std::vector<T> back(inside.size());
    cudaMemcpy3DParms copy = {};
    copy.srcArray = array;
    copy.dstPtr = make_cudaPitchedPtr(back.data(), width * sizeof(T), width, height);
    copy.extent = make_cudaExtent(width, height, depth);
    copy.kind = cudaMemcpyDeviceToHost;
    CUDA_OK(cudaMemcpy3D(&copy));
    check_equal("the array's bytes", 0, memcmp(back.data(), inside.data(), inside.size() * sizeof(T)));
    CUDA_OK(cudaDestroySurfaceObject(surface));
    CUDA_OK(cudaFree(in));
    CUDA_OK(cudaFree(out));
    CUDA_OK(cudaFreeArray(array));
}

template <typename T> static void accesses(const char *type) {
    for (int geometry = LINE; geometry <= CUBES; geometry++) {
        access<T>(type, (Geometry) geometry, cudaBoundaryModeZero);
        if (geometry <= SOLID) {
            access<T>(type, (Geometry) geometry, cudaBoundaryModeClamp);
        }
    }
}

__global__ void reduce(cudaSurfaceObject_t surface, int x, int y) {
    asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;" ::"l"(surface), "r"(x), "r"(y), "r"(threadIdx.x));
    asm volatile("sured.b.max.2d.s32.clamp [%0, {%1, %2}], %3;" ::"l"(surface), "r"(x + 4), "r"(y),
                 "r"((int) threadIdx.x - 16));
    asm volatile("sured.b.or.2d.b32.zero [%0, {%1, %2}], %3;" ::"l"(surface), "r"(x + 8), "r"(y),
                 "r"(1 << threadIdx.x % 31));
    asm volatile("sured.b.and.2d.b32.zero [%0, {%1, %2}], 0;" ::"l"(surface), "r"(x), "r"(y + 1000));
}

static void reductions() {
    std::vector<int> zeros(WIDTH * HEIGHT), back(WIDTH * HEIGHT);
    cudaArray_t array = array_of(WIDTH, HEIGHT, 0, zeros.data(), cudaArraySurfaceLoadStore);
    cudaSurfaceObject_t surface = surface_of(array);
    reduce<<<8, 32>>>(surface, 4, 2);
    LAUNCH_OK();
    CUDA_OK(cudaMemcpy2DFromArray(back.data(), WIDTH * 4, array, 0, 0, WIDTH * 4, HEIGHT, cudaMemcpyDeviceToHost));
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        int place = i - 2 * WIDTH - 1;
        check_element("reductions", i, place == 0 ? 8 * 496 : place == 1 ? 15 : place == 2 ? 0x7fffffff : 0, back[i]);
    }
    CUDA_OK(cudaDestroySurfaceObject(surface));
    CUDA_OK(cudaFreeArray(array));
}

// A kernel fills the levels that a texture then reads.
static void level() {
    const cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t mipmap;
    cudaArray_t array;
    CUDA_OK(cudaMallocMipmappedArray(&mipmap, &desc, make_cudaExtent(16, 8, 0), 3, cudaArraySurfaceLoadStore));
    CUDA_OK(cudaGetMipmappedArrayLevel(&array, mipmap, 2));
    std::vector<float> values(4 * 2);
    for (size_t i = 0; i < values.size(); i++) {
        values[i] = (float) i + 0.5f;
    }
    cudaSurfaceObject_t surface = surface_of(array);
    float *in = device_copy(values);
    write<float><<<1, 1>>>(PLANE, surface, in, make_int3(0, 0, 0), make_int3(4, 2, 1), cudaBoundaryModeZero);
    LAUNCH_OK();
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureDesc texture = {};
    texture.addressMode[0] = texture.addressMode[1] = cudaAddressModeClamp;
    texture.normalizedCoords = 1;
    texture.maxMipmapLevelClamp = 2;
    cudaTextureObject_t object = texture_of(resource, texture);
    std::vector<float4> at;
    for (int i = 0; i < 8; i++) {
        at.push_back(make_float4((i % 4 + 0.5f) / 4, (i / 4 + 0.5f) / 2, 0, 2));
    }
    std::vector<float> got = fetched<TWO_LOD, float>(object, at);
    for (int i = 0; i < 8; i++) {
        check_near("a level that a kernel wrote", i, values[i], got[i], 0);
    }
    CUDA_OK(cudaDestroyTextureObject(object));
    CUDA_OK(cudaDestroySurfaceObject(surface));
    CUDA_OK(cudaFree(in));
    CUDA_OK(cudaFreeMipmappedArray(mipmap));
}

__global__ void leave(cudaSurfaceObject_t surface) {
    surf2Dwrite(1, surface, 0, HEIGHT + 3, cudaBoundaryModeTrap);
}

// Ends the context, so it comes last.
static void trap() {
    std::vector<int> zeros(WIDTH * HEIGHT);
    cudaSurfaceObject_t surface = surface_of(array_of(WIDTH, HEIGHT, 0, zeros.data(), cudaArraySurfaceLoadStore));
    leave<<<1, 1>>>(surface);
    LAUNCH_OK();
    cudaError_t error = cudaDeviceSynchronize();
    check_true("an error of the access outside", error != cudaSuccess);
    check_here("an access outside with the trap mode: %d %s", (int) error, cudaGetErrorName(error));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    accesses<unsigned char>("8 bits");
    accesses<short>("16 bits");
    accesses<uchar4>("4 x 8 bits");
    accesses<int>("32 bits");
    accesses<short4>("4 x 16 bits");
    accesses<int2>("2 x 32 bits");
    accesses<long long>("64 bits");
    accesses<int4>("4 x 32 bits");
    accesses<longlong2>("2 x 64 bits");
    reductions();
    level();
    trap();
    return check_pass("widths, geometries, boundary modes, reductions and levels");
}
