package io.hawser.worker.session;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * Decides when this session may launch kernels and graphs on a GPU that it shares. The broker writes a permit on a page
 * ({@link TurnPage}). This class writes there whether the session wants to launch and whether launches are running.
 * Copies need no permit, but have rounds ({@link CopyWindow}); other work has neither. Session thread only.
 *
 * <p>An issued kernel cannot be taken back. So while others use the GPU too, the launches in flight take together about
 * {@link #TARGET_NS}, estimated from the last launches. This bounds the work that is left when a turn ends. A session
 * that is alone on its GPU has no such limit; each launch then costs one load.
 */
public final class Turns {
    /** Time that the launches in flight should take: long enough that the GPU never waits for the next launch. */
    private static final long TARGET_NS = 500_000;
    /** Up to this length, a launch is issued behind the running one, so that the GPU does not wait for it. */
    private static final long PAIR_NS = 2_000_000;
    /** Limit of launches in flight. After short kernels, a session can have at most so many long ones in flight. */
    static final int MAX_WINDOW = 128;
    private static final int FIRST_WINDOW = 2;
    /**
     * If no work has ended for this time, or for four times the length of a launch, more is issued. Running work may
     * wait for held launches: a stream for a value, a kernel for another kernel.
     */
    private static final long STALL_NS = 20_000_000;
    private static final long MAX_STALL_NS = 1_000_000_000;
    private static final long MS = 1_000_000;
    /** Delay of the check for ended work, for the statistics, of a session that is alone and does not poll. */
    private static final long LATE_CHECK_MS = 2;

    /** Longest time that a session thread polls instead of sleeping, on machines with enough processors. */
    private static final long PATIENCE_NS = 20_000_000;
    /**
     * The same for a thread that waits for its turn and is not the next one. Shorter, because only fast turns come back
     * within it.
     */
    private static final long WAITING_PATIENCE_NS = 1_000_000;
    private static final boolean IS_SMALL_MACHINE = Runtime.getRuntime().availableProcessors() < 8;

    /** Functions of the session that this class needs. Session thread. */
    interface Surroundings {
        /** Calls {@link #reached} when all launches on a stream so far are done. */
        void mark(StreamState stream);

        /** Runs a check and serves held records after a delay in milliseconds. */
        void checkAgain(Runnable check, long delayMs);

        /** Runs an action on the session thread when all work on a stream so far is done or has failed. */
        void whenReached(StreamState stream, Runnable action);

        /** Wakes the broker, so that it reads the page. */
        void ring();
    }

    private final Surroundings around;
    private final LongSupplier clock;
    private final CopyWindow copies;
    private TurnPage page = TurnPage.alone();
    private final List<StreamState> running = new ArrayList<>(); // streams with launches that are not known to be done
    private long sequence;
    private long inFlight;
    private int window = FIRST_WINDOW;
    private long costNs; // time of one launch in the last batch
    private long stallNs = STALL_NS;
    private long progressNs;
    private boolean busy; // the page has state BUSY, and launches are running or about to be issued
    private boolean holding; // a launch waits, for a turn or for the window
    private boolean waiting; // a launch waits for a turn
    private final Runnable lateCheck = this::checkLate;
    private final Runnable stallCheck = this::checkStall;
    private boolean isLateCheckScheduled;
    private long stallCheckNs = Long.MAX_VALUE; // when the next one is due; a held launch asks often
    private int seenPermit;
    private long busySinceNs;
    private long waitSinceNs;
    private long nextSinceNs;
    private long gpuTimeNs;
    private long waitedNs;

    /**
     * Starts without a page: the session is alone until {@link #use}.
     *
     * @param around functions of the session.
     * @param clock nanoseconds.
     */
    Turns(Surroundings around, LongSupplier clock) {
        this.around = around;
        this.clock = clock;
        copies = new CopyWindow(around, clock);
    }

    /** The rounds of copies by the same page. */
    public CopyWindow copies() {
        return copies;
    }

    /** Takes turns by a page. Call it before the first launch. */
    void use(TurnPage shared) {
        page = shared;
        copies.use(shared);
        page.setState(TurnPage.IDLE);
    }

    /**
     * Whether the next launch may be issued now. If so, {@link #issued} must follow. If not, the launch and all later
     * records are held until this returns true.
     */
    boolean mayLaunch() {
        int permit = page.permit();
        return permit == TurnPage.FREE && busy && !holding || requestTurn(permit);
    }

    private boolean requestTurn(int first) {
        int permit = first;
        boolean hasAnnounced = !TurnPage.isWait(permit) && !busy;
        if (hasAnnounced) {
            // The permit is read again after this store; pairs with the broker, which stores WAIT and then reads the
            // state.
            page.setState(TurnPage.BUSY);
            permit = page.permit();
        }
        seenPermit = permit;
        long now = clock.getAsLong();
        if (TurnPage.isWait(permit)) {
            await(now, hasAnnounced);
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
            scheduleStallCheck(now);
            return false;
        }
        holding = false;
        return true;
    }

    /** It is not this vGPU's turn; {@code hasAnnounced}: the broker may have read state BUSY. */
    private void await(long now, boolean hasAnnounced) {
        holding = true;
        boolean isNew = !waiting;
        if (isNew) {
            waiting = true;
            waitSinceNs = now;
        }
        if (busy) {
            markAll();
        } else if (isNew || hasAnnounced) {
            page.setState(TurnPage.WANTS);
            around.ring(); // after the store; the broker reads the page after it has read the bell
        }
    }

    /** Withdraws a held launch: it is served later, after a new {@link #mayLaunch}. No launch is running. */
    void withdraw() {
        if (waiting) {
            waiting = false;
            waitedNs += clock.getAsLong() - waitSinceNs;
        }
        if (holding) {
            holding = false;
            page.setState(TurnPage.IDLE);
            around.ring();
        }
    }

    private void scheduleStallCheck(long now) {
        long due = progressNs + stallNs;
        if (due < stallCheckNs) {
            stallCheckNs = due;
            around.checkAgain(stallCheck, (due - now) / MS + 1);
        }
    }

    private void checkStall() {
        if (clock.getAsLong() >= stallCheckNs) { // else an earlier check, whose time another one has shortened
            stallCheckNs = Long.MAX_VALUE;
        }
    }

    private boolean isStalled(long now) {
        if (now - progressNs < stallNs) {
            return false;
        }
        progressNs = now;
        stallNs = Math.min(2 * stallNs, MAX_STALL_NS);
        // Allows one more window in flight. The count is correct again once all launches have ended.
        inFlight -= window;
        return true;
    }

    /**
     * Counts a launch that {@link #mayLaunch} has allowed and that has been served.
     *
     * @param stream its stream, even when the launch failed; null when the call named none.
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
     * Records that the first launches of a stream are done.
     *
     * @param launches their number.
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

    /** Whether others wait for the end of running launches. */
    private static boolean isAwaited(int permit) {
        return permit == TurnPage.TURN || TurnPage.isWait(permit);
    }

    /**
     * Records that all launches of a context up to one are done.
     *
     * @param context native context.
     * @param number result of {@link #last}.
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
        window = Math.clamp(Math.min(fitting, 2L * window), costNs < PAIR_NS ? 2 : 1, MAX_WINDOW);
    }

    private void drained(long now) {
        busy = false;
        inFlight = 0;
        gpuTimeNs += now - busySinceNs;
        page.setState(holding ? TurnPage.WANTS : TurnPage.IDLE);
        int permit = page.permit(); // pairs with the broker, which stores the permit and then reads the state
        if (TurnPage.isWait(permit) || permit == TurnPage.TURN && !holding) {
            around.ring();
        }
    }

    /** Sets markers behind all running launches. Also called before a sleep. */
    void markAll() {
        for (int i = running.size() - 1; i >= 0; i--) {
            if (running.get(i).unwatched() > 0) {
                around.mark(running.get(i));
            }
        }
    }

    /**
     * Called after all received records have been served.
     *
     * @param isPolled whether {@link #poll} is called from now on, and {@link #markAll} before a sleep.
     */
    void served(boolean isPolled) {
        if (!busy) {
            return;
        }
        if (isAwaited(page.permit())) {
            for (int i = running.size() - 1; i >= 0; i--) {
                if (!running.get(i).isWatched()) { // otherwise the next marker is set when the present one is reached
                    around.mark(running.get(i));
                }
            }
        } else if (!isPolled && !isLateCheckScheduled) {
            isLateCheckScheduled = true;
            around.checkAgain(lateCheck, LATE_CHECK_MS);
        }
    }

    private void checkLate() {
        isLateCheckScheduled = false;
        markAll();
    }

    /** Whether a held launch can be issued now. Called while the session thread is idle. */
    boolean poll() {
        int permit = page.permit();
        if (permit == seenPermit) {
            return false;
        }
        seenPermit = permit;
        if (isAwaited(permit)) {
            markAll(); // others wait for the end of running launches
        }
        nextSinceNs = permit == TurnPage.NEXT ? clock.getAsLong() : nextSinceNs;
        return waiting && !TurnPage.isWait(permit);
    }

    /** Whether a thread may poll instead of sleeping on this machine. */
    boolean spins() {
        return !IS_SMALL_MACHINE;
    }

    /** Whether a launch is held until it is this vGPU's turn. */
    boolean isWaiting() {
        return waiting;
    }

    /**
     * Whether an idle session thread should continue to {@link #poll} instead of sleeping. It should when others wait
     * for the end of its work or it waits for its turn: the GPU would idle during its wake-up.
     */
    boolean isWorthPolling() {
        if (IS_SMALL_MACHINE) {
            return false;
        }
        if (copies.isWorthPolling()) {
            return true;
        }
        if (!waiting && !busy) {
            return false;
        }
        long now = clock.getAsLong();
        return waiting && (now - waitSinceNs < WAITING_PATIENCE_NS
            || seenPermit == TurnPage.NEXT && now - nextSinceNs < PATIENCE_NS)
            || busy && (holding || isAwaited(seenPermit)) && now - progressNs < PATIENCE_NS;
    }

    /** Time during which launches of this session were running or waiting behind others of it, in milliseconds. */
    long gpuTimeMs() {
        return (gpuTimeNs + (busy ? clock.getAsLong() - busySinceNs : 0)) / MS;
    }

    /** Time during which a launch was held until it was this vGPU's turn, in milliseconds. */
    long waitedMs() {
        return (waitedNs + (waiting ? clock.getAsLong() - waitSinceNs : 0)) / MS;
    }
}
