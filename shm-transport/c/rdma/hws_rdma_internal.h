/* Shared by the files of an end. */
#ifndef HWS_RDMA_INTERNAL_H
#define HWS_RDMA_INTERNAL_H

#include "hws_rdma.h"
#include "hws_verbs.h"

#include <pthread.h>
#include <stdatomic.h>

/* Work requests in the send queue. Tails take at most two each; beside them fit the heads and the chunks. */
#define HWS_RDMA_SENDS 2048u
/* Room that tails leave for heads and chunks, which never wait for the other end. */
#define HWS_RDMA_SENDS_KEPT 256u
/* Every so many work requests one asks for a completion, which counts for all before it. */
#define HWS_RDMA_SIGNAL_EVERY 64u
/* Adapters send so much from the work request itself, without a second read of memory. */
#define HWS_RDMA_INLINE_BYTES 220u
/* Reads of one connection at a time. They cover the way there and back also of short ones. */
#define HWS_RDMA_READS 16u
/* Completions taken at once, and receives posted at once. */
#define HWS_RDMA_BATCH 32u
/* After so many tails the reader reports its position, although less than a quarter of the ring is free. */
#define HWS_RDMA_REPORT_TAILS 256u

/* Immediate data: the kind in the upper two bits. */
typedef enum hws_rdma_kind { HWS_RDMA_TAIL, HWS_RDMA_HEAD, HWS_RDMA_CHUNK, HWS_RDMA_LEFT } hws_rdma_kind_t;

#define HWS_RDMA_KIND_SHIFT 30
#define HWS_RDMA_VALUE_MASK ((1u << HWS_RDMA_KIND_SHIFT) - 1)
#define HWS_RDMA_CHUNK_SHIFT 16

/* An end as it travels in OPEN and ANSWER; little-endian. */
typedef struct hws_rdma_end {
    uint8_t gid[16];
    uint32_t queue_pair;   /* 24 bits */
    uint32_t first_packet; /* 24 bits: the first sequence number */
    uint32_t lid;          /* of InfiniBand; 16 bits */
    uint32_t mtu;          /* enum ibv_mtu */
    uint32_t link_layer;   /* IBV_LINK_LAYER_INFINIBAND or IBV_LINK_LAYER_ETHERNET */
    uint32_t key;          /* by which the other end writes the mirror */
    uint64_t address;      /* of the mirror */
    uint64_t bytes;
    uint32_t reads; /* that the end can serve at a time; 1..255 */
    uint32_t reserved;
} hws_rdma_end_t;

_Static_assert(sizeof(hws_rdma_end_t) == HWS_RDMA_END_BYTES, "the layout of an end");

struct hws_rdma_memory {
    struct hws_rdma_memory *next, *previous;
    struct ibv_mr *region;
    uint64_t base, bytes; /* the addresses that requests name */
    uint64_t last;        /* ticket of its last request; under send_lock */
};

struct hws_rdma {
    hws_rdma_words_t words;
    const hws_verbs_t *verbs;
    hws_rdma_options_t options; /* without the device's name */
    char device[64];
    struct ibv_context *context;
    struct ibv_pd *domain;
    uint8_t port;
    int gid_index;
    struct ibv_port_attr port_state;
    uint32_t served_reads, own_reads; /* reads of one connection at a time: of the other end's, and of this end's */
    union ibv_gid gid;

    uint8_t *mirror;
    struct ibv_mr *region;
    struct ibv_comp_channel *channel;
    struct ibv_cq *sent, *received;
    struct ibv_qp *queue_pair;
    uint32_t inline_bytes;
    uint32_t first_packet;
    hws_rdma_end_t peer; /* checked */

    pthread_mutex_t send_lock; /* of the send queue, its completions, and the list of memories */
    uint64_t posted;
    _Atomic uint64_t completed; /* changes only under send_lock */
    _Atomic uint64_t ticketed;  /* the last request that asks for a completion of its own; as `completed` */
    hws_rdma_memory_t *memories;
    _Atomic uint64_t messages_out, bytes_out, bytes_read, messages_in;

    /* The sender's: positions of tails that the other end has not reported as read. */
    uint64_t tails[HWS_MIRROR_TAILS];
    uint32_t first_tail, tail_count;

    pthread_mutex_t receive_lock; /* of the completions of receives */
    uint32_t receives_owed;
    _Atomic uint32_t tails_unreported; /* tails that came since this end reported all that it had */
    uint64_t reported;                 /* the reader's: the position that it told the other end */
    unsigned events, sent_events;      /* of both queues that are not acknowledged; the sleeper's */

    pthread_mutex_t fault_lock;
    _Atomic bool lost;
    char fault[256];
};

/* Notes why the connection is lost; only the first reason stays. Returns -1. Any thread. */
__attribute__((format(printf, 2, 3))) int hws_rdma_lose(hws_rdma_t *rdma, const char *format, ...);

/* Posts `count` receives. Returns 0, or -1 after the connection is lost. receive_lock held, or before any traffic. */
int hws_rdma_post_receives(hws_rdma_t *rdma, uint32_t count);

/* Says that the device did not register so many bytes, by errno, and names the limit that is mostly the reason. */
void hws_rdma_say_refused(const hws_rdma_t *rdma, uint64_t bytes, char *error_p, size_t error_capacity);

/*
 * Waits until the device has done what was posted up to a ticket. Returns false after the limit or after the connection
 * is lost. send_lock held, but not while it sleeps, so that others may send meanwhile.
 */
bool hws_rdma_await(hws_rdma_t *rdma, uint64_t ticket, uint32_t limit_ms);

/* Takes completions of sends. Returns whether there was one. send_lock held. */
bool hws_rdma_reap(hws_rdma_t *rdma);

#endif
