package io.hawser.worker.session;

import java.util.ArrayDeque;

/**
 * Prevents calls to the driver that would deadlock while a stream waits for the guest. A host function that was issued
 * and has not ended is a gate. A call that waits for the whole device, or for room in a stream's queue, would block
 * behind an open gate. It would block the session thread, and only that thread can close the gate. So calls of the
 * first kind are postponed ({@link #whenClosed}). Calls of the second kind cannot occur, because the session never
 * issues enough work to fill a queue ({@link #MAX_BEHIND}). Session thread only.
 *
 * <p>A gate opens when its host function has been issued. It closes when the guest has acknowledged, or at the latest
 * when the stream no longer waits. After {@link #close} the session runs postponed actions before its next flush.
 */
public final class Gates {
    /**
     * Records that are served behind the oldest open gate. Each puts one entry into a stream's queue, or reports more
     * with {@link #issued}. NVIDIA's driver (580.159, H200) accepts 1021 launches, copies and fills behind a host
     * function and blocks the thread that issues the next. Events, waits for events and further host functions do not
     * count.
     */
    public static final int MAX_BEHIND = 960;

    /**
     * Gates that may open while an action is postponed. Without the limit, a guest that always has an open gate would
     * postpone it forever.
     */
    private static final int MAX_OVERTAKES = 64;

    private final ArrayDeque<Gate> gates = new ArrayDeque<>(); // the oldest is open, later ones may be closed
    private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();
    private int openGates;
    private long issued;
    private int overtakes;

    /** Makes a set without gates. */
    Gates() {}

    /** A host function that was issued and has not ended. */
    public static final class Gate {
        private final long issuedBefore;
        private boolean isClosed;

        private Gate(long issuedBefore) {
            this.issuedBefore = issuedBefore;
        }
    }

    /**
     * Opens a gate, because a host function has been issued.
     *
     * @return the gate, for {@link #close}.
     */
    public Gate open() {
        Gate gate = new Gate(issued);
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

    /**
     * Counts work that enters streams. A record itself counts as one.
     *
     * @param operations entries of the driver's queue beyond the record's own.
     */
    public void issued(long operations) {
        issued += operations;
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
            waiting.add(action);
        }
    }

    /** Whether the next record must wait until a gate closes. */
    boolean mustHoldRecords() {
        return openGates > 0
            && (issued - gates.peek().issuedBefore >= MAX_BEHIND || overtakes >= MAX_OVERTAKES);
    }

    /** Runs postponed actions if no gate is open; returns whether any ran. */
    boolean runWaiting() {
        boolean any = false;
        while (openGates == 0 && !waiting.isEmpty()) {
            waiting.remove().run();
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
