/*
 * A device of libibverbs for tests: reliable connections between processes of one machine without an adapter. A program
 * loads libibverbs_test.so in place of libibverbs.so.1 and finds the device hawser_test0. HAWSER_TEST_FABRIC names the
 * folder of the fabric, /tmp/hawser-fabric-UID by default: devices of one folder reach each other. While a file
 * `link-down` lies in the folder, nothing moves.
 *
 * Where adapters differ, the device behaves as the strictest one, so that a program which works here relies on no luck:
 * - queues are exactly as deep as asked for, and only a completion that the program has polled frees their entries;
 * - only completions that follow an ibv_req_notify_cq() make an event;
 * - of a failed completion only wr_id, status, qp_num and vendor_err have a meaning;
 * - bytes of a request without IBV_SEND_INLINE are read some time after the post.
 *
 * It differs from adapters in this: a thread of the process does the work. So a process that stands still for two
 * seconds is as unreachable as a dead one. There are no asynchronous events.
 *
 * ibv_open_device() makes all that needs files. Afterwards the device only uses futexes, clocks, heap memory, and
 * read(), write(), poll() and close() of descriptors that it has. The fifth completion channel needs an eventfd().
 */
#ifndef HWS_TEST_DEVICE_H
#define HWS_TEST_DEVICE_H

#include "fabric.h"

#include <infiniband/verbs.h>

#define HWS_EXPORT __attribute__((visibility("default")))

#define HWS_DEVICE_CHANNELS 4
#define HWS_DEVICE_GIDS 4
#define HWS_DEVICE_GID_TABLE 8
#define HWS_DEVICE_PARTITIONS 2
#define HWS_DEVICE_DEPTH 16384
#define HWS_DEVICE_ENTRIES 65536
#define HWS_DEVICE_SGES 4
#define HWS_DEVICE_INLINE 512
#define HWS_DEVICE_READS 16
#define HWS_DEVICE_MESSAGE (1u << 30)

typedef struct hws_region {
    struct ibv_mr mr;
    uint64_t base; /* how the other end calls the first byte */
    unsigned access;
    bool is_mapped; /* the device has mapped a file */
    struct hws_region *next;
} hws_region_t;

typedef struct hws_domain {
    struct ibv_pd pd;
    uint32_t users;
} hws_domain_t;

typedef struct hws_channel {
    struct ibv_comp_channel channel;
    struct hws_queue *queues;
} hws_channel_t;

typedef struct hws_entry {
    struct ibv_wc wc;
    struct hws_pair *pair;
    uint32_t frees; /* entries of the pair's send or receive queue */
    bool is_receive;
} hws_entry_t;

enum hws_armed { HWS_ARMED_NOT, HWS_ARMED_SOLICITED, HWS_ARMED_ANY };

/* A completion queue. cq.mutex guards all of it but `users` and `next`. */
typedef struct hws_queue {
    struct ibv_cq cq;
    hws_entry_t *entries;
    uint32_t first;
    uint32_t count;
    enum hws_armed armed;
    _Atomic bool is_overrun;
    uint32_t events;         /* in the channel */
    uint32_t unacknowledged; /* taken from the channel */
    uint32_t users;
    struct hws_queue *next; /* of the channel */
} hws_queue_t;

typedef struct hws_work {
    struct ibv_send_wr wr;
    struct ibv_sge sges[HWS_DEVICE_SGES];
    uint8_t bytes[HWS_DEVICE_INLINE];
    uint32_t total;
} hws_work_t;

typedef struct hws_receive {
    uint64_t id;
    struct ibv_sge sge;
} hws_receive_t;

/* A queue pair. Positions count entries ever and wrap; the lock guards them. */
typedef struct hws_pair {
    struct ibv_qp qp;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    hws_fabric_pair_t *own;
    hws_work_t *works;
    uint32_t posted;           /* works posted */
    uint32_t sent;             /* works whose last packet lies in the ring */
    uint32_t sent_bytes;       /* of the work that follows */
    uint32_t completed;        /* works carried out */
    uint32_t uncounted;        /* works since the last completion, which the next one frees */
    _Atomic uint32_t released; /* works freed by a poll */
    uint32_t reaped;           /* packets whose outcome this end has seen */
    hws_receive_t *receives;
    uint32_t offered;           /* receives posted */
    uint32_t taken;             /* receives used */
    _Atomic uint32_t recovered; /* receives freed by a poll */
    uint64_t contact_ms;        /* when the other end was last seen */
    struct hws_pair *next;
} hws_pair_t;

typedef struct hws_context {
    struct verbs_context verbs;
    hws_fabric_t fabric;
    pthread_t engine;
    _Atomic bool stop;
    uint32_t forks; /* how often the process had been a child at the opening */
    bool is_lost;
    hws_pair_t *pairs;
    hws_region_t *regions;
    uint32_t next_key;
    int channels[HWS_DEVICE_CHANNELS]; /* descriptors made before a jail forbids it, or -1 */
} hws_context_t;

static inline hws_context_t *hws_context_of(struct ibv_context *context) {
    return (hws_context_t *) ((uint8_t *) context - offsetof(hws_context_t, verbs.context));
}

/*
 * device.c: guards all objects of the process. One lock for all devices, because a sanitizer sees the order between two
 * engines of a process by it; their rings are mapped twice.
 */
extern pthread_mutex_t hws_device_lock;

/* Whether this process is a child of the one that opened the device. Such a one may only free memory. */
bool hws_device_is_inherited(const hws_context_t *context);
bool hws_device_has_gid(const union ibv_gid *gid);

/* memory.c: the bytes of a key, or NULL. Needs the lock. */
uint8_t *hws_region_find(hws_context_t *context, struct ibv_pd *pd, uint32_t key, uint64_t address, uint64_t bytes,
                         unsigned access);

/* completion.c: adds a completion that frees entries of a queue of the pair. Needs the lock. */
void hws_queue_push(hws_queue_t *queue, const hws_entry_t *entry, bool is_solicited);
/* Removes what a pair has left there. */
void hws_queue_forget(hws_queue_t *queue, const hws_pair_t *pair);
int hws_queue_poll(struct ibv_cq *cq, int count, struct ibv_wc *wcs);
int hws_queue_arm(struct ibv_cq *cq, int solicited_only);

/* work.c: all need the lock, except the two that programs call. */
int hws_work_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_p);
int hws_receive_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_p);
/* Completes the oldest work. */
void hws_work_complete(hws_pair_t *pair, enum ibv_wc_status status);
/* Completes the oldest receive. */
void hws_receive_complete(hws_pair_t *pair, enum ibv_wc_status status, const hws_packet_header_t *header);
/* Moves the pair to the state ERR. The oldest work gets this status, everything else is flushed. */
void hws_pair_fail(hws_pair_t *pair, enum ibv_wc_status status);

/* engine.c */
void *hws_engine_main(void *context);

#endif
