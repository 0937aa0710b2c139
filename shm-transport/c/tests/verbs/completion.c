#include "device.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* For so long ibv_destroy_cq() waits for events without an ibv_ack_cq_events(). Adapters wait for ever. */
#define ACKNOWLEDGE_SECONDS 5

HWS_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ibv) {
    hws_context_t *context = hws_context_of(ibv);
    hws_channel_t *channel = calloc(1, sizeof *channel);
    if (channel == NULL) {
        return NULL;
    }
    channel->channel = (struct ibv_comp_channel) {.context = ibv, .fd = -1};
    pthread_mutex_lock(&hws_device_lock);
    for (int i = 0; i < HWS_DEVICE_CHANNELS && channel->channel.fd < 0; i++) {
        channel->channel.fd = context->channels[i];
        context->channels[i] = -1;
    }
    pthread_mutex_unlock(&hws_device_lock);
    if (channel->channel.fd < 0) {
        channel->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    }
    if (channel->channel.fd < 0) {
        free(channel);
        return NULL;
    }
    return &channel->channel;
}

HWS_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv) {
    hws_channel_t *channel = (hws_channel_t *) ibv;
    if (channel->queues != NULL) {
        return EBUSY;
    }
    (void) close(ibv->fd);
    free(channel);
    return 0;
}

HWS_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *ibv, int entries, void *cq_context,
                                        struct ibv_comp_channel *channel, int vector) {
    hws_context_t *context = hws_context_of(ibv);
    if (hws_device_is_inherited(context) || entries < 1 || entries > HWS_DEVICE_ENTRIES || vector < 0
        || vector >= ibv->num_comp_vectors) {
        errno = EINVAL;
        return NULL;
    }
    hws_queue_t *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return NULL;
    }
    queue->entries = calloc((size_t) entries, sizeof *queue->entries);
    if (queue->entries == NULL) {
        free(queue);
        return NULL;
    }
    queue->cq = (struct ibv_cq) {.context = ibv, .channel = channel, .cq_context = cq_context, .cqe = entries};
    pthread_mutex_init(&queue->cq.mutex, NULL);
    pthread_cond_init(&queue->cq.cond, NULL);
    if (channel != NULL) {
        pthread_mutex_lock(&hws_device_lock);
        queue->next = ((hws_channel_t *) channel)->queues;
        ((hws_channel_t *) channel)->queues = queue;
        pthread_mutex_unlock(&hws_device_lock);
    }
    return &queue->cq;
}

static int await_acknowledgements(hws_queue_t *queue) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += ACKNOWLEDGE_SECONDS;
    int rc = 0;
    while (queue->unacknowledged > 0 && rc == 0) {
        rc = pthread_cond_timedwait(&queue->cq.cond, &queue->cq.mutex, &limit);
    }
    if (queue->unacknowledged > 0) {
        fprintf(stderr, "test device: ibv_destroy_cq() needs all events acknowledged: missing=%u\n",
                queue->unacknowledged);
        return EBUSY;
    }
    return 0;
}

HWS_EXPORT int ibv_destroy_cq(struct ibv_cq *cq) {
    hws_queue_t *queue = (hws_queue_t *) cq;
    hws_context_t *context = hws_context_of(cq->context);
    if (!hws_device_is_inherited(context)) {
        pthread_mutex_lock(&hws_device_lock);
        bool is_used = queue->users > 0;
        pthread_mutex_unlock(&hws_device_lock);
        if (is_used) {
            return EBUSY;
        }
        pthread_mutex_lock(&cq->mutex);
        int rc = await_acknowledgements(queue);
        pthread_mutex_unlock(&cq->mutex);
        if (rc != 0) {
            return rc;
        }
        pthread_mutex_lock(&hws_device_lock);
        for (hws_queue_t **at = cq->channel == NULL ? NULL : &((hws_channel_t *) cq->channel)->queues;
             at != NULL && *at != NULL; at = &(*at)->next) {
            if (*at == queue) {
                *at = queue->next;
                break;
            }
        }
        pthread_mutex_unlock(&hws_device_lock);
        /* The kernel drops the events that nobody has read. */
        for (; queue->events > 0; queue->events--) {
            struct pollfd ready = {.fd = cq->channel->fd, .events = POLLIN};
            uint64_t one;
            if (poll(&ready, 1, 0) != 1 || read(cq->channel->fd, &one, sizeof one) < 0) {
                break;
            }
        }
    }
    pthread_cond_destroy(&cq->cond);
    pthread_mutex_destroy(&cq->mutex);
    free(queue->entries);
    free(queue);
    return 0;
}

HWS_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq_p, void **context_p) {
    hws_context_t *context = hws_context_of(ibv->context);
    uint64_t one;
    if (hws_device_is_inherited(context) || read(ibv->fd, &one, sizeof one) != sizeof one) {
        return -1;
    }
    int rc = -1;
    pthread_mutex_lock(&hws_device_lock);
    for (hws_queue_t *queue = ((hws_channel_t *) ibv)->queues; queue != NULL && rc != 0; queue = queue->next) {
        pthread_mutex_lock(&queue->cq.mutex);
        if (queue->events > 0) {
            queue->events--;
            queue->unacknowledged++;
            *cq_p = &queue->cq;
            *context_p = queue->cq.cq_context;
            rc = 0;
        }
        pthread_mutex_unlock(&queue->cq.mutex);
    }
    pthread_mutex_unlock(&hws_device_lock);
    return rc;
}

HWS_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count) {
    hws_queue_t *queue = (hws_queue_t *) cq;
    if (hws_device_is_inherited(hws_context_of(cq->context))) {
        return;
    }
    pthread_mutex_lock(&cq->mutex);
    queue->unacknowledged -= count < queue->unacknowledged ? count : queue->unacknowledged;
    cq->comp_events_completed += count;
    pthread_cond_broadcast(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

void hws_queue_push(hws_queue_t *queue, const hws_entry_t *entry, bool is_solicited) {
    pthread_mutex_lock(&queue->cq.mutex);
    uint32_t capacity = (uint32_t) queue->cq.cqe;
    if (queue->count == capacity) {
        if (!queue->is_overrun) {
            fprintf(stderr, "test device: a completion queue overflows: entries=%u\n", capacity);
        }
        queue->is_overrun = true;
    } else {
        queue->entries[(queue->first + queue->count) % capacity] = *entry;
        queue->count++;
    }
    enum hws_armed needed = is_solicited || entry->wc.status != IBV_WC_SUCCESS ? HWS_ARMED_SOLICITED : HWS_ARMED_ANY;
    if (queue->cq.channel != NULL && queue->armed >= needed) {
        queue->armed = HWS_ARMED_NOT;
        queue->events++;
        uint64_t one = 1;
        if (write(queue->cq.channel->fd, &one, sizeof one) != sizeof one) {
            fprintf(stderr, "test device: a completion channel cannot be written: %m\n");
        }
    }
    pthread_mutex_unlock(&queue->cq.mutex);
}

void hws_queue_forget(hws_queue_t *queue, const hws_pair_t *pair) {
    pthread_mutex_lock(&queue->cq.mutex);
    uint32_t capacity = (uint32_t) queue->cq.cqe;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        hws_entry_t *entry = &queue->entries[(queue->first + i) % capacity];
        if (entry->pair != pair) {
            queue->entries[(queue->first + kept) % capacity] = *entry;
            kept++;
        }
    }
    queue->count = kept;
    pthread_mutex_unlock(&queue->cq.mutex);
}

int hws_queue_poll(struct ibv_cq *cq, int count, struct ibv_wc *wcs) {
    hws_queue_t *queue = (hws_queue_t *) cq;
    if (hws_device_is_inherited(hws_context_of(cq->context))) {
        return -EINVAL;
    }
    int found = 0;
    pthread_mutex_lock(&cq->mutex);
    for (; found < count && queue->count > 0; found++) {
        hws_entry_t *entry = &queue->entries[queue->first];
        wcs[found] = entry->wc;
        atomic_fetch_add(entry->is_receive ? &entry->pair->recovered : &entry->pair->released, entry->frees);
        queue->first = (queue->first + 1) % (uint32_t) cq->cqe;
        queue->count--;
    }
    if (found == 0 && queue->is_overrun) {
        found = -EIO;
    }
    pthread_mutex_unlock(&cq->mutex);
    return found;
}

int hws_queue_arm(struct ibv_cq *cq, int solicited_only) {
    hws_queue_t *queue = (hws_queue_t *) cq;
    if (hws_device_is_inherited(hws_context_of(cq->context))) {
        return EINVAL;
    }
    pthread_mutex_lock(&cq->mutex);
    enum hws_armed wanted = solicited_only ? HWS_ARMED_SOLICITED : HWS_ARMED_ANY;
    queue->armed = wanted > queue->armed ? wanted : queue->armed;
    pthread_mutex_unlock(&cq->mutex);
    return 0;
}
