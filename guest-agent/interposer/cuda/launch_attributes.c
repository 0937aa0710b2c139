/* Checks of the attributes of launches and kernel nodes. The answers are those of driver 580 on an H200. */
#include "launch.h"

#include "hws_device.h"

#define PORTABLE_CLUSTER_BLOCKS 8u /* CUDA programming guide: on every device that has clusters */
#define LARGEST_CLUSTER_BLOCKS 16u /* of the devices that have the largest: compute capability 9.0 and 10.0 */

typedef struct hws_cluster {
    unsigned dim[3];
} hws_cluster_t;

static hws_cluster_t cluster_of(const CUlaunchAttributeValue *value) {
    return (hws_cluster_t) {{value->clusterDim.x, value->clusterDim.y, value->clusterDim.z}};
}

/* Zeros throughout say nothing about clusters. */
static bool is_unset(const hws_cluster_t *cluster) {
    return (cluster->dim[0] | cluster->dim[1] | cluster->dim[2]) == 0;
}

static bool is_partly_zero(const hws_cluster_t *cluster) {
    return !is_unset(cluster) && (cluster->dim[0] == 0 || cluster->dim[1] == 0 || cluster->dim[2] == 0);
}

/* Blocks of a cluster, as far as the number matters. */
static uint64_t blocks_of(const hws_cluster_t *cluster) {
    uint64_t blocks = 1;
    for (int i = 0; i < 3; i++) {
        blocks = blocks * cluster->dim[i] < UINT32_MAX ? blocks * cluster->dim[i] : UINT32_MAX;
    }
    return blocks;
}

static CUresult check_device(const hws_function_t *function, const hws_cluster_t *cluster) {
    static _Atomic bool said;
    if (blocks_of(cluster) > 1 && hws_device_attribute(function->device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) {
        return hws_unsupported_use(&said, "a launch in clusters on this device");
    }
    return CUDA_SUCCESS;
}

/* The shape of clusters that the kernel was compiled for, or that the program has set as its attributes. */
static hws_cluster_t required_by(const hws_function_t *function) {
    const int *attributes = function->attributes;
    hws_cluster_t required = {{0, 0, 0}};
    for (int i = 0; attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] > 0 && i < 3; i++) {
        int extent = attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i];
        required.dim[i] = extent > 0 ? (unsigned) extent : 1;
    }
    return required;
}

static CUresult check(const hws_function_t *function, const unsigned grid[3], const hws_cluster_t *given) {
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

/* Of several attributes the last one counts. */
static hws_cluster_t cluster_given(const hws_shape_t *shape) {
    hws_cluster_t given = {{0, 0, 0}};
    for (unsigned i = 0; i < shape->attribute_count; i++) {
        if (shape->attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            given = cluster_of(&shape->attributes[i].value);
        }
    }
    return given;
}

CUresult hws_launch_check_clusters(const hws_function_t *function, const hws_shape_t *shape) {
    const hws_cluster_t given = cluster_given(shape);
    return check(function, shape->grid, &given);
}

CUresult hws_launch_check_cluster_size(const hws_shape_t *shape) {
    const hws_cluster_t given = cluster_given(shape);
    return blocks_of(&given) > LARGEST_CLUSTER_BLOCKS ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

CUresult hws_launch_check_cluster_value(const hws_function_t *function, const unsigned grid[3],
                                        const CUlaunchAttributeValue *value) {
    const hws_cluster_t given = cluster_of(value);
    if (is_partly_zero(&given)) {
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    HWS_TRY(check_device(function, &given));
    return check(function, grid, &given);
}

/* Attributes travel as they are. An attribute that names an event or writes a handle would need more than its bytes. */
CUresult hws_launch_check_attributes(const CUlaunchConfig *config, const hws_function_t *function, unsigned *flags_p) {
    static _Atomic bool said;
    HWS_REQUIRE(config->numAttrs <= HWS_MAX_LAUNCH_ATTRIBUTES && (config->numAttrs == 0 || config->attrs != NULL));
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttributeValue *value = &config->attrs[i].value;
        const hws_cluster_t cluster = cluster_of(value);
        switch (config->attrs[i].id) {
            case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
                *flags_p |= value->cooperative != 0 ? HWS_LAUNCH_COOPERATIVE : 0;
                break;
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
                if (is_partly_zero(&cluster)) {
                    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
                }
                HWS_TRY(check_device(function, &cluster));
                break;
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
                HWS_REQUIRE((unsigned) value->clusterSchedulingPolicyPreference
                            <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
                break;
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
            case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
            case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
                return hws_unsupported_use(&said, "a launch attribute with an event or a graph node");
            default:
                break;
        }
    }
    return CUDA_SUCCESS;
}
