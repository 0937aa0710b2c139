/* Contexts and each thread's stack of them. */
#include "context.h"

#include "capture.h"
#include "device.h"
#include "device_memory.h"
#include "managed.h"
#include "mirror.h"
#include "module_table.h"
#include "occupancy.h"
#include "pool.h"

#include "hws_cuda_calls.h"
#include "hws_interval.h"
#include "hws_quiet.h"

#include <pthread.h>
#include <stdlib.h>

#define FIRST_STACK 8
#define API_VERSION 3020  /* answer of current drivers for every context: CUDA 3.2's interface */
#define KNOWN_FLAGS 0xffu /* CUDA 13.0 cuda.h, CU_CTX_FLAGS_MASK */

typedef struct hws_stack {
    CUcontext *items;
    size_t count, capacity;
} hws_stack_t;

static _Thread_local hws_stack_t stack;
static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;
static _Atomic unsigned long long last_unique;
static _Atomic unsigned live_contexts;

static void make_stack_key(void) {
    /* Only frees the stack of a thread that ends. */
    pthread_key_create(&stack_key, free);
}

CUcontext hws_context_current(void) {
    return stack.count == 0 ? NULL : stack.items[stack.count - 1];
}

static void publish_current(void) {
    /* Only the id: the header's field has 32 bits and always names a context. */
    hws_tls.context = (uint32_t) (uintptr_t) hws_context_current();
}

static CUresult push(CUcontext context) {
    if (stack.count == stack.capacity) {
        pthread_once(&stack_once, make_stack_key);
        size_t wanted = stack.capacity == 0 ? FIRST_STACK : 2 * stack.capacity;
        CUcontext *larger = realloc(stack.items, wanted * sizeof *larger);
        if (larger == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        stack.items = larger;
        stack.capacity = wanted;
        pthread_setspecific(stack_key, larger);
    }
    stack.items[stack.count++] = context;
    publish_current();
    return CUDA_SUCCESS;
}

CUresult hws_context_set_current(CUcontext context) {
    if (context == NULL) {
        stack.count -= stack.count > 0 ? 1 : 0;
        publish_current();
        return CUDA_SUCCESS;
    }
    HWS_CHECK_HANDLE(HWS_KIND_CONTEXT, context);
    if (stack.count == 0) {
        return push(context);
    }
    stack.items[stack.count - 1] = context;
    publish_current();
    return CUDA_SUCCESS;
}

bool hws_context_flags_valid(unsigned flags) {
    unsigned schedule = flags & CU_CTX_SCHED_MASK;
    return (flags & ~KNOWN_FLAGS) == 0
        && (schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN || schedule == CU_CTX_SCHED_YIELD
            || schedule == CU_CTX_SCHED_BLOCKING_SYNC);
}

CUcontext hws_context_owner(void) {
    CUcontext current = hws_context_current();
    const hws_context_t *kept = hws_context_get(current);
    return kept != NULL && kept->owner != NULL ? kept->owner : current;
}

CUresult hws_context_new(const hws_context_t *values, hws_context_maker_t *make, const void *data,
                         CUcontext *context_p) {
    hws_context_t *kept = malloc(sizeof *kept);
    if (kept == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *kept = *values;
    kept->unique = atomic_fetch_add(&last_unique, 1) + 1;
    uint64_t handle = hws_handle_new(HWS_KIND_CONTEXT);
    CUcontext context = (CUcontext) (uintptr_t) handle;
    CUresult result = handle == 0 ? CUDA_ERROR_OUT_OF_MEMORY : make(context, data);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_CONTEXT, handle);
        free(kept);
        return result;
    }
    hws_handle_attach(HWS_KIND_CONTEXT, handle, kept);
    atomic_fetch_add(&live_contexts, 1);
    *context_p = context;
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext context, const void *data) {
    const hws_context_t *values = data;
    return hws_call_hwsContextCreate(context, hws_device_get(values->device)->ordinal, values->flags, values->primary);
}

CUresult hws_context_make(CUdevice device, unsigned flags, bool primary, CUcontext *context_p) {
    const hws_context_t values = {.device = device, .flags = flags, .primary = primary};
    return hws_context_new(&values, create, &values, context_p);
}

HWS_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    return hws_call_cuCtxSetLimit(limit, value);
}

HWS_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_CONTEXT, peerContext);
    HWS_UNSAFE();
    return hws_call_cuCtxDisablePeerAccess(peerContext);
}

CUresult hws_context_end(CUcontext context) {
    const uint64_t handle = (uint64_t) (uintptr_t) context;
    hws_managed_variables_leave(handle);
    hws_interval_remove_all(0, handle);
    CUresult result = hws_call_hwsContextDestroy(context); /* waits for the work that may use blocks of the arena */
    hws_range_t block;
    while (hws_interval_take_block(handle, &block)) {
        hws_pool_charge(block.owner, -(int64_t) block.bytes);
        hws_managed_free_block(&block);
    }
    hws_context_t *kept = hws_context_get(context);
    if (kept != NULL) {
        hws_device_memory_release(kept->device);
    }
    hws_handle_drop(HWS_KIND_CONTEXT, handle);
    atomic_fetch_sub(&live_contexts, 1);
    return result;
}

bool hws_context_has_several(void) {
    return atomic_load(&live_contexts) > 1;
}

CUresult hws_context_wait_for_all(void) {
    return hws_context_has_several() ? hws_call_hwsContextsWait() : CUDA_SUCCESS;
}

/* Waits for the current context. */
static CUresult synchronize(void) {
    const hws_mirror_wait_t wait = hws_mirror_begin_wait(NULL);
    CUresult result = hws_call_cuCtxSynchronize();
    if (result != CUDA_SUCCESS) {
        hws_mirror_fail_wait(&wait);
        return result;
    }
    hws_quiet_note();
    hws_progress_note_context();
    hws_mirror_end_wait(&wait, !hws_context_has_several());
    return CUDA_SUCCESS;
}

CUresult hws_context_wait(CUcontext context) {
    if (context == hws_context_current()) {
        if (hws_quiet_is()) {
            return CUDA_SUCCESS;
        }
        return synchronize();
    }
    HWS_CHECK_HANDLE(HWS_KIND_CONTEXT, context);
    uint32_t before = hws_tls.context;
    hws_tls.context = (uint32_t) (uintptr_t) context;
    CUresult result = hws_call_cuCtxSynchronize();
    hws_tls.context = before;
    if (result == CUDA_SUCCESS) {
        hws_mirror_waited(0, false);
    }
    return result;
}

CUresult hws_context_device(CUdevice *device_p) {
    hws_context_t *kept = hws_context_get(hws_context_current());
    if (kept == NULL) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *device_p = kept->device;
    return CUDA_SUCCESS;
}

/* CUDA's checks before the error of a kernel. */
static CUresult check_new(const CUcontext *context_p, CUdevice device) {
    HWS_ENTER_LOCAL();
    if (hws_device_get(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    HWS_REQUIRE(context_p != NULL);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
    HWS_TRY(check_new(pctx, dev));
    HWS_REQUIRE(hws_context_flags_valid(flags));
    HWS_ENTER();
    CUcontext context;
    HWS_TRY(hws_context_make(dev, flags, false, &context));
    CUresult result = push(context);
    if (result != CUDA_SUCCESS) {
        hws_context_end(context);
        return result;
    }
    *pctx = context;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                                   CUdevice dev) {
    HWS_TRY(check_new(pctx, dev));
    if (paramsArray != NULL || numParams != 0) {
        HWS_REQUIRE(paramsArray != NULL && numParams > 0);
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY; /* as on an H200 without MPS */
    }
    return cuCtxCreate_v2(pctx, flags, dev);
}

HWS_EXPORT CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                                   CUdevice dev) {
    static _Atomic bool logged;
    HWS_TRY(check_new(pctx, dev));
    if (ctxCreateParams != NULL && ctxCreateParams->cigParams != NULL) {
        return hws_unsupported_use(&logged, "a context for CUDA in Graphics");
    }
    return ctxCreateParams != NULL && ctxCreateParams->numExecAffinityParams > 0
        ? cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams, ctxCreateParams->numExecAffinityParams, flags, dev)
        : cuCtxCreate_v2(pctx, flags, dev);
}

HWS_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(ctx != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_CONTEXT, ctx);
    hws_context_t *kept = hws_context_get(ctx);
    if (kept == NULL || kept->primary || kept->green != NULL) {
        return CUDA_ERROR_INVALID_CONTEXT; /* a primary context is released, a green one has its own function */
    }
    if (hws_context_current() == ctx) {
        hws_context_set_current(NULL);
    }
    return hws_context_end(ctx);
}

HWS_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(ctx != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_CONTEXT, ctx);
    return push(ctx);
}

HWS_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx) {
    HWS_ENTER_LOCAL();
    if (stack.count == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    CUcontext top = hws_context_current();
    hws_context_set_current(NULL);
    if (pctx != NULL) {
        *pctx = top;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxSetCurrent(CUcontext ctx) {
    HWS_ENTER_LOCAL();
    return hws_context_set_current(ctx);
}

HWS_EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(pctx != NULL);
    *pctx = hws_context_current();
    return CUDA_SUCCESS;
}

/* Sets `kept` to the data of the context (NULL: the current one), or leaves the calling function when there is none. */
#define ENTER_KEPT(ctx, kept)                                                                                          \
    HWS_ENTER_LOCAL();                                                                                                 \
    hws_context_t *kept = hws_context_get((ctx) != NULL ? (ctx) : hws_context_current());                              \
    if (kept == NULL) {                                                                                                \
        return CUDA_ERROR_INVALID_CONTEXT;                                                                             \
    }

HWS_EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    ENTER_KEPT((CUcontext) NULL, kept);
    HWS_REQUIRE(device != NULL);
    *device = kept->device;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx) {
    ENTER_KEPT(ctx, kept);
    HWS_REQUIRE(device != NULL);
    *device = kept->device;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxGetFlags(unsigned int *flags) {
    ENTER_KEPT((CUcontext) NULL, kept);
    HWS_REQUIRE(flags != NULL);
    *flags = kept->flags;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxSetFlags(unsigned int flags) {
    ENTER_KEPT((CUcontext) NULL, kept);
    HWS_REQUIRE(hws_context_flags_valid(flags));
    kept->flags = flags; /* the channel decides how a thread waits, so the worker does not need the flags */
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId) {
    ENTER_KEPT(ctx, kept);
    HWS_REQUIRE(ctxId != NULL);
    HWS_ENTER();
    *ctxId = kept->unique;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) {
    ENTER_KEPT(ctx, kept);
    (void) kept;
    HWS_REQUIRE(version != NULL);
    *version = API_VERSION;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags) {
    ENTER_KEPT((CUcontext) NULL, kept);
    (void) kept;
    HWS_REQUIRE(pctx != NULL && flags == 0);
    *pctx = hws_context_current();
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxDetach(CUcontext ctx) {
    ENTER_KEPT(ctx, kept);
    (void) kept;
    return CUDA_SUCCESS; /* deprecated: the count has no effect; cuCtxDestroy ends a context */
}

HWS_EXPORT CUresult cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(pExecAffinity != NULL);
    CUdevice device;
    HWS_TRY(hws_context_device(&device));
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) {
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    }
    pExecAffinity->type = type;
    pExecAffinity->param.smCount.val =
        (unsigned) hws_device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuCtxSynchronize(void) {
    HWS_ENTER_CONTEXT();
    if (HWS_CAPTURING()) {
        HWS_TRY(hws_capture_ask_context(hws_tls.context));
    }
    if (hws_quiet_take()) {
        return CUDA_SUCCESS;
    }
    return synchronize();
}

HWS_EXPORT CUresult cuCtxSynchronize_v2(CUcontext ctx) {
    HWS_ENTER();
    if (ctx == NULL || ctx == hws_context_current()) {
        return cuCtxSynchronize();
    }
    return hws_context_wait(ctx);
}

HWS_EXPORT CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE((int) config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE
                && config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    return hws_call_cuCtxSetSharedMemConfig(config);
}

HWS_EXPORT CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    HWS_ENTER_CONTEXT();
    HWS_UNSAFE();
    HWS_REQUIRE((int) config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    HWS_TRY(hws_call_cuCtxSetCacheConfig(config));
    hws_occupancy_forget();
    return CUDA_SUCCESS;
}
