#include "hws_verbs.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libibverbs.so.1"

#define ENTRY(name) {#name, offsetof(hws_verbs_t, name)}

static const struct {
    const char *name;
    size_t offset;
} entries[] = {
    ENTRY(ibv_get_device_list),     ENTRY(ibv_free_device_list),
    ENTRY(ibv_get_device_name),     ENTRY(ibv_open_device),
    ENTRY(ibv_close_device),        ENTRY(ibv_query_device),
    ENTRY(ibv_query_port),          ENTRY(ibv_query_gid),
    ENTRY(_ibv_query_gid_ex),       ENTRY(ibv_alloc_pd),
    ENTRY(ibv_dealloc_pd),          ENTRY(ibv_reg_mr),
    ENTRY(ibv_reg_dmabuf_mr),       ENTRY(ibv_dereg_mr),
    ENTRY(ibv_create_comp_channel), ENTRY(ibv_destroy_comp_channel),
    ENTRY(ibv_create_cq),           ENTRY(ibv_destroy_cq),
    ENTRY(ibv_get_cq_event),        ENTRY(ibv_ack_cq_events),
    ENTRY(ibv_create_qp),           ENTRY(ibv_modify_qp),
    ENTRY(ibv_destroy_qp),          ENTRY(ibv_wc_status_str),
    ENTRY(ibv_fork_init),
};

static hws_verbs_t library;
static bool loaded;

const hws_verbs_t *hws_verbs_load(char *error_p, size_t error_capacity) {
    if (loaded) {
        return &library;
    }
    const char *path = secure_getenv("HAWSER_VERBS_LIBRARY");
    path = path != NULL && path[0] != '\0' ? path : LIBRARY;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        snprintf(error_p, error_capacity, "RDMA needs %s (package libibverbs1 or libibverbs): %s", path, dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *function = dlsym(handle, entries[i].name);
        if (function == NULL && entries[i].offset != offsetof(hws_verbs_t, ibv_reg_dmabuf_mr)) {
            snprintf(error_p, error_capacity, "RDMA needs a newer %s: it lacks %s", path, entries[i].name);
            dlclose(handle);
            return NULL;
        }
        memcpy((char *) &library + entries[i].offset, &function, sizeof function);
    }
    loaded = true;
    return &library;
}
