/* Texture and surface objects. They are the driver's; only the descriptors differ in form. */
#include "array.h"

#include <string.h>

/* Translates a resource that is not an array; cudaErrorInvalidChannelDescriptor when the channels are invalid. */
static cudaError_t hws_resource_to_driver(const struct cudaResourceDesc *from, CUDA_RESOURCE_DESC *to) {
    memset(to, 0, sizeof *to);
    to->resType = (CUresourcetype) from->resType;
#if HWS_CUDART_MAJOR >= 13
    to->flags = from->flags;
#endif
    switch (from->resType) {
        case cudaResourceTypeArray:
            to->res.array.hArray = hws_array_driver(from->res.array.array);
            return cudaSuccess;
        case cudaResourceTypeMipmappedArray:
            to->res.mipmap.hMipmappedArray = (CUmipmappedArray) from->res.mipmap.mipmap;
            return cudaSuccess;
        case cudaResourceTypeLinear:
            to->res.linear.devPtr = (CUdeviceptr) (uintptr_t) from->res.linear.devPtr;
            to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
            return hws_array_format(&from->res.linear.desc, &to->res.linear.format, &to->res.linear.numChannels)
                ? cudaSuccess
                : cudaErrorInvalidChannelDescriptor;
        case cudaResourceTypePitch2D:
            to->res.pitch2D.devPtr = (CUdeviceptr) (uintptr_t) from->res.pitch2D.devPtr;
            to->res.pitch2D.width = from->res.pitch2D.width;
            to->res.pitch2D.height = from->res.pitch2D.height;
            to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
            return hws_array_format(&from->res.pitch2D.desc, &to->res.pitch2D.format, &to->res.pitch2D.numChannels)
                ? cudaSuccess
                : cudaErrorInvalidChannelDescriptor;
        default:
            return cudaErrorInvalidValue;
    }
}

static void hws_resource_from_driver(const CUDA_RESOURCE_DESC *from, struct cudaResourceDesc *to) {
    memset(to, 0, sizeof *to);
    to->resType = (enum cudaResourceType) from->resType;
    switch (from->resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            to->res.array.array = (cudaArray_t) from->res.array.hArray;
            break;
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            to->res.mipmap.mipmap = (cudaMipmappedArray_t) from->res.mipmap.hMipmappedArray;
            break;
        case CU_RESOURCE_TYPE_LINEAR:
            to->res.linear.devPtr = (void *) (uintptr_t) from->res.linear.devPtr;
            to->res.linear.desc = hws_array_channels(from->res.linear.format, from->res.linear.numChannels);
            to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
            break;
        case CU_RESOURCE_TYPE_PITCH2D:
            to->res.pitch2D.devPtr = (void *) (uintptr_t) from->res.pitch2D.devPtr;
            to->res.pitch2D.desc = hws_array_channels(from->res.pitch2D.format, from->res.pitch2D.numChannels);
            to->res.pitch2D.width = from->res.pitch2D.width;
            to->res.pitch2D.height = from->res.pitch2D.height;
            to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
            break;
        default:
            break;
    }
}

static void hws_texture_to_driver(const struct cudaTextureDesc *from, CUDA_TEXTURE_DESC *to) {
    memset(to, 0, sizeof *to);
    for (int i = 0; i < 3; i++) {
        to->addressMode[i] = (CUaddress_mode) from->addressMode[i];
    }
    to->filterMode = (CUfilter_mode) from->filterMode;
    to->flags = (from->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0u)
        | (from->normalizedCoords != 0 ? CU_TRSF_NORMALIZED_COORDINATES : 0u) | (from->sRGB != 0 ? CU_TRSF_SRGB : 0u)
        | (from->disableTrilinearOptimization != 0 ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0u)
        | (from->seamlessCubemap != 0 ? CU_TRSF_SEAMLESS_CUBEMAP : 0u);
    to->maxAnisotropy = from->maxAnisotropy;
    to->mipmapFilterMode = (CUfilter_mode) from->mipmapFilterMode;
    to->mipmapLevelBias = from->mipmapLevelBias;
    to->minMipmapLevelClamp = from->minMipmapLevelClamp;
    to->maxMipmapLevelClamp = from->maxMipmapLevelClamp;
    memcpy(to->borderColor, from->borderColor, sizeof to->borderColor);
}

static void hws_texture_from_driver(const CUDA_TEXTURE_DESC *from, struct cudaTextureDesc *to) {
    memset(to, 0, sizeof *to);
    for (int i = 0; i < 3; i++) {
        to->addressMode[i] = (enum cudaTextureAddressMode) from->addressMode[i];
    }
    to->filterMode = (enum cudaTextureFilterMode) from->filterMode;
    to->readMode = (from->flags & CU_TRSF_READ_AS_INTEGER) != 0 ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
    to->sRGB = (from->flags & CU_TRSF_SRGB) != 0;
    memcpy(to->borderColor, from->borderColor, sizeof to->borderColor);
    to->normalizedCoords = (from->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    to->maxAnisotropy = from->maxAnisotropy;
    to->mipmapFilterMode = (enum cudaTextureFilterMode) from->mipmapFilterMode;
    to->mipmapLevelBias = from->mipmapLevelBias;
    to->minMipmapLevelClamp = from->minMipmapLevelClamp;
    to->maxMipmapLevelClamp = from->maxMipmapLevelClamp;
    to->disableTrilinearOptimization = (from->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
    to->seamlessCubemap = (from->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
}

/* Both have the same members; CUDA 12's lacks the reserved ones at the end. */
static void hws_view_to_driver(const struct cudaResourceViewDesc *from, CUDA_RESOURCE_VIEW_DESC *to) {
    memset(to, 0, sizeof *to);
    to->format = (CUresourceViewFormat) from->format;
    to->width = from->width;
    to->height = from->height;
    to->depth = from->depth;
    to->firstMipmapLevel = from->firstMipmapLevel;
    to->lastMipmapLevel = from->lastMipmapLevel;
    to->firstLayer = from->firstLayer;
    to->lastLayer = from->lastLayer;
}

/* Format and channels of the memory that a texture reads; false when they are unknown here. */
static bool hws_resource_format(const CUDA_RESOURCE_DESC *resource, CUarray_format *format_out) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    CUarray array = resource->res.array.hArray;
    switch (resource->resType) {
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            if (cuMipmappedArrayGetLevel(&array, resource->res.mipmap.hMipmappedArray, 0) != CUDA_SUCCESS) {
                return false;
            }
            /* fall through */
        case CU_RESOURCE_TYPE_ARRAY:
            if (cuArray3DGetDescriptor_v2(&descriptor, array) != CUDA_SUCCESS) {
                return false;
            }
            *format_out = descriptor.Format;
            return true;
        case CU_RESOURCE_TYPE_LINEAR:
            *format_out = resource->res.linear.format;
            return true;
        case CU_RESOURCE_TYPE_PITCH2D:
            *format_out = resource->res.pitch2D.format;
            return true;
        default:
            return false;
    }
}

/* Checks that the Runtime API makes before the driver's: filters, then normalised reads. */
static cudaError_t hws_texture_check(const CUDA_RESOURCE_DESC *resource, const struct cudaTextureDesc *texture) {
    CUarray_format format;
    if (!hws_resource_format(resource, &format)) {
        return cudaSuccess; /* the driver reports the error */
    }
    if (format > CU_AD_FORMAT_FLOAT) { /* the format itself is normalised */
        return texture->readMode == cudaReadModeElementType ? cudaErrorInvalidNormSetting : cudaSuccess;
    }
    bool real = format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT;
    bool wide = format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT32;
    bool normalised = texture->readMode == cudaReadModeNormalizedFloat;
    if (texture->filterMode == cudaFilterModeLinear && !real && (wide || !normalised)) {
        return cudaErrorInvalidFilterSetting;
    }
    return normalised && (real || wide) ? cudaErrorInvalidNormSetting : cudaSuccess;
}

/* In these functions NVIDIA's runtime calls a null pointer an invalid handle. */
#define HWS_REQUIRE_HANDLE(condition)                                                                                  \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            return hws_error_record(cudaErrorInvalidResourceHandle);                                                   \
        }                                                                                                              \
    } while (0)

static bool hws_resource_is_there(const struct cudaResourceDesc *resource) {
    return resource->resType != cudaResourceTypeArray || resource->res.array.array != NULL;
}

HWS_API cudaError_t cudaCreateTextureObject(cudaTextureObject_t *pTexObject, const struct cudaResourceDesc *pResDesc,
                                            const struct cudaTextureDesc *pTexDesc,
                                            const struct cudaResourceViewDesc *pResViewDesc) {
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
    CUtexObject made;
    HWS_REQUIRE(pTexObject != NULL && pResDesc != NULL);
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE_HANDLE(pTexDesc != NULL && hws_resource_is_there(pResDesc));
    HWS_TRY(hws_resource_to_driver(pResDesc, &resource));
    HWS_TRY(hws_texture_check(&resource, pTexDesc));
    hws_texture_to_driver(pTexDesc, &texture);
    if (pResViewDesc != NULL) {
        hws_view_to_driver(pResViewDesc, &view);
    }
    HWS_TRY(hws_error_from_driver(cuTexObjectCreate(&made, &resource, &texture, pResViewDesc != NULL ? &view : NULL)));
    *pTexObject = made;
    return cudaSuccess;
}

HWS_API cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texObject) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuTexObjectDestroy(texObject));
}

HWS_API cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *pResDesc, cudaTextureObject_t texObject) {
    CUDA_RESOURCE_DESC resource;
    HWS_REQUIRE(pResDesc != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuTexObjectGetResourceDesc(&resource, texObject)));
    hws_resource_from_driver(&resource, pResDesc);
    return cudaSuccess;
}

HWS_API cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *pTexDesc, cudaTextureObject_t texObject) {
    CUDA_TEXTURE_DESC texture;
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE_HANDLE(pTexDesc != NULL);
    HWS_TRY(hws_error_from_driver(cuTexObjectGetTextureDesc(&texture, texObject)));
    hws_texture_from_driver(&texture, pTexDesc);
    return cudaSuccess;
}

HWS_API cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *pResViewDesc,
                                                         cudaTextureObject_t texObject) {
    CUDA_RESOURCE_VIEW_DESC view;
    memset(&view, 0, sizeof view); /* the driver leaves it so when the texture has no view */
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuTexObjectGetResourceViewDesc(&view, texObject)));
    if (pResViewDesc == NULL) {
        return cudaSuccess; /* as NVIDIA's runtime, which writes nothing for a texture without a view */
    }
    memset(pResViewDesc, 0, sizeof *pResViewDesc);
    pResViewDesc->format = (enum cudaResourceViewFormat) view.format;
    pResViewDesc->width = view.width;
    pResViewDesc->height = view.height;
    pResViewDesc->depth = view.depth;
    pResViewDesc->firstMipmapLevel = view.firstMipmapLevel;
    pResViewDesc->lastMipmapLevel = view.lastMipmapLevel;
    pResViewDesc->firstLayer = view.firstLayer;
    pResViewDesc->lastLayer = view.lastLayer;
    return cudaSuccess;
}

HWS_API cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *pSurfObject, const struct cudaResourceDesc *pResDesc) {
    CUDA_RESOURCE_DESC resource;
    CUsurfObject made;
    HWS_REQUIRE(pSurfObject != NULL && pResDesc != NULL);
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE_HANDLE(hws_resource_is_there(pResDesc));
    HWS_TRY(hws_resource_to_driver(pResDesc, &resource));
    HWS_TRY(hws_error_from_driver(cuSurfObjectCreate(&made, &resource)));
    *pSurfObject = made;
    return cudaSuccess;
}

HWS_API cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject) {
    HWS_ENTER_CONTEXT();
    return hws_result(cuSurfObjectDestroy(surfObject));
}

HWS_API cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *pResDesc,
                                                     cudaSurfaceObject_t surfObject) {
    CUDA_RESOURCE_DESC resource;
    HWS_REQUIRE(pResDesc != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuSurfObjectGetResourceDesc(&resource, surfObject)));
    hws_resource_from_driver(&resource, pResDesc);
    return cudaSuccess;
}
