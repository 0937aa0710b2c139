#include "mirror_pages.h"

#include "mirror_lanes.h"
#include "mirror_shuttle.h"
#include "mirror_windows.h"

#include "hws_channel.h"
#include "hws_log.h"

#include <string.h>

void hws_pages_set_states(hws_mirror_t *mirror, size_t page, size_t pages, hws_page_state_t state) {
    memset(mirror->states + page, state, pages);
    if (state != HWS_PAGE_AWAY) {
        mirror->first = mirror->first == mirror->end || page < mirror->first ? page : mirror->first;
        mirror->end = page + pages > mirror->end ? page + pages : mirror->end;
    }
}

size_t hws_pages_run(const hws_mirror_t *mirror, size_t page, size_t limit, hws_page_state_t state) {
    size_t count = 0;
    limit = limit < mirror->pages - page ? limit : mirror->pages - page;
    while (count < limit && mirror->states[page + count] == state) {
        count++;
    }
    return count;
}

void hws_pages_drop(hws_mirror_t *mirror, size_t page, size_t pages) {
    hws_mirrors.trap->drop(hws_mirror_address(mirror, page), pages * HWS_PAGE);
    hws_pages_set_states(mirror, page, pages, HWS_PAGE_AWAY);
}

void hws_pages_forget(hws_mirror_t *mirror) {
    hws_mirrors.changes++;
    hws_windows_forget(mirror);
    hws_shuttle_forget(mirror);
    hws_ahead_stop(mirror);
    memset(mirror->states, HWS_PAGE_AWAY, mirror->pages);
    mirror->first = mirror->end = 0;
}

void hws_pages_lose(hws_mirror_t *mirror, CUresult cause) {
    static bool logged;
    if (!logged && hws_channel_status() != HWS_STATUS_DEINITIALIZED) {
        logged = true;
        hws_log(HWS_ERROR,
                "memory of the host and the GPU is lost after an error of its context, and the host sees zeros: "
                "address=0x%llx bytes=%llu error=%d",
                (unsigned long long) mirror->base, (unsigned long long) mirror->pages * HWS_PAGE, cause);
    }
    hws_pages_forget(mirror);
    mirror->is_lost = true;
    hws_mirrors.trap->release(mirror->base, mirror->pages * HWS_PAGE);
}

CUresult hws_pages_arm(hws_mirror_t *mirror) {
    if (!mirror->is_free || mirror->is_lost) {
        return CUDA_SUCCESS;
    }
    if (!hws_mirrors.trap->arm(mirror->base, mirror->pages * HWS_PAGE)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    mirror->is_free = false;
    hws_mirrors.trap->find_present(mirror->base, mirror->pages, mirror->states);
    for (size_t page = 0; page < mirror->pages; page++) {
        mirror->states[page] = mirror->states[page] != 0 ? HWS_PAGE_DIRTY : HWS_PAGE_AWAY;
    }
    mirror->first = 0;
    mirror->end = mirror->pages; /* all of them must be dropped */
    return CUDA_SUCCESS;
}

/* Sends the pages that the host has written. They stay, protected. */
static CUresult send_written(hws_mirror_t *mirror) {
    for (size_t page = mirror->first; page < mirror->end;) {
        size_t pages = hws_pages_run(mirror, page, mirror->end - page, HWS_PAGE_DIRTY);
        if (pages != 0) {
            uint64_t address = hws_mirror_address(mirror, page);
            if (!hws_mirrors.trap->protect(address, pages * HWS_PAGE)) {
                return CUDA_ERROR_OPERATING_SYSTEM;
            }
            HWS_TRY(hws_lanes_send(mirror, address, hws_mirrors.trap->bytes_at(address), pages * HWS_PAGE));
            hws_pages_set_states(mirror, page, pages, HWS_PAGE_CLEAN);
        }
        page += pages + 1;
    }
    return CUDA_SUCCESS;
}

CUresult hws_pages_allow_writes(hws_mirror_t *mirror, size_t page, size_t pages) {
    if (!hws_mirrors.trap->unprotect(hws_mirror_address(mirror, page), pages * HWS_PAGE)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    hws_pages_set_states(mirror, page, pages, HWS_PAGE_DIRTY);
    return CUDA_SUCCESS;
}

CUresult hws_pages_provide(hws_mirror_t *mirror, size_t page, size_t pages, const void *bytes, bool is_writable) {
    if (!hws_mirrors.trap->fill(hws_mirror_address(mirror, page), bytes, pages * HWS_PAGE, is_writable)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    hws_pages_set_states(mirror, page, pages, is_writable ? HWS_PAGE_DIRTY : HWS_PAGE_CLEAN);
    return CUDA_SUCCESS;
}

void hws_pages_give_back(const CUstream *stream) {
    hws_ahead_stop(NULL);
    while (hws_mirrors.pieces != 0) {
        pthread_cond_wait(&hws_mirrors.arrived, &hws_mirrors.lock);
    }
    hws_mirrors.trap->renew();
    hws_windows_end();
    hws_shuttle_send();
    for (size_t i = 0; i < hws_mirrors.count; i++) {
        CUresult result = hws_pages_arm(hws_mirrors.items[i]);
        result = result != CUDA_SUCCESS ? result : send_written(hws_mirrors.items[i]);
        if (result != CUDA_SUCCESS) {
            hws_pages_lose(hws_mirrors.items[i], result);
        }
    }
    hws_lanes_settle(stream);
    hws_shuttle_drop();
    for (size_t i = 0; i < hws_mirrors.count; i++) {
        hws_mirror_t *mirror = hws_mirrors.items[i];
        if (mirror->end > mirror->first) {
            hws_pages_drop(mirror, mirror->first, mirror->end - mirror->first);
            mirror->first = mirror->end = 0;
        }
    }
    atomic_store(&hws_mirrors.present, false);
}
