/* Mirrors of managed variables. A page may hold several, and other bytes that never travel. */
#include "mirror.h"
#include "mirror_pages.h"
#include "mirror_shuttle.h"
#include "mirror_state.h"
#include "mirror_work.h"

#include "context.h"

#include "hws_addresses.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Of a process; the worker chooses the addresses. */
#define MIN_ADDRESS (1ull << 20)
#define MAX_ADDRESS (1ull << 47)

static uint64_t first_page(uint64_t address) {
    return address / HWS_PAGE * HWS_PAGE;
}

static uint64_t end_page(uint64_t address, uint64_t bytes) {
    return first_page(address + bytes + HWS_PAGE - 1);
}

/* Adds a mirror of pages that the process does not use. All of them are away. */
static CUresult add_pages(uint64_t from, uint64_t to) {
    if (!hws_addresses_reserve(from, to - from)) {
        return errno == EEXIST ? CUDA_ERROR_ALREADY_MAPPED : CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_mirror_t *mirror = hws_mirror_new(from, (to - from) / HWS_PAGE);
    CUresult result = mirror == NULL ? CUDA_ERROR_OUT_OF_MEMORY : hws_mirror_insert(mirror, hws_mirrors.trap->add);
    if (result != CUDA_SUCCESS) {
        free(mirror);
        munmap((void *) (uintptr_t) from, to - from);
        return result;
    }
    mirror->has_variables = true;
    HWS_TRY(hws_pages_arm(mirror));
    hws_pages_drop(mirror, 0, mirror->pages);
    return CUDA_SUCCESS;
}

/* Adds the bytes of a variable that lie in the mirror of its first page, or in a new one. Returns their end. */
static CUresult add_part(hws_span_t variable, uint64_t *end_p) {
    hws_mirror_t *mirror = hws_mirror_find(variable.address);
    if (mirror == NULL) {
        size_t next = hws_mirror_above(variable.address);
        uint64_t end = end_page(variable.address, variable.bytes);
        end = next < hws_mirrors.count && hws_mirrors.items[next]->base < end ? hws_mirrors.items[next]->base : end;
        HWS_TRY(add_pages(first_page(variable.address), end));
        mirror = hws_mirror_find(variable.address);
    }
    if (!mirror->has_variables || mirror->is_lost) {
        return CUDA_ERROR_ALREADY_MAPPED;
    }
    uint64_t end = mirror->base + mirror->pages * HWS_PAGE, bytes = end - variable.address;
    variable.bytes = variable.bytes < bytes ? variable.bytes : bytes;
    *end_p = variable.address + variable.bytes;
    return hws_spans_add(&mirror->spans, variable) ? CUDA_SUCCESS : CUDA_ERROR_ALREADY_MAPPED;
}

static CUresult add_variable(hws_span_t variable) {
    hws_mirrors.changes++;
    for (uint64_t at = variable.address, end = at + variable.bytes; at < end;) {
        HWS_TRY(add_part((hws_span_t) {.address = at, .bytes = end - at, .context = variable.context}, &at));
    }
    return CUDA_SUCCESS;
}

/* Removes the spans in a range, and the mirrors that have none any more. */
static void remove_variable(uint64_t address, uint64_t bytes) {
    for (size_t i = hws_mirror_above(end_page(address, bytes) - 1); i > 0;) {
        hws_mirror_t *mirror = hws_mirrors.items[--i];
        if (mirror->base + mirror->pages * HWS_PAGE <= address) {
            return;
        }
        hws_shuttle_await(mirror);
        hws_mirrors.changes++;
        hws_spans_remove(&mirror->spans, address, bytes);
        if (mirror->has_variables && mirror->spans.count == 0) {
            void *base = (void *) (uintptr_t) mirror->base;
            size_t length = mirror->pages * HWS_PAGE;
            hws_mirror_end(mirror);
            munmap(base, length);
        }
    }
}

CUresult hws_mirror_add_variable(CUdeviceptr address, uint64_t bytes) {
    if (bytes == 0 || address < MIN_ADDRESS || address >= MAX_ADDRESS || bytes > MAX_ADDRESS - HWS_PAGE - address) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const hws_span_t variable = {address, bytes, (uint32_t) (uintptr_t) hws_context_owner()};
    uint32_t context = hws_mirror_enter();
    hws_work_watch();
    hws_pages_give_back(NULL); /* the host has no page that the variable shares with others */
    CUresult result = add_variable(variable);
    if (result != CUDA_SUCCESS) {
        remove_variable(address, bytes);
    }
    hws_mirror_leave(context);
    return result;
}

void hws_mirror_remove_variable(CUdeviceptr address, uint64_t bytes) {
    uint32_t context = hws_mirror_enter();
    remove_variable(address, bytes);
    hws_mirror_leave(context);
}
