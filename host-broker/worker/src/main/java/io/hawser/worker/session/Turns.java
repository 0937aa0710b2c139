package io.hawser.worker.session;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * When this session may launch kernels and graphs, where it shares its GPU with others: the broker says so on a page
 * ({@link TurnPage}), and this says there what the session wants and has running. Copies and all else are not asked
 * for. Session thread only.
 *
 * <p>A kernel that is issued cannot be taken back. So where others have the GPU as well, no more is issued than takes
 * about {@link #TARGET_NS}, as far as the last launches tell: that much is left when a turn is over. A session that is
 * alone on its GPU has no such limit, and pays one load a launch.
 */
public final class Turns {
    /** What is issued and not done should take about so long: enough that a GPU never waits for the next launch. */
    private static final long TARGET_NS = 500_000;
    /** Up to this length a launch is issued behind the one that runs, so that the GPU does not wait for it. */
    private static final long PAIR_NS = 2_000_000;
    /** Launches in flight; what a session that has only launched short kernels can have of long ones at most. */
    static final int MAX_WINDOW = 128;
    private static final int FIRST_WINDOW = 2;
    /**
     * Without an end of work for so long, or four times what a launch has taken, more is issued: what runs may wait for
     * what is held here (a stream for a value, a kernel for another one).
     */
    private static final long STALL_NS = 20_000_000;
    private static final long MAX_STALL_NS = 1_000_000_000;
    private static final long MS = 1_000_000;
    /** Ends of work of a session that is alone and does not ask: looked for after so long, for the statistics. */
    private static final long LATE_LOOK_MS = 2;

    /** How long a session thread asks rather than sleeps, and on how many processors. */
    private static final long PATIENCE_NS = 20_000_000;
    /** The same of one that waits for its turn and is not the next: turns that pass quickly come back sooner. */
    private static final long WAITING_PATIENCE_NS = 1_000_000;
    private static final boolean IS_SMALL_MACHINE = Runtime.getRuntime().availableProcessors() < 8;

    /** What the rest of the session does for this. Session thread. */
    interface Surroundings {
        /** Calls {@link #reached} when what is launched on a stream so far is done. */
        void mark(StreamState stream);

        /** Calls {@link Session}'s settling after a time, in milliseconds. */
        void lookAgain(long delayMs);

        /** Wakes the broker, so that it looks at the page. */
        void ring();
    }

    private final Surroundings around;
    private final LongSupplier clock;
    private TurnPage page = TurnPage.alone();
    private final List<StreamState> running = new ArrayList<>(); // streams with launches that are not known to be done
    private long sequence;
    private long inFlight;
    private int window = FIRST_WINDOW;
    private long costNs; // of a launch, as the last batch was
    private long stallNs = STALL_NS;
    private long progressNs;
    private boolean busy; // the page says BUSY, and so for something
    private boolean holding; // a launch waits, for a turn or for the window
    private boolean waiting; // for a turn
    private boolean lateLook;
    private int seenPermit;
    private long busySinceNs;
    private long waitSinceNs;
    private long nextSinceNs;
    private long gpuTimeNs;
    private long waitedNs;

    /**
     * For a session that is alone, until {@link #use}.
     *
     * @param around what the session does.
     * @param clock nanoseconds.
     */
    Turns(Surroundings around, LongSupplier clock) {
        this.around = around;
        this.clock = clock;
    }

    /** Takes turns by a page. Before the first launch. */
    void use(TurnPage shared) {
        page = shared;
        page.state(TurnPage.IDLE);
    }

    /**
     * Whether the next launch may be issued now: if so {@link #issued} is called next. If not it is held, with
     * all that comes behind it, until this says yes.
     */
    boolean mayLaunch() {
        int permit = page.permit();
        return permit == TurnPage.FREE && busy && !holding || ask(permit);
    }

    private boolean ask(int first) {
        int permit = first;
        boolean hasSaid = !TurnPage.isWait(permit) && !busy;
        if (hasSaid) {
            page.state(TurnPage.BUSY); // and then looks again: pairs with the broker's look after it stores WAIT
            permit = page.permit();
        }
        seenPermit = permit;
        long now = clock.getAsLong();
        if (TurnPage.isWait(permit)) {
            await(now, hasSaid);
            return false;
        }
        if (!busy) {
            busy = true;
            busySinceNs = now;
            progressNs = now;
        }
        if (waiting) {
            waiting = false;
            waitedNs += now - waitSinceNs;
        }
        if (permit != TurnPage.FREE && inFlight >= window && !isStalled(now)) {
            holding = true;
            markAll();
            around.lookAgain(stallNs / MS + 1);
            return false;
        }
        holding = false;
        return true;
    }

    /** It is not this vGPU's turn; {@code hasSaid}: the broker may have seen it launch. */
    private void await(long now, boolean hasSaid) {
        holding = true;
        boolean isNew = !waiting;
        if (isNew) {
            waiting = true;
            waitSinceNs = now;
        }
        if (busy) {
            markAll();
        } else if (isNew || hasSaid) {
            page.state(TurnPage.WANTS);
            around.ring(); // after the store; the broker looks at the page when it reads the bell
        }
    }

    private boolean isStalled(long now) {
        if (now - progressNs < stallNs) {
            return false;
        }
        progressNs = now;
        stallNs = Math.min(2 * stallNs, MAX_STALL_NS);
        inFlight -= window; // a window more than what is in flight; the count is right again when it all has ended
        return true;
    }

    /**
     * What {@link #mayLaunch} has allowed has been served.
     *
     * @param stream to which it went, or should have; null when it named none.
     */
    void issued(StreamState stream) {
        if (stream == null) {
            if (busy && running.isEmpty()) {
                drained(clock.getAsLong());
            }
            return;
        }
        if (!stream.isRunning()) {
            running.add(stream);
        }
        stream.launch(++sequence);
        inFlight++;
        if (seenPermit != TurnPage.FREE && stream.unwatched() >= Math.max(1, window / 2)) {
            around.mark(stream);
        }
    }

    /**
     * Number of the last launch, for {@link #contextReached}.
     *
     * @return counts up from 1; 0 before the first.
     */
    public long last() {
        return sequence;
    }

    /**
     * The first launches of a stream are done.
     *
     * @param launches so many.
     */
    void reached(StreamState stream, long launches) {
        long done = stream.reach(launches);
        if (done <= 0) {
            return;
        }
        long now = clock.getAsLong();
        adapt(done, now);
        inFlight = Math.max(0, inFlight - done);
        if (!stream.isRunning()) {
            running.remove(stream);
            if (running.isEmpty()) {
                drained(now);
            }
        } else if (isAwaited(seenPermit) && !stream.isWatched()) {
            around.mark(stream);
        }
    }

    /** Whether others wait for the end of what runs. */
    private static boolean isAwaited(int permit) {
        return permit == TurnPage.TURN || TurnPage.isWait(permit);
    }

    /**
     * All launches of a context up to one are done.
     *
     * @param context native.
     * @param number what {@link #last} has answered.
     */
    public void contextReached(long context, long number) {
        if (running.isEmpty()) {
            return;
        }
        for (StreamState stream : List.copyOf(running)) {
            if (stream.context() == context && stream.lastLaunch() <= number) {
                reached(stream, stream.launches());
            }
        }
    }

    private void adapt(long done, long now) {
        costNs = Math.max(1, (now - progressNs) / done);
        progressNs = now;
        stallNs = Math.min(Math.max(STALL_NS, 4 * costNs), 4 * MAX_STALL_NS);
        long fitting = TARGET_NS / costNs;
        window = (int) Math.clamp(Math.min(fitting, 2L * window), costNs < PAIR_NS ? 2 : 1, MAX_WINDOW);
    }

    private void drained(long now) {
        busy = false;
        inFlight = 0;
        gpuTimeNs += now - busySinceNs;
        page.state(holding ? TurnPage.WANTS : TurnPage.IDLE);
        int permit = page.permit(); // pairs with the broker's look at the state after it stores the permit
        if (TurnPage.isWait(permit) || permit == TurnPage.TURN && !holding) {
            around.ring();
        }
    }

    /** Watches for the end of all that runs. Before a sleep, too. */
    void markAll() {
        for (int i = running.size() - 1; i >= 0; i--) {
            if (running.get(i).unwatched() > 0) {
                around.mark(running.get(i));
            }
        }
    }

    /**
     * What had come from the guest has been served.
     *
     * @param asks whether {@link #poll} is called from now on, and {@link #markAll} before a sleep.
     */
    void served(boolean asks) {
        if (!busy) {
            return;
        }
        if (isAwaited(page.permit())) {
            for (int i = running.size() - 1; i >= 0; i--) {
                if (!running.get(i).isWatched()) { // else the next one follows when that one is reached
                    around.mark(running.get(i));
                }
            }
        } else if (!asks && !lateLook) {
            lateLook = true;
            around.lookAgain(LATE_LOOK_MS);
        }
    }

    /** What {@link Surroundings#lookAgain} was asked for, and any other chance. */
    void look() {
        if (lateLook) {
            lateLook = false;
            markAll();
        }
    }

    /** Whether something that is held can be issued now. While the session thread has nothing to do. */
    boolean poll() {
        int permit = page.permit();
        if (permit == seenPermit) {
            return false;
        }
        seenPermit = permit;
        if (isAwaited(permit)) {
            markAll(); // somebody waits for the end of what runs
        }
        nextSinceNs = permit == TurnPage.NEXT ? clock.getAsLong() : nextSinceNs;
        return waiting && !TurnPage.isWait(permit);
    }

    /** Whether a thread may ask rather than sleep on this machine. */
    boolean spins() {
        return !IS_SMALL_MACHINE;
    }

    /** Whether a launch is held until it is this vGPU's turn. */
    boolean isWaiting() {
        return waiting;
    }

    /**
     * Whether a session thread with nothing to do should rather go on to {@link #poll} than sleep: others wait for the
     * end of its work, or it for its turn, so that the time to wake up would be the GPU's.
     */
    boolean isWorthPolling() {
        if (IS_SMALL_MACHINE || !waiting && !busy) {
            return false;
        }
        long now = clock.getAsLong();
        return waiting && (now - waitSinceNs < WAITING_PATIENCE_NS
                || seenPermit == TurnPage.NEXT && now - nextSinceNs < PATIENCE_NS)
            || busy && (holding || isAwaited(seenPermit)) && now - progressNs < PATIENCE_NS;
    }

    /** Time in which launches of this session were running or waiting behind others of it, in milliseconds. */
    long gpuTimeMs() {
        return (gpuTimeNs + (busy ? clock.getAsLong() - busySinceNs : 0)) / MS;
    }

    /** Time in which a launch was held until it was this vGPU's turn, in milliseconds. */
    long waitedMs() {
        return (waitedNs + (waiting ? clock.getAsLong() - waitSinceNs : 0)) / MS;
    }
}
