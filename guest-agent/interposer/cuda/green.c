/*
 * Green contexts. A CUdevResource is a value that programs copy and never free. Here it names the way to the resource:
 * a device or green context, a split of its multiprocessors, and one group of that split. The worker repeats the split
 * when it creates a green context. Natively a resource outlives its green context; here it ends with it.
 */
#include "green.h"
#include "capture.h"

#include "context.h"
#include "device.h"
#include "event.h"

#include "hws_cuda_calls.h"

#include <stdlib.h>
#include <string.h>

#define MARK 0x72677768u /* tells a resource of this file from other bytes */
#define MAX_GROUPS 256u  /* green.yaml, hwsGreenContextCreate */
#define SPLIT_FLAGS                                                                                                    \
    (CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE)

/* Resources of one split differ in the index only. */
typedef struct hws_way {
    uint32_t mark;
    CUdevice device;
    uint64_t context; /* the green context whose multiprocessors these are, 0: the device's */
    uint64_t split;   /* number of the split, 0: not split */
    uint32_t flags, min_count, groups;
    uint32_t index; /* of the group; `groups` is the rest */
} hws_way_t;

_Static_assert(sizeof(hws_way_t) <= sizeof(((CUdevResource *) 0)->_internal_padding), "must fit");

typedef struct hws_green_desc {
    hws_way_t origin;
    uint32_t count; /* indices; 0: not split */
    uint32_t indices[];
} hws_green_desc_t;

typedef struct hws_green {
    CUcontext context;
    CUdevice device;
} hws_green_t;

static _Atomic uint64_t last_split;

static const hws_green_t *green_get(CUgreenCtx green) {
    return hws_handle_data(HWS_KIND_GREEN_CONTEXT, (uint64_t) (uintptr_t) green);
}

static void write_resource(const hws_way_t *way, const CUdevSmResource *sm, CUdevResource *resource_p) {
    *resource_p = (CUdevResource) {.type = CU_DEV_RESOURCE_TYPE_SM, .sm = *sm};
    memcpy(resource_p->_internal_padding, way, sizeof *way);
}

static CUresult read_resource(const CUdevResource *resource, hws_way_t *way_p) {
    if (resource->type != CU_DEV_RESOURCE_TYPE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    memcpy(way_p, resource->_internal_padding, sizeof *way_p);
    return way_p->mark == MARK && hws_device_get(way_p->device) != NULL ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

/* CUDA checks the type before a context, and before the error of a kernel. */
static CUresult check_type(CUdevResourceType type) {
    return type == CU_DEV_RESOURCE_TYPE_SM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

static CUresult get_resource(CUdevice device, CUcontext context, CUdevResource *resource_p) {
    HWS_REQUIRE(resource_p != NULL);
    const hws_way_t way = {.mark = MARK, .device = device, .context = (uint64_t) (uintptr_t) context};
    CUdevSmResource sm;
    HWS_TRY(hws_call_hwsSmResource(hws_device_get(device)->ordinal, way.context, &sm));
    write_resource(&way, &sm, resource_p);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type) {
    HWS_ENTER_LOCAL();
    if (hws_device_get(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    HWS_REQUIRE(resource != NULL);
    HWS_TRY(check_type(type));
    return get_resource(device, NULL, resource);
}

HWS_EXPORT CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(resource != NULL);
    HWS_TRY(check_type(type));
    const hws_context_t *kept = hws_context_get(hCtx);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    HWS_ENTER();
    return get_resource(kept->device, kept->green == NULL ? NULL : hCtx, resource);
}

HWS_EXPORT CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(resource != NULL);
    HWS_TRY(check_type(type));
    const hws_green_t *kept = green_get(hCtx);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    HWS_ENTER();
    return get_resource(kept->device, kept->context, resource);
}

HWS_EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                                const CUdevResource *input, CUdevResource *remaining,
                                                unsigned int useFlags, unsigned int minCount) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(nbGroups != NULL && input != NULL && (useFlags & ~SPLIT_FLAGS) == 0);
    HWS_REQUIRE(result == NULL || *nbGroups != 0);
    hws_way_t way;
    HWS_TRY(read_resource(input, &way));
    if (way.split != 0) {
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION; /* as CUDA: a green context must come first */
    }
    CUdevSmResource group, rest;
    uint32_t groups;
    HWS_TRY(hws_call_hwsSmSplit(hws_device_get(way.device)->ordinal, way.context, useFlags, minCount,
                                result == NULL ? 0 : *nbGroups, &groups, &group, &rest));
    way.split = atomic_fetch_add(&last_split, 1) + 1;
    way.flags = useFlags;
    way.min_count = minCount;
    way.groups = groups;
    for (way.index = 0; result != NULL && way.index < groups; way.index++) {
        write_resource(&way, &group, &result[way.index]);
    }
    if (remaining != NULL) {
        way.index = groups;
        write_resource(&way, &rest, remaining);
        remaining->type = rest.smCount == 0 ? CU_DEV_RESOURCE_TYPE_INVALID : CU_DEV_RESOURCE_TYPE_SM;
    }
    *nbGroups = groups;
    return CUDA_SUCCESS;
}

/* Reads the resources of a descriptor, which must be different parts of one split, or one resource without a split. */
static CUresult read_all(const CUdevResource *resources, uint32_t count, hws_green_desc_t *desc_p) {
    HWS_TRY(read_resource(&resources[0], &desc_p->origin));
    desc_p->count = desc_p->origin.split == 0 ? 0 : count;
    for (uint32_t i = 0; i < count; i++) {
        hws_way_t way;
        HWS_TRY(read_resource(&resources[i], &way));
        bool joins = way.split == desc_p->origin.split && way.device == desc_p->origin.device
            && way.context == desc_p->origin.context && (way.split != 0 || count == 1);
        for (uint32_t before = 0; before < i && joins; before++) {
            joins = desc_p->indices[before] != way.index;
        }
        if (!joins) {
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        }
        desc_p->indices[i] = way.index;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                              unsigned int nbResources) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(phDesc != NULL && resources != NULL && nbResources != 0);
    if (nbResources > MAX_GROUPS) {
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    hws_green_desc_t *desc = malloc(sizeof *desc + nbResources * sizeof *desc->indices);
    if (desc == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = read_all(resources, nbResources, desc);
    uint64_t handle = result == CUDA_SUCCESS ? hws_handle_new(HWS_KIND_RESOURCE_DESC) : 0;
    if (handle == 0) {
        free(desc);
        return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
    }
    hws_handle_attach(HWS_KIND_RESOURCE_DESC, handle, desc);
    *phDesc = (CUdevResourceDesc) (uintptr_t) handle;
    return CUDA_SUCCESS;
}

typedef struct hws_green_plan {
    CUcontext primary;
    const hws_green_desc_t *desc;
} hws_green_plan_t;

static CUresult make(CUcontext context, const void *data) {
    const hws_green_plan_t *plan = data;
    const hws_way_t *origin = &plan->desc->origin;
    return hws_call_hwsGreenContextCreate(context, plan->primary, origin->context, origin->flags, origin->min_count,
                                          origin->groups, plan->desc->count, plan->desc->indices);
}

/* Creates the context and its handle. The caller has retained the primary context. */
static CUresult create(const hws_green_plan_t *plan, CUdevice device, CUgreenCtx *green_p) {
    hws_green_t *kept = malloc(sizeof *kept);
    uint64_t handle = kept == NULL ? 0 : hws_handle_new(HWS_KIND_GREEN_CONTEXT);
    if (handle == 0) {
        free(kept);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *green_p = (CUgreenCtx) (uintptr_t) handle;
    kept->device = device;
    const hws_context_t context = {.device = device, .owner = plan->primary, .green = *green_p};
    CUresult result = hws_context_new(&context, make, plan, &kept->context);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_GREEN_CONTEXT, handle);
        free(kept);
        return result;
    }
    hws_handle_attach(HWS_KIND_GREEN_CONTEXT, handle, kept);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(phCtx != NULL);
    if (hws_device_get(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    HWS_REQUIRE(flags == CU_GREEN_CTX_DEFAULT_STREAM);
    HWS_ENTER();
    const hws_green_desc_t all = {.origin = {.mark = MARK, .device = dev}}; /* driver 580: without resources, all */
    hws_green_plan_t plan = {
        .desc = desc == NULL ? &all : hws_handle_data(HWS_KIND_RESOURCE_DESC, (uint64_t) (uintptr_t) desc)};
    HWS_REQUIRE(plan.desc != NULL && plan.desc->origin.device == dev);
    HWS_TRY(cuDevicePrimaryCtxRetain(&plan.primary, dev));
    CUgreenCtx green;
    CUresult result = create(&plan, dev, &green);
    if (result != CUDA_SUCCESS) {
        cuDevicePrimaryCtxRelease_v2(dev);
        return result;
    }
    *phCtx = green;
    return CUDA_SUCCESS;
}

/* Ends the context, not its hold of the primary context. */
static CUresult end(CUgreenCtx green) {
    CUcontext context = green_get(green)->context;
    hws_handle_drop(HWS_KIND_GREEN_CONTEXT, (uint64_t) (uintptr_t) green);
    return hws_context_end(context);
}

static void end_if_owned(uint64_t handle, void *data, void *primary) {
    const hws_context_t *kept = data == NULL ? NULL : hws_context_get(((const hws_green_t *) data)->context);
    if (kept != NULL && kept->owner == (CUcontext) primary) {
        end((CUgreenCtx) (uintptr_t) handle);
    }
}

void hws_green_end_all(CUcontext primary) {
    hws_handle_each(HWS_KIND_GREEN_CONTEXT, end_if_owned, primary);
}

HWS_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
    HWS_ENTER_LOCAL();
    const hws_green_t *kept = green_get(hCtx);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    CUdevice device = kept->device;
    CUresult result = end(hCtx), released = cuDevicePrimaryCtxRelease_v2(device);
    return result != CUDA_SUCCESS ? result : released;
}

HWS_EXPORT CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pContext != NULL);
    const hws_green_t *kept = green_get(hCtx);
    if (kept == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    HWS_ENTER();
    *pContext = kept->context;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(greenCtxId != NULL);
    const hws_green_t *green = green_get(greenCtx);
    const hws_context_t *kept = hws_context_get(green != NULL ? green->context : hws_context_current());
    if ((greenCtx != NULL && green == NULL) || kept == NULL || kept->green == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    HWS_ENTER();
    *greenCtxId = kept->unique;
    return CUDA_SUCCESS;
}

/* Makes a green context current, or leaves the calling function. cuCtxPopCurrent_v2() restores the previous one. */
#define PUSH(green)                                                                                                    \
    do {                                                                                                               \
        HWS_ENTER_LOCAL();                                                                                             \
        const hws_green_t *pushed = green_get(green);                                                                  \
        if (pushed == NULL) {                                                                                          \
            return CUDA_ERROR_INVALID_CONTEXT;                                                                         \
        }                                                                                                              \
        HWS_ENTER();                                                                                                   \
        HWS_TRY(cuCtxPushCurrent_v2(pushed->context));                                                                 \
    } while (0)

/* Checks a call that takes all work of the current context. */
static CUresult check_event(CUevent event) {
    HWS_CHECK_HANDLE(HWS_KIND_EVENT, event);
    HWS_REFUSE_CONTEXT(hws_context_current());
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
    PUSH(hCtx);
    CUresult result = check_event(hEvent);
    if (result == CUDA_SUCCESS) {
        hws_event_set_elsewhere(hEvent);
        result = hws_call_cuCtxRecordEvent(hws_context_current(), hEvent);
    }
    cuCtxPopCurrent_v2(NULL);
    return result;
}

HWS_EXPORT CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
    PUSH(hCtx);
    CUresult result = check_event(hEvent);
    result = result != CUDA_SUCCESS ? result : hws_call_cuCtxWaitEvent(hws_context_current(), hEvent);
    cuCtxPopCurrent_v2(NULL);
    return result;
}

HWS_EXPORT CUresult cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority) {
    HWS_REQUIRE(phStream != NULL && flags == CU_STREAM_NON_BLOCKING);
    PUSH(greenCtx);
    CUresult result = cuStreamCreateWithPriority(phStream, flags, priority);
    cuCtxPopCurrent_v2(NULL);
    return result;
}
