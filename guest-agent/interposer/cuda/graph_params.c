/* Parameters of nodes: deep copies of the program's structures, with the checks that CUDA does at once. */
#include "context.h"
#include "copy.h"
#include "device.h"
#include "event.h"
#include "graph_call.h"
#include "stream_memory.h"
#include "unseen.h"

#include <stdlib.h>
#include <string.h>

CUresult hws_params_launch(CUfunction function, const hws_shape_t *shape, void **kernel_params, void **extra,
                           hws_params_t *params_p) {
    const hws_function_t *known = hws_function_get(function);
    if (known == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    HWS_TRY(hws_launch_check_shape(known, shape));
    hws_arguments_t *arguments = hws_arguments_make(known);
    CUlaunchAttribute *attributes = malloc((shape->attribute_count + 1) * sizeof *attributes);
    CUresult result = arguments == NULL || attributes == NULL
        ? CUDA_ERROR_OUT_OF_MEMORY
        : hws_launch_pack(known, kernel_params, extra, arguments->packed);
    if (result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES) { /* too long a buffer: driver 580 on an H200 */
        result = known->params_bytes == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    result = result == CUDA_SUCCESS ? hws_unseen_look(known, arguments->packed) : result;
    if (result != CUDA_SUCCESS) {
        hws_arguments_free(arguments);
        free(attributes);
        return result;
    }
    if (shape->attribute_count != 0) {
        memcpy(attributes, shape->attributes, shape->attribute_count * sizeof *attributes);
    }
    *params_p = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_KERNEL, .context = hws_context_current()};
    params_p->kernel = (hws_node_kernel_t) {.function = function,
                                            .shape = *shape,
                                            .params_bytes = known->params_bytes,
                                            .packed_given = kernel_params == NULL && extra != NULL,
                                            .arguments = arguments};
    params_p->kernel.shape.attributes = attributes;
    params_p->kernel.shape.stream = NULL;
    return CUDA_SUCCESS;
}

CUresult hws_params_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *from, hws_params_t *params_p) {
    HWS_REQUIRE(from != NULL);
    const hws_shape_t shape = {.dims = {from->gridDimX, from->gridDimY, from->gridDimZ, from->blockDimX,
                                        from->blockDimY, from->blockDimZ, from->sharedMemBytes}};
    CUfunction function = from->func != NULL ? from->func : (CUfunction) (void *) from->kern;
    HWS_TRY(hws_params_launch(function, &shape, from->kernelParams, from->extra, params_p));
    if (from->func == NULL && from->ctx != NULL) {
        if (hws_context_get(from->ctx) == NULL) {
            hws_params_drop(params_p);
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        params_p->context = from->ctx;
    }
    return CUDA_SUCCESS;
}

CUresult hws_params_context(CUcontext context, CUcontext *context_p) {
    *context_p = context != NULL ? context : hws_context_current();
    return hws_context_get(*context_p) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult hws_params_memset(const CUDA_MEMSET_NODE_PARAMS *from, CUcontext context, hws_params_t *params_p) {
    HWS_REQUIRE(from != NULL && (from->elementSize == 1 || from->elementSize == 2 || from->elementSize == 4));
    size_t width, bytes = 0;
    HWS_REQUIRE(from->width != 0 && from->height != 0 && from->dst % from->elementSize == 0
                && !__builtin_mul_overflow(from->width, (size_t) from->elementSize, &width));
    if (from->height > 1) {
        HWS_REQUIRE(from->pitch % from->elementSize == 0 && from->pitch >= width
                    && !__builtin_mul_overflow(from->pitch, from->height - 1, &bytes));
    }
    HWS_REQUIRE(!__builtin_add_overflow(bytes, width, &bytes));
    HWS_TRY(hws_copy_check_device(from->dst, bytes));
    *params_p = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = *from};
    return hws_params_context(context, &params_p->context);
}

CUresult hws_params_host(const CUDA_HOST_NODE_PARAMS *from, hws_params_t *params_p) {
    HWS_REQUIRE(from != NULL && from->fn != NULL);
    *params_p = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_HOST, .host = *from};
    params_p->call = hws_graph_call_host(from->fn, from->userData);
    return params_p->call == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult hws_params_event(CUgraphNodeType type, CUevent event, hws_params_t *params_p) {
    HWS_REQUIRE(event != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_EVENT, event);
    if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
        hws_event_set_elsewhere(event);
    }
    *params_p = (hws_params_t) {.type = type, .event = event};
    return CUDA_SUCCESS;
}

/* Replaces the program's operations by a copy. */
static CUresult own_memory_ops(CUDA_BATCH_MEM_OP_NODE_PARAMS *params) {
    size_t bytes = params->count * sizeof *params->paramArray;
    const CUstreamBatchMemOpParams *from = params->paramArray;
    params->paramArray = malloc(bytes);
    if (params->paramArray == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(params->paramArray, from, bytes);
    return CUDA_SUCCESS;
}

CUresult hws_params_memory_ops(const CUDA_BATCH_MEM_OP_NODE_PARAMS *from, hws_params_t *params_p) {
    HwsMemoryOp ops[HWS_MAX_MEMORY_OPS];
    HWS_REQUIRE(from != NULL && from->count != 0 && from->count <= HWS_MAX_MEMORY_OPS && from->paramArray != NULL
                && from->flags == 0);
    *params_p = (hws_params_t) {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memory_ops = *from};
    HWS_TRY(hws_params_context(from->ctx, &params_p->context));
    HWS_ENTER(); /* CUDA checks the error of a kernel before the operations */
    hws_memory_ops_describe(from->paramArray, from->count, ops);
    HWS_TRY(hws_memory_ops_check(hws_context_get(params_p->context)->device, ops, from->count));
    params_p->memory_ops.ctx = params_p->context;
    return own_memory_ops(&params_p->memory_ops);
}

static CUresult duplicate_kernel(const hws_node_kernel_t *from, hws_node_kernel_t *to) {
    const hws_function_t *known = hws_function_get(from->function);
    if (known == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    hws_arguments_t *arguments = hws_arguments_make(known);
    CUlaunchAttribute *attributes = malloc((from->shape.attribute_count + 1) * sizeof *attributes);
    if (arguments == NULL || attributes == NULL) {
        hws_arguments_free(arguments);
        free(attributes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *to = *from;
    to->arguments = arguments;
    memcpy(arguments->packed, from->arguments->packed, hws_launch_packed_bytes(known));
    memcpy(attributes, from->shape.attributes, from->shape.attribute_count * sizeof *attributes);
    to->shape.attributes = attributes;
    return CUDA_SUCCESS;
}

CUresult hws_params_duplicate(const hws_params_t *from, hws_params_t *params_p) {
    *params_p = *from;
    if (from->type == HWS_NODE_LIBRARY) {
        return hws_library_duplicate(&from->library, &params_p->library);
    }
    switch (from->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return duplicate_kernel(&from->kernel, &params_p->kernel);
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return hws_graph_copy(from->child, &params_p->child);
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return own_memory_ops(&params_p->memory_ops);
        case CU_GRAPH_NODE_TYPE_CONDITIONAL: /* CUDA: a condition belongs to one graph */
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            return CUDA_ERROR_NOT_SUPPORTED; /* CUDA: an address belongs to one node */
        default:
            hws_graph_call_hold(from->call);
            return CUDA_SUCCESS;
    }
}

void hws_params_drop(hws_params_t *params) {
    hws_graph_call_release(params->call);
    params->call = NULL;
    if (params->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        hws_arguments_free(params->kernel.arguments);
        free((void *) (uintptr_t) params->kernel.shape.attributes);
        params->kernel.arguments = NULL;
        params->kernel.shape.attributes = NULL;
    } else if (params->type == CU_GRAPH_NODE_TYPE_GRAPH && params->child != NULL) {
        if (params->child->moved && params->child->owner == NULL) {
            params->child->moved = false; /* it was not moved in the end, and stays the program's */
        } else {
            hws_graph_end(params->child);
        }
        params->child = NULL;
    } else if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        free((void *) (uintptr_t) params->alloc.accessDescs);
        params->alloc.accessDescs = NULL;
    } else if (params->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
        free(params->memory_ops.paramArray);
        params->memory_ops.paramArray = NULL;
    } else if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
        hws_conditional_drop(&params->conditional);
    } else if (params->type == HWS_NODE_LIBRARY) {
        hws_library_drop(&params->library);
    }
}

const CUlaunchAttributeValue *hws_kernel_attribute(const hws_node_kernel_t *kernel, CUlaunchAttributeID id) {
    for (unsigned i = 0; i < kernel->shape.attribute_count; i++) {
        if (kernel->shape.attributes[i].id == id) {
            return &kernel->shape.attributes[i].value;
        }
    }
    return NULL;
}

CUresult hws_kernel_set_attribute(hws_node_kernel_t *kernel, CUlaunchAttributeID id,
                                  const CUlaunchAttributeValue *value) {
    const hws_function_t *function = hws_function_get(kernel->function);
    HWS_TRY(function == NULL ? CUDA_ERROR_INVALID_HANDLE
                             : hws_launch_check_node_value(function, &kernel->shape.dims, id, value));
    CUlaunchAttributeValue *known = (CUlaunchAttributeValue *) (uintptr_t) hws_kernel_attribute(kernel, id);
    if (known == NULL) {
        unsigned count = kernel->shape.attribute_count;
        CUlaunchAttribute *larger =
            realloc((void *) (uintptr_t) kernel->shape.attributes, (count + 1) * sizeof *larger);
        if (larger == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        memset(&larger[count], 0, sizeof *larger);
        larger[count].id = id;
        known = &larger[count].value;
        kernel->shape.attributes = larger;
        kernel->shape.attribute_count = count + 1;
    }
    *known = *value;
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        kernel->shape.flags = value->cooperative != 0 ? kernel->shape.flags | HWS_LAUNCH_COOPERATIVE
                                                      : kernel->shape.flags & ~HWS_LAUNCH_COOPERATIVE;
    }
    return CUDA_SUCCESS;
}
