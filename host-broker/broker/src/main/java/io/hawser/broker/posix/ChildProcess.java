package io.hawser.broker.posix;

import java.util.List;
import java.util.function.Consumer;
import org.jboss.logging.Logger;

/**
 * A child process. A thread waits for its end, as the JDK does for its own children. A signal never reaches another
 * process with the same id: the lock that {@link #kill} takes also protects the release of the id. Thread-safe.
 */
public final class ChildProcess {
    private static final Logger LOG = Logger.getLogger(ChildProcess.class);
    private static final long WATCHER_STACK_BYTES = 128 * 1024;

    private final int pid;
    private boolean reaped;

    private ChildProcess(int pid) {
        this.pid = pid;
    }

    /**
     * Starts a process with descriptors 0 (/dev/null), 1 and 2 ({@code log}), 3 ({@code control}) and no other. The
     * caller keeps its copies of both and closes them.
     *
     * @param spawner starts the process.
     * @param environment {@code NAME=value} each.
     * @param exited receives the exit status once, on the watching thread.
     */
    public static ChildProcess start(Spawner spawner, List<String> command, List<String> environment, int log,
        int control, Consumer<ExitStatus> exited) throws PosixException {
        ChildProcess child = new ChildProcess(spawner.spawn(command, environment, log, control));
        Thread.ofPlatform().daemon().name("hawser-child-" + child.pid).stackSize(WATCHER_STACK_BYTES)
            .start(() -> child.watch(exited));
        return child;
    }

    /** Process id of the child, also the id of its process group. */
    public int pid() {
        return pid;
    }

    /** Signals the process group; does nothing when the process has ended. */
    public void kill(int signal) {
        synchronized (this) {
            if (!reaped) {
                Posix.killGroup(pid, signal);
            }
        }
    }

    private void watch(Consumer<ExitStatus> exited) {
        ExitStatus status;
        try {
            Spawn.awaitExit(pid);
            synchronized (this) {
                // Kill the descendants too: the group outlives its leader until the last member has ended.
                Posix.killGroup(pid, Posix.SIGKILL);
                status = Posix.reap(pid);
                reaped = true;
            }
        } catch (PosixException e) {
            LOG.errorf("a child could not be reaped: pid=%d: %s", pid, e.getMessage());
            status = new ExitStatus(-1, 0);
        }
        exited.accept(status);
    }
}
