package io.hawser.check;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** The processes that hawser-check has started; none outlives it. Any thread. */
final class Children implements AutoCloseable {
    private static final Duration LAST_WAIT = Duration.ofSeconds(5);

    private final Set<Process> running = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    /**
     * Starts a process with exactly this environment, and its output in files.
     *
     * @throws CheckException if it cannot be started, or hawser-check is ending.
     */
    Process start(List<String> command, Map<String, String> environment, Path out, Path err) {
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().clear();
        builder.environment().putAll(environment);
        builder.redirectOutput(out.toFile());
        if (out.equals(err)) {
            builder.redirectErrorStream(true);
        } else {
            builder.redirectError(err.toFile());
        }
        try {
            Process process;
            synchronized (this) { // a new process could create files during the clean-up
                if (closed) {
                    throw new CheckException("ending");
                }
                process = builder.start();
                running.add(process);
            }
            process.onExit().thenAccept(running::remove);
            return process;
        } catch (IOException e) {
            throw new CheckException("cannot start " + command.getFirst() + ": " + e.getMessage(), e);
        }
    }

    /** Waits for a process. Kills it and its children after the limit; returns whether it ended by itself. */
    boolean await(Process process, Duration limit) {
        try {
            if (process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
                return true;
            }
            kill(process);
            process.waitFor(LAST_WAIT.toMillis(), TimeUnit.MILLISECONDS);
            return false;
        } catch (InterruptedException e) {
            kill(process);
            Thread.currentThread().interrupt();
            throw new CheckException("interrupted", e);
        }
    }

    /** Asks a process to end, and kills it after the limit. */
    void end(Process process, Duration limit) {
        process.destroy();
        await(process, limit);
    }

    private static void kill(Process process) {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }

    /** Whether hawser-check is ending. The failure of a child is then meaningless. */
    boolean isClosed() {
        return closed;
    }

    /** Ends all running processes and waits for their ends; no new ones can start. */
    @Override
    public void close() {
        synchronized (this) {
            closed = true;
        }
        List<Process> last = List.copyOf(running);
        last.forEach(Process::destroy);
        last.forEach(process -> await(process, LAST_WAIT));
    }
}
