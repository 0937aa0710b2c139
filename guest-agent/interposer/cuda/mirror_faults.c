#include "mirror_faults.h"

#include "mirror_lanes.h"
#include "mirror_pages.h"
#include "mirror_shuttle.h"
#include "mirror_windows.h"
#include "mirror_work.h"

#include "hws_thread.h"
#include "shm/hws_wait.h"

#define FAULT_PAGES 64u        /* that one fault waits for */
#define MAX_UPDATE_PAGES 2048u /* that one fault makes writable */

/* Takes pages that a pass will need next, unless work may run. */
static bool take_ahead(hws_pass_t *pass, hws_piece_t *piece_p) {
    hws_mirror_t *mirror = pass->range;
    hws_page_lane_t *lane;
    atomic_store(&hws_mirrors.present, true);
    if (!hws_work_is_idle() || hws_lane_of(mirror->context, &lane) != CUDA_SUCCESS) {
        return false;
    }
    bool is_write;
    size_t limit, count = 0;
    while (count == 0 && (limit = hws_pass_ahead(pass, HWS_PIECE_PAGES, &is_write)) != 0) {
        count = hws_pages_run(mirror, pass->next, limit, HWS_PAGE_AWAY);
        pass->next += count == 0;
    }
    if (count == 0) {
        return false;
    }
    *piece_p = (hws_piece_t) {
        .range = mirror,
        .page = pass->next,
        .pages = count,
        .is_write = is_write,
        .stream = (uint64_t) (uintptr_t) hws_lane_stream(lane),
        .context = mirror->context,
    };
    pass->next += count;
    hws_pages_set_states(mirror, piece_p->page, count, HWS_PAGE_COMING);
    mirror->pieces++;
    hws_mirrors.pieces++;
    return true;
}

static bool bring(const hws_piece_t *piece, const hws_staging_t *to) {
    uint64_t address = hws_mirror_address(piece->range, piece->page), bytes = piece->pages * HWS_PAGE;
    hws_tls.context = piece->context;
    bool came = hws_lanes_fetch_by((CUstream) (uintptr_t) piece->stream, address, bytes, to) == CUDA_SUCCESS
        && hws_mirrors.trap->fill(address, to->bytes, bytes, piece->is_write);
    hws_mirrors.trap->wake(address, bytes);
    return came;
}

/* Pages that could not come are fetched again at the fault that needs them, which reports the error. */
static void arrive(const hws_piece_t *piece, bool came) {
    hws_mirror_t *mirror = piece->range;
    mirror->pieces--;
    hws_mirrors.pieces--;
    if (mirror->is_lost) {
        hws_mirrors.trap->release(hws_mirror_address(mirror, piece->page), piece->pages * HWS_PAGE);
    } else if (came) {
        hws_pages_set_states(mirror, piece->page, piece->pages, piece->is_write ? HWS_PAGE_DIRTY : HWS_PAGE_CLEAN);
    } else {
        hws_ahead_stop(mirror);
        hws_pages_drop(mirror, piece->page, piece->pages);
    }
    pthread_cond_broadcast(&hws_mirrors.arrived);
}

static bool allocate_staging(hws_staging_t *staging_p) {
    return hws_mirror_allocate_staging(HWS_PIECE_PAGES, staging_p);
}

static const hws_ahead_owner_t ahead = {&hws_mirrors.lock, allocate_staging, take_ahead, bring, arrive};

/* Makes pages writable that a pass of updates will need next. */
static CUresult serve_update(hws_mirror_t *mirror, size_t page) {
    hws_pass_t *pass = hws_pass_find(mirror->updates, page);
    hws_pass_step(pass, page);
    size_t pages =
        hws_pages_run(mirror, page, pass->pages < MAX_UPDATE_PAGES ? pass->pages : MAX_UPDATE_PAGES, HWS_PAGE_CLEAN);
    pass->next = page + pages;
    if (hws_pass_note_write(mirror->passes, page, page + pages)) {
        hws_habit_note_write(&mirror->habit);
    }
    return hws_pages_allow_writes(mirror, page, pages);
}

static CUresult serve_idle(hws_mirror_t *mirror, size_t page, bool is_write) {
    if (mirror->states[page] == HWS_PAGE_CLEAN) {
        return serve_update(mirror, page);
    }
    hws_pass_t *pass = hws_pass_find(mirror->passes, page), before = *pass;
    bool is_lone = !hws_pass_step(pass, page);
    is_write = is_write || (is_lone && hws_habit_expects_write(&mirror->habit, &before));
    size_t limit = hws_shuttle_note_fault(mirror, page, pass->pages < FAULT_PAGES ? pass->pages : FAULT_PAGES, is_lone);
    size_t pages = hws_pages_run(mirror, page, limit, HWS_PAGE_AWAY);
    hws_pass_advance(pass, page, pages, mirror->pages);
    if (is_write) {
        hws_pass_note_write(mirror->passes, page, page + 1);
    }
    HWS_TRY(hws_lanes_fetch(mirror, page, pages, &hws_mirrors.staging));
    HWS_TRY(hws_pages_provide(mirror, page, pages, hws_mirrors.staging.bytes, is_write));
    if (pass->next < pass->until && !mirror->has_variables) { /* their bytes have several contexts */
        pass->range = mirror;
        hws_ahead_queue(&ahead, pass);
    }
    return CUDA_SUCCESS;
}

static CUresult serve_page(hws_mirror_t *mirror, size_t page, bool is_write) {
    atomic_store(&hws_mirrors.present, true);
    if (!hws_work_is_idle()) {
        return hws_windows_serve(mirror, page, is_write);
    }
    hws_windows_end();
    return serve_idle(mirror, page, is_write);
}

/* Provides a page. Returns false when the memory is none of ours, or no more. */
static bool serve(const hws_trap_fault_t *fault) {
    hws_mirror_t *mirror;
    size_t page;
    for (;;) {
        mirror = hws_mirror_find(fault->address);
        if (mirror == NULL) {
            return false;
        }
        page = (fault->address - mirror->base) / HWS_PAGE;
        if (mirror->states[page] != HWS_PAGE_COMING) {
            break;
        }
        pthread_cond_wait(&hws_mirrors.arrived, &hws_mirrors.lock);
    }
    if (mirror->is_lost || mirror->is_free || mirror->states[page] == HWS_PAGE_DIRTY
        || mirror->states[page] == HWS_PAGE_HELD || (mirror->states[page] == HWS_PAGE_CLEAN && !fault->is_write)) {
        return true; /* another thread's fault has brought it */
    }
    CUresult result = serve_page(mirror, page, fault->is_write);
    if (result == CUDA_ERROR_OPERATING_SYSTEM) {
        /* Protection divides a mapping, and a process can have 65,530. Now there are few again. */
        hws_pages_give_back(NULL);
        result = mirror->is_lost ? CUDA_SUCCESS : serve_page(mirror, page, fault->is_write);
    }
    if (result != CUDA_SUCCESS && !mirror->is_lost) {
        hws_pages_lose(mirror, result);
    }
    return true;
}

/* Spins before it sleeps: a program that uses a few pages between kernels soon comes again. */
static bool next_fault(int timeout_ms, hws_trap_fault_t *fault_p) {
    static hws_spin_t spin;
    if (spin.limit_ns == 0) {
        hws_spin_init(&spin);
    }
    hws_spin_begin(&spin);
    do {
        if (hws_mirrors.trap->next(0, fault_p)) {
            hws_spin_end(&spin, false);
            return true;
        }
    } while (hws_spin_once(&spin));
    hws_spin_end(&spin, true);
    return hws_mirrors.trap->next(timeout_ms, fault_p);
}

static void *service_main(void *unused) {
    (void) unused;
    hws_tls.is_background = true;
    uint64_t windows_since_ns = 0;
    bool had_windows = false;
    for (;;) {
        hws_trap_fault_t fault;
        bool came = next_fault(had_windows ? HWS_SHORT_MS : -1, &fault);
        uint32_t context = hws_mirror_enter();
        if (had_windows && hws_work_now_ns() - windows_since_ns >= HWS_SHORT_MS * 1000000u) {
            hws_windows_end();
        }
        bool is_ours = came && serve(&fault);
        bool have = hws_windows_exist();
        if (have && !had_windows) {
            windows_since_ns = hws_work_now_ns();
        }
        had_windows = have;
        hws_mirror_leave(context);
        if (came) {
            hws_mirrors.trap->resume(&fault, is_ours); /* without the lock, which the thread may need at once */
        }
    }
    return NULL;
}

bool hws_faults_start(void) {
    pthread_t thread;
    return allocate_staging(&hws_mirrors.staging) && hws_thread_start(&thread, service_main, NULL, "hawser-pages") == 0;
}
