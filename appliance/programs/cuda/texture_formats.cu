// Every texel format, with each number of channels, read mode, filter and address mode, in arrays, layers, cubes,
// levels, pitched memory and views. Integers and point filtering print checksums, which are equal on all devices. The
// host computes every value again; linear filtering may differ by 1/256 of the texels' range in each dimension.
#include "check_texture.h"

#include <algorithm>
#include <cuda_fp16.h>

enum { WIDTH = 16, HEIGHT = 8, LAYERS = 6, POINTS = 384 };

enum Instruction { PLAIN, LEVEL, GRADIENT, LAYERED, CUBEMAP, CUBES, GATHERED };

struct Texel4 {
    unsigned int word[4];
};

template <typename T> __device__ Texel4 words(T value) {
    static_assert(sizeof(T) == sizeof(Texel4), "four words");
    Texel4 texel;
    memcpy(&texel, &value, sizeof texel);
    return texel;
}

// T is int4, uint4 or float4: all return the same words, because the texture's format decides.
template <typename T>
__global__ void read(Instruction instruction, cudaTextureObject_t texture, const float4 *at, const float4 *more,
                     Texel4 *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    float4 p = at[i], q = more == nullptr ? make_float4(0, 0, 0, 0) : more[i];
    switch (instruction) {
        case PLAIN:
            out[i] = words(tex2D<T>(texture, p.x, p.y));
            break;
        case LEVEL:
            out[i] = words(tex2DLod<T>(texture, p.x, p.y, p.w));
            break;
        case GRADIENT:
            out[i] = words(tex2DGrad<T>(texture, p.x, p.y, make_float2(q.x, q.y), make_float2(q.z, q.w)));
            break;
        case LAYERED:
            out[i] = words(tex2DLayered<T>(texture, p.x, p.y, (int) p.w));
            break;
        case CUBEMAP:
            out[i] = words(texCubemap<T>(texture, p.x, p.y, p.z));
            break;
        case CUBES:
            out[i] = words(texCubemapLayered<T>(texture, p.x, p.y, p.z, (int) p.w));
            break;
        case GATHERED:
            out[i] = words(tex2Dgather<T>(texture, p.x, p.y, 1));
            break;
    }
}

struct Format {
    const char *name;
    cudaChannelFormatKind kind;
    int bits;
};

static const Format FORMATS[] = {
    {"u8", cudaChannelFormatKindUnsigned, 8},   {"s8", cudaChannelFormatKindSigned, 8},
    {"u16", cudaChannelFormatKindUnsigned, 16}, {"s16", cudaChannelFormatKindSigned, 16},
    {"u32", cudaChannelFormatKindUnsigned, 32}, {"s32", cudaChannelFormatKindSigned, 32},
    {"half", cudaChannelFormatKindFloat, 16},   {"float", cudaChannelFormatKindFloat, 32},
};
static const char *const MODES[] = {"wrap", "clamp", "mirror", "border"};

// Texels of one format, and what a fetch makes of them.
struct Texels {
    Format format;
    int channels, width, height, depth;
    std::vector<unsigned char> bytes;

    size_t size() const {
        return (size_t) channels * format.bits / 8;
    }

    bool real() const {
        return format.kind == cudaChannelFormatKindFloat;
    }

    unsigned int raw(int x, int y, int z, int channel) const {
        unsigned int bits = 0;
        memcpy(&bits, &bytes[(((size_t) z * height + y) * width + x) * size() + (size_t) channel * format.bits / 8],
               format.bits / 8);
        if (format.kind == cudaChannelFormatKindSigned && format.bits < 32) {
            unsigned int sign = 1u << (format.bits - 1);
            bits = (bits ^ sign) - sign;
        }
        return bits;
    }

    double value(int x, int y, int z, int channel) const {
        unsigned int bits = raw(x, y, z, channel);
        if (real()) {
            float single;
            memcpy(&single, &bits, sizeof single);
            return format.bits == 16 ? __half2float(__ushort_as_half((unsigned short) bits)) : single;
        }
        double largest = ldexp(1, format.bits - (format.kind == cudaChannelFormatKindSigned)) - 1;
        return format.kind == cudaChannelFormatKindSigned ? std::max((int) bits / largest, -1.0) : bits / largest;
    }

    cudaChannelFormatDesc desc() const {
        int y = channels > 1 ? format.bits : 0, w = channels > 2 ? format.bits : 0;
        return cudaCreateChannelDesc(format.bits, y, w, w, format.kind);
    }
};

static Texels texels_of(const Format &format, int channels, int width, int height, int depth) {
    Texels texels = {format, channels, width, height, depth, {}};
    size_t elements = (size_t) width * height * depth * channels;
    texels.bytes.resize(elements * format.bits / 8);
    uint32_t state = 12345;
    for (size_t i = 0; i < elements; i++) {
        uint32_t bits = check_random(&state);
        if (texels.real()) { // multiples of 1/4 up to 64, exact in each format
            float value = (int) (bits % 512 - 256) / 4.0f;
            unsigned short half = __half_as_ushort(__float2half(value));
            memcpy(&bits, format.bits == 16 ? (void *) &half : (void *) &value, format.bits / 8);
        }
        memcpy(&texels.bytes[i * format.bits / 8], &bits, format.bits / 8);
    }
    return texels;
}

static cudaArray_t array_with(const Texels &texels, unsigned int flags) {
    cudaArray_t array;
    cudaChannelFormatDesc desc = texels.desc();
    CUDA_OK(cudaMalloc3DArray(
        &array, &desc, make_cudaExtent(texels.width, texels.height, texels.depth == 1 ? 0 : texels.depth), flags));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr =
        make_cudaPitchedPtr((void *) texels.bytes.data(), texels.width * texels.size(), texels.width, texels.height);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(texels.width, texels.height, texels.depth);
    copy.kind = cudaMemcpyHostToDevice;
    CUDA_OK(cudaMemcpy3D(&copy));
    return array;
}

static std::vector<Texel4> fetched(Instruction instruction, const Texels &texels, bool fraction,
                                   cudaTextureObject_t texture, const std::vector<float4> &at,
                                   const std::vector<float4> *more = nullptr) {
    float4 *device_at = device_copy(at), *device_more = more == nullptr ? nullptr : device_copy(*more);
    Texel4 *out = device_array<Texel4>(at.size());
    unsigned int blocks = (unsigned int) (at.size() + 63) / 64;
    if (texels.real() || fraction) {
        read<float4><<<blocks, 64>>>(instruction, texture, device_at, device_more, out, (int) at.size());
    } else if (texels.format.kind == cudaChannelFormatKindSigned) {
        read<int4><<<blocks, 64>>>(instruction, texture, device_at, device_more, out, (int) at.size());
    } else {
        read<uint4><<<blocks, 64>>>(instruction, texture, device_at, device_more, out, (int) at.size());
    }
    LAUNCH_OK();
    std::vector<Texel4> result = host_copy(out, at.size());
    CUDA_OK(cudaFree(out));
    CUDA_OK(cudaFree(device_at));
    CUDA_OK(cudaFree(device_more));
    return result;
}

static float real(unsigned int word) {
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

// Index of a texel in one dimension; -1 for the border.
static int inside(cudaTextureAddressMode mode, int i, int length) {
    switch (mode) {
        case cudaAddressModeWrap:
            return ((i % length) + length) % length;
        case cudaAddressModeMirror:
            i = ((i % (2 * length)) + 2 * length) % (2 * length);
            return i < length ? i : 2 * length - 1 - i;
        case cudaAddressModeClamp:
            return std::min(std::max(i, 0), length - 1);
        default:
            return i < 0 || i >= length ? -1 : i;
    }
}

// Points in texels: not near the borders of texels, so that point filtering has one answer.
static std::vector<float4> points(bool linear) {
    std::vector<float4> at;
    uint32_t state = 777;
    for (int i = 0; i < POINTS; i++) {
        float x = (float) (check_random(&state) % (WIDTH * 3)) - WIDTH;
        float y = (float) (check_random(&state) % (HEIGHT * 3)) - HEIGHT;
        float fx = (float) (check_random(&state) % 13 + 2) / 16, fy = (float) (check_random(&state) % 13 + 2) / 16;
        if (linear) { // any fraction
            fx = (float) (check_random(&state) % 65536) / 65536;
            fy = (float) (check_random(&state) % 65536) / 65536;
        }
        at.push_back(make_float4(x + fx, y + fy, 0, 0));
    }
    return at;
}

static uint32_t sum_of(const std::vector<Texel4> &values, int channels) {
    uint32_t sum = 2166136261u;
    for (const Texel4 &value : values) {
        for (int c = 0; c < channels; c++) {
            sum = (sum ^ value.word[c]) * 16777619u;
        }
    }
    return sum;
}

// The deviations of linear filtering from exact weights, in units of the texels' range.
static double largest_deviation;
static int rounded_otherwise; // fractions that differ from the rounded quotient

static void compare(const char *what, const Texels &texels, const std::vector<float4> &at,
                    const std::vector<Texel4> &got, cudaTextureAddressMode mode, bool linear, bool fraction,
                    int slice = 0) {
    bool is_real = texels.real() || fraction;
    double range = texels.real() ? 128 : 2;
    for (size_t i = 0; i < at.size(); i++) {
        for (int c = 0; c < texels.channels; c++) {
            double x = at[i].x - (linear ? 0.5 : 0), y = at[i].y - (linear ? 0.5 : 0), sum = 0;
            unsigned int raw = 0;
            for (int k = 0; k < (linear ? 4 : 1); k++) {
                int ix = inside(mode, (int) floor(x) + (k & 1), texels.width);
                int iy = inside(mode, (int) floor(y) + (k >> 1), texels.height);
                double wx = x - floor(x), wy = y - floor(y);
                double weight = linear ? (k & 1 ? wx : 1 - wx) * (k & 2 ? wy : 1 - wy) : 1;
                bool border = ix < 0 || iy < 0;
                sum += border ? 0 : weight * (is_real ? texels.value(ix, iy, slice, c) : 0);
                raw = border ? 0 : texels.raw(ix, iy, slice, c);
            }
            if (!is_real) {
                check_element(what, (long long) i, raw, got[i].word[c]);
                continue;
            }
            double value = real(got[i].word[c]);
            check_near(what, (long long) i, sum, value, linear ? range / 128 : texels.real() ? 0 : 1e-6);
            if (linear) {
                largest_deviation = std::max(largest_deviation, fabs(value - sum) / range);
            } else if (!texels.real() && (float) sum != (float) value) {
                rounded_otherwise++;
            }
        }
    }
}

static cudaTextureDesc description(cudaTextureAddressMode mode, bool linear, bool normalized, bool fraction) {
    cudaTextureDesc texture = {};
    texture.addressMode[0] = texture.addressMode[1] = texture.addressMode[2] = mode;
    texture.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    texture.readMode = fraction ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    texture.normalizedCoords = normalized;
    return texture;
}

static cudaResourceDesc of_array(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

static void all_modes(const Texels &texels, const cudaResourceDesc &resource, const char *kind) {
    char what[96];
    uint32_t sum = 0;
    for (int way = 0; way < 32; way++) {
        cudaTextureAddressMode mode = (cudaTextureAddressMode) (way & 3);
        bool linear = way & 4, normalized = way & 8, fraction = way & 16;
        bool folds = mode == cudaAddressModeWrap || mode == cudaAddressModeMirror;
        if ((folds && !normalized) || (fraction && (texels.real() || texels.format.bits == 32))
            || (linear && !fraction && !texels.real())) {
            continue;
        }
        snprintf(what, sizeof what, "%s of %s x %d, %s, %s, %s coordinates%s", kind, texels.format.name,
                 texels.channels, MODES[mode], linear ? "linear" : "point", normalized ? "normalised" : "texel",
                 fraction ? ", fractions" : "");
        cudaTextureObject_t texture = texture_of(resource, description(mode, linear, normalized, fraction));
        std::vector<float4> at = points(linear), scaled = at;
        for (float4 &p : scaled) {
            p.x /= normalized ? WIDTH : 1;
            p.y /= normalized ? HEIGHT : 1;
        }
        std::vector<Texel4> got = fetched(PLAIN, texels, fraction, texture, scaled);
        compare(what, texels, at, got, mode, linear, fraction);
        if (!linear && !fraction) {
            sum = sum * 31 + sum_of(got, texels.channels);
        }
        CUDA_OK(cudaDestroyTextureObject(texture));
    }
    printf("%s of %s x %d: %08x\n", kind, texels.format.name, texels.channels, sum);
}

static void formats() {
    for (const Format &format : FORMATS) {
        for (int channels = 1; channels <= 4; channels *= 2) {
            Texels texels = texels_of(format, channels, WIDTH, HEIGHT, 1);
            cudaArray_t array = array_with(texels, 0);
            all_modes(texels, of_array(array), "array");
            CUDA_OK(cudaFreeArray(array));
            void *memory;
            size_t pitch, row = WIDTH * texels.size();
            CUDA_OK(cudaMallocPitch(&memory, &pitch, row, HEIGHT));
            CUDA_OK(cudaMemcpy2D(memory, pitch, texels.bytes.data(), row, row, HEIGHT, cudaMemcpyHostToDevice));
            cudaResourceDesc resource = {};
            resource.resType = cudaResourceTypePitch2D;
            resource.res.pitch2D.devPtr = memory;
            resource.res.pitch2D.desc = texels.desc();
            resource.res.pitch2D.width = WIDTH;
            resource.res.pitch2D.height = HEIGHT;
            resource.res.pitch2D.pitchInBytes = pitch;
            all_modes(texels, resource, "pitched memory");
            CUDA_OK(cudaFree(memory));
        }
    }
}

// Layers, and the faces of cubes, in four channels of bytes.
static void slices() {
    Texels texels = texels_of(FORMATS[0], 4, HEIGHT, HEIGHT, 2 * LAYERS);
    cudaArray_t layered = array_with(texels, cudaArrayLayered);
    cudaArray_t cubes = array_with(texels, cudaArrayLayered | cudaArrayCubemap);
    cudaTextureObject_t layers = texture_of(of_array(layered), description(cudaAddressModeClamp, false, false, false));
    cudaTextureObject_t faces = texture_of(of_array(cubes), description(cudaAddressModeClamp, false, true, false));
    std::vector<float4> at, directions;
    std::vector<Texel4> expected;
    for (int slice = 0; slice < 2 * LAYERS; slice++) {
        for (int i = 0; i < HEIGHT * HEIGHT; i++) {
            int x = i % HEIGHT, y = i / HEIGHT;
            float s = (x + 0.5f) / HEIGHT * 2 - 1, t = (y + 0.5f) / HEIGHT * 2 - 1, cube = (float) (slice / 6);
            const float4 by_face[] = {make_float4(1, -t, -s, cube), make_float4(-1, -t, s, cube),
                                      make_float4(s, 1, t, cube),   make_float4(s, -1, -t, cube),
                                      make_float4(s, -t, 1, cube),  make_float4(-s, -t, -1, cube)};
            at.push_back(make_float4(x + 0.5f, y + 0.5f, 0, (float) slice));
            directions.push_back(by_face[slice % 6]);
            expected.push_back({{texels.raw(x, y, slice, 0), texels.raw(x, y, slice, 1), texels.raw(x, y, slice, 2),
                                 texels.raw(x, y, slice, 3)}});
        }
    }
    std::vector<Texel4> by_layer = fetched(LAYERED, texels, false, layers, at);
    std::vector<Texel4> by_direction = fetched(CUBES, texels, false, faces, directions);
    for (size_t i = 0; i < at.size(); i++) {
        check_element("layers", (long long) i, 0, memcmp(&expected[i], &by_layer[i], sizeof(Texel4)));
        check_element("faces of cubes", (long long) i, 0, memcmp(&expected[i], &by_direction[i], sizeof(Texel4)));
    }
    printf("layers: %08x\n", sum_of(by_layer, 4));
    // A view of layers 3 to 5.
    cudaResourceViewDesc view = {};
    view.format = cudaResViewFormatUnsignedInt1;
    view.width = view.height = HEIGHT;
    view.depth = 2 * LAYERS;
    view.firstLayer = 3;
    view.lastLayer = 5;
    cudaResourceDesc resource = of_array(layered);
    cudaTextureDesc texture = description(cudaAddressModeClamp, false, false, false);
    cudaTextureObject_t part;
    CUDA_OK(cudaCreateTextureObject(&part, &resource, &texture, &view));
    std::vector<Texel4> viewed = fetched(LAYERED, texels, false, part, {make_float4(2.5f, 4.5f, 0, 1)});
    check_equal("a view's word of four bytes", 0,
                memcmp(&viewed[0].word[0], &texels.bytes[((4 * 8 + 4) * 8 + 2) * 4], 4));
    CUDA_OK(cudaDestroyTextureObject(part));
    CUDA_OK(cudaDestroyTextureObject(layers));
    CUDA_OK(cudaDestroyTextureObject(faces));
    CUDA_OK(cudaFreeArray(layered));
    CUDA_OK(cudaFreeArray(cubes));
}

static void gathers() {
    Texels texels = texels_of(FORMATS[3], 2, WIDTH, HEIGHT, 1);
    cudaArray_t array = array_with(texels, cudaArrayTextureGather);
    cudaTextureObject_t texture = texture_of(of_array(array), description(cudaAddressModeClamp, false, false, false));
    std::vector<float4> at;
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        at.push_back(make_float4((float) (i % WIDTH), (float) (i / WIDTH), 0, 0));
    }
    std::vector<Texel4> got = fetched(GATHERED, texels, false, texture, at);
    for (size_t i = 0; i < at.size(); i++) {
        const int dx[] = {-1, 0, 0, -1}, dy[] = {0, 0, -1, -1};
        for (int k = 0; k < 4; k++) {
            int x = std::max((int) at[i].x + dx[k], 0), y = std::max((int) at[i].y + dy[k], 0);
            check_element("gathered", (long long) i, texels.raw(x, y, 0, 1), got[i].word[k]);
        }
    }
    printf("gathered: %08x\n", sum_of(got, 4));
    CUDA_OK(cudaDestroyTextureObject(texture));
    CUDA_OK(cudaFreeArray(array));
}

// Each level has one value: gradients and levels of detail that are powers of 2 select one level.
static void levels() {
    const cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t mipmap;
    CUDA_OK(cudaMallocMipmappedArray(&mipmap, &desc, make_cudaExtent(32, 32, 0), 6));
    for (unsigned int level = 0; level < 6; level++) {
        cudaArray_t array;
        size_t side = 32 >> level;
        std::vector<float> values(32 * 32, level * 10.0f + 1);
        CUDA_OK(cudaGetMipmappedArrayLevel(&array, mipmap, level));
        CUDA_OK(cudaMemcpy2DToArray(array, 0, 0, values.data(), side * 4, side * 4, side, cudaMemcpyHostToDevice));
    }
    Texels texels = texels_of(FORMATS[7], 1, 1, 1, 1);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureDesc texture = description(cudaAddressModeClamp, true, true, false);
    texture.mipmapFilterMode = cudaFilterModeLinear;
    texture.maxMipmapLevelClamp = 4;
    texture.mipmapLevelBias = 1;
    cudaResourceViewDesc view = {};
    view.format = cudaResViewFormatFloat1;
    view.width = view.height = 32;
    view.firstMipmapLevel = 1;
    view.lastMipmapLevel = 4;
    cudaTextureObject_t whole = texture_of(resource, texture), part;
    CUDA_OK(cudaCreateTextureObject(&part, &resource, &texture, &view));
    std::vector<float4> at, gradients;
    for (int level = 0; level < 5; level++) {
        float step = ldexpf(1.0f / 32, level);
        at.push_back(make_float4(0.4f, 0.6f, 0, (float) level));
        gradients.push_back(make_float4(step, 0, 0, step));
    }
    std::vector<Texel4> by_level = fetched(LEVEL, texels, false, whole, at);
    std::vector<Texel4> by_gradient = fetched(GRADIENT, texels, false, whole, at, &gradients);
    std::vector<Texel4> of_part = fetched(LEVEL, texels, false, part, at);
    for (int level = 0; level < 5; level++) {
        int seen = std::min(level + 1, 4); // with the bias, up to the largest level
        check_near("levels", level, seen * 10 + 1, real(by_level[level].word[0]), 0.05);
        check_near("levels by gradients", level, seen * 10 + 1, real(by_gradient[level].word[0]), 0.05);
        check_near("levels of a view", level, std::min(seen + 1, 4) * 10 + 1, real(of_part[level].word[0]), 0.05);
    }
    CUDA_OK(cudaDestroyTextureObject(whole));
    CUDA_OK(cudaDestroyTextureObject(part));
    CUDA_OK(cudaFreeMipmappedArray(mipmap));
}

// Prints what CUDA leaves open; devices may differ.
static void facts() {
    Texels texels = texels_of(FORMATS[7], 1, 4, 4, 1);
    for (size_t i = 0; i < 16; i++) {
        float value = i == 5 ? 65536.0f : 0;
        memcpy(&texels.bytes[i * 4], &value, 4);
    }
    cudaArray_t array = array_with(texels, 0);
    cudaTextureObject_t linear = texture_of(of_array(array), description(cudaAddressModeClamp, true, false, false));
    cudaTextureObject_t point = texture_of(of_array(array), description(cudaAddressModeClamp, false, false, false));
    const int fractions[][2] = {{1, 0}, {2, 0}, {3, 5}, {100, 77}, {129, 1}, {255, 255}};
    std::vector<float4> at;
    for (auto &f : fractions) {
        at.push_back(make_float4(1.5f + f[0] / 256.0f, 1.5f + f[1] / 256.0f, 0, 0));
    }
    std::vector<Texel4> got = fetched(PLAIN, texels, false, linear, at);
    for (size_t i = 0; i < at.size(); i++) {
        check_here("weight of texel (1 - %d/256)(1 - %d/256) is %.4f/65536, exactly %d/65536", fractions[i][0],
                   fractions[i][1], real(got[i].word[0]), (256 - fractions[i][0]) * (256 - fractions[i][1]));
    }
    // Where the results change, in 1/65536 texel.
    at.clear();
    for (int k = 0; k < 1024; k++) {
        at.push_back(make_float4(1.5f + k / 65536.0f, 1.5f, 0, 0));
    }
    got = fetched(PLAIN, texels, false, linear, at);
    for (int k = 1, shown = 0; k < 1024 && shown < 4; k++) {
        if (got[k].word[0] != got[k - 1].word[0]) {
            check_here("linear weights change at %d/65536 texel, to %.4f", k, real(got[k].word[0]));
            shown++;
        }
    }
    at.clear();
    for (int k = 0; k < 1024; k++) {
        at.push_back(make_float4(1.0f - k / 65536.0f, 1.5f, 0, 0));
    }
    got = fetched(PLAIN, texels, false, point, at);
    for (int k = 0; k < 1024; k++) {
        if (real(got[k].word[0]) == 0) {
            check_here("point filtering reads the lower texel from %d/65536 below the border of a texel", k);
            break;
        }
    }
    got = fetched(PLAIN, texels, false, point, {make_float4(1.5f, 1.5f, 0, 0)});
    check_here("missing channels of a float: %g %g %g", real(got[0].word[1]), real(got[0].word[2]),
               real(got[0].word[3]));
    CUDA_OK(cudaDestroyTextureObject(linear));
    CUDA_OK(cudaDestroyTextureObject(point));
    CUDA_OK(cudaFreeArray(array));

    Texels bytes = texels_of(FORMATS[0], 1, 4, 4, 1);
    array = array_with(bytes, 0);
    for (int fraction = 0; fraction < 2; fraction++) {
        cudaTextureDesc texture = description(cudaAddressModeBorder, false, false, fraction);
        texture.borderColor[0] = 2.5f;
        cudaTextureObject_t object = texture_of(of_array(array), texture);
        got = fetched(PLAIN, bytes, fraction, object, {make_float4(-3, 0, 0, 0), make_float4(1.5f, 1.5f, 0, 0)});
        check_here("border 2.5 of bytes%s: %08x; missing channels: %08x %08x %08x", fraction ? " as fractions" : "",
                   got[0].word[0], got[1].word[1], got[1].word[2], got[1].word[3]);
        CUDA_OK(cudaDestroyTextureObject(object));
    }
    CUDA_OK(cudaFreeArray(array));

    // Normalised coordinates k / 100 lie on the borders of texels, but for rounding.
    Texels hundred = texels_of(FORMATS[7], 1, 100, 1, 1);
    for (int i = 0; i < 100; i++) {
        float value = (float) i;
        memcpy(&hundred.bytes[i * 4], &value, 4);
    }
    array = array_with(hundred, 0);
    point = texture_of(of_array(array), description(cudaAddressModeClamp, false, true, false));
    at.clear();
    for (int i = 0; i < 100; i++) {
        at.push_back(make_float4(i / 100.0f, 0.5f, 0, 0));
    }
    got = fetched(PLAIN, hundred, false, point, at);
    int lower = 0, exactly = 0, rounded = 0;
    for (int i = 0; i < 100; i++) {
        int texel = (int) real(got[i].word[0]);
        lower += texel < i;
        exactly += texel != (int) floor((double) at[i].x * 100);
        rounded += texel != (int) floorf(at[i].x * 100);
    }
    check_here("of k/100, %d read a lower texel; %d differ from exact products, %d from float products", lower, exactly,
               rounded);
    CUDA_OK(cudaDestroyTextureObject(point));
    CUDA_OK(cudaFreeArray(array));

    std::vector<float> faces(4 * 4 * 6);
    for (size_t i = 0; i < faces.size(); i++) {
        faces[i] = (float) (i / 16);
    }
    array = array_of(4, 4, 6, faces.data(), cudaArrayCubemap);
    point = texture_of(of_array(array), description(cudaAddressModeClamp, false, true, false));
    got = fetched(CUBEMAP, texels, false, point,
                  {make_float4(1, 1, 1, 0), make_float4(1, 1, 0, 0), make_float4(0, 1, 1, 0), make_float4(1, 0, 1, 0)});
    check_here("faces of (1,1,1) (1,1,0) (0,1,1) (1,0,1): %g %g %g %g", real(got[0].word[0]), real(got[1].word[0]),
               real(got[2].word[0]), real(got[3].word[0]));
    CUDA_OK(cudaDestroyTextureObject(point));
    CUDA_OK(cudaFreeArray(array));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    formats();
    slices();
    gathers();
    levels();
    facts();
    check_here("linear filtering deviates by up to 1/%.0f of the range; %d fractions are not the rounded quotient",
               1 / largest_deviation, rounded_otherwise);
    return check_pass("formats, channels, filters, address modes, layers, cubes, levels and views");
}
