package io.hawser.worker.session;

import io.hawser.shm.os.Descriptors;
import io.hawser.worker.control.BrokerMessage;
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
import java.util.function.IntConsumer;

/**
 * Names by which sessions of one vGPU find each other's memory. The broker keeps the table; its entries come from other
 * sessions' workers. Session thread, except where a method names another.
 */
public final class SharedNames {
    /** For a session without a broker: it keeps no names and finds none. */
    public static final SharedNames NONE = new SharedNames(null, null, Runnable::run, (task, delayMs) -> {});

    private static final int MAX_UNANSWERED = 1024; // limits requests of a guest's threads that wait here
    // The broker ends a worker that sends more than 200 messages in a second; at most 70 of them are for names.
    private static final long INTERVAL_NS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final int BURST = 20;

    /** Runs a task on the session thread, later. */
    @FunctionalInterface
    public interface Later {
        /**
         * See the link's method.
         *
         * @param task the task.
         * @param delayMs the delay.
         */
        void schedule(Runnable task, long delayMs);
    }

    /** The descriptor of memory that has none. */
    public static final int NO_DESCRIPTOR = -1;

    /**
     * Memory of a session. All values of another session's memory come from that session's worker and may be false.
     *
     * @param handle what the importing worker needs beside the descriptor, at least a byte; the driver's handle, for
     *     example.
     * @param bytes length of the allocation.
     * @param column of its GPU in the vGPU's ledger.
     * @param descriptor of the memory; can be of any file.
     */
    public record Memory(byte[] handle, long bytes, int column, int descriptor) {
        /** Whether the memory has a descriptor. */
        public boolean isPassed() {
            return descriptor != NO_DESCRIPTOR;
        }
    }

    /** A message that waits for its turn. */
    private record Outgoing(WorkerMessage message, int descriptor) {}

    /** Memory of one name that has been found and not released. */
    private static final class Imports {
        int found; // as the broker counts
        int uses; // as callers do: several wait for one answer
    }

    private final Consumer<WorkerMessage> broker;
    private final IntConsumer passer;
    private final Executor session;
    private final Later later;
    private final Map<String, List<Consumer<Boolean>>> sharing = new HashMap<>();
    private final Map<String, List<Consumer<Memory>>> finding = new HashMap<>();
    private final Map<String, Queue<Runnable>> unsharing = new HashMap<>();
    private final Map<String, Imports> imports = new HashMap<>();
    private final Queue<Outgoing> waiting = new ArrayDeque<>();
    private int unanswered;
    private boolean isScheduled;
    private long earliestNs = System.nanoTime();

    /**
     * Starts without names.
     *
     * @param broker sends a message to the broker, on the session thread; null without a broker.
     * @param passer passes a descriptor to the broker, on the session thread; null where it cannot.
     * @param session runs tasks on the session thread.
     * @param later runs tasks on the session thread after a delay.
     */
    public SharedNames(Consumer<WorkerMessage> broker, IntConsumer passer, Executor session, Later later) {
        this.broker = broker;
        this.passer = passer;
        this.session = session;
        this.later = later;
    }

    /**
     * Lets other sessions find memory.
     *
     * @param name 32 hexadecimal digits.
     * @param memory the memory; its descriptor is closed once the broker has one of its own.
     * @param charge the charge for the memory; null for what costs nothing.
     * @param done called on the session thread: whether other sessions can find it.
     */
    public void share(String name, Memory memory, MemoryQuota.Charge charge, Consumer<Boolean> done) {
        if (broker == null || unanswered >= MAX_UNANSWERED || memory.isPassed() && passer == null) {
            close(memory.descriptor);
            done.accept(false);
            return;
        }
        unanswered++;
        List<Consumer<Boolean>> asked = sharing.computeIfAbsent(name, key -> new ArrayList<>());
        asked.add(done);
        if (asked.size() == 1) {
            enqueue(new WorkerMessage.Share(name, HexFormat.of().formatHex(memory.handle), memory.bytes, memory.column,
                charge == null ? 0 : charge.bytes(), memory.isPassed()), memory.descriptor);
        } else {
            close(memory.descriptor);
        }
    }

    /**
     * Removes a name, so that no session finds the memory any more.
     *
     * @param name a shared name.
     */
    public void unshare(String name) {
        unshare(name, () -> {});
    }

    /**
     * Removes a name, so that no session finds the memory any more.
     *
     * @param name a shared name.
     * @param done runs on the session thread once the broker counts the memory that other sessions still have open.
     */
    public void unshare(String name, Runnable done) {
        if (broker == null) {
            done.run();
            return;
        }
        unsharing.computeIfAbsent(name, key -> new ArrayDeque<>()).add(done);
        enqueue(new WorkerMessage.Unshare(name));
    }

    /** Call once for each memory that {@link #find} returned, after it was closed or could not be opened. */
    public void release(String name) {
        Imports imported = imports.get(name);
        if (--imported.uses == 0) {
            imports.remove(name);
            for (int i = 0; i < imported.found; i++) {
                enqueue(new WorkerMessage.Release(name));
            }
        }
    }

    /**
     * Reports to the broker, once, that a fault has destroyed the session's state on its GPU; {@code result} is a
     * CUresult.
     */
    void lost(int result) {
        if (broker != null) {
            // Sent without pacing: under MPS the broker must recover the other sessions at once.
            broker.accept(new WorkerMessage.Lost(result));
        }
    }

    /**
     * Searches for memory of another session.
     *
     * @param name 32 hexadecimal digits.
     * @param done receives the memory on the session thread, or null when there is none. The memory's descriptor is
     *     closed after this call.
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
            enqueue(new WorkerMessage.Find(name));
        }
    }

    private static void close(int descriptor) {
        if (descriptor != NO_DESCRIPTOR) {
            Descriptors.close(descriptor);
        }
    }

    private void enqueue(WorkerMessage message) {
        enqueue(message, NO_DESCRIPTOR);
    }

    private void enqueue(WorkerMessage message, int descriptor) {
        waiting.add(new Outgoing(message, descriptor));
        if (!isScheduled) {
            sendWaiting();
        }
    }

    private void sendWaiting() {
        long now = System.nanoTime();
        while (!waiting.isEmpty() && earliestNs - now <= (BURST - 1) * INTERVAL_NS) {
            earliestNs = Math.max(earliestNs - now, 0) + now + INTERVAL_NS;
            Outgoing next = waiting.remove();
            if (next.descriptor != NO_DESCRIPTOR) {
                passer.accept(next.descriptor);
                close(next.descriptor);
            }
            broker.accept(next.message);
        }
        isScheduled = !waiting.isEmpty();
        if (isScheduled) {
            later.schedule(this::sendWaiting, TimeUnit.NANOSECONDS.toMillis(INTERVAL_NS));
        }
    }

    /**
     * Takes the broker's reply to {@link #share}. Control thread.
     *
     * @param name the name.
     * @param isKept whether other sessions can find it.
     */
    public void shared(String name, boolean isKept) {
        session.execute(() -> answer(sharing.remove(name), isKept));
    }

    /**
     * Takes the broker's reply to {@link #unshare(String, Runnable)}. Control thread.
     *
     * @param name the name.
     */
    public void unshared(String name) {
        session.execute(() -> {
            Queue<Runnable> asked = unsharing.get(name);
            if (asked == null) {
                throw new IllegalStateException("the broker must reply only to a request: name=" + name);
            }
            Runnable done = asked.remove();
            if (asked.isEmpty()) {
                unsharing.remove(name);
            }
            done.run();
        });
    }

    /**
     * Takes the broker's reply to {@link #find}. Control thread.
     *
     * @param found the reply; its values are the other worker's.
     * @param descriptor the memory's, this object's from now on.
     * @throws IOException if the handle is malformed, which the broker prevents.
     */
    public void found(BrokerMessage.Found found, int descriptor) throws IOException {
        String name = found.name();
        byte[] parsed;
        try {
            parsed = HexFormat.of().parseHex(found.handle());
        } catch (IllegalArgumentException e) {
            throw new IOException("a handle must be hexadecimal", e);
        }
        session.execute(() -> {
            List<Consumer<Memory>> asked = finding.remove(name);
            if (asked != null) {
                Imports imported = imports.computeIfAbsent(name, key -> new Imports());
                imported.found++;
                imported.uses += asked.size();
            }
            try {
                answer(asked, new Memory(parsed, found.bytes(), found.column(), descriptor));
            } finally {
                close(descriptor);
            }
        });
    }

    /**
     * Takes the broker's reply that no memory has a name. Control thread.
     *
     * @param name the name.
     */
    public void notFound(String name) {
        session.execute(() -> answer(finding.remove(name), null));
    }

    private <T> void answer(List<Consumer<T>> asked, T answer) {
        if (asked == null) {
            throw new IllegalStateException("a reply of the broker must belong to a request");
        }
        unanswered -= asked.size();
        asked.forEach(done -> done.accept(answer));
    }
}
