/* The parts of a launch, which becomes a record or a node of a graph. */
#ifndef HWS_LAUNCH_H
#define HWS_LAUNCH_H

#include "module.h"

#define HWS_LAUNCH_COOPERATIVE 1u /* launch.yaml, hwsLaunch: launchFlags */
#define HWS_MAX_LAUNCH_ATTRIBUTES 64u

typedef struct hws_shape {
    HwsLaunchShape dims;
    CUstream stream;
    unsigned flags;
    const CUlaunchAttribute *attributes;
    unsigned attribute_count;
} hws_shape_t;

static inline HwsLaunchShape hws_launch_dims(const CUlaunchConfig *config) {
    return (HwsLaunchShape) {config->gridDimX,  config->gridDimY,  config->gridDimZ,      config->blockDimX,
                             config->blockDimY, config->blockDimZ, config->sharedMemBytes};
}

/*
 * Finds errors that a device would report for the kernel and the launch's extents. An asynchronous launch can then
 * return them at once, as CUDA does.
 */
CUresult hws_launch_check_shape(const hws_function_t *function, const hws_shape_t *shape);

/*
 * launch_attributes.c: checks single attributes, before the shape, as CUDA does. Such an error does not end a capture.
 */
CUresult hws_launch_check_attributes(const CUlaunchConfig *config, const hws_function_t *function, unsigned *flags_p);
/* Checks the shape's clusters, or those that the kernel requires: CUDA_ERROR_INVALID_CLUSTER_SIZE. */
CUresult hws_launch_check_clusters(const hws_function_t *function, const hws_shape_t *shape);
/* Refuses clusters that no device has room for. A node of a graph may have them until the graph is instantiated. */
CUresult hws_launch_check_cluster_size(const hws_shape_t *shape);
/* Checks the value of an attribute for a kernel node of this shape. */
CUresult hws_launch_check_node_value(const hws_function_t *function, const HwsLaunchShape *dims, CUlaunchAttributeID id,
                                     const CUlaunchAttributeValue *value);

/*
 * Size of the buffer for packed parameters. Rounded up, because the gaps between parameters travel too and must be
 * zeros.
 */
static inline size_t hws_launch_packed_bytes(const hws_function_t *function) {
    return (function->params_bytes + 15) & ~7u;
}

/*
 * Packs the parameters at the kernel's offsets: from pointers to each, or from the program's own packing. packed holds
 * hws_launch_packed_bytes() zeros. For a launch, driver 580 on an H200 accepts a packing of 1 byte up to the end of the
 * last parameter. It answers CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES for a longer packing, and CUDA_ERROR_INVALID_VALUE
 * beyond the limit of all kernels.
 */
CUresult hws_launch_pack(const hws_function_t *function, void **kernel_params, void **extra, uint8_t *packed);

#endif
