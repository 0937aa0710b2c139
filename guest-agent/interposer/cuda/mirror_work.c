#include "mirror_work.h"

#include "context.h"
#include "mirror.h"
#include "mirror_lanes.h"
#include "mirror_pages.h"
#include "mirror_shuttle.h"
#include "mirror_windows.h"

#include "hws_cuda_calls.h"

#include <time.h>

hws_work_t hws_work;

static _Atomic uint64_t acquired;      /* `issued` at the last wait */
static _Thread_local bool is_in_order; /* the thread's next work is in a stream that waits for what was sent */

/*
 * All work with numbers above `elsewhere` is in the stream `alone`. A thread whose work is in another stream raises
 * `elsewhere` before and after it sets `alone`: a thread that does not see the new stream yet has added to `issued`.
 */
#define UNKNOWN_STREAM UINT64_MAX
static _Atomic uint64_t alone = UNKNOWN_STREAM, elsewhere;
static _Thread_local uint64_t next_stream = UNKNOWN_STREAM; /* of the thread's next work */

uint64_t hws_work_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static void raise_to(_Atomic uint64_t *word, uint64_t value) {
    uint64_t before = atomic_load(word);
    while (before < value && !atomic_compare_exchange_weak(word, &before, value)) {
    }
}

/* Notes the stream of the thread's work with this number. */
static void note_stream(uint64_t number) {
    const uint64_t stream = next_stream;
    if (stream == UNKNOWN_STREAM) {
        atomic_store(&alone, UNKNOWN_STREAM);
        raise_to(&elsewhere, number);
    } else if (atomic_load(&alone) != stream) {
        raise_to(&elsewhere, number - 1);
        atomic_store(&alone, stream);
        uint64_t last = atomic_load(&hws_work.issued);
        raise_to(&elsewhere, last == number ? number - 1 : last);
    }
}

/* Stores the stream that has all unfinished work. Returns false when it is not known. */
static bool find_stream(CUstream *stream_p) {
    uint64_t found = atomic_load(&alone);
    *stream_p = (CUstream) (uintptr_t) found;
    return found != UNKNOWN_STREAM && atomic_load(&elsewhere) <= atomic_load(&hws_work.settled);
}

/* The stream as it is compared; each thread has a default stream of its own. */
static uint64_t number_of(CUstream stream) {
    return stream == CU_STREAM_PER_THREAD ? UNKNOWN_STREAM
        : stream == CU_STREAM_LEGACY      ? 0
                                          : (uint64_t) (uintptr_t) stream;
}

static void begin_work(void) {
    if (hws_tls.moves_pages) {
        return;
    }
    note_stream(atomic_fetch_add(&hws_work.issued, 1) + 1);
    if (atomic_load(&hws_mirrors.present) || (!is_in_order && atomic_load(&hws_work.unsettled) != 0)) {
        uint32_t context = hws_mirror_enter();
        if (atomic_load(&hws_mirrors.present)) {
            hws_pages_give_back(NULL);
        } else if (!is_in_order && atomic_load(&hws_work.unsettled) != 0) {
            hws_lanes_wait();
        }
        hws_mirror_leave(context);
    }
}

void hws_mirror_order(CUstream stream) {
    next_stream = number_of(stream);
    if ((!atomic_load(&hws_mirrors.present) && atomic_load(&hws_work.unsettled) == 0) || hws_tls.moves_pages
        || hws_tls.in_callback || stream == CU_STREAM_PER_THREAD || hws_context_has_several()) {
        return;
    }
    uint32_t owner = (uint32_t) (uintptr_t) hws_context_owner(), context = hws_mirror_enter();
    if (!hws_lanes_can_order(owner)) {
        hws_mirror_leave(context);
        return;
    }
    hws_tls.context = owner;
    if (atomic_load(&hws_mirrors.present)) {
        hws_pages_give_back(&stream);
    } else {
        hws_lanes_settle(&stream);
    }
    hws_mirror_leave(context);
    is_in_order = true;
}

void hws_mirror_end_order(void) {
    is_in_order = false;
    next_stream = UNKNOWN_STREAM;
}

static void end_work(void) {
    if (!hws_tls.moves_pages) {
        atomic_fetch_add(&hws_work.sent, 1);
    }
}

static const hws_work_hooks_t work_hooks = {begin_work, end_work};

void hws_work_watch(void) {
    if (!hws_channel_watches_work()) {
        atomic_fetch_add(&hws_work.issued, 1); /* earlier work was not counted and may run */
        atomic_fetch_add(&hws_work.sent, 1);
        hws_channel_watch_work(&work_hooks);
    }
}

uint64_t hws_mirror_mark(void) {
    if (!hws_channel_watches_work() || hws_tls.moves_pages) {
        return 0;
    }
    uint64_t sent_before = atomic_load(&hws_work.sent), mark = atomic_load(&hws_work.issued);
    return sent_before == mark ? mark : 0;
}

void hws_mirror_called(void) {
    if (hws_channel_watches_work() && atomic_load(&hws_mirrors.present)) {
        uint32_t context = hws_mirror_enter();
        hws_pages_give_back(NULL);
        hws_mirror_leave(context);
    }
}

static void settle_up_to(uint64_t mark) {
    raise_to(&hws_work.settled, mark);
    uint64_t bytes = atomic_load(&hws_work.unsettled);
    if (bytes != 0 && bytes <= mark) { /* work that came after these bytes has ended */
        atomic_compare_exchange_strong(&hws_work.unsettled, &bytes, 0);
    }
}

hws_mirror_wait_t hws_mirror_begin_wait(const CUstream *stream) {
    hws_mirror_wait_t wait = {.mark = hws_mirror_mark()};
    CUstream found;
    if (wait.mark == 0 || hws_context_has_several() || !find_stream(&found)
        || (stream != NULL && number_of(*stream) != number_of(found))) {
        return wait;
    }
    wait.covers_all = true;
    if (hws_shuttle_has_pages() && atomic_load(&acquired) != wait.mark && !hws_tls.in_callback) {
        uint32_t context = hws_mirror_enter();
        bool was_passing = hws_tls.passing;
        hws_tls.passing = true;
        wait.brings_pages = hws_shuttle_depart(found, wait.mark, stream == NULL);
        hws_tls.passing = was_passing;
        hws_mirror_leave(context);
    }
    return wait;
}

void hws_mirror_fail_wait(const hws_mirror_wait_t *wait) {
    if (wait->brings_pages) {
        uint32_t context = hws_mirror_enter();
        hws_shuttle_fail();
        hws_mirror_leave(context);
    }
}

void hws_mirror_end_wait(const hws_mirror_wait_t *wait, bool for_all) {
    if (!hws_channel_watches_work() || hws_tls.moves_pages) {
        return;
    }
    if (for_all || wait->covers_all) {
        settle_up_to(wait->mark);
    }
    uint64_t until = atomic_load(&hws_work.issued);
    bool is_first = atomic_exchange(&acquired, until) != until, has_pages = is_first && hws_shuttle_has_pages();
    bool was_used = is_first && atomic_load(&hws_mirrors.present);
    if (is_first) {
        hws_shuttle_note_wait();
    }
    /*
     * Work can have changed the windows alone: the host's other pages came while none could run. Windows end after each
     * wait. After another thread's wait the host may have got some that this thread's work has changed since.
     */
    bool has_windows = hws_windows_exist();
    if (!wait->brings_pages && !has_pages && !was_used && !has_windows) {
        return;
    }
    if (wait->brings_pages) {
        hws_shuttle_await_bytes();
    }
    uint32_t context = hws_mirror_enter();
    if (was_used) {
        hws_mirrors.trap->renew();
    }
    if (has_windows) {
        hws_windows_end();
    }
    if (wait->brings_pages) {
        hws_shuttle_arrive();
    } else if (has_pages) {
        hws_shuttle_fetch();
    }
    hws_mirror_leave(context);
}

void hws_mirror_waited(uint64_t mark, bool for_all) {
    hws_mirror_end_wait(&(hws_mirror_wait_t) {.mark = mark}, for_all);
}

bool hws_work_is_known_idle(void) {
    uint64_t sent_before = atomic_load(&hws_work.sent), mark = atomic_load(&hws_work.issued);
    return sent_before == mark && atomic_load(&hws_work.settled) >= mark;
}

bool hws_work_is_idle(void) {
    static uint64_t asked_ns; /* when the answer was no */
    uint64_t sent_before = atomic_load(&hws_work.sent), mark = atomic_load(&hws_work.issued);
    if (sent_before != mark) {
        return false;
    }
    if (atomic_load(&hws_work.settled) >= mark) {
        return true;
    }
    uint32_t idle = 0;
    if (hws_work_now_ns() - asked_ns < HWS_SHORT_MS * 1000000u) {
        return false;
    }
    if (hws_call_hwsContextsQuery(&idle) != CUDA_SUCCESS || idle == 0) {
        asked_ns = hws_work_now_ns();
        return false;
    }
    settle_up_to(mark);
    return true;
}
