package io.hawser.broker.history;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The series of the broker, its GPUs and its vGPUs. One thread adds, any thread reads. What never was costs nothing: a
 * vGPU that does nothing has no points.
 */
public final class History {
    /** Most points of an answer. */
    static final int MAX_POINTS = 960;
    /**
     * By the second, 11 MiB: a chunk has 60 points of 8 figures of 2 bytes, so that 1,000 things can be busy. When they
     * are used up, the oldest goes first.
     */
    static final int MAX_FINE_CHUNKS = 11_000;
    /** By 15 seconds, 22 MiB: 240 things that are busy all day. */
    static final int MAX_COARSE_CHUNKS = 23_000;
    /** Place of a figure that is averaged over what is known of it. */
    static final int UTILIZATION = 6;
    /** A pause of the process up to this many seconds is filled with what was measured over it. */
    private static final int MAX_PAUSE_SECONDS = 60;

    /** Whose series it is; {@code id} is a GPU's UUID, a vGPU's name, or empty for the broker. */
    public record Key(Kind kind, String id) {
        /** The broker itself. */
        public static final Key BROKER = new Key(Kind.BROKER, "");
    }

    /** What has a series. */
    public enum Kind { BROKER, GPU, VGPU }

    private final Tier.Budget fine;
    private final Tier.Budget coarse;
    private final Map<Key, Series> series = new HashMap<>();
    private final long firstTick;
    private long lastTick;

    /**
     * Makes an empty history.
     *
     * @param firstTick the present second, counted by a clock that never jumps; from a whole day up.
     */
    public History(long firstTick) {
        this(firstTick, MAX_FINE_CHUNKS, MAX_COARSE_CHUNKS);
    }

    History(long firstTick, int maxFineChunks, int maxCoarseChunks) {
        this.firstTick = firstTick;
        lastTick = firstTick - 1;
        fine = new Tier.Budget(maxFineChunks);
        coarse = new Tier.Budget(maxCoarseChunks);
    }

    /**
     * Adds what was in the seconds since the last call.
     *
     * @param tick the present second; not before the last one.
     * @param samples of what was not idle; the broker's and the GPUs' always.
     */
    public synchronized void add(long tick, Map<Key, Sample> samples) {
        if (tick <= lastTick) {
            return;
        }
        long from = Math.max(lastTick + 1, tick - MAX_PAUSE_SECONDS);
        for (long second = from; second <= tick; second++) {
            for (Series one : series.values()) {
                one.turn(second);
            }
            for (Map.Entry<Key, Sample> entry : samples.entrySet()) {
                series.computeIfAbsent(entry.getKey(), key -> new Series(fine, coarse)).add(second, entry.getValue());
            }
        }
        lastTick = tick;
        fine.expire(tick);
        coarse.expire(tick);
    }

    /** Forgets the GPUs and vGPUs that are not among these. */
    public synchronized void keep(Set<String> gpus, Set<String> vgpus) {
        series.keySet().removeIf(key -> key.kind() == Kind.GPU && !gpus.contains(key.id())
            || key.kind() == Kind.VGPU && !vgpus.contains(key.id()));
    }

    /**
     * What something was of late.
     *
     * @param seconds back from now.
     * @param now the present moment.
     */
    public synchronized HistoryInfo of(Key key, int seconds, Instant now) {
        boolean byTheSecond = seconds <= Series.FINE_SECONDS;
        int pointSeconds = byTheSecond ? 1 : Series.COARSE_SECONDS;
        int merged = Math.max(1, (int) Math.ceil((double) seconds / pointSeconds / MAX_POINTS));
        int step = pointSeconds * merged;
        // The present coarse point is not complete.
        long end = byTheSecond ? lastTick + 1 : lastTick / Series.COARSE_SECONDS;
        long begin = Math.max(end - seconds / pointSeconds, firstTick / pointSeconds);
        int count = (int) Math.max(0, (end - begin) / merged);
        begin = end - (long) count * merged;
        Series found = series.get(key);
        Tier tier = found == null ? null : byTheSecond ? found.fine() : found.coarse();
        List<List<Double>> figures = new ArrayList<>();
        for (int figure = 0; figure < Sample.FIGURES; figure++) {
            List<Double> values = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                values.add(average(tier, begin + (long) i * merged, merged, figure));
            }
            figures.add(values);
        }
        long age = lastTick + 1 - begin * pointSeconds;
        return new HistoryInfo(now.minusSeconds(age), step, figures.get(0), figures.get(1), figures.get(2),
            figures.get(3), figures.get(4), figures.get(5), figures.get(6), figures.get(7));
    }

    private static Double average(Tier tier, long point, int merged, int figure) {
        double sum = 0;
        int known = 0;
        for (int i = 0; i < merged; i++) {
            double value = tier == null ? figure == UTILIZATION ? Double.NaN : 0 : tier.get(point + i, figure);
            if (!Double.isNaN(value)) {
                sum += value;
                known++;
            }
        }
        return known == 0 ? null : Double.valueOf(Math.round(sum / known * 100) / 100.0);
    }

    /** Chunks that are held now. */
    synchronized int chunks() {
        return fine.size() + coarse.size();
    }
}
