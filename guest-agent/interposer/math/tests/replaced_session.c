#include "replaced_session.h"

#include "hws_test.h"

#include <stdlib.h>
#include <string.h>

session_t session = {.has_context = true, .context = 7};
_Thread_local uint64_t hws_math_stream;
_Thread_local hws_tls_t hws_tls;
hws_stream_watcher_t *_Atomic hws_stream_watcher;
static void *attached[SESSION_HANDLES + 1];

CUresult cuInit(unsigned int Flags) {
    (void) Flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *pctx) {
    *pctx = (CUcontext) session.context;
    return CUDA_SUCCESS;
}

bool hws_math_need_context(void) {
    return session.has_context;
}

uint64_t session_handle(int number) {
    return ((uint64_t) session.kind << 40) + (uint64_t) number;
}

/* The number of a handle; 0 for none of the session's. */
static uint64_t number_of(hws_kind_t kind, uint64_t handle) {
    uint64_t number = handle - session_handle(0);
    return kind == session.kind && number <= (uint64_t) session.made ? number : 0;
}

static uint64_t handle_new(hws_kind_t kind) {
    HWS_CHECK(kind == session.kind && session.made < SESSION_HANDLES);
    return session_handle(++session.made);
}

static void handle_attach(hws_kind_t kind, uint64_t handle, void *data) {
    HWS_CHECK(number_of(kind, handle) != 0);
    attached[number_of(kind, handle)] = data;
}

static void *handle_data(hws_kind_t kind, uint64_t handle) {
    return attached[number_of(kind, handle)];
}

void hws_handle_drop(hws_kind_t kind, uint64_t handle) {
    HWS_CHECK(number_of(kind, handle) != 0);
    free(attached[number_of(kind, handle)]);
    attached[number_of(kind, handle)] = NULL;
    session.dropped++;
}

void session_close(void) {
    for (int i = 1; i <= session.made; i++) {
        free(attached[i]);
    }
}

static CUresult may_issue(CUstream stream) {
    return stream == (CUstream) (uintptr_t) SESSION_INVALIDATED ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

static CUresult unsupported(const char *name) {
    HWS_CHECK(name[0] != '\0');
    session.unsupported++;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static bool captures(uint64_t stream) {
    return session.capturing != 0 && stream == session.capturing;
}

static void begin_use(uint64_t stream, uint64_t object) {
    HWS_CHECK(captures(stream));
    session.in_use += object;
}

static void end_use(uint64_t stream, uint64_t object) {
    HWS_CHECK(captures(stream) && session.in_use >= object);
    session.in_use -= object;
}

static const hws_service_t service = {.gate = &session.gate,
                                      .handle_new = handle_new,
                                      .handle_attach = handle_attach,
                                      .handle_data = handle_data,
                                      .handle_drop = hws_handle_drop,
                                      .may_issue = may_issue,
                                      .unsupported = unsupported,
                                      .captures = captures,
                                      .begin_use = begin_use,
                                      .end_use = end_use};

const hws_service_t *hws_math_service(void) {
    return &service;
}

int hws_channel_status(void) {
    return 0;
}

int hws_channel_fail(int status, const char *format, ...) {
    (void) format;
    return status;
}

void session_keep(uint32_t opcode, const void *payload, uint32_t payload_bytes) {
    HWS_CHECK(payload_bytes <= sizeof session.last);
    memset(session.last, 0, sizeof session.last);
    memcpy(session.last, payload, payload_bytes);
    session.last_bytes = payload_bytes;
    session.last_opcode = opcode;
    session.records++;
}
