/*
 * Memory that a process exports to a file descriptor and another imports, which gets the descriptor through a Unix
 * socket. The fork comes before the first CUDA call of either process.
 */
#include "check_sharing.h"

enum { UNITS = 3, PIECES = 4, LARGE_UNITS = 64, LARGE_TIMES = 16 };

static void child(int in, int out) {
    close(sockets[0]); /* so that it sees the end of a failed parent */
    bool supported = begin();
    turn(out);
    if (!supported) {
        return;
    }
    CUmemGenericAllocationHandle none = 0;
    int file = open("/dev/null", O_RDWR);
    check_true("another file is no memory",
               cuMemImportFromShareableHandle(&none, (void *) (intptr_t) file, FILE_DESCRIPTOR) != CUDA_SUCCESS);
    close(file);

    /* Both see what the other writes; the descriptor may be closed at once. */
    int descriptor = receive_descriptor(sockets[1]);
    CUmemGenericAllocationHandle shared = import_memory(descriptor);
    CUmemGenericAllocationHandle twice = import_memory(descriptor);
    close(descriptor);
    CUmemAllocationProp got;
    memset(&got, 0xEE, sizeof got);
    CU_OK(cuMemGetAllocationPropertiesFromHandle(&got, shared));
    check_equal("type of imported memory", CU_MEM_ALLOCATION_TYPE_PINNED, got.type);
    check_equal("place of imported memory", CU_MEM_LOCATION_TYPE_DEVICE, got.location.type);
    check_equal("device of imported memory", 0, got.location.id);
    CUdeviceptr address = map(shared, UNITS);
    check_filled("the parent's values", address, UNITS, 11);
    fill(address, UNITS, 22);
    CUdeviceptr second = map(twice, UNITS);
    check_filled("the same memory at another address", second, UNITS, 22);
    unmap(second, UNITS);
    CU_OK(cuMemRelease(twice));
    CUmemGenericAllocationHandle retained = 0;
    CU_OK(cuMemRetainAllocationHandle(&retained, (void *) (uintptr_t) (address + unit)));
    CU_OK(cuMemRelease(retained));
    turn(out);

    /* The parent has released the memory. It stays until this process releases it. */
    wait_turn(in);
    check_filled("after the parent's release", address, UNITS, 33);
    unmap(address, UNITS);
    CU_OK(cuMemRelease(shared));

    /* The parent has released the memory before this process imports it. */
    descriptor = receive_descriptor(sockets[1]);
    shared = import_memory(descriptor);
    close(descriptor);
    address = map(shared, 1);
    check_filled("imported after the release", address, 1, 44);
    unmap(address, 1);
    CU_OK(cuMemRelease(shared));

    /* Several pieces side by side, of which the descriptors are duplicates. */
    CUdeviceptr base = 0;
    CU_OK(cuMemAddressReserve(&base, PIECES * unit, 0, 0, 0));
    CUmemGenericAllocationHandle pieces[PIECES];
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    for (int i = 0; i < PIECES; i++) {
        descriptor = receive_descriptor(sockets[1]);
        pieces[i] = import_memory(descriptor);
        close(descriptor);
        CU_OK(cuMemMap(base + (size_t) i * unit, unit, 0, pieces[i], 0));
    }
    CU_OK(cuMemSetAccess(base, PIECES * unit, &access, 1));
    for (int i = 0; i < PIECES; i++) {
        check_filled("a piece", base + (size_t) i * unit, 1, 100 + i);
    }
    CU_OK(cuMemsetD32(base, 55, PIECES * unit / sizeof(int)));
    unmap(base, PIECES);
    for (int i = 0; i < PIECES; i++) {
        CU_OK(cuMemRelease(pieces[i]));
    }
    turn(out);
}

static void refusals(CUmemGenericAllocationHandle memory) {
    int descriptor = -1;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&descriptor, memory, FILE_DESCRIPTOR, 1));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(NULL, memory, FILE_DESCRIPTOR, 0));
    CUmemAllocationProp closed = prop;
    closed.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    CUmemGenericAllocationHandle other = 0;
    CU_OK(cuMemCreate(&other, unit, &closed, 0));
    check_true("memory that was not made for it is not exported",
               cuMemExportToShareableHandle(&descriptor, other, FILE_DESCRIPTOR, 0) != CUDA_SUCCESS);
    CU_OK(cuMemRelease(other));
}

static void parent(int in, int out) {
    bool supported = begin();
    wait_turn(in);
    if (!supported) {
        return;
    }
    CUmemGenericAllocationHandle memory = create(UNITS);
    refusals(memory);
    CUdeviceptr address = map(memory, UNITS);
    fill(address, UNITS, 11);
    int descriptor = export_memory(memory);
    CUmemGenericAllocationHandle own = import_memory(descriptor); /* a process may import its own memory */
    CUdeviceptr second = map(own, UNITS);
    check_filled("its own memory", second, UNITS, 11);
    unmap(second, UNITS);
    CU_OK(cuMemRelease(own));
    send_descriptor(sockets[0], descriptor);
    close(descriptor);
    wait_turn(in);
    check_filled("the child's values", address, UNITS, 22);
    fill(address, UNITS, 33);
    unmap(address, UNITS);
    CU_OK(cuMemRelease(memory));
    turn(out);

    memory = create(1);
    address = map(memory, 1);
    fill(address, 1, 44);
    descriptor = export_memory(memory);
    unmap(address, 1);
    CU_OK(cuMemRelease(memory));
    send_descriptor(sockets[0], descriptor);
    close(descriptor);

    CUmemGenericAllocationHandle pieces[PIECES];
    CUdeviceptr addresses[PIECES];
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = create(1);
        addresses[i] = map(pieces[i], 1);
        fill(addresses[i], 1, 100 + i);
        descriptor = export_memory(pieces[i]);
        int duplicate = dup(descriptor);
        close(descriptor);
        send_descriptor(sockets[0], duplicate);
        close(duplicate);
    }
    wait_turn(in);
    for (int i = 0; i < PIECES; i++) {
        check_filled("a piece that the child has filled", addresses[i], 1, 55);
        unmap(addresses[i], 1);
        CU_OK(cuMemRelease(pieces[i]));
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_true("a pair of sockets", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    check_processes(child, parent);
    if (unit == 0) {
        check_unsupported("memory is not exported to descriptors (attribute 103)");
    }
    for (int i = 0; i < LARGE_TIMES; i++) { /* memory whose last descriptor has been closed is free again */
        CUmemGenericAllocationHandle large = create(LARGE_UNITS);
        int descriptor = export_memory(large);
        CU_OK(cuMemRelease(large));
        close(descriptor);
    }
    return check_pass("two processes, each in the other's memory, by descriptors");
}
