/*
 * Loads libibverbs at run time, so that nothing depends on it. A machine without it, or without an adapter, has no
 * carrier rdma. The functions that verbs.h defines inline go through the opened device and need no entry here.
 */
#ifndef HWS_VERBS_H
#define HWS_VERBS_H

#include <infiniband/verbs.h>
#include <stddef.h>

/* verbs.h makes macros of these names, which would also replace the members below. */
#undef ibv_query_port
#undef ibv_reg_mr

/* The functions, by their names in libibverbs. */
typedef struct hws_verbs {
    struct ibv_device **(*ibv_get_device_list)(int *);
    void (*ibv_free_device_list)(struct ibv_device **);
    const char *(*ibv_get_device_name)(struct ibv_device *);
    struct ibv_context *(*ibv_open_device)(struct ibv_device *);
    int (*ibv_close_device)(struct ibv_context *);
    int (*ibv_query_device)(struct ibv_context *, struct ibv_device_attr *);
    int (*ibv_query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
    int (*ibv_query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
    int (*_ibv_query_gid_ex)(struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *, uint32_t, size_t);
    struct ibv_pd *(*ibv_alloc_pd)(struct ibv_context *);
    int (*ibv_dealloc_pd)(struct ibv_pd *);
    struct ibv_mr *(*ibv_reg_mr)(struct ibv_pd *, void *, size_t, int);
    struct ibv_mr *(*ibv_reg_dmabuf_mr)(struct ibv_pd *, uint64_t, size_t, uint64_t, int,
                                        int); /* NULL before rdma-core 34 */
    int (*ibv_dereg_mr)(struct ibv_mr *);
    struct ibv_comp_channel *(*ibv_create_comp_channel)(struct ibv_context *);
    int (*ibv_destroy_comp_channel)(struct ibv_comp_channel *);
    struct ibv_cq *(*ibv_create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
    int (*ibv_destroy_cq)(struct ibv_cq *);
    int (*ibv_get_cq_event)(struct ibv_comp_channel *, struct ibv_cq **, void **);
    void (*ibv_ack_cq_events)(struct ibv_cq *, unsigned);
    struct ibv_qp *(*ibv_create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
    int (*ibv_modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
    int (*ibv_destroy_qp)(struct ibv_qp *);
    const char *(*ibv_wc_status_str)(enum ibv_wc_status);
    int (*ibv_fork_init)(void);
} hws_verbs_t;

/*
 * Loads the library once for the process; it stays loaded. HAWSER_VERBS_LIBRARY names another file, which a set-uid
 * program ignores. One thread at a time. Returns the functions, or NULL with a message in error_p.
 */
const hws_verbs_t *hws_verbs_load(char *error_p, size_t error_capacity);

#endif
