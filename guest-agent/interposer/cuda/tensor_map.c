/*
 * Descriptors of tensors. The driver beside the GPU makes their 128 bytes, which kernels receive unchanged. They depend
 * on nothing but the parameters, so the guest asks once for the same parameters: frameworks describe the same tensors
 * again at each step.
 */
#include "hws_driver.h"

#include "hws_cuda_calls.h"

#include <pthread.h>
#include <string.h>

#define MAX_RANK 5u

enum { TILED = 0, IM2COL = 1, IM2COL_WIDE = 2, REPLACE = 3 }; /* stream_memory_types.yaml, HwsTensorMap */

/* Fills in the fields of all kinds; the strides are between the outer dimensions. */
static CUresult fill(HwsTensorMap *params, const CUtensorMap *map, uint32_t kind, CUtensorMapDataType type,
                     cuuint32_t rank, const void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                     const cuuint32_t *element_strides) {
    HWS_REQUIRE(map != NULL && rank >= 1 && rank <= MAX_RANK);
    HWS_REQUIRE(dims != NULL && element_strides != NULL && (rank == 1 || strides != NULL));
    memset(params, 0, sizeof *params);
    params->kind = kind;
    params->dataType = type;
    params->rank = rank;
    params->address = (uint64_t) (uintptr_t) address;
    for (uint32_t i = 0; i < rank; i++) {
        params->dims[i] = dims[i];
        params->elementStrides[i] = element_strides[i];
        if (i + 1 < rank) {
            params->strides[i] = strides[i];
        }
    }
    return CUDA_SUCCESS;
}

static void choose(HwsTensorMap *params, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                   CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill_with) {
    params->interleave = interleave;
    params->swizzle = swizzle;
    params->l2Promotion = promotion;
    params->oobFill = fill_with;
}

/* A descriptor that the driver has made. */
typedef struct known_map {
    HwsTensorMap params;
    CUtensorMap map;
    bool is_known;
} known_map_t;

#define KNOWN_MAPS 1024 /* 400 KiB, of which only used pages take memory */

static known_map_t known_maps[KNOWN_MAPS]; /* each at a place that its parameters give; a younger one replaces it */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static known_map_t *place_of(const HwsTensorMap *params) {
    uint64_t words[sizeof *params / sizeof(uint64_t)], hash = 0;
    _Static_assert(sizeof words == sizeof *params, "the parameters are whole words");
    memcpy(words, params, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15; /* 2^64 divided by the golden ratio: spreads each bit upwards */
        hash ^= hash >> 32;
    }
    return &known_maps[hash % KNOWN_MAPS];
}

static bool is_known(const HwsTensorMap *params, CUtensorMap *map_p) {
    known_map_t *place = place_of(params);
    pthread_mutex_lock(&known_lock);
    bool found = place->is_known && memcmp(&place->params, params, sizeof *params) == 0;
    if (found) {
        *map_p = place->map;
    }
    pthread_mutex_unlock(&known_lock);
    return found;
}

static void know(const HwsTensorMap *params, const CUtensorMap *map) {
    known_map_t *place = place_of(params);
    pthread_mutex_lock(&known_lock);
    *place = (known_map_t) {*params, *map, true};
    pthread_mutex_unlock(&known_lock);
}

static CUresult encode(const HwsTensorMap *params, CUtensorMap *map_p) {
    static _Atomic bool logged;
    CUtensorMap made;
    if (is_known(params, map_p)) {
        return CUDA_SUCCESS;
    }
    CUresult result = hws_call_hwsTensorMapEncode(params, &made);
    if (result == CUDA_ERROR_NOT_SUPPORTED) {
        return hws_unsupported_use(&logged, "a tensor map on this device");
    }
    if (result == CUDA_SUCCESS) {
        know(params, &made);
        *map_p = made;
    }
    return result;
}

HWS_EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                           cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
                                           const cuuint64_t *globalStrides, const cuuint32_t *boxDim,
                                           const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
                                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                           CUtensorMapFloatOOBfill oobFill) {
    HWS_ENTER();
    HwsTensorMap params;
    HWS_TRY(fill(&params, tensorMap, TILED, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                 elementStrides));
    HWS_REQUIRE(boxDim != NULL);
    memcpy(params.box, boxDim, tensorRank * sizeof *boxDim);
    choose(&params, interleave, swizzle, l2Promotion, oobFill);
    return encode(&params, tensorMap);
}

HWS_EXPORT CUresult cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                            cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
                                            const cuuint64_t *globalStrides, const int *pixelBoxLowerCorner,
                                            const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
                                            cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
                                            CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                            CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
    HWS_ENTER();
    HwsTensorMap params;
    HWS_TRY(fill(&params, tensorMap, IM2COL, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                 elementStrides));
    HWS_REQUIRE(tensorRank >= 3 && pixelBoxLowerCorner != NULL && pixelBoxUpperCorner != NULL);
    memcpy(params.lower, pixelBoxLowerCorner, (tensorRank - 2) * sizeof *pixelBoxLowerCorner);
    memcpy(params.upper, pixelBoxUpperCorner, (tensorRank - 2) * sizeof *pixelBoxUpperCorner);
    params.channelsPerPixel = channelsPerPixel;
    params.pixelsPerColumn = pixelsPerColumn;
    choose(&params, interleave, swizzle, l2Promotion, oobFill);
    return encode(&params, tensorMap);
}

HWS_EXPORT CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                                cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
                                                const cuuint64_t *globalStrides, int pixelBoxLowerCornerWidth,
                                                int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
                                                cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
                                                CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
                                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                                CUtensorMapFloatOOBfill oobFill) {
    HWS_ENTER();
    HwsTensorMap params;
    HWS_TRY(fill(&params, tensorMap, IM2COL_WIDE, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                 elementStrides));
    HWS_REQUIRE(tensorRank >= 3);
    params.lower[0] = pixelBoxLowerCornerWidth;
    params.upper[0] = pixelBoxUpperCornerWidth;
    params.channelsPerPixel = channelsPerPixel;
    params.pixelsPerColumn = pixelsPerColumn;
    params.mode = mode;
    choose(&params, interleave, swizzle, l2Promotion, oobFill);
    return encode(&params, tensorMap);
}

HWS_EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress) {
    HWS_ENTER();
    HWS_REQUIRE(tensorMap != NULL);
    HwsTensorMap params;
    memset(&params, 0, sizeof params);
    params.kind = REPLACE;
    params.address = (uint64_t) (uintptr_t) globalAddress;
    memcpy(params.map, tensorMap->opaque, sizeof params.map);
    return encode(&params, tensorMap);
}
