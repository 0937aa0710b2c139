/* One end of a connection over the test device, for its test. */
#ifndef HWS_VERBS_END_H
#define HWS_VERBS_END_H

#include "hws_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define END_BYTES (512u << 10)
#define END_DEPTH 64
#define END_LIMIT_MS 20000

/* How to reach an end. */
typedef struct address {
    union ibv_gid gid;
    uint32_t number;
    uint32_t psn;
    uint32_t key;
    uint32_t reserved;
    uint64_t memory;
} address_t;

typedef struct options {
    int access;       /* of the memory; 0: everything */
    int entries;      /* of the completion queues; 0: enough */
    uint8_t timeout;  /* 0: 14, which is 67 ms a try */
    uint8_t retries;  /* after the first try */
    uint8_t patience; /* tries at an end without a receive; 0: 7, without end */
} options_t;

typedef struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *sends;
    struct ibv_cq *receives;
    struct ibv_qp *pair;
    struct ibv_mr *region;
    uint8_t *memory;
    options_t options;
} end_t;

static inline uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static inline void pause_ms(long ms) {
    nanosleep(&(struct timespec) {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static inline void end_open_device(end_t *end) {
    struct ibv_device **list = ibv_get_device_list(NULL);
    HWS_CHECK(list != NULL && list[0] != NULL);
    memset(end, 0, sizeof *end);
    end->context = ibv_open_device(list[0]);
    HWS_CHECK(end->context != NULL);
    ibv_free_device_list(list);
}

static inline void end_prepare(end_t *end, options_t options) {
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    int entries = options.entries == 0 ? 4 * END_DEPTH : options.entries;
    end->options = options;
    end->pd = ibv_alloc_pd(end->context);
    end->channel = ibv_create_comp_channel(end->context);
    HWS_CHECK(end->pd != NULL && end->channel != NULL);
    end->sends = ibv_create_cq(end->context, entries, end, NULL, 0);
    end->receives = ibv_create_cq(end->context, entries, end, end->channel, 0);
    end->memory = calloc(1, END_BYTES);
    end->region = ibv_reg_mr(end->pd, end->memory, END_BYTES, options.access == 0 ? access : options.access);
    HWS_CHECK(end->sends != NULL && end->receives != NULL && end->region != NULL);
    struct ibv_qp_init_attr init = {
        .send_cq = end->sends,
        .recv_cq = end->receives,
        .cap = {.max_send_wr = END_DEPTH,
                .max_recv_wr = END_DEPTH,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = 64},
        .qp_type = IBV_QPT_RC,
    };
    end->pair = ibv_create_qp(end->pd, &init);
    HWS_CHECK(end->pair != NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned) access};
    HWS_CHECK(ibv_modify_qp(end->pair, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS)
              == 0);
}

static inline address_t end_address(end_t *end) {
    address_t address = {
        .number = end->pair->qp_num,
        .psn = end->pair->qp_num * 7 & 0xffffff,
        .key = end->region->rkey,
        .memory = (uintptr_t) end->memory,
    };
    HWS_CHECK(ibv_query_gid(end->context, 1, 3, &address.gid) == 0);
    return address;
}

static inline void end_connect(end_t *end, const address_t *peer) {
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .sgid_index = 3, .hop_limit = 64}},
        .path_mtu = IBV_MTU_4096,
        .dest_qp_num = peer->number,
        .rq_psn = peer->psn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
    };
    HWS_CHECK(ibv_modify_qp(end->pair, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
              == 0);
    attr = (struct ibv_qp_attr) {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = end_address(end).psn,
        .timeout = end->options.timeout == 0 ? 14 : end->options.timeout,
        .retry_cnt = end->options.retries,
        .rnr_retry = end->options.patience == 0 ? 7 : end->options.patience,
        .max_rd_atomic = 4,
    };
    int mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    /* A needed attribute is missing. */
    HWS_CHECK(ibv_modify_qp(end->pair, &attr, mask) == EINVAL);
    HWS_CHECK(ibv_modify_qp(end->pair, &attr, mask | IBV_QP_SQ_PSN) == 0);
}

static inline void end_close(end_t *end) {
    HWS_CHECK(end->pair == NULL || ibv_destroy_cq(end->sends) == EBUSY);
    HWS_CHECK(end->pair == NULL || ibv_destroy_qp(end->pair) == 0);
    HWS_CHECK(ibv_destroy_cq(end->sends) == 0);
    HWS_CHECK(ibv_destroy_comp_channel(end->channel) == EBUSY);
    HWS_CHECK(ibv_destroy_cq(end->receives) == 0);
    HWS_CHECK(ibv_destroy_comp_channel(end->channel) == 0);
    HWS_CHECK(ibv_dealloc_pd(end->pd) == EBUSY);
    HWS_CHECK(ibv_dereg_mr(end->region) == 0);
    HWS_CHECK(ibv_dealloc_pd(end->pd) == 0);
    HWS_CHECK(ibv_close_device(end->context) == 0);
    free(end->memory);
}

static inline void end_receive(end_t *end, uint64_t id, uint32_t offset, uint32_t bytes) {
    struct ibv_sge sge = {.addr = (uintptr_t) end->memory + offset, .length = bytes, .lkey = end->region->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = bytes > 0}, *bad;
    HWS_CHECK(ibv_post_recv(end->pair, &wr, &bad) == 0);
}

/* Posts one request over [offset, offset + bytes) of both memories; the immediate is the id. */
static inline int end_try_post(end_t *end, const address_t *peer, enum ibv_wr_opcode opcode, unsigned flags,
                               uint64_t id, uint32_t offset, uint32_t bytes) {
    struct ibv_sge sge = {.addr = (uintptr_t) end->memory + offset, .length = bytes, .lkey = end->region->lkey};
    struct ibv_send_wr wr = {
        .wr_id = id,
        .sg_list = &sge,
        .num_sge = bytes > 0,
        .opcode = opcode,
        .send_flags = flags,
        .imm_data = htonl((uint32_t) id),
        .wr.rdma = {.remote_addr = peer->memory + offset, .rkey = peer->key},
    };
    struct ibv_send_wr *bad = NULL;
    int rc = ibv_post_send(end->pair, &wr, &bad);
    HWS_CHECK((rc == 0) == (bad == NULL));
    return rc;
}

static inline void end_post(end_t *end, const address_t *peer, enum ibv_wr_opcode opcode, unsigned flags, uint64_t id,
                            uint32_t offset, uint32_t bytes) {
    HWS_CHECK(end_try_post(end, peer, opcode, flags, id, offset, bytes) == 0);
}

static inline struct ibv_wc end_await(struct ibv_cq *cq) {
    uint64_t limit_ms = now_ms() + END_LIMIT_MS;
    struct ibv_wc wc;
    int count;
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0) {
        HWS_CHECK(now_ms() < limit_ms);
        pause_ms(0);
    }
    HWS_CHECK(count == 1);
    return wc;
}

static inline void end_await_status(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status) {
    struct ibv_wc wc = end_await(cq);
    if (wc.wr_id != id || wc.status != status) {
        fprintf(stderr, "completion: id=%lu status=%s expected id=%lu status=%s\n", (unsigned long) wc.wr_id,
                ibv_wc_status_str(wc.status), (unsigned long) id, ibv_wc_status_str(status));
    }
    HWS_CHECK(wc.wr_id == id && wc.status == status);
}

static inline void end_await_immediate(end_t *end, uint64_t id, uint32_t immediate, uint32_t bytes) {
    struct ibv_wc wc = end_await(end->receives);
    HWS_CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == id && ntohl(wc.imm_data) == immediate);
    HWS_CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && (wc.wc_flags & IBV_WC_WITH_IMM) != 0 && wc.byte_len == bytes);
}

static inline enum ibv_qp_state end_state(end_t *end) {
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    HWS_CHECK(ibv_query_qp(end->pair, &attr, IBV_QP_STATE, &init) == 0);
    return attr.qp_state;
}

static inline void end_must_be_empty(struct ibv_cq *cq) {
    struct ibv_wc wc;
    HWS_CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
}

#endif
