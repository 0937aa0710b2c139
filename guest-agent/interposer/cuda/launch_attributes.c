/* Checks attributes of launches and kernel nodes. The results are those of driver 580 on an H200. */
#include "launch.h"

#include "device.h"

#define PORTABLE_CLUSTER_BLOCKS 8u /* CUDA programming guide: on every device that has clusters */
#define LARGEST_CLUSTER_BLOCKS 16u /* of the devices that have the largest: compute capability 9.0 and 10.0 */

typedef struct hws_cluster {
    unsigned dim[3];
} hws_cluster_t;

static hws_cluster_t cluster_of(const CUlaunchAttributeValue *value) {
    return (hws_cluster_t) {{value->clusterDim.x, value->clusterDim.y, value->clusterDim.z}};
}

/* All zeros: no cluster is set. */
static bool is_unset(const hws_cluster_t *cluster) {
    return (cluster->dim[0] | cluster->dim[1] | cluster->dim[2]) == 0;
}

static bool is_partly_zero(const hws_cluster_t *cluster) {
    return !is_unset(cluster) && (cluster->dim[0] == 0 || cluster->dim[1] == 0 || cluster->dim[2] == 0);
}

/* Blocks of a cluster, saturated well above any limit. */
static uint64_t blocks_of(const hws_cluster_t *cluster) {
    uint64_t blocks = 1;
    for (int i = 0; i < 3; i++) {
        blocks = blocks * cluster->dim[i] < UINT32_MAX ? blocks * cluster->dim[i] : UINT32_MAX;
    }
    return blocks;
}

static CUresult check_device(const hws_function_t *function, const hws_cluster_t *cluster) {
    static _Atomic bool logged;
    if (blocks_of(cluster) > 1 && hws_device_attribute(function->device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) {
        return hws_unsupported_use(&logged, "a launch in clusters on this device");
    }
    return CUDA_SUCCESS;
}

/* The cluster that the kernel was compiled for, or that the program has set as its attribute. */
static hws_cluster_t required_by(const hws_function_t *function) {
    const int *attributes = function->attributes;
    hws_cluster_t required = {{0, 0, 0}};
    for (int i = 0; attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] > 0 && i < 3; i++) {
        int extent = attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i];
        required.dim[i] = extent > 0 ? (unsigned) extent : 1;
    }
    return required;
}

static CUresult check(const hws_function_t *function, const HwsLaunchShape *dims, const hws_cluster_t *given) {
    const unsigned grid[3] = {dims->gridDimX, dims->gridDimY, dims->gridDimZ};
    const hws_cluster_t required = required_by(function);
    const hws_cluster_t *cluster = is_unset(given) ? &required : given;
    if (is_unset(cluster)) {
        return CUDA_SUCCESS;
    }
    bool differs = false, divides = true;
    for (int i = 0; i < 3; i++) {
        differs = differs || (!is_unset(&required) && cluster->dim[i] != required.dim[i]);
        divides = divides && cluster->dim[i] != 0 && grid[i] % cluster->dim[i] == 0;
    }
    bool portable = blocks_of(cluster) <= PORTABLE_CLUSTER_BLOCKS
        || function->attributes[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] != 0;
    return differs || !divides || !portable ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

/* A preferred cluster must consist of whole regular clusters, and the grid of whole preferred clusters. */
static CUresult check_preferred(const hws_function_t *function, const HwsLaunchShape *dims, const hws_cluster_t *given,
                                const hws_cluster_t *preferred) {
    const unsigned grid[3] = {dims->gridDimX, dims->gridDimY, dims->gridDimZ};
    const hws_cluster_t required = required_by(function);
    const hws_cluster_t *cluster = is_unset(given) ? &required : given;
    bool whole = !is_unset(cluster);
    for (int i = 0; whole && i < 3; i++) {
        whole = preferred->dim[i] != 0 && preferred->dim[i] % cluster->dim[i] == 0 && grid[i] % preferred->dim[i] == 0;
    }
    return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

/* The last one of several equal attributes counts. */
static hws_cluster_t cluster_given(const hws_shape_t *shape, CUlaunchAttributeID id) {
    hws_cluster_t given = {{0, 0, 0}};
    for (unsigned i = 0; i < shape->attribute_count; i++) {
        if (shape->attributes[i].id == id) {
            given = cluster_of(&shape->attributes[i].value);
        }
    }
    return given;
}

CUresult hws_launch_check_clusters(const hws_function_t *function, const hws_shape_t *shape) {
    const hws_cluster_t given = cluster_given(shape, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    const hws_cluster_t preferred = cluster_given(shape, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
    HWS_TRY(check(function, &shape->dims, &given));
    return is_unset(&preferred) ? CUDA_SUCCESS : check_preferred(function, &shape->dims, &given, &preferred);
}

CUresult hws_launch_check_cluster_size(const hws_shape_t *shape) {
    const hws_cluster_t given = cluster_given(shape, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    return blocks_of(&given) > LARGEST_CLUSTER_BLOCKS ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

/* Refuses values that neither a launch nor a node may have. */
static CUresult check_value(const hws_function_t *function, CUlaunchAttributeID id,
                            const CUlaunchAttributeValue *value) {
    const hws_cluster_t cluster = cluster_of(value);
    const CUaccessPolicyWindow *window = &value->accessPolicyWindow;
    /* 0 when the device does not report it. */
    const int domains = hws_device_attribute(function->device, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
    const int largest = hws_device_attribute(function->device, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
    switch (id) {
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            HWS_REQUIRE(!(window->hitRatio < 0 || window->hitRatio > 1));
            HWS_REQUIRE(window->missProp != CU_ACCESS_PROPERTY_PERSISTING);
            HWS_REQUIRE(largest <= 0 || window->num_bytes <= (size_t) largest);
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            return is_partly_zero(&cluster) ? CUDA_ERROR_INVALID_CLUSTER_SIZE : check_device(function, &cluster);
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
            return check_device(function, &cluster);
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
            HWS_REQUIRE((unsigned) value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            HWS_REQUIRE(domains <= 0
                        || (value->memSyncDomainMap.default_ < domains && value->memSyncDomainMap.remote < domains));
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            HWS_REQUIRE(value->sharedMemCarveout <= 100); /* per cent; -1 is only for functions */
            return CUDA_SUCCESS;
        default:
            return CUDA_SUCCESS;
    }
}

CUresult hws_launch_check_node_value(const hws_function_t *function, const HwsLaunchShape *dims, CUlaunchAttributeID id,
                                     const CUlaunchAttributeValue *value) {
    HWS_TRY(check_value(function, id, value));
    const hws_cluster_t given = cluster_of(value);
    return id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ? check(function, dims, &given) : CUDA_SUCCESS;
}

/*
 * Checks attributes, which travel unchanged. An attribute that names an event or writes a handle needs more than its
 * bytes.
 */
CUresult hws_launch_check_attributes(const CUlaunchConfig *config, const hws_function_t *function, unsigned *flags_p) {
    static _Atomic bool logged;
    HWS_REQUIRE(config->numAttrs <= HWS_MAX_LAUNCH_ATTRIBUTES && (config->numAttrs == 0 || config->attrs != NULL));
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttributeValue *value = &config->attrs[i].value;
        switch (config->attrs[i].id) {
            case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
                *flags_p |= value->cooperative != 0 ? HWS_LAUNCH_COOPERATIVE : 0;
                break;
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
                HWS_REQUIRE((unsigned) value->clusterSchedulingPolicyPreference
                            <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
                break;
            case CU_LAUNCH_ATTRIBUTE_IGNORE:
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
                break;
            case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
            case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
            case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
                HWS_TRY(check_value(function, config->attrs[i].id, value));
                break;
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
            case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
            case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
                return hws_unsupported_use(&logged, "a launch attribute with an event or a graph node");
            default:
                return CUDA_ERROR_INVALID_VALUE; /* of streams, or unknown */
        }
    }
    return CUDA_SUCCESS;
}
