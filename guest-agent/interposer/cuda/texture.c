/*
 * Texture and surface objects. An object is the GPU's own number, which kernels take as a parameter. The guest keeps
 * the parameters of its creation and answers queries from them.
 *
 * Known deviation: memory that a texture reads must lie in one allocation; CUDA checks only its alignment.
 */
#include "array.h"
#include "capture.h"
#include "context.h"
#include "copy.h"

#include "hws_cuda_calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256u

typedef struct hws_object {
    struct hws_object *next;
    uint64_t number; /* of its context: each context numbers its objects itself */
    uint32_t context;
    bool surface; /* both kinds are numbered separately: the same number may be one of each */
    bool has_view;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
} hws_object_t;

static hws_object_t *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The pointer to the current context's object, or the place for it. Lock held. */
static hws_object_t **find(uint64_t number, bool surface) {
    const uint32_t context = (uint32_t) (uintptr_t) hws_context_owner();
    hws_object_t **at = &buckets[(number ^ number >> 20) % BUCKETS];
    while (*at != NULL && ((*at)->number != number || (*at)->surface != surface || (*at)->context != context)) {
        at = &(*at)->next;
    }
    return at;
}

/* Enters an object. If its number is already there, the context has reused it. */
static void enter(hws_object_t *object) {
    object->context = (uint32_t) (uintptr_t) hws_context_owner();
    pthread_mutex_lock(&lock);
    hws_object_t **at = find(object->number, object->surface), *old = *at;
    object->next = old == NULL ? NULL : old->next;
    *at = object;
    pthread_mutex_unlock(&lock);
    free(old);
}

static bool leave(uint64_t number, bool surface) {
    pthread_mutex_lock(&lock);
    hws_object_t **at = find(number, surface), *object = *at;
    if (object != NULL) {
        *at = object->next;
    }
    pthread_mutex_unlock(&lock);
    free(object);
    return object != NULL;
}

/* Copies an object's data; the copy's `next` has no meaning. */
static bool look_up(uint64_t number, bool surface, hws_object_t *object_p) {
    pthread_mutex_lock(&lock);
    const hws_object_t *object = *find(number, surface);
    if (object != NULL) {
        *object_p = *object;
    }
    pthread_mutex_unlock(&lock);
    return object != NULL;
}

/* Bytes of an element; 0 when textures over memory do not have the format or number of channels. */
static uint64_t element_bytes(CUarray_format format, unsigned channels) {
    return channels == 1 || channels == 2 || channels == 4 ? (uint64_t) hws_array_channel_bytes(format) * channels : 0;
}

/* The wire form of a texture's resource. */
typedef struct hws_resource_parts {
    CUarray array;
    CUmipmappedArray mipmap;
    HwsResource memory;
} hws_resource_parts_t;

static CUresult take_linear(const CUDA_RESOURCE_DESC *resource, HwsResource *memory) {
    HWS_REQUIRE(element_bytes(resource->res.linear.format, resource->res.linear.numChannels) != 0);
    HWS_TRY(hws_copy_check_device(resource->res.linear.devPtr, resource->res.linear.sizeInBytes));
    memory->format = resource->res.linear.format;
    memory->numChannels = resource->res.linear.numChannels;
    memory->devPtr = resource->res.linear.devPtr;
    memory->width = resource->res.linear.sizeInBytes;
    return CUDA_SUCCESS;
}

static CUresult take_pitched(const CUDA_RESOURCE_DESC *resource, HwsResource *memory) {
    uint64_t element = element_bytes(resource->res.pitch2D.format, resource->res.pitch2D.numChannels), row, span;
    HWS_REQUIRE(element != 0 && resource->res.pitch2D.width != 0 && resource->res.pitch2D.height != 0);
    HWS_REQUIRE(!__builtin_mul_overflow(resource->res.pitch2D.width, element, &row)
                && row <= resource->res.pitch2D.pitchInBytes
                && !__builtin_mul_overflow(resource->res.pitch2D.height - 1, resource->res.pitch2D.pitchInBytes, &span)
                && !__builtin_add_overflow(span, row, &span));
    HWS_TRY(hws_copy_check_device(resource->res.pitch2D.devPtr, span));
    memory->format = resource->res.pitch2D.format;
    memory->numChannels = resource->res.pitch2D.numChannels;
    memory->devPtr = resource->res.pitch2D.devPtr;
    memory->width = resource->res.pitch2D.width;
    memory->height = resource->res.pitch2D.height;
    memory->pitchInBytes = resource->res.pitch2D.pitchInBytes;
    return CUDA_SUCCESS;
}

static CUresult take_resource(const CUDA_RESOURCE_DESC *resource, hws_resource_parts_t *parts_p) {
    memset(parts_p, 0, sizeof *parts_p);
    parts_p->memory.resType = resource->resType;
    HWS_REQUIRE(resource->flags == 0);
    switch (resource->resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            parts_p->array = resource->res.array.hArray;
            HWS_REQUIRE(parts_p->array != NULL);
            HWS_CHECK_HANDLE(HWS_KIND_ARRAY, parts_p->array);
            return CUDA_SUCCESS;
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            parts_p->mipmap = resource->res.mipmap.hMipmappedArray;
            HWS_REQUIRE(parts_p->mipmap != NULL);
            HWS_CHECK_HANDLE(HWS_KIND_MIPMAPPED_ARRAY, parts_p->mipmap);
            return CUDA_SUCCESS;
        case CU_RESOURCE_TYPE_LINEAR:
            return take_linear(resource, &parts_p->memory);
        case CU_RESOURCE_TYPE_PITCH2D:
            return take_pitched(resource, &parts_p->memory);
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

HWS_EXPORT CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                                      const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE(pTexObject != NULL && pResDesc != NULL && pTexDesc != NULL);
    hws_resource_parts_t parts;
    HWS_TRY(take_resource(pResDesc, &parts));
    hws_object_t *object = calloc(1, sizeof *object);
    if (object == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->resource = *pResDesc;
    object->texture = *pTexDesc;
    object->has_view = pResViewDesc != NULL;
    if (pResViewDesc != NULL) {
        object->view = *pResViewDesc;
    }
    CUresult result = hws_call_hwsTextureCreate(parts.array, parts.mipmap, &parts.memory, &object->texture,
                                                object->has_view, &object->view, &object->number);
    if (result != CUDA_SUCCESS) {
        free(object);
        return result;
    }
    *pTexObject = object->number;
    enter(object);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuTexObjectDestroy(CUtexObject texObject) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    /* CUDA accepts any number. */
    return leave(texObject, false) ? hws_call_cuTexObjectDestroy(texObject) : CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject) {
    HWS_ENTER_CONTEXT();
    hws_object_t kept;
    HWS_REQUIRE(pResDesc != NULL && look_up(texObject, false, &kept));
    *pResDesc = kept.resource;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject) {
    HWS_ENTER_CONTEXT();
    hws_object_t kept;
    HWS_REQUIRE(pTexDesc != NULL && look_up(texObject, false, &kept));
    *pTexDesc = kept.texture;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject) {
    HWS_ENTER_CONTEXT();
    hws_object_t kept;
    HWS_REQUIRE(pResViewDesc != NULL && look_up(texObject, false, &kept));
    if (kept.has_view) {
        *pResViewDesc = kept.view; /* otherwise CUDA leaves it unchanged without an error */
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE(pSurfObject != NULL && pResDesc != NULL && pResDesc->resType == CU_RESOURCE_TYPE_ARRAY
                && pResDesc->flags == 0);
    HWS_REQUIRE(pResDesc->res.array.hArray != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_ARRAY, pResDesc->res.array.hArray);
    hws_object_t *object = calloc(1, sizeof *object);
    if (object == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->resource = *pResDesc;
    object->surface = true;
    CUresult result = hws_call_hwsSurfaceCreate(pResDesc->res.array.hArray, &object->number);
    if (result != CUDA_SUCCESS) {
        free(object);
        return result;
    }
    *pSurfObject = object->number;
    enter(object);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuSurfObjectDestroy(CUsurfObject surfObject) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    return leave(surfObject, true) ? hws_call_cuSurfObjectDestroy(surfObject) : CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject) {
    HWS_ENTER_CONTEXT();
    hws_object_t kept;
    HWS_REQUIRE(pResDesc != NULL && look_up(surfObject, true, &kept));
    *pResDesc = kept.resource;
    return CUDA_SUCCESS;
}
