/*
 * The engine of an open device, one thread. Sending: it copies packets of posted work into the ring of the queue pair,
 * and reaps the outcome. Receiving: it carries out the packets in the rings of the other ends.
 */
#include "device.h"

#define IDLE_MS HWS_FABRIC_BEAT_MS
#define WAITING_MS 20
/* A beat younger than this says that the node lives now. */
#define FRESH_MS 500

enum hws_outcome_not_ready { HWS_NOT_READY = 0xffff };

/* The InfiniBand specification's codes of the RNR timer, in microseconds. */
static const uint32_t rnr_timer_us[32] = {
    655360, 10,   20,   30,   40,    60,    80,    120,   160,   240,   320,   480,    640,    960,    1280,   1920,
    2560,   3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

/* Copies between a packet and the bytes of scattered elements that begin at `offset`. */
static bool copy_elements(hws_pair_t *pair, const struct ibv_sge *sges, int count, uint32_t offset, uint8_t *payload,
                          uint32_t bytes, bool is_gather) {
    hws_context_t *context = hws_context_of(pair->qp.context);
    for (int i = 0; i < count && bytes > 0; i++) {
        if (offset >= sges[i].length) {
            offset -= sges[i].length;
            continue;
        }
        uint32_t part = sges[i].length - offset < bytes ? sges[i].length - offset : bytes;
        uint8_t *memory = hws_region_find(context, pair->qp.pd, sges[i].lkey, sges[i].addr + offset, part,
                                          is_gather ? 0 : IBV_ACCESS_LOCAL_WRITE);
        if (memory == NULL) {
            return false;
        }
        if (is_gather) {
            memcpy(payload, memory, part);
        } else {
            memcpy(memory, payload, part);
        }
        payload += part;
        bytes -= part;
        offset = 0;
    }
    return bytes == 0;
}

static uint32_t deliver_send(hws_pair_t *pair, const hws_packet_header_t *header, uint8_t *payload) {
    if (pair->taken == pair->offered) {
        return HWS_NOT_READY;
    }
    const hws_receive_t *receive = &pair->receives[pair->taken % pair->init.cap.max_recv_wr];
    if (header->total > receive->sge.length) {
        hws_receive_complete(pair, IBV_WC_LOC_LEN_ERR, header);
        return IBV_WC_REM_INV_REQ_ERR;
    }
    if (!copy_elements(pair, &receive->sge, 1, header->offset, payload, header->bytes, false)) {
        hws_receive_complete(pair, IBV_WC_LOC_PROT_ERR, header);
        return IBV_WC_REM_OP_ERR;
    }
    if ((header->flags & HWS_PACKET_LAST) != 0) {
        hws_receive_complete(pair, IBV_WC_SUCCESS, header);
    }
    return IBV_WC_SUCCESS;
}

static uint32_t deliver_rdma(hws_pair_t *pair, const hws_packet_header_t *header, uint8_t *payload) {
    bool is_read = header->opcode == IBV_WR_RDMA_READ;
    unsigned access = is_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
    uint8_t *memory = NULL;
    if ((pair->attr.qp_access_flags & access) == 0 || (is_read && pair->attr.max_dest_rd_atomic == 0)) {
        return IBV_WC_REM_INV_REQ_ERR;
    }
    /* The key of a message without bytes is not checked, says the specification. */
    if (header->total > 0) {
        memory = hws_region_find(hws_context_of(pair->qp.context), pair->qp.pd, header->key, header->address,
                                 header->total, access);
        if (memory == NULL) {
            return IBV_WC_REM_ACCESS_ERR;
        }
        memory += header->offset;
    }
    bool takes_receive = (header->flags & HWS_PACKET_IMMEDIATE) != 0 && (header->flags & HWS_PACKET_LAST) != 0;
    if (takes_receive && pair->taken == pair->offered) {
        return HWS_NOT_READY;
    }
    if (memory != NULL && is_read) {
        memcpy(payload, memory, header->bytes);
    } else if (memory != NULL) {
        memcpy(memory, payload, header->bytes);
    }
    if (takes_receive) {
        hws_receive_complete(pair, IBV_WC_SUCCESS, header);
    }
    return IBV_WC_SUCCESS;
}

static uint32_t deliver(hws_pair_t *pair, hws_packet_t *packet) {
    const hws_packet_header_t header = packet->header;
    if (header.bytes > HWS_FABRIC_PAYLOAD || header.offset > header.total
        || header.bytes > header.total - header.offset) {
        return IBV_WC_REM_INV_REQ_ERR;
    }
    switch (header.opcode) {
        case IBV_WR_RDMA_WRITE:
        case IBV_WR_RDMA_WRITE_WITH_IMM:
        case IBV_WR_RDMA_READ:
            return deliver_rdma(pair, &header, packet->payload);
        case IBV_WR_SEND:
        case IBV_WR_SEND_WITH_IMM:
            return deliver_send(pair, &header, packet->payload);
        default:
            return IBV_WC_REM_INV_REQ_ERR;
    }
}

static bool can_receive(uint32_t state) {
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS;
}

/* Whether packets of one end reach the other one: the connection is set up at both, with the same packet numbers. */
static bool sends_to(hws_fabric_pair_t *sender, hws_fabric_pair_t *receiver) {
    return atomic_load(&sender->state) == IBV_QPS_RTS && can_receive(atomic_load(&receiver->state))
        && atomic_load(&sender->destination) == atomic_load(&receiver->number)
        && atomic_load(&receiver->destination) == atomic_load(&sender->number)
        && atomic_load(&sender->send_psn) == atomic_load(&receiver->receive_psn);
}

/* Carries out what the other end has sent. */
static bool pull(hws_context_t *context, hws_pair_t *pair, hws_fabric_pair_t *peer, uint64_t now_ms) {
    bool has_moved = false;
    for (int i = 0; i < HWS_FABRIC_PACKETS && sends_to(peer, pair->own); i++) {
        uint32_t head = atomic_load(&peer->head);
        if (atomic_load(&peer->tail) == head) {
            break;
        }
        hws_packet_t *packet = &peer->packets[head % HWS_FABRIC_PACKETS];
        uint32_t status = deliver(pair, packet);
        if (status == HWS_NOT_READY) {
            uint64_t none = 0;
            atomic_compare_exchange_strong(&peer->refused_ms, &none, now_ms);
            break;
        }
        atomic_store(&peer->refused_ms, 0);
        packet->header.status = status;
        /* The sender resets its queue by moving the head itself. */
        if (!atomic_compare_exchange_strong(&peer->head, &head, head + 1)) {
            break;
        }
        has_moved = true;
        if (status != IBV_WC_SUCCESS) {
            hws_pair_fail(pair, IBV_WC_WR_FLUSH_ERR);
        }
    }
    if (has_moved) {
        hws_fabric_pair_wake(&context->fabric, peer);
    }
    return has_moved;
}

/* Takes the outcome of packets that the other end has carried out. */
static bool reap(hws_pair_t *pair, uint64_t now_ms) {
    bool has_moved = false;
    while (pair->attr.qp_state == IBV_QPS_RTS && pair->reaped != atomic_load(&pair->own->head)) {
        hws_packet_t *packet = &pair->own->packets[pair->reaped % HWS_FABRIC_PACKETS];
        const hws_work_t *work = &pair->works[pair->completed % pair->init.cap.max_send_wr];
        uint32_t status = packet->header.status;
        if (status == IBV_WC_SUCCESS && work->wr.opcode == IBV_WR_RDMA_READ
            && !copy_elements(pair, work->sges, work->wr.num_sge, packet->header.offset, packet->payload,
                              packet->header.bytes, false)) {
            status = IBV_WC_LOC_PROT_ERR;
        }
        pair->reaped++;
        pair->contact_ms = now_ms;
        has_moved = true;
        if (status != IBV_WC_SUCCESS) {
            hws_pair_fail(pair, status);
        } else if ((packet->header.flags & HWS_PACKET_LAST) != 0) {
            hws_work_complete(pair, IBV_WC_SUCCESS);
        }
    }
    return has_moved;
}

/* Cuts posted work into packets. The bytes are read now and not at the post, as an adapter does. */
static bool fill(hws_pair_t *pair) {
    bool has_moved = false;
    while (pair->attr.qp_state == IBV_QPS_RTS && pair->sent != pair->posted) {
        uint32_t tail = atomic_load(&pair->own->tail);
        if (tail - pair->reaped >= HWS_FABRIC_PACKETS) {
            break;
        }
        hws_work_t *work = &pair->works[pair->sent % pair->init.cap.max_send_wr];
        hws_packet_t *packet = &pair->own->packets[tail % HWS_FABRIC_PACKETS];
        uint32_t left = work->total - pair->sent_bytes;
        uint32_t bytes = left < HWS_FABRIC_PAYLOAD ? left : HWS_FABRIC_PAYLOAD;
        if ((work->wr.send_flags & IBV_SEND_INLINE) != 0) {
            memcpy(packet->payload, work->bytes, bytes);
        } else if (work->wr.opcode != IBV_WR_RDMA_READ
                   && !copy_elements(pair, work->sges, work->wr.num_sge, pair->sent_bytes, packet->payload, bytes,
                                     true)) {
            /* Earlier work completes first. */
            if (pair->completed == pair->sent) {
                hws_pair_fail(pair, IBV_WC_LOC_PROT_ERR);
            }
            break;
        }
        bool is_immediate = work->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM || work->wr.opcode == IBV_WR_SEND_WITH_IMM;
        packet->header = (hws_packet_header_t) {
            .address = work->wr.wr.rdma.remote_addr,
            .key = work->wr.wr.rdma.rkey,
            .total = work->total,
            .offset = pair->sent_bytes,
            .bytes = bytes,
            .opcode = work->wr.opcode,
            .flags = (bytes == left ? HWS_PACKET_LAST : 0) | (is_immediate ? HWS_PACKET_IMMEDIATE : 0)
                | ((work->wr.send_flags & IBV_SEND_SOLICITED) != 0 ? HWS_PACKET_SOLICITED : 0),
            .immediate = is_immediate ? work->wr.imm_data : 0,
        };
        pair->sent_bytes = bytes == left ? 0 : pair->sent_bytes + bytes;
        pair->sent += bytes == left;
        /* Pairs with the load in pull(). */
        atomic_store(&pair->own->tail, tail + 1);
        has_moved = true;
    }
    return has_moved;
}

/* Gives up on an end that has not been there for as long as the retries last, or has not been ready for too long. */
static void expire(hws_context_t *context, hws_pair_t *pair, hws_fabric_pair_t *peer, bool is_down, uint64_t now_ms) {
    uint64_t beat_ms =
        peer == NULL || is_down || !sends_to(pair->own, peer) ? 0 : hws_fabric_pair_beat_ms(&context->fabric, peer);
    int64_t age_ms = (int64_t) (now_ms - beat_ms);
    if (beat_ms != 0 && age_ms < HWS_FABRIC_DEAD_MS) {
        uint64_t seen_ms = age_ms < FRESH_MS ? now_ms : beat_ms;
        pair->contact_ms = seen_ms > pair->contact_ms ? seen_ms : pair->contact_ms;
        /* Adapters count by the timer of the receiver; here both ends are expected to have the same. */
        uint64_t refused_ms = atomic_load(&pair->own->refused_ms);
        uint64_t limit_ms = rnr_timer_us[pair->attr.min_rnr_timer] * (pair->attr.rnr_retry + 1u) / 1000;
        if (pair->attr.rnr_retry < 7 && refused_ms != 0 && now_ms > refused_ms + limit_ms) {
            hws_pair_fail(pair, IBV_WC_RNR_RETRY_EXC_ERR);
        }
        return;
    }
    uint64_t budget_ms = (4096ull << pair->attr.timeout) * (pair->attr.retry_cnt + 1u) / 1000000;
    if (pair->attr.timeout != 0 && now_ms > pair->contact_ms + budget_ms) {
        hws_pair_fail(pair, IBV_WC_RETRY_EXC_ERR);
    }
}

static bool progress(hws_context_t *context, hws_pair_t *pair, bool is_down, uint64_t now_ms) {
    bool is_overrun = atomic_load(&((hws_queue_t *) pair->qp.send_cq)->is_overrun)
        || atomic_load(&((hws_queue_t *) pair->qp.recv_cq)->is_overrun);
    if (pair->attr.qp_state != IBV_QPS_ERR && (is_overrun || context->is_lost)) {
        hws_pair_fail(pair, IBV_WC_FATAL_ERR);
    }
    if (!can_receive(pair->attr.qp_state)) {
        return false;
    }
    hws_fabric_pair_t *peer = hws_fabric_pair_find(&context->fabric, pair->attr.dest_qp_num);
    bool has_moved = false;
    if (!is_down) {
        has_moved = peer != NULL && pull(context, pair, peer, now_ms);
        has_moved |= reap(pair, now_ms);
        if (fill(pair)) {
            has_moved = true;
            if (peer != NULL) {
                hws_fabric_pair_wake(&context->fabric, peer);
            }
        }
    }
    if (pair->attr.qp_state == IBV_QPS_RTS && pair->completed != pair->posted) {
        expire(context, pair, peer, is_down, now_ms);
    }
    return has_moved;
}

void *hws_engine_main(void *argument) {
    hws_context_t *context = argument;
    hws_fabric_t *fabric = &context->fabric;
    while (!atomic_load(&context->stop)) {
        uint32_t seen = atomic_load(&fabric->arena->nodes[fabric->node].wake);
        uint64_t now_ms = hws_fabric_now_ms();
        bool has_moved = false;
        bool is_waiting = false;
        pthread_mutex_lock(&hws_device_lock);
        context->is_lost |= !hws_fabric_beat(fabric, now_ms);
        /* Every round looks at the link anew: after `touch link-down` nothing moves any more. */
        bool is_down = hws_fabric_link_is_down(fabric);
        for (hws_pair_t *pair = context->pairs; pair != NULL; pair = pair->next) {
            has_moved |= progress(context, pair, is_down, now_ms);
            is_waiting |= pair->completed != pair->posted;
        }
        pthread_mutex_unlock(&hws_device_lock);
        if (!has_moved) {
            hws_fabric_sleep(fabric, seen, is_waiting ? WAITING_MS : IDLE_MS);
        }
    }
    return NULL;
}
