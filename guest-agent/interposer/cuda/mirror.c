#include "mirror.h"

#include "context.h"
#include "copy.h"
#include "pinned.h"
#include "trap.h"

#include "hws_cuda_calls.h"
#include "hws_thread.h"
#include "shm/hws_shm.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE HWS_TRAP_PAGE_BYTES
#define FIRST_PAGES 4u        /* of a pass; each further fault of it doubles them */
#define MAX_PAGES 256u        /* at once: 1 MiB */
#define MAX_AHEAD_PAGES 4096u /* that the program has not touched yet */
#define MAX_SHORT_PAGES 16u   /* while work runs */
#define SHORT_WINDOWS 4u      /* an instruction may need two pages, and a thread more */
#define SHORT_MS 1
#define MAX_READS 8
#define WORD_BYTES 8u

typedef enum { AWAY, CLEAN, DIRTY } hws_page_state_t;

/*
 * A pass of the program through a range: where its next fault is expected, and the pages that the last one got. `ahead`
 * more are provided while the program works.
 */
typedef struct hws_pass {
    size_t next, pages, ahead;
} hws_pass_t;

typedef struct hws_mirror {
    uint64_t base;
    size_t pages;
    uint32_t context;
    bool is_free;      /* not armed yet: the host may have written anywhere */
    bool is_lost;      /* the host's memory alone is left */
    size_t first, end; /* pages outside [first, end) are away */
    hws_pass_t reads, writes;
    uint8_t states[]; /* hws_page_state_t */
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
    bool is_used; /* something was sent since the last wait */
} hws_page_lane_t;

static const hws_trap_t *trap; /* NULL: none works */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below */
static hws_mirror_t **mirrors;                           /* sorted by base */
static size_t mirror_count, mirror_capacity;
static hws_page_lane_t *lanes;
static hws_window_t windows[SHORT_WINDOWS];
static size_t oldest_window;
static hws_pass_t *ahead; /* gets pages before it needs them; NULL: none */
static hws_mirror_t *ahead_of;
static uint8_t *staging;        /* MAX_PAGES */
static uint64_t staging_offset; /* in the region, where devices write it; 0: it lies elsewhere */
static uint8_t *second;         /* MAX_SHORT_PAGES */

/*
 * Work of the program: records begun and records sent. They are equal while no thread is sending. `settled` is a value
 * of `issued` up to which all work has ended.
 *
 * A thread that issues work adds to `issued` and then looks at `present`. A thread that provides pages sets `present`
 * and then looks at `issued`. So one of them sees the other.
 */
static _Atomic uint64_t issued, sent, settled, acquired;
static _Atomic bool present; /* the host may have pages */

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

/* The lane of a mirror's context, which becomes current. */
static CUresult lane_of(const hws_mirror_t *mirror, hws_page_lane_t **lane_p) {
    hws_tls.context = mirror->context;
    for (*lane_p = lanes; *lane_p != NULL; *lane_p = (*lane_p)->next) {
        if ((*lane_p)->context == mirror->context) {
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
    *lane = (hws_page_lane_t) {.next = lanes, .context = mirror->context, .stream = (CUstream) (uintptr_t) handle};
    *lane_p = lanes = lane;
    return CUDA_SUCCESS;
}

static CUresult fetch(const hws_mirror_t *mirror, size_t page, size_t pages, void *to) {
    hws_page_lane_t *lane;
    HWS_TRY(lane_of(mirror, &lane));
    if (to != staging || staging_offset == 0) {
        return hws_copy_fetch(to, address_of(mirror, page), pages * PAGE, lane->stream);
    }
    HWS_TRY(hws_call_hwsCopyDtoHShared(address_of(mirror, page), staging_offset, pages * PAGE, lane->stream, 0));
    return hws_call_cuStreamSynchronize(lane->stream);
}

static CUresult send_bytes(const hws_mirror_t *mirror, uint64_t address, const void *from, uint64_t bytes) {
    hws_page_lane_t *lane;
    HWS_TRY(lane_of(mirror, &lane));
    lane->is_used = true;
    return hws_copy_send(address, from, bytes, lane->stream);
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
    ahead = ahead_of == mirror ? NULL : ahead;
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
                "managed memory is lost after an error of its context, and the host sees zeros: address=0x%llx "
                "bytes=%llu error=%d",
                (unsigned long long) mirror->base, (unsigned long long) mirror->pages * PAGE, cause);
    }
    forget(mirror);
    mirror->is_lost = true;
    trap->release(mirror->base, mirror->pages * PAGE);
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
            if (mirrors[i]->context == lane->context && !mirrors[i]->is_lost) {
                lose(mirrors[i], result);
            }
        }
    }
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

/* Gives the device what the host has written, before work that may use it. The host has no pages afterwards. */
static void give_back(void) {
    trap->renew();
    end_windows();
    for (size_t i = 0; i < mirror_count; i++) {
        CUresult result = arm(mirrors[i]);
        result = result != CUDA_SUCCESS ? result : send_written(mirrors[i]);
        if (result != CUDA_SUCCESS) {
            lose(mirrors[i], result);
        }
    }
    wait_for_sent();
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
    if (atomic_load(&present)) {
        uint32_t context = enter();
        give_back();
        leave(context);
    }
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

static void settle_up_to(uint64_t mark) {
    uint64_t before = atomic_load(&settled);
    while (before < mark && !atomic_compare_exchange_weak(&settled, &before, mark)) {
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

/* The pages to provide at a fault, at most `limit`: more and more while faults follow each other. */
static size_t pass_to(hws_pass_t *pass, size_t page, size_t limit) {
    size_t wanted = page != pass->next || pass->pages == 0 ? FIRST_PAGES : 2 * pass->pages;
    pass->pages = wanted < MAX_AHEAD_PAGES ? wanted : MAX_AHEAD_PAGES;
    return pass->pages < limit ? pass->pages : limit;
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

/* Provides pages that are away, for a pass. */
static CUresult provide_for(hws_mirror_t *mirror, hws_pass_t *pass, size_t page, size_t limit) {
    size_t pages = run_of(mirror, page, limit, AWAY);
    pass->next = page + pages;
    HWS_TRY(fetch(mirror, page, pages, staging));
    return provide(mirror, page, pages, staging, pass == &mirror->writes);
}

static CUresult serve_idle(hws_mirror_t *mirror, size_t page, bool is_write) {
    if (mirror->states[page] == CLEAN) {
        size_t pages = run_of(mirror, page, pass_to(&mirror->writes, page, MAX_PAGES), CLEAN);
        mirror->writes.next = page + pages;
        return allow_writes(mirror, page, pages);
    }
    hws_pass_t *pass = is_write ? &mirror->writes : &mirror->reads;
    size_t limit = pass_to(pass, page, MAX_PAGES);
    HWS_TRY(provide_for(mirror, pass, page, limit));
    pass->ahead = pass->pages - limit;
    ahead = pass->ahead == 0 ? NULL : pass;
    ahead_of = mirror;
    return CUDA_SUCCESS;
}

/* Provides pages that the pass will need next, while the program uses the ones before. */
static CUresult read_ahead(void) {
    hws_pass_t *pass = ahead;
    hws_mirror_t *mirror = ahead_of;
    ahead = NULL;
    atomic_store(&present, true);
    if (!is_idle() || pass->next >= mirror->pages || mirror->states[pass->next] != AWAY) {
        return CUDA_SUCCESS;
    }
    size_t limit = pass->ahead < MAX_PAGES ? pass->ahead : MAX_PAGES;
    HWS_TRY(provide_for(mirror, pass, pass->next, limit));
    pass->ahead -= limit;
    ahead = pass->ahead == 0 ? NULL : pass;
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
    HWS_TRY(fetch(mirror, page, pages, staging));
    for (int i = 1; i < MAX_READS; i++) {
        HWS_TRY(fetch(mirror, page, pages, second));
        if (memcmp(staging, second, pages * PAGE) == 0) {
            break;
        }
        memcpy(staging, second, pages * PAGE);
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
    hws_pass_t *pass = is_write ? &mirror->writes : &mirror->reads;
    size_t pages = run_of(mirror, page, page == pass->next ? pass_to(pass, page, MAX_SHORT_PAGES) : 1, AWAY);
    pass->next = page + pages;
    HWS_TRY(fetch_stable(mirror, page, pages));
    *window = (hws_window_t) {.mirror = mirror, .first = page, .pages = pages, .twin = window->twin};
    if (is_write) {
        begin_writes(window, staging);
    }
    return provide(mirror, page, pages, staging, is_write);
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
    hws_mirror_t *mirror = find(fault->address);
    if (mirror == NULL) {
        return false;
    }
    size_t page = (fault->address - mirror->base) / PAGE;
    if (mirror->is_lost || mirror->states[page] == DIRTY || (mirror->states[page] == CLEAN && !fault->is_write)) {
        return true; /* another thread's fault has brought it */
    }
    CUresult result = serve_page(mirror, page, fault->is_write);
    if (result == CUDA_ERROR_OPERATING_SYSTEM) {
        give_back(); /* protection divides a mapping, and a process can have 65,530: now there are few again */
        result = mirror->is_lost ? CUDA_SUCCESS : serve_page(mirror, page, fault->is_write);
    }
    if (result != CUDA_SUCCESS && !mirror->is_lost) {
        lose(mirror, result);
    }
    return true;
}

static void *service_main(void *unused) {
    (void) unused;
    hws_tls.is_background = true;
    uint64_t windows_since_ns = 0;
    bool had_windows = false, is_ahead = false;
    for (;;) {
        hws_trap_fault_t fault;
        bool came = trap->next(is_ahead ? 0 : had_windows ? SHORT_MS : -1, &fault);
        uint32_t context = enter();
        if (had_windows && now_ns() - windows_since_ns >= SHORT_MS * 1000000u) {
            end_windows();
        }
        if (came) {
            trap->resume(&fault, serve(&fault));
        } else if (ahead != NULL) {
            hws_mirror_t *mirror = ahead_of;
            CUresult result = read_ahead();
            if (result != CUDA_SUCCESS) {
                lose(mirror, result);
            }
        }
        is_ahead = ahead != NULL;
        bool have = have_windows();
        if (have && !had_windows) {
            windows_since_ns = now_ns();
        }
        had_windows = have;
        leave(context);
    }
    return NULL;
}

/* Ranges -------------------------------------------------------------------------------------------------------- */

static void *allocate_pages(size_t pages) {
    void *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Lets devices write the staging memory, if it fits the region. */
static uint8_t *allocate_staging(void) {
    hws_heap_block_t block;
    void *memory;
    const hws_shm_view_t *view = hws_shm_current();
    if (view == NULL || hws_pinned_allocate(MAX_PAGES * PAGE, &block, &memory) != CUDA_SUCCESS) {
        return allocate_pages(MAX_PAGES);
    }
    staging_offset = hws_shm_offset(view, memory);
    return memory;
}

static void open_once(void) {
    pthread_t thread;
    const hws_trap_t *found = hws_trap_userfault.open() ? &hws_trap_userfault
        : hws_trap_signal.open()                        ? &hws_trap_signal
                                                        : NULL;
    bool complete =
        found != NULL && (staging = allocate_staging()) != NULL && (second = allocate_pages(MAX_SHORT_PAGES)) != NULL;
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

/* Lock held. The device's bytes become zeros in the lane, before any page of the host arrives there. */
static CUresult insert(hws_mirror_t *mirror) {
    hws_page_lane_t *lane;
    HWS_TRY(lane_of(mirror, &lane));
    HWS_TRY(hws_call_cuMemsetD8Async(mirror->base, 0, mirror->pages * PAGE, lane->stream));
    lane->is_used = true;
    if (!make_room() || !trap->add(mirror->base, mirror->pages * PAGE)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t at = above(mirror->base);
    memmove(mirrors + at + 1, mirrors + at, (mirror_count - at) * sizeof *mirrors);
    mirrors[at] = mirror;
    mirror_count++;
    atomic_store(&present, true);
    return CUDA_SUCCESS;
}

CUresult hws_mirror_add(CUdeviceptr address, uint64_t bytes) {
    size_t pages = bytes / PAGE;
    hws_mirror_t *mirror = calloc(1, sizeof *mirror + pages);
    if (mirror == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mirror->base = address;
    mirror->pages = pages;
    mirror->context = (uint32_t) (uintptr_t) hws_context_owner();
    mirror->is_free = true;
    uint32_t context = enter();
    if (!hws_channel_watches_work()) {
        atomic_fetch_add(&issued, 1); /* earlier work was not counted and may run */
        atomic_fetch_add(&sent, 1);
        hws_channel_watch_work(&work_hooks);
    }
    CUresult result = insert(mirror);
    leave(context);
    if (result != CUDA_SUCCESS) {
        free(mirror);
    }
    return result;
}

void hws_mirror_remove(CUdeviceptr address) {
    uint32_t context = enter();
    hws_mirror_t *mirror = find(address);
    if (mirror != NULL && mirror->base == address) {
        forget(mirror);
        size_t at = above(address) - 1;
        mirror_count--;
        memmove(mirrors + at, mirrors + at + 1, (mirror_count - at) * sizeof *mirrors);
        trap->remove(mirror->base, mirror->pages * PAGE);
        free(mirror);
    }
    leave(context);
}

bool hws_mirror_overlaps(const void *bytes, uint64_t length) {
    uint64_t address = (uint64_t) (uintptr_t) bytes;
    pthread_mutex_lock(&lock);
    size_t next = above(address);
    bool overlaps = find(address) != NULL || (next < mirror_count && mirrors[next]->base - address < length);
    pthread_mutex_unlock(&lock);
    return overlaps;
}
