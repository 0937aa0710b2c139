/* Shared by the texture programs: fetches in a kernel, and the host's computation of the same fetch. */
#ifndef HAWSER_PROGRAMS_CHECK_TEXTURE_H
#define HAWSER_PROGRAMS_CHECK_TEXTURE_H

#include "check_cuda.h"

#include <cstring>

/* The kind of coordinates of a fetch. */
enum Fetch { ONE, TWO, THREE, ONE_LAYERED, TWO_LAYERED, TWO_LOD, LINEAR, CUBE, GATHER };

template <int HOW, typename T> __global__ void fetch(cudaTextureObject_t texture, const float4 *at, T *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    float4 p = at[i];
    if constexpr (HOW == ONE) {
        out[i] = tex1D<T>(texture, p.x);
    } else if constexpr (HOW == TWO) {
        out[i] = tex2D<T>(texture, p.x, p.y);
    } else if constexpr (HOW == THREE) {
        out[i] = tex3D<T>(texture, p.x, p.y, p.z);
    } else if constexpr (HOW == ONE_LAYERED) {
        out[i] = tex1DLayered<T>(texture, p.x, (int) p.w);
    } else if constexpr (HOW == TWO_LAYERED) {
        out[i] = tex2DLayered<T>(texture, p.x, p.y, (int) p.w);
    } else if constexpr (HOW == TWO_LOD) {
        out[i] = tex2DLod<T>(texture, p.x, p.y, p.w);
    } else if constexpr (HOW == LINEAR) {
        out[i] = tex1Dfetch<T>(texture, (int) p.x);
    } else if constexpr (HOW == CUBE) {
        out[i] = texCubemap<T>(texture, p.x, p.y, p.z);
    } else {
        out[i] = tex2Dgather<T>(texture, p.x, p.y, 0);
    }
}

template <int HOW, typename T> std::vector<T> fetched(cudaTextureObject_t texture, const std::vector<float4> &at) {
    float4 *device_at = device_copy(at);
    T *out = device_array<T>(at.size());
    fetch<HOW, T><<<(unsigned int) (at.size() + 63) / 64, 64>>>(texture, device_at, out, (int) at.size());
    LAUNCH_OK();
    std::vector<T> values = host_copy(out, at.size());
    CUDA_OK(cudaFree(device_at));
    CUDA_OK(cudaFree(out));
    return values;
}

/* An image of floats in up to three dimensions, and its rules for reading, from the CUDA programming guide. */
struct Image {
    int width, height, depth;
    std::vector<float> texels;
    cudaTextureAddressMode mode;
    bool linear, normalised;
    float border;

    /* Index of a texel in one dimension; -1 for the border. */
    int address(int i, int length) const {
        switch (mode) {
            case cudaAddressModeWrap:
                return ((i % length) + length) % length;
            case cudaAddressModeMirror: {
                int j = ((i % (2 * length)) + 2 * length) % (2 * length);
                return j < length ? j : 2 * length - 1 - j;
            }
            case cudaAddressModeClamp:
                return i < 0 ? 0 : i >= length ? length - 1 : i;
            default:
                return i < 0 || i >= length ? -1 : i;
        }
    }

    float texel(int x, int y, int z) const {
        x = address(x, width);
        y = height > 1 ? address(y, height) : 0;
        z = depth > 1 ? address(z, depth) : 0;
        return x < 0 || y < 0 || z < 0 ? border : texels[((size_t) z * height + y) * width + x];
    }

    /* Linear filtering weights by fractions of 8 bits; the programs' coordinates have no more bits. */
    double at(float px, float py, float pz) const {
        double x = normalised ? (double) px * width : px;
        double y = height > 1 ? (normalised ? (double) py * height : py) : 0.5;
        double z = depth > 1 ? (normalised ? (double) pz * depth : pz) : 0.5;
        if (!linear) {
            return texel((int) floor(x), (int) floor(y), (int) floor(z));
        }
        double fx = x - 0.5, fy = y - 0.5, fz = z - 0.5, sum = 0;
        int ix = (int) floor(fx), iy = (int) floor(fy), iz = (int) floor(fz);
        fx -= ix, fy -= iy, fz -= iz;
        for (int i = 0; i < 8; i++) {
            double weight = (i & 1 ? fx : 1 - fx) * (i & 2 ? fy : 1 - fy) * (i & 4 ? fz : 1 - fz);
            if (weight > 0) {
                sum += weight * texel(ix + (i & 1), iy + (i >> 1 & 1), iz + (i >> 2));
            }
        }
        return sum;
    }
};

static inline Image image_of(int width, int height, int depth) {
    Image image = {width, height, depth, std::vector<float>((size_t) width * height * depth), cudaAddressModeClamp,
                   false, false,  0};
    for (size_t i = 0; i < image.texels.size(); i++) {
        image.texels[i] = (float) ((i * 37 + i / 7 * 11) % 256); // small integers: weighted sums of them are exact
    }
    return image;
}

static inline cudaTextureDesc reading(const Image &image) {
    cudaTextureDesc texture = {};
    /* The mode of a missing dimension counts as well: with a border mode, half of the border would be mixed in. */
    texture.addressMode[0] = image.mode;
    texture.addressMode[1] = image.height > 1 ? image.mode : cudaAddressModeClamp;
    texture.addressMode[2] = image.depth > 1 ? image.mode : cudaAddressModeClamp;
    texture.filterMode = image.linear ? cudaFilterModeLinear : cudaFilterModePoint;
    texture.readMode = cudaReadModeElementType;
    texture.normalizedCoords = image.normalised;
    texture.borderColor[0] = texture.borderColor[1] = texture.borderColor[2] = texture.borderColor[3] = image.border;
    return texture;
}

static inline cudaTextureObject_t texture_of(const cudaResourceDesc &resource, const cudaTextureDesc &texture) {
    cudaTextureObject_t object;
    CUDA_OK(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
    return object;
}

static inline cudaTextureObject_t texture_of(cudaArray_t array, const cudaTextureDesc &texture) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return texture_of(resource, texture);
}

/* An array of elements of type T, filled with values. */
template <typename T> cudaArray_t array_of(int width, int height, int depth, const T *texels, unsigned int flags = 0) {
    const cudaChannelFormatDesc desc = cudaCreateChannelDesc<T>();
    cudaArray_t array;
    CUDA_OK(cudaMalloc3DArray(&array, &desc, make_cudaExtent(width, height, depth), flags));
    cudaMemcpy3DParms copy = {};
    size_t rows = height == 0 ? 1 : height;
    copy.srcPtr = make_cudaPitchedPtr((void *) texels, width * sizeof(T), width, rows);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(width, rows, depth == 0 ? 1 : depth);
    copy.kind = cudaMemcpyHostToDevice;
    CUDA_OK(cudaMemcpy3D(&copy));
    return array;
}

#endif
