/* CUDA arrays and mipmapped arrays, and the descriptions of their elements. */
#include "array.h"

#include <string.h>

/* Formats that include the number of channels and are normalised, in the order of the kinds. */
#define HWS_FIRST_NORMALIZED CU_AD_FORMAT_UNORM_INT8X1
#define HWS_FIRST_COMPRESSED CU_AD_FORMAT_BC1_UNORM

/* The number of a descriptor's channels, all of *bits_out bits; 0 when their sizes differ or there are gaps. */
static unsigned int hws_channel_count(const struct cudaChannelFormatDesc *desc, int *bits_out) {
    const int bits[4] = {desc->x, desc->y, desc->z, desc->w};
    unsigned int count = 0;
    while (count < 4 && bits[count] != 0) {
        count++;
    }
    for (unsigned int i = 0; i < 4; i++) {
        if (bits[i] != (i < count ? bits[0] : 0)) {
            return 0;
        }
    }
    *bits_out = desc->x;
    return count == 3 ? 0 : count;
}

bool hws_array_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format_out,
                      unsigned int *channels_out) {
    int bits = 0, kind = (int) desc->f;
    unsigned int channels = hws_channel_count(desc, &bits);
    *channels_out = channels;
    if (kind >= cudaChannelFormatKindUnsignedBlockCompressed1
        && kind <= cudaChannelFormatKindUnsignedBlockCompressed7SRGB) {
        *format_out = (CUarray_format) (HWS_FIRST_COMPRESSED + kind - cudaChannelFormatKindUnsignedBlockCompressed1);
        return true;
    }
    if (kind >= cudaChannelFormatKindUnsignedNormalized8X1 && kind <= cudaChannelFormatKindSignedNormalized16X4) {
        int index = kind - cudaChannelFormatKindUnsignedNormalized8X1; /* 8X1, 8X2, 8X4, 16X1, ... */
        *format_out = (CUarray_format) (HWS_FIRST_NORMALIZED + index);
        return channels == 1u << index % 3 && bits == (index / 3 % 2 == 0 ? 8 : 16);
    }
    switch (kind) {
        case cudaChannelFormatKindSigned:
            *format_out = bits == 8 ? CU_AD_FORMAT_SIGNED_INT8
                : bits == 16        ? CU_AD_FORMAT_SIGNED_INT16
                                    : CU_AD_FORMAT_SIGNED_INT32;
            return channels != 0 && (bits == 8 || bits == 16 || bits == 32);
        case cudaChannelFormatKindUnsigned:
            *format_out = bits == 8 ? CU_AD_FORMAT_UNSIGNED_INT8
                : bits == 16        ? CU_AD_FORMAT_UNSIGNED_INT16
                                    : CU_AD_FORMAT_UNSIGNED_INT32;
            return channels != 0 && (bits == 8 || bits == 16 || bits == 32);
        case cudaChannelFormatKindFloat:
            *format_out = bits == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
            return channels != 0 && (bits == 16 || bits == 32);
        case cudaChannelFormatKindNV12:
            *format_out = CU_AD_FORMAT_NV12;
            return true;
        case cudaChannelFormatKindUnsignedNormalized1010102:
            *format_out = CU_AD_FORMAT_UNORM_INT_101010_2;
            return true;
        default:
            return false;
    }
}

/* Bits of a channel and kind of a format. */
static int hws_channel_bits(CUarray_format format, enum cudaChannelFormatKind *kind_out) {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_UNSIGNED_INT32:
            *kind_out = cudaChannelFormatKindUnsigned;
            return 8 << (format - CU_AD_FORMAT_UNSIGNED_INT8);
        case CU_AD_FORMAT_SIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT32:
            *kind_out = cudaChannelFormatKindSigned;
            return 8 << (format - CU_AD_FORMAT_SIGNED_INT8);
        case CU_AD_FORMAT_HALF:
        case CU_AD_FORMAT_FLOAT:
            *kind_out = cudaChannelFormatKindFloat;
            return format == CU_AD_FORMAT_HALF ? 16 : 32;
        default:
            break;
    }
    if (format >= CU_AD_FORMAT_UNORM_INT8X1 && format <= CU_AD_FORMAT_SNORM_INT16X4) {
        int index = (int) format - HWS_FIRST_NORMALIZED;
        *kind_out = (enum cudaChannelFormatKind)(cudaChannelFormatKindUnsignedNormalized8X1 + index);
        return index / 3 % 2 == 0 ? 8 : 16;
    }
    *kind_out = cudaChannelFormatKindNone;
    return 0;
}

struct cudaChannelFormatDesc hws_array_channels(CUarray_format format, unsigned int channels) {
    enum cudaChannelFormatKind kind;
    int bits = hws_channel_bits(format, &kind);
    return (struct cudaChannelFormatDesc) {.x = channels >= 1 ? bits : 0,
                                           .y = channels >= 2 ? bits : 0,
                                           .z = channels >= 4 ? bits : 0,
                                           .w = channels >= 4 ? bits : 0,
                                           .f = kind};
}

cudaError_t hws_array_element(cudaArray_const_t array, size_t *bytes_out) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    enum cudaChannelFormatKind kind;
    CUresult result = cuArray3DGetDescriptor_v2(&descriptor, hws_array_driver(array));
    if (result == CUDA_SUCCESS) {
        *bytes_out = (size_t) hws_channel_bits(descriptor.Format, &kind) / 8 * descriptor.NumChannels;
    }
    return hws_error_from_driver(result);
}

HWS_API struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f) {
    return (struct cudaChannelFormatDesc) {.x = x, .y = y, .z = z, .w = w, .f = f};
}

HWS_API cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    HWS_REQUIRE(desc != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuArray3DGetDescriptor_v2(&descriptor, hws_array_driver(array))));
    *desc = hws_array_channels(descriptor.Format, descriptor.NumChannels);
    return cudaSuccess;
}

/* The driver's descriptor; cudaErrorInvalidChannelDescriptor when the channels are invalid. */
static cudaError_t hws_array_describe(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
                                      unsigned int flags, CUDA_ARRAY3D_DESCRIPTOR *descriptor_out) {
    /* NVIDIA's runtime asks for the number of layers before the error of a kernel, or a capture. */
    if (desc == NULL || ((flags & CUDA_ARRAY3D_LAYERED) != 0 && extent.depth == 0)) {
        return cudaErrorInvalidValue;
    }
    memset(descriptor_out, 0, sizeof *descriptor_out);
    descriptor_out->Width = extent.width;
    descriptor_out->Height = extent.height;
    descriptor_out->Depth = extent.depth;
    descriptor_out->Flags = flags;
    return hws_array_format(desc, &descriptor_out->Format, &descriptor_out->NumChannels)
        ? cudaSuccess
        : cudaErrorInvalidChannelDescriptor;
}

HWS_API cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                      struct cudaExtent extent, unsigned int flags) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    CUarray made;
    HWS_REQUIRE(array != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_array_describe(desc, extent, flags, &descriptor));
    HWS_TRY(hws_error_from_driver(cuArray3DCreate_v2(&made, &descriptor)));
    *array = (cudaArray_t) made;
    return cudaSuccess;
}

HWS_API cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width,
                                    size_t height, unsigned int flags) {
    return cudaMalloc3DArray(array, desc, (struct cudaExtent) {width, height, 0}, flags);
}

HWS_API cudaError_t cudaFreeArray(cudaArray_t array) {
    HWS_ENTER_CONTEXT();
    return array == NULL ? cudaSuccess : hws_result(cuArrayDestroy(hws_array_driver(array)));
}

HWS_API cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
                                             const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
                                             unsigned int numLevels, unsigned int flags) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    CUmipmappedArray made;
    HWS_REQUIRE(mipmappedArray != NULL);
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_array_describe(desc, extent, flags, &descriptor));
    HWS_TRY(hws_error_from_driver(cuMipmappedArrayCreate(&made, &descriptor, numLevels)));
    *mipmappedArray = (cudaMipmappedArray_t) made;
    return cudaSuccess;
}

HWS_API cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *levelArray, cudaMipmappedArray_const_t mipmappedArray,
                                               unsigned int level) {
    CUarray found;
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuMipmappedArrayGetLevel(levelArray == NULL ? NULL : &found,
                                                           (CUmipmappedArray) (uintptr_t) mipmappedArray, level)));
    *levelArray = (cudaArray_t) found;
    return cudaSuccess;
}

HWS_API cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray) {
    HWS_ENTER_CONTEXT();
    return mipmappedArray == NULL ? cudaSuccess
                                  : hws_result(cuMipmappedArrayDestroy((CUmipmappedArray) mipmappedArray));
}

HWS_API cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent, unsigned int *flags,
                                     cudaArray_t array) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(cuArray3DGetDescriptor_v2(&descriptor, hws_array_driver(array))));
    if (desc != NULL) {
        *desc = hws_array_channels(descriptor.Format, descriptor.NumChannels);
    }
    if (extent != NULL) {
        *extent = (struct cudaExtent) {descriptor.Width, descriptor.Height, descriptor.Depth};
    }
    if (flags != NULL) {
        *flags = descriptor.Flags;
    }
    return cudaSuccess;
}

HWS_API cudaError_t cudaArrayGetPlane(cudaArray_t *pPlaneArray, cudaArray_t hArray, unsigned int planeIdx) {
    CUarray plane;
    HWS_ENTER_CONTEXT();
    HWS_TRY(hws_error_from_driver(
        cuArrayGetPlane(pPlaneArray == NULL ? NULL : &plane, hws_array_driver(hArray), planeIdx)));
    *pPlaneArray = (cudaArray_t) plane;
    return cudaSuccess;
}

/* The next four use the driver's structures, as tests/layout.c asserts. */
HWS_API cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *memoryRequirements,
                                                   cudaArray_t array, int device) {
    CUdevice driver;
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(hws_device_get(device, &driver) == cudaSuccess);
    return hws_result(cuArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *) memoryRequirements,
                                                   hws_array_driver(array), driver));
}

HWS_API cudaError_t cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *memoryRequirements,
                                                            cudaMipmappedArray_t mipmap, int device) {
    CUdevice driver;
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(hws_device_get(device, &driver) == cudaSuccess);
    return hws_result(cuMipmappedArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *) memoryRequirements,
                                                            (CUmipmappedArray) mipmap, driver));
}

HWS_API cudaError_t cudaArrayGetSparseProperties(struct cudaArraySparseProperties *sparseProperties,
                                                 cudaArray_t array) {
    HWS_TRY(hws_runtime_init(NULL));
    HWS_REQUIRE(array != NULL); /* before a context is made */
    HWS_ENTER_CONTEXT();
    return hws_result(
        cuArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *) sparseProperties, hws_array_driver(array)));
}

HWS_API cudaError_t cudaMipmappedArrayGetSparseProperties(struct cudaArraySparseProperties *sparseProperties,
                                                          cudaMipmappedArray_t mipmap) {
    HWS_TRY(hws_runtime_init(NULL));
    HWS_REQUIRE(mipmap != NULL); /* before a context is made */
    HWS_ENTER_CONTEXT();
    return hws_result(cuMipmappedArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *) sparseProperties,
                                                          (CUmipmappedArray) mipmap));
}

HWS_API cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements,
                                                         const struct cudaChannelFormatDesc *fmtDesc, int device) {
    CUdevice driver;
    CUarray_format format;
    unsigned int channels;
    HWS_REQUIRE(maxWidthInElements != NULL && fmtDesc != NULL);
    HWS_TRY(hws_device_get(device, &driver));
    if (!hws_array_format(fmtDesc, &format, &channels)) {
        return hws_error_record(cudaErrorInvalidChannelDescriptor);
    }
    return hws_result(cuDeviceGetTexture1DLinearMaxWidth(maxWidthInElements, format, channels, driver));
}
