// Textures of arrays, linear memory and pitched memory: dimensions, layers, levels, filters, address modes, normalised
// reads, properties. The host computes the expected values from the rules of the CUDA programming guide.
#include "check_texture.h"

static const float NEAR = 1e-3f; // of texels up to 255

// Coordinates, also outside, are multiples of 1/16 of a texel, in three dimensions of 1/4. The products of the weights
// of linear filtering are then multiples of 1/256, the precision of a GPU.
static std::vector<float4> grid(const Image &image, int steps) {
    std::vector<float4> at;
    int nx = steps, ny = image.height > 1 ? steps : 1, nz = image.depth > 1 ? steps : 1, parts = nz > 1 ? 4 : 16;
    for (int z = 0; z < nz; z++) {
        for (int y = 0; y < ny; y++) {
            for (int x = 0; x < nx; x++) {
                float px = (float) (x * 2 * image.width * parts / steps - image.width * parts / 2 + 1) / parts;
                float py = (float) (y * 2 * image.height * parts / steps - image.height * parts / 2 + 3) / parts;
                float pz = (float) (z * 2 * image.depth * parts / steps - image.depth * parts / 2 + 1) / parts;
                float sx = image.normalised ? (float) image.width : 1, sy = image.normalised ? (float) image.height : 1;
                float sz = image.normalised ? (float) image.depth : 1;
                at.push_back(make_float4(px / sx, py / sy, pz / sz, 0));
            }
        }
    }
    return at;
}

template <int HOW> static void expect(const char *what, const Image &image, cudaArray_t array, int steps) {
    cudaTextureObject_t texture = texture_of(array, reading(image));
    std::vector<float4> at = grid(image, steps);
    std::vector<float> got = fetched<HOW, float>(texture, at);
    for (size_t i = 0; i < at.size(); i++) {
        check_near(what, (long long) i, image.at(at[i].x, at[i].y, at[i].z), got[i], NEAR);
    }
    CUDA_OK(cudaDestroyTextureObject(texture));
}

// Lengths are powers of 2, so that normalised coordinates are exact.
template <int HOW> static void filters_and_modes(const char *what, int width, int height, int depth, int steps) {
    Image image = image_of(width, height == 0 ? 1 : height, depth == 0 ? 1 : depth);
    cudaArray_t array = array_of(width, height, depth, image.texels.data());
    const cudaTextureAddressMode modes[] = {cudaAddressModeClamp, cudaAddressModeBorder, cudaAddressModeWrap,
                                            cudaAddressModeMirror};
    image.border = 77;
    for (cudaTextureAddressMode mode : modes) {
        image.mode = mode;
        for (int i = 0; i < 4; i++) {
            image.linear = i & 1;
            image.normalised = i & 2;
            if (image.normalised || mode == cudaAddressModeClamp || mode == cudaAddressModeBorder) {
                expect<HOW>(what, image, array, steps);
            }
        }
    }
    CUDA_OK(cudaFreeArray(array));
}

static void layers() {
    const int width = 16, height = 8, count = 5;
    Image all = image_of(width, height, count);
    cudaArray_t flat = array_of(width, 0, height, all.texels.data(), cudaArrayLayered); // the rows become layers
    cudaArray_t array = array_of(width, height, count, all.texels.data(), cudaArrayLayered);
    Image one = all;
    one.linear = true;
    cudaTextureObject_t first = texture_of(flat, reading(one)), second = texture_of(array, reading(one));
    std::vector<float4> at;
    for (int layer = 0; layer < count; layer++) {
        for (int i = 0; i < 40; i++) {
            at.push_back(make_float4(i * 0.5f - 1.75f, i * 0.25f - 0.6875f, 0, (float) layer));
        }
    }
    std::vector<float> rows = fetched<ONE_LAYERED, float>(first, at);
    std::vector<float> slices = fetched<TWO_LAYERED, float>(second, at);
    for (size_t i = 0; i < at.size(); i++) {
        int layer = (int) at[i].w;
        one.height = 1;
        one.depth = 1;
        one.texels.assign(all.texels.begin() + layer * width, all.texels.begin() + (layer + 1) * width);
        check_near("layers of one dimension", (long long) i, one.at(at[i].x, 0, 0), rows[i], NEAR);
        one.height = height;
        one.texels.assign(all.texels.begin() + layer * width * height,
                          all.texels.begin() + (layer + 1) * width * height);
        check_near("layers of two dimensions", (long long) i, one.at(at[i].x, at[i].y, 0), slices[i], NEAR);
    }
    CUDA_OK(cudaDestroyTextureObject(first));
    CUDA_OK(cudaDestroyTextureObject(second));
    CUDA_OK(cudaFreeArray(flat));
    CUDA_OK(cudaFreeArray(array));
}

// Integers unchanged, and as fractions of their largest value.
static void elements() {
    const int count = 64;
    std::vector<uchar4> bytes(count);
    std::vector<short> shorts(count);
    std::vector<int2> ints(count);
    std::vector<float4> at;
    for (int i = 0; i < count; i++) {
        bytes[i] = make_uchar4((unsigned char) (i * 4), (unsigned char) (255 - i), (unsigned char) i, 255);
        shorts[i] = (short) (i * 1024 - 32768);
        ints[i] = make_int2(i * 33554432 - 2147483647, -i);
        at.push_back(make_float4(i + 0.5f, 0, 0, 0));
    }
    cudaArray_t byte_array = array_of(count, 0, 0, bytes.data()), short_array = array_of(count, 0, 0, shorts.data());
    cudaArray_t int_array = array_of(count, 0, 0, ints.data());
    cudaTextureDesc plain = {}, fraction = {};
    plain.addressMode[0] = fraction.addressMode[0] = cudaAddressModeClamp;
    fraction.readMode = cudaReadModeNormalizedFloat;
    cudaTextureObject_t objects[] = {texture_of(byte_array, plain), texture_of(short_array, plain),
                                     texture_of(int_array, plain), texture_of(byte_array, fraction),
                                     texture_of(short_array, fraction)};
    std::vector<uchar4> got_bytes = fetched<ONE, uchar4>(objects[0], at);
    std::vector<short> got_shorts = fetched<ONE, short>(objects[1], at);
    std::vector<int2> got_ints = fetched<ONE, int2>(objects[2], at);
    std::vector<float4> byte_fractions = fetched<ONE, float4>(objects[3], at);
    std::vector<float> short_fractions = fetched<ONE, float>(objects[4], at);
    for (int i = 0; i < count; i++) {
        check_equal("bytes", 0, memcmp(&bytes[i], &got_bytes[i], sizeof(uchar4)));
        check_element("shorts", i, shorts[i], got_shorts[i]);
        check_equal("integers", 0, memcmp(&ints[i], &got_ints[i], sizeof(int2)));
        check_near("fractions of bytes, x", i, bytes[i].x / 255.0, byte_fractions[i].x, 1e-6);
        check_near("fractions of bytes, y", i, bytes[i].y / 255.0, byte_fractions[i].y, 1e-6);
        check_near("fractions of bytes, w", i, 1, byte_fractions[i].w, 1e-6);
        double expected = shorts[i] / 32767.0;
        check_near("fractions of shorts", i, expected < -1 ? -1 : expected, short_fractions[i], 1e-6);
    }
    for (cudaTextureObject_t object : objects) {
        CUDA_OK(cudaDestroyTextureObject(object));
    }
    CUDA_OK(cudaFreeArray(byte_array));
    CUDA_OK(cudaFreeArray(short_array));
    CUDA_OK(cudaFreeArray(int_array));
}

// Memory by index; an index outside gives 0.
static void linear_memory() {
    const int count = 1000;
    std::vector<int4> values(count);
    for (int i = 0; i < count; i++) {
        values[i] = make_int4(i, -i, i * i, 7);
    }
    int4 *device = device_copy(values);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = device;
    resource.res.linear.desc = cudaCreateChannelDesc<int4>();
    resource.res.linear.sizeInBytes = (count - 10) * sizeof(int4);
    cudaTextureDesc texture = {};
    cudaTextureObject_t object = texture_of(resource, texture);
    std::vector<float4> at;
    for (int i = -3; i < count; i++) {
        at.push_back(make_float4((float) i, 0, 0, 0));
    }
    std::vector<int4> got = fetched<LINEAR, int4>(object, at);
    for (int i = -3; i < count; i++) {
        int4 expected = i >= 0 && i < count - 10 ? values[i] : make_int4(0, 0, 0, 0);
        check_equal("linear memory", 0, memcmp(&expected, &got[i + 3], sizeof expected));
    }
    // A launch's fetches see the writes of earlier kernels.
    CUDA_OK(cudaMemset(device, 0, count * sizeof(int4)));
    got = fetched<LINEAR, int4>(object, at);
    check_equal("after a memset", 0, got[500].x | got[500].y | got[500].z | got[500].w);
    CUDA_OK(cudaDestroyTextureObject(object));
    CUDA_OK(cudaFree(device));
}

static void pitched_memory() {
    Image image = image_of(40, 24, 1);
    image.linear = true;
    float *device;
    size_t pitch;
    CUDA_OK(cudaMallocPitch(&device, &pitch, image.width * sizeof(float), image.height));
    CUDA_OK(cudaMemcpy2D(device, pitch, image.texels.data(), image.width * sizeof(float), image.width * sizeof(float),
                         image.height, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = device;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = image.width;
    resource.res.pitch2D.height = image.height;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureObject_t object = texture_of(resource, reading(image));
    std::vector<float4> at = grid(image, 40);
    std::vector<float> got = fetched<TWO, float>(object, at);
    for (size_t i = 0; i < at.size(); i++) {
        check_near("pitched memory", (long long) i, image.at(at[i].x, at[i].y, 0), got[i], NEAR);
    }
    CUDA_OK(cudaDestroyTextureObject(object));
    CUDA_OK(cudaFree(device));
}

// Each level has one value, so that a read value identifies the level, or the mixture of two levels.
static void levels() {
    const cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t mipmap;
    CUDA_OK(cudaMallocMipmappedArray(&mipmap, &desc, make_cudaExtent(32, 16, 0), 5));
    for (unsigned int level = 0; level < 5; level++) {
        cudaArray_t array;
        std::vector<float> values(32 * 16, level * 64.0f);
        CUDA_OK(cudaGetMipmappedArrayLevel(&array, mipmap, level));
        CUDA_OK(cudaMemcpy2DToArray(array, 0, 0, values.data(), (32 >> level) * 4, (32 >> level) * 4, 16 >> level,
                                    cudaMemcpyHostToDevice));
    }
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    for (int linear = 0; linear < 2; linear++) {
        cudaTextureDesc texture = {};
        texture.normalizedCoords = 1;
        texture.addressMode[0] = texture.addressMode[1] = cudaAddressModeClamp;
        texture.filterMode = cudaFilterModeLinear;
        texture.mipmapFilterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
        texture.minMipmapLevelClamp = 0.75f; // and no level of detail is equally near to two levels
        texture.maxMipmapLevelClamp = 3.25f;
        cudaTextureObject_t object = texture_of(resource, texture);
        std::vector<float4> at;
        for (int i = 0; i < 40; i++) {
            at.push_back(make_float4(0.3f, 0.7f, 0, i * 0.125f + 0.0625f));
        }
        std::vector<float> got = fetched<TWO_LOD, float>(object, at);
        for (size_t i = 0; i < at.size(); i++) {
            float lod = at[i].w < 0.75f ? 0.75f : at[i].w > 3.25f ? 3.25f : at[i].w;
            float expected = linear ? lod * 64 : floorf(lod + 0.5f) * 64;
            check_near(linear ? "between levels" : "levels", (long long) i, expected, got[i], linear ? 0.51 : NEAR);
        }
        CUDA_OK(cudaDestroyTextureObject(object));
    }
    CUDA_OK(cudaFreeMipmappedArray(mipmap));
}

static void cubes_and_gathers() {
    std::vector<float> faces(8 * 8 * 6);
    for (size_t i = 0; i < faces.size(); i++) {
        faces[i] = (float) (i / 64 + 1);
    }
    cudaArray_t cube = array_of(8, 8, 6, faces.data(), cudaArrayCubemap);
    cudaTextureDesc texture = {};
    texture.normalizedCoords = 1;
    cudaTextureObject_t object = texture_of(cube, texture);
    const std::vector<float4> at = {make_float4(1, 0.1f, 0.2f, 0), make_float4(-1, 0.1f, 0.2f, 0),
                                    make_float4(0.1f, 1, 0.2f, 0), make_float4(0.1f, -1, 0.2f, 0),
                                    make_float4(0.1f, 0.2f, 1, 0), make_float4(0.1f, 0.2f, -1, 0)};
    std::vector<float> got = fetched<CUBE, float>(object, at);
    for (int i = 0; i < 6; i++) {
        check_near("faces of a cube", i, i + 1, got[i], 0);
    }
    CUDA_OK(cudaDestroyTextureObject(object));
    CUDA_OK(cudaFreeArray(cube));

    Image image = image_of(16, 8, 1);
    cudaArray_t array = array_of(16, 8, 0, image.texels.data(), cudaArrayTextureGather);
    object = texture_of(array, reading(image));
    std::vector<float4> corners;
    for (int i = 0; i < 7 * 15; i++) {
        corners.push_back(make_float4((float) (i % 15 + 1), (float) (i / 15 + 1), 0, 0));
    }
    std::vector<float4> four = fetched<GATHER, float4>(object, corners);
    for (size_t i = 0; i < corners.size(); i++) {
        int x = (int) corners[i].x, y = (int) corners[i].y;
        check_near("gathered, x", (long long) i, image.texel(x - 1, y, 0), four[i].x, 0);
        check_near("gathered, y", (long long) i, image.texel(x, y, 0), four[i].y, 0);
        check_near("gathered, z", (long long) i, image.texel(x, y - 1, 0), four[i].z, 0);
        check_near("gathered, w", (long long) i, image.texel(x - 1, y - 1, 0), four[i].w, 0);
    }
    CUDA_OK(cudaDestroyTextureObject(object));
    CUDA_OK(cudaFreeArray(array));
}

static void descriptions() {
    Image image = image_of(16, 8, 1);
    cudaArray_t array = array_of(16, 8, 0, image.texels.data());
    cudaTextureDesc texture = {}, got;
    texture.addressMode[0] = cudaAddressModeBorder;
    texture.addressMode[1] = cudaAddressModeClamp;
    texture.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t object = texture_of(array, texture);
    CUDA_OK(cudaGetTextureObjectTextureDesc(&got, object));
    check_true("what the texture was made as",
               got.addressMode[0] == cudaAddressModeBorder && got.addressMode[1] == cudaAddressModeClamp
                   && got.filterMode == cudaFilterModeLinear && got.readMode == cudaReadModeElementType
                   && got.normalizedCoords == 0);
    cudaResourceDesc resource;
    CUDA_OK(cudaGetTextureObjectResourceDesc(&resource, object));
    check_true("what it reads", resource.resType == cudaResourceTypeArray && resource.res.array.array == array);
    CUDA_OK(cudaDestroyTextureObject(object));
    CUDA_IS(cudaErrorInvalidValue, cudaGetTextureObjectTextureDesc(&got, object));
    cudaGetLastError(); // clears the error before the next launch

    cudaResourceViewDesc view = {}, seen;
    view.format = cudaResViewFormatUnsignedInt1; // the floats' bits
    view.width = 16;
    view.height = 8;
    texture = reading(image);
    CUDA_OK(cudaCreateTextureObject(&object, &resource, &texture, &view));
    CUDA_OK(cudaGetTextureObjectResourceViewDesc(&seen, object));
    check_true("the view", seen.format == view.format && seen.width == 16 && seen.height == 8);
    std::vector<unsigned int> bits = fetched<TWO, unsigned int>(object, {make_float4(3.5f, 2.5f, 0, 0)});
    check_equal("bits by a view", 0, memcmp(&bits[0], &image.texels[2 * 16 + 3], 4));
    CUDA_OK(cudaDestroyTextureObject(object));
    CUDA_OK(cudaFreeArray(array));
}

static void refused() {
    std::vector<int> values(128);
    cudaArray_t array = array_of(16, 8, 0, values.data());
    cudaResourceDesc resource = {};
    resource.res.array.array = array;
    cudaTextureDesc texture = {};
    cudaTextureObject_t object;
    texture.filterMode = cudaFilterModeLinear;
    CUDA_IS(cudaErrorInvalidFilterSetting, cudaCreateTextureObject(&object, &resource, &texture, nullptr));
    texture.filterMode = cudaFilterModePoint;
    texture.readMode = cudaReadModeNormalizedFloat;
    CUDA_IS(cudaErrorInvalidNormSetting, cudaCreateTextureObject(&object, &resource, &texture, nullptr));
    resource.resType = (cudaResourceType) 8;
    CUDA_IS(cudaErrorInvalidValue, cudaCreateTextureObject(&object, &resource, &texture, nullptr));
    CUDA_OK(cudaFreeArray(array));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    filters_and_modes<ONE>("one dimension", 64, 0, 0, 256);
    filters_and_modes<TWO>("two dimensions", 32, 16, 0, 48);
    filters_and_modes<THREE>("three dimensions", 16, 8, 4, 20);
    layers();
    elements();
    linear_memory();
    pitched_memory();
    levels();
    cubes_and_gathers();
    descriptions();
    refused();
    return check_pass("dimensions, layers, levels, filters, address modes, elements, memory and descriptions");
}
