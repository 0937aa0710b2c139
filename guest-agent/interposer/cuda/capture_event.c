/*
 * Events in captures. A captured record is a place in the graph; a wait for it adds the waiting stream to the capture.
 */
#include "capture_state.h"
#include "event.h"

#include <stdlib.h>

/* An event whose last record was captured; kept also after the capture has ended. */
typedef struct hws_captured_event {
    struct hws_captured_event *next;
    CUevent event;
    unsigned long long capture; /* its id; the capture may have ended */
    hws_frontier_t frontier;
} hws_captured_event_t;

static hws_captured_event_t *events;

static hws_captured_event_t *find(CUevent event) {
    hws_captured_event_t *captured = events;
    while (captured != NULL && captured->event != event) {
        captured = captured->next;
    }
    return captured;
}

static void forget(CUevent event) {
    for (hws_captured_event_t **link = &events; *link != NULL; link = &(*link)->next) {
        hws_captured_event_t *captured = *link;
        if (captured->event == event) {
            *link = captured->next;
            hws_frontier_free(&captured->frontier);
            free(captured);
            hws_event_set_captured(event, false);
            return;
        }
    }
}

void hws_capture_forget_event(CUevent event) {
    if (hws_event_is_captured(event)) {
        hws_graph_lock();
        forget(event);
        hws_graph_unlock();
    }
}

/* Keeps the stream's current place in the graph. */
static CUresult mark(CUevent event, const hws_capture_stream_t *entry) {
    hws_captured_event_t *captured = find(event);
    if (captured == NULL) {
        captured = calloc(1, sizeof *captured);
        if (captured == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        captured->event = event;
        captured->next = events;
        events = captured;
        hws_event_set_captured(event, true);
    }
    captured->capture = entry->capture->id;
    const hws_frontier_t *from = &entry->frontier;
    return hws_frontier_set(&captured->frontier, from->nodes, from->data, from->count) ? CUDA_SUCCESS
                                                                                       : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hws_capture_record(CUevent event, CUstream stream, bool external) {
    if (external) {
        hws_params_t params;
        return hws_capture_add(stream, hws_params_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &params), &params);
    }
    hws_graph_lock();
    const hws_capture_stream_t *entry = hws_capture_find(stream);
    CUresult result = entry == NULL ? CUDA_ERROR_ILLEGAL_STATE : mark(event, entry);
    hws_graph_unlock();
    return result;
}

CUresult hws_capture_ask_event(CUevent event, bool ends) {
    CUresult result = CUDA_SUCCESS;
    hws_graph_lock();
    const hws_captured_event_t *captured = find(event);
    if (captured != NULL) {
        hws_capture_t *capture = hws_capture_of(captured->capture);
        if (capture != NULL && ends) {
            capture->invalid = true;
        }
        result = CUDA_ERROR_CAPTURED_EVENT;
    }
    hws_graph_unlock();
    return result;
}

/* Lets a stream wait for a captured event. */
static CUresult join(CUstream stream, const hws_captured_event_t *captured) {
    hws_capture_t *capture = hws_capture_of(captured->capture);
    hws_capture_stream_t *entry = hws_capture_find(stream);
    const hws_frontier_t *from = &captured->frontier;
    if (capture == NULL) {
        if (entry != NULL) {
            entry->capture->invalid = true;
        }
        return CUDA_ERROR_INVALID_VALUE; /* its capture has ended */
    }
    if (capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (entry == NULL) {
        if (stream == NULL || stream == CU_STREAM_LEGACY) {
            capture->invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
        entry = hws_capture_enter(stream, capture);
        if (entry == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    } else if (entry->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (entry->capture != capture) {
        entry->capture->invalid = capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    return hws_frontier_join(&entry->frontier, from->nodes, from->data, from->count) ? HWS_CAPTURED
                                                                                     : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hws_capture_wait(CUstream stream, CUevent event, bool external, bool recorded) {
    if (external) {
        if (HWS_CAPTURING()) {
            CUresult asked = hws_capture_ask(stream);
            hws_params_t params;
            if (asked == HWS_CAPTURED) {
                CUresult result =
                    hws_capture_add(stream, hws_params_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &params), &params);
                return result == CUDA_SUCCESS ? HWS_CAPTURED : result;
            }
            HWS_TRY(asked);
        }
        return CUDA_ERROR_ILLEGAL_STATE; /* as CUDA: without a capture, "external" has no meaning */
    }
    CUresult result = CUDA_SUCCESS;
    hws_graph_lock();
    const hws_captured_event_t *captured = find(event);
    hws_capture_stream_t *entry = hws_capture_find(stream);
    if (captured != NULL) {
        result = join(stream, captured);
    } else if (entry != NULL && entry->capture->invalid) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (entry != NULL && recorded) {
        entry->capture->invalid = true;
        result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    } else if (entry != NULL) {
        result = HWS_CAPTURED; /* CUDA: there is nothing to wait for */
    } else {
        result = hws_capture_ask_locked(stream); /* the legacy stream would wait for the capture as well */
    }
    hws_graph_unlock();
    return result;
}
