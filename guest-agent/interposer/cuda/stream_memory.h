/* Waits for values in memory, and writes of values: in streams and in nodes of graphs. */
#ifndef HWS_STREAM_MEMORY_H
#define HWS_STREAM_MEMORY_H

#include "hws_driver.h"

#define HWS_MAX_MEMORY_OPS 256u /* of a batch: memops.yaml, graph.yaml; as CUDA documents */

/* Converts operations to the wire form; ops_p has room for as many. */
void hws_memory_ops_describe(const CUstreamBatchMemOpParams *from, unsigned count, HwsMemoryOp *ops_p);

/* The checks that CUDA does at once. */
CUresult hws_memory_ops_check(CUdevice device, const HwsMemoryOp *ops, unsigned count);

#endif
