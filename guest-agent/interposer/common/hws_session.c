/*
 * The process's session: connects at cuInit, and decides what later calls return after fork, at exit and after a lost
 * broker.
 */
#include "hws_driver.h"

#include "hws_broker.h"
#include "hws_config.h"
#include "hws_cuda_opcodes.h"
#include "hws_hint.h"
#include "rdma/hws_rdma_begin.h"
#include "shm/hws_shm.h"
#include "tcp/hws_move.h"
#include "tcp/hws_stripe.h"

#include <pthread.h>
#include <stdio.h>

_Atomic int hws_lifecycle = CUDA_ERROR_NOT_INITIALIZED;
_Atomic int hws_gate = CUDA_ERROR_NOT_INITIALIZED;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;
static CUresult start_result;
static _Atomic bool in_forked_child;

static void close_gates(int status) {
    atomic_store(&hws_lifecycle, status);
    atomic_store(&hws_gate, status);
}

/* Whether the process can do no more work on the device after this error, according to CUDA's documentation. */
static bool poisons(int status) {
    switch (status) {
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_NVLINK_UNCORRECTABLE:
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
        case CUDA_ERROR_EXTERNAL_DEVICE:
            return true;
        default:
            return false;
    }
}

static void on_error(int status) {
    int open = 0;
    if (poisons(status)) {
        /* From now on asynchronous calls fail at once, as CUDA's do. The first such error stays. */
        bool first = atomic_compare_exchange_strong(&hws_gate, &open, status);
        if (first && status == CUDA_ERROR_ILLEGAL_ADDRESS) {
            hws_hint_repeat();
        }
    }
}

static void on_failed(int status) {
    int open = 0;
    atomic_compare_exchange_strong(&hws_lifecycle, &open, status);
    atomic_store(&hws_gate, atomic_load(&hws_lifecycle));
}

static void in_child(void) {
    if (started) {
        atomic_store(&in_forked_child, true);
        close_gates(CUDA_ERROR_NOT_INITIALIZED);
        hws_channel_abandon_in_child();
        hws_stripe_abandon_in_child();
    }
}

/* Runs after the exit handlers of the program and of libraries that use this one. */
__attribute__((destructor)) static void at_exit(void) {
    if (atomic_load(&in_forked_child) || !started) {
        close_gates(CUDA_ERROR_DEINITIALIZED);
        return;
    }
    close_gates(CUDA_ERROR_DEINITIALIZED);
    if (start_result == CUDA_SUCCESS) {
        hws_channel_close(CUDA_ERROR_DEINITIALIZED);
        hws_statistics_report();
    }
}

/* A session that begins at a broker. */
typedef struct beginning {
    hws_welcome_t *welcome_p;
    hws_rdma_t *rdma; /* the end of the next offer; NULL for none */
    uint8_t end[HWS_RDMA_END_BYTES];
    bool offers, is_over_rdma;
} beginning_t;

/* Makes an end of RDMA for an offer, where the configuration allows it. Returns 0, or -1 when it must have one. */
static int make_offer(beginning_t *self, const hws_config_t *config, char *error_p, size_t error_capacity) {
    self->rdma = hws_rdma_offer(config, self->end, error_p, error_capacity);
    self->offers = self->rdma != NULL;
    if (!self->offers && config->carrier != HWS_CARRIER_RDMA) {
        hws_log(HWS_DEBUG, "no RDMA, so over TCP: %s", error_p); /* most machines have no adapter */
        return 0;
    }
    return self->offers ? 0 : -1;
}

/* Begins the session on a connection, and goes on over RDMA where both ends allow it. */
static int begin(hws_carrier_t **carrier_p, const hws_config_t *config, void *state, char *error_p,
                 size_t error_capacity) {
    beginning_t *self = state;
    hws_carrier_t *connection = *carrier_p;
    /* An earlier broker has taken the first offer. Another one gets an end of its own, which the earlier does not know. */
    if (self->offers && self->rdma == NULL && make_offer(self, config, error_p, error_capacity) != 0) {
        return -1;
    }
    if (self->rdma == NULL) {
        return hws_handshake(connection, config, HWS_DESCRIPTION_HASH, self->welcome_p, error_p, error_capacity);
    }
    hws_rdma_t *rdma = self->rdma;
    self->rdma = NULL;
    int rc = hws_rdma_begin(rdma, self->end, carrier_p, config, HWS_DESCRIPTION_HASH, self->welcome_p, error_p,
                            error_capacity);
    self->is_over_rdma = rc == 0 && *carrier_p != connection;
    return rc;
}

/*
 * Begins a session at the broker of the vGPU over TCP, with TLS or without, or over RDMA. config->brokers receives that
 * broker. Returns the carrier, or NULL after logging the reason.
 */
static hws_carrier_t *connect_broker(hws_config_t *config, hws_welcome_t *welcome_p) {
    char error[1024];
    beginning_t beginning = {.welcome_p = welcome_p};
    if (config->carrier != HWS_CARRIER_TCP && make_offer(&beginning, config, error, sizeof error) != 0) {
        hws_log(HWS_ERROR, "no GPU: %s", error);
        return NULL;
    }
    hws_carrier_t *carrier = hws_broker_open(config, true, begin, &beginning, error, sizeof error);
    if (beginning.rdma != NULL) {
        hws_rdma_close(beginning.rdma); /* no broker has taken it */
    }
    if (carrier == NULL) {
        hws_log(HWS_ERROR, "no GPU: %s", error);
        return NULL;
    }
    if (!beginning.is_over_rdma) {
        hws_stripe_use(config, HWS_DESCRIPTION_HASH, welcome_p);
        hws_move_use(config, HWS_DESCRIPTION_HASH, welcome_p);
    }
    hws_log(HWS_INFO, "session %llu on %s:%s over %s, %u device(s)", (unsigned long long) welcome_p->session_id,
            config->brokers[0].host, config->brokers[0].port, carrier->ops->name, welcome_p->device_count);
    return carrier;
}

/*
 * Connects over a region of shared memory if there is one, else to the broker. Returns the carrier, or NULL after
 * logging the reason.
 */
static hws_carrier_t *connect_carrier(hws_config_t *config, hws_welcome_t *welcome_p) {
    if (!hws_config_takes_region(config)) {
        return connect_broker(config, welcome_p);
    }
    char error[512];
    bool found;
    hws_carrier_t *carrier = hws_shm_connect(config, HWS_DESCRIPTION_HASH, welcome_p, &found, error, sizeof error);
    if (carrier != NULL) {
        hws_log(HWS_INFO, "session %llu over shared memory, slot %u of vGPU \"%.63s\", %u device(s)",
                (unsigned long long) welcome_p->session_id, hws_shm_current()->slot, hws_shm_current()->header->vgpu,
                welcome_p->device_count);
        return carrier;
    }
    if (config->carrier == HWS_CARRIER_AUTO && config->missing[0] == '\0') {
        hws_log(found ? HWS_WARN : HWS_INFO, "no GPU over shared memory, so by the broker: %s", error);
        return connect_broker(config, welcome_p);
    }
    hws_log(HWS_ERROR, "no GPU: %s%s%s", error, config->missing[0] == '\0' ? "" : "; ", config->missing);
    return NULL;
}

/* Connects, runs the handshake, opens the channel. Logs a failure here, where its cause is known. */
static CUresult connect_session(const hws_session_hooks_t *session_hooks) {
    hws_config_t config;
    char error[512];
    if (hws_config_load(&config, error, sizeof error) != 0) {
        hws_log(HWS_ERROR, "no GPU: %s", error);
        return CUDA_ERROR_NO_DEVICE;
    }
    hws_welcome_t welcome;
    hws_carrier_t *carrier = connect_carrier(&config, &welcome);
    if (carrier == NULL) {
        return CUDA_ERROR_NO_DEVICE;
    }
    const hws_channel_hooks_t hooks = {
        .run_callback = session_hooks->run_callback,
        .event_reached = session_hooks->event_reached,
        .failed = on_failed,
        .error = on_error,
        .leave = hws_move_begin,
    };
    if (hws_channel_open(carrier, &welcome, &hooks) != 0) {
        hws_log(HWS_ERROR, "no GPU: no memory or threads for the connection");
        carrier->ops->close(carrier);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static CUresult start_locked(const hws_session_hooks_t *hooks) {
    pthread_atfork(NULL, NULL, in_child);
    started = true;
    CUresult result = connect_session(hooks);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = hooks->load_devices(hws_channel_welcome()->device_count);
    if (result != CUDA_SUCCESS) {
        hws_channel_close(result);
        return result;
    }
    int before = CUDA_ERROR_NOT_INITIALIZED;
    /* No plain store: the channel may have failed meanwhile, or the process may be exiting. */
    atomic_store(&hws_gate, hws_channel_status());
    if (!atomic_compare_exchange_strong(&hws_lifecycle, &before, hws_channel_status())) {
        atomic_store(&hws_gate, atomic_load(&hws_lifecycle));
    }
    return (CUresult) atomic_load(&hws_lifecycle);
}

CUresult hws_session_start(const hws_session_hooks_t *hooks) {
    if (atomic_load_explicit(&hws_lifecycle, memory_order_acquire) == 0) {
        return CUDA_SUCCESS;
    }
    if (atomic_load(&in_forked_child)) {
        return CUDA_ERROR_NOT_INITIALIZED; /* as CUDA in the child of a process that has initialised it */
    }
    if (atomic_load(&hws_lifecycle) == CUDA_ERROR_DEINITIALIZED) {
        return CUDA_ERROR_DEINITIALIZED;
    }
    pthread_mutex_lock(&start_lock);
    if (!started) {
        start_result = start_locked(hooks);
    }
    CUresult result = start_result != CUDA_SUCCESS ? start_result : (CUresult) atomic_load(&hws_lifecycle);
    pthread_mutex_unlock(&start_lock);
    return result;
}
