/*
 * Graphs of operations: descriptors with attributes. Finalizing one finds the worker's object with this content. A
 * variant pack stays in the guest, and an execution is one record.
 */
#include "hws_cudnn.h"

#include "hws_cudnn_calls.h"
#include "hws_cudnn_opcodes.h"

#include <stdlib.h>

#define MAX_ATTRIBUTES 64   /* of a descriptor; those of attention have about 40 */
#define MAX_BINDINGS 512u   /* hwsDnnExecute */
#define MAX_REQUESTED 4096u /* descriptors of one question; heuristics have far fewer results */

typedef struct attribute {
    int name, type;
    int64_t count;
    uint8_t *values;        /* not of descriptors */
    hws_dnn_node_t **nodes; /* of descriptors */
} attribute_t;

struct hws_dnn_object {
    int kind;
    bool finalized;
    hws_dnn_node_t *node; /* NULL for a variant pack */
    uint32_t count;
    attribute_t attributes[MAX_ATTRIBUTES];
};

static void forget(attribute_t *attribute) {
    for (int64_t i = 0; attribute->nodes != NULL && i < attribute->count; i++) {
        hws_dnn_release(attribute->nodes[i]);
    }
    free(attribute->nodes);
    free(attribute->values);
    memset(attribute, 0, sizeof *attribute);
}

static void reset(cudnnBackendDescriptor_t descriptor) {
    for (uint32_t i = 0; i < descriptor->count; i++) {
        forget(&descriptor->attributes[i]);
    }
    hws_dnn_release(descriptor->node);
    descriptor->node = NULL;
    descriptor->count = 0;
    descriptor->finalized = false;
}

HWS_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                                                      cudnnBackendDescriptor_t *descriptor) {
    HWS_REQUIRE(descriptor != NULL);
    if (descriptorType < CUDNN_BACKEND_POINTWISE_DESCRIPTOR
        || descriptorType > CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR
        || descriptorType == CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) { /* names a device of the machine */
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    cudnnBackendDescriptor_t made = calloc(1, sizeof *made);
    if (made == NULL) {
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    made->kind = (int) descriptorType;
    *descriptor = made;
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    if (descriptor != NULL) {
        reset(descriptor);
        free(descriptor);
    }
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
    HWS_REQUIRE(descriptor != NULL);
    reset(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

static attribute_t *find(cudnnBackendDescriptor_t descriptor, int name) {
    for (uint32_t i = 0; i < descriptor->count; i++) {
        if (descriptor->attributes[i].name == name) {
            return &descriptor->attributes[i];
        }
    }
    return NULL;
}

/* Fills an attribute from the program's array. */
static cudnnStatus_t fill(attribute_t *attribute, const void *elements) {
    int64_t count = attribute->count;
    if (attribute->type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        size_t bytes = (size_t) count * hws_dnn_type_bytes(attribute->type);
        attribute->values = malloc(bytes == 0 ? 1 : bytes);
        if (attribute->values == NULL) {
            return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
        }
        if (bytes > 0) {
            memcpy(attribute->values, elements, bytes);
        }
        return CUDNN_STATUS_SUCCESS;
    }
    const cudnnBackendDescriptor_t *descriptors = elements;
    for (int64_t i = 0; i < count; i++) {
        if (descriptors[i] == NULL || descriptors[i]->node == NULL) {
            return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
        }
    }
    attribute->nodes = calloc(count == 0 ? 1 : (size_t) count, sizeof(hws_dnn_node_t *));
    if (attribute->nodes == NULL) {
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    for (int64_t i = 0; i < count; i++) {
        attribute->nodes[i] = descriptors[i]->node;
        hws_dnn_use(attribute->nodes[i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Whether an attribute has a meaning in the guest only, or would let the library follow an address of the guest. */
static bool travels(int kind, int name, int type) {
    if (kind == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
        return name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS || name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS
            || name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE;
    }
    return type != CUDNN_TYPE_VOID_PTR && name != CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
}

HWS_EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                  cudnnBackendAttributeName_t attributeName,
                                                  cudnnBackendAttributeType_t attributeType, int64_t elementCount,
                                                  const void *arrayOfElements) {
    HWS_REQUIRE(descriptor != NULL && !descriptor->finalized);
    HWS_REQUIRE(elementCount >= 0 && (arrayOfElements != NULL || elementCount == 0));
    HWS_REQUIRE(hws_dnn_type_bytes((int) attributeType) > 0);
    if (!travels(descriptor->kind, (int) attributeName, (int) attributeType)) {
        return hws_unsupported(__func__);
    }
    if (elementCount > HWS_DNN_MAX_PARTS) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    attribute_t made = {(int) attributeName, (int) attributeType, elementCount, NULL, NULL};
    cudnnStatus_t status = fill(&made, arrayOfElements);
    attribute_t *old = find(descriptor, (int) attributeName);
    if (status == CUDNN_STATUS_SUCCESS && old == NULL) {
        old = descriptor->count < MAX_ATTRIBUTES ? &descriptor->attributes[descriptor->count++] : NULL;
        status = old == NULL ? CUDNN_STATUS_NOT_SUPPORTED : status;
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        forget(&made);
        return status;
    }
    forget(old);
    *old = made;
    return CUDNN_STATUS_SUCCESS;
}

HWS_EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    HWS_REQUIRE(descriptor != NULL && !descriptor->finalized);
    if (descriptor->kind == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
        descriptor->finalized = true;
        return CUDNN_STATUS_SUCCESS;
    }
    if (!hws_math_need_context()) {
        return CUDNN_STATUS_NOT_INITIALIZED;
    }
    HWS_ENTER();
    hws_dnn_content_t content = {0};
    bool fits = true;
    for (uint32_t i = 0; i < descriptor->count && fits; i++) {
        const attribute_t *attribute = &descriptor->attributes[i];
        fits = hws_dnn_add(&content, attribute->name, attribute->type, attribute->count, attribute->values,
                           attribute->nodes);
    }
    cudnnStatus_t status = !fits
        ? CUDNN_STATUS_NOT_SUPPORTED
        : hws_dnn_make(descriptor->kind, &content, descriptor->kind != CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR,
                       &descriptor->node);
    hws_dnn_clear(&content);
    descriptor->finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

/*
 * Gives the program's descriptors the objects that an attribute consists of. The program's array may be shorter than
 * it says, but not than the attribute.
 */
static cudnnStatus_t get_descriptors(cudnnBackendDescriptor_t descriptor, int name, uint32_t requested, int64_t *count,
                                     cudnnBackendDescriptor_t *descriptors) {
    int64_t present = requested;
    uint32_t none = 0;
    if (requested > 1
        && hws_dnn_ask(descriptor->node, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, -1, &present, NULL, NULL, &none)
            == CUDNN_STATUS_SUCCESS
        && present >= 0 && present < (int64_t) requested) {
        requested = (uint32_t) present;
    }
    int kind = requested == 0 || descriptors == NULL || descriptors[0] == NULL ? -1 : descriptors[0]->kind;
    HWS_REQUIRE(requested == 0 || kind >= 0);
    for (uint32_t i = 0; i < requested; i++) {
        HWS_REQUIRE(descriptors[i] != NULL && descriptors[i]->kind == kind);
    }
    hws_dnn_node_t **nodes = calloc(requested == 0 ? 1 : requested, sizeof *nodes);
    uint32_t found = 0;
    cudnnStatus_t status = nodes == NULL ? CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
                                         : hws_dnn_ask(descriptor->node, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, requested,
                                                       kind, count, NULL, nodes, &found);
    for (uint32_t i = 0; status == CUDNN_STATUS_SUCCESS && i < found && i < requested; i++) {
        reset(descriptors[i]);
        descriptors[i]->node = nodes[i];
        descriptors[i]->finalized = true;
    }
    free(nodes);
    return status;
}

HWS_EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                                  cudnnBackendAttributeName_t attributeName,
                                                  cudnnBackendAttributeType_t attributeType,
                                                  int64_t requestedElementCount, int64_t *elementCount,
                                                  void *arrayOfElements) {
    HWS_REQUIRE(descriptor != NULL && requestedElementCount >= 0);
    HWS_REQUIRE(hws_dnn_type_bytes((int) attributeType) > 0);
    if (!descriptor->finalized) {
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    }
    int64_t ignored, *count = elementCount == NULL ? &ignored : elementCount;
    const attribute_t *own = find(descriptor, (int) attributeName);
    if (own != NULL && own->values != NULL) {
        HWS_REQUIRE(own->type == (int) attributeType);
        int64_t given = own->count < requestedElementCount ? own->count : requestedElementCount;
        if (given > 0 && arrayOfElements != NULL) {
            memcpy(arrayOfElements, own->values, (size_t) given * hws_dnn_type_bytes(own->type));
        }
        *count = own->count;
        return CUDNN_STATUS_SUCCESS;
    }
    HWS_REQUIRE(descriptor->node != NULL && attributeType != CUDNN_TYPE_VOID_PTR && attributeType != CUDNN_TYPE_HANDLE);
    HWS_ENTER();
    if (attributeType == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        HWS_REQUIRE(requestedElementCount <= MAX_REQUESTED);
        return get_descriptors(descriptor, (int) attributeName,
                               arrayOfElements == NULL ? 0 : (uint32_t) requestedElementCount, count, arrayOfElements);
    }
    int64_t most = 65536 / hws_dnn_type_bytes((int) attributeType);
    uint32_t requested =
        arrayOfElements == NULL ? 0 : (uint32_t) (requestedElementCount < most ? requestedElementCount : most);
    uint32_t found = 0;
    return hws_dnn_ask(descriptor->node, (int) attributeName, (int) attributeType, requested, 0, count, arrayOfElements,
                       NULL, &found);
}

/* The record of hwsDnnExecute, which varies in each address: the generated call knows only where a buffer begins. */
static cudnnStatus_t execute(const HwsDnnHandle *handle, const hws_dnn_node_t *plan, uint64_t workspace,
                             const int64_t *uids, void *const *pointers, uint32_t count) {
    enum { HEAD = 40 };
    uint8_t payload[HEAD + count * sizeof(HwsDnnBinding)];
    hws_vary_t varies[3 + count];
    uint64_t id = hws_dnn_id(plan);
    uint32_t bytes = count * (uint32_t) sizeof(HwsDnnBinding);
    memset(payload, 0, sizeof payload);
    memcpy(payload, handle, sizeof *handle);
    HWS_PUT(payload, 16, uint64_t, id);
    HWS_PUT(payload, 24, uint64_t, workspace);
    HWS_PUT(payload, 32, uint32_t, bytes);
    HWS_PUT(payload, 36, uint32_t, bytes);
    varies[0] = (hws_vary_t) {0, 8, false};
    varies[1] = (hws_vary_t) {8, 8, false};
    varies[2] = (hws_vary_t) {24, 8, true};
    for (uint32_t i = 0; i < count; i++) {
        HwsDnnBinding binding = {.uid = uids[i], .valueBytes = hws_dnn_value_bytes(plan, uids[i])};
        if (binding.valueBytes == 0) {
            binding.data[0] = (uintptr_t) pointers[i];
        } else {
            HWS_REQUIRE(pointers[i] != NULL);
            memcpy(binding.data, pointers[i], binding.valueBytes); /* on the host: documented */
        }
        uint32_t at = HEAD + i * (uint32_t) sizeof binding;
        memcpy(payload + at, &binding, sizeof binding);
        at += (uint32_t) offsetof(HwsDnnBinding, data);
        varies[3 + i] =
            binding.valueBytes == 0 ? (hws_vary_t) {at, 8, true} : (hws_vary_t) {at, sizeof binding.data, false};
    }
    int status =
        hws_probe(HWS_OPCODE_hwsDnnExecute, HWS_FLAG_CREDITED, payload, (uint32_t) sizeof payload, varies, 3 + count);
    return hws_cudnn_result(status);
}

HWS_EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                             cudnnBackendDescriptor_t variantPack) {
    HWS_ENTER();
    const HwsDnnHandle *state = HWS_DESCRIPTOR(HwsDnnHandle, handle);
    HWS_REQUIRE(executionPlan != NULL && executionPlan->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
                && executionPlan->node != NULL);
    HWS_REQUIRE(variantPack != NULL && variantPack->kind == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR
                && variantPack->finalized);
    const attribute_t *uids = find(variantPack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const attribute_t *pointers = find(variantPack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    const attribute_t *workspace = find(variantPack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    uint64_t address = 0;
    HWS_REQUIRE(uids != NULL && pointers != NULL && uids->count == pointers->count && uids->count <= MAX_BINDINGS);
    HWS_REQUIRE(uids->type == CUDNN_TYPE_INT64 && pointers->type == CUDNN_TYPE_VOID_PTR);
    if (workspace != NULL && workspace->count > 0) {
        HWS_REQUIRE(workspace->type == CUDNN_TYPE_VOID_PTR);
        memcpy(&address, workspace->values, sizeof address);
    }
    return execute(state, executionPlan->node, address, (const int64_t *) (const void *) uids->values,
                   (void *const *) (const void *) pointers->values, (uint32_t) uids->count);
}
