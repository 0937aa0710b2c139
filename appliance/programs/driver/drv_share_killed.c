/*
 * Memory of a process that is killed while another process uses it. The memory lives as long as one process has it.
 * Memory that was not imported before may be refused afterwards.
 * With `--wait 1` the program prints READY and waits for the end of its standard input: a test ends the exporting
 * process, or its session, in another way.
 */
#include "check_sharing.h"

#include <signal.h>

#ifndef HAWSER_NVIDIA_HEADER
typedef struct {
    char reserved[64];
} CUipcMemHandle;
#define cuIpcOpenMemHandle cuIpcOpenMemHandle_v2
CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr);
CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr dptr);
#endif

enum { UNITS = 3, LAZY_PEER_ACCESS = 1 };

/* A message of the exporter to the importer. */
typedef struct {
    int supported, opens; /* by descriptors; by handles */
    pid_t pid;
    CUipcMemHandle opened, late;
} exported_t;

static void block(int value, CUipcMemHandle *handle, int *supported) {
    CUdeviceptr address = check_device(NULL, UNITS * unit);
    fill(address, UNITS, value);
    CUresult result = cuIpcGetMemHandle(handle, address);
    *supported = result == CUDA_SUCCESS;
    check_true("memory is shared by handles, or that is not supported",
               result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_SUPPORTED);
}

/* The exporter does not return: the importer kills it. */
static void exporter(int in, int out) {
    exported_t exported = {.supported = begin(), .pid = getpid()};
    if (exported.supported) {
        block(21, &exported.opened, &exported.opens);
        block(22, &exported.late, &exported.opens);
    }
    send_bytes(out, &exported, sizeof exported);
    for (int i = 0; exported.supported && i < 2; i++) {
        CUmemGenericAllocationHandle memory = create(UNITS);
        fill(map(memory, UNITS), UNITS, 11 + i);
        send_descriptor(sockets[0], export_memory(memory));
    }
    char byte;
    while (read(in, &byte, 1) > 0) {
    }
    _exit(0);
}

static void wait_for_end_of_input(void) {
    char byte;
    printf("READY\n");
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {
    }
}

static void check_late(int descriptor, const exported_t *exported) {
    CUmemGenericAllocationHandle late = 0;
    CUresult result = cuMemImportFromShareableHandle(&late, (void *) (intptr_t) descriptor, FILE_DESCRIPTOR);
    check_here("a descriptor after the end of its process: %s", result == CUDA_SUCCESS ? "memory" : "refused");
    if (result == CUDA_SUCCESS) {
        CUdeviceptr imported = map(late, UNITS);
        check_filled("imported after the end", imported, UNITS, 12);
        unmap(imported, UNITS);
        CU_OK(cuMemRelease(late));
    } else {
        CU_IS(CUDA_ERROR_INVALID_VALUE, result);
    }
    CUdeviceptr address = 0;
    result =
        exported->opens ? cuIpcOpenMemHandle(&address, exported->late, LAZY_PEER_ACCESS) : CUDA_ERROR_NOT_SUPPORTED;
    check_here("a handle after the end of its process: %s", result == CUDA_SUCCESS ? "memory" : "refused");
    if (result == CUDA_SUCCESS) {
        check_filled("opened after the end", address, UNITS, 22);
        CU_OK(cuIpcCloseMemHandle(address));
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int down[2], up[2];
    check_true("pipes", pipe(down) == 0 && pipe(up) == 0);
    check_true("a pair of sockets", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    pid_t child = fork();
    check_true("fork", child >= 0);
    if (child == 0) {
        close(down[1]);
        close(sockets[1]);
        exporter(down[0], up[1]);
    }
    close(up[1]);
    close(sockets[0]);
    exported_t exported;
    receive_bytes(up[0], &exported, sizeof exported);
    if (!exported.supported) {
        close(down[1]);
        check_true("the exporter ends", waitpid(child, NULL, 0) == child);
        check_unsupported("memory is not exported to descriptors (attribute 103)");
    }
    begin();
    int descriptor = receive_descriptor(sockets[1]), late = receive_descriptor(sockets[1]);
    CUmemGenericAllocationHandle memory = import_memory(descriptor);
    close(descriptor);
    CUdeviceptr imported = map(memory, UNITS), opened = 0;
    check_filled("imported", imported, UNITS, 11);
    if (exported.opens) {
        CU_OK(cuIpcOpenMemHandle(&opened, exported.opened, LAZY_PEER_ACCESS));
        check_filled("opened", opened, UNITS, 21);
    }
    if (check_option("--wait", 0)) {
        wait_for_end_of_input();
    }
    check_true("the exporter is killed", kill(exported.pid, SIGKILL) == 0);
    check_true("the exporter ends", waitpid(child, NULL, 0) == child);
    check_filled("imported, after the end", imported, UNITS, 11);
    fill(imported, UNITS, 31);
    check_filled("filled after the end", imported, UNITS, 31);
    if (check_option("--wait", 0)) {
        check_late(late, &exported); /* depends on how soon the end is noticed, which a test awaits */
    }
    close(late);
    unmap(imported, UNITS);
    CU_OK(cuMemRelease(memory));
    /* CUDA leaves open what becomes of opened memory when its process ends. The error may destroy the context. */
    int *values = check_memory(UNITS * unit);
    bool intact = exported.opens && cuMemcpyDtoH(values, opened, UNITS * unit) == CUDA_SUCCESS;
    for (size_t i = 0; intact && i < UNITS * unit / sizeof(int); i++) {
        intact = values[i] == 21;
    }
    intact = intact && cuIpcCloseMemHandle(opened) == CUDA_SUCCESS;
    free(values);
    check_here("opened memory after the end of its process: %s", intact ? "intact" : "lost");
    return check_pass("memory of a killed process");
}
