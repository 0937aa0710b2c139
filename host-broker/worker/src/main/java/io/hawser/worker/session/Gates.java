package io.hawser.worker.session;

import java.util.ArrayDeque;

/**
 * What must not be asked of a driver while a stream waits for the guest: a host function that was issued and is not
 * over is a gate. A call that waits for the whole device, or for room in a stream's queue, would wait behind an open
 * gate on the thread that alone can close it. So the first kind is put off ({@link #whenClosed}), and the second
 * cannot occur, since so much is never issued ({@link #MAX_BEHIND}). Session thread only.
 *
 * <p>A gate is opened when its host function has been issued, and closed when the guest has answered, or at the latest
 * when the stream no longer waits. After {@link #close} the session looks, before it sends what has gathered, whether
 * something put off can run.
 */
public final class Gates {
    /**
     * Records that are served behind the oldest open gate. Each puts one entry into a stream's queue, or says more by
     * {@link #issued}. NVIDIA's driver (580.159, H200) takes 1021 launches, copies and fills behind a host function and
     * makes the thread wait that issues the next; events, waits for them and further host functions do not count.
     */
    public static final int MAX_BEHIND = 960;

    /** Gates that open while something is put off; with more, a guest that always has one would put it off for ever. */
    private static final int MAX_OVERTAKES = 64;

    private final ArrayDeque<Gate> gates = new ArrayDeque<>(); // the oldest is open, later ones may be closed
    private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();
    private int openGates;
    private long issued;
    private int overtakes;

    /** Makes a set without gates. */
    Gates() { }

    /** One host function that is issued and not over. */
    public static final class Gate {
        private final long issuedBefore;
        private boolean isClosed;

        private Gate(long issuedBefore) {
            this.issuedBefore = issuedBefore;
        }
    }

    /**
     * A host function has been issued.
     *
     * @return what {@link #close} takes.
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
     * A host function does not wait for the guest any more.
     *
     * @param gate what {@link #open} gave; closed ones are left as they are.
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
     * Counts work that goes into streams. A record counts for one by itself.
     *
     * @param operations entries of the driver's queue beyond the record's own.
     */
    public void issued(long operations) {
        issued += operations;
    }

    /**
     * Runs an action that may wait for the device: at once when no gate is open, else when none is, behind those put
     * off before. What the action touches may be gone by then: it looks again.
     *
     * @param action run on the session thread, in no particular context.
     */
    public void whenClosed(Runnable action) {
        if (openGates == 0 && waiting.isEmpty()) {
            action.run();
        } else {
            waiting.add(action);
        }
    }

    /** Whether the next record has to wait for a gate to close. */
    boolean holdRecords() {
        return openGates > 0
            && (issued - gates.peek().issuedBefore >= MAX_BEHIND || overtakes >= MAX_OVERTAKES);
    }

    /** Runs what was put off, if no gate is open; whether something was. */
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

    /** Forgets what was put off: the session is over. */
    void cancel() {
        waiting.clear();
    }
}
