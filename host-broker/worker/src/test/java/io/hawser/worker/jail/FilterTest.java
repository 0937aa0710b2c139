package io.hawser.worker.jail;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The filter's results, evaluated as the kernel does. */
class FilterTest {
    private static final int X86_64 = 0xc000_003e;
    private static final int I386 = 0x4000_0003;
    private static final int EPERM = 0x0005_0001;
    private static final int ENOSYS = 0x0005_0026;
    private static final int CLONE = 56;
    private static final int TGKILL = 234;
    private static final int FCNTL = 72;
    private static final int IOCTL = 16;
    private static final int SETSOCKOPT = 54;
    private static final int PRLIMIT64 = 302;
    private static final int NEWFSTATAT = 262;

    private final Filter filter = Filter.of(false, false, -1);

    private int answer(int number, long... arguments) {
        return filter.answer(X86_64, number, arguments);
    }

    @Test
    void shouldAllowSocketsOnlyInTheNetworkOfAVgpu() {
        Filter alone = Filter.of(true, false, -1);
        Filter together = Filter.of(true, true, -1);
        for (SystemCall call : List.of(SystemCall.SOCKET, SystemCall.BIND, SystemCall.LISTEN, SystemCall.ACCEPT,
            SystemCall.CONNECT)) {
            assertEquals(Filter.NOTIFY, alone.answer(X86_64, call.number(), Rule.AF_INET));
            assertEquals(Filter.ALLOW, together.answer(X86_64, call.number(), Rule.AF_INET));
        }
        int socket = SystemCall.SOCKET.number();
        for (int family : new int[] {0, 3, 10, 17, 38, 40, 44}) { // AF_INET6, AF_PACKET, AF_ALG, AF_VSOCK, AF_XDP, ...
            assertEquals(Filter.NOTIFY, together.answer(X86_64, socket, family));
        }
        assertEquals(Filter.ALLOW, together.answer(X86_64, socket, Rule.AF_UNIX, 2, 0));
        assertEquals(Filter.NOTIFY, alone.answer(X86_64, socket, Rule.AF_UNIX, 2, 0));
        assertEquals(Filter.ALLOW, together.answer(X86_64, socket, Rule.AF_NETLINK, 3, Rule.NETLINK_ROUTE));
        assertEquals(Filter.NOTIFY, alone.answer(X86_64, socket, Rule.AF_NETLINK, 3, Rule.NETLINK_ROUTE));
        for (int protocol : new int[] {2, 4, 6, 9, 12, 15, 16}) { // NETLINK_SOCK_DIAG, XFRM, AUDIT, NETFILTER, ...
            assertEquals(Filter.NOTIFY, together.answer(X86_64, socket, Rule.AF_NETLINK, 3, protocol));
        }
        assertEquals(5, SystemCall.count(true) - SystemCall.count(false));
    }

    /** As Linux rdma_user_ioctl_cmds.h: RDMA_VERBS_IOCTL. */
    @Test
    void shouldAllowCommandsOnlyToTheRdmaDevice() {
        int ioctl = SystemCall.IOCTL.number();
        long verbs = 0xc018_1b01L;
        Filter device = Filter.of(false, false, 9);
        assertEquals(Filter.ALLOW, device.answer(X86_64, ioctl, 9, verbs));
        for (int other : new int[] {-1, 0, 8, 10, 265}) {
            assertEquals(EPERM, device.answer(X86_64, ioctl, other, verbs), "descriptor=" + other);
        }
        assertEquals(EPERM, device.answer(X86_64, ioctl, 9, 0xc018_1c01L), "another kind of request");
        assertEquals(Filter.ALLOW, device.answer(X86_64, ioctl, 3, 0x5421), "what other files allow");
        assertEquals(EPERM, answer(ioctl, 9, verbs));
        assertEquals(EPERM, answer(ioctl, -1, verbs));
    }

    @Test
    void shouldAllowEachCallOfTheListOnce() {
        Set<Integer> numbers = new HashSet<>();
        for (SystemCall call : SystemCall.values()) {
            assertTrue(numbers.add(call.number()), () -> call + " is listed twice");
            assertFalse(call.reason().isBlank(), () -> call + " must name the code that needs it");
            if (call.rule() == Rule.ALWAYS && !call.needsNetwork()) {
                assertEquals(Filter.ALLOW, answer(call.number(), -1, -1, -1, -1), call::toString);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 257, 437, 41, 42, 43, 49, 50, 53, 57, 58, 62, 129, 424, 434, 438, 310, 250, 321, 298, 323,
        425, 272, 308, 105, 117, 126, 161, 155, 82, 83, 86, 87, 88, 90, 92, 133, 203, 9999})
    void shouldRefuseUnlistedCalls(int number) {
        assertEquals(EPERM, answer(number));
        assertEquals(Filter.NOTIFY, Filter.of(true, false, -1).answer(X86_64, number));
    }

    @ParameterizedTest
    @ValueSource(ints = {59, 322, 101, 311, 175, 313, 246, 165})
    void shouldKillProcessThatMakesDeadlyCall(int number) {
        assertEquals(Filter.KILL, answer(number));
        assertEquals(Filter.KILL, Filter.of(true, false, -1).answer(X86_64, number));
    }

    @Test
    void shouldKillProcessThatUsesAnotherCallTable() {
        assertEquals(Filter.KILL, filter.answer(I386, 3));
        assertEquals(Filter.KILL, answer(0x4000_0000 | 1));
        assertEquals(Filter.KILL, answer(-1));
    }

    @Test
    void shouldAllowThreadsAndNoProcesses() {
        assertEquals(Filter.ALLOW, answer(CLONE, 0x3d0f00));
        assertEquals(EPERM, answer(CLONE, 17)); // SIGCHLD: fork
        assertEquals(EPERM, answer(CLONE, 0x4111)); // CLONE_VFORK | CLONE_VM | SIGCHLD: posix_spawn
        assertEquals(EPERM, answer(CLONE, 0x3d0f00 | 0x1000_0000)); // CLONE_NEWUSER
        assertEquals(ENOSYS, answer(435)); // clone3, whose flags are in memory
    }

    @Test
    void shouldAllowSignalsToItselfOnly() {
        long self = ProcessHandle.current().pid();
        assertEquals(Filter.ALLOW, answer(TGKILL, self, self + 1, 10));
        assertEquals(EPERM, answer(TGKILL, self + 1, self + 1, 9));
        assertEquals(EPERM, answer(TGKILL, 1, 1, 9));
        assertEquals(EPERM, answer(FCNTL, 3, 8, 1)); // F_SETOWN: the process that a descriptor's events signal
        assertEquals(Filter.ALLOW, answer(FCNTL, 3, 4, 2048)); // F_SETFL
    }

    @Test
    void shouldAllowOnlyRequestsToDevices() {
        assertEquals(Filter.ALLOW, answer(IOCTL, 3, 0xc020_462aL)); // NV_ESC_RM_CONTROL
        assertEquals(Filter.ALLOW, answer(IOCTL, 3, 0x25)); // a request of nvidia-uvm
        assertEquals(EPERM, answer(IOCTL, 3, 0x5412)); // TIOCSTI: input to a terminal
        assertEquals(EPERM, answer(IOCTL, 3, 0xc050_2100L)); // SECCOMP_IOCTL_NOTIF_RECV: a request to its own watcher
        assertEquals(EPERM, answer(IOCTL, 3, 0x8914)); // SIOCSIFFLAGS: network interfaces
    }

    @Test
    void shouldRefuseSocketsWhoseCloseWaits() {
        assertEquals(EPERM, answer(SETSOCKOPT, 3, 1, 13, 0x7000, 8)); // SOL_SOCKET, SO_LINGER
        assertEquals(EPERM, answer(SETSOCKOPT, 3, 0x7f_0000_0001L, 0x7f_0000_000dL)); // the kernel reads lower halves
        assertEquals(Filter.ALLOW, answer(SETSOCKOPT, 3, 1, 7, 0x7000, 4)); // SO_SNDBUF
        assertEquals(Filter.ALLOW, answer(SETSOCKOPT, 3, 6, 1, 0x7000, 4)); // IPPROTO_TCP, TCP_NODELAY
        assertEquals(Filter.ALLOW, answer(SETSOCKOPT, 3, 6, 13, 0x7000, 4)); // TCP_CONGESTION
    }

    @Test
    void shouldAllowReadingLimitsOnly() {
        assertEquals(Filter.ALLOW, answer(PRLIMIT64, 0, 7, 0, 0x7000));
        assertEquals(EPERM, answer(PRLIMIT64, 0, 7, 0x7000, 0));
        assertEquals(EPERM, answer(PRLIMIT64, 0, 7, 0x7f_0000_0000L, 0)); // a pointer whose lower half is 0
        assertEquals(Filter.ALLOW, answer(NEWFSTATAT, 3, 0, 0, 0x1000));
        assertEquals(EPERM, answer(NEWFSTATAT, -100, 0x7000, 0x7000, 0));
    }
}
