/* What a launch consists of, for whatever becomes of it: a record, or a node of a graph. */
#ifndef HWS_LAUNCH_H
#define HWS_LAUNCH_H

#include "module.h"

#define HWS_LAUNCH_COOPERATIVE 1u /* wire.yaml, hwsLaunch: launchFlags */
#define HWS_MAX_LAUNCH_ATTRIBUTES 64u

typedef struct hws_shape {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    CUstream stream;
    unsigned flags;
    const CUlaunchAttribute *attributes;
    unsigned attribute_count;
} hws_shape_t;

/*
 * What a device would refuse, of the kernel and of the launch's extents, so that an asynchronous launch can say so at
 * once, as CUDA does.
 */
CUresult hws_launch_check_shape(const hws_function_t *function, const hws_shape_t *shape);

/* launch_attributes.c: checks single attributes, before the shape, as CUDA does. A capture survives such a refusal. */
CUresult hws_launch_check_attributes(const CUlaunchConfig *config, const hws_function_t *function, unsigned *flags_p);
/* The shape's clusters, or those that the kernel requires: CUDA_ERROR_INVALID_CLUSTER_SIZE. */
CUresult hws_launch_check_clusters(const hws_function_t *function, const hws_shape_t *shape);
/* Clusters that no device has room for; a node of a graph may have them until the graph is instantiated. */
CUresult hws_launch_check_cluster_size(const hws_shape_t *shape);
/* An attribute that a kernel node with such a grid is to have. */
CUresult hws_launch_check_node_value(const hws_function_t *function, const unsigned grid[3], CUlaunchAttributeID id,
                                     const CUlaunchAttributeValue *value);

/* Bytes to pack parameters into: rounded up, since the gaps between parameters go out too and must be zeros. */
static inline size_t hws_launch_packed_bytes(const hws_function_t *function) {
    return (function->params_bytes + 15) & ~7u;
}

/*
 * Puts the parameters where the kernel expects them: from pointers to each, or from the program's own packing. packed
 * holds hws_launch_packed_bytes() zeros.
 */
CUresult hws_launch_pack(const hws_function_t *function, void **kernel_params, void **extra, uint8_t *packed);

#endif
