#include "device.h"

#include "hws_thread.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_query_port

static struct ibv_device device = {
    .node_type = IBV_NODE_CA,
    .transport_type = IBV_TRANSPORT_IB,
    .name = "hawser_test0",
    .dev_name = "hawser_test_uverbs0",
};

pthread_mutex_t hws_device_lock = PTHREAD_MUTEX_INITIALIZER;

static _Atomic uint32_t forks;

/* A child may open the device anew, so it must not inherit a lock that a thread of the parent holds. */
static void before_fork(void) {
    pthread_mutex_lock(&hws_device_lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&hws_device_lock);
}

static void after_fork_in_child(void) {
    atomic_fetch_add(&forks, 1);
    pthread_mutex_unlock(&hws_device_lock);
}

__attribute__((constructor)) static void watch_forks(void) {
    (void) pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

bool hws_device_is_inherited(const hws_context_t *context) {
    return context->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

HWS_EXPORT int ibv_fork_init(void) {
    return 0;
}

HWS_EXPORT struct ibv_device **ibv_get_device_list(int *count_p) {
    struct ibv_device **list = calloc(2, sizeof *list);
    if (list != NULL) {
        list[0] = &device;
    }
    if (count_p != NULL) {
        *count_p = list == NULL ? 0 : 1;
    }
    return list;
}

HWS_EXPORT void ibv_free_device_list(struct ibv_device **list) {
    free(list);
}

HWS_EXPORT const char *ibv_get_device_name(struct ibv_device *ibv) {
    return ibv->name;
}

HWS_EXPORT int ibv_query_device(struct ibv_context *ibv, struct ibv_device_attr *attr) {
    (void) ibv;
    *attr = (struct ibv_device_attr) {
        .fw_ver = "1.0",
        .node_guid = 1,
        .sys_image_guid = 1,
        .max_mr_size = UINT64_MAX,
        .page_size_cap = 4096,
        .max_qp = HWS_FABRIC_PAIRS,
        .max_qp_wr = HWS_DEVICE_DEPTH,
        .max_sge = HWS_DEVICE_SGES,
        .max_sge_rd = HWS_DEVICE_SGES,
        .max_cq = 1024,
        .max_cqe = HWS_DEVICE_ENTRIES,
        .max_mr = 1024,
        .max_pd = 1024,
        .max_qp_rd_atom = HWS_DEVICE_READS,
        .max_res_rd_atom = HWS_DEVICE_READS * HWS_FABRIC_PAIRS,
        .max_qp_init_rd_atom = HWS_DEVICE_READS,
        .atomic_cap = IBV_ATOMIC_NONE,
        .max_pkeys = HWS_DEVICE_PARTITIONS,
        .local_ca_ack_delay = 15,
        .phys_port_cnt = 1,
    };
    return 0;
}

static int query_port(struct ibv_context *ibv, uint8_t port, struct ibv_port_attr *attr, size_t bytes) {
    if (port != 1) {
        return EINVAL;
    }
    hws_context_t *context = hws_context_of(ibv);
    bool is_down = hws_device_is_inherited(context) || atomic_load(&context->fabric.arena->link_down) != 0;
    struct ibv_port_attr all = {
        .state = is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = IBV_MTU_4096,
        .gid_tbl_len = HWS_DEVICE_GID_TABLE,
        .max_msg_sz = HWS_DEVICE_MESSAGE,
        .pkey_tbl_len = HWS_DEVICE_PARTITIONS,
        .active_width = 2,
        .active_speed = 32,
        .phys_state = is_down ? 3 : 5, /* Polling, LinkUp */
        .link_layer = IBV_LINK_LAYER_ETHERNET,
    };
    memcpy(attr, &all, bytes < sizeof all ? bytes : sizeof all);
    return 0;
}

/* Programs built against old headers give a structure without the last field. */
HWS_EXPORT int ibv_query_port(struct ibv_context *ibv, uint8_t port, struct _compat_ibv_port_attr *attr) {
    return query_port(ibv, port, (struct ibv_port_attr *) attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* As on a host with one address: the link-local one and the IPv4 one, each for RoCE v1 and v2. The rest is empty. */
static union ibv_gid gid_at(int index) {
    union ibv_gid gid = {.raw = {0}};
    if (index < 2) {
        gid.raw[0] = 0xfe;
        gid.raw[1] = 0x80;
        gid.raw[15] = 1;
    } else if (index < HWS_DEVICE_GIDS) {
        static const uint8_t loopback[] = {0xff, 0xff, 127, 0, 0, 1};
        memcpy(gid.raw + 10, loopback, sizeof loopback);
    }
    return gid;
}

bool hws_device_has_gid(const union ibv_gid *gid) {
    for (int i = 0; i < HWS_DEVICE_GIDS; i++) {
        union ibv_gid own = gid_at(i);
        if (memcmp(gid, &own, sizeof own) == 0) {
            return true;
        }
    }
    return false;
}

HWS_EXPORT int ibv_query_gid(struct ibv_context *ibv, uint8_t port, int index, union ibv_gid *gid) {
    (void) ibv;
    if (port != 1 || index < 0 || index >= HWS_DEVICE_GID_TABLE) {
        errno = EINVAL;
        return -1;
    }
    *gid = gid_at(index);
    return 0;
}

static struct ibv_gid_entry gid_entry(uint32_t index) {
    return (struct ibv_gid_entry) {
        .gid = gid_at((int) index),
        .gid_index = index,
        .port_num = 1,
        .gid_type = index % 2 == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2,
        .ndev_ifindex = 1,
    };
}

HWS_EXPORT int _ibv_query_gid_ex(struct ibv_context *ibv, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                                 uint32_t flags, size_t bytes) {
    (void) ibv;
    if (flags != 0 || port != 1 || index >= HWS_DEVICE_GID_TABLE || bytes < sizeof *entry) {
        return EINVAL;
    }
    if (index >= HWS_DEVICE_GIDS) {
        return ENODATA;
    }
    *entry = gid_entry(index);
    return 0;
}

HWS_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *ibv, struct ibv_gid_entry *entries, size_t count,
                                        uint32_t flags, size_t bytes) {
    (void) ibv;
    if (flags != 0 || bytes != sizeof *entries || count < HWS_DEVICE_GIDS) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < HWS_DEVICE_GIDS; i++) {
        entries[i] = gid_entry(i);
    }
    return HWS_DEVICE_GIDS;
}

HWS_EXPORT int ibv_query_pkey(struct ibv_context *ibv, uint8_t port, int index, __be16 *pkey) {
    (void) ibv;
    if (port != 1 || index < 0 || index >= HWS_DEVICE_PARTITIONS) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htons(index == 0 ? 0xffff : 0x8001);
    return 0;
}

static void close_files(hws_context_t *context) {
    for (int i = 0; i < HWS_DEVICE_CHANNELS; i++) {
        if (context->channels[i] >= 0) {
            (void) close(context->channels[i]);
        }
    }
    if (context->verbs.context.async_fd >= 0) {
        (void) close(context->verbs.context.async_fd);
    }
}

HWS_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *ibv) {
    hws_context_t *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return NULL;
    }
    struct ibv_context *outer = &context->verbs.context;
    context->verbs.sz = sizeof context->verbs;
    context->verbs.query_port = query_port;
    outer->abi_compat = __VERBS_ABI_IS_EXTENDED;
    outer->device = ibv;
    outer->num_comp_vectors = 1;
    outer->ops.poll_cq = hws_queue_poll;
    outer->ops.req_notify_cq = hws_queue_arm;
    outer->ops.post_send = hws_work_post;
    outer->ops.post_recv = hws_receive_post;
    pthread_mutex_init(&outer->mutex, NULL);
    context->forks = atomic_load(&forks);
    /* A program may enter a jail after this call. So everything that needs the kernel's leave is made here. */
    int rc = hws_fabric_open(&context->fabric);
    outer->cmd_fd = context->fabric.file;
    outer->async_fd = rc == 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    bool has_files = outer->async_fd >= 0;
    for (int i = 0; i < HWS_DEVICE_CHANNELS; i++) {
        context->channels[i] = rc == 0 ? eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE) : -1;
        has_files = has_files && context->channels[i] >= 0;
    }
    if (rc == 0) {
        rc = has_files ? 0 : EMFILE;
        context->next_key = (uint32_t) hws_fabric_now_ms() << 8;
        if (rc == 0) {
            rc = hws_thread_start(&context->engine, hws_engine_main, context, "test-device");
        }
        if (rc != 0) {
            hws_fabric_close(&context->fabric, false);
        }
    }
    if (rc != 0) {
        close_files(context);
        free(context);
        errno = rc;
        return NULL;
    }
    return outer;
}

HWS_EXPORT int ibv_close_device(struct ibv_context *ibv) {
    hws_context_t *context = hws_context_of(ibv);
    bool in_child = hws_device_is_inherited(context);
    if (in_child) {
        /* The mapping did not come along. */
        context->fabric.arena = NULL;
    } else {
        atomic_store(&context->stop, true);
        hws_fabric_wake(&context->fabric, context->fabric.node);
        (void) pthread_join(context->engine, NULL);
    }
    hws_fabric_close(&context->fabric, in_child);
    close_files(context);
    pthread_mutex_destroy(&ibv->mutex);
    free(context);
    return 0;
}
