/* The captures that go on. Everything here is under the graphs' lock. */
#ifndef HWS_CAPTURE_STATE_H
#define HWS_CAPTURE_STATE_H

#include "capture.h"
#include "graph.h"

/* A stream; the per-thread default stream is another one in each thread. */
typedef struct hws_stream_key {
    CUstream stream;
    const void *thread;
} hws_stream_key_t;

/* Nodes that the next one will depend on. */
typedef struct hws_frontier {
    CUgraphNode *nodes;
    CUgraphEdgeData *data;
    size_t count, capacity;
} hws_frontier_t;

typedef struct hws_capture {
    unsigned long long id;
    CUstreamCaptureMode mode;
    hws_stream_key_t origin;
    const void *thread;      /* that began it */
    uint64_t graph;          /* handle */
    bool own;                /* the graph was made for it */
    bool invalid;
} hws_capture_t;

/* A stream that captures. */
typedef struct hws_capture_stream {
    struct hws_capture_stream *next;
    hws_stream_key_t key;
    hws_capture_t *capture;
    uint32_t context;
    bool blocking;
    hws_frontier_t frontier;
} hws_capture_stream_t;

extern hws_capture_stream_t *hws_capture_streams;

hws_stream_key_t hws_capture_key(CUstream stream);

/* NULL for a stream that does not capture. */
hws_capture_stream_t *hws_capture_find(CUstream stream);

/* Draws a stream into a capture; NULL when memory is short. */
hws_capture_stream_t *hws_capture_enter(CUstream stream, hws_capture_t *capture);

/* The capture of that id; NULL when it has ended. */
hws_capture_t *hws_capture_of(unsigned long long id);

bool hws_frontier_set(hws_frontier_t *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count);
/* Adds those that are not in it. */
bool hws_frontier_join(hws_frontier_t *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count);
void hws_frontier_free(hws_frontier_t *frontier);

#endif
