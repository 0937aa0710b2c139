/* Streams. The guest answers queries from the parameters of their creation. */
#include "stream.h"

#include "capture.h"
#include "context.h"
#include "copy.h"
#include "event.h"

#include "hws_cuda_calls.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct hws_stream {
    CUcontext context;
    unsigned flags;
    int priority;
    CUsynchronizationPolicy sync_policy;
    CUaccessPolicyWindow window;
    CUlaunchMemSyncDomain domain;
    CUlaunchMemSyncDomainMap domain_map;
    hws_progress_t progress;
} hws_stream_t;

static hws_stream_t *stream_get(CUstream stream) {
    return hws_handle_data(HWS_KIND_STREAM, (uint64_t) (uintptr_t) stream);
}

static _Atomic bool independent; /* a stream exists that the default stream does not wait for */

static bool is_default(CUstream stream) {
    return (uintptr_t) stream <= 2;
}

/* Known deviation: cuStreamGetPriority does not clamp a priority outside the device's range. */
HWS_EXPORT CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(phStream != NULL && (flags == CU_STREAM_DEFAULT || flags == CU_STREAM_NON_BLOCKING));
    hws_stream_t *kept = calloc(1, sizeof *kept);
    if (kept == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *kept = (hws_stream_t) {
        .context = hws_context_current(), .flags = flags, .priority = priority, .sync_policy = CU_SYNC_POLICY_AUTO};
    uint64_t handle = hws_handle_new(HWS_KIND_STREAM);
    CUstream stream = (CUstream) (uintptr_t) handle;
    CUresult result =
        handle == 0 ? CUDA_ERROR_OUT_OF_MEMORY : hws_call_cuStreamCreateWithPriority(stream, flags, priority);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_STREAM, handle);
        free(kept);
        return result;
    }
    hws_handle_attach(HWS_KIND_STREAM, handle, kept);
    if (flags == CU_STREAM_NON_BLOCKING) {
        atomic_store(&independent, true);
    }
    *phStream = stream;
    return CUDA_SUCCESS;
}

bool hws_stream_is_ordered(CUstream stream) {
    return (stream == NULL || stream == CU_STREAM_LEGACY) && !atomic_load_explicit(&independent, memory_order_relaxed);
}

bool hws_stream_is_blocking(CUstream stream) {
    const hws_stream_t *kept = stream_get(stream);
    return kept == NULL || kept->flags != CU_STREAM_NON_BLOCKING;
}

hws_progress_t *hws_stream_progress(CUstream stream) {
    hws_stream_t *kept = stream_get(stream);
    return kept == NULL ? NULL : &kept->progress;
}

CUcontext hws_stream_context(CUstream stream) {
    const hws_stream_t *kept = stream_get(stream);
    return kept == NULL ? NULL : kept->context;
}

HWS_EXPORT CUresult cuStreamDestroy_v2(CUstream hStream) {
    HWS_ENTER_LOCAL();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    if (is_default(hStream)) {
        return CUDA_ERROR_INVALID_HANDLE; /* a program cannot destroy it */
    }
    HWS_ENTER();
    if (HWS_CAPTURING()) {
        hws_capture_destroy_stream(hStream);
    }
    CUresult result = hws_call_cuStreamDestroy_v2(hStream);
    hws_handle_drop(HWS_KIND_STREAM, (uint64_t) (uintptr_t) hStream);
    return result;
}

HWS_EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    if (HWS_CAPTURING()) { /* CUDA checks the stream's capture before the flags */
        CUresult asked = hws_capture_ask(hStream);
        HWS_TRY(asked == HWS_CAPTURED ? CUDA_SUCCESS : asked);
    }
    HWS_REQUIRE(Flags <= CU_EVENT_WAIT_EXTERNAL);
    HWS_CHECK_HANDLE(HWS_KIND_EVENT, hEvent);
    bool external = Flags == CU_EVENT_WAIT_EXTERNAL;
    if (external || HWS_CAPTURING() || hws_event_is_captured(hEvent)) {
        CUresult captured = hws_capture_wait(hStream, hEvent, external, hws_event_is_recorded(hEvent));
        if (captured != CUDA_SUCCESS) {
            return captured == HWS_CAPTURED ? CUDA_SUCCESS : captured;
        }
    }
    return hws_event_settle(hEvent, hws_call_cuStreamWaitEvent(hStream, hEvent, CU_EVENT_WAIT_DEFAULT));
}

HWS_EXPORT CUresult cuStreamQuery(CUstream hStream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_WAITING(hStream);
    return hws_copy_wait_by(hws_call_cuStreamQuery, hStream);
}

HWS_EXPORT CUresult cuStreamSynchronize(CUstream hStream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_WAITING(hStream);
    return hws_copy_wait(hStream);
}

HWS_EXPORT CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(flags != NULL); /* CUDA checks this before the error of a kernel */
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    const hws_stream_t *kept = stream_get(hStream);
    *flags = kept != NULL ? kept->flags : CU_STREAM_DEFAULT;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuStreamGetPriority(CUstream hStream, int *priority) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(priority != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_QUERY(hStream);
    const hws_stream_t *kept = stream_get(hStream);
    *priority = kept != NULL ? kept->priority : 0;
    return CUDA_SUCCESS;
}

/* Unique in the process. Default streams of contexts have ids below 2^48, those of threads from there on. */
HWS_EXPORT CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(streamId != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_CAPTURED_QUERY(hStream);
    unsigned long long id = (unsigned long long) (uintptr_t) hStream;
    if (is_default(hStream)) {
        id = (unsigned long long) hws_tls.context << 32 | 1;
        if (hStream == CU_STREAM_PER_THREAD) {
            static _Atomic unsigned long long last;
            static _Thread_local unsigned long long own;
            own = own != 0 ? own : atomic_fetch_add(&last, 1) + 1;
            id = 1ull << 63 | own;
        }
    }
    *streamId = id;
    return CUDA_SUCCESS;
}

static CUcontext context_of(CUstream stream) {
    const hws_stream_t *kept = stream_get(stream);
    return kept != NULL ? kept->context : hws_context_current();
}

HWS_EXPORT CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx) {
    if (is_default(hStream)) { /* another stream has a context of its own */
        HWS_ENTER_CONTEXT();
    }
    HWS_ENTER();
    HWS_REQUIRE(pctx != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_QUERY(hStream);
    *pctx = context_of(hStream);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(pCtx != NULL || pGreenCtx != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_QUERY(hStream);
    CUcontext context = context_of(hStream);
    const hws_context_t *kept = hws_context_get(context);
    bool green = kept != NULL && kept->green != NULL;
    if (green && hStream == CU_STREAM_PER_THREAD) {
        return CUDA_ERROR_INVALID_HANDLE; /* as CUDA documents */
    }
    if (pGreenCtx != NULL) {
        *pGreenCtx = green ? kept->green : NULL;
    }
    if (pCtx != NULL) {
        *pCtx = green ? kept->owner : context;
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx) {
    CUcontext context;
    HWS_REQUIRE(phCtx != NULL);
    return cuStreamGetCtx_v2(hStream, &context, phCtx);
}

HWS_EXPORT CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(device != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_CAPTURED_QUERY(hStream);
    return cuCtxGetDevice_v2(device, context_of(hStream));
}

/* Attributes of a stream are hints; they are stored, so that a program can query its settings. */
HWS_EXPORT CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value_out) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(value_out != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_QUERY(hStream);
    static const hws_stream_t plain = {.sync_policy = CU_SYNC_POLICY_AUTO};
    const hws_stream_t *kept = stream_get(hStream);
    kept = kept != NULL ? kept : &plain;
    memset(value_out, 0, sizeof *value_out);
    switch (attr) {
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            value_out->accessPolicyWindow = kept->window;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
            value_out->syncPolicy = kept->sync_policy;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            value_out->priority = kept->priority;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
            value_out->memSyncDomain = kept->domain;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            value_out->memSyncDomainMap = kept->domain_map;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

HWS_EXPORT CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(value != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_QUERY(hStream);
    hws_stream_t *kept = stream_get(hStream), unkept = {0};
    kept = kept != NULL ? kept : &unkept; /* Known deviation: attributes of a default stream are not stored. */
    switch (attr) {
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            kept->window = value->accessPolicyWindow;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
            HWS_REQUIRE(value->syncPolicy != 0);
            kept->sync_policy = value->syncPolicy;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            kept->priority = value->priority;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
            kept->domain = value->memSyncDomain;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            kept->domain_map = value->memSyncDomainMap;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

HWS_EXPORT CUresult cuStreamCopyAttributes(CUstream dst, CUstream src) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, dst);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, src);
    HWS_REFUSE_QUERY(dst);
    HWS_REFUSE_QUERY(src);
    hws_stream_t *to = stream_get(dst);
    const hws_stream_t *from = stream_get(src);
    if (to != NULL && from != NULL) {
        to->sync_policy = from->sync_policy;
        to->window = from->window;
        to->domain = from->domain;
        to->domain_map = from->domain_map;
    }
    return CUDA_SUCCESS;
}
