/*
 * Objects of the worker by their content. Equal contents have one object, so that a program that makes the same
 * descriptors in each step waits for the worker in the first one only. Objects without a user stay until there are many.
 */
#include "hws_cudnn.h"

#include "hws_cudnn_calls.h"

#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 8192u     /* a power of two */
#define MOST_UNUSED 4096u /* objects that no descriptor uses; MAX_OBJECTS of the worker is larger */
#define MAX_VALUES 256    /* tensors by value of a graph */
#define MAX_ANSWER 65536u /* of hwsDnnAsk */

typedef struct answer {
    struct answer *next;
    int name, type;
    uint32_t requested, bytes, node_count;
    int64_t count;
    hws_dnn_node_t **nodes;
    uint8_t values[];
} answer_t;

typedef struct value {
    int64_t uid;
    uint32_t bytes;
} value_t;

struct hws_dnn_node {
    hws_dnn_node_t *next;          /* in the bucket */
    hws_dnn_node_t *newer, *older; /* among those without a user */
    uint64_t hash, id;
    uint32_t uses;
    int kind;
    bool shared;
    hws_dnn_node_t *graph; /* the graph of operations that it belongs to */
    hws_dnn_node_t **parts;
    uint32_t part_count;
    answer_t *answers;
    value_t *values; /* of a graph: its tensors by value */
    uint32_t value_count;
    uint32_t bytes;
    uint8_t content[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below, and of users and answers */
static hws_dnn_node_t *buckets[BUCKETS];
static hws_dnn_node_t *oldest, *newest; /* without a user */
static uint32_t unused;
static _Atomic uint64_t last_id;

uint64_t hws_dnn_id(const hws_dnn_node_t *node) {
    return node->id;
}

uint32_t hws_dnn_type_bytes(int type) {
    switch (type) {
        case CUDNN_TYPE_BOOLEAN: /* bool */
        case CUDNN_TYPE_CHAR:
            return 1;
        case CUDNN_TYPE_HANDLE:
        case CUDNN_TYPE_INT64:
        case CUDNN_TYPE_DOUBLE:
        case CUDNN_TYPE_VOID_PTR:
        case CUDNN_TYPE_BACKEND_DESCRIPTOR:
            return 8;
        case CUDNN_TYPE_FRACTION: /* numerator and denominator, int64_t */
            return 16;
        default:
            return type >= CUDNN_TYPE_HANDLE && type <= CUDNN_TYPE_MOE_GROUPED_MATMUL_MODE ? 4 : 0; /* enumerations */
    }
}

uint32_t hws_dnn_element_bytes(int type) {
    switch (type) {
        case CUDNN_DATA_INT8:
        case CUDNN_DATA_UINT8:
        case CUDNN_DATA_BOOLEAN:
        case CUDNN_DATA_FP8_E4M3:
        case CUDNN_DATA_FP8_E5M2:
        case CUDNN_DATA_FP8_E8M0:
            return 1;
        case CUDNN_DATA_HALF:
        case CUDNN_DATA_BFLOAT16:
            return 2;
        case CUDNN_DATA_FLOAT:
        case CUDNN_DATA_INT32:
        case CUDNN_DATA_UINT32:
        case CUDNN_DATA_INT8x4:
        case CUDNN_DATA_UINT8x4:
        case CUDNN_DATA_FAST_FLOAT_FOR_FP8:
            return 4;
        case CUDNN_DATA_DOUBLE:
        case CUDNN_DATA_INT64:
        case CUDNN_DATA_COMPLEX_FP32:
            return 8;
        case CUDNN_DATA_COMPLEX_FP64:
            return 16;
        case CUDNN_DATA_INT8x32:
            return 32;
        default:
            return 0;
    }
}

/* Makes room for more bytes in an array. */
static bool grow(void **array, uint32_t *capacity, uint32_t wanted, uint32_t most, size_t size) {
    if (wanted <= *capacity) {
        return true;
    }
    uint32_t larger = *capacity < 64 ? 64 : *capacity;
    while (larger < wanted) {
        larger *= 2;
    }
    void *made = wanted > most ? NULL : realloc(*array, larger * size);
    if (made == NULL) {
        return false;
    }
    *array = made;
    *capacity = larger;
    return true;
}

bool hws_dnn_add(hws_dnn_content_t *content, int name, int type, int64_t count, const void *values,
                 hws_dnn_node_t *const *parts) {
    uint32_t bytes = hws_dnn_type_bytes(type);
    if (bytes == 0 || count < 0 || count > HWS_DNN_MAX_CONTENT
        || (parts != NULL && (uint64_t) count + content->part_count > HWS_DNN_MAX_PARTS)) {
        return false;
    }
    hws_dnn_attribute_t head = {name, type, count};
    uint32_t length = (uint32_t) count * bytes, whole = (uint32_t) sizeof head + hws_padded(length);
    if (whole > HWS_DNN_MAX_CONTENT
        || !grow((void **) &content->bytes, &content->capacity, content->used + whole, HWS_DNN_MAX_CONTENT, 1)
        || (parts != NULL
            && !grow((void **) &content->parts, &content->part_capacity, content->part_count + (uint32_t) count,
                     HWS_DNN_MAX_PARTS, sizeof *parts))) {
        return false;
    }
    uint8_t *at = content->bytes + content->used;
    memset(at, 0, whole);
    memcpy(at, &head, sizeof head);
    if (parts == NULL && length > 0) {
        memcpy(at + sizeof head, values, length);
    }
    for (int64_t i = 0; parts != NULL && i < count; i++) {
        memcpy(at + sizeof head + 8 * i, &parts[i]->id, 8);
        hws_dnn_use(parts[i]);
        content->parts[content->part_count++] = parts[i];
    }
    content->used += whole;
    return true;
}

void hws_dnn_clear(hws_dnn_content_t *content) {
    for (uint32_t i = 0; i < content->part_count; i++) {
        hws_dnn_release(content->parts[i]);
    }
    free(content->parts);
    free(content->bytes);
    memset(content, 0, sizeof *content);
}

static uint64_t hash_of(int kind, const uint8_t *bytes, uint32_t count) {
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t) (uint32_t) kind;
    for (uint32_t i = 0; i < count; i += 8) { /* whole words */
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static hws_dnn_node_t *find(int kind, uint64_t hash, const hws_dnn_content_t *content) {
    for (hws_dnn_node_t *node = buckets[hash % BUCKETS]; node != NULL; node = node->next) {
        if (node->hash == hash && node->kind == kind && node->bytes == content->used
            && memcmp(node->content, content->bytes, content->used) == 0) {
            return node;
        }
    }
    return NULL;
}

static void use(hws_dnn_node_t *node) {
    if (node->uses++ == 0 && node->shared) {
        *(node->older == NULL ? &oldest : &node->older->newer) = node->newer;
        *(node->newer == NULL ? &newest : &node->newer->older) = node->older;
        node->newer = node->older = NULL;
        unused--;
    }
}

static void release(hws_dnn_node_t *node);

static void end(hws_dnn_node_t *node) {
    if (hws_math_gate() == 0) {
        hws_call_hwsDnnDrop(node->id); /* the worker keeps it as long as others of its objects need it */
    }
    for (uint32_t i = 0; i < node->part_count; i++) {
        release(node->parts[i]);
    }
    for (answer_t *answer = node->answers, *next; answer != NULL; answer = next) {
        next = answer->next;
        for (uint32_t i = 0; i < answer->node_count; i++) {
            release(answer->nodes[i]);
        }
        free(answer->nodes);
        free(answer);
    }
    free(node->values);
    free(node->parts);
    free(node);
}

static void evict(hws_dnn_node_t *node) {
    hws_dnn_node_t **at = &buckets[node->hash % BUCKETS];
    while (*at != node) {
        at = &(*at)->next;
    }
    *at = node->next;
    end(node);
}

static void release(hws_dnn_node_t *node) {
    if (--node->uses > 0) {
        return;
    }
    if (!node->shared) {
        end(node);
        return;
    }
    node->older = newest;
    node->newer = NULL;
    *(newest == NULL ? &oldest : &newest->newer) = node;
    newest = node;
    unused++;
    if (unused > MOST_UNUSED) {
        hws_dnn_node_t *first = oldest;
        use(first); /* takes it out of the list */
        evict(first);
    }
}

void hws_dnn_use(hws_dnn_node_t *node) {
    pthread_mutex_lock(&lock);
    use(node);
    pthread_mutex_unlock(&lock);
}

void hws_dnn_release(hws_dnn_node_t *node) {
    if (node != NULL) {
        pthread_mutex_lock(&lock);
        release(node);
        pthread_mutex_unlock(&lock);
    }
}

/* A number of an attribute of the content; `otherwise` where it has none. */
static int64_t number(const hws_dnn_node_t *node, int name, int64_t otherwise) {
    for (uint32_t at = 0; at < node->bytes;) {
        hws_dnn_attribute_t head;
        memcpy(&head, node->content + at, sizeof head);
        uint32_t bytes = hws_dnn_type_bytes(head.type), length = (uint32_t) head.count * bytes;
        if (head.name == name && head.count > 0 && bytes <= 8) {
            int64_t value = 0;
            memcpy(&value, node->content + at + sizeof head, bytes); /* little-endian, and none is negative */
            return value;
        }
        at += (uint32_t) sizeof head + hws_padded(length);
    }
    return otherwise;
}

static uint32_t bytes_of(const hws_dnn_node_t *graph, int64_t uid) {
    for (uint32_t i = 0; i < graph->value_count; i++) {
        if (graph->values[i].uid == uid) {
            return graph->values[i].bytes;
        }
    }
    return 0;
}

/* Collects the tensors by value below a node, each once: many operations may have the same one. */
static void collect(hws_dnn_node_t *graph, const hws_dnn_node_t *node) {
    int64_t uid = number(node, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    if (node->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR && number(node, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0
        && bytes_of(graph, uid) == 0 && graph->value_count < MAX_VALUES) {
        uint32_t bytes = hws_dnn_element_bytes((int) number(node, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT));
        graph->values[graph->value_count].uid = uid;
        graph->values[graph->value_count++].bytes = bytes == 0 || bytes > 16 ? 4 : bytes; /* one number */
    }
    for (uint32_t i = 0; i < node->part_count; i++) {
        collect(graph, node->parts[i]);
    }
}

static hws_dnn_node_t *allocate(int kind, const hws_dnn_content_t *content) {
    uint32_t bytes = content == NULL ? 0 : content->used, parts = content == NULL ? 0 : content->part_count;
    hws_dnn_node_t *node = calloc(1, sizeof *node + bytes);
    hws_dnn_node_t **array = parts == 0 ? NULL : malloc(parts * sizeof *array);
    if (node == NULL || (parts > 0 && array == NULL)) {
        free(node);
        free(array);
        return NULL;
    }
    node->kind = kind;
    node->uses = 1;
    node->bytes = bytes;
    node->parts = array;
    node->part_count = parts;
    if (bytes > 0) {
        memcpy(node->content, content->bytes, bytes);
    }
    for (uint32_t i = 0; i < parts; i++) {
        array[i] = content->parts[i];
        node->graph = node->graph == NULL ? array[i]->graph : node->graph;
    }
    if (kind == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
        node->graph = node;
        node->values = calloc(MAX_VALUES, sizeof *node->values);
        if (node->values == NULL) {
            free(node->parts);
            free(node);
            return NULL;
        }
        collect(node, node);
    }
    return node;
}

cudnnStatus_t hws_dnn_make(int kind, const hws_dnn_content_t *content, bool shared, hws_dnn_node_t **node_p) {
    uint64_t hash = hash_of(kind, content->bytes, content->used);
    pthread_mutex_lock(&lock);
    hws_dnn_node_t *node = shared ? find(kind, hash, content) : NULL;
    if (node != NULL) {
        use(node);
    }
    pthread_mutex_unlock(&lock);
    if (node != NULL) {
        *node_p = node;
        return CUDNN_STATUS_SUCCESS;
    }
    node = allocate(kind, content);
    if (node == NULL) {
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    node->hash = hash;
    node->id = atomic_fetch_add(&last_id, 1) + 1;
    cudnnStatus_t status = hws_call_hwsDnnMake(node->id, kind, content->used, content->bytes);
    if (status != CUDNN_STATUS_SUCCESS) {
        free(node->values);
        free(node->parts);
        free(node);
        return status;
    }
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < node->part_count; i++) {
        use(node->parts[i]);
    }
    hws_dnn_node_t *other = shared ? find(kind, hash, content) : NULL;
    if (other != NULL) { /* another thread has made it meanwhile */
        use(other);
        end(node);
        node = other;
    } else if (shared) {
        node->shared = true;
        node->next = buckets[hash % BUCKETS];
        buckets[hash % BUCKETS] = node;
    }
    pthread_mutex_unlock(&lock);
    *node_p = node;
    return CUDNN_STATUS_SUCCESS;
}

/*
 * Copies an answer out. The caller holds the lock. A program may name more elements than its array has: NVIDIA's
 * cudnn_frontend asks for the count first, and makes room for that.
 */
static void give(const answer_t *answer, int64_t *count_p, void *values, hws_dnn_node_t **nodes,
                 uint32_t *node_count_p) {
    *count_p = answer->count;
    if (answer->bytes > 0 && values != NULL) {
        memcpy(values, answer->values, answer->bytes);
    }
    *node_count_p = answer->node_count;
    for (uint32_t i = 0; i < answer->node_count; i++) {
        use(answer->nodes[i]);
        nodes[i] = answer->nodes[i];
    }
}

static answer_t *known(const hws_dnn_node_t *node, int name, int type, uint32_t requested) {
    answer_t *answer = node->answers;
    while (answer != NULL && (answer->name != name || answer->type != type || answer->requested != requested)) {
        answer = answer->next;
    }
    return answer;
}

/* Makes the objects that an answer consists of; NULL when there is no memory. */
static hws_dnn_node_t **derive(int kind, uint64_t first, uint32_t count) {
    hws_dnn_node_t **nodes = calloc(count == 0 ? 1 : count, sizeof(hws_dnn_node_t *));
    for (uint32_t i = 0; nodes != NULL && i < count; i++) {
        nodes[i] = allocate(kind, NULL);
        hws_dnn_node_t **part = nodes[i] == NULL ? NULL : malloc(sizeof *part); /* its graph */
        if (part == NULL) {
            free(nodes[i]);
            for (uint32_t j = 0; j < i; j++) {
                free(nodes[j]->parts);
                free(nodes[j]);
            }
            free(nodes);
            return NULL;
        }
        nodes[i]->id = first + i;
        nodes[i]->parts = part;
    }
    return nodes;
}

cudnnStatus_t hws_dnn_ask(hws_dnn_node_t *node, int name, int type, uint32_t requested, int kind, int64_t *count_p,
                          void *values, hws_dnn_node_t **nodes, uint32_t *node_count_p) {
    bool changes = node->kind == CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR;
    pthread_mutex_lock(&lock);
    const answer_t *found = changes ? NULL : known(node, name, type, requested);
    if (found != NULL) {
        give(found, count_p, values, nodes, node_count_p);
    }
    pthread_mutex_unlock(&lock);
    if (found != NULL) {
        return CUDNN_STATUS_SUCCESS;
    }
    bool objects = type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
    uint64_t room = objects ? 0 : (uint64_t) requested * hws_dnn_type_bytes(type);
    HWS_REQUIRE(room <= MAX_ANSWER && requested <= HWS_DNN_MAX_PARTS * 16);
    answer_t *answer = calloc(1, sizeof *answer + room);
    if (answer == NULL) {
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    *answer = (answer_t) {.name = name, .type = type, .requested = requested};
    uint64_t first = objects ? atomic_fetch_add(&last_id, requested) + 1 : 0;
    long long count = 0;
    cudnnStatus_t status = hws_call_hwsDnnAsk(node->id, name, type, requested, kind, first, (uint32_t) room, &count,
                                              answer->values, &answer->bytes);
    if (status != CUDNN_STATUS_SUCCESS) {
        free(answer);
        return status;
    }
    answer->count = count;
    uint32_t given = count<0 ? 0 : count>(long long) requested ? requested : (uint32_t) count;
    if (!objects && answer->bytes > given * hws_dnn_type_bytes(type)) {
        answer->bytes = given * hws_dnn_type_bytes(type);
    }
    if (objects) {
        answer->node_count = given;
        answer->nodes = derive(kind, first, answer->node_count);
        if (answer->nodes == NULL) {
            free(answer);
            return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
        }
    }
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < answer->node_count; i++) {
        hws_dnn_node_t *made = answer->nodes[i];
        if (node->graph != NULL && node->graph != node) { /* a graph does not use itself through its answers */
            made->graph = made->parts[made->part_count++] = node->graph;
            use(node->graph);
        }
    }
    answer->next = node->answers; /* an equal answer of another thread stays, too: it has users */
    node->answers = answer;
    give(answer, count_p, values, nodes, node_count_p);
    pthread_mutex_unlock(&lock);
    return CUDNN_STATUS_SUCCESS;
}

uint32_t hws_dnn_value_bytes(const hws_dnn_node_t *plan, int64_t uid) {
    return plan->graph == NULL ? 0 : bytes_of(plan->graph, uid);
}
