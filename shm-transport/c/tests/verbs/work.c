#include "device.h"

static const char *const status_texts[] = {
    [IBV_WC_SUCCESS] = "success",
    [IBV_WC_LOC_LEN_ERR] = "local length error",
    [IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
    [IBV_WC_LOC_PROT_ERR] = "local protection error",
    [IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
    [IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
    [IBV_WC_REM_ACCESS_ERR] = "remote access error",
    [IBV_WC_REM_OP_ERR] = "remote operation error",
    [IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
    [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
    [IBV_WC_FATAL_ERR] = "fatal error",
    [IBV_WC_GENERAL_ERR] = "general error",
};

HWS_EXPORT const char *ibv_wc_status_str(enum ibv_wc_status status) {
    const size_t count = sizeof status_texts / sizeof *status_texts;
    return (size_t) status < count && status_texts[status] != NULL ? status_texts[status] : "unknown";
}

/* Fields without a meaning in a failed completion hold nonsense, so that a program which reads them notices. */
static hws_entry_t failed_entry(hws_pair_t *pair, uint64_t id, enum ibv_wc_status status) {
    hws_entry_t entry = {.pair = pair};
    memset(&entry.wc, 0xee, sizeof entry.wc);
    entry.wc.wr_id = id;
    entry.wc.status = status;
    entry.wc.vendor_err = 0;
    entry.wc.qp_num = pair->qp.qp_num;
    return entry;
}

static enum ibv_wc_opcode completed_opcode(enum ibv_wr_opcode opcode) {
    switch (opcode) {
        case IBV_WR_RDMA_READ:
            return IBV_WC_RDMA_READ;
        case IBV_WR_RDMA_WRITE:
        case IBV_WR_RDMA_WRITE_WITH_IMM:
            return IBV_WC_RDMA_WRITE;
        default:
            return IBV_WC_SEND;
    }
}

void hws_work_complete(hws_pair_t *pair, enum ibv_wc_status status) {
    const hws_work_t *work = &pair->works[pair->completed % pair->init.cap.max_send_wr];
    pair->completed++;
    pair->uncounted++;
    bool is_signaled = pair->init.sq_sig_all || (work->wr.send_flags & IBV_SEND_SIGNALED) != 0;
    if (status == IBV_WC_SUCCESS && !is_signaled) {
        return;
    }
    hws_entry_t entry = failed_entry(pair, work->wr.wr_id, status);
    if (status == IBV_WC_SUCCESS) {
        entry.wc = (struct ibv_wc) {
            .wr_id = work->wr.wr_id,
            .opcode = completed_opcode(work->wr.opcode),
            .byte_len = work->total,
            .qp_num = pair->qp.qp_num,
        };
    }
    entry.frees = pair->uncounted;
    pair->uncounted = 0;
    hws_queue_push((hws_queue_t *) pair->qp.send_cq, &entry, false);
}

void hws_receive_complete(hws_pair_t *pair, enum ibv_wc_status status, const hws_packet_header_t *header) {
    const hws_receive_t *receive = &pair->receives[pair->taken % pair->init.cap.max_recv_wr];
    pair->taken++;
    hws_entry_t entry = failed_entry(pair, receive->id, status);
    bool is_solicited = false;
    if (status == IBV_WC_SUCCESS) {
        bool is_write = header->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
        is_solicited = (header->flags & HWS_PACKET_SOLICITED) != 0;
        entry.wc = (struct ibv_wc) {
            .wr_id = receive->id,
            .opcode = is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
            .byte_len = header->total,
            .imm_data = header->immediate,
            .qp_num = pair->qp.qp_num,
            .src_qp = pair->attr.dest_qp_num,
            .wc_flags = header->flags & HWS_PACKET_IMMEDIATE ? IBV_WC_WITH_IMM : 0,
        };
    }
    entry.frees = 1;
    entry.is_receive = true;
    hws_queue_push((hws_queue_t *) pair->qp.recv_cq, &entry, is_solicited);
}

static void flush(hws_pair_t *pair) {
    while (pair->completed != pair->posted) {
        hws_work_complete(pair, IBV_WC_WR_FLUSH_ERR);
    }
    pair->sent = pair->posted;
    pair->sent_bytes = 0;
    while (pair->taken != pair->offered) {
        hws_receive_complete(pair, IBV_WC_WR_FLUSH_ERR, NULL);
    }
}

void hws_pair_fail(hws_pair_t *pair, enum ibv_wc_status status) {
    pair->attr.qp_state = IBV_QPS_ERR;
    atomic_store(&pair->own->state, IBV_QPS_ERR);
    if (pair->completed != pair->posted) {
        hws_work_complete(pair, status);
    }
    flush(pair);
}

/* Copies a request. Bytes of an inline request are free for other uses afterwards, those of others are not. */
static int take_work(hws_pair_t *pair, const struct ibv_send_wr *wr) {
    const struct ibv_qp_cap *cap = &pair->init.cap;
    if (pair->attr.qp_state != IBV_QPS_RTS && pair->attr.qp_state != IBV_QPS_ERR) {
        return EINVAL;
    }
    if (wr->num_sge < 0 || (uint32_t) wr->num_sge > cap->max_send_sge) {
        return EINVAL;
    }
    switch (wr->opcode) {
        case IBV_WR_RDMA_WRITE:
        case IBV_WR_RDMA_WRITE_WITH_IMM:
        case IBV_WR_SEND:
        case IBV_WR_SEND_WITH_IMM:
            break;
        case IBV_WR_RDMA_READ:
            if (pair->attr.max_rd_atomic > 0 && (wr->send_flags & IBV_SEND_INLINE) == 0) {
                break;
            }
            return EINVAL;
        default:
            return EOPNOTSUPP;
    }
    if (pair->posted - atomic_load(&pair->released) >= cap->max_send_wr) {
        return ENOMEM;
    }
    hws_work_t *work = &pair->works[pair->posted % cap->max_send_wr];
    work->wr = *wr;
    uint64_t total = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        work->sges[i] = wr->sg_list[i];
        if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
            if (total + wr->sg_list[i].length > cap->max_inline_data) {
                return EINVAL;
            }
            memcpy(work->bytes + total, (void *) (uintptr_t) wr->sg_list[i].addr, wr->sg_list[i].length);
        }
        total += wr->sg_list[i].length;
    }
    if (total > HWS_DEVICE_MESSAGE) {
        return EINVAL;
    }
    work->total = (uint32_t) total;
    if (pair->completed == pair->posted) {
        pair->contact_ms = hws_fabric_now_ms();
    }
    pair->posted++;
    return 0;
}

int hws_work_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_p) {
    hws_pair_t *pair = (hws_pair_t *) qp;
    hws_context_t *context = hws_context_of(qp->context);
    int rc = hws_device_is_inherited(context) ? EINVAL : 0;
    if (rc == 0) {
        pthread_mutex_lock(&hws_device_lock);
        for (; wr != NULL && rc == 0; wr = rc == 0 ? wr->next : wr) {
            rc = take_work(pair, wr);
        }
        if (pair->attr.qp_state == IBV_QPS_ERR) {
            flush(pair);
        }
        pthread_mutex_unlock(&hws_device_lock);
        hws_fabric_wake(&context->fabric, context->fabric.node);
    }
    if (rc != 0) {
        *bad_p = wr;
    }
    return rc;
}

static int take_receive(hws_pair_t *pair, const struct ibv_recv_wr *wr) {
    uint32_t depth = pair->init.cap.max_recv_wr;
    if (pair->attr.qp_state == IBV_QPS_RESET || wr->num_sge < 0
        || (uint32_t) wr->num_sge > pair->init.cap.max_recv_sge) {
        return EINVAL;
    }
    if (pair->offered - atomic_load(&pair->recovered) >= depth) {
        return ENOMEM;
    }
    pair->receives[pair->offered % depth] = (hws_receive_t) {
        .id = wr->wr_id,
        .sge = wr->num_sge == 1 ? wr->sg_list[0] : (struct ibv_sge) {0},
    };
    pair->offered++;
    return 0;
}

int hws_receive_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_p) {
    hws_pair_t *pair = (hws_pair_t *) qp;
    hws_context_t *context = hws_context_of(qp->context);
    int rc = hws_device_is_inherited(context) ? EINVAL : 0;
    if (rc == 0) {
        pthread_mutex_lock(&hws_device_lock);
        bool is_awaited = pair->taken == pair->offered;
        for (; wr != NULL && rc == 0; wr = rc == 0 ? wr->next : wr) {
            rc = take_receive(pair, wr);
        }
        if (pair->attr.qp_state == IBV_QPS_ERR) {
            flush(pair);
        }
        pthread_mutex_unlock(&hws_device_lock);
        if (is_awaited) {
            hws_fabric_wake(&context->fabric, context->fabric.node);
        }
    }
    if (rc != 0) {
        *bad_p = wr;
    }
    return rc;
}
