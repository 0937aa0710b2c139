/*
 * A process of another vGPU tries to use memory of this one. Arguments: NAME=VALUE, the child's environment. Both
 * processes have a session, and the child knows all that the parent may give another process. Handles with one changed
 * bit stand for guessed ones; the parent's own session proves that the unchanged ones are right.
 */
#include "check_sharing.h"

#ifndef HAWSER_NVIDIA_HEADER
typedef struct {
    char reserved[64];
} CUipcMemHandle;
#define cuIpcOpenMemHandle cuIpcOpenMemHandle_v2
CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr);
CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags);
#endif

enum { UNITS = 1, NAME_BITS = 128, LAZY_PEER_ACCESS = 1 };

static CUresult open_handle(const CUipcMemHandle *handle) {
    CUdeviceptr address = 0;
    return cuIpcOpenMemHandle(&address, *handle, LAZY_PEER_ACCESS);
}

static CUresult import_descriptor(int descriptor) {
    CUmemGenericAllocationHandle memory = 0;
    return cuMemImportFromShareableHandle(&memory, (void *) (intptr_t) descriptor, FILE_DESCRIPTOR);
}

/* A descriptor like the guest library's, for a name of which one bit differs. */
static int forged_descriptor(int descriptor, int bit) {
    unsigned char message[64];
    int ends[2];
    ssize_t bytes = recv(descriptor, message, sizeof message, MSG_PEEK);
    check_true("a descriptor has a name", bytes >= NAME_BITS / 8);
    message[bytes - NAME_BITS / 8 + bit / 8] ^= (unsigned char) (1 << bit % 8);
    check_true("a pair of sockets", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    check_true("a name is sent", send(ends[0], message, (size_t) bytes, 0) == bytes);
    close(ends[0]);
    return ends[1];
}

static void check_guesses(int descriptor, const CUipcMemHandle *handle) {
    for (int bit = 0; bit < NAME_BITS; bit++) {
        CUipcMemHandle guessed = *handle;
        guessed.reserved[bit / 8] ^= (char) (1 << bit % 8);
        CU_IS(CUDA_ERROR_INVALID_VALUE, open_handle(&guessed));
        int forged = forged_descriptor(descriptor, bit);
        CU_IS(CUDA_ERROR_INVALID_VALUE, import_descriptor(forged));
        close(forged);
    }
}

static void child(int in, int out) {
    CUipcMemHandle handle;
    for (int i = 1; i < check_argc; i++) {
        check_true("NAME=VALUE", strchr(check_argv[i], '=') != NULL && putenv(check_argv[i]) == 0);
    }
    check_true("a device", begin());
    receive_bytes(in, &handle, sizeof handle);
    int descriptor = receive_descriptor(sockets[1]);
    CUresult results[] = {open_handle(&handle), import_descriptor(descriptor)};
    send_bytes(out, results, sizeof results);
    check_guesses(descriptor, &handle);
}

static void parent(int in, int out) {
    CUresult results[2];
    CUipcMemHandle handle;
    check_true("a device", begin());
    CUdeviceptr block = check_device(NULL, UNITS * unit);
    CU_OK(cuIpcGetMemHandle(&handle, block));
    send_bytes(out, &handle, sizeof handle);
    CUmemGenericAllocationHandle memory = create(UNITS);
    int descriptor = export_memory(memory);
    send_descriptor(sockets[0], descriptor);
    receive_bytes(in, results, sizeof results);
    printf("STRANGER %d %d\n", (int) results[0], (int) results[1]);
    check_guesses(descriptor, &handle);
    CU_OK(import_descriptor(descriptor));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_true("a pair of sockets", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    check_processes(child, parent);
    return check_pass("a process of another vGPU");
}
