#include "device.h"

#include <stdlib.h>

HWS_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init) {
    hws_context_t *context = hws_context_of(pd->context);
    const struct ibv_qp_cap *cap = &init->cap;
    if (hws_device_is_inherited(context) || init->qp_type != IBV_QPT_RC || init->srq != NULL || init->send_cq == NULL
        || init->recv_cq == NULL || cap->max_send_wr > HWS_DEVICE_DEPTH || cap->max_recv_wr > HWS_DEVICE_DEPTH
        || cap->max_send_sge > HWS_DEVICE_SGES || cap->max_recv_sge > 1 || cap->max_inline_data > HWS_DEVICE_INLINE) {
        errno = EINVAL;
        return NULL;
    }
    hws_pair_t *pair = calloc(1, sizeof *pair);
    if (pair == NULL) {
        return NULL;
    }
    pair->works = calloc((size_t) cap->max_send_wr + 1, sizeof *pair->works);
    pair->receives = calloc((size_t) cap->max_recv_wr + 1, sizeof *pair->receives);
    pair->own = hws_fabric_pair_take(&context->fabric);
    if (pair->works == NULL || pair->receives == NULL || pair->own == NULL) {
        if (pair->own != NULL) {
            hws_fabric_pair_give(pair->own);
        }
        free(pair->works);
        free(pair->receives);
        free(pair);
        errno = ENOMEM;
        return NULL;
    }
    pair->init = *init;
    pair->attr.qp_state = IBV_QPS_RESET;
    pair->reaped = atomic_load(&pair->own->tail);
    pair->qp = (struct ibv_qp) {
        .context = pd->context,
        .qp_context = init->qp_context,
        .pd = pd,
        .send_cq = init->send_cq,
        .recv_cq = init->recv_cq,
        .qp_num = atomic_load(&pair->own->number),
        .state = IBV_QPS_RESET,
        .qp_type = init->qp_type,
    };
    pthread_mutex_init(&pair->qp.mutex, NULL);
    pthread_cond_init(&pair->qp.cond, NULL);
    pthread_mutex_lock(&hws_device_lock);
    pair->next = context->pairs;
    context->pairs = pair;
    ((hws_queue_t *) init->send_cq)->users++;
    ((hws_queue_t *) init->recv_cq)->users++;
    ((hws_domain_t *) pd)->users++;
    pthread_mutex_unlock(&hws_device_lock);
    return &pair->qp;
}

static void forget_work(hws_pair_t *pair) {
    hws_queue_forget((hws_queue_t *) pair->qp.send_cq, pair);
    hws_queue_forget((hws_queue_t *) pair->qp.recv_cq, pair);
    pair->sent = pair->completed = pair->posted;
    pair->sent_bytes = pair->uncounted = 0;
    atomic_store(&pair->released, pair->posted);
    pair->taken = pair->offered;
    atomic_store(&pair->recovered, pair->offered);
    /* The other end may be carrying out the packet at the head, and then fails to move it. */
    pair->reaped = atomic_load(&pair->own->tail);
    atomic_store(&pair->own->head, pair->reaped);
    atomic_store(&pair->own->refused_ms, 0);
}

HWS_EXPORT int ibv_destroy_qp(struct ibv_qp *qp) {
    hws_pair_t *pair = (hws_pair_t *) qp;
    hws_context_t *context = hws_context_of(qp->context);
    if (!hws_device_is_inherited(context)) {
        pthread_mutex_lock(&hws_device_lock);
        for (hws_pair_t **at = &context->pairs; *at != NULL; at = &(*at)->next) {
            if (*at == pair) {
                *at = pair->next;
                break;
            }
        }
        forget_work(pair);
        hws_fabric_pair_give(pair->own);
        ((hws_queue_t *) qp->send_cq)->users--;
        ((hws_queue_t *) qp->recv_cq)->users--;
        ((hws_domain_t *) qp->pd)->users--;
        pthread_mutex_unlock(&hws_device_lock);
    }
    pthread_cond_destroy(&qp->cond);
    pthread_mutex_destroy(&qp->mutex);
    free(pair->works);
    free(pair->receives);
    free(pair);
    return 0;
}

/* The transitions and attributes of a reliable connection, as the kernel's ib_modify_qp_is_ok() knows them. */
static const struct transition {
    enum ibv_qp_state from;
    enum ibv_qp_state to;
    int needed;
    int allowed;
} transitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

static bool transition_is_valid(enum ibv_qp_state from, enum ibv_qp_state to, int mask) {
    mask &= ~IBV_QP_STATE;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
        return mask == 0;
    }
    for (size_t i = 0; i < sizeof transitions / sizeof *transitions; i++) {
        const struct transition *known = &transitions[i];
        if (known->from == from && known->to == to) {
            return (mask & known->needed) == known->needed && (mask & ~(known->needed | known->allowed)) == 0;
        }
    }
    return false;
}

static bool attributes_are_valid(const struct ibv_qp_attr *attr, int mask) {
    const struct ibv_ah_attr *path = &attr->ah_attr;
    return ((mask & IBV_QP_PORT) == 0 || attr->port_num == 1)
        && ((mask & IBV_QP_PKEY_INDEX) == 0 || attr->pkey_index < HWS_DEVICE_PARTITIONS)
        && ((mask & IBV_QP_PATH_MTU) == 0 || (attr->path_mtu >= IBV_MTU_256 && attr->path_mtu <= IBV_MTU_4096))
        && ((mask & IBV_QP_TIMEOUT) == 0 || attr->timeout < 32)
        && ((mask & IBV_QP_RETRY_CNT) == 0 || attr->retry_cnt < 8)
        && ((mask & IBV_QP_RNR_RETRY) == 0 || attr->rnr_retry < 8)
        && ((mask & IBV_QP_MIN_RNR_TIMER) == 0 || attr->min_rnr_timer < 32)
        && ((mask & IBV_QP_MAX_QP_RD_ATOMIC) == 0 || attr->max_rd_atomic <= HWS_DEVICE_READS)
        && ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) == 0 || attr->max_dest_rd_atomic <= HWS_DEVICE_READS)
        && ((mask & IBV_QP_AV) == 0
            || (path->is_global == 1 && path->port_num == 1 && path->sl < 16 && path->grh.sgid_index < HWS_DEVICE_GIDS
                && hws_device_has_gid(&path->grh.dgid)));
}

static void take_attributes(hws_pair_t *pair, const struct ibv_qp_attr *attr, int mask) {
    struct ibv_qp_attr *own = &pair->attr;
    own->port_num = mask & IBV_QP_PORT ? attr->port_num : own->port_num;
    own->pkey_index = mask & IBV_QP_PKEY_INDEX ? attr->pkey_index : own->pkey_index;
    own->qp_access_flags = mask & IBV_QP_ACCESS_FLAGS ? attr->qp_access_flags : own->qp_access_flags;
    own->ah_attr = mask & IBV_QP_AV ? attr->ah_attr : own->ah_attr;
    own->path_mtu = mask & IBV_QP_PATH_MTU ? attr->path_mtu : own->path_mtu;
    own->dest_qp_num = mask & IBV_QP_DEST_QPN ? attr->dest_qp_num & 0xffffff : own->dest_qp_num;
    own->rq_psn = mask & IBV_QP_RQ_PSN ? attr->rq_psn & 0xffffff : own->rq_psn;
    own->sq_psn = mask & IBV_QP_SQ_PSN ? attr->sq_psn & 0xffffff : own->sq_psn;
    own->max_dest_rd_atomic = mask & IBV_QP_MAX_DEST_RD_ATOMIC ? attr->max_dest_rd_atomic : own->max_dest_rd_atomic;
    own->max_rd_atomic = mask & IBV_QP_MAX_QP_RD_ATOMIC ? attr->max_rd_atomic : own->max_rd_atomic;
    own->min_rnr_timer = mask & IBV_QP_MIN_RNR_TIMER ? attr->min_rnr_timer : own->min_rnr_timer;
    own->timeout = mask & IBV_QP_TIMEOUT ? attr->timeout : own->timeout;
    own->retry_cnt = mask & IBV_QP_RETRY_CNT ? attr->retry_cnt : own->retry_cnt;
    own->rnr_retry = mask & IBV_QP_RNR_RETRY ? attr->rnr_retry : own->rnr_retry;
}

HWS_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
    hws_pair_t *pair = (hws_pair_t *) qp;
    hws_context_t *context = hws_context_of(qp->context);
    if (hws_device_is_inherited(context)) {
        return EINVAL;
    }
    pthread_mutex_lock(&hws_device_lock);
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : pair->attr.qp_state;
    if (!transition_is_valid(pair->attr.qp_state, to, mask) || !attributes_are_valid(attr, mask)) {
        pthread_mutex_unlock(&hws_device_lock);
        return EINVAL;
    }
    take_attributes(pair, attr, mask);
    if (to == IBV_QPS_ERR) {
        hws_pair_fail(pair, IBV_WC_WR_FLUSH_ERR);
    } else {
        if (to == IBV_QPS_RESET) {
            atomic_store(&pair->own->state, IBV_QPS_RESET);
            forget_work(pair);
        }
        pair->attr.qp_state = to;
        atomic_store(&pair->own->destination, to == IBV_QPS_RESET ? 0 : pair->attr.dest_qp_num);
        atomic_store(&pair->own->receive_psn, pair->attr.rq_psn);
        atomic_store(&pair->own->send_psn, pair->attr.sq_psn);
        /* Last: the other end trusts the words above in these states. */
        atomic_store(&pair->own->state, to);
    }
    qp->state = to;
    pthread_mutex_unlock(&hws_device_lock);
    hws_fabric_wake(&context->fabric, context->fabric.node);
    return 0;
}

HWS_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init) {
    (void) mask;
    hws_pair_t *pair = (hws_pair_t *) qp;
    hws_context_t *context = hws_context_of(qp->context);
    if (hws_device_is_inherited(context)) {
        return EINVAL;
    }
    pthread_mutex_lock(&hws_device_lock);
    *attr = pair->attr;
    attr->cur_qp_state = attr->qp_state;
    attr->cap = pair->init.cap;
    *init = pair->init;
    qp->state = attr->qp_state;
    pthread_mutex_unlock(&hws_device_lock);
    return 0;
}
