/* Memory that the device reads and writes by itself. */
#include "hws_rdma_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* Verbs let the other end write only what this end could write as well. */
static int verbs_access(uint32_t access) {
    return ((access & (HWS_RDMA_FILLED | HWS_RDMA_PEER_WRITES)) != 0 ? IBV_ACCESS_LOCAL_WRITE : 0)
        | ((access & HWS_RDMA_PEER_WRITES) != 0 ? IBV_ACCESS_REMOTE_WRITE : 0)
        | ((access & HWS_RDMA_PEER_READS) != 0 ? IBV_ACCESS_REMOTE_READ : 0);
}

/* Enters a registration. Of one that is NULL, errno has the reason. */
static hws_rdma_memory_t *enter(hws_rdma_t *rdma, struct ibv_mr *region, uint64_t base, uint64_t bytes, char *error,
                                size_t capacity) {
    if (region == NULL) {
        hws_rdma_say_refused(rdma, bytes, error, capacity);
        return NULL;
    }
    hws_rdma_memory_t *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        snprintf(error, capacity, "no memory for RDMA");
        rdma->verbs->ibv_dereg_mr(region);
        return NULL;
    }
    memory->region = region;
    memory->base = base;
    memory->bytes = bytes;
    pthread_mutex_lock(&rdma->send_lock);
    memory->next = rdma->memories;
    if (memory->next != NULL) {
        memory->next->previous = memory;
    }
    rdma->memories = memory;
    pthread_mutex_unlock(&rdma->send_lock);
    return memory;
}

hws_rdma_memory_t *hws_rdma_register(hws_rdma_t *rdma, void *base, uint64_t bytes, uint32_t access, char *error_p,
                                     size_t error_capacity) {
    struct ibv_mr *region = rdma->verbs->ibv_reg_mr(rdma->domain, base, bytes, verbs_access(access));
    return enter(rdma, region, (uint64_t) (uintptr_t) base, bytes, error_p, error_capacity);
}

hws_rdma_memory_t *hws_rdma_register_device(hws_rdma_t *rdma, uint64_t base, uint64_t bytes, int32_t descriptor,
                                            char *error_p, size_t error_capacity) {
    const hws_verbs_t *verbs = rdma->verbs;
    if (descriptor < 0) {
        return hws_rdma_register(rdma, (void *) (uintptr_t) base, bytes, HWS_RDMA_FILLED, error_p, error_capacity);
    }
    if (verbs->ibv_reg_dmabuf_mr == NULL) {
        snprintf(error_p, error_capacity, "libibverbs is older than version 34 of rdma-core: it takes no dma-buf");
        return NULL;
    }
    struct ibv_mr *region =
        verbs->ibv_reg_dmabuf_mr(rdma->domain, 0, bytes, base, descriptor, verbs_access(HWS_RDMA_FILLED));
    return enter(rdma, region, base, bytes, error_p, error_capacity);
}

uint32_t hws_rdma_key(const hws_rdma_memory_t *memory) {
    return memory->region->rkey;
}

void hws_rdma_unregister(hws_rdma_t *rdma, hws_rdma_memory_t *memory, uint32_t limit_ms) {
    pthread_mutex_lock(&rdma->send_lock);
    hws_rdma_await(rdma, memory->last, limit_ms);
    if (memory->previous != NULL) {
        memory->previous->next = memory->next;
    } else {
        rdma->memories = memory->next;
    }
    if (memory->next != NULL) {
        memory->next->previous = memory->previous;
    }
    pthread_mutex_unlock(&rdma->send_lock);
    rdma->verbs->ibv_dereg_mr(memory->region);
    free(memory);
}
