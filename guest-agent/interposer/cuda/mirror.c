#include "mirror.h"

#include "context.h"
#include "copy.h"
#include "mirror_ahead.h"
#include "mirror_spans.h"
#include "pinned.h"
#include "trap.h"

#include "hws_cuda_calls.h"
#include "hws_thread.h"
#include "shm/hws_shm.h"
#include "shm/hws_wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE HWS_TRAP_PAGE_BYTES
#define FAULT_PAGES 64u        /* that one fault waits for */
#define MAX_UPDATE_PAGES 2048u /* that one fault makes writable */
#define MAX_SHORT_PAGES 16u    /* while work runs */
#define SHORT_WINDOWS 4u       /* an instruction may need two pages, and a thread more */
#define SHORT_MS 1
#define MAX_READS 8
#define ORDERED_STREAMS 8u
#define WORD_BYTES 8u

/* COMING: a thread brings the page ahead. Work does not begin meanwhile. */
typedef enum { AWAY, COMING, CLEAN, DIRTY } hws_page_state_t;

typedef struct hws_mirror {
    uint64_t base;
    size_t pages;
    uint32_t context;
    bool has_variables; /* only their bytes travel, each in its own context */
    hws_spans_t spans;
    bool is_free;      /* not armed yet: the host may have written anywhere */
    bool is_lost;      /* the host's memory alone is left */
    size_t first, end; /* pages outside [first, end) are away */
    size_t pieces;     /* that are coming */
    hws_habit_t habit;
    hws_pass_t passes[HWS_PASSES], updates[HWS_PASSES]; /* over pages that are away, and over clean ones */
    uint8_t states[];                                   /* hws_page_state_t */
} hws_mirror_t;

/* Pages that the host has while work runs. */
typedef struct hws_window {
    hws_mirror_t *mirror; /* NULL: unused */
    size_t first, pages;
    bool is_dirty;
    uint8_t *twin; /* MAX_SHORT_PAGES: the device's bytes when the pages became writable */
} hws_window_t;

/* The stream in which pages of a context travel. */
typedef struct hws_page_lane {
    struct hws_page_lane *next;
    uint32_t context;
    CUstream stream;
    CUevent event;   /* NULL: none yet */
    bool is_used;    /* something was sent since the last wait */
    bool is_ordered; /* streams of the program wait for it */
} hws_page_lane_t;

static const hws_trap_t *trap; /* NULL: none works */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below */
static hws_mirror_t **mirrors;                           /* sorted by base */
static size_t mirror_count, mirror_capacity;
static hws_page_lane_t *lanes;
static hws_window_t windows[SHORT_WINDOWS];
static size_t oldest_window;
static hws_staging_t staging;                             /* FAULT_PAGES */
static uint8_t *second;                                   /* MAX_SHORT_PAGES */
static size_t pieces;                                     /* that are coming */
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER; /* a piece has come */

/*
 * Work of the program: records begun and records sent. They are equal while no thread is sending. `settled` is a value
 * of `issued` up to which all work has ended.
 *
 * A thread that issues work adds to `issued` and then looks at `present`. A thread that provides pages sets `present`
 * and then looks at `issued`. So one of them sees the other.
 */
static _Atomic uint64_t issued, sent, settled, acquired;
static _Atomic bool present; /* the host may have pages */

/*
 * Bytes that were sent may not have arrived yet, but some streams of the program wait for them: work in others must not
 * begin. The value is `issued` before the work that was to come next, plus 1; 0: all have arrived.
 */
static _Atomic uint64_t unsettled;
static CUstream ordered[ORDERED_STREAMS];
static size_t ordered_count;
static _Thread_local bool is_in_order; /* the thread's next work is in one of these streams */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* Index of the first mirror above the address. */
static size_t above(uint64_t address) {
    size_t low = 0, high = mirror_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (mirrors[middle]->base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static hws_mirror_t *find(uint64_t address) {
    size_t next = above(address);
    hws_mirror_t *mirror = next == 0 ? NULL : mirrors[next - 1];
    return mirror != NULL && address - mirror->base < mirror->pages * PAGE ? mirror : NULL;
}

static uint64_t address_of(const hws_mirror_t *mirror, size_t page) {
    return mirror->base + page * PAGE;
}

/* Transfers ---------------------------------------------------------------------------------------------------- */

/* The lane of a context, which becomes current. */
static CUresult lane_of(uint32_t context, hws_page_lane_t **lane_p) {
    hws_tls.context = context;
    for (*lane_p = lanes; *lane_p != NULL; *lane_p = (*lane_p)->next) {
        if ((*lane_p)->context == context) {
            return CUDA_SUCCESS;
        }
    }
    hws_page_lane_t *lane = calloc(1, sizeof *lane);
    uint64_t handle = lane == NULL ? 0 : hws_handle_new(HWS_KIND_STREAM);
    CUresult result = handle == 0
        ? CUDA_ERROR_OUT_OF_MEMORY
        : hws_call_cuStreamCreateWithPriority((CUstream) (uintptr_t) handle, CU_STREAM_NON_BLOCKING, 0);
    if (result != CUDA_SUCCESS) {
        if (handle != 0) {
            hws_handle_drop(HWS_KIND_STREAM, handle);
        }
        free(lane);
        return result;
    }
    *lane = (hws_page_lane_t) {.next = lanes, .context = context, .stream = (CUstream) (uintptr_t) handle};
    *lane_p = lanes = lane;
    return CUDA_SUCCESS;
}

/* Fetches pages to memory of the library, in a stream of the current context. */
static CUresult fetch_by(CUstream stream, uint64_t address, uint64_t bytes, const hws_staging_t *to) {
    if (to->region_offset == 0) {
        return hws_copy_fetch(to->bytes, address, bytes, stream);
    }
    HWS_TRY(hws_call_hwsCopyDtoHShared(address, to->region_offset, bytes, stream, 0));
    return hws_call_cuStreamSynchronize(stream);
}

/* The bytes of a mirror that travel, from one range: as hws_spans_next(). */
static bool next_span(const hws_mirror_t *mirror, size_t *at, uint64_t address, uint64_t bytes, hws_span_t *part_p) {
    if (mirror->has_variables) {
        return hws_spans_next(&mirror->spans, at, address, bytes, part_p);
    }
    *part_p = (hws_span_t) {.address = address, .bytes = bytes, .context = mirror->context};
    return (*at)++ == 0;
}

static CUresult fetch(const hws_mirror_t *mirror, size_t page, size_t pages, const hws_staging_t *to) {
    hws_span_t part;
    uint64_t address = address_of(mirror, page);
    if (mirror->has_variables) {
        memset(to->bytes, 0, pages * PAGE);
    }
    for (size_t at = 0; next_span(mirror, &at, address, pages * PAGE, &part);) {
        hws_page_lane_t *lane;
        HWS_TRY(lane_of(part.context, &lane));
        uint64_t offset = part.address - address;
        const hws_staging_t place = {
            .bytes = (uint8_t *) to->bytes + offset,
            .region_offset = to->region_offset == 0 ? 0 : to->region_offset + offset,
        };
        HWS_TRY(fetch_by(lane->stream, part.address, part.bytes, &place));
    }
    return CUDA_SUCCESS;
}

static void note_sent(hws_page_lane_t *lane) {
    lane->is_used = true;
    lane->is_ordered = false;
}

static CUresult send_bytes(const hws_mirror_t *mirror, uint64_t address, const uint8_t *from, uint64_t bytes) {
    hws_span_t part;
    for (size_t at = 0; next_span(mirror, &at, address, bytes, &part);) {
        hws_page_lane_t *lane;
        HWS_TRY(lane_of(part.context, &lane));
        note_sent(lane);
        HWS_TRY(hws_copy_send(part.address, from + (part.address - address), part.bytes, lane->stream));
    }
    return CUDA_SUCCESS;
}

/* Pages of the host --------------------------------------------------------------------------------------------- */

static void set_states(hws_mirror_t *mirror, size_t page, size_t pages, hws_page_state_t state) {
    memset(mirror->states + page, state, pages);
    if (state != AWAY) {
        mirror->first = mirror->first == mirror->end || page < mirror->first ? page : mirror->first;
        mirror->end = page + pages > mirror->end ? page + pages : mirror->end;
    }
}

/* Pages from this one on that have this state, at most `limit`. */
static size_t run_of(const hws_mirror_t *mirror, size_t page, size_t limit, hws_page_state_t state) {
    size_t count = 0;
    limit = limit < mirror->pages - page ? limit : mirror->pages - page;
    while (count < limit && mirror->states[page + count] == state) {
        count++;
    }
    return count;
}

static void drop(hws_mirror_t *mirror, size_t page, size_t pages) {
    trap->drop(address_of(mirror, page), pages * PAGE);
    set_states(mirror, page, pages, AWAY);
}

/* Forgets all pages of a mirror. */
static void forget(hws_mirror_t *mirror) {
    for (size_t i = 0; i < SHORT_WINDOWS; i++) {
        windows[i].mirror = windows[i].mirror == mirror ? NULL : windows[i].mirror;
    }
    hws_ahead_stop(mirror);
    memset(mirror->states, AWAY, mirror->pages);
    mirror->first = mirror->end = 0;
}

/*
 * Ends a mirror whose bytes on the GPU cannot be had, mostly after the error of a kernel. The host keeps what it has;
 * the rest is zeros. Natively the host could still read the memory.
 */
static void lose(hws_mirror_t *mirror, CUresult cause) {
    static bool logged;
    if (!logged && hws_channel_status() != HWS_STATUS_DEINITIALIZED) {
        logged = true;
        hws_log(HWS_ERROR,
                "memory of the host and the GPU is lost after an error of its context, and the host sees zeros: "
                "address=0x%llx bytes=%llu error=%d",
                (unsigned long long) mirror->base, (unsigned long long) mirror->pages * PAGE, cause);
    }
    forget(mirror);
    mirror->is_lost = true;
    trap->release(mirror->base, mirror->pages * PAGE);
}

static bool travels_in(const hws_mirror_t *mirror, uint32_t context) {
    bool does = !mirror->has_variables && mirror->context == context;
    for (size_t i = 0; i < mirror->spans.count; i++) {
        does |= mirror->spans.items[i].context == context;
    }
    return does;
}

/* Waits until everything that was sent has arrived. */
static void wait_for_sent(void) {
    for (hws_page_lane_t *lane = lanes; lane != NULL; lane = lane->next) {
        if (!lane->is_used) {
            continue;
        }
        lane->is_used = false;
        hws_tls.context = lane->context;
        CUresult result = hws_call_cuStreamSynchronize(lane->stream);
        for (size_t i = 0; i < mirror_count && result != CUDA_SUCCESS; i++) {
            if (travels_in(mirrors[i], lane->context) && !mirrors[i]->is_lost) {
                lose(mirrors[i], result);
            }
        }
    }
    atomic_store(&unsettled, 0); /* only now: others look at it without the lock */
}

/* The first byte from `at` on that differs, or is equal; the end when there is none. */
static size_t next_byte(const uint8_t *bytes, const uint8_t *twin, size_t at, size_t end, bool differs) {
    while (at < end && (bytes[at] != twin[at]) != differs) {
        at++;
    }
    return at;
}

/* The end of the changes that begin here and have fewer than WORD_BYTES equal bytes between them. */
static size_t end_of_changes(const uint8_t *bytes, const uint8_t *twin, size_t at, size_t length) {
    size_t end = at;
    do {
        end = next_byte(bytes, twin, at, length, false);
        size_t limit = length - end < WORD_BYTES ? length : end + WORD_BYTES;
        at = next_byte(bytes, twin, end, limit, true);
        if (at == limit) {
            return end;
        }
    } while (end < length);
    return end;
}

/*
 * Sends the bytes of a window that differ from their twin. A kernel may write the others. Single words go last: a word
 * may be the flag that announces the rest.
 */
static CUresult send_changes(const hws_window_t *window) {
    uint64_t address = address_of(window->mirror, window->first);
    const uint8_t *bytes = trap->bytes_at(address), *twin = window->twin;
    size_t length = window->pages * PAGE;
    for (int words = 0; words <= 1; words++) {
        for (size_t at = next_byte(bytes, twin, 0, length, true); at < length;) {
            size_t end = end_of_changes(bytes, twin, at, length);
            bool is_word = end - at <= WORD_BYTES;
            while (at < end) {
                size_t run_end = next_byte(bytes, twin, at, end, false);
                if (is_word == (words == 1)) {
                    HWS_TRY(send_bytes(window->mirror, address + at, bytes + at, run_end - at));
                }
                at = next_byte(bytes, twin, run_end, end, true);
            }
            at = next_byte(bytes, twin, end, length, true);
        }
    }
    return CUDA_SUCCESS;
}

/* Sends what the host has written to a window. */
static CUresult send_window(hws_window_t *window) {
    window->is_dirty = false;
    if (!trap->protect(address_of(window->mirror, window->first), window->pages * PAGE)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    set_states(window->mirror, window->first, window->pages, CLEAN);
    return send_changes(window);
}

/* Sends what the host has written while work ran. The host loses memory whose bytes cannot be sent. */
static void settle_windows(void) {
    for (size_t i = 0; i < SHORT_WINDOWS; i++) {
        hws_window_t *window = &windows[i];
        CUresult result = window->mirror == NULL || !window->is_dirty ? CUDA_SUCCESS : send_window(window);
        if (result != CUDA_SUCCESS) {
            lose(window->mirror, result);
        }
    }
    wait_for_sent();
}

static void drop_window(hws_window_t *window) {
    if (window->mirror != NULL) {
        drop(window->mirror, window->first, window->pages);
        window->mirror = NULL;
    }
}

/* Sends what the host has written and drops the pages that it got while work ran. */
static void end_windows(void) {
    settle_windows();
    for (size_t i = 0; i < SHORT_WINDOWS; i++) {
        drop_window(&windows[i]);
    }
}

/* Finds out which pages of free memory the host has written, and traps accesses from now on. */
static CUresult arm(hws_mirror_t *mirror) {
    if (!mirror->is_free || mirror->is_lost) {
        return CUDA_SUCCESS;
    }
    if (!trap->arm(mirror->base, mirror->pages * PAGE)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    mirror->is_free = false;
    trap->find_present(mirror->base, mirror->pages, mirror->states);
    for (size_t page = 0; page < mirror->pages; page++) {
        mirror->states[page] = mirror->states[page] != 0 ? DIRTY : AWAY;
    }
    mirror->first = 0;
    mirror->end = mirror->pages; /* all of them must be dropped */
    return CUDA_SUCCESS;
}

/* Sends the pages that the host has written. They stay, protected. */
static CUresult send_written(hws_mirror_t *mirror) {
    for (size_t page = mirror->first; page < mirror->end;) {
        size_t pages = run_of(mirror, page, mirror->end - page, DIRTY);
        if (pages != 0) {
            uint64_t address = address_of(mirror, page);
            if (!trap->protect(address, pages * PAGE)) {
                return CUDA_ERROR_OPERATING_SYSTEM;
            }
            HWS_TRY(send_bytes(mirror, address, trap->bytes_at(address), pages * PAGE));
            set_states(mirror, page, pages, CLEAN);
        }
        page += pages + 1;
    }
    return CUDA_SUCCESS;
}

/* Lets a stream of the current context wait for what was sent. Returns false when it cannot. */
static bool order(hws_page_lane_t *lane, CUstream stream) {
    if (lane->event == NULL) {
        uint64_t handle = hws_handle_new(HWS_KIND_EVENT);
        if (handle == 0
            || hws_call_cuEventCreate((CUevent) (uintptr_t) handle, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
            return false;
        }
        lane->event = (CUevent) (uintptr_t) handle;
    }
    if (!lane->is_ordered) {
        if (hws_call_cuEventRecordWithFlags(lane->event, lane->stream, 0) != CUDA_SUCCESS) {
            return false;
        }
        lane->is_ordered = true;
        ordered_count = 0;
        atomic_store(&unsettled, atomic_load(&issued) + 1);
    }
    for (size_t i = 0; i < ordered_count; i++) {
        if (ordered[i] == stream) {
            return true;
        }
    }
    if (ordered_count == ORDERED_STREAMS || hws_call_cuStreamWaitEvent(stream, lane->event, 0) != CUDA_SUCCESS) {
        return false;
    }
    ordered[ordered_count++] = stream;
    return true;
}

/*
 * Lets the work that comes next see what was sent. Without a stream, the bytes have arrived when this returns.
 */
static void settle_sent(const CUstream *stream) {
    hws_page_lane_t *lane = lanes;
    if (stream == NULL || (lane != NULL && lane->is_used && !order(lane, *stream))) {
        wait_for_sent();
    }
}

/*
 * Gives the device what the host has written, before work that may use it; the work of one stream, unless that is NULL.
 * The host has no pages afterwards.
 */
static void give_back(const CUstream *stream) {
    hws_ahead_stop(NULL);
    while (pieces != 0) {
        pthread_cond_wait(&arrived, &lock);
    }
    trap->renew();
    end_windows();
    for (size_t i = 0; i < mirror_count; i++) {
        CUresult result = arm(mirrors[i]);
        result = result != CUDA_SUCCESS ? result : send_written(mirrors[i]);
        if (result != CUDA_SUCCESS) {
            lose(mirrors[i], result);
        }
    }
    settle_sent(stream);
    for (size_t i = 0; i < mirror_count; i++) {
        hws_mirror_t *mirror = mirrors[i];
        if (mirror->end > mirror->first) {
            drop(mirror, mirror->first, mirror->end - mirror->first);
            mirror->first = mirror->end = 0;
        }
    }
    atomic_store(&present, false);
}

/* Locks for a thread that may have a context of its own. */
static uint32_t enter(void) {
    pthread_mutex_lock(&lock);
    hws_tls.moves_pages = true;
    return hws_tls.context;
}

static void leave(uint32_t context) {
    hws_tls.context = context;
    hws_tls.moves_pages = false;
    pthread_mutex_unlock(&lock);
}

/* Work ---------------------------------------------------------------------------------------------------------- */

static void begin_work(void) {
    if (hws_tls.moves_pages) {
        return;
    }
    atomic_fetch_add(&issued, 1);
    if (atomic_load(&present) || (!is_in_order && atomic_load(&unsettled) != 0)) {
        uint32_t context = enter();
        if (atomic_load(&present)) {
            give_back(NULL);
        } else if (!is_in_order && atomic_load(&unsettled) != 0) {
            wait_for_sent();
        }
        leave(context);
    }
}

void hws_mirror_order(CUstream stream) {
    if ((!atomic_load(&present) && atomic_load(&unsettled) == 0) || hws_tls.moves_pages || hws_tls.in_callback
        || stream == CU_STREAM_PER_THREAD || hws_context_has_several()) {
        return;
    }
    uint32_t owner = (uint32_t) (uintptr_t) hws_context_owner(), context = enter();
    if (lanes == NULL || lanes->next != NULL || lanes->context != owner) {
        leave(context);
        return;
    }
    if (atomic_load(&unsettled) == 0 && lanes->is_ordered) {
        lanes->is_used = false;
    }
    hws_tls.context = owner;
    if (atomic_load(&present)) {
        give_back(&stream);
    } else {
        settle_sent(&stream);
    }
    leave(context);
    is_in_order = true;
}

void hws_mirror_end_order(void) {
    is_in_order = false;
}

static void end_work(void) {
    if (!hws_tls.moves_pages) {
        atomic_fetch_add(&sent, 1);
    }
}

static const hws_work_hooks_t work_hooks = {begin_work, end_work};

uint64_t hws_mirror_mark(void) {
    if (!hws_channel_watches_work() || hws_tls.moves_pages) {
        return 0;
    }
    uint64_t sent_before = atomic_load(&sent), mark = atomic_load(&issued);
    return sent_before == mark ? mark : 0;
}

void hws_mirror_called(void) {
    if (hws_channel_watches_work() && atomic_load(&present)) {
        uint32_t context = enter();
        give_back(NULL);
        leave(context);
    }
}

static void settle_up_to(uint64_t mark) {
    uint64_t before = atomic_load(&settled);
    while (before < mark && !atomic_compare_exchange_weak(&settled, &before, mark)) {
    }
    uint64_t bytes = atomic_load(&unsettled);
    if (bytes != 0 && bytes <= mark) { /* work that came after these bytes has ended */
        atomic_compare_exchange_strong(&unsettled, &bytes, 0);
    }
}

void hws_mirror_waited(uint64_t mark, bool for_all) {
    if (!hws_channel_watches_work() || hws_tls.moves_pages) {
        return;
    }
    if (for_all) {
        settle_up_to(mark);
    }
    uint64_t until = atomic_load(&issued);
    if (atomic_exchange(&acquired, until) == until || !atomic_load(&present)) {
        return; /* the host has got no page since the last wait that work may have changed */
    }
    uint32_t context = enter();
    trap->renew();
    end_windows();
    for (size_t i = 0; i < mirror_count; i++) {
        hws_mirror_t *mirror = mirrors[i];
        for (size_t page = mirror->first; page < mirror->end && !mirror->is_free;) {
            size_t pages = run_of(mirror, page, mirror->end - page, CLEAN);
            if (pages != 0) {
                drop(mirror, page, pages);
            }
            page += pages + 1;
        }
    }
    leave(context);
}

/* Faults -------------------------------------------------------------------------------------------------------- */

/* Whether no work can run. Work that begins later waits for the lock, because `present` is set. */
static bool is_idle(void) {
    static uint64_t asked_ns; /* when the answer was no */
    uint64_t sent_before = atomic_load(&sent), mark = atomic_load(&issued);
    if (sent_before != mark) {
        return false;
    }
    if (atomic_load(&settled) >= mark) {
        return true;
    }
    uint32_t idle = 0;
    if (now_ns() - asked_ns < SHORT_MS * 1000000u) {
        return false;
    }
    if (hws_call_hwsContextsQuery(&idle) != CUDA_SUCCESS || idle == 0) {
        asked_ns = now_ns();
        return false;
    }
    settle_up_to(mark);
    return true;
}

/* Allows writes to pages of which the host has clean copies. */
static CUresult allow_writes(hws_mirror_t *mirror, size_t page, size_t pages) {
    if (!trap->unprotect(address_of(mirror, page), pages * PAGE)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    set_states(mirror, page, pages, DIRTY);
    return CUDA_SUCCESS;
}

static CUresult provide(hws_mirror_t *mirror, size_t page, size_t pages, const void *bytes, bool is_writable) {
    if (!trap->fill(address_of(mirror, page), bytes, pages * PAGE, is_writable)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    set_states(mirror, page, pages, is_writable ? DIRTY : CLEAN);
    return CUDA_SUCCESS;
}

/* Takes pages that a pass will need next, unless work may run. */
static bool take_ahead(hws_pass_t *pass, hws_piece_t *piece_p) {
    hws_mirror_t *mirror = pass->range;
    hws_page_lane_t *lane;
    atomic_store(&present, true);
    if (!is_idle() || lane_of(mirror->context, &lane) != CUDA_SUCCESS) {
        return false;
    }
    bool is_write;
    size_t limit, count = 0;
    while (count == 0 && (limit = hws_pass_ahead(pass, HWS_PIECE_PAGES, &is_write)) != 0) {
        count = run_of(mirror, pass->next, limit, AWAY);
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
        .stream = (uint64_t) (uintptr_t) lane->stream,
        .context = mirror->context,
    };
    pass->next += count;
    set_states(mirror, piece_p->page, count, COMING);
    mirror->pieces++;
    pieces++;
    return true;
}

static bool bring(const hws_piece_t *piece, const hws_staging_t *to) {
    uint64_t address = address_of(piece->range, piece->page), bytes = piece->pages * PAGE;
    hws_tls.context = piece->context;
    bool came = fetch_by((CUstream) (uintptr_t) piece->stream, address, bytes, to) == CUDA_SUCCESS
        && trap->fill(address, to->bytes, bytes, piece->is_write);
    trap->wake(address, bytes);
    return came;
}

/* Pages that could not come are fetched again at the fault that needs them, which reports the error. */
static void arrive(const hws_piece_t *piece, bool came) {
    hws_mirror_t *mirror = piece->range;
    mirror->pieces--;
    pieces--;
    if (mirror->is_lost) {
        trap->release(address_of(mirror, piece->page), piece->pages * PAGE);
    } else if (came) {
        set_states(mirror, piece->page, piece->pages, piece->is_write ? DIRTY : CLEAN);
    } else {
        hws_ahead_stop(mirror);
        drop(mirror, piece->page, piece->pages);
    }
    pthread_cond_broadcast(&arrived);
}

static bool allocate_staging(hws_staging_t *staging_p);

static const hws_ahead_owner_t ahead = {&lock, allocate_staging, take_ahead, bring, arrive};

/* Makes pages writable that a pass of updates will need next. */
static CUresult serve_update(hws_mirror_t *mirror, size_t page) {
    hws_pass_t *pass = hws_pass_find(mirror->updates, page);
    hws_pass_step(pass, page);
    size_t pages = run_of(mirror, page, pass->pages < MAX_UPDATE_PAGES ? pass->pages : MAX_UPDATE_PAGES, CLEAN);
    pass->next = page + pages;
    if (hws_pass_note_write(mirror->passes, page, page + pages)) {
        hws_habit_note_write(&mirror->habit);
    }
    return allow_writes(mirror, page, pages);
}

static CUresult serve_idle(hws_mirror_t *mirror, size_t page, bool is_write) {
    if (mirror->states[page] == CLEAN) {
        return serve_update(mirror, page);
    }
    hws_pass_t *pass = hws_pass_find(mirror->passes, page), before = *pass;
    bool is_lone = !hws_pass_step(pass, page);
    is_write = is_write || (is_lone && hws_habit_expects_write(&mirror->habit, &before));
    size_t pages = run_of(mirror, page, pass->pages < FAULT_PAGES ? pass->pages : FAULT_PAGES, AWAY);
    hws_pass_advance(pass, page, pages, mirror->pages);
    if (is_write) {
        hws_pass_note_write(mirror->passes, page, page + 1);
    }
    HWS_TRY(fetch(mirror, page, pages, &staging));
    HWS_TRY(provide(mirror, page, pages, staging.bytes, is_write));
    if (pass->next < pass->until && !mirror->has_variables) { /* their bytes have several contexts */
        pass->range = mirror;
        hws_ahead_queue(&ahead, pass);
    }
    return CUDA_SUCCESS;
}

static hws_window_t *window_at(const hws_mirror_t *mirror, size_t page) {
    for (size_t i = 0; i < SHORT_WINDOWS; i++) {
        if (windows[i].mirror == mirror && page - windows[i].first < windows[i].pages) {
            return &windows[i];
        }
    }
    return NULL;
}

/* Reads until two reads agree: a kernel may be writing. */
static CUresult fetch_stable(const hws_mirror_t *mirror, size_t page, size_t pages) {
    const hws_staging_t again = {.bytes = second};
    HWS_TRY(fetch(mirror, page, pages, &staging));
    for (int i = 1; i < MAX_READS; i++) {
        HWS_TRY(fetch(mirror, page, pages, &again));
        if (memcmp(staging.bytes, second, pages * PAGE) == 0) {
            break;
        }
        memcpy(staging.bytes, second, pages * PAGE);
    }
    return CUDA_SUCCESS;
}

static void begin_writes(hws_window_t *window, const void *bytes) {
    memcpy(window->twin, bytes, window->pages * PAGE);
    window->is_dirty = true;
}

static CUresult serve_busy(hws_mirror_t *mirror, size_t page, bool is_write) {
    static struct {
        const hws_mirror_t *mirror;
        size_t first, pages;
    } dropped[SHORT_WINDOWS]; /* by the last fault */
    hws_window_t *window = window_at(mirror, page);
    settle_windows(); /* the device gets one window's bytes before the host writes another */
    if (mirror->states[page] == CLEAN && window != NULL) {
        begin_writes(window, trap->bytes_at(address_of(mirror, window->first)));
        return allow_writes(mirror, window->first, window->pages);
    }
    if (mirror->states[page] != AWAY) { /* from before the work began */
        drop(mirror, page, 1);
    }
    /*
     * Older pages go, because the kernel may write them before it writes this one. They stay when the program needs
     * both: it has come back to a page that the last fault dropped.
     */
    bool needs_both = false;
    for (size_t i = 0; i < SHORT_WINDOWS; i++) {
        needs_both |= dropped[i].mirror == mirror && page - dropped[i].first < dropped[i].pages;
    }
    for (size_t i = 0; i < SHORT_WINDOWS; i++) {
        dropped[i].mirror = needs_both ? NULL : windows[i].mirror;
        dropped[i].first = windows[i].first;
        dropped[i].pages = windows[i].pages;
        if (!needs_both) {
            drop_window(&windows[i]);
        }
    }
    window = &windows[oldest_window];
    oldest_window = (oldest_window + 1) % SHORT_WINDOWS;
    drop_window(window);
    hws_pass_t *pass = hws_pass_find(mirror->passes, page);
    size_t wanted = !hws_pass_step(pass, page) ? 1 : pass->pages < MAX_SHORT_PAGES ? pass->pages : MAX_SHORT_PAGES;
    size_t pages = run_of(mirror, page, wanted, AWAY);
    pass->next = pass->until = page + pages;
    HWS_TRY(fetch_stable(mirror, page, pages));
    *window = (hws_window_t) {.mirror = mirror, .first = page, .pages = pages, .twin = window->twin};
    if (is_write) {
        begin_writes(window, staging.bytes);
    }
    return provide(mirror, page, pages, staging.bytes, is_write);
}

static bool have_windows(void) {
    for (size_t i = 0; i < SHORT_WINDOWS; i++) {
        if (windows[i].mirror != NULL) {
            return true;
        }
    }
    return false;
}

static CUresult serve_page(hws_mirror_t *mirror, size_t page, bool is_write) {
    atomic_store(&present, true);
    if (!is_idle()) {
        return serve_busy(mirror, page, is_write);
    }
    end_windows();
    return serve_idle(mirror, page, is_write);
}

/* Provides a page. Returns false when the memory is none of ours, or no more. */
static bool serve(const hws_trap_fault_t *fault) {
    hws_mirror_t *mirror;
    size_t page;
    for (;;) {
        mirror = find(fault->address);
        if (mirror == NULL) {
            return false;
        }
        page = (fault->address - mirror->base) / PAGE;
        if (mirror->states[page] != COMING) {
            break;
        }
        pthread_cond_wait(&arrived, &lock);
    }
    if (mirror->is_lost || mirror->is_free || mirror->states[page] == DIRTY
        || (mirror->states[page] == CLEAN && !fault->is_write)) {
        return true; /* another thread's fault has brought it */
    }
    CUresult result = serve_page(mirror, page, fault->is_write);
    if (result == CUDA_ERROR_OPERATING_SYSTEM) {
        give_back(NULL); /* protection divides a mapping, and a process can have 65,530: now there are few again */
        result = mirror->is_lost ? CUDA_SUCCESS : serve_page(mirror, page, fault->is_write);
    }
    if (result != CUDA_SUCCESS && !mirror->is_lost) {
        lose(mirror, result);
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
        if (trap->next(0, fault_p)) {
            hws_spin_end(&spin, false);
            return true;
        }
    } while (hws_spin_once(&spin));
    hws_spin_end(&spin, true);
    return trap->next(timeout_ms, fault_p);
}

static void *service_main(void *unused) {
    (void) unused;
    hws_tls.is_background = true;
    uint64_t windows_since_ns = 0;
    bool had_windows = false;
    for (;;) {
        hws_trap_fault_t fault;
        bool came = next_fault(had_windows ? SHORT_MS : -1, &fault);
        uint32_t context = enter();
        if (had_windows && now_ns() - windows_since_ns >= SHORT_MS * 1000000u) {
            end_windows();
        }
        bool is_ours = came && serve(&fault);
        bool have = have_windows();
        if (have && !had_windows) {
            windows_since_ns = now_ns();
        }
        had_windows = have;
        leave(context);
        if (came) {
            trap->resume(&fault, is_ours); /* without the lock, which the thread may need at once */
        }
    }
    return NULL;
}

/* Lock held, and the host has no pages. */
static CUresult copy_at_device(const hws_mirror_t *mirror, uint8_t *buffer, uint64_t address, uint64_t bytes,
                               bool to_memory) {
    hws_span_t part;
    for (size_t at = 0; next_span(mirror, &at, address, bytes, &part);) {
        hws_page_lane_t *lane;
        uint8_t *place = buffer + (part.address - address);
        HWS_TRY(lane_of(part.context, &lane));
        if (!to_memory) {
            HWS_TRY(hws_copy_fetch(place, part.address, part.bytes, lane->stream));
        } else {
            HWS_TRY(hws_copy_send(part.address, place, part.bytes, lane->stream));
            HWS_TRY(hws_call_cuStreamSynchronize(lane->stream));
        }
    }
    return CUDA_SUCCESS;
}

CUresult hws_mirror_copy(void *buffer, uint64_t address, uint64_t bytes, bool to_memory) {
    void *memory = (void *) (uintptr_t) address;
    uint32_t context = enter();
    hws_mirror_t *mirror = find(address);
    CUresult result = CUDA_SUCCESS;
    if (mirror != NULL && !mirror->is_free && !mirror->is_lost) {
        give_back(NULL);
        mirror = find(address); /* another thread may have removed it meanwhile */
    }
    if (mirror != NULL && !mirror->is_free && !mirror->is_lost) {
        result = copy_at_device(mirror, buffer, address, bytes, to_memory);
    } else {
        memcpy(to_memory ? memory : buffer, to_memory ? buffer : memory, bytes);
    }
    leave(context);
    return result;
}

/* Ranges -------------------------------------------------------------------------------------------------------- */

static void *allocate_pages(size_t pages) {
    void *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Lets devices write the staging memory, if it fits the region. */
static bool allocate_staging(hws_staging_t *staging_p) {
    hws_heap_block_t block;
    const hws_shm_view_t *view = hws_shm_current();
    *staging_p = (hws_staging_t) {0};
    if (view != NULL && hws_pinned_allocate(HWS_PIECE_PAGES * PAGE, &block, &staging_p->bytes) == CUDA_SUCCESS) {
        staging_p->region_offset = hws_shm_offset(view, staging_p->bytes);
    } else {
        staging_p->bytes = allocate_pages(HWS_PIECE_PAGES);
    }
    return staging_p->bytes != NULL;
}

static void open_once(void) {
    pthread_t thread;
    const hws_trap_t *found = hws_trap_userfault.open() ? &hws_trap_userfault
        : hws_trap_signal.open()                        ? &hws_trap_signal
                                                        : NULL;
    bool complete = found != NULL && allocate_staging(&staging) && (second = allocate_pages(MAX_SHORT_PAGES)) != NULL;
    for (size_t i = 0; i < SHORT_WINDOWS && complete; i++) {
        complete = (windows[i].twin = allocate_pages(MAX_SHORT_PAGES)) != NULL;
    }
    trap = found;
    if (!complete || hws_thread_start(&thread, service_main, NULL, "hawser-pages") != 0) {
        trap = NULL;
    }
}

bool hws_mirror_open(void) {
    pthread_once(&once, open_once);
    return trap != NULL;
}

static bool make_room(void) {
    if (mirror_count < mirror_capacity) {
        return true;
    }
    size_t wanted = mirror_capacity == 0 ? 64 : 2 * mirror_capacity;
    hws_mirror_t **larger = realloc(mirrors, wanted * sizeof *larger);
    if (larger == NULL) {
        return false;
    }
    mirrors = larger;
    mirror_capacity = wanted;
    return true;
}

/* Lock held. */
static CUresult insert(hws_mirror_t *mirror, bool (*add)(uint64_t, uint64_t)) {
    if (!make_room() || !add(mirror->base, mirror->pages * PAGE)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t at = above(mirror->base);
    memmove(mirrors + at + 1, mirrors + at, (mirror_count - at) * sizeof *mirrors);
    mirrors[at] = mirror;
    mirror_count++;
    atomic_store(&present, true);
    return CUDA_SUCCESS;
}

static hws_mirror_t *new_mirror(uint64_t base, size_t pages) {
    hws_mirror_t *mirror = calloc(1, sizeof *mirror + pages);
    if (mirror != NULL) {
        mirror->base = base;
        mirror->pages = pages;
        mirror->context = (uint32_t) (uintptr_t) hws_context_owner();
        mirror->is_free = true;
    }
    return mirror;
}

/* Lock held. */
static void watch_work(void) {
    if (!hws_channel_watches_work()) {
        atomic_fetch_add(&issued, 1); /* earlier work was not counted and may run */
        atomic_fetch_add(&sent, 1);
        hws_channel_watch_work(&work_hooks);
    }
}

/* The device's bytes become zeros in the lane, before any page of the host arrives there. */
static CUresult clear(const hws_mirror_t *mirror) {
    hws_page_lane_t *lane;
    HWS_TRY(lane_of(mirror->context, &lane));
    HWS_TRY(hws_call_cuMemsetD8Async(mirror->base, 0, mirror->pages * PAGE, lane->stream));
    note_sent(lane);
    return CUDA_SUCCESS;
}

static CUresult begin_mirror(CUdeviceptr address, uint64_t bytes, bool (*add)(uint64_t, uint64_t)) {
    hws_mirror_t *mirror = new_mirror(address, bytes / PAGE);
    if (mirror == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint32_t context = enter();
    watch_work();
    CUresult result = clear(mirror);
    result = result != CUDA_SUCCESS ? result : insert(mirror, add);
    leave(context);
    if (result != CUDA_SUCCESS) {
        free(mirror);
    }
    return result;
}

CUresult hws_mirror_add(CUdeviceptr address, uint64_t bytes) {
    return begin_mirror(address, bytes, trap->add);
}

CUresult hws_mirror_adopt(CUdeviceptr address, uint64_t bytes) {
    return begin_mirror(address, bytes, trap->adopt);
}

/* Takes the memory away from the host. Only the reservation of its addresses stays. */
static void take_away(const hws_mirror_t *mirror) {
    if (mmap((void *) (uintptr_t) mirror->base, mirror->pages * PAGE, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)
        == MAP_FAILED) {
        hws_log(HWS_ERROR, "freed memory stays mapped: %s", strerror(errno));
    }
    trap->remove(mirror->base, mirror->pages * PAGE);
}

/* Lock held. */
static void end(hws_mirror_t *mirror) {
    if (atomic_load(&unsettled) != 0) {
        wait_for_sent();
    }
    forget(mirror);
    size_t at = above(mirror->base) - 1;
    mirror_count--;
    memmove(mirrors + at, mirrors + at + 1, (mirror_count - at) * sizeof *mirrors);
    take_away(mirror);
    hws_spans_free(&mirror->spans);
    free(mirror);
}

void hws_mirror_remove(CUdeviceptr address) {
    uint32_t context = enter();
    hws_mirror_t *mirror = find(address);
    while (mirror != NULL && mirror->base == address && mirror->pieces != 0) {
        hws_ahead_stop(mirror);
        pthread_cond_wait(&arrived, &lock);
        mirror = find(address);
    }
    if (mirror != NULL && mirror->base == address) {
        end(mirror);
    }
    leave(context);
}

/* Variables ----------------------------------------------------------------------------------------------------- */

/* Of a process; the worker chooses the addresses. */
#define MIN_ADDRESS (1ull << 20)
#define MAX_ADDRESS (1ull << 47)

static uint64_t first_page(uint64_t address) {
    return address / PAGE * PAGE;
}

static uint64_t end_page(uint64_t address, uint64_t bytes) {
    return first_page(address + bytes + PAGE - 1);
}

/* Adds a mirror of pages that the process does not use. All of them are away. */
static CUresult add_pages(uint64_t from, uint64_t to) {
    void *wanted = (void *) (uintptr_t) from;
    if (mmap(wanted, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0)
        != wanted) {
        return errno == EEXIST ? CUDA_ERROR_ALREADY_MAPPED : CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_mirror_t *mirror = new_mirror(from, (to - from) / PAGE);
    CUresult result = mirror == NULL ? CUDA_ERROR_OUT_OF_MEMORY : insert(mirror, trap->add);
    if (result != CUDA_SUCCESS) {
        free(mirror);
        munmap(wanted, to - from);
        return result;
    }
    mirror->has_variables = true;
    HWS_TRY(arm(mirror));
    drop(mirror, 0, mirror->pages);
    return CUDA_SUCCESS;
}

/* Adds the bytes of a variable that lie in the mirror of its first page, or in a new one. Returns their end. */
static CUresult add_part(hws_span_t variable, uint64_t *end_p) {
    hws_mirror_t *mirror = find(variable.address);
    if (mirror == NULL) {
        size_t next = above(variable.address);
        uint64_t end = end_page(variable.address, variable.bytes);
        end = next < mirror_count && mirrors[next]->base < end ? mirrors[next]->base : end;
        HWS_TRY(add_pages(first_page(variable.address), end));
        mirror = find(variable.address);
    }
    if (!mirror->has_variables || mirror->is_lost) {
        return CUDA_ERROR_ALREADY_MAPPED;
    }
    uint64_t end = mirror->base + mirror->pages * PAGE, bytes = end - variable.address;
    variable.bytes = variable.bytes < bytes ? variable.bytes : bytes;
    *end_p = variable.address + variable.bytes;
    return hws_spans_add(&mirror->spans, variable) ? CUDA_SUCCESS : CUDA_ERROR_ALREADY_MAPPED;
}

static CUresult add_variable(hws_span_t variable) {
    for (uint64_t at = variable.address, end = at + variable.bytes; at < end;) {
        HWS_TRY(add_part((hws_span_t) {.address = at, .bytes = end - at, .context = variable.context}, &at));
    }
    return CUDA_SUCCESS;
}

/* Removes the spans in a range, and the mirrors that have none any more. */
static void remove_variable(uint64_t address, uint64_t bytes) {
    for (size_t i = above(end_page(address, bytes) - 1); i > 0;) {
        hws_mirror_t *mirror = mirrors[--i];
        if (mirror->base + mirror->pages * PAGE <= address) {
            return;
        }
        hws_spans_remove(&mirror->spans, address, bytes);
        if (mirror->has_variables && mirror->spans.count == 0) {
            void *base = (void *) (uintptr_t) mirror->base;
            size_t length = mirror->pages * PAGE;
            end(mirror);
            munmap(base, length);
        }
    }
}

CUresult hws_mirror_add_variable(CUdeviceptr address, uint64_t bytes) {
    if (bytes == 0 || address < MIN_ADDRESS || address >= MAX_ADDRESS || bytes > MAX_ADDRESS - PAGE - address) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const hws_span_t variable = {address, bytes, (uint32_t) (uintptr_t) hws_context_owner()};
    uint32_t context = enter();
    watch_work();
    give_back(NULL); /* the host has no page that the variable shares with others */
    CUresult result = add_variable(variable);
    if (result != CUDA_SUCCESS) {
        remove_variable(address, bytes);
    }
    leave(context);
    return result;
}

void hws_mirror_remove_variable(CUdeviceptr address, uint64_t bytes) {
    uint32_t context = enter();
    remove_variable(address, bytes);
    leave(context);
}
