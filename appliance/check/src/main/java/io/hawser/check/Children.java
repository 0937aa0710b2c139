package io.hawser.check;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** The processes that hawser-check has started, so that none outlives it. Any thread. */
final class Children implements AutoCloseable {
    private static final Duration LAST_WAIT = Duration.ofSeconds(5);

    private final Set<Process> running = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    /**
     * Starts one with exactly this environment and its output in files.
     *
     * @throws CheckException when it cannot be started, or when everything is ending.
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
            synchronized (this) { // what starts makes files, also where everything is being removed
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

    /** Waits for the end, kills the process and its children after the limit; returns whether it ended by itself. */
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

    /** Asks a process to end, and kills it when it has not after the limit. */
    void end(Process process, Duration limit) {
        process.destroy();
        await(process, limit);
    }

    private static void kill(Process process) {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }

    /** Whether everything is ending: then a child that failed tells nothing. */
    boolean isClosed() {
        return closed;
    }

    /** Ends whatever still runs, and waits until it is gone; no more is started. */
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
