package io.hawser.broker.pool;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;

/**
 * A pool of workers on a simulated clock. Each processor of the simulated machine needs a second to start a worker. The
 * pool uses its queue as {@link WorkerPool} does.
 */
final class SimulatedPool {
    static final long SECOND_NS = 1_000_000_000L;

    /** A session that needs a worker. */
    record Start(String vgpu, int number) {}

    /** A start that has got its worker. */
    record Served(Start start, long waitedNs, int readyBefore) {}

    final StartQueue<Start> queue;
    final List<Served> served = new ArrayList<>();
    private final int size;
    private final Map<String, Integer> weights = new HashMap<>();
    private final Map<Start, Long> arrivedNs = new HashMap<>();
    private final PriorityQueue<Long> processorFreeNs = new PriorityQueue<>();
    private final PriorityQueue<Long> startingUntilNs = new PriorityQueue<>();
    private final ArrayDeque<String> startedFor = new ArrayDeque<>();
    private boolean activeElsewhere;
    private int startingElsewhere;
    private boolean isBusy;
    private long nowNs;
    private int ready;
    private int nextNumber;
    private int mostStarting;

    SimulatedPool(int size, int processors, StartRules rules) {
        this.size = size;
        processorFreeNs.addAll(Collections.nCopies(processors, 0L));
        queue = new StartQueue<>(rules, vgpu -> weights.getOrDefault(vgpu, 100), () -> activeElsewhere, () -> nowNs);
        refill();
        pass(size * SECOND_NS);
    }

    void weigh(String vgpu, int weight) {
        weights.put(vgpu, weight);
    }

    void activeElsewhere(boolean now) {
        activeElsewhere = now;
    }

    void startingElsewhere(int workers) {
        startingElsewhere = workers;
    }

    /** Sets whether workers serve sessions. */
    void busy(boolean now) {
        isBusy = now;
    }

    /** Adds a start to its vGPU's line. Null when the line is full. */
    Start arrive(String vgpu) {
        Start start = new Start(vgpu, nextNumber++);
        if (!queue.offer(vgpu, start)) {
            return null;
        }
        arrivedNs.put(start, nowNs);
        serve();
        refill();
        return start;
    }

    /** Removes a waiting start whose guest leaves. */
    boolean leave(Start start) {
        arrivedNs.remove(start);
        return queue.remove(start.vgpu(), start);
    }

    /** Whether a start still waits for a worker. */
    boolean waits(Start start) {
        return arrivedNs.containsKey(start);
    }

    /** Advances the clock. Workers become ready meanwhile. */
    void pass(long ns) {
        long untilNs = nowNs + ns;
        while (!startingUntilNs.isEmpty() && startingUntilNs.peek() <= untilNs) {
            nowNs = startingUntilNs.remove();
            String vgpu = startedFor.remove();
            ready++;
            serve();
            if (ready > size) {
                ready--;
                if (!vgpu.isEmpty()) {
                    queue.charge(vgpu);
                }
            }
            refill();
        }
        nowNs = untilNs;
    }

    private void serve() {
        for (Start next; (next = queue.next(ready, size)) != null; ready--) {
            served.add(new Served(next, nowNs - arrivedNs.remove(next), ready));
        }
    }

    private void refill() {
        while (queue.toStart(new StartQueue.Stock(size, ready, starting(), startingElsewhere, isBusy)) > 0) {
            String vgpu = queue.needsMost(startedFor);
            startedFor.add(vgpu == null ? "" : vgpu);
            long readyNs = Math.max(nowNs, processorFreeNs.remove()) + SECOND_NS;
            processorFreeNs.add(readyNs);
            startingUntilNs.add(readyNs);
        }
        mostStarting = Math.max(mostStarting, startingUntilNs.size());
    }

    int ready() {
        return ready;
    }

    int starting() {
        return startingUntilNs.size();
    }

    /** The greatest number of workers that were starting at the same time since the last call. */
    int takeMostStarting() {
        int most = mostStarting;
        mostStarting = startingUntilNs.size();
        return most;
    }

    int servedOf(String vgpu) {
        return Collections.frequency(served.stream().map(s -> s.start.vgpu).toList(), vgpu);
    }

    /** The vGPUs of all served starts, in the order of service. */
    List<String> order() {
        return served.stream().map(s -> s.start.vgpu).toList();
    }
}
