/* Chunks of the bulk area: one word each, BUSY from the guest's use until the worker has finished the copy. */
#include "hws_shm_internal.h"

#include "hws_channel.h"

#include <errno.h>

static bool is_done(hws_shm_t *shm, uint32_t chunk) {
    /* Pairs with the worker's release store, so that the chunk's bytes are visible. */
    return __atomic_load_n(hws_shm_chunk_word(shm, chunk), __ATOMIC_ACQUIRE) != HWS_CHUNK_BUSY;
}

static void chunk_begin(uint32_t chunk) {
    __atomic_store_n(hws_shm_chunk_word(atomic_load(&hws_shm_session), chunk), HWS_CHUNK_BUSY, __ATOMIC_RELEASE);
}

static void chunk_cancel(uint32_t chunk) {
    __atomic_store_n(hws_shm_chunk_word(atomic_load(&hws_shm_session), chunk), 0, __ATOMIC_RELEASE);
}

static bool chunk_is_ready(uint32_t chunk) {
    return is_done(atomic_load(&hws_shm_session), chunk);
}

static int chunk_wait(uint32_t chunk) {
    hws_shm_t *shm = atomic_load(&hws_shm_session);
    const hws_shm_wish_t wish = {.is_granted = is_done,
                                 .argument = chunk,
                                 .waiting = &shm->guest->reply_waiting,
                                 .spin = &shm->chunk_spins[chunk]};
    if (hws_shm_wait(shm, &wish) == 0) {
        return (int) __atomic_load_n(hws_shm_chunk_word(shm, chunk), __ATOMIC_ACQUIRE);
    }
    if (errno == ECONNRESET) {
        return hws_channel_fail(HWS_LOST_STATUS, "%s", shm->carrier.ops->fault(&shm->carrier));
    }
    int status = hws_channel_status();
    return status != 0 ? status : HWS_LOST_STATUS;
}

void hws_shm_use_chunks(hws_shm_t *shm) {
    shm->chunks = (hws_chunks_t) {
        .bytes = shm->view.bulk,
        .offset = hws_shm_offset(&shm->view, shm->view.bulk),
        .chunk_bytes = shm->header.chunk_bytes,
        .count = (uint32_t) shm->header.chunk_count,
        .begin = chunk_begin,
        .cancel = chunk_cancel,
        .is_ready = chunk_is_ready,
        .wait = chunk_wait,
    };
    hws_bulk_use_chunks(&shm->chunks);
}
