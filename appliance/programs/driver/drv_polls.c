/* A host function waits until the program's thread has made many calls that do not wait for it: queries, getters, short
 * copies and launches in another stream. However many there are, all of them must be answered meanwhile. */
#include "check_driver.h"

#include <stdatomic.h>

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags);
CUresult cuStreamGetPriority(CUstream hStream, int *priority);

#define CALLS 3000 /* more than a stream's queue has entries */
#define SHORT_LIVED 1200

static CUdeviceptr value;
static CUstream held, other;
static CUevent event;
static CUfunction add;
static int *pinned;
static atomic_int enough;

static void wait_for_calls(void *data) {
    (void) data;
    while (!enough) {
        usleep(500);
    }
}

static void query_stream(void) {
    CU_IS(CUDA_ERROR_NOT_READY, cuStreamQuery(held));
}

static void query_event(void) {
    CU_IS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
}

static void get(void) {
    size_t free_bytes, total;
    unsigned int flags;
    int priority;
    CU_OK(cuMemGetInfo(&free_bytes, &total));
    CU_OK(cuStreamGetFlags(held, &flags));
    CU_OK(cuStreamGetPriority(held, &priority));
}

static void copy_and_wait(void) {
    CU_OK(cuMemcpyHtoDAsync(value, pinned, 4, other));
    CU_OK(cuMemcpyDtoHAsync(pinned + 1, value, 4, other));
    CU_OK(cuStreamSynchronize(other));
    check_equal("copied", *pinned, pinned[1]);
    *pinned += 1;
}

static void launch_and_query(void) {
    int one = 1;
    CHECK_LAUNCH(add, 1, 1, 0, other, &value, &one, &one);
    CUresult result = cuStreamQuery(other);
    if (result != CUDA_SUCCESS) {
        CU_IS(CUDA_ERROR_NOT_READY, result);
    }
}

static void use_new_stream(void) {
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuMemcpyHtoDAsync(value, pinned, 4, stream));
    CU_OK(cuStreamDestroy(stream));
}

/* Makes a call many times while a host function waits for them. */
static void poll_with(void (*call)(void), int calls) {
    enough = 0;
    CU_OK(cuLaunchHostFunc(held, wait_for_calls, NULL));
    CU_OK(cuEventRecord(event, held));
    for (int i = 0; i < calls; i++) {
        call();
    }
    CU_OK(cuStreamSynchronize(other));
    CU_IS(CUDA_ERROR_NOT_READY, cuStreamQuery(held));
    enough = 1;
    CU_OK(cuStreamSynchronize(held));
    CU_OK(cuEventQuery(event));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    add = check_function(check_module("kernels.ptx"), "add_value");
    CU_OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CU_OK(cuMemHostAlloc((void **) &pinned, 8, 0));
    value = check_device(NULL, 4);
    *pinned = 0;
    copy_and_wait();
    launch_and_query(); /* loads the kernel before a stream waits */
    CU_OK(cuCtxSynchronize());
    poll_with(query_stream, CALLS);
    poll_with(query_event, CALLS);
    poll_with(get, CALLS / 3);
    poll_with(copy_and_wait, CALLS / 2);
    poll_with(launch_and_query, CALLS);
    poll_with(use_new_stream, SHORT_LIVED);
    CU_OK(cuEventDestroy(event));
    CU_OK(cuStreamDestroy(held));
    CU_OK(cuStreamDestroy(other));
    CU_OK(cuMemFreeHost(pinned));
    CU_OK(cuMemFree(value));
    return check_pass("a host function waited for 6 kinds of calls");
}
