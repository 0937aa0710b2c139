package io.hawser.worker.jail;

/**
 * Decides with which arguments a system call is allowed. A filter sees only the arguments' values, not the memory that
 * they point to.
 */
@FunctionalInterface
interface Rule {
    /** Allows all arguments. */
    Rule ALWAYS = filter -> filter.give(Filter.ALLOW);

    // glibc nptl/allocatestack.c, createthread.c: CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, SETTLS, PARENT_SETTID
    // and CHILD_CLEARTID (Linux sched.h). Only pthread_create uses this set of flags.
    long[] THREAD_FLAGS = {0x3d0f00};
    // Linux prctl.h: PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP, PR_GET_NO_NEW_PRIVS, PR_SET_VMA
    long[] PRCTL_COMMANDS = {3, 15, 16, 21, 39, 0x53564d41};
    // Linux fcntl.h: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_SETLK, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS
    long[] FCNTL_COMMANDS = {0, 1, 2, 3, 4, 6, 1030, 1033, 1034};
    // Linux fcntl.h
    int AT_EMPTY_PATH = 0x1000;
    // Linux socket.h
    int AF_UNIX = 1;
    int AF_INET = 2;
    int AF_NETLINK = 16;
    int NETLINK_ROUTE = 0; // Linux netlink.h
    // Linux asm-generic/socket.h
    int SOL_SOCKET = 1;
    int SO_LINGER = 13;
    // Linux rdma_user_ioctl_cmds.h: RDMA_IOCTL_MAGIC
    int RDMA_MAGIC = 0x1b;

    /** Writes at most 200 instructions; every path through them ends with a result. */
    void write(Filter filter);

    /** The argument is one of these 32-bit numbers; the kernel too reads only its lower 32 bits. */
    static Rule argumentIn(int argument, long... values) {
        return filter -> {
            filter.load(Filter.argumentOffset(argument));
            for (long value : values) {
                filter.allowIfEqual((int) value);
            }
            filter.refuse();
        };
    }

    /** The argument has at least one of these bits. */
    static Rule argumentHas(int argument, int bits) {
        return filter -> {
            filter.load(Filter.argumentOffset(argument));
            filter.allowIfSet(bits);
            filter.refuse();
        };
    }

    /** The argument is a NULL pointer. */
    static Rule argumentIsZero(int argument) {
        return filter -> {
            filter.load(Filter.argumentOffset(argument));
            filter.skipIfEqual(0, 1);
            filter.refuse();
            filter.load(Filter.argumentOffset(argument) + Integer.BYTES);
            filter.allowIfEqual(0);
            filter.refuse();
        };
    }

    /** The argument is this process's id. */
    static Rule ownProcess(int argument) {
        return argumentIn(argument, ProcessHandle.current().pid());
    }

    /**
     * Requests to NVIDIA's devices, and two requests to sockets. The filter cannot see a descriptor's file, but on a
     * worker's other files these request numbers do no harm.
     */
    static Rule ioctl() {
        return filter -> {
            filter.load(Filter.argumentOffset(1));
            filter.allowIfEqual(0x5421); // FIONBIO
            filter.allowIfEqual(0x541b); // FIONREAD
            filter.allowIfEqual(0x3000_0001); // NVIDIA uvm_linux_ioctl.h: UVM_INITIALIZE
            filter.allowIfEqual(0x3000_0002); // UVM_DEINITIALIZE
            filter.allowIfBelow(0x100); // NVIDIA uvm_ioctl.h: UVM_IOCTL_BASE(i) equals i
            filter.shiftRight(8);
            filter.mask(0xff);
            filter.allowIfEqual('F'); // NVIDIA nv-ioctl-numbers.h: NV_IOCTL_MAGIC
            filter.refuse();
        };
    }

    /**
     * Writes the beginning of a rule: commands to one RDMA device are allowed. They make queues and register memory,
     * so no other descriptor may take them.
     */
    static void allowRequestsTo(int rdmaDevice, Filter filter) {
        filter.load(Filter.argumentOffset(1));
        filter.shiftRight(8);
        filter.mask(0xff);
        filter.skipUnlessEqual(RDMA_MAGIC, 3);
        filter.load(Filter.argumentOffset(0));
        filter.allowIfEqual(rdmaDevice);
    }

    /**
     * The sockets that NCCL makes: of IP version 4, of Unix, whose names belong to the network, and those that read the
     * network's addresses.
     */
    static Rule socket() {
        return filter -> {
            filter.load(Filter.argumentOffset(0));
            filter.allowIfEqual(AF_INET);
            filter.allowIfEqual(AF_UNIX);
            filter.skipIfEqual(AF_NETLINK, 1);
            filter.refuse();
            filter.load(Filter.argumentOffset(2));
            filter.allowIfEqual(NETLINK_ROUTE);
            filter.refuse();
        };
    }

    /**
     * All options of sockets except SO_LINGER. A worker could pass a socket with that option as a descriptor of memory.
     * The broker would then wait when it closes the socket.
     */
    static Rule socketOption() {
        return filter -> {
            filter.load(Filter.argumentOffset(2));
            filter.skipIfEqual(SO_LINGER, 1);
            filter.give(Filter.ALLOW);
            filter.load(Filter.argumentOffset(1));
            filter.skipIfEqual(SOL_SOCKET, 1);
            filter.give(Filter.ALLOW);
            filter.refuse();
        };
    }
}
