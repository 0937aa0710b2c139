/* Contexts in the guest. Each thread has its own current context, which travels in each record's header. */
#ifndef HWS_CONTEXT_H
#define HWS_CONTEXT_H

#include "hws_driver.h"
#include "progress.h"

typedef struct hws_context {
    CUdevice device;
    unsigned flags;
    bool primary;
    CUcontext owner;  /* of a green context: the primary context, which owns what is created here; else NULL */
    CUgreenCtx green; /* NULL for other contexts */
    unsigned long long unique;
    hws_context_progress_t progress;
} hws_context_t;

/* The data of a valid context; NULL for another handle. */
static inline hws_context_t *hws_context_get(CUcontext context) {
    return hws_handle_data(HWS_KIND_CONTEXT, (uint64_t) (uintptr_t) context);
}

/* The calling thread's current context, NULL for none. */
CUcontext hws_context_current(void);

/* Replaces the top of the calling thread's stack; NULL removes it. */
CUresult hws_context_set_current(CUcontext context);

/* The context that owns what the thread creates: the current one, or the primary context of a green one. */
CUcontext hws_context_owner(void);

/* Requests a context at the worker under this handle. `data` is the caller's. */
typedef CUresult hws_context_maker_t(CUcontext context, const void *data);

/* Makes a context with these values; it gets a number of its own. */
CUresult hws_context_new(const hws_context_t *values, hws_context_maker_t *make, const void *data,
                         CUcontext *context_p);

/* Creates a context of a device. */
CUresult hws_context_make(CUdevice device, unsigned flags, bool primary, CUcontext *context_p);

/* Ends a context of hws_context_make() and removes everything that it held. */
CUresult hws_context_end(CUcontext context);

/* Whether the process has more than one context. */
bool hws_context_has_several(void);

/*
 * Waits for the work of all contexts if there are several. The driver does not order work of different contexts by the
 * slabs of the arena that it uses. Returns an error when the session is lost.
 */
CUresult hws_context_wait_for_all(void);

/* Waits until a context has no work, as cuCtxSynchronize does. Costs no round trip where that is known. */
CUresult hws_context_wait(CUcontext context);

/* The device of the calling thread's current context; HWS_ENTER_CONTEXT() must have passed. */
CUresult hws_context_device(CUdevice *device_p);

/* Whether CUDA defines these flags of a primary context. */
bool hws_context_flags_valid(unsigned flags);

#endif
