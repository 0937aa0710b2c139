package io.hawser.worker.jail;

import static io.hawser.worker.jail.Rule.ALWAYS;
import static io.hawser.worker.jail.Rule.argumentHas;
import static io.hawser.worker.jail.Rule.argumentIn;
import static io.hawser.worker.jail.Rule.argumentIsZero;
import static io.hawser.worker.jail.Rule.ownProcess;

import java.util.stream.Stream;

/**
 * The system calls that a jailed worker may make, frequent ones first, each with the code that needs it. All others are
 * rejected. Numbers: Linux asm/unistd_64.h (x86_64).
 */
enum SystemCall {
    FUTEX(202, "JVM, carriers, NVIDIA's driver: sleeping and waking", ALWAYS),
    READ(0, "carriers: eventfd, timerfd, Netty's sockets; JVM: jars that are open", ALWAYS),
    WRITE(1, "carriers; the log on descriptor 2", ALWAYS),
    IOCTL(16, "NVIDIA's driver, on its devices; sockets' FIONREAD and FIONBIO; RDMA, on its device", Rule.ioctl()),
    EPOLL_WAIT(232, "Netty", ALWAYS),
    EPOLL_PWAIT(281, "Netty", ALWAYS),
    EPOLL_PWAIT2(441, "Netty, with nanoseconds", ALWAYS),
    SENDMSG(46, "Netty, control socket", ALWAYS),
    RECVMSG(47, "Netty, control socket", ALWAYS),
    SENDTO(44, "Netty, on connected sockets", ALWAYS),
    RECVFROM(45, "Netty", ALWAYS),
    WRITEV(20, "Netty", ALWAYS),
    READV(19, "Netty", ALWAYS),
    POLL(7, "JVM's sockets, NVIDIA's driver: waiting for events", ALWAYS),
    PPOLL(271, "carriers: a region's doorbell", ALWAYS),
    SCHED_YIELD(24, "JVM: spinning", ALWAYS),
    CLOCK_NANOSLEEP(230, "JVM: sleeping", ALWAYS),
    NANOSLEEP(35, "NVIDIA's driver: sleeping", ALWAYS),
    // For clocks that the vDSO does not serve.
    CLOCK_GETTIME(228, "JVM: time", ALWAYS),
    CLOCK_GETRES(229, "JVM: time", ALWAYS),
    GETTIMEOFDAY(96, "NVIDIA's driver: time", ALWAYS),
    TIME(201, "C library: time", ALWAYS),
    MMAP(9, "JVM: heap, code, stacks; regions; NVIDIA's driver: its devices", ALWAYS),
    MUNMAP(11, "as mmap", ALWAYS),
    MPROTECT(10, "JVM: heap, code, guard pages", ALWAYS),
    MREMAP(25, "C library: growing large blocks", ALWAYS),
    MADVISE(28, "JVM, C library: giving memory back; NVIDIA's driver: not in children", ALWAYS),
    BRK(12, "C library: its heap", ALWAYS),
    MINCORE(27, "JVM: which pages are mapped", ALWAYS),
    MLOCK(149, "NVIDIA's driver", ALWAYS),
    MUNLOCK(150, "NVIDIA's driver", ALWAYS),
    MBIND(237, "NVIDIA's driver: memory's place", ALWAYS),
    SET_MEMPOLICY(238, "NVIDIA's driver: memory's place", ALWAYS),
    GET_MEMPOLICY(239, "NVIDIA's driver: memory's place", ALWAYS),
    MEMFD_CREATE(319, "software GPU: memory that can be mapped twice; NVIDIA's driver: probing the kernel", ALWAYS),
    FTRUNCATE(77, "as memfd_create", ALWAYS),
    FALLOCATE(285, "as memfd_create", ALWAYS),
    CLONE(56, "JVM, Netty, GPUs: threads; no process, no namespace", argumentIn(0, Rule.THREAD_FLAGS)),
    SET_ROBUST_LIST(273, "C library: a thread's start", ALWAYS),
    RSEQ(334, "C library: a thread's start", ALWAYS),
    SET_TID_ADDRESS(218, "C library: a thread's start", ALWAYS),
    EXIT(60, "threads' end", ALWAYS),
    EXIT_GROUP(231, "the worker's end", ALWAYS),
    RT_SIGACTION(13, "JVM: its handlers", ALWAYS),
    RT_SIGPROCMASK(14, "JVM, C library: threads' starts and ends", ALWAYS),
    RT_SIGRETURN(15, "JVM: implicit null checks, safepoints", ALWAYS),
    SIGALTSTACK(131, "JVM: overflows of a stack", ALWAYS),
    RESTART_SYSCALL(219, "kernel: sleeps that a signal has broken off", ALWAYS),
    TGKILL(234, "JVM: signals between its own threads", ownProcess(0)),
    GETPID(39, "JVM, log", ALWAYS),
    GETTID(186, "JVM: threads' starts", ALWAYS),
    GETUID(102, "NVIDIA's driver", ALWAYS),
    GETGID(104, "NVIDIA's driver", ALWAYS),
    GETEUID(107, "NVIDIA's driver", ALWAYS),
    GETEGID(108, "NVIDIA's driver", ALWAYS),
    GETPPID(110, "NVIDIA's driver", ALWAYS),
    GETPGRP(111, "NVIDIA's driver", ALWAYS),
    UNAME(63, "NVIDIA's driver: the kernel's name", ALWAYS),
    SYSINFO(99, "JVM: free memory", ALWAYS),
    GETRUSAGE(98, "JVM: processor time", ALWAYS),
    TIMES(100, "JVM: processor time", ALWAYS),
    GETCPU(309, "NVIDIA's driver, JVM: the processor at hand", ALWAYS),
    SCHED_GETAFFINITY(204, "JVM, C library: number of processors", ALWAYS),
    SCHED_GETPARAM(143, "C library: a thread's attributes", ALWAYS),
    SCHED_GETSCHEDULER(145, "C library: a thread's attributes", ALWAYS),
    SCHED_GET_PRIORITY_MAX(146, "NVIDIA's driver: its threads", ALWAYS),
    SCHED_GET_PRIORITY_MIN(147, "NVIDIA's driver: its threads", ALWAYS),
    GETPRIORITY(140, "JVM: threads' priorities", ALWAYS),
    PRLIMIT64(302, "JVM, C library: reading limits, never setting them", argumentIsZero(2)),
    GETRLIMIT(97, "NVIDIA's driver: reading limits", ALWAYS),
    GETRANDOM(318, "JVM: hash seeds, names of shared memory", ALWAYS),
    PRCTL(157, "names of threads and of memory; checking the jail", argumentIn(0, Rule.PRCTL_COMMANDS)),
    FCNTL(72, "flags of descriptors, seals, the index of NVIDIA's compute cache; no signals to others (F_SETOWN)",
        argumentIn(1, Rule.FCNTL_COMMANDS)),
    CLOSE(3, "carriers, JVM, GPUs", ALWAYS),
    FSTAT(5, "JVM, C library: on open descriptors", ALWAYS),
    NEWFSTATAT(262, "C library 2.33: fstat", argumentHas(3, Rule.AT_EMPTY_PATH)),
    STATX(332, "JVM: fstat", argumentHas(2, Rule.AT_EMPTY_PATH)),
    LSEEK(8, "JVM: jars that are open", ALWAYS),
    PREAD64(17, "JVM: jars and the runtime's image, which are open", ALWAYS),
    PWRITE64(18, "software GPU: memory without a name", ALWAYS),
    DUP(32, "JVM, NVIDIA's driver", ALWAYS),
    DUP2(33, "JVM: closing a socket that is in use", ALWAYS),
    DUP3(292, "JVM: closing a socket that is in use", ALWAYS),
    PIPE2(293, "NVIDIA's driver: waking its threads", ALWAYS),
    EPOLL_CREATE1(291, "Netty: the session's event loop", ALWAYS),
    EPOLL_CTL(233, "Netty", ALWAYS),
    EVENTFD2(290, "Netty, NVIDIA's driver", ALWAYS),
    TIMERFD_CREATE(283, "Netty", ALWAYS),
    TIMERFD_SETTIME(286, "Netty", ALWAYS),
    ACCEPT4(288, "NVIDIA's driver: connections of processes that open this worker's shared memory", ALWAYS),
    GETSOCKNAME(51, "Netty: the guest's socket", ALWAYS),
    GETPEERNAME(52, "Netty: the guest's socket", ALWAYS),
    GETSOCKOPT(55, "Netty: the guest's socket", ALWAYS),
    SETSOCKOPT(54, "Netty: the guest's socket", Rule.socketOption()),
    SHUTDOWN(48, "Netty: the guest's socket", ALWAYS),
    SOCKET(41, "NCCL: ranks of other workers of the vGPU, and the addresses of their network", Rule.socket(), true),
    BIND(49, "NCCL: the address where a rank listens", ALWAYS, true),
    LISTEN(50, "NCCL: as bind", ALWAYS, true),
    ACCEPT(43, "NCCL: connections of other ranks", ALWAYS, true),
    CONNECT(42, "NCCL: connections to other ranks", ALWAYS, true);

    private final int number;
    private final String reason;
    private final Rule rule;
    private final boolean needsNetwork;

    SystemCall(int number, String reason, Rule rule) {
        this(number, reason, rule, false);
    }

    SystemCall(int number, String reason, Rule rule, boolean needsNetwork) {
        this.number = number;
        this.reason = reason;
        this.rule = rule;
        this.needsNetwork = needsNetwork;
    }

    /** Number of the calls that a worker may make. */
    static long count(boolean sockets) {
        return Stream.of(values()).filter(call -> sockets || !call.needsNetwork).count();
    }

    /** Whether only workers may make it that share a network with no others than those of their vGPU. */
    boolean needsNetwork() {
        return needsNetwork;
    }

    /** Number of the system call. */
    int number() {
        return number;
    }

    /** The code that needs it. */
    String reason() {
        return reason;
    }

    /** The arguments with which it is allowed. */
    Rule rule() {
        return rule;
    }
}
