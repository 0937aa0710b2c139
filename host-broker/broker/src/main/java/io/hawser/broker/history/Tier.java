package io.hawser.broker.history;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The points of one series at one resolution: a ring of chunks. A chunk exists only when one of its points was set.
 * Guarded by its {@link History}.
 */
final class Tier {
    /** Points of one chunk. */
    static final int CHUNK_POINTS = 60;

    /** The chunks of all tiers of one resolution, the oldest first, and their limit. */
    static final class Budget {
        private final Deque<Chunk> chunks = new ArrayDeque<>();
        private final int max;

        Budget(int maxChunks) {
            max = maxChunks;
        }

        private void add(Chunk chunk) {
            chunks.addLast(chunk);
            while (chunks.size() > max) {
                chunks.removeFirst().drop();
            }
        }

        /** Drops the chunks that are older than their tier's period. */
        void expire(long tick) {
            while (!chunks.isEmpty() && (chunks.peekFirst().isGone() || chunks.peekFirst().isPast(tick))) {
                chunks.removeFirst().drop();
            }
        }

        int size() {
            return chunks.size();
        }
    }

    /** Consecutive points. */
    private final class Chunk {
        private final long number;
        private final short[] figures = new short[CHUNK_POINTS * Sample.FIGURES];

        Chunk(long number) {
            this.number = number;
        }

        /** Removes the chunk; when the budget forced this early, its points become unknown. */
        void drop() {
            int place = (int) (number % ring.length);
            if (ring[place] == this) {
                ring[place] = null;
                lost = Math.max(lost, number);
            }
        }

        boolean isGone() {
            return ring[(int) (number % ring.length)] != this;
        }

        boolean isPast(long tick) {
            return (number + ring.length) * CHUNK_POINTS * secondsAPoint <= tick;
        }
    }

    private final int secondsAPoint;
    private final Chunk[] ring;
    private final Budget budget;
    private long lost = -1; // the newest dropped chunk

    /**
     * Creates an empty tier.
     *
     * @param secondsAPoint distance of two points.
     * @param points number of points that the tier shows.
     */
    Tier(int secondsAPoint, int points, Budget budget) {
        this.secondsAPoint = secondsAPoint;
        this.budget = budget;
        ring = new Chunk[points / CHUNK_POINTS + 1];
    }

    /** Sets a point. Points that are not set are 0, since most vGPUs are idle most of the time. */
    void set(long point, double[] figures) {
        long number = point / CHUNK_POINTS;
        int place = (int) (number % ring.length);
        Chunk chunk = ring[place];
        if (chunk == null || chunk.number != number) {
            chunk = new Chunk(number);
            ring[place] = chunk;
            budget.add(chunk);
        }
        int at = (int) (point % CHUNK_POINTS) * Sample.FIGURES;
        for (int i = 0; i < Sample.FIGURES; i++) {
            chunk.figures[at + i] = Packed.of(figures[i]);
        }
    }

    /** One figure of a point; NaN when it is unknown. */
    double get(long point, int figure) {
        long number = point / CHUNK_POINTS;
        if (point < 0 || number <= lost && ring[(int) (number % ring.length)] == null) {
            return Double.NaN;
        }
        Chunk chunk = ring[(int) (number % ring.length)];
        if (chunk == null || chunk.number != number) {
            return 0;
        }
        return Packed.value(chunk.figures[(int) (point % CHUNK_POINTS) * Sample.FIGURES + figure]);
    }
}
