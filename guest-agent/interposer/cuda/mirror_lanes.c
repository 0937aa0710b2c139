#include "mirror_lanes.h"

#include "copy.h"
#include "mirror_pages.h"
#include "mirror_work.h"

#include "hws_cuda_calls.h"

#include <stdlib.h>
#include <string.h>

#define ORDERED_STREAMS 8u

struct hws_page_lane {
    struct hws_page_lane *next;
    uint32_t context;
    CUstream stream;
    CUevent event;   /* NULL: none yet */
    bool is_used;    /* something was sent since the last wait */
    bool is_ordered; /* streams of the program wait for it */
};

static hws_page_lane_t *lanes;
static CUstream ordered[ORDERED_STREAMS]; /* wait for what was sent */
static size_t ordered_count;

CUresult hws_lane_of(uint32_t context, hws_page_lane_t **lane_p) {
    hws_tls.context = context;
    for (*lane_p = lanes; *lane_p != NULL; *lane_p = (*lane_p)->next) {
        if ((*lane_p)->context == context) {
            return CUDA_SUCCESS;
        }
    }
    hws_page_lane_t *lane = calloc(1, sizeof *lane);
    uint64_t handle = lane == NULL ? 0 : hws_handle_new(HWS_KIND_STREAM);
    CUresult result = handle == 0
        ? CUDA_ERROR_OUT_OF_MEMORY
        : hws_call_cuStreamCreateWithPriority((CUstream) (uintptr_t) handle, CU_STREAM_NON_BLOCKING, 0);
    if (result != CUDA_SUCCESS) {
        if (handle != 0) {
            hws_handle_drop(HWS_KIND_STREAM, handle);
        }
        free(lane);
        return result;
    }
    *lane = (hws_page_lane_t) {.next = lanes, .context = context, .stream = (CUstream) (uintptr_t) handle};
    *lane_p = lanes = lane;
    return CUDA_SUCCESS;
}

CUstream hws_lane_stream(const hws_page_lane_t *lane) {
    return lane->stream;
}

CUresult hws_lanes_fetch_by(CUstream stream, uint64_t address, uint64_t bytes, const hws_staging_t *to) {
    if (to->region_offset == 0) {
        return hws_copy_fetch(to->bytes, address, bytes, stream);
    }
    HWS_TRY(hws_call_hwsCopyDtoHShared(address, to->region_offset, bytes, stream, 0));
    return hws_call_cuStreamSynchronize(stream);
}

/* The bytes of a mirror that travel, from one range: as hws_spans_next(). */
bool hws_lanes_next_span(const hws_mirror_t *mirror, size_t *at, uint64_t address, uint64_t bytes, hws_span_t *part_p) {
    if (mirror->has_variables) {
        return hws_spans_next(&mirror->spans, at, address, bytes, part_p);
    }
    *part_p = (hws_span_t) {.address = address, .bytes = bytes, .context = mirror->context};
    return (*at)++ == 0;
}

CUresult hws_lanes_fetch(const hws_mirror_t *mirror, size_t page, size_t pages, const hws_staging_t *to) {
    hws_span_t part;
    uint64_t address = hws_mirror_address(mirror, page);
    if (mirror->has_variables) {
        memset(to->bytes, 0, pages * HWS_PAGE);
    }
    for (size_t at = 0; hws_lanes_next_span(mirror, &at, address, pages * HWS_PAGE, &part);) {
        hws_page_lane_t *lane;
        HWS_TRY(hws_lane_of(part.context, &lane));
        uint64_t offset = part.address - address;
        const hws_staging_t place = {
            .bytes = (uint8_t *) to->bytes + offset,
            .region_offset = to->region_offset == 0 ? 0 : to->region_offset + offset,
        };
        HWS_TRY(hws_lanes_fetch_by(lane->stream, part.address, part.bytes, &place));
    }
    return CUDA_SUCCESS;
}

void hws_lane_note_sent(hws_page_lane_t *lane) {
    lane->is_used = true;
    lane->is_ordered = false;
    hws_mirrors.changes++;
}

CUresult hws_lanes_send(const hws_mirror_t *mirror, uint64_t address, const uint8_t *from, uint64_t bytes) {
    hws_span_t part;
    for (size_t at = 0; hws_lanes_next_span(mirror, &at, address, bytes, &part);) {
        hws_page_lane_t *lane;
        HWS_TRY(hws_lane_of(part.context, &lane));
        hws_lane_note_sent(lane);
        HWS_TRY(hws_copy_send(part.address, from + (part.address - address), part.bytes, lane->stream));
    }
    return CUDA_SUCCESS;
}

/* Whether work that came after what was sent is known to have ended. */
static bool has_arrived(const hws_page_lane_t *lane) {
    return lane->is_ordered && atomic_load(&hws_work.unsettled) == 0;
}

static bool travels_in(const hws_mirror_t *mirror, uint32_t context) {
    bool does = !mirror->has_variables && mirror->context == context;
    for (size_t i = 0; i < mirror->spans.count; i++) {
        does |= mirror->spans.items[i].context == context;
    }
    return does;
}

void hws_lanes_wait(void) {
    for (hws_page_lane_t *lane = lanes; lane != NULL; lane = lane->next) {
        bool must_wait = lane->is_used && !has_arrived(lane);
        lane->is_used = false;
        if (!must_wait) {
            continue;
        }
        hws_tls.context = lane->context;
        CUresult result = hws_call_cuStreamSynchronize(lane->stream);
        for (size_t i = 0; i < hws_mirrors.count && result != CUDA_SUCCESS; i++) {
            if (travels_in(hws_mirrors.items[i], lane->context) && !hws_mirrors.items[i]->is_lost) {
                hws_pages_lose(hws_mirrors.items[i], result);
            }
        }
    }
    atomic_store(&hws_work.unsettled, 0); /* only now: others look at it without the lock */
}

bool hws_lanes_can_order(uint32_t context) {
    if (lanes == NULL || lanes->next != NULL || lanes->context != context) {
        return false;
    }
    lanes->is_used = lanes->is_used && !has_arrived(lanes);
    return true;
}

/* Lets a stream of the current context wait for what was sent. Returns false when it cannot. */
static bool order(hws_page_lane_t *lane, CUstream stream) {
    if (lane->event == NULL) {
        uint64_t handle = hws_handle_new(HWS_KIND_EVENT);
        if (handle == 0
            || hws_call_cuEventCreate((CUevent) (uintptr_t) handle, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
            return false;
        }
        lane->event = (CUevent) (uintptr_t) handle;
    }
    if (!lane->is_ordered) {
        if (hws_call_cuEventRecordWithFlags(lane->event, lane->stream, 0) != CUDA_SUCCESS) {
            return false;
        }
        lane->is_ordered = true;
        ordered_count = 0;
        atomic_store(&hws_work.unsettled, atomic_load(&hws_work.issued) + 1);
    }
    for (size_t i = 0; i < ordered_count; i++) {
        if (ordered[i] == stream) {
            return true;
        }
    }
    if (ordered_count == ORDERED_STREAMS || hws_call_cuStreamWaitEvent(stream, lane->event, 0) != CUDA_SUCCESS) {
        return false;
    }
    ordered[ordered_count++] = stream;
    return true;
}

void hws_lanes_settle(const CUstream *stream) {
    hws_page_lane_t *lane = lanes;
    if (stream == NULL || (lane != NULL && lane->is_used && !order(lane, *stream))) {
        hws_lanes_wait();
    }
}
