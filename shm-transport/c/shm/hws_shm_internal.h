/*
 * Shared by the files of the shm carrier. They access words in the region by the __atomic functions, because the other
 * side changes them at any time.
 */
#ifndef HWS_SHM_INTERNAL_H
#define HWS_SHM_INTERNAL_H

#include "hws_bulk.h"
#include "hws_ring.h"
#include "hws_shm.h"
#include "hws_wait.h"

#include <pthread.h>
#include <sys/types.h>

typedef struct hws_shm {
    hws_carrier_t carrier;
    hws_shm_view_t view;
    hws_region_header_t header; /* private copy, checked */
    hws_region_header_t *live;  /* the header in the region */
    hws_region_guest_t *guest;  /* our slot's pages */
    hws_region_host_t *host;
    uint64_t mapped_bytes;
    int fd;
    char path[640];              /* for messages */
    char doorbell_path[640];     /* file of BAR0, "" for none */
    volatile uint32_t *doorbell; /* register, NULL for none */
    pid_t pid;                   /* a forked child has neither the mapping nor the slot */
    bool locked;                 /* we hold the slot's lock */
    bool claimed;
    _Atomic uint64_t session_id; /* 0 until the host's state is SERVING */
    _Atomic bool closed;         /* by this process: every operation fails */
    _Atomic uint32_t timeout_ms;
    hws_ring_t command, reply;
    hws_spin_t send_spin, receive_spin, chunk_spins[HWS_MAX_CHUNKS];
    hws_patience_t patience;
    hws_chunks_t chunks; /* once the session is open */

    pthread_mutex_t lock; /* of the fault and of the end of the beat */
    char fault[384];
    bool faulted;

    bool beats;
    bool beat_ends;
    pthread_cond_t beat_wake;
    pthread_t beat_thread;
} hws_shm_t;

/* hws_shm_region.c: opens and maps. */

/*
 * Opens and maps a region's file, copies its header to private memory and checks it. Returns 0, or -1 with a message.
 * *ours_p: whether the file carries our magic. The caller calls hws_shm_unmap() in any case, also after a failure.
 */
int hws_shm_map(hws_shm_t *shm, bool *ours_p, char *error_p, size_t error_capacity);
void hws_shm_unmap(hws_shm_t *shm);
/* Whether all areas of a header lie in `mapped_bytes` without overlap, with valid sizes. */
bool hws_shm_header_is_sound(const hws_region_header_t *header, uint64_t mapped_bytes);

/* hws_shm_find.c: finds the file. Sets path, doorbell_path and view.kind, and maps the file. */
int hws_shm_find(hws_shm_t *shm, const hws_config_t *config, bool *found_p, char *error_p, size_t error_capacity);

/* hws_shm_claim.c: locks and states. */

/* Claims a slot and waits until the broker assigns a worker. Returns 0, or -1 with a message; then no slot is ours. */
int hws_shm_claim(hws_shm_t *shm, const hws_config_t *config, uint64_t description_hash, char *error_p,
                  size_t error_capacity);
/* Marks the slot as left; the broker ends the session and frees the slot. The lock stays. */
void hws_shm_leave(hws_shm_t *shm);
void hws_shm_unlock(hws_shm_t *shm);
/* Ends the beat's thread and waits for it. */
void hws_shm_end_beat(hws_shm_t *shm);
void hws_shm_join_beat(hws_shm_t *shm);

/* hws_shm_wait.c: sleeping, waking, and detecting the end of the session. */

/* State of a waiting thread between two looks at the region's host. Starts as zeros. */
typedef struct hws_shm_look {
    uint64_t beat;
    int64_t since_ns; /* when this beat was first seen; 0: not yet */
} hws_shm_look_t;

/* Whether the session is over; writes the reason to shm->fault, once. Reads each word of the host once. */
bool hws_shm_is_lost(hws_shm_t *shm, hws_shm_look_t *look);
/* Whether the broker has shown no life for still_ms of watching. */
bool hws_shm_is_still(const hws_shm_t *shm, hws_shm_look_t *look, int64_t still_ms);
void hws_shm_set_fault(hws_shm_t *shm, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The condition that a thread waits for. */
typedef struct hws_shm_wish {
    bool (*is_granted)(hws_shm_t *shm, uint32_t argument);
    uint32_t argument;
    uint32_t *waiting; /* word in our page that asks the worker to wake us */
    bool patient;      /* the wait may be for the device: see hws_patience_t */
    hws_spin_t *spin;  /* of this kind of wait */
    bool bounded;      /* by timeout_ms */
} hws_shm_wish_t;

/*
 * Waits: spins, then sleeps. Returns 0; or -1 with errno EAGAIN (timeout), ESHUTDOWN (this process closed the carrier)
 * or ECONNRESET. ECONNRESET: the session is over, shm->fault has the reason, and the wish was still not granted after
 * that was seen.
 */
int hws_shm_wait(hws_shm_t *shm, const hws_shm_wish_t *wish);
/*
 * Wakes the worker if it sleeps until the caller's last step. `waiting` is the host's word for bytes in the command
 * ring, or for room in the reply ring. Any thread.
 */
void hws_shm_wake_worker(hws_shm_t *shm, uint32_t *waiting);
/* Makes the broker look at the slots: by the region's futex, or by its doorbell where there is one. */
void hws_shm_ring_broker(hws_shm_t *shm);

/* hws_shm_chunk.c: copies go through the slot's chunks from now on. The session is hws_shm_session. */
void hws_shm_use_chunks(hws_shm_t *shm);

/* hws_shm.c */
extern hws_shm_t *_Atomic hws_shm_session;

int64_t hws_shm_now_ns(void);

static inline uint8_t *hws_shm_slot(const hws_shm_t *shm, uint32_t slot) {
    return shm->view.base + shm->header.slots_offset + slot * shm->header.slot_stride;
}

static inline hws_region_guest_t *hws_shm_guest(const hws_shm_t *shm, uint32_t slot) {
    return (hws_region_guest_t *) hws_shm_slot(shm, slot);
}

static inline hws_region_host_t *hws_shm_host(const hws_shm_t *shm, uint32_t slot) {
    return (hws_region_host_t *) (hws_shm_slot(shm, slot) + HWS_PAGE_BYTES);
}

static inline uint32_t *hws_shm_chunk_word(const hws_shm_t *shm, uint32_t chunk) {
    return (uint32_t *) (hws_shm_slot(shm, shm->view.slot) + 2 * HWS_PAGE_BYTES + chunk * HWS_CHUNK_STRIDE);
}

#endif
