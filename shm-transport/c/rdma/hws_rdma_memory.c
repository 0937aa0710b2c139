/* Memory that the device reads and writes by itself. */
#include "hws_rdma_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hws_rdma_memory_t *hws_rdma_register(hws_rdma_t *rdma, void *base, uint64_t bytes, bool writable, char *error_p,
                                     size_t error_capacity) {
    hws_rdma_memory_t *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        snprintf(error_p, error_capacity, "no memory for RDMA");
        return NULL;
    }
    memory->region = rdma->verbs->ibv_reg_mr(rdma->domain, base, bytes,
                                             writable ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0);
    if (memory->region == NULL) {
        snprintf(error_p, error_capacity, "%s", strerror(errno));
        free(memory);
        return NULL;
    }
    pthread_mutex_lock(&rdma->send_lock);
    memory->next = rdma->memories;
    if (memory->next != NULL) {
        memory->next->previous = memory;
    }
    rdma->memories = memory;
    pthread_mutex_unlock(&rdma->send_lock);
    return memory;
}

uint32_t hws_rdma_key(const hws_rdma_memory_t *memory) {
    return memory->region->rkey;
}

void hws_rdma_unregister(hws_rdma_t *rdma, hws_rdma_memory_t *memory, uint32_t limit_ms) {
    int64_t until_ms = hws_rdma_now_ms() + limit_ms;
    pthread_mutex_lock(&rdma->send_lock);
    while (memory->last > rdma->completed && !atomic_load(&rdma->lost)) {
        if (hws_rdma_reap(rdma)) {
            continue;
        }
        if (hws_rdma_now_ms() >= until_ms) {
            break;
        }
        pthread_mutex_unlock(&rdma->send_lock); /* others may send meanwhile */
        hws_rdma_nap();
        pthread_mutex_lock(&rdma->send_lock);
    }
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
