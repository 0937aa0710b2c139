package io.hawser.worker.session;

import io.hawser.cuda.backend.MemorySharing;
import io.hawser.worker.control.WorkerMessage;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Names by which sessions of one vGPU find each other's memory: the broker has the table. What it answers was said by
 * another session's worker. Session thread, except where a method says otherwise.
 */
public final class SharedNames {
    /** For a session without a broker: nothing is kept, nothing is found. */
    public static final SharedNames NONE = new SharedNames(null, Runnable::run, (task, delayMs) -> { });

    private static final int MAX_UNANSWERED = 1024; // bounds what a guest's threads make wait here
    // The broker ends a worker that says more than 200 things in a second; so these are at most 70 of them.
    private static final long INTERVAL_NS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final int BURST = 20;

    /** Runs a task on the session thread, later. */
    @FunctionalInterface
    public interface Later {
        /**
         * As the link's.
         *
         * @param task what to do.
         * @param delayMs when.
         */
        void schedule(Runnable task, long delayMs);
    }

    /**
     * Memory of another session.
     *
     * @param handle as its driver made it, if its worker was honest.
     * @param bytes length of the allocation, likewise.
     */
    public record Memory(byte[] handle, long bytes) { }

    private final Consumer<WorkerMessage> broker;
    private final Executor session;
    private final Later later;
    private final Map<String, List<Consumer<Boolean>>> sharing = new HashMap<>();
    private final Map<String, List<Consumer<Memory>>> finding = new HashMap<>();
    private final Queue<WorkerMessage> waiting = new ArrayDeque<>();
    private int unanswered;
    private boolean isScheduled;
    private long earliestNs = System.nanoTime();

    /**
     * Starts with no names.
     *
     * @param broker sends it a message, on the session thread; null where there is none.
     * @param session runs on the session thread.
     * @param later runs on the session thread as well.
     */
    public SharedNames(Consumer<WorkerMessage> broker, Executor session, Later later) {
        this.broker = broker;
        this.session = session;
        this.later = later;
    }

    /**
     * Lets other sessions find memory.
     *
     * @param name 32 hexadecimal digits.
     * @param memory what they find.
     * @param done told whether they can, on the session thread.
     */
    public void share(String name, Memory memory, Consumer<Boolean> done) {
        if (broker == null || unanswered >= MAX_UNANSWERED) {
            done.accept(false);
            return;
        }
        unanswered++;
        List<Consumer<Boolean>> asked = sharing.computeIfAbsent(name, key -> new ArrayList<>());
        asked.add(done);
        if (asked.size() == 1) {
            tell(new WorkerMessage.Share(name, HexFormat.of().formatHex(memory.handle), memory.bytes));
        }
    }

    /**
     * Lets nobody find it any more.
     *
     * @param name that has been shared.
     */
    public void unshare(String name) {
        tell(new WorkerMessage.Unshare(name));
    }

    /** Tells the broker, once, that a fault has ended what the session has on its GPU; {@code result} is a CUresult. */
    void lost(int result) {
        if (broker != null) {
            broker.accept(new WorkerMessage.Lost(result)); // not paced as names are: others wait for it
        }
    }

    /**
     * Looks for memory of another session.
     *
     * @param name 32 hexadecimal digits.
     * @param done receives it on the session thread, or null when there is none.
     */
    public void find(String name, Consumer<Memory> done) {
        if (broker == null || unanswered >= MAX_UNANSWERED) {
            done.accept(null);
            return;
        }
        unanswered++;
        List<Consumer<Memory>> asked = finding.computeIfAbsent(name, key -> new ArrayList<>());
        asked.add(done);
        if (asked.size() == 1) {
            tell(new WorkerMessage.Find(name));
        }
    }

    private void tell(WorkerMessage message) {
        waiting.add(message);
        if (!isScheduled) {
            tellWaiting();
        }
    }

    private void tellWaiting() {
        long now = System.nanoTime();
        while (!waiting.isEmpty() && earliestNs - now <= (BURST - 1) * INTERVAL_NS) {
            earliestNs = Math.max(earliestNs - now, 0) + now + INTERVAL_NS;
            broker.accept(waiting.remove());
        }
        isScheduled = !waiting.isEmpty();
        if (isScheduled) {
            later.schedule(this::tellWaiting, TimeUnit.NANOSECONDS.toMillis(INTERVAL_NS));
        }
    }

    /**
     * The broker's answer to sharing. Control thread.
     *
     * @param name which.
     * @param isKept whether it can be found.
     */
    public void shared(String name, boolean isKept) {
        session.execute(() -> answer(sharing.remove(name), isKept));
    }

    /**
     * The broker's answer to a search. Control thread.
     *
     * @param name which.
     * @param handle in hexadecimal.
     * @param bytes as the other worker said.
     * @throws IOException if it is no handle.
     */
    public void found(String name, String handle, long bytes) throws IOException {
        byte[] parsed;
        try {
            parsed = HexFormat.of().parseHex(handle);
        } catch (IllegalArgumentException e) {
            throw new IOException("a handle must be hexadecimal", e);
        }
        if (parsed.length != MemorySharing.HANDLE_BYTES) {
            throw new IOException("a handle must have " + MemorySharing.HANDLE_BYTES + " bytes: bytes="
                + parsed.length);
        }
        session.execute(() -> answer(finding.remove(name), new Memory(parsed, bytes)));
    }

    /**
     * The broker's answer to a search. Control thread.
     *
     * @param name of which there is none.
     */
    public void notFound(String name) {
        session.execute(() -> answer(finding.remove(name), null));
    }

    private <T> void answer(List<Consumer<T>> asked, T answer) {
        if (asked == null) {
            throw new IllegalStateException("the broker answers what it was asked");
        }
        unanswered -= asked.size();
        asked.forEach(done -> done.accept(answer));
    }
}
