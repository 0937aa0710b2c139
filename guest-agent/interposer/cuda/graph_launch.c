/* Launches of executable graphs: one record each. */
#include "capture.h"
#include "graph_exec.h"

#include "hws_cuda_calls.h"

/* Withdraws the announcements of the first `count` calls. */
static void unexpect(const hws_exec_t *exec, size_t count) {
    while (count-- > 0) {
        if (!exec->calls[count].disabled) {
            hws_graph_call_unexpect(exec->calls[count].call);
        }
    }
}

static CUresult expect(const hws_exec_t *exec) {
    for (size_t i = 0; i < exec->call_count; i++) {
        CUresult result = exec->calls[i].disabled ? CUDA_SUCCESS : hws_graph_call_expect(exec->calls[i].call);
        if (result != CUDA_SUCCESS) {
            unexpect(exec, i);
            return result;
        }
    }
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
    HWS_ENTER_CONTEXT();
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_CAPTURES(hStream);
    hws_exec_t *exec = hws_exec_get(hGraphExec);
    HWS_REQUIRE(exec != NULL);
    if (exec->effects.held_count + exec->effects.freed_count != 0) {
        bool frees_itself = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
        HWS_TRY(hws_graph_effects_launch(&exec->effects, frees_itself));
    }
    HWS_TRY(expect(exec));
    CUresult result = hws_call_cuGraphLaunch(hws_exec_handle(exec), hStream);
    if (result != CUDA_SUCCESS) {
        unexpect(exec, exec->call_count);
        return result;
    }
    exec->last_stream = hStream;
    exec->launched = true;
    return CUDA_SUCCESS;
}

HWS_EXPORT CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
    HWS_ENTER_CONTEXT();
    const hws_exec_t *exec = hws_exec_get(hGraphExec);
    HWS_REQUIRE(exec != NULL);
    HWS_CHECK_HANDLE(HWS_KIND_STREAM, hStream);
    HWS_REFUSE_CAPTURE(hStream);
    return hws_call_cuGraphUpload(hws_exec_handle(exec), hStream);
}
