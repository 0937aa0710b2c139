/*
 * Sparse arrays and arrays with deferred mapping: memory is mapped onto parts of them, and two arrays share memory. A
 * device without them refuses to make them.
 */
#include "check_arrays.h"
#include "check_vmm.h"

#include <stdbool.h>

#ifndef HAWSER_NVIDIA_HEADER
#define CUDA_ARRAY3D_SPARSE 0x40
#define CUDA_ARRAY3D_DEFERRED_MAPPING 0x80
#define CU_MEM_CREATE_USAGE_TILE_POOL 0x1
typedef enum { CU_RESOURCE_TYPE_ARRAY = 0, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 1 } CUresourcetype;
typedef enum { CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL = 0 } CUarraySparseSubresourceType;
typedef enum { CU_MEM_OPERATION_TYPE_MAP = 1, CU_MEM_OPERATION_TYPE_UNMAP = 2 } CUmemOperationType;
typedef struct {
    struct {
        unsigned int width, height, depth;
    } tileExtent;
    unsigned int miptailFirstLevel;
    unsigned long long miptailSize;
    unsigned int flags, reserved[4];
} CUDA_ARRAY_SPARSE_PROPERTIES;
typedef struct {
    size_t size, alignment;
    unsigned int reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;
typedef struct {
    CUresourcetype resourceType;
    union {
        CUmipmappedArray mipmap;
        CUarray array;
    } resource;
    CUarraySparseSubresourceType subresourceType;
    union {
        struct {
            unsigned int level, layer, offsetX, offsetY, offsetZ, extentWidth, extentHeight, extentDepth;
        } sparseLevel;
        struct {
            unsigned int layer;
            unsigned long long offset, size;
        } miptail;
    } subresource;
    CUmemOperationType memOperationType;
    int memHandleType;
    union {
        CUmemGenericAllocationHandle memHandle;
    } memHandle;
    unsigned long long offset;
    unsigned int deviceBitMask, flags, reserved[2];
} CUarrayMapInfo;
CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array);
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array,
                                      CUdevice device);
CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream);
#endif

enum { SIDE = 1024, SPARSE_SUPPORTED = 112, DEFERRED_SUPPORTED = 121 };

static CUstream stream;

static int attribute(int number) {
    int value = 0;
    CU_OK(cuDeviceGetAttribute(&value, (CUdevice_attribute) number, 0));
    return value;
}

static CUresult make(CUarray *array, unsigned flags) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = SIDE, .Height = SIDE, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = flags};
    return cuArray3DCreate(array, &shape);
}

static CUmemGenericAllocationHandle tile_pool(size_t bytes) {
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    size_t unit = 0;
    CU_OK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUmemGenericAllocationHandle memory = 0;
    CU_OK(cuMemCreate(&memory, (bytes + unit - 1) / unit * unit, &prop, 0));
    return memory;
}

/* A tile of an array at (x, y), in tiles. */
static CUarrayMapInfo tile(CUarray array, const CUDA_ARRAY_SPARSE_PROPERTIES *sparse, unsigned x, unsigned y,
                           CUmemGenericAllocationHandle memory, size_t offset) {
    CUarrayMapInfo info;
    memset(&info, 0, sizeof info);
    info.resourceType = CU_RESOURCE_TYPE_ARRAY;
    info.resource.array = array;
    info.subresource.sparseLevel.offsetX = x * sparse->tileExtent.width;
    info.subresource.sparseLevel.offsetY = y * sparse->tileExtent.height;
    info.subresource.sparseLevel.extentWidth = sparse->tileExtent.width;
    info.subresource.sparseLevel.extentHeight = sparse->tileExtent.height;
    info.subresource.sparseLevel.extentDepth = 1;
    info.memOperationType = memory == 0 ? CU_MEM_OPERATION_TYPE_UNMAP : CU_MEM_OPERATION_TYPE_MAP;
    info.memHandle.memHandle = memory;
    info.offset = offset;
    info.deviceBitMask = 1;
    return info;
}

/* Copies a box between an array and host memory. */
static void copy(CUarray array, size_t x, size_t y, size_t width, size_t height, float *values, bool to_array) {
    CUDA_MEMCPY2D box = {.WidthInBytes = width * sizeof(float), .Height = height};
    if (to_array) {
        box.srcMemoryType = CU_MEMORYTYPE_HOST;
        box.srcHost = values;
        box.srcPitch = width * sizeof(float);
        box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        box.dstArray = array;
        box.dstXInBytes = x * sizeof(float);
        box.dstY = y;
    } else {
        box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        box.srcArray = array;
        box.srcXInBytes = x * sizeof(float);
        box.srcY = y;
        box.dstMemoryType = CU_MEMORYTYPE_HOST;
        box.dstHost = values;
        box.dstPitch = width * sizeof(float);
    }
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemcpy2D(&box));
}

static void fill(CUarray array, size_t x, size_t y, size_t width, size_t height, int first) {
    float *values = check_memory(width * height * sizeof(float));
    for (size_t i = 0; i < width * height; i++) {
        values[i] = (float) (first + (int) i);
    }
    copy(array, x, y, width, height, values, true);
    free(values);
}

static void check_filled(const char *what, CUarray array, size_t x, size_t y, size_t width, size_t height, int first) {
    float *values = check_memory(width * height * sizeof(float));
    copy(array, x, y, width, height, values, false);
    for (size_t i = 0; i < width * height; i++) {
        check_element(what, (long long) i, first + (int) i, (long long) values[i]);
    }
    free(values);
}

static void check_plain_array(void) {
    CUarray array;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse = {.flags = 0};
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    CU_OK(make(&array, 0));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&sparse, array));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(&needs, array, 0));
    sparse.tileExtent.width = sparse.tileExtent.height = 128;
    CUarrayMapInfo info = tile(array, &sparse, 0, 0, 0, 0);
    check_true("a plain array has no tiles", cuMemMapArrayAsync(&info, 1, stream) != CUDA_SUCCESS);
    CU_OK(cuArrayDestroy(array));
}

static void check_sparse_arrays(void) {
    CUarray first, second;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    CU_OK(make(&first, CUDA_ARRAY3D_SPARSE));
    CU_OK(make(&second, CUDA_ARRAY3D_SPARSE));
    CU_OK(cuArrayGetSparseProperties(&sparse, first));
    const unsigned width = sparse.tileExtent.width, height = sparse.tileExtent.height;
    const size_t bytes = (size_t) width * height * sizeof(float);
    check_true("tiles lie in the array", width > 0 && height > 0 && 2 * width <= SIDE && 2 * height <= SIDE);
    CUmemGenericAllocationHandle memory = tile_pool(2 * bytes);
    CUarrayMapInfo maps[] = {tile(first, &sparse, 0, 0, memory, 0), tile(first, &sparse, 1, 1, memory, bytes),
                             tile(second, &sparse, 1, 0, memory, 0)};
    CU_OK(cuMemMapArrayAsync(maps, 3, stream));
    fill(first, 0, 0, width, height, 1);
    fill(first, width, height, width, height, 100);
    check_filled("a tile", first, 0, 0, width, height, 1);
    check_filled("another tile", first, width, height, width, height, 100);
    check_filled("a tile of the second array in the same memory", second, width, 0, width, height, 1);

    CUarrayMapInfo wrong = tile(first, &sparse, 0, 0, memory, 0);
    wrong.subresource.sparseLevel.offsetX = 1;
    check_true("an offset inside a tile", cuMemMapArrayAsync(&wrong, 1, stream) != CUDA_SUCCESS);
    wrong = tile(first, &sparse, 0, 0, memory, 0);
    wrong.deviceBitMask = 0;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&wrong, 1, stream));
    wrong = tile(first, &sparse, 0, 0, memory, 0);
    wrong.flags = 1;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&wrong, 1, stream));

    CU_OK(cuMemRelease(memory)); /* the tiles keep it */
    check_filled("after the release", first, 0, 0, width, height, 1);
    CUarrayMapInfo unmaps[] = {tile(first, &sparse, 0, 0, 0, 0), tile(first, &sparse, 1, 1, 0, 0)};
    CU_OK(cuMemMapArrayAsync(unmaps, 2, stream));
    check_filled("the second array still has it", second, width, 0, width, height, 1);
    CU_OK(cuArrayDestroy(first));
    CU_OK(cuArrayDestroy(second));
}

static void check_deferred_mapping(void) {
    CUarray array;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    CU_OK(make(&array, CUDA_ARRAY3D_DEFERRED_MAPPING));
    CU_OK(cuArrayGetMemoryRequirements(&needs, array, 0));
    check_true("the array's size", needs.size >= (size_t) SIDE * SIDE * sizeof(float));
    CUmemGenericAllocationHandle memory = tile_pool(needs.size);
    const CUDA_ARRAY_SPARSE_PROPERTIES none = {.flags = 0};
    CUarrayMapInfo map = tile(array, &none, 0, 0, memory, 0), unmap = tile(array, &none, 0, 0, 0, 0);
    CU_OK(cuMemMapArrayAsync(&map, 1, stream));
    fill(array, 0, 0, SIDE, SIDE, 7);
    check_filled("an array with its memory", array, 0, 0, SIDE, SIDE, 7);
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemMapArrayAsync(&unmap, 1, stream));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemRelease(memory));
    CU_OK(cuArrayDestroy(array));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CU_OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    check_plain_array();
    const int flags[] = {CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING};
    const int supported[] = {attribute(SPARSE_SUPPORTED), attribute(DEFERRED_SUPPORTED)};
    for (int i = 0; i < 2; i++) {
        CUarray none;
        check_true("a device without such arrays makes none", supported[i] || make(&none, flags[i]) != CUDA_SUCCESS);
    }
    if (supported[0]) {
        check_sparse_arrays();
    }
    if (supported[1]) {
        check_deferred_mapping();
    }
    CU_OK(cuStreamDestroy(stream));
    if (!supported[0] && !supported[1]) {
        check_unsupported("the device has no arrays that get their memory later (attributes 112 and 121)");
    }
    return check_pass("sparse arrays: %d, deferred mapping: %d", supported[0], supported[1]);
}
