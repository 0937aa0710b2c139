#include "device.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#undef ibv_reg_mr

HWS_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
    hws_domain_t *domain = calloc(1, sizeof *domain);
    if (domain == NULL) {
        return NULL;
    }
    domain->pd.context = context;
    return &domain->pd;
}

HWS_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd) {
    hws_domain_t *domain = (hws_domain_t *) pd;
    if (domain->users > 0) {
        return EBUSY;
    }
    free(domain);
    return 0;
}

/* Whether the process has the pages, as the kernel finds out when it pins them. Needs Linux 5.14. */
static bool has_pages(void *address, size_t bytes) {
    uintptr_t first = (uintptr_t) address & ~(uintptr_t) 4095;
    return madvise((void *) first, (uintptr_t) address + bytes - first, MADV_POPULATE_READ) == 0;
}

HWS_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t bytes, uint64_t base,
                                           unsigned access) {
    hws_context_t *context = hws_context_of(pd->context);
    access &= ~(unsigned) IBV_ACCESS_OPTIONAL_RANGE;
    unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    if (hws_device_is_inherited(context) || bytes == 0 || (uintptr_t) address + bytes < bytes || base + bytes < bytes
        || ((access & writes) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0)) {
        errno = EINVAL;
        return NULL;
    }
    if (!has_pages(address, bytes)) {
        errno = EFAULT;
        return NULL;
    }
    hws_region_t *region = calloc(1, sizeof *region);
    if (region == NULL) {
        return NULL;
    }
    region->mr = (struct ibv_mr) {.context = pd->context, .pd = pd, .addr = address, .length = bytes};
    region->base = base;
    region->access = access;
    pthread_mutex_lock(&hws_device_lock);
    /* Neither key guesses the other one. */
    context->next_key += 0x100;
    region->mr.lkey = context->next_key | 0x11;
    region->mr.rkey = context->next_key | 0x22;
    region->next = context->regions;
    context->regions = region;
    ((hws_domain_t *) pd)->users++;
    pthread_mutex_unlock(&hws_device_lock);
    return &region->mr;
}

HWS_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t bytes, int access) {
    return ibv_reg_mr_iova2(pd, address, bytes, (uintptr_t) address, (unsigned) access);
}

/* Any file that can be mapped serves as a dma-buf. */
HWS_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t base, int file,
                                            int access) {
    uint8_t *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t) offset);
    if (mapped == MAP_FAILED) {
        return NULL;
    }
    struct ibv_mr *mr = ibv_reg_mr_iova2(pd, mapped, bytes, base, (unsigned) access);
    if (mr == NULL) {
        munmap(mapped, bytes);
        return NULL;
    }
    ((hws_region_t *) mr)->is_mapped = true;
    return mr;
}

HWS_EXPORT int ibv_dereg_mr(struct ibv_mr *mr) {
    hws_context_t *context = hws_context_of(mr->context);
    if (!hws_device_is_inherited(context)) {
        /* Under the lock no engine copies: afterwards the program may free the memory. */
        pthread_mutex_lock(&hws_device_lock);
        for (hws_region_t **at = &context->regions; *at != NULL; at = &(*at)->next) {
            if (&(*at)->mr == mr) {
                *at = (*at)->next;
                break;
            }
        }
        ((hws_domain_t *) mr->pd)->users--;
        pthread_mutex_unlock(&hws_device_lock);
    }
    if (((hws_region_t *) mr)->is_mapped) {
        munmap(mr->addr, mr->length);
    }
    free(mr);
    return 0;
}

uint8_t *hws_region_find(hws_context_t *context, struct ibv_pd *pd, uint32_t key, uint64_t address, uint64_t bytes,
                         unsigned access) {
    unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    for (hws_region_t *region = context->regions; region != NULL; region = region->next) {
        if ((access & remote) != 0 ? region->mr.rkey != key : region->mr.lkey != key) {
            continue;
        }
        uint64_t offset = address - region->base;
        if (region->mr.pd != pd || (region->access & access) != access || address < region->base
            || offset > region->mr.length || bytes > region->mr.length - offset) {
            return NULL;
        }
        return (uint8_t *) region->mr.addr + offset;
    }
    return NULL;
}
