/* Events for other processes by the driver's API. The exporter records; the opener queries, waits and records, also
 * after the exporter has destroyed its event. At last the opener kills the exporter, whose stream then never reaches
 * its last record. The program tells whether the record counts as done. */
#include "check_driver.h"
#include "check_processes.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#ifndef HAWSER_NVIDIA_HEADER
typedef struct {
    char reserved[64];
} CUipcEventHandle;
CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle);
#endif

#define INTERPROCESS (CU_EVENT_DISABLE_TIMING | 4) /* CU_EVENT_INTERPROCESS */
#define IPC_EVENT_SUPPORTED ((CUdevice_attribute) 125)
#define RECORDS 300     /* more than are unfinished anywhere else */
#define DEAD_US 3000000 /* a record of a dead process that has not ended by then never does */

typedef struct {
    int supported;
    CUipcEventHandle early, late, last;
} exported_t;

static CUstream stream;
static atomic_int released;

static void hold(void *data) {
    (void) data;
    while (!released) {
        usleep(200);
    }
}

static int begin(void) {
    int supported = 0;
    check_context();
    CU_OK(cuDeviceGetAttribute(&supported, IPC_EVENT_SUPPORTED, 0));
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return supported;
}

static CUevent interprocess(CUipcEventHandle *handle) {
    CUevent event;
    CU_OK(cuEventCreate(&event, INTERPROCESS));
    if (handle != NULL) {
        CU_OK(cuIpcGetEventHandle(handle, event));
    }
    return event;
}

static void turn(int out) {
    send_bytes(out, "", 1);
}

static void await_turn(int in) {
    char byte;
    receive_bytes(in, &byte, 1);
}

/* Does not return: the opener kills this process. */
static void exporter(int in, int out) {
    exported_t exported = {.supported = begin()};
    if (exported.supported) {
        CUevent early = interprocess(NULL), plain, opened;
        CU_OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
        CU_IS(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&exported.early, plain));
        CU_OK(cuLaunchHostFunc(stream, hold, NULL));
        CU_OK(cuEventRecord(early, stream)); /* before others can know it */
        CU_OK(cuIpcGetEventHandle(&exported.early, early));
        CU_IS(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&opened, exported.early));
        CUevent late = interprocess(&exported.late), last = interprocess(&exported.last);
        send_bytes(out, &exported, sizeof exported);
        await_turn(in); /* opened, not reached, and waited for */
        released = 1;
        CU_OK(cuStreamSynchronize(stream));
        turn(out);
        await_turn(in);
        released = 0;
        CU_OK(cuLaunchHostFunc(stream, hold, NULL));
        for (int i = 0; i < RECORDS; i++) {
            CU_OK(cuEventRecord(late, stream));
        }
        turn(out);
        await_turn(in);
        released = 1;
        CU_OK(cuStreamSynchronize(stream));
        CU_OK(cuEventQuery(late));
        CU_OK(cuEventDestroy(early)); /* the opener still uses it */
        turn(out);
        await_turn(in);
        CU_OK(cuStreamWaitEvent(stream, late, 0)); /* the opener has recorded it */
        CU_OK(cuStreamSynchronize(stream));
        released = 0;
        CU_OK(cuLaunchHostFunc(stream, hold, NULL));
        CU_OK(cuEventRecord(last, stream));
        turn(out);
    } else {
        send_bytes(out, &exported, sizeof exported);
    }
    char byte;
    while (read(in, &byte, 1) > 0) {
    }
    _exit(0); /* only if the opener has failed */
}

static bool is_done_in_time(CUevent event) {
    CUresult result = CUDA_ERROR_NOT_READY;
    for (int us = 0; us < DEAD_US && result == CUDA_ERROR_NOT_READY; us += 500) {
        usleep(500);
        result = cuEventQuery(event);
    }
    check_true("the query succeeds", result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY);
    return result == CUDA_SUCCESS;
}

static void opener(int in, int out, pid_t other) {
    exported_t theirs;
    CUevent early, late, again, last;
    CUstream waiting;
    receive_bytes(in, &theirs, sizeof theirs);
    CUipcEventHandle forged;
    memset(&forged, 0x5a, sizeof forged);
    check_true("a forged handle is refused", cuIpcOpenEventHandle(&early, forged) != CUDA_SUCCESS);
    CU_OK(cuIpcOpenEventHandle(&early, theirs.early));
    CU_OK(cuIpcOpenEventHandle(&late, theirs.late));
    CU_OK(cuIpcOpenEventHandle(&again, theirs.late));
    CU_OK(cuIpcOpenEventHandle(&last, theirs.last));
    CU_OK(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventQuery(late)); /* not recorded yet */
    CU_IS(CUDA_ERROR_NOT_READY, cuEventQuery(early));
    CU_OK(cuStreamWaitEvent(waiting, early, 0));
    CU_IS(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
    float time;
    check_true("no time between such events", cuEventElapsedTime(&time, early, late) != CUDA_SUCCESS);
    turn(out);
    await_turn(in);
    CU_OK(cuStreamSynchronize(waiting));
    CU_OK(cuEventSynchronize(early));
    turn(out);
    await_turn(in); /* recorded many times, not reached */
    CU_IS(CUDA_ERROR_NOT_READY, cuEventQuery(late));
    CU_IS(CUDA_ERROR_NOT_READY, cuEventQuery(again));
    turn(out);
    CU_OK(cuEventSynchronize(late));
    CU_OK(cuEventQuery(again));
    await_turn(in); /* the exporter has destroyed its event */
    CU_OK(cuEventRecord(early, waiting));
    CU_OK(cuEventSynchronize(early));
    CU_OK(cuEventRecord(late, waiting));
    turn(out);
    await_turn(in); /* recorded, and never reached */
    CU_IS(CUDA_ERROR_NOT_READY, cuEventQuery(last));
    CU_OK(cuStreamWaitEvent(waiting, last, 0));
    CU_IS(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
    check_true("kill", kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
    bool is_done = is_done_in_time(last);
    check_here("the record of a dead process is done: %d", is_done);
    if (!is_done) { /* the stream waits for ever, so nothing can be destroyed */
        int status = check_pass("%d records of two processes", RECORDS);
        fflush(stdout);
        _exit(status);
    }
    CU_OK(cuEventSynchronize(last));
    CU_OK(cuStreamSynchronize(waiting));
    CU_OK(cuEventRecord(last, waiting));
    CU_OK(cuEventSynchronize(last));
    CU_OK(cuEventDestroy(early));
    CU_OK(cuEventDestroy(late));
    CU_OK(cuEventDestroy(again));
    CU_OK(cuEventDestroy(last));
    CU_OK(cuStreamDestroy(waiting));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int in, out;
    pid_t forked = check_fork(&in, &out);
    if (forked == 0) {
        exporter(in, out);
    }
    if (!begin()) {
        kill(forked, SIGKILL);
        check_unsupported("events are not shared between processes");
    }
    opener(in, out, forked);
    return check_pass("%d records of two processes", RECORDS);
}
