package io.hawser.broker.pool;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.ToIntFunction;
import org.jboss.logging.Logger;

/**
 * Starts that wait for a worker of one pool. Each vGPU has a line. The queue serves the lines by virtual time with the
 * compute share as weight (start-time fair queueing; Goyal, Vin and Cheng, SIGCOMM 1996). A start costs the worker that
 * it takes.
 *
 * <p>A vGPU is <em>above its share</em> when another vGPU has a smaller tag and waits, or has waited in the last {@link
 * #LATELY_NS}. Each of these others keeps a ready worker from it. One thread.
 *
 * @param <T> a start; compared by identity.
 */
final class StartQueue<T> {
    private static final Logger LOG = Logger.getLogger(StartQueue.class);
    /** How long a vGPU without waiting starts keeps its reserved worker and its tag. */
    static final long LATELY_NS = TimeUnit.SECONDS.toNanos(10);
    /**
     * Virtual time that a worker costs at weight 1. Weights are at most 100, and the cost of 2^31 starts fits into a
     * long.
     */
    private static final long WORKER_COST = 1L << 32;

    private final StartRules rules;
    private final ToIntFunction<String> weights;
    private final BooleanSupplier activeElsewhere;
    private final LongSupplier nowNs;
    private final Map<String, Line<T>> lines = new LinkedHashMap<>();
    private long virtual; // never goes back
    private long nextNumber;
    private int waiting;

    /**
     * The workers of the pool.
     *
     * @param size ready workers that the pool aims for.
     * @param ready workers that wait for a start.
     * @param starting workers that are not ready yet.
     * @param startingElsewhere workers of other pools that are not ready yet.
     * @param isBusy whether workers of the pool serve sessions.
     */
    record Stock(int size, int ready, int starting, int startingElsewhere, boolean isBusy) {}

    /** A start and its place in the order of arrival. */
    private record Place<T>(T start, long number) {}

    /** One vGPU's starts. */
    private static final class Line<T> {
        private final String vgpu;
        private final Deque<Place<T>> places = new ArrayDeque<>();
        private long cost; // of a worker, in virtual time
        private long nextTag = Long.MIN_VALUE; // before the limit on how far a line may trail
        private long waitedNs; // time of its last waiting start
        private boolean isLogged; // the log has a line that the vGPU is above its share

        Line(String vgpu) {
            this.vgpu = vgpu;
        }
    }

    /**
     * Makes an empty queue.
     *
     * @param weights of vGPUs, by name, 1 to 100.
     * @param activeElsewhere whether a start waits, or has waited lately, for a worker of another pool.
     * @param nowNs a clock that never goes back.
     */
    StartQueue(StartRules rules, ToIntFunction<String> weights, BooleanSupplier activeElsewhere, LongSupplier nowNs) {
        this.rules = rules;
        this.weights = weights;
        this.activeElsewhere = activeElsewhere;
        this.nowNs = nowNs;
    }

    /** Puts a start at the end of its vGPU's line. Returns false and changes nothing when the line is full. */
    boolean offer(String vgpu, T start) {
        dropIdleLines();
        Line<T> line = lines.computeIfAbsent(vgpu, Line::new);
        line.cost = WORKER_COST / weights.applyAsInt(vgpu);
        line.waitedNs = nowNs.getAsLong();
        if (line.places.size() >= rules.maxWaiting()) {
            return false;
        }
        line.places.add(new Place<>(start, nextNumber++));
        waiting++;
        return true;
    }

    /** Removes a start whose guest has left, at no cost. Returns false when the start is not in line. */
    boolean remove(String vgpu, T start) {
        Line<T> line = lines.get(vgpu);
        if (line == null || !line.places.removeIf(place -> place.start == start)) {
            return false;
        }
        line.waitedNs = nowNs.getAsLong();
        waiting--;
        return true;
    }

    /** Removes all starts and returns them in the order of arrival. */
    List<T> removeAll() {
        List<T> starts = lines.values().stream().flatMap(line -> line.places.stream())
            .sorted(Comparator.comparingLong(Place::number)).map(Place::start).toList();
        lines.values().forEach(line -> line.places.clear());
        waiting = 0;
        return starts;
    }

    /**
     * Removes the start that gets one of the ready workers, and charges its vGPU.
     *
     * @param ready workers that wait for a start.
     * @param size ready workers that the pool aims for.
     * @return null when no start may take a worker.
     */
    T next(int ready, int size) {
        if (ready == 0 || waiting == 0) {
            return null;
        }
        dropIdleLines();
        List<Line<T>> order = byTag();
        for (int before = 0; before < order.size(); before++) {
            Line<T> line = order.get(before);
            if (line.places.isEmpty()) {
                continue;
            }
            if (ready > Math.min(size, before)) {
                return serve(line);
            }
            if (!line.isLogged) {
                line.isLogged = true;
                LOG.infof("vGPU %s is above its share of starts and leaves ready workers to others: waiting=%d",
                    line.vgpu, line.places.size());
            }
        }
        return null;
    }

    private T serve(Line<T> line) {
        long tag = tag(line);
        virtual = Math.max(virtual, tag);
        line.nextTag = tag + line.cost;
        line.waitedNs = nowNs.getAsLong();
        waiting--;
        return line.places.remove().start;
    }

    /** Charges a vGPU for an unused worker that the pool started for a guest that has left. */
    void charge(String vgpu) {
        Line<T> line = lines.get(vgpu);
        if (line != null) {
            line.nextTag = tag(line) + line.cost;
        }
    }

    /**
     * Number of workers to start now; 0 or less for none. While a start that is not above its share waits, the pool
     * starts no worker ahead.
     */
    int toStart(Stock stock) {
        dropIdleLines();
        // At least one, because no other pool tells this one when its own starts have ended.
        int atOnce = Math.max(1, rules.atOnce() - stock.startingElsewhere());
        if (fairWaiting() > 0) {
            return Math.min(waiting - stock.ready(), atOnce) - stock.starting();
        }
        int missing = stock.size() + waiting - stock.ready() - stock.starting();
        List<Line<T>> order = byTag();
        long last = order.isEmpty() ? Long.MIN_VALUE : tag(order.getLast());
        if (last <= fairTagLimit()) { // no vGPU is above its share
            int refill = stock.isBusy() ? Math.min(rules.refill(), atOnce) : atOnce;
            return Math.min(missing, refill - stock.starting());
        }
        int reserved = Math.min(stock.size(), (int) order.stream().filter(line -> tag(line) < last).count());
        int above = Math.min(atOnce, Math.max(rules.ration(), reserved - stock.ready()));
        return Math.min(missing, above - stock.starting());
    }

    /** Waiting starts of vGPUs that are not above their share. */
    int fairWaiting() {
        if (waiting == 0) {
            return 0;
        }
        long limit = fairTagLimit();
        return lines.values().stream().filter(line -> tag(line) <= limit).mapToInt(line -> line.places.size()).sum();
    }

    /**
     * The largest tag of vGPUs that are not above their share. While another pool is active, the limit also bounds the
     * tag by this pool's virtual time.
     */
    private long fairTagLimit() {
        long least = lines.values().stream().mapToLong(this::tag).min().orElse(Long.MAX_VALUE);
        return activeElsewhere.getAsBoolean() ? Math.min(least, virtual) : least;
    }

    /**
     * The vGPU for which the pool starts the next worker: the vGPU with the most waiting starts beyond the workers that
     * already start for it.
     *
     * @param startedFor a vGPU for each worker that is starting for a start.
     * @return null when every start has a worker.
     */
    String needsMost(Collection<String> startedFor) {
        String most = null;
        int mostMissing = 0;
        for (Line<T> line : lines.values()) {
            int missing = line.places.size() - Collections.frequency(startedFor, line.vgpu);
            if (missing > mostMissing) {
                most = line.vgpu;
                mostMissing = missing;
            }
        }
        return most;
    }

    /** Whether a start waits or has waited lately. */
    boolean isActive() {
        dropIdleLines();
        return !lines.isEmpty();
    }

    /** Number of waiting starts. */
    int size() {
        return waiting;
    }

    /** Waiting starts by vGPU; a vGPU without waiting starts is absent. */
    Map<String, Integer> sizes() {
        Map<String, Integer> sizes = new TreeMap<>();
        lines.values().stream().filter(line -> !line.places.isEmpty())
            .forEach(line -> sizes.put(line.vgpu, line.places.size()));
        return sizes;
    }

    /** Drops each line without a recent start, together with the virtual time that its vGPU has used. */
    private void dropIdleLines() {
        long now = nowNs.getAsLong();
        lines.values().removeIf(line -> line.places.isEmpty() && now - line.waitedNs > LATELY_NS);
    }

    /** All lines, the next to serve first; among equal tags, lines without a start come last. */
    private List<Line<T>> byTag() {
        List<Line<T>> order = new ArrayList<>(lines.values());
        order.sort(Comparator.<Line<T>>comparingLong(this::tag)
            .thenComparingLong(line -> line.places.isEmpty() ? Long.MAX_VALUE : line.places.getFirst().number()));
        return order;
    }

    /**
     * Virtual time at which a line's next start is due. An idle line trails the queue's virtual time by one worker at
     * most.
     */
    private long tag(Line<T> line) {
        return Math.max(line.nextTag, virtual - line.cost);
    }
}
