#include "progress.h"

#include "context.h"
#include "stream.h"

/* Of this thread's own default stream, in the context that the thread used it in last. */
typedef struct hws_own {
    CUcontext context;
    hws_progress_t progress;
} hws_own_t;

static _Thread_local hws_own_t own;
static _Atomic uint64_t watched_from; /* sequence of the last record before the watch */

static bool is_legacy(CUstream stream) {
    return stream == NULL || stream == CU_STREAM_LEGACY;
}

static uint64_t load(const _Atomic uint64_t *word) {
    return atomic_load_explicit(word, memory_order_acquire);
}

static void raise_to(_Atomic uint64_t *word, uint64_t value) {
    uint64_t before = load(word);
    while (before < value && !atomic_compare_exchange_weak(word, &before, value)) {
    }
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t issued(const hws_progress_t *progress) {
    return larger(load(&progress->issued), load(&watched_from));
}

static hws_context_progress_t *context_of(CUcontext context) {
    hws_context_t *kept = hws_context_get(context);
    return kept == NULL ? NULL : &kept->progress;
}

/* The progress of a stream of the context; NULL when nothing is known of it. */
static hws_progress_t *progress_of(CUstream stream, CUcontext context) {
    if (is_legacy(stream)) {
        hws_context_progress_t *all = context_of(context);
        return all == NULL ? NULL : &all->legacy;
    }
    if (stream != CU_STREAM_PER_THREAD) {
        return hws_stream_progress(stream);
    }
    if (own.context != context) {
        own.context = context;
        atomic_store(&own.progress.issued, hws_channel_last_sequence());
        atomic_store(&own.progress.done, 0);
    }
    return &own.progress;
}

static CUcontext owner_of(CUstream stream) {
    CUcontext owner = hws_stream_context(stream);
    return owner != NULL ? owner : hws_context_current();
}

/* The watcher: work of the stream has been sent. */
static void sent(uint64_t handle) {
    CUstream stream = (CUstream) (uintptr_t) handle;
    CUcontext owner = owner_of(stream);
    hws_context_progress_t *all = context_of(owner);
    hws_progress_t *progress = hws_tls.passing ? NULL : progress_of(stream, owner);
    if (progress == NULL || all == NULL) {
        return;
    }
    raise_to(&progress->issued, hws_tls.sequence);
    if (!is_legacy(stream) && hws_stream_is_blocking(stream)) {
        raise_to(&all->blocking.issued, hws_tls.sequence);
    }
}

/* The watcher until the first work. It then makes way for none, so that work costs no more until copies need a watch. */
static void note_first(uint64_t stream) {
    hws_stream_watcher_t *present = note_first;
    if (!hws_tls.passing && !atomic_compare_exchange_strong(&hws_stream_watcher, &present, NULL) && present == sent) {
        sent(stream); /* the watch has begun since this record was sent */
    }
}

/* Before the program's first call. */
__attribute__((constructor)) static void begin(void) {
    atomic_store(&hws_stream_watcher, note_first);
}

void hws_progress_watch(void) {
    if (atomic_exchange(&hws_stream_watcher, sent) == NULL) {
        raise_to(&watched_from, hws_channel_last_sequence());
    }
}

bool hws_progress_is_idle(CUstream stream) {
    CUcontext owner = owner_of(stream);
    hws_context_progress_t *all = context_of(owner);
    hws_progress_t *progress = progress_of(stream, owner);
    if (progress == NULL || all == NULL) {
        return false;
    }
    uint64_t done = load(&all->done), blocking_done = larger(done, load(&all->blocking.done));
    if (is_legacy(stream)) {
        return issued(progress) <= larger(done, load(&progress->done)) && issued(&all->blocking) <= blocking_done;
    }
    bool blocking = hws_stream_is_blocking(stream);
    done = larger(load(&progress->done), blocking ? blocking_done : done);
    return issued(progress) <= done
        && (!blocking || issued(&all->legacy) <= larger(load(&all->done), load(&all->legacy.done)));
}

/* Work of the stream is done up to a sequence. Work of the legacy stream comes after all that it waits for. */
static void reached(CUstream stream, CUcontext context, uint64_t sequence) {
    hws_context_progress_t *all = context_of(context);
    hws_progress_t *progress = progress_of(stream, context);
    if (progress == NULL || all == NULL) {
        return;
    }
    raise_to(&progress->done, sequence);
    if (is_legacy(stream)) {
        raise_to(&all->blocking.done, sequence);
    }
}

void hws_progress_mark(hws_mark_t *mark, CUstream stream) {
    atomic_store(&mark->sequence, 0);
    atomic_store(&mark->stream, (uint64_t) (uintptr_t) stream);
    atomic_store(&mark->context, (uint64_t) (uintptr_t) owner_of(stream));
    atomic_store(&mark->sequence, hws_tls.sequence);
}

/* Reads a mark. Returns its sequence, 0 for none or while it changes. */
static uint64_t read_mark(const hws_mark_t *mark, CUstream *stream_p, CUcontext *context_p) {
    uint64_t sequence = atomic_load(&mark->sequence);
    *stream_p = (CUstream) (uintptr_t) atomic_load(&mark->stream);
    *context_p = (CUcontext) (uintptr_t) atomic_load(&mark->context);
    return atomic_load(&mark->sequence) == sequence ? sequence : 0;
}

hws_mark_place_t hws_progress_place(const hws_mark_t *mark) {
    hws_mark_place_t place;
    place.sequence = read_mark(mark, &place.stream, &place.context);
    return place;
}

void hws_progress_note_place(const hws_mark_place_t *place) {
    /* Another thread may have set a mark in its own default stream. */
    if (place->sequence != 0 && place->stream != CU_STREAM_PER_THREAD) {
        reached(place->stream, place->context, place->sequence);
    }
}

bool hws_progress_has_reached(const hws_mark_t *mark) {
    CUstream stream;
    CUcontext context;
    uint64_t sequence = read_mark(mark, &stream, &context);
    hws_context_progress_t *all = context_of(context);
    if (all == NULL) {
        return sequence != 0; /* the end of a context waits for its work */
    }
    const hws_progress_t *progress = stream == CU_STREAM_PER_THREAD ? NULL : progress_of(stream, context);
    uint64_t done = larger(load(&all->done), progress == NULL ? 0 : load(&progress->done));
    return sequence != 0 && sequence <= done;
}

void hws_progress_note_work(CUstream stream) {
    reached(stream, owner_of(stream), hws_tls.sequence);
}

uint64_t hws_progress_begin_wait(CUstream stream) {
    const hws_progress_t *progress = progress_of(stream, owner_of(stream));
    hws_tls.passing = true;
    return progress == NULL ? 0 : load(&progress->issued);
}

void hws_progress_end_wait(CUstream stream, uint64_t began, bool success) {
    hws_tls.passing = false;
    CUcontext owner = owner_of(stream);
    hws_context_progress_t *all = context_of(owner);
    hws_progress_t *progress = progress_of(stream, owner);
    if (!success || progress == NULL || all == NULL) {
        return;
    }
    raise_to(&progress->done, hws_tls.sequence);
    if (is_legacy(stream)) {
        raise_to(&all->blocking.done, began); /* the stream's last work came after all work before it */
    }
}

void hws_progress_note_context(void) {
    hws_context_progress_t *all = context_of(hws_context_current());
    if (all != NULL) {
        raise_to(&all->done, hws_tls.sequence);
    }
}
