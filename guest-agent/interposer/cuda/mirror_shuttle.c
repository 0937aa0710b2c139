#include "mirror_shuttle.h"

#include "context.h"
#include "copy.h"
#include "mirror_lanes.h"
#include "mirror_pages.h"
#include "mirror_turns.h"
#include "mirror_work.h"

#include "hws_channel.h"
#include "hws_cuda_calls.h"

#include <string.h>

/* Pages by address, at places in memory of the library. */
typedef struct hws_load {
    size_t count;
    uint64_t addresses[HWS_TURN_PAGES];
} hws_load_t;

static _Atomic uint64_t waits;
static _Atomic bool has_pages;
static hws_turns_t turns;
static hws_staging_t bytes; /* HWS_TURN_PAGES */
static uint8_t *twins;      /* HWS_TURN_PAGES: the device's bytes of the pages that the host has */
static hws_load_t held;     /* that the host has; their state is HWS_PAGE_HELD */

/*
 * Copies to `bytes` that have not been waited for. After a wait that failed, the device may still write there, until a
 * later wait has covered them.
 */
static struct {
    bool is_begun, has_failed;
    hws_load_t load;
    uint64_t changes; /* of the mirrors, before the copies */
    uint64_t mark;    /* all work that came before the copies */
    uint32_t context;
    CUstream stream;
} flight;

bool hws_shuttle_allocate(void) {
    return hws_mirror_allocate_staging(HWS_TURN_PAGES, &bytes)
        && (twins = hws_mirror_allocate_pages(HWS_TURN_PAGES)) != NULL;
}

void hws_shuttle_note_wait(void) {
    atomic_fetch_add(&waits, 1);
}

bool hws_shuttle_has_pages(void) {
    return atomic_load(&has_pages);
}

static hws_turns_t *present_turns(void) {
    turns.turn = atomic_load(&waits);
    return &turns;
}

static size_t page_of(const hws_mirror_t *mirror, uint64_t address) {
    return (address - mirror->base) / HWS_PAGE;
}

size_t hws_shuttle_note_fault(const hws_mirror_t *mirror, size_t page, size_t limit, bool is_lone) {
    uint64_t address = hws_mirror_address(mirror, page);
    bool is_member = hws_turns_note_fault(present_turns(), address, is_lone);
    atomic_store(&has_pages, turns.count != 0);
    return is_member ? 1 : hws_turns_limit(&turns, address, limit, HWS_PAGE);
}

/* The mirror of a page that the host can be given; else NULL. */
static hws_mirror_t *mirror_of(uint64_t address) {
    hws_mirror_t *mirror = hws_mirror_find(address);
    return mirror != NULL && !mirror->is_free && !mirror->is_lost
            && mirror->states[page_of(mirror, address)] == HWS_PAGE_AWAY
        ? mirror
        : NULL;
}

/* Whether all bytes of a page travel in this context. */
static bool travels_in(const hws_mirror_t *mirror, uint64_t address, uint32_t context) {
    hws_span_t part;
    for (size_t at = 0; hws_lanes_next_span(mirror, &at, address, HWS_PAGE, &part);) {
        if (part.context != context) {
            return false;
        }
    }
    return true;
}

/* The pages that this wait is to bring, of this context. */
static hws_load_t choose(uint32_t context) {
    hws_load_t chosen, load = {0};
    chosen.count = hws_turns_choose(present_turns(), chosen.addresses);
    atomic_store(&has_pages, turns.count != 0);
    for (size_t i = 0; i < chosen.count; i++) {
        const hws_mirror_t *mirror = mirror_of(chosen.addresses[i]);
        if (mirror != NULL && travels_in(mirror, chosen.addresses[i], context)) {
            load.addresses[load.count++] = chosen.addresses[i];
        }
    }
    return load;
}

/* Pages from this one on that are neighbours, in one mirror. */
static size_t run_of(const hws_load_t *load, size_t at) {
    const hws_mirror_t *mirror = hws_mirror_find(load->addresses[at]);
    size_t count = 1;
    while (at + count < load->count && load->addresses[at + count] == load->addresses[at] + count * HWS_PAGE
           && load->addresses[at + count] - mirror->base < mirror->pages * HWS_PAGE) {
        count++;
    }
    return count;
}

static CUresult issue(uint64_t address, uint64_t length, uint64_t offset, CUstream stream) {
    if (bytes.region_offset != 0) {
        return hws_call_hwsCopyDtoHShared(address, bytes.region_offset + offset, length, stream, 0);
    }
    return hws_copy_begin_fetch((uint8_t *) bytes.bytes + offset, address, length, stream);
}

/* Issues the copies of neighbours, whose place in `bytes` is `at`. */
static CUresult issue_run(uint64_t address, size_t pages, size_t at, CUstream stream) {
    const hws_mirror_t *mirror = hws_mirror_find(address);
    hws_span_t part;
    if (mirror->has_variables) {
        memset((uint8_t *) bytes.bytes + at * HWS_PAGE, 0, pages * HWS_PAGE);
    }
    for (size_t span = 0; hws_lanes_next_span(mirror, &span, address, pages * HWS_PAGE, &part);) {
        HWS_TRY(issue(part.address, part.bytes, at * HWS_PAGE + (part.address - address), stream));
    }
    return CUDA_SUCCESS;
}

static void begin_flight(hws_load_t load, uint32_t context, CUstream stream) {
    flight.is_begun = true;
    flight.load = load;
    flight.stream = stream;
    flight.changes = hws_mirrors.changes;
    flight.context = hws_tls.context = context;
    for (size_t at = 0, pages; at < flight.load.count; at += pages) {
        pages = run_of(&load, at);
        if (issue_run(load.addresses[at], pages, at, stream) != CUDA_SUCCESS) {
            flight.load.count = at; /* faults bring the others */
        }
    }
}

bool hws_shuttle_depart(CUstream stream, uint64_t mark, bool covers_context) {
    uint32_t context = (uint32_t) (uintptr_t) hws_context_owner();
    if (flight.has_failed && flight.context == context && (covers_context || flight.stream == stream)) {
        flight.load.count = 0;
        flight.has_failed = false; /* this wait covers the old copies */
        return true;
    }
    if (flight.is_begun || held.count != 0 || !hws_lanes_can_order(context)) {
        return false;
    }
    hws_load_t load = choose(context);
    if (load.count == 0) {
        return false;
    }
    hws_tls.context = context;
    hws_lanes_settle(&stream); /* bytes that were sent arrive before the copies */
    flight.mark = mark;
    begin_flight(load, context, stream);
    return true;
}

/* Gives neighbours to the host. */
static void provide(size_t at, size_t pages) {
    hws_mirror_t *mirror = hws_mirror_find(flight.load.addresses[at]);
    uint64_t address = flight.load.addresses[at];
    if (!hws_mirrors.trap->fill(address, (uint8_t *) bytes.bytes + at * HWS_PAGE, pages * HWS_PAGE, true)) {
        hws_pages_drop(mirror, page_of(mirror, address), pages); /* some may have been filled */
        return;
    }
    memcpy(twins + held.count * HWS_PAGE, (uint8_t *) bytes.bytes + at * HWS_PAGE, pages * HWS_PAGE);
    memset(mirror->states + page_of(mirror, address), HWS_PAGE_HELD, pages);
    for (size_t i = 0; i < pages; i++) {
        held.addresses[held.count++] = address + i * HWS_PAGE;
    }
}

/* Gives the pages of the flight to the host, as far as faults have not brought them. */
static void provide_all(void) {
    for (size_t at = 0; at < flight.load.count;) {
        size_t pages = mirror_of(flight.load.addresses[at]) == NULL ? 0 : run_of(&flight.load, at);
        for (size_t i = 1; i < pages; i++) {
            pages = mirror_of(flight.load.addresses[at + i]) == NULL ? i : pages;
        }
        if (pages != 0) {
            provide(at, pages);
        }
        at += pages == 0 ? 1 : pages;
    }
}

/* Whether no work can run, as far as it is known. Work that begins later waits for the lock. */
static bool is_idle(void) {
    atomic_store(&hws_mirrors.present, true);
    return hws_work_is_known_idle();
}

void hws_shuttle_await_bytes(void) {
    if (bytes.region_offset == 0) {
        hws_channel_wait_for_target(bytes.bytes, HWS_TURN_PAGES * HWS_PAGE);
    }
}

void hws_shuttle_arrive(void) {
    /* is_idle() first: from then on new work waits for the lock, and the other numbers no longer change. */
    if (held.count == 0 && is_idle() && flight.changes == hws_mirrors.changes
        && atomic_load(&hws_work.issued) == flight.mark) {
        provide_all();
    }
    flight.is_begun = false;
}

void hws_shuttle_fail(void) {
    flight.has_failed = true;
}

void hws_shuttle_fetch(void) {
    uint32_t context = (uint32_t) (uintptr_t) hws_context_owner();
    hws_page_lane_t *lane;
    if (turns.count == 0 || flight.is_begun || held.count != 0 || !hws_work_is_known_idle()) {
        return;
    }
    hws_load_t load = choose(context);
    if (load.count == 0 || !is_idle() || hws_lane_of(context, &lane) != CUDA_SUCCESS) {
        return;
    }
    begin_flight(load, context, hws_lane_stream(lane));
    if (hws_call_cuStreamSynchronize(hws_lane_stream(lane)) != CUDA_SUCCESS) {
        hws_shuttle_fail();
        return;
    }
    hws_shuttle_await_bytes();
    provide_all();
    flight.is_begun = false;
}

/* Sends the bytes of a page that the host has changed. */
static CUresult send_changes(const hws_mirror_t *mirror, uint64_t address, const uint8_t *twin) {
    const uint8_t *now = hws_mirrors.trap->bytes_at(address);
    size_t first = 0, end = HWS_PAGE;
    if (memcmp(now, twin, HWS_PAGE) == 0) {
        return CUDA_SUCCESS;
    }
    while (now[first] == twin[first]) {
        first++;
    }
    while (now[end - 1] == twin[end - 1]) {
        end--;
    }
    hws_turns_note_change(&turns, address);
    return hws_lanes_send(mirror, address + first, now + first, end - first);
}

static CUresult send_run(const hws_mirror_t *mirror, size_t at, size_t pages) {
    uint64_t address = held.addresses[at];
    if (!hws_mirrors.trap->protect(address, pages * HWS_PAGE)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    for (size_t i = 0; i < pages; i++) {
        HWS_TRY(send_changes(mirror, address + i * HWS_PAGE, twins + (at + i) * HWS_PAGE));
    }
    return CUDA_SUCCESS;
}

void hws_shuttle_send(void) {
    for (size_t at = 0; at < held.count;) {
        hws_mirror_t *mirror = hws_mirror_find(held.addresses[at]);
        size_t pages = run_of(&held, at);
        CUresult result = send_run(mirror, at, pages);
        if (result == CUDA_SUCCESS) {
            at += pages;
        } else {
            hws_pages_lose(mirror, result); /* and with it these pages */
        }
    }
}

void hws_shuttle_drop(void) {
    for (size_t at = 0, pages; at < held.count; at += pages) {
        hws_mirror_t *mirror = hws_mirror_find(held.addresses[at]);
        pages = run_of(&held, at);
        hws_pages_drop(mirror, page_of(mirror, held.addresses[at]), pages);
    }
    held.count = 0;
}

/* The copies of a flight go on. Their bytes are no longer wanted: `changes` has grown. */
void hws_shuttle_forget(const hws_mirror_t *mirror) {
    size_t kept = 0;
    hws_turns_forget(&turns, mirror->base, mirror->pages * HWS_PAGE);
    atomic_store(&has_pages, turns.count != 0);
    for (size_t i = 0; i < held.count; i++) {
        if (held.addresses[i] - mirror->base >= mirror->pages * HWS_PAGE) {
            memmove(twins + kept * HWS_PAGE, twins + i * HWS_PAGE, HWS_PAGE);
            held.addresses[kept++] = held.addresses[i];
        }
    }
    held.count = kept;
}

void hws_shuttle_await(const hws_mirror_t *mirror) {
    for (size_t i = 0; i < flight.load.count && flight.is_begun; i++) {
        if (flight.load.addresses[i] - mirror->base < mirror->pages * HWS_PAGE) {
            hws_tls.context = flight.context;
            hws_call_cuCtxSynchronize();
            return;
        }
    }
}
