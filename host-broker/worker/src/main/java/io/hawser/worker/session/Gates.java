package io.hawser.worker.session;

import java.util.ArrayDeque;

/**
 * Prevents calls to the driver that would deadlock while a stream waits for the guest. A host function that was issued
 * and has not ended is a gate. A call that waits for the whole device, or for room in a stream's queue, would block
 * behind an open gate. It would block the session thread, and only that thread can close the gate. So calls of the
 * first kind are postponed ({@link #whenClosed}). Calls of the second kind cannot occur, because the session never
 * leaves enough work unfinished to fill a queue ({@link #MAX_BEHIND}). Calls that issue no work are never held, so a
 * thread of the guest may poll for as long as it likes. Session thread only.
 *
 * <p>A gate opens when its host function has been issued. It closes when the guest has acknowledged, or at the latest
 * when the stream no longer waits. After {@link #close} the session runs postponed actions before its next flush.
 */
public final class Gates {
    /**
     * Unfinished entries of the streams' queues that were issued after the oldest open gate. NVIDIA's driver (580.159,
     * H200) accepts 1021 launches, copies, fills and waits for words behind a host function and blocks the thread that
     * issues the next. Events and waits for events do not count there. Streams can share a queue, so the limit is for
     * all streams together.
     */
    public static final int MAX_BEHIND = 960;

    /**
     * Entries for which a host function behind an open gate counts, beside its record. The same driver takes any number
     * of host functions alone, but only 56 in a stream with other work between them, and 247 in 24 streams.
     */
    public static final int HOST_FUNCTION = 19;

    /** The session learns of the end of entries in groups of this size, at the latest. */
    private static final int GROUP = MAX_BEHIND / 4;

    /**
     * Gates that may open while an action is postponed. Without the limit, a guest that always has an open gate would
     * postpone it forever.
     */
    private static final int MAX_OVERTAKES = 64;

    private final ArrayDeque<Gate> gates = new ArrayDeque<>(); // the oldest is open, later ones may be closed
    private final ArrayDeque<Waiting> waiting = new ArrayDeque<>();
    private int openGates;
    private long opened;
    private long issued;
    private long ended;
    private long grouped; // value of issued at the last group's end
    private int overtakes;

    /** Makes a set without gates. */
    Gates() {}

    /** A host function, or a copy to the guest that its stream waits for, that was issued and has not ended. */
    public static final class Gate {
        private final long number;
        private final long issuedBefore;
        private boolean isClosed;

        private Gate(long number, long issuedBefore) {
            this.number = number;
            this.issuedBefore = issuedBefore;
        }
    }

    /**
     * A postponed action.
     *
     * @param action the action.
     * @param gatesBefore gates that had been opened before it.
     */
    private record Waiting(Runnable action, long gatesBefore) {}

    /**
     * Opens a gate, because a host function has been issued.
     *
     * @return the gate, for {@link #close}.
     */
    public Gate open() {
        Gate gate = new Gate(++opened, issued);
        gates.add(gate);
        openGates++;
        if (!waiting.isEmpty()) {
            overtakes++;
        }
        return gate;
    }

    /**
     * Closes a gate, because its host function no longer waits for the guest.
     *
     * @param gate a gate from {@link #open}; a closed gate stays closed.
     */
    public void close(Gate gate) {
        if (gate.isClosed) {
            return;
        }
        gate.isClosed = true;
        openGates--;
        while (!gates.isEmpty() && gates.peek().isClosed) {
            gates.remove();
        }
    }

    /**
     * Whether a host function waits for the guest.
     *
     * @return true while calls that may wait for the device must not be made.
     */
    public boolean isOpen() {
        return openGates > 0;
    }

    /** Whether no host function waits for the guest, and nothing waits for one. */
    boolean isIdle() {
        return openGates == 0 && waiting.isEmpty();
    }

    /**
     * Counts work that enters a stream while a gate is open.
     *
     * @param entries entries of the driver's queue.
     * @return whether the caller must now arrange that {@link #ended} is called for all entries.
     */
    boolean issued(long entries) {
        issued += entries;
        if (issued - grouped < GROUP) {
            return false;
        }
        grouped = issued;
        return true;
    }

    /** Counts entries from {@link #issued} that have ended. */
    void ended(long entries) {
        ended += entries;
    }

    /**
     * Runs an action that may wait for the device: at once when no gate is open, else when no gate is open any more,
     * after the actions postponed earlier. Objects that the action uses may be gone by then, so it must check them.
     *
     * @param action runs on the session thread, in any context.
     */
    public void whenClosed(Runnable action) {
        if (openGates == 0 && waiting.isEmpty()) {
            action.run();
        } else {
            waiting.add(new Waiting(action, opened));
        }
    }

    /**
     * Whether no more work may be issued until a gate closes or work ends. Entries from before the oldest open gate can
     * count only as long as their end is not known.
     */
    boolean isFull() {
        return openGates > 0 && Math.min(issued - gates.peek().issuedBefore, issued - ended) >= MAX_BEHIND;
    }

    /**
     * Whether no gate may open until a postponed action has run. While a gate is open that is older than the action,
     * only the guest can let the action run, and the guest may need further gates for that.
     */
    boolean mustDrain() {
        return openGates > 0 && overtakes >= MAX_OVERTAKES && gates.peek().number > waiting.peek().gatesBefore;
    }

    /** Runs postponed actions if no gate is open; returns whether any ran. */
    boolean runWaiting() {
        boolean any = false;
        while (openGates == 0 && !waiting.isEmpty()) {
            waiting.remove().action.run();
            any = true;
        }
        if (waiting.isEmpty()) {
            overtakes = 0;
        }
        return any;
    }

    /** Drops postponed actions: the session is over. */
    void cancel() {
        waiting.clear();
    }
}
