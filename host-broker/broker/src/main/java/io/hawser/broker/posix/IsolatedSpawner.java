package io.hawser.broker.posix;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Starts children from a thread with its own empty network and System V IPC namespaces, which the children inherit.
 * Namespaces belong to threads. Any thread.
 */
public final class IsolatedSpawner implements Spawner, AutoCloseable {
    // Linux sched.h
    private static final long CLONE_NEWIPC = 0x0800_0000;
    private static final long CLONE_NEWNET = 0x4000_0000;
    // Linux socket.h, sockios.h and if.h
    private static final int AF_INET = 2;
    private static final int SOCK_DGRAM = 2;
    private static final long SIOCSIFFLAGS = 0x8914;
    private static final short IFF_UP = 1;
    private static final int IFREQ_BYTES = 40;
    private static final int IFREQ_FLAGS_OFFSET = 16;
    private static final long STACK_BYTES = 256 * 1024;

    private final ExecutorService thread = Executors.newSingleThreadExecutor(
        Thread.ofPlatform().daemon().name("hawser-spawner").stackSize(STACK_BYTES).factory());

    /**
     * Makes the thread.
     *
     * @throws PosixException if the broker lacks the permission, CAP_SYS_ADMIN.
     */
    public IsolatedSpawner() throws PosixException {
        try {
            on(() -> {
                SystemCalls.unshare(CLONE_NEWNET | CLONE_NEWIPC);
                // Only the loopback interface: workers warm up their carriers on it before they serve guests.
                int socket = SystemCalls.socket(AF_INET, SOCK_DGRAM);
                try (Arena arena = Arena.ofConfined()) {
                    MemorySegment request = arena.allocate(IFREQ_BYTES, Long.BYTES);
                    request.setString(0, "lo");
                    request.set(ValueLayout.JAVA_SHORT, IFREQ_FLAGS_OFFSET, IFF_UP);
                    long result = SystemCalls.ioctl(socket, SIOCSIFFLAGS, request);
                    if (result < 0) {
                        throw new PosixException("SIOCSIFFLAGS lo", Spawn.error((int) -result));
                    }
                } finally {
                    Posix.close(socket);
                }
                return 0;
            });
        } catch (PosixException e) {
            thread.shutdown();
            throw e;
        }
    }

    @Override
    public int spawn(List<String> command, List<String> environment, int log, int control) throws PosixException {
        // The caller waits as for posix_spawn itself, which returns once the child runs its program.
        return on(() -> Posix.spawn(command, environment, log, control));
    }

    /** Ends the thread; its children keep their namespaces. */
    @Override
    public void close() {
        thread.shutdown();
    }

    /** A system call to run on the thread. */
    @FunctionalInterface
    private interface Task {
        int run() throws PosixException;
    }

    private int on(Task task) throws PosixException {
        try {
            return thread.submit(task::run).get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof PosixException known) {
                throw known;
            }
            throw new IllegalStateException(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new PosixException("posix_spawn", "interrupted");
        }
    }
}
