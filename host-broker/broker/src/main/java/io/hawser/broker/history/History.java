package io.hawser.broker.history;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The time series of the broker, its GPUs and its vGPUs. One thread adds, any thread reads. An idle vGPU has no points
 * and uses no memory.
 */
public final class History {
    /** Most points of an answer. */
    static final int MAX_POINTS = 960;
    /**
     * Chunks of points by the second, 11 MiB. A chunk has 60 points of 8 figures of 2 bytes, so 1,000 series can be
     * busy. When all chunks are in use, the oldest is dropped.
     */
    static final int MAX_FINE_CHUNKS = 11_000;
    /** Chunks of points by 15 seconds, 22 MiB: 240 series that are busy all day. */
    static final int MAX_COARSE_CHUNKS = 23_000;
    /** Index of the utilization, whose average includes only known values. */
    static final int UTILIZATION = 6;
    /** After a pause of the process up to this many seconds, the new sample fills the missed seconds. */
    private static final int MAX_PAUSE_SECONDS = 60;

    /** The key of a series; {@code id} is a GPU's UUID, a vGPU's name, or empty for the broker. */
    public record Key(Kind kind, String id) {
        /** The broker itself. */
        public static final Key BROKER = new Key(Kind.BROKER, "");
    }

    /** The kinds of series. */
    public enum Kind { BROKER, GPU, VGPU }

    private final Tier.Budget fine;
    private final Tier.Budget coarse;
    private final Map<Key, Series> series = new HashMap<>();
    private final long firstTick;
    private long lastTick;

    /**
     * Creates an empty history.
     *
     * @param firstTick the present second of a monotonic clock; at least one day.
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
     * Adds the samples of the seconds since the last call.
     *
     * @param tick the present second; not before the last one.
     * @param samples of all objects that were not idle, and always of the broker and the GPUs.
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

    /** Removes the series of GPUs and vGPUs that are not in these sets. */
    public synchronized void keep(Set<String> gpus, Set<String> vgpus) {
        series.keySet().removeIf(key -> key.kind() == Kind.GPU && !gpus.contains(key.id())
            || key.kind() == Kind.VGPU && !vgpus.contains(key.id()));
    }

    /**
     * The recent points of one series.
     *
     * @param seconds length of the period that ends now.
     * @param now the present time.
     */
    public synchronized HistoryInfo of(Key key, int seconds, Instant now) {
        boolean byTheSecond = seconds <= Series.FINE_SECONDS;
        int pointSeconds = byTheSecond ? 1 : Series.COARSE_SECONDS;
        int merged = Math.max(1, (int) Math.ceil((double) seconds / pointSeconds / MAX_POINTS));
        int step = pointSeconds * merged;
        // The newest coarse point is incomplete and left out.
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

    /** Number of chunks in memory. */
    synchronized int chunks() {
        return fine.size() + coarse.size();
    }
}
