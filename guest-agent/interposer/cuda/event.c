/*
 * Events. The guest returns the errors that CUDA returns at once, and those for events that a capture has recorded.
 *
 * A program that keeps several records in flight asks for many of them when they are done already. If other calls have
 * followed a record before the program asks, the worker announces the next record of that event. The guest then answers
 * the next question by itself. A program that asks at once waits for the work in any case, and an announcement would
 * only add to it.
 */
#include "event.h"

#include "capture.h"
#include "context.h"
#include "device.h"
#include "mirror.h"

#include "hws_cuda_calls.h"

#include <pthread.h>
#include <stdlib.h>

#define KNOWN_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

typedef struct hws_event {
    _Atomic bool recorded, captured;
    _Atomic bool is_elsewhere; /* other calls than cuEventRecord may record it */
    bool is_shared;
    CUcontext context;
    hws_mark_t mark;           /* of the last record by this process */
    _Atomic bool is_announced; /* the worker shall announce the next record */
    _Atomic uint64_t reached;  /* sequence of the newest announced record; 0 for none */
} hws_event_t;

/* Keeps an event's state while the reader of the channel, which is any thread, writes to it. */
static pthread_mutex_t announcing = PTHREAD_MUTEX_INITIALIZER;

static hws_event_t *event_get(CUevent event) {
    return hws_handle_data(HWS_KIND_EVENT, (uint64_t) (uintptr_t) event);
}

static void mark_recorded(CUevent event) {
    hws_event_t *kept = event_get(event);
    if (kept != NULL && !atomic_load_explicit(&kept->recorded, memory_order_relaxed)) {
        atomic_store_explicit(&kept->recorded, true, memory_order_relaxed);
    }
}

bool hws_event_is_captured(CUevent event) {
    hws_event_t *kept = event_get(event);
    return kept != NULL && atomic_load_explicit(&kept->captured, memory_order_relaxed);
}

void hws_event_set_captured(CUevent event, bool captured) {
    hws_event_t *kept = event_get(event);
    if (kept != NULL) {
        atomic_store_explicit(&kept->captured, captured, memory_order_relaxed);
    }
}

bool hws_event_is_recorded(CUevent event) {
    hws_event_t *kept = event_get(event);
    return kept == NULL || atomic_load_explicit(&kept->recorded, memory_order_relaxed);
}

CUresult hws_event_new(CUevent *event_p, hws_event_maker_t *make, const void *data, bool is_shared) {
    hws_event_t *kept = calloc(1, sizeof *kept);
    uint64_t handle = kept == NULL ? 0 : hws_handle_new(HWS_KIND_EVENT);
    if (handle == 0) {
        free(kept);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    kept->is_shared = is_shared;
    kept->context = hws_context_owner();
    atomic_init(&kept->recorded, is_shared);
    CUevent event = (CUevent) (uintptr_t) handle;
    CUresult result = make(event, data);
    if (result != CUDA_SUCCESS) {
        hws_handle_drop(HWS_KIND_EVENT, handle);
        free(kept);
        return result;
    }
    hws_handle_attach(HWS_KIND_EVENT, handle, kept);
    *event_p = event;
    return CUDA_SUCCESS;
}

static CUresult create(CUevent event, const void *flags) {
    return hws_call_cuEventCreate(event, *(const unsigned int *) flags);
}

HWS_EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(phEvent != NULL && (Flags & ~KNOWN_FLAGS) == 0);
    /* CUDA: an event for other processes must not measure time. */
    HWS_REQUIRE((Flags & CU_EVENT_INTERPROCESS) == 0 || (Flags & CU_EVENT_DISABLE_TIMING) != 0);
    if ((Flags & CU_EVENT_INTERPROCESS) != 0) { /* refused here: the worker's refusal would arrive with a later call */
        static _Atomic bool logged;
        CUdevice device;
        HWS_TRY(hws_context_device(&device));
        if (hws_device_attribute(device, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED) == 0) {
            return hws_unsupported_use(&logged, "an event for other processes (CU_EVENT_INTERPROCESS) on this GPU");
        }
    }
    return hws_event_new(phEvent, create, &Flags, (Flags & CU_EVENT_INTERPROCESS) != 0);
}

CUresult hws_event_settle(CUevent event, CUresult result) {
    hws_event_t *kept = event_get(event);
    if (result != CUDA_SUCCESS || kept == NULL || !kept->is_shared) {
        return result;
    }
    CUresult asked = hws_call_cuEventQuery(event);
    return asked == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : asked;
}

HWS_EXPORT CUresult cuEventDestroy_v2(CUevent hEvent) {
    HWS_ENTER_OBJECT(HWS_KIND_EVENT, hEvent);
    hws_capture_forget_event(hEvent);
    CUresult result = hws_call_cuEventDestroy_v2(hEvent);
    pthread_mutex_lock(&announcing);
    hws_handle_drop(HWS_KIND_EVENT, (uint64_t) (uintptr_t) hEvent);
    pthread_mutex_unlock(&announcing);
    return result;
}

void hws_event_reached(uint64_t event_id, uint64_t sequence) {
    pthread_mutex_lock(&announcing);
    hws_event_t *kept = hws_handle_data(HWS_KIND_EVENT, event_id); /* NULL: the program has destroyed the event */
    if (kept != NULL) {
        atomic_store_explicit(&kept->reached, sequence, memory_order_release); /* pairs with the load in is_reached() */
    }
    pthread_mutex_unlock(&announcing);
}

void hws_event_set_elsewhere(CUevent event) {
    hws_event_t *kept = event_get(event);
    if (kept != NULL) {
        atomic_store(&kept->is_elsewhere, true);
    }
}

/* Whether the event's last record is known to be reached. */
static bool is_reached(const hws_event_t *kept) {
    if (atomic_load_explicit(&kept->is_elsewhere, memory_order_relaxed)) {
        return false;
    }
    uint64_t sequence = atomic_load_explicit(&kept->mark.sequence, memory_order_relaxed);
    return sequence != 0 && atomic_load_explicit(&kept->reached, memory_order_acquire) == sequence;
}

static CUresult record(CUevent event, hws_event_t *kept, CUstream stream) {
    if (kept != NULL && atomic_load_explicit(&kept->is_announced, memory_order_relaxed)) {
        atomic_store_explicit(&kept->is_announced, false, memory_order_relaxed);
        return hws_call_hwsEventRecord(event, stream);
    }
    return hws_call_cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

HWS_EXPORT CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_EVENT, hEvent);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REQUIRE(flags <= CU_EVENT_RECORD_EXTERNAL);
    mark_recorded(hEvent);
    HWS_CAPTURE(hStream, hws_capture_record(hEvent, hStream, flags == CU_EVENT_RECORD_EXTERNAL));
    if (flags == CU_EVENT_RECORD_EXTERNAL) {
        return CUDA_ERROR_ILLEGAL_STATE; /* as CUDA: without a capture, "external" has no meaning */
    }
    hws_capture_forget_event(hEvent);
    hws_event_t *kept = event_get(hEvent);
    CUresult result = record(hEvent, kept, hStream);
    if (result == CUDA_SUCCESS && kept != NULL) {
        hws_progress_mark(&kept->mark, hStream);
    }
    return hws_event_settle(hEvent, result);
}

/* Whether the context may record the event: it, or the primary context of a green one, has made the event. */
static bool is_of_context(CUevent event, CUcontext context) {
    const hws_event_t *kept = event_get(event);
    const hws_context_t *recording = hws_context_get(context);
    return kept == NULL || recording == NULL || kept->context == context || kept->context == recording->owner;
}

HWS_EXPORT CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
    HWS_ENTER_OBJECT(HWS_KIND_CONTEXT, hCtx);
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_EVENT, hEvent);
    if (!is_of_context(hEvent, hCtx)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    HWS_REFUSE_CONTEXT(hCtx);
    hws_event_set_elsewhere(hEvent);
    return hws_call_cuCtxRecordEvent(hCtx, hEvent);
}

HWS_EXPORT CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
    HWS_ENTER_OBJECT(HWS_KIND_CONTEXT, hCtx);
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_EVENT, hEvent);
    HWS_REFUSE_CONTEXT(hCtx);
    return hws_call_cuCtxWaitEvent(hCtx, hEvent);
}

/* Refuses queries that are invalid for an event whose last record is in a graph. */
static CUresult ask(CUevent event, bool ends) {
    HWS_ENTER_OBJECT(HWS_KIND_EVENT, event);
    if (hws_event_is_captured(event)) {
        HWS_TRY(hws_capture_ask_event(event, ends));
    }
    return CUDA_SUCCESS;
}

/* Decides whether the worker announces the next record: whether other calls were sent after the last one. */
static void expect_questions(hws_event_t *kept) {
    uint64_t sequence = atomic_load_explicit(&kept->mark.sequence, memory_order_relaxed);
    if (sequence != 0 && hws_channel_last_sequence() > sequence
        && !atomic_load_explicit(&kept->is_elsewhere, memory_order_relaxed)) {
        atomic_store_explicit(&kept->is_announced, true, memory_order_relaxed);
    }
}

/* Queries or waits. After success the work before the event's record is done. */
static CUresult wait_for(CUevent event, CUresult (*call)(CUevent)) {
    hws_event_t *kept = event_get(event);
    const bool has_place = kept != NULL && !kept->is_shared;
    const hws_mark_place_t place = has_place ? hws_progress_place(&kept->mark) : (hws_mark_place_t) {0};
    uint64_t mark = hws_mirror_mark();
    if (has_place) {
        expect_questions(kept);
    }
    if (has_place && is_reached(kept) && !hws_tls.in_callback) {
        HWS_TRY(hws_channel_take_deferred());
    } else {
        HWS_TRY(call(event));
    }
    if (has_place) {
        hws_progress_note_place(&place);
    }
    hws_mirror_waited(mark, false);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuEventQuery(CUevent hEvent) {
    HWS_TRY(ask(hEvent, true));
    HWS_UNSAFE();
    return wait_for(hEvent, hws_call_cuEventQuery);
}

HWS_EXPORT CUresult cuEventSynchronize(CUevent hEvent) {
    HWS_TRY(ask(hEvent, true));
    HWS_UNSAFE();
    return wait_for(hEvent, hws_call_cuEventSynchronize);
}

HWS_EXPORT CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
    HWS_ENTER_LOCAL();
    if (pMilliseconds == NULL) {
        return CUDA_ERROR_INVALID_HANDLE; /* driver 580, also after the error of a kernel */
    }
    HWS_TRY(ask(hStart, false));
    HWS_TRY(ask(hEnd, false));
    return hws_call_cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}
