package io.hawser.poolsimulator.engine;

import io.hawser.broker.vgpu.Placement;
import io.hawser.poolsimulator.load.Arrival;
import io.hawser.poolsimulator.load.Arrivals;
import java.util.Comparator;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.SplittableRandom;
import java.util.function.Consumer;

/** Runs a pool through arrivals, deletions and a loss of brokers, in simulated time. For one thread. */
public final class PoolSimulation {
    private static final long TICK_MS = 500; // a broker looks for changes and for silent brokers
    private static final long BEAT_MS = 2000;
    private static final long RETRY_MS = 5000;
    private static final int SAMPLES = 120;

    private final SimulatedPool pool;
    private final Tally tally = new Tally();
    private final Loss loss;
    private final long endMs;
    private final long sizeBytes;
    private final Consumer<Arrival> recorder;
    private final PriorityQueue<End> ends = new PriorityQueue<>(Comparator.comparingLong(End::atMs)
        .thenComparing(End::vgpu));

    /** The end of a vGPU's life. */
    private record End(long atMs, String vgpu) {}

    /**
     * What to simulate.
     *
     * @param endMs length of the run.
     * @param sizeBytes memory of the vGPU that free memory must hold to count as whole.
     * @param seed of receivers and of losses.
     */
    public record Plan(PoolShape shape, Placement placement, Loss loss, long endMs, long sizeBytes, long seed) {}

    /**
     * Begins with an empty pool.
     *
     * @param recorder receives each arrival.
     */
    public PoolSimulation(Plan plan, Placing placing, Consumer<Arrival> recorder) {
        loss = plan.loss;
        endMs = plan.endMs;
        sizeBytes = plan.sizeBytes;
        this.recorder = recorder;
        pool = new SimulatedPool(plan.shape, plan.placement, placing, tally, new SplittableRandom(plan.seed));
    }

    /** Runs to the end. */
    public void run(Arrivals arrivals) {
        Optional<Arrival> next = arrivals.next();
        int sampled = 0;
        for (long tickMs = 0; tickMs <= endMs; tickMs += TICK_MS) {
            while (Math.min(next.map(Arrival::atMs).orElse(Long.MAX_VALUE), firstEndMs()) < tickMs) {
                if (firstEndMs() <= next.map(Arrival::atMs).orElse(Long.MAX_VALUE)) {
                    end(ends.remove());
                } else {
                    begin(next.orElseThrow());
                    next = arrivals.next();
                }
            }
            tick(tickMs);
            if (tickMs >= endMs * sampled / SAMPLES) {
                pool.audit();
                tally.sampled(pool.sample(tickMs, sizeBytes));
                sampled++;
            }
        }
    }

    private long firstEndMs() {
        return ends.isEmpty() ? Long.MAX_VALUE : ends.peek().atMs();
    }

    private void begin(Arrival arrival) {
        recorder.accept(arrival);
        pool.create(arrival).ifPresent(name -> ends.add(new End(arrival.atMs() + arrival.lifeMs(), name)));
    }

    private void end(End end) {
        if (pool.delete(end.vgpu)) {
            tally.deleted();
        } else {
            ends.add(new End(end.atMs + RETRY_MS, end.vgpu));
        }
    }

    private void tick(long nowMs) {
        if (nowMs - loss.atMs() >= 0 && nowMs - loss.atMs() < TICK_MS) {
            pool.cut(loss.part());
        }
        if (nowMs - loss.backMs() >= 0 && nowMs - loss.backMs() < TICK_MS) {
            pool.restore(nowMs);
        }
        if (nowMs % BEAT_MS == 0) {
            pool.beat(nowMs);
        }
        pool.takeOver(nowMs);
    }

    /** What has happened so far. */
    public Tally tally() {
        return tally;
    }

    /** Number of times that more was reserved than there is, or that tables differed from the count. */
    public long violations() {
        return pool.count().violations();
    }

    /** The first violation; empty for none. */
    public String firstViolation() {
        return pool.count().firstViolation();
    }
}
