/* Contexts as the guest keeps them: which is current is a thread's matter, and travels in each record's header. */
#ifndef HWS_CONTEXT_H
#define HWS_CONTEXT_H

#include "hws_driver.h"

typedef struct hws_context {
    CUdevice device;
    unsigned flags;
    bool primary;
    unsigned long long unique;
} hws_context_t;

/* What is kept about a valid context; NULL for another handle. */
static inline hws_context_t *hws_context_get(CUcontext context) {
    return hws_handle_data(HWS_KIND_CONTEXT, (uint64_t) (uintptr_t) context);
}

/* The calling thread's current context, NULL for none. */
CUcontext hws_context_current(void);

/* Replaces the top of the calling thread's stack; NULL takes it off. */
CUresult hws_context_set_current(CUcontext context);

/* Makes a context at the worker. */
CUresult hws_context_make(CUdevice device, unsigned flags, bool primary, CUcontext *context_p);

/* Ends one that hws_context_make() made, and forgets what it held. */
CUresult hws_context_end(CUcontext context);

/* The device of the calling thread's current context; HWS_ENTER_CONTEXT() must have passed. */
CUresult hws_context_device(CUdevice *device_p);

/* Whether the primary context's flags are ones that CUDA knows. */
bool hws_context_flags_valid(unsigned flags);

#endif
