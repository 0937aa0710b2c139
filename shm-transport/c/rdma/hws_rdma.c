/* An end's life: its device, its memory and its queue pair. */
#include "hws_rdma_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define MOST_PORTS 8
#define GID_LINK_LOCAL_0 0xfe
#define GID_LINK_LOCAL_1 0x80

int hws_rdma_lose(hws_rdma_t *rdma, const char *format, ...) {
    pthread_mutex_lock(&rdma->fault_lock);
    if (!atomic_load(&rdma->lost)) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(rdma->fault, sizeof rdma->fault, format, arguments);
        va_end(arguments);
        atomic_store(&rdma->lost, true);
    }
    pthread_mutex_unlock(&rdma->fault_lock);
    return -1;
}

const char *hws_rdma_fault(hws_rdma_t *rdma) {
    return atomic_load(&rdma->lost) ? rdma->fault : NULL; /* the text is written once, before the flag */
}

/* How well an entry of the table of GIDs suits; 0: not at all. */
static int suitability(const struct ibv_gid_entry *entry) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (entry->gid_type != IBV_GID_TYPE_ROCE_V2) {
        return 0;
    }
    if (memcmp(entry->gid.raw, mapped, sizeof mapped) == 0) {
        return 3;
    }
    return entry->gid.raw[0] == GID_LINK_LOCAL_0 && entry->gid.raw[1] == GID_LINK_LOCAL_1 ? 1 : 2;
}

/* Chooses this end's GID: InfiniBand's first one; with Ethernet one of RoCE v2, best one with an address of IPv4. */
static int choose_gid(hws_rdma_t *rdma, char *error, size_t capacity) {
    int best = 0;
    rdma->gid_index = rdma->options.gid_index < 0 ? 0 : rdma->options.gid_index;
    if (rdma->options.gid_index < 0 && rdma->port_state.link_layer == IBV_LINK_LAYER_ETHERNET) {
        /* ibv_global_route.sgid_index has 8 bits. */
        for (int i = 0; i < rdma->port_state.gid_tbl_len && i <= UINT8_MAX; i++) {
            struct ibv_gid_entry entry;
            if (rdma->verbs->_ibv_query_gid_ex(rdma->context, rdma->port, (uint32_t) i, &entry, 0, sizeof entry) == 0
                && suitability(&entry) > best) {
                best = suitability(&entry);
                rdma->gid_index = i;
            }
        }
        if (best == 0) {
            snprintf(error, capacity,
                     "port %u of the RDMA device %s has no GID of RoCE v2: give its network interface"
                     " an address",
                     rdma->port, rdma->device);
            return -1;
        }
    }
    if (rdma->verbs->ibv_query_gid(rdma->context, rdma->port, rdma->gid_index, &rdma->gid) != 0) {
        snprintf(error, capacity, "port %u of the RDMA device %s has no GID with index %d", rdma->port, rdma->device,
                 rdma->gid_index);
        return -1;
    }
    return 0;
}

/* Chooses the port of the opened device. Returns whether it has an active one. */
static bool choose_port(hws_rdma_t *rdma) {
    uint32_t first = rdma->options.port != 0 ? rdma->options.port : 1;
    uint32_t last = rdma->options.port != 0 ? first : MOST_PORTS;
    for (uint32_t port = first; port <= last && port <= UINT8_MAX; port++) {
        memset(&rdma->port_state, 0, sizeof rdma->port_state);
        if (rdma->verbs->ibv_query_port(rdma->context, (uint8_t) port, &rdma->port_state) != 0) {
            return false;
        }
        if (rdma->port_state.state == IBV_PORT_ACTIVE) {
            rdma->port = (uint8_t) port;
            return true;
        }
    }
    return false;
}

static uint32_t reads_of(int limit) {
    return limit < 1 ? 1 : (uint32_t) limit < HWS_RDMA_READS ? (uint32_t) limit : HWS_RDMA_READS;
}

/* Sets how many reads the device does at a time for one connection. Every device does one. */
static void limit_reads(hws_rdma_t *rdma) {
    struct ibv_device_attr device = {0};
    if (rdma->verbs->ibv_query_device(rdma->context, &device) != 0) {
        memset(&device, 0, sizeof device);
    }
    rdma->served_reads = reads_of(device.max_qp_rd_atom);
    rdma->own_reads = reads_of(device.max_qp_init_rd_atom);
}

/* Opens a device with the wanted name; "" is any. `active`: the device must have an active port. */
static void try_device(hws_rdma_t *rdma, struct ibv_device *device, const char *wanted, bool active, bool *seen_p) {
    const char *name = rdma->verbs->ibv_get_device_name(device);
    if (name == NULL || (wanted[0] != '\0' && strcmp(name, wanted) != 0)) {
        return;
    }
    *seen_p = true;
    rdma->context = rdma->verbs->ibv_open_device(device);
    if (rdma->context == NULL) {
        return;
    }
    snprintf(rdma->device, sizeof rdma->device, "%s", name);
    if (!choose_port(rdma) && active) {
        rdma->verbs->ibv_close_device(rdma->context);
        rdma->context = NULL;
    }
}

/*
 * Opens the wanted device, or the first that has an active port. A worker waits for its session, so it also takes a
 * device whose link is down now.
 */
static int open_device(hws_rdma_t *rdma, const char *wanted, char *error, size_t capacity) {
    int count = 0;
    struct ibv_device **list = rdma->verbs->ibv_get_device_list(&count);
    bool seen = false;
    wanted = wanted == NULL ? "" : wanted;
    for (int i = 0; list != NULL && i < count && rdma->context == NULL; i++) {
        try_device(rdma, list[i], wanted, true, &seen);
    }
    for (int i = 0; seen && rdma->options.is_worker && i < count && rdma->context == NULL; i++) {
        try_device(rdma, list[i], wanted, false, &seen);
    }
    if (list != NULL) {
        rdma->verbs->ibv_free_device_list(list);
    }
    if (rdma->context != NULL) {
        return 0;
    }
    if (wanted[0] != '\0') {
        snprintf(error, capacity, seen ? "the RDMA device %s has no active port" : "there is no RDMA device %s",
                 wanted);
    } else {
        snprintf(error, capacity, seen ? "no RDMA device has an active port" : "this machine has no RDMA device");
    }
    return -1;
}

static int find_address(hws_rdma_t *rdma, char *error, size_t capacity) {
    if (!choose_port(rdma)) {
        snprintf(error, capacity, "the RDMA device %s has no active port", rdma->device);
        return -1;
    }
    return choose_gid(rdma, error, capacity);
}

/*
 * Finds the port and its GID again: the link of a worker that has waited may have come or changed. Where that fails, as
 * older kernels tell a jailed process nothing, what was found at first counts.
 */
static int find_address_again(hws_rdma_t *rdma, char *error, size_t capacity) {
    const uint8_t port = rdma->port;
    const int gid_index = rdma->gid_index;
    const struct ibv_port_attr port_state = rdma->port_state;
    const union ibv_gid gid = rdma->gid;
    if (find_address(rdma, error, capacity) == 0) {
        return 0;
    }
    rdma->port = port;
    rdma->gid_index = gid_index;
    rdma->port_state = port_state;
    rdma->gid = gid;
    return port != 0 ? 0 : -1;
}

hws_rdma_t *hws_rdma_open(const hws_rdma_options_t *options, char *error_p, size_t error_capacity) {
    const hws_verbs_t *verbs = hws_verbs_load(error_p, error_capacity);
    hws_rdma_t *rdma = verbs == NULL ? NULL : calloc(1, sizeof *rdma);
    if (rdma == NULL) {
        if (verbs != NULL) {
            snprintf(error_p, error_capacity, "no memory for RDMA");
        }
        return NULL;
    }
    rdma->verbs = verbs;
    rdma->options = *options;
    rdma->options.device = NULL;
    rdma->options.retry_ms = options->retry_ms != 0 ? options->retry_ms : HWS_RDMA_RETRY_MS;
    pthread_mutex_init(&rdma->send_lock, NULL);
    pthread_mutex_init(&rdma->receive_lock, NULL);
    pthread_mutex_init(&rdma->fault_lock, NULL);
    /* Forks of the program must not move pages that the adapter uses. Newer kernels take care of that themselves. */
    verbs->ibv_fork_init();
    if (open_device(rdma, options->device, error_p, error_capacity) != 0
        || (rdma->port != 0 && choose_gid(rdma, error_p, error_capacity) != 0)) {
        hws_rdma_close(rdma);
        return NULL;
    }
    limit_reads(rdma);
    rdma->domain = verbs->ibv_alloc_pd(rdma->context);
    if (rdma->domain == NULL) {
        snprintf(error_p, error_capacity, "the RDMA device %s gives no protection domain: %s", rdma->device,
                 strerror(errno));
        hws_rdma_close(rdma);
        return NULL;
    }
    return rdma;
}

void hws_rdma_say_refused(const hws_rdma_t *rdma, uint64_t bytes, char *error_p, size_t error_capacity) {
    const char *reason = strerror(errno);
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    char most[32] = "none";
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur != RLIM_INFINITY) {
        snprintf(most, sizeof most, "%llu KiB", (unsigned long long) (limit.rlim_cur >> 10));
    }
    snprintf(error_p, error_capacity,
             "%llu KiB cannot be registered with the RDMA device %s: %s (limit of locked memory: %s)",
             (unsigned long long) (bytes + 1023) >> 10, rdma->device, reason, most);
}

static int make_mirror(hws_rdma_t *rdma, char *error, size_t capacity) {
    void *memory = mmap(NULL, HWS_MIRROR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        snprintf(error, capacity, "no memory for RDMA: %s", strerror(errno));
        return -1;
    }
    rdma->mirror = memory;
    madvise(memory, HWS_MIRROR_BYTES, MADV_DONTFORK);
    rdma->region = rdma->verbs->ibv_reg_mr(rdma->domain, memory, HWS_MIRROR_BYTES,
                                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (rdma->region == NULL) {
        hws_rdma_say_refused(rdma, HWS_MIRROR_BYTES, error, capacity);
        return -1;
    }
    return 0;
}

static int make_queues(hws_rdma_t *rdma, char *error, size_t capacity) {
    const hws_verbs_t *verbs = rdma->verbs;
    rdma->channel = verbs->ibv_create_comp_channel(rdma->context);
    rdma->sent =
        rdma->channel == NULL ? NULL : verbs->ibv_create_cq(rdma->context, HWS_RDMA_SENDS, NULL, rdma->channel, 0);
    /* Flushed receives need room too, and no completion is lost while this end does not look. */
    rdma->received = rdma->channel == NULL
        ? NULL
        : verbs->ibv_create_cq(rdma->context, 2 * HWS_MIRROR_RECEIVES, NULL, rdma->channel, 0);
    struct ibv_qp_init_attr wanted = {
        .send_cq = rdma->sent,
        .recv_cq = rdma->received,
        .cap = {.max_send_wr = HWS_RDMA_SENDS,
                .max_recv_wr = HWS_MIRROR_RECEIVES,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = HWS_RDMA_INLINE_BYTES},
        .qp_type = IBV_QPT_RC,
    };
    if (rdma->sent != NULL && rdma->received != NULL) {
        rdma->queue_pair = verbs->ibv_create_qp(rdma->domain, &wanted);
        if (rdma->queue_pair == NULL) {
            wanted.cap.max_inline_data = 0;
            rdma->queue_pair = verbs->ibv_create_qp(rdma->domain, &wanted);
        }
    }
    if (rdma->queue_pair == NULL || rdma->channel == NULL || fcntl(rdma->channel->fd, F_SETFL, O_NONBLOCK) != 0) {
        snprintf(error, capacity, "the RDMA device %s gives no queue pair: %s", rdma->device, strerror(errno));
        return -1;
    }
    rdma->inline_bytes = wanted.cap.max_inline_data;
    return 0;
}

static int initialise(hws_rdma_t *rdma, char *error, size_t capacity) {
    struct ibv_qp_attr state = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = (uint16_t) rdma->options.partition,
        .port_num = rdma->port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | (rdma->options.is_worker ? 0 : IBV_ACCESS_REMOTE_READ),
    };
    int rc = rdma->verbs->ibv_modify_qp(rdma->queue_pair, &state,
                                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (rc != 0) {
        snprintf(error, capacity, "the RDMA device %s refuses partition %u on port %u: %s", rdma->device,
                 rdma->options.partition, rdma->port, strerror(rc));
        return -1;
    }
    if (hws_rdma_post_receives(rdma, HWS_MIRROR_RECEIVES) != 0) {
        snprintf(error, capacity, "%s", rdma->fault);
        return -1;
    }
    return 0;
}

int hws_rdma_prepare(hws_rdma_t *rdma, uint8_t end_p[HWS_RDMA_END_BYTES], char *error_p, size_t error_capacity) {
    if (getrandom(&rdma->first_packet, sizeof rdma->first_packet, 0) != (ssize_t) sizeof rdma->first_packet) {
        snprintf(error_p, error_capacity, "no random numbers for RDMA: %s", strerror(errno));
        return -1;
    }
    rdma->first_packet &= 0xffffff;
    /* A guest has opened its end just now. */
    if (rdma->options.is_worker && find_address_again(rdma, error_p, error_capacity) != 0) {
        return -1;
    }
    if (make_mirror(rdma, error_p, error_capacity) != 0 || make_queues(rdma, error_p, error_capacity) != 0
        || initialise(rdma, error_p, error_capacity) != 0) {
        return -1;
    }
    hws_rdma_end_t end = {
        .queue_pair = rdma->queue_pair->qp_num,
        .first_packet = rdma->first_packet,
        .lid = rdma->port_state.lid,
        .mtu = rdma->port_state.active_mtu,
        .link_layer = rdma->port_state.link_layer,
        .key = rdma->region->rkey,
        .address = (uint64_t) (uintptr_t) rdma->mirror,
        .bytes = HWS_MIRROR_BYTES,
        .reads = rdma->served_reads,
    };
    memcpy(end.gid, rdma->gid.raw, sizeof end.gid);
    memcpy(end_p, &end, sizeof end);
    return 0;
}

/* Whether the other end can be connected with: everything in it may be wrong. */
static bool is_sound(const hws_rdma_t *rdma, const hws_rdma_end_t *end) {
    return end->queue_pair < 1u << 24 && end->first_packet < 1u << 24 && end->lid <= UINT16_MAX
        && end->mtu >= IBV_MTU_256 && end->mtu <= IBV_MTU_4096 && end->link_layer == rdma->port_state.link_layer
        && end->bytes == HWS_MIRROR_BYTES && end->address <= UINT64_MAX - HWS_MIRROR_BYTES && end->reads >= 1
        && end->reads <= UINT8_MAX && end->reserved == 0;
}

/* The exponent of the time to wait for an acknowledgement: eight such waits make the time that a link may be down. */
static uint8_t timeout_for(uint32_t retry_ms) {
    uint8_t exponent = 1;
    /* One wait is 4.096 us times 2 to the power of the exponent. */
    while (exponent < 31 && (4096ull << exponent) * 8 < retry_ms * 1000000ull) {
        exponent++;
    }
    return exponent;
}

static int to_ready(hws_rdma_t *rdma) {
    const hws_rdma_end_t *peer = &rdma->peer;
    bool global = rdma->port_state.link_layer == IBV_LINK_LAYER_ETHERNET
        || memcmp(peer->gid, rdma->gid.raw, sizeof(uint64_t)) != 0; /* another subnet */
    struct ibv_qp_attr state = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = (enum ibv_mtu)(peer->mtu < rdma->port_state.active_mtu ? peer->mtu : rdma->port_state.active_mtu),
        .dest_qp_num = peer->queue_pair,
        .rq_psn = peer->first_packet,
        .max_dest_rd_atomic = (uint8_t) rdma->served_reads,
        .min_rnr_timer = 1, /* 10 us; correct ends never need it */
        .ah_attr = {.dlid = (uint16_t) peer->lid,
                    .sl = (uint8_t) rdma->options.service_level,
                    .port_num = rdma->port,
                    .is_global = global},
    };
    if (global) {
        memcpy(state.ah_attr.grh.dgid.raw, peer->gid, sizeof peer->gid);
        state.ah_attr.grh.sgid_index = (uint8_t) rdma->gid_index;
        state.ah_attr.grh.hop_limit = 64;
        state.ah_attr.grh.traffic_class = (uint8_t) rdma->options.traffic_class;
    }
    int rc = rdma->verbs->ibv_modify_qp(rdma->queue_pair, &state,
                                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                            | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (rc != 0) {
        return rc;
    }
    state = (struct ibv_qp_attr) {
        .qp_state = IBV_QPS_RTS,
        .timeout = timeout_for(rdma->options.retry_ms),
        .retry_cnt = 7,
        .rnr_retry = 7, /* for ever: an end that reads nothing is no failure */
        .sq_psn = rdma->first_packet,
        .max_rd_atomic = (uint8_t) (peer->reads < rdma->own_reads ? peer->reads : rdma->own_reads),
    };
    return rdma->verbs->ibv_modify_qp(rdma->queue_pair, &state,
                                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                                          | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int hws_rdma_connect(hws_rdma_t *rdma, const uint8_t peer[HWS_RDMA_END_BYTES], char *error_p, size_t error_capacity) {
    memcpy(&rdma->peer, peer, sizeof rdma->peer);
    if (!is_sound(rdma, &rdma->peer)) {
        snprintf(error_p, error_capacity,
                 "the other end of the RDMA connection must be of the same kind: link layer %u"
                 " and %u, %llu bytes",
                 rdma->port_state.link_layer, rdma->peer.link_layer, (unsigned long long) rdma->peer.bytes);
        return -1;
    }
    int rc = to_ready(rdma);
    if (rc != 0) {
        snprintf(error_p, error_capacity,
                 "the RDMA device %s cannot reach the other end: %s (both ends need a GID of the same type)",
                 rdma->device, strerror(rc));
        return -1;
    }
    return 0;
}

uint8_t *hws_rdma_mirror(hws_rdma_t *rdma) {
    return rdma->mirror;
}

hws_rdma_words_t *hws_rdma_words(hws_rdma_t *rdma) {
    return &rdma->words;
}

int hws_rdma_channel(const hws_rdma_t *rdma) {
    return rdma->channel->fd;
}

void hws_rdma_describe(const hws_rdma_t *rdma, char *text_p, size_t capacity) {
    char gid[INET6_ADDRSTRLEN];
    snprintf(text_p, capacity, "%s port %u, GID %d (%s)", rdma->device, rdma->port, rdma->gid_index,
             inet_ntop(AF_INET6, rdma->gid.raw, gid, sizeof gid));
}

const char *hws_rdma_device(const hws_rdma_t *rdma) {
    return rdma->device;
}

int hws_rdma_device_descriptor(const hws_rdma_t *rdma) {
    return rdma->context->cmd_fd;
}

void hws_rdma_count(const hws_rdma_t *rdma, hws_rdma_counts_t *counts_p) {
    *counts_p = (hws_rdma_counts_t) {
        .messages_out = atomic_load(&rdma->messages_out),
        .bytes_out = atomic_load(&rdma->bytes_out),
        .bytes_read = atomic_load(&rdma->bytes_read),
        .messages_in = atomic_load(&rdma->messages_in),
    };
}

void hws_rdma_close(hws_rdma_t *rdma) {
    const hws_verbs_t *verbs = rdma->verbs;
    if (rdma->queue_pair != NULL) {
        verbs->ibv_destroy_qp(rdma->queue_pair);
    }
    while (rdma->memories != NULL) {
        hws_rdma_unregister(rdma, rdma->memories, 0);
    }
    if (rdma->sent != NULL) {
        verbs->ibv_ack_cq_events(rdma->sent, rdma->sent_events);
        verbs->ibv_destroy_cq(rdma->sent);
    }
    if (rdma->received != NULL) {
        verbs->ibv_ack_cq_events(rdma->received, rdma->events);
        verbs->ibv_destroy_cq(rdma->received);
    }
    if (rdma->channel != NULL) {
        verbs->ibv_destroy_comp_channel(rdma->channel);
    }
    if (rdma->region != NULL) {
        verbs->ibv_dereg_mr(rdma->region);
    }
    if (rdma->mirror != NULL) {
        munmap(rdma->mirror, HWS_MIRROR_BYTES);
    }
    if (rdma->domain != NULL) {
        verbs->ibv_dealloc_pd(rdma->domain);
    }
    if (rdma->context != NULL) {
        verbs->ibv_close_device(rdma->context);
    }
    pthread_mutex_destroy(&rdma->send_lock);
    pthread_mutex_destroy(&rdma->receive_lock);
    pthread_mutex_destroy(&rdma->fault_lock);
    free(rdma);
}

void hws_rdma_abandon_in_child(hws_rdma_t *rdma) {
    close(rdma->channel->fd);
    close(rdma->context->cmd_fd);
}
