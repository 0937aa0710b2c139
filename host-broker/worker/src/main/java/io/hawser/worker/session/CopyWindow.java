package io.hawser.worker.session;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * Bounds the copies between host and device that are in flight while vGPUs of different shares copy. The broker writes
 * on the page how many bytes a round may have. The driver serves the processes' copies in turn and passes on when a
 * process has none left. So a round is issued at once, and the next one begins when all of it is done. To the host and
 * to the device there are rounds of their own, because the GPU copies in both directions at once.
 *
 * <p>A copy that is longer than the rest of its round is issued in parts; its record is served once for each. A session
 * whose vGPU copies alone has no rounds. Each copy then costs a load. Session thread only.
 */
public final class CopyWindow {
    /** Where a request copies. */
    public enum Direction {
        /** From the host to the device. */
        TO_DEVICE,
        /** From the device to the host. */
        TO_HOST,
        /** It does not copy between host and device. */
        NONE;

        /** The direction of a copy between host and device. */
        public static Direction of(boolean toDevice) {
            return toDevice ? TO_DEVICE : TO_HOST;
        }
    }

    /**
     * If a round has not ended after this time, the next one begins. Its copies may wait for other work of their
     * streams, or for the guest.
     */
    static final long STALL_NS = 10_000_000;
    /** The least part of a copy; without it, the last part of a round could be a few bytes. */
    static final long LEAST_PART_BYTES = 64 * 1024;

    private static final int KIB = 1024;
    private static final long MS = 1_000_000;

    private static final class Round {
        private final List<StreamState> streams = new ArrayList<>();
        private long number;
        private long bytes; // issued
        private long beganNs;
        private boolean isFull;
        private int unreached; // streams of a full round that are not known to have done it

        private void begin(long nowNs) {
            number++;
            bytes = 0;
            beganNs = nowNs;
            isFull = false;
            streams.clear();
        }
    }

    private final Turns.Surroundings around;
    private final LongSupplier clock;
    private final Round toDevice = new Round();
    private final Round toHost = new Round();
    private TurnPage page = TurnPage.alone();
    private long copiedBytes;
    private boolean hasRung;
    private boolean isCheckScheduled;
    private long partOf; // sequence of the call that has been issued in part
    private long partBytes; // what has been issued of it

    /**
     * Starts without a page: copies are not limited.
     *
     * @param around functions of the session.
     * @param clock nanoseconds.
     */
    CopyWindow(Turns.Surroundings around, LongSupplier clock) {
        this.around = around;
        this.clock = clock;
    }

    /** Copies by a page. Call it before the first copy. */
    void use(TurnPage shared) {
        page = shared;
    }

    /** Whether there are rounds. */
    boolean isLimited() {
        return page.copies() > 0;
    }

    private Round round(Direction direction) {
        return direction == Direction.TO_DEVICE ? toDevice : toHost;
    }

    /**
     * Whether the next copy in a direction may be issued now. If not, the copy and all later records are held until
     * this returns true.
     */
    boolean mayCopy(Direction direction) {
        if (direction == Direction.NONE || !isLimited()) {
            return true;
        }
        Round round = round(direction);
        if (!round.isFull) {
            return true;
        }
        long now = clock.getAsLong();
        if (now - round.beganNs >= STALL_NS) {
            round.begin(now);
            return true;
        }
        if (!isCheckScheduled) {
            isCheckScheduled = true;
            around.checkAgain(() -> isCheckScheduled = false, (STALL_NS - (now - round.beganNs)) / MS + 1);
        }
        return false;
    }

    /** Whether a round waits for its end, which a polling thread learns sooner. */
    boolean isWorthPolling() {
        return toDevice.isFull || toHost.isFull;
    }

    /**
     * How much of a copy may be issued at once, when {@link #mayCopy}.
     *
     * @param direction not NONE.
     * @param bytes what is left of the copy.
     * @return at most that many.
     */
    public long part(Direction direction, long bytes) {
        int limit = page.copies();
        return limit <= 0 ? bytes
            : Math.min(bytes, Math.max(LEAST_PART_BYTES, (long) limit * KIB - round(direction).bytes));
    }

    /**
     * Counts a copy, or a part of one, that has been issued.
     *
     * @param direction not NONE.
     * @param stream its stream.
     */
    public void issued(Direction direction, long bytes, StreamState stream) {
        int limit = page.copies();
        if (limit == TurnPage.UNCOUNTED) {
            return;
        }
        copiedBytes += bytes;
        page.setCopied((int) (copiedBytes / TurnPage.COPIED_UNIT_BYTES));
        if (limit != TurnPage.REPORTED) {
            hasRung = false;
        } else if (!hasRung && bytes >= TurnPage.COPIED_UNIT_BYTES) {
            hasRung = true;
            around.ring(); // after the store; the broker reads the page after it has read the bell
        }
        if (limit <= 0) {
            return;
        }
        Round round = round(direction);
        long now = clock.getAsLong();
        if (round.bytes == 0 || round.isFull || now - round.beganNs >= STALL_NS) {
            round.begin(now); // full: the limit is new, or the copy was not asked for
        }
        round.bytes += bytes;
        if (!round.streams.contains(stream)) {
            round.streams.add(stream);
        }
        if (round.bytes >= (long) limit * KIB) {
            fill(round);
        }
    }

    private void fill(Round round) {
        if (round.streams.isEmpty()) { // all have been destroyed
            round.begin(clock.getAsLong());
            return;
        }
        round.isFull = true;
        round.unreached = round.streams.size();
        long number = round.number;
        for (StreamState stream : round.streams) {
            around.whenReached(stream, () -> reached(round, number));
        }
        round.streams.clear();
    }

    private void reached(Round round, long number) {
        if (round.number == number && --round.unreached == 0) {
            round.begin(clock.getAsLong());
        }
    }

    /** Forgets a stream that is about to be destroyed. Its copies of a round that is not full count as done. */
    void forget(StreamState stream) {
        toDevice.streams.remove(stream);
        toHost.streams.remove(stream);
    }

    /**
     * What has been issued of a call's copy.
     *
     * @param sequence the call's.
     * @return bytes; 0 for a call that is served for the first time.
     */
    public long issuedOf(long sequence) {
        return partOf == sequence ? partBytes : 0;
    }

    /** Sequence of the call that has been issued in part; 0 for none. */
    long partOf() {
        return partOf;
    }

    /**
     * Notes what has been issued of a call's copy, which goes on when its record is served again.
     *
     * @param bytes all of it so far, less than the copy.
     */
    public void interrupt(long sequence, long bytes) {
        partOf = sequence;
        partBytes = bytes;
    }
}
