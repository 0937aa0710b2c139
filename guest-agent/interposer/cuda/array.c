/*
 * CUDA arrays and mipmapped arrays. The guest answers queries of a descriptor; the worker checks which lengths a device
 * accepts.
 *
 * Known deviation: planar and block-compressed formats are refused.
 */
#include "array.h"

#include "capture.h"
#include "context.h"
#include "device.h"

#include "hws_cuda_calls.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_LEVELS 32
#define ALL_FLAGS 0x1ffu /* CUDA 13.0 cuda.h, CUDA_ARRAY3D_* */

typedef struct hws_mipmap {
    hws_array_t base;
    unsigned levels;
    uint64_t level[MAX_LEVELS]; /* handles, 0 until a program requests the level; under the lock */
} hws_mipmap_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Sets `kept` to a mipmapped array's data, or leaves the calling function for an invalid handle. */
#define TAKE_MIPMAP(kept, mipmap)                                                                                      \
    hws_mipmap_t *kept = hws_handle_data(HWS_KIND_MIPMAPPED_ARRAY, (uint64_t) (uintptr_t) (mipmap));                   \
    if (__builtin_expect(kept == NULL, 0)) {                                                                           \
        return CUDA_ERROR_INVALID_HANDLE;                                                                              \
    }

uint32_t hws_array_channel_bytes(CUarray_format format) {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
        case CU_AD_FORMAT_UNORM_INT8X1:
        case CU_AD_FORMAT_UNORM_INT8X2:
        case CU_AD_FORMAT_UNORM_INT8X4:
        case CU_AD_FORMAT_SNORM_INT8X1:
        case CU_AD_FORMAT_SNORM_INT8X2:
        case CU_AD_FORMAT_SNORM_INT8X4:
            return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
        case CU_AD_FORMAT_UNORM_INT16X1:
        case CU_AD_FORMAT_UNORM_INT16X2:
        case CU_AD_FORMAT_UNORM_INT16X4:
        case CU_AD_FORMAT_SNORM_INT16X1:
        case CU_AD_FORMAT_SNORM_INT16X2:
        case CU_AD_FORMAT_SNORM_INT16X4:
            return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
            return 4;
        default:
            return 0;
    }
}

/* Formats of cuda.h that this library refuses, as a group. */
static bool is_special(CUarray_format format) {
    return format == CU_AD_FORMAT_UNORM_INT_101010_2
        || (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar);
}

/* Whether the program asks for a kind of array that the device does not have. */
static bool lacks(CUdevice device, unsigned flags, unsigned flag, CUdevice_attribute attribute) {
    return (flags & flag) != 0 && hws_device_attribute(device, attribute) == 0;
}

/* Checks a descriptor, except the lengths that the device accepts, and fills in the array's data. */
static CUresult examine(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, hws_array_t *array_p) {
    static _Atomic bool logged_format;
    CUdevice device;
    if (is_special(descriptor->Format)) {
        return hws_unsupported_use(&logged_format, "an array of a planar, packed or block-compressed format");
    }
    HWS_REQUIRE((descriptor->Flags & ~ALL_FLAGS) == 0);
    HWS_TRY(hws_context_device(&device));
    if (lacks(device, descriptor->Flags, CUDA_ARRAY3D_SPARSE, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED)
        || lacks(device, descriptor->Flags, CUDA_ARRAY3D_DEFERRED_MAPPING,
                 CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    uint32_t channel = hws_array_channel_bytes(descriptor->Format);
    unsigned channels = descriptor->NumChannels;
    HWS_REQUIRE(channel != 0 && (channels == 1 || channels == 2 || channels == 4) && descriptor->Width != 0);
    *array_p = (hws_array_t) {.descriptor = *descriptor, .element_bytes = channel * channels};
    return CUDA_SUCCESS;
}

static CUresult create(CUarray *array_p, const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    hws_array_t kept;
    HWS_TRY(examine(descriptor, &kept));
    hws_array_t *data = malloc(sizeof *data);
    uint64_t handle = data == NULL ? 0 : hws_handle_new(HWS_KIND_ARRAY);
    CUarray array = (CUarray) (uintptr_t) handle;
    CUresult result = handle == 0 ? CUDA_ERROR_OUT_OF_MEMORY : hws_call_cuArray3DCreate_v2(array, descriptor);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_ARRAY, handle);
        free(data);
        return result;
    }
    *data = kept;
    hws_handle_attach(HWS_KIND_ARRAY, handle, data);
    *array_p = array;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE(pHandle != NULL && pAllocateArray != NULL);
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = pAllocateArray->Width,
                                                .Height = pAllocateArray->Height,
                                                .Format = pAllocateArray->Format,
                                                .NumChannels = pAllocateArray->NumChannels};
    return create(pHandle, &descriptor);
}

HWS_EXPORT CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE(pHandle != NULL && pAllocateArray != NULL);
    return create(pHandle, pAllocateArray);
}

HWS_EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray) {
    HWS_CHECK_HANDLE(HWS_KIND_ARRAY, hArray); /* driver 580: also before cuInit */
    HWS_ENTER();
    HWS_ENTER_CONTEXT();
    HWS_TAKE_ARRAY(kept, hArray);
    HWS_REQUIRE(pArrayDescriptor != NULL);
    const CUDA_ARRAY3D_DESCRIPTOR *full = &kept->descriptor;
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR) {
        .Width = full->Width, .Height = full->Height, .Format = full->Format, .NumChannels = full->NumChannels};
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray) {
    HWS_CHECK_HANDLE(HWS_KIND_ARRAY, hArray); /* driver 580: also before cuInit */
    HWS_ENTER();
    HWS_ENTER_CONTEXT();
    HWS_TAKE_ARRAY(kept, hArray);
    HWS_REQUIRE(pArrayDescriptor != NULL);
    *pArrayDescriptor = kept->descriptor;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuArrayDestroy(CUarray hArray) {
    HWS_ENTER_OBJECT(HWS_KIND_ARRAY, hArray);
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_TAKE_ARRAY(kept, hArray);
    if (kept->level) {
        return CUDA_SUCCESS; /* it is freed with its mipmapped array, and stays until then, as in CUDA */
    }
    hws_handle_drop(HWS_KIND_ARRAY, (uint64_t) (uintptr_t) hArray);
    HWS_TRY(hws_call_cuArrayDestroy(hArray));
    return hws_call_cuCtxSynchronize(); /* as CUDA does, like cuMemFree */
}

/* Arrays of this library have no planes. */
HWS_EXPORT CUresult cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx) {
    (void) planeIdx;
    HWS_ENTER_OBJECT(HWS_KIND_ARRAY, hArray);
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(pPlaneArray != NULL);
    return CUDA_ERROR_INVALID_VALUE;
}

const hws_array_t *hws_mipmap_get(CUmipmappedArray mipmap) {
    const hws_mipmap_t *kept = hws_handle_data(HWS_KIND_MIPMAPPED_ARRAY, (uint64_t) (uintptr_t) mipmap);
    return kept == NULL ? NULL : &kept->base;
}

/* Largest number of levels for these lengths: down to one element. Layers are not a length. */
static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    uint64_t longest = descriptor->Width > descriptor->Height ? descriptor->Width : descriptor->Height;
    bool layered = (descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    if (!layered && descriptor->Depth > longest) {
        longest = descriptor->Depth;
    }
    unsigned levels = 1;
    while (longest > 1 && levels < MAX_LEVELS) {
        longest >>= 1;
        levels++;
    }
    return levels;
}

HWS_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                           const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                           unsigned int numMipmapLevels) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE(pHandle != NULL && pMipmappedArrayDesc != NULL);
    hws_array_t base;
    HWS_TRY(examine(pMipmappedArrayDesc, &base));
    unsigned most = most_levels(pMipmappedArrayDesc);
    hws_mipmap_t *data = calloc(1, sizeof *data);
    uint64_t handle = data == NULL ? 0 : hws_handle_new(HWS_KIND_MIPMAPPED_ARRAY);
    CUmipmappedArray mipmap = (CUmipmappedArray) (uintptr_t) handle;
    unsigned levels = numMipmapLevels == 0 ? 1 : numMipmapLevels < most ? numMipmapLevels : most; /* as CUDA clamps */
    CUresult result =
        handle == 0 ? CUDA_ERROR_OUT_OF_MEMORY : hws_call_cuMipmappedArrayCreate(mipmap, pMipmappedArrayDesc, levels);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_MIPMAPPED_ARRAY, handle);
        free(data);
        return result;
    }
    data->base = base;
    data->levels = levels;
    hws_handle_attach(HWS_KIND_MIPMAPPED_ARRAY, handle, data);
    *pHandle = mipmap;
    return CUDA_SUCCESS;
}

static size_t level_length(size_t length, unsigned level) {
    return length == 0 ? 0 : length >> level == 0 ? 1 : length >> level;
}

/* Makes the handle of a level at its first request. Lock held. */
static CUresult make_level(CUmipmappedArray mipmap, hws_mipmap_t *kept, unsigned level) {
    hws_array_t *data = malloc(sizeof *data);
    uint64_t handle = data == NULL ? 0 : hws_handle_new(HWS_KIND_ARRAY);
    CUresult result = handle == 0 ? CUDA_ERROR_OUT_OF_MEMORY
                                  : hws_call_cuMipmappedArrayGetLevel((CUarray) (uintptr_t) handle, mipmap, level);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_ARRAY, handle);
        free(data);
        return result;
    }
    *data = kept->base;
    data->level = true;
    CUDA_ARRAY3D_DESCRIPTOR *descriptor = &data->descriptor;
    descriptor->Width = level_length(descriptor->Width, level);
    descriptor->Height = level_length(descriptor->Height, level);
    if ((descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0) {
        descriptor->Depth = level_length(descriptor->Depth, level);
    }
    hws_handle_attach(HWS_KIND_ARRAY, handle, data);
    kept->level[level] = handle;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
                                             unsigned int level) {
    HWS_ENTER_OBJECT(HWS_KIND_MIPMAPPED_ARRAY, hMipmappedArray);
    HWS_ENTER_CONTEXT();
    TAKE_MIPMAP(kept, hMipmappedArray);
    HWS_REQUIRE(pLevelArray != NULL && level < kept->levels);
    pthread_mutex_lock(&lock);
    CUresult result = kept->level[level] != 0 ? CUDA_SUCCESS : make_level(hMipmappedArray, kept, level);
    if (result == CUDA_SUCCESS) {
        *pLevelArray = (CUarray) (uintptr_t) kept->level[level];
    }
    pthread_mutex_unlock(&lock);
    return result;
}

HWS_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
    HWS_ENTER_OBJECT(HWS_KIND_MIPMAPPED_ARRAY, hMipmappedArray);
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    TAKE_MIPMAP(kept, hMipmappedArray);
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < kept->levels; i++) {
        if (kept->level[i] != 0) {
            hws_handle_drop(HWS_KIND_ARRAY, kept->level[i]);
            kept->level[i] = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    hws_handle_drop(HWS_KIND_MIPMAPPED_ARRAY, (uint64_t) (uintptr_t) hMipmappedArray);
    HWS_TRY(hws_call_cuMipmappedArrayDestroy(hMipmappedArray));
    return hws_call_cuCtxSynchronize();
}
