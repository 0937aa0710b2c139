#include "mirror_work.h"

#include "context.h"
#include "mirror.h"
#include "mirror_lanes.h"
#include "mirror_pages.h"
#include "mirror_windows.h"

#include "hws_cuda_calls.h"

#include <time.h>

hws_work_t hws_work;

static _Atomic uint64_t acquired;      /* `issued` at the last wait */
static _Thread_local bool is_in_order; /* the thread's next work is in a stream that waits for what was sent */

uint64_t hws_work_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static void begin_work(void) {
    if (hws_tls.moves_pages) {
        return;
    }
    atomic_fetch_add(&hws_work.issued, 1);
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
    uint64_t before = atomic_load(&hws_work.settled);
    while (before < mark && !atomic_compare_exchange_weak(&hws_work.settled, &before, mark)) {
    }
    uint64_t bytes = atomic_load(&hws_work.unsettled);
    if (bytes != 0 && bytes <= mark) { /* work that came after these bytes has ended */
        atomic_compare_exchange_strong(&hws_work.unsettled, &bytes, 0);
    }
}

void hws_mirror_waited(uint64_t mark, bool for_all) {
    if (!hws_channel_watches_work() || hws_tls.moves_pages) {
        return;
    }
    if (for_all) {
        settle_up_to(mark);
    }
    uint64_t until = atomic_load(&hws_work.issued);
    if (atomic_exchange(&acquired, until) == until || !atomic_load(&hws_mirrors.present)) {
        return; /* the host has got no page since the last wait that work may have changed */
    }
    uint32_t context = hws_mirror_enter();
    hws_mirrors.trap->renew();
    hws_windows_end();
    for (size_t i = 0; i < hws_mirrors.count; i++) {
        hws_mirror_t *mirror = hws_mirrors.items[i];
        for (size_t page = mirror->first; page < mirror->end && !mirror->is_free;) {
            size_t pages = hws_pages_run(mirror, page, mirror->end - page, HWS_PAGE_CLEAN);
            if (pages != 0) {
                hws_pages_drop(mirror, page, pages);
            }
            page += pages + 1;
        }
    }
    hws_mirror_leave(context);
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
