#include "mirror_windows.h"

#include "mirror_lanes.h"
#include "mirror_pages.h"

#include <string.h>

#define MAX_SHORT_PAGES 16u
#define SHORT_WINDOWS 4u /* an instruction may need two pages, and a thread more */
#define MAX_READS 8
#define WORD_BYTES 8u

typedef struct hws_window {
    hws_mirror_t *mirror; /* NULL: unused */
    size_t first, pages;
    bool is_dirty;
    uint8_t *twin; /* MAX_SHORT_PAGES: the device's bytes when the pages became writable */
} hws_window_t;

static hws_window_t windows[SHORT_WINDOWS];
static _Atomic bool exist; /* true from before a window's bytes are read until all are dropped */
static size_t oldest_window;
static uint8_t *second; /* MAX_SHORT_PAGES: a second read */

bool hws_windows_allocate(void) {
    bool complete = (second = hws_mirror_allocate_pages(MAX_SHORT_PAGES)) != NULL;
    for (size_t i = 0; i < SHORT_WINDOWS && complete; i++) {
        complete = (windows[i].twin = hws_mirror_allocate_pages(MAX_SHORT_PAGES)) != NULL;
    }
    return complete;
}

void hws_windows_forget(const hws_mirror_t *mirror) {
    for (size_t i = 0; i < SHORT_WINDOWS; i++) {
        windows[i].mirror = windows[i].mirror == mirror ? NULL : windows[i].mirror;
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
    uint64_t address = hws_mirror_address(window->mirror, window->first);
    const uint8_t *bytes = hws_mirrors.trap->bytes_at(address), *twin = window->twin;
    size_t length = window->pages * HWS_PAGE;
    for (int words = 0; words <= 1; words++) {
        for (size_t at = next_byte(bytes, twin, 0, length, true); at < length;) {
            size_t end = end_of_changes(bytes, twin, at, length);
            bool is_word = end - at <= WORD_BYTES;
            while (at < end) {
                size_t run_end = next_byte(bytes, twin, at, end, false);
                if (is_word == (words == 1)) {
                    HWS_TRY(hws_lanes_send(window->mirror, address + at, bytes + at, run_end - at));
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
    if (!hws_mirrors.trap->protect(hws_mirror_address(window->mirror, window->first), window->pages * HWS_PAGE)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    hws_pages_set_states(window->mirror, window->first, window->pages, HWS_PAGE_CLEAN);
    return send_changes(window);
}

/* Sends what the host has written while work ran. The host loses memory whose bytes cannot be sent. */
static void settle_windows(void) {
    for (size_t i = 0; i < SHORT_WINDOWS; i++) {
        hws_window_t *window = &windows[i];
        CUresult result = window->mirror == NULL || !window->is_dirty ? CUDA_SUCCESS : send_window(window);
        if (result != CUDA_SUCCESS) {
            hws_pages_lose(window->mirror, result);
        }
    }
    hws_lanes_wait();
}

static void drop_window(hws_window_t *window) {
    if (window->mirror != NULL) {
        hws_pages_drop(window->mirror, window->first, window->pages);
        window->mirror = NULL;
    }
}

void hws_windows_end(void) {
    settle_windows();
    for (size_t i = 0; i < SHORT_WINDOWS; i++) {
        drop_window(&windows[i]);
    }
    atomic_store(&exist, false);
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
    HWS_TRY(hws_lanes_fetch(mirror, page, pages, &hws_mirrors.staging));
    for (int i = 1; i < MAX_READS; i++) {
        HWS_TRY(hws_lanes_fetch(mirror, page, pages, &again));
        if (memcmp(hws_mirrors.staging.bytes, second, pages * HWS_PAGE) == 0) {
            break;
        }
        memcpy(hws_mirrors.staging.bytes, second, pages * HWS_PAGE);
    }
    return CUDA_SUCCESS;
}

static void begin_writes(hws_window_t *window, const void *bytes) {
    memcpy(window->twin, bytes, window->pages * HWS_PAGE);
    window->is_dirty = true;
}

CUresult hws_windows_serve(hws_mirror_t *mirror, size_t page, bool is_write) {
    static struct {
        const hws_mirror_t *mirror;
        size_t first, pages;
    } dropped[SHORT_WINDOWS]; /* by the last fault */
    hws_window_t *window = window_at(mirror, page);
    settle_windows(); /* the device gets one window's bytes before the host writes another */
    if (mirror->states[page] == HWS_PAGE_CLEAN && window != NULL) {
        begin_writes(window, hws_mirrors.trap->bytes_at(hws_mirror_address(mirror, window->first)));
        return hws_pages_allow_writes(mirror, window->first, window->pages);
    }
    if (mirror->states[page] != HWS_PAGE_AWAY) { /* from before the work began */
        hws_pages_drop(mirror, page, 1);
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
    size_t pages = hws_pages_run(mirror, page, wanted, HWS_PAGE_AWAY);
    pass->next = pass->until = page + pages;
    atomic_store(&exist, true);
    HWS_TRY(fetch_stable(mirror, page, pages));
    *window = (hws_window_t) {.mirror = mirror, .first = page, .pages = pages, .twin = window->twin};
    if (is_write) {
        begin_writes(window, hws_mirrors.staging.bytes);
    }
    return hws_pages_provide(mirror, page, pages, hws_mirrors.staging.bytes, is_write);
}

bool hws_windows_exist(void) {
    return atomic_load(&exist);
}
