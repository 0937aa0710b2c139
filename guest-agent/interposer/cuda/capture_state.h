/* The running captures. The graphs' lock guards everything here. */
#ifndef HWS_CAPTURE_STATE_H
#define HWS_CAPTURE_STATE_H

#include "capture.h"
#include "graph.h"

/* A stream. The per-thread default stream is a different one in each thread. */
typedef struct hws_stream_key {
    CUstream stream;
    const void *thread;
} hws_stream_key_t;

/* The nodes that the next node will depend on. */
typedef struct hws_frontier {
    CUgraphNode *nodes;
    CUgraphEdgeData *data;
    size_t count, capacity;
} hws_frontier_t;

/* The node of a capture that has used an object last. */
typedef struct hws_capture_use {
    struct hws_capture_use *next;
    uint64_t object;
    CUgraphNode node;
} hws_capture_use_t;

typedef struct hws_capture {
    unsigned long long id;
    CUstreamCaptureMode mode;
    hws_stream_key_t origin;
    const void *thread; /* the thread that began it */
    uint64_t graph;     /* handle */
    bool own;           /* the graph was made for the capture */
    bool invalid;
    hws_capture_use_t *uses; /* one for each object */
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

/* Adds a stream to a capture; NULL when memory is short. */
hws_capture_stream_t *hws_capture_enter(CUstream stream, hws_capture_t *capture);

/* The capture with that id; NULL when it has ended. */
hws_capture_t *hws_capture_of(unsigned long long id);

/* hws_capture_ask() for a caller that holds the lock. */
CUresult hws_capture_ask_locked(CUstream stream);

bool hws_frontier_set(hws_frontier_t *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count);
/* Adds the nodes that it does not contain. */
bool hws_frontier_join(hws_frontier_t *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count);
void hws_frontier_free(hws_frontier_t *frontier);

#endif
