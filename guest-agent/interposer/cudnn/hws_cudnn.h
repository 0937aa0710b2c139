/* Included by every file of libcudnn.so: the entry of a call, descriptors, and their objects in the worker. */
#ifndef HWS_CUDNN_H
#define HWS_CUDNN_H

#include "hws_cudnn_types.h"
#include "hws_math.h"
#include "hws_wire.h"

#include <stddef.h>
#include <string.h>

#define HWS_DNN_MAX_CONTENT 65536u /* of hwsDnnMake */
#define HWS_DNN_MAX_PARTS 4096u    /* descriptors in a content */

/*
 * Kinds of objects in the worker: those of graphs have the number of cudnnBackendDescriptorType_t, the older ones these.
 */
enum {
    HWS_DNN_TENSOR = 1001,
    HWS_DNN_FILTER,
    HWS_DNN_CONVOLUTION,
    HWS_DNN_ACTIVATION,
    HWS_DNN_POOLING,
    HWS_DNN_DROPOUT,
    HWS_DNN_RNN,
    HWS_DNN_RNN_DATA,
    HWS_DNN_CTC,
    HWS_DNN_SPATIAL,
    HWS_DNN_OP_TENSOR,
    HWS_DNN_REDUCE,
    HWS_DNN_LRN
};

/* Attributes in the content of an older descriptor. */
enum { HWS_DNN_NUMBERS = 1, HWS_DNN_REALS, HWS_DNN_PARTS, HWS_DNN_HANDLE, HWS_DNN_ADDRESS };

/* An attribute as it travels: this head, then the values, padded to 8 bytes. Descriptors are ids of objects. */
typedef struct hws_dnn_attribute {
    int32_t name, type;
    int64_t count;
} hws_dnn_attribute_t;

/* An object in the worker, with the content that it was made from. */
typedef struct hws_dnn_node hws_dnn_node_t;

/* A content that is being written. Zero bytes are an empty one. */
typedef struct hws_dnn_content {
    uint8_t *bytes;
    uint32_t used, capacity;
    hws_dnn_node_t **parts; /* the objects whose ids it has; the content uses each */
    uint32_t part_count, part_capacity;
} hws_dnn_content_t;

/* Adds an attribute. Returns whether there was room. `parts` are the objects of a BACKEND_DESCRIPTOR attribute. */
bool hws_dnn_add(hws_dnn_content_t *content, int name, int type, int64_t count, const void *values,
                 hws_dnn_node_t *const *parts);

/* Frees a content, and ends its use of objects. */
void hws_dnn_clear(hws_dnn_content_t *content);

/* Bytes of a value of an attribute; 0 for an unknown type. */
uint32_t hws_dnn_type_bytes(int type);

/* Bytes of an element of a tensor; 0 for types of less than a byte. */
uint32_t hws_dnn_element_bytes(int type);

/*
 * Finds or makes the object with a content, and uses it. Waits for the worker only if no object has this content.
 * `shared` is false for objects that change, such as a cache of kernels.
 */
cudnnStatus_t hws_dnn_make(int kind, const hws_dnn_content_t *content, bool shared, hws_dnn_node_t **node_p);

void hws_dnn_use(hws_dnn_node_t *node);
void hws_dnn_release(hws_dnn_node_t *node);
uint64_t hws_dnn_id(const hws_dnn_node_t *node);

/*
 * Asks the worker for an attribute, once for the same question. Values are bytes, or objects (which the caller then
 * uses) for CUDNN_TYPE_BACKEND_DESCRIPTOR. `room` limits the values that are returned; *count_p has what the library
 * said.
 */
cudnnStatus_t hws_dnn_ask(hws_dnn_node_t *node, int name, int type, uint32_t requested, int kind, int64_t *count_p,
                          void *values, hws_dnn_node_t **nodes, uint32_t *node_count_p);

/* Bytes of the number that a tensor by value of the plan's graph has; 0 for a tensor in memory. */
uint32_t hws_dnn_value_bytes(const hws_dnn_node_t *plan, int64_t uid);

/* An older descriptor: the content, and its object when a call has needed it. */
typedef struct hws_dnn_legacy {
    int kind;
    hws_dnn_node_t *node;   /* NULL: the content has changed */
    HwsDnnTensor reference; /* as it travels */
    int64_t numbers[64];    /* tensors: type, dimensions, sizes, strides */
    int64_t *more;          /* in place of the array above, for sequences */
    uint32_t count;         /* 0: no content */
    double reals[3];
    uint32_t real_count;
    hws_dnn_node_t *part;
    uint64_t handle, address;
} hws_dnn_legacy_t;

hws_dnn_legacy_t *hws_dnn_legacy(const void *descriptor, int kind); /* NULL for another kind */
cudnnStatus_t hws_dnn_create(void *descriptor_p, int kind);
cudnnStatus_t hws_dnn_destroy(void *descriptor, int kind);
/* Replaces the numbers of a content. */
cudnnStatus_t hws_dnn_set(hws_dnn_legacy_t *legacy, const int64_t *numbers, uint32_t count);
void hws_dnn_changed(hws_dnn_legacy_t *legacy);
/* Makes the object of a descriptor that has none. */
cudnnStatus_t hws_dnn_resolve(hws_dnn_legacy_t *legacy);

/* Values of questions that have been answered: at most 6 words ask, at most 22 answer. */
bool hws_dnn_recall(const uint64_t *question, uint32_t words, void *answer, uint32_t bytes);
void hws_dnn_remember(const uint64_t *question, uint32_t words, const void *answer, uint32_t bytes);

/* The state of a handle; NULL for an invalid one. */
HwsDnnHandle *hws_dnn_handle(cudnnHandle_t handle);

/* Why no work can be issued to the handle's stream, or CUDNN_STATUS_SUCCESS. */
cudnnStatus_t hws_dnn_may_issue(const HwsDnnHandle *handle);

/* Logs once that a function has no implementation. Returns CUDNN_STATUS_NOT_SUPPORTED. */
cudnnStatus_t hws_unsupported(const char *name);

/* First line of every exported function that sends a record. */
#define HWS_ENTER() HWS_NEED(hws_math_gate() == 0, CUDNN_STATUS_NOT_INITIALIZED)

#define HWS_ENTER_CONTEXT() HWS_ENTER()

/* Returns CUDNN_STATUS_BAD_PARAM unless the condition holds. */
#define HWS_REQUIRE(condition) HWS_NEED(condition, CUDNN_STATUS_BAD_PARAM)

#define HWS_CHECK_HANDLE(kind, handle)                                                                                 \
    HWS_NEED(hws_math_service()->handle_data((kind), (uintptr_t) (handle)) != NULL, CUDNN_STATUS_NOT_INITIALIZED)

/* Leaves the calling function with a status that is not CUDNN_STATUS_SUCCESS. */
#define HWS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        cudnnStatus_t hws_tried = (call);                                                                              \
        if (__builtin_expect(hws_tried != CUDNN_STATUS_SUCCESS, 0)) {                                                  \
            return hws_tried;                                                                                          \
        }                                                                                                              \
    } while (0)

/* A descriptor as it travels: a handle, or the object with its content. Leaves the calling function if it has none. */
#define HWS_DESCRIPTOR(type, name) HWS_DESCRIPTOR_##type(name)
#define HWS_DESCRIPTOR_HwsDnnHandle(name)                                                                              \
    (__extension__({                                                                                                   \
        const HwsDnnHandle *hws_state = hws_dnn_handle(name);                                                          \
        if (__builtin_expect(hws_state == NULL, 0)) {                                                                  \
            return CUDNN_STATUS_NOT_INITIALIZED;                                                                       \
        }                                                                                                              \
        HWS_TRY(hws_dnn_may_issue(hws_state));                                                                         \
        hws_state;                                                                                                     \
    }))
#define HWS_DESCRIPTOR_HwsDnnQuery(name)                                                                               \
    (__extension__({                                                                                                   \
        const HwsDnnHandle *hws_state = hws_dnn_handle(name);                                                          \
        if (__builtin_expect(hws_state == NULL, 0)) {                                                                  \
            return CUDNN_STATUS_NOT_INITIALIZED;                                                                       \
        }                                                                                                              \
        (const HwsDnnQuery *) hws_state;                                                                               \
    }))
#define HWS_DNN_REFERENCE(type, kind, name)                                                                            \
    (__extension__({                                                                                                   \
        static const HwsDnnTensor hws_none;                                                                            \
        const HwsDnnTensor *hws_reference = &hws_none;                                                                 \
        if ((name) != NULL) {                                                                                          \
            hws_dnn_legacy_t *hws_found = hws_dnn_legacy((name), (kind));                                              \
            HWS_REQUIRE(hws_found != NULL);                                                                            \
            if (__builtin_expect(hws_found->node == NULL, 0)) {                                                        \
                HWS_TRY(hws_dnn_resolve(hws_found));                                                                   \
            }                                                                                                          \
            hws_reference = &hws_found->reference;                                                                     \
        }                                                                                                              \
        (const type *) hws_reference;                                                                                  \
    }))
#define HWS_DESCRIPTOR_HwsDnnTensor(name) HWS_DNN_REFERENCE(HwsDnnTensor, HWS_DNN_TENSOR, name)
#define HWS_DESCRIPTOR_HwsDnnFilter(name) HWS_DNN_REFERENCE(HwsDnnFilter, HWS_DNN_FILTER, name)
#define HWS_DESCRIPTOR_HwsDnnConvolution(name) HWS_DNN_REFERENCE(HwsDnnConvolution, HWS_DNN_CONVOLUTION, name)
#define HWS_DESCRIPTOR_HwsDnnActivation(name) HWS_DNN_REFERENCE(HwsDnnActivation, HWS_DNN_ACTIVATION, name)
#define HWS_DESCRIPTOR_HwsDnnPooling(name) HWS_DNN_REFERENCE(HwsDnnPooling, HWS_DNN_POOLING, name)
#define HWS_DESCRIPTOR_HwsDnnDropout(name) HWS_DNN_REFERENCE(HwsDnnDropout, HWS_DNN_DROPOUT, name)
#define HWS_DESCRIPTOR_HwsDnnRnn(name) HWS_DNN_REFERENCE(HwsDnnRnn, HWS_DNN_RNN, name)
#define HWS_DESCRIPTOR_HwsDnnRnnData(name) HWS_DNN_REFERENCE(HwsDnnRnnData, HWS_DNN_RNN_DATA, name)
#define HWS_DESCRIPTOR_HwsDnnCtc(name) HWS_DNN_REFERENCE(HwsDnnCtc, HWS_DNN_CTC, name)
#define HWS_DESCRIPTOR_HwsDnnSpatial(name) HWS_DNN_REFERENCE(HwsDnnSpatial, HWS_DNN_SPATIAL, name)
#define HWS_DESCRIPTOR_HwsDnnOpTensor(name) HWS_DNN_REFERENCE(HwsDnnOpTensor, HWS_DNN_OP_TENSOR, name)
#define HWS_DESCRIPTOR_HwsDnnReduce(name) HWS_DNN_REFERENCE(HwsDnnReduce, HWS_DNN_REDUCE, name)
#define HWS_DESCRIPTOR_HwsDnnLrn(name) HWS_DNN_REFERENCE(HwsDnnLrn, HWS_DNN_LRN, name)

/* A number on the host, of a scaling factor's size. */
#define HWS_SCALAR(type, pointer, bytes, is_read) hws_dnn_scalar((pointer), (bytes), &(type) {0})

static inline const HwsScalar *hws_dnn_scalar(const void *pointer, uint64_t bytes, HwsScalar *scalar) {
    if (pointer == NULL || bytes == 0 || bytes > sizeof scalar->value) {
        return NULL;
    }
    scalar->valueBytes = (uint32_t) bytes;
    memcpy(scalar->value, pointer, bytes);
    return scalar;
}

#endif
