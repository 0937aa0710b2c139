/*
 * User objects: counted references to an object of the program, which graphs can hold. The last release runs the
 * destructor. An executable graph has references to the objects of its graph and of the graphs inside. It releases them
 * after its last launch; an update replaces them by those of the other graph.
 */
#include "graph.h"

#include <stdlib.h>

struct hws_user_object {
    uint64_t handle;
    _Atomic unsigned references;
    CUhostFn destroy;
    void *pointer;
};

/* A graph's references to one object. */
struct hws_retained {
    struct hws_retained *next;
    hws_user_object_t *object;
    unsigned count;
};

static hws_user_object_t *object_get(CUuserObject object) {
    return hws_handle_data(HWS_KIND_USER_OBJECT, (uint64_t) (uintptr_t) object);
}

/* Releases references; false when there are fewer. */
static bool give_back(hws_user_object_t *object, unsigned count) {
    unsigned before = atomic_load(&object->references);
    do {
        if (before < count) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&object->references, &before, before - count));
    if (before == count) {
        CUhostFn destroy = object->destroy;
        void *pointer = object->pointer;
        hws_handle_drop(HWS_KIND_USER_OBJECT, object->handle);
        destroy(pointer);
    }
    return true;
}

void hws_retained_drop(struct hws_retained *retained) {
    while (retained != NULL) {
        struct hws_retained *next = retained->next;
        give_back(retained->object, retained->count);
        free(retained);
        retained = next;
    }
}

struct hws_retained *hws_retained_join(struct hws_retained *some, struct hws_retained *others) {
    struct hws_retained **end = &some;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = others;
    return some;
}

CUresult hws_retained_share(const struct hws_retained *from, struct hws_retained **to_p) {
    *to_p = NULL;
    for (; from != NULL; from = from->next) {
        struct hws_retained *copy = malloc(sizeof *copy);
        if (copy == NULL) {
            hws_retained_drop(*to_p);
            *to_p = NULL;
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *copy = (struct hws_retained) {.next = *to_p, .object = from->object, .count = 1};
        atomic_fetch_add(&from->object->references, 1);
        *to_p = copy;
    }
    return CUDA_SUCCESS;
}

CUresult hws_retained_collect(const hws_graph_t *graph, struct hws_retained **all_p) {
    struct hws_retained *own;
    HWS_TRY(hws_retained_share(graph->retained, &own));
    *all_p = hws_retained_join(own, *all_p);
    for (size_t i = 0; i < graph->count; i++) {
        const hws_graph_t *inner;
        for (size_t at = 0; (inner = hws_params_inner(&graph->nodes[i]->params, at)) != NULL; at++) {
            HWS_TRY(hws_retained_collect(inner, all_p));
        }
    }
    return CUDA_SUCCESS;
}

static void drop_later(void *retained) {
    hws_retained_drop(retained);
}

void hws_retained_drop_behind(struct hws_retained *retained, CUstream stream) {
    if (retained == NULL) {
        return;
    }
    if (hws_handle_legal(HWS_KIND_STREAM, (uint64_t) (uintptr_t) stream)
        && cuLaunchHostFunc(stream, drop_later, retained) == CUDA_SUCCESS) {
        return;
    }
    (void) cuCtxSynchronize(); /* the stream no longer exists, but its work may be unfinished */
    hws_retained_drop(retained);
}

HWS_EXPORT CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
                                       unsigned int initialRefcount, unsigned int flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(object_out != NULL && destroy != NULL && initialRefcount != 0 && initialRefcount <= INT32_MAX
                && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    hws_user_object_t *object = calloc(1, sizeof *object);
    uint64_t handle = object == NULL ? 0 : hws_handle_new(HWS_KIND_USER_OBJECT);
    if (handle == 0) {
        free(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *object = (hws_user_object_t) {.handle = handle, .references = initialRefcount, .destroy = destroy, .pointer = ptr};
    hws_handle_attach(HWS_KIND_USER_OBJECT, handle, object);
    *object_out = (CUuserObject) (uintptr_t) handle;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
    HWS_ENTER_LOCAL();
    hws_user_object_t *known = object_get(object);
    HWS_REQUIRE(known != NULL && count != 0 && count <= INT32_MAX);
    atomic_fetch_add(&known->references, count);
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
    HWS_ENTER_LOCAL();
    hws_user_object_t *known = object_get(object);
    HWS_REQUIRE(known != NULL && count != 0 && give_back(known, count));
    return CUDA_SUCCESS;
}

static CUresult retain(CUgraph handle, CUuserObject object, unsigned count, bool move) {
    hws_user_object_t *known = object_get(object);
    HWS_TAKE_GRAPH(graph, handle);
    HWS_REQUIRE(known != NULL);
    struct hws_retained *retained = graph->retained;
    while (retained != NULL && retained->object != known) {
        retained = retained->next;
    }
    if (retained == NULL) {
        retained = malloc(sizeof *retained);
        if (retained == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *retained = (struct hws_retained) {.next = graph->retained, .object = known};
        graph->retained = retained;
    }
    retained->count += count;
    if (!move) {
        atomic_fetch_add(&known->references, count);
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                            unsigned int flags) {
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(count != 0 && count <= INT32_MAX && (flags & ~(unsigned) CU_GRAPH_USER_OBJECT_MOVE) == 0);
    hws_graph_lock();
    CUresult result = retain(graph, object, count, (flags & CU_GRAPH_USER_OBJECT_MOVE) != 0);
    hws_graph_unlock();
    return result;
}

/* Removes references from a graph; *known_p receives their object. */
static CUresult take_back(CUgraph handle, CUuserObject object, unsigned count, hws_user_object_t **known_p) {
    *known_p = object_get(object);
    HWS_TAKE_GRAPH(graph, handle);
    HWS_REQUIRE(*known_p != NULL);
    struct hws_retained **link = &graph->retained;
    while (*link != NULL && (*link)->object != *known_p) {
        link = &(*link)->next;
    }
    struct hws_retained *retained = *link;
    HWS_REQUIRE(retained != NULL && retained->count >= count);
    retained->count -= count;
    if (retained->count == 0) {
        *link = retained->next;
        free(retained);
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
    hws_user_object_t *known;
    HWS_ENTER_LOCAL();
    HWS_REQUIRE(count != 0);
    hws_graph_lock();
    CUresult result = take_back(graph, object, count, &known);
    hws_graph_unlock();
    if (result == CUDA_SUCCESS) {
        give_back(known, count); /* without the lock: the destructor is the program's */
    }
    return result;
}
