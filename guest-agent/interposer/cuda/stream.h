/* Queries of streams for other files. Any thread. */
#ifndef HWS_STREAM_H
#define HWS_STREAM_H

#include "hws_cuda_types.h"
#include "progress.h"

#include <stdbool.h>

/* Whether the stream and the legacy default stream wait for each other. */
bool hws_stream_is_blocking(CUstream stream);

/* The progress of a stream; NULL for a default stream and for an invalid handle. */
hws_progress_t *hws_stream_progress(CUstream stream);

/* The context of a stream; NULL for a default stream and for an invalid handle. */
CUcontext hws_stream_context(CUstream stream);

/* Whether work that the current context issues from now on, in any stream, runs after the stream's work so far. */
bool hws_stream_is_ordered(CUstream stream);

#endif
