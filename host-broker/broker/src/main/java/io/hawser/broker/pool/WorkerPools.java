package io.hawser.broker.pool;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.RefusedException;
import io.hawser.broker.model.WorkerKind;
import io.netty.channel.EventLoop;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jboss.logging.Logger;

/**
 * The workers of all GPUs: one pool for each kind that some vGPU needs. A kind is a set of GPUs and, under MPS, the
 * percentage of their threads. The first workers see every GPU and report all GPUs to the broker. With one GPU and no
 * MPS their pool is the only one. Event loop only, except {@link #state()}.
 */
public final class WorkerPools {
    private static final Logger LOG = Logger.getLogger(WorkerPools.class);
    /** UUIDs that may enter a worker's environment; a real driver and the software GPU use this form. */
    private static final Pattern UUID = Pattern.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");

    private final EventLoop loop;
    private final WorkerCommand command;
    private final WorkerPool.Limits limits;
    private final WorkerPool.Listener listener;
    private final ToIntFunction<String> percentages;
    private final UnaryOperator<String> networks;
    private final ToIntFunction<String> weights;
    private final ToIntFunction<List<String>> contextRoom;
    private final Consumer<List<Device>> gpusFound;
    private final WorkerPool whole;
    private final Map<WorkerKind, WorkerPool> byKind = new LinkedHashMap<>();
    private List<String> all = List.of(); // UUIDs of all GPUs, once the first worker has reported them
    private boolean isKnown; // the first worker has reported the GPUs
    private boolean isSeveral; // more than one GPU, with distinct UUIDs
    private volatile List<WorkerPool> pools;
    private final CompletableFuture<PoolState> known = new CompletableFuture<>();

    /**
     * Makes the pools; {@link #start()} starts their workers.
     *
     * @param percentages of vGPUs, by name, as {@link WorkerKind} defines them.
     * @param networks of vGPUs, by name, as {@link WorkerKind} defines them.
     * @param weights of vGPUs, by name: their parts of the starts when several wait, 1 to 100.
     * @param contextRoom further contexts that have room on each of these GPUs; no UUID stands for all GPUs.
     * @param gpusFound receives the GPUs from the first worker's report; must call {@link #keepReady} with the kinds
     *     that vGPUs need.
     */
    public WorkerPools(EventLoop loop, WorkerCommand command, WorkerPool.Limits limits,
        WorkerPool.Listener listener, ToIntFunction<String> percentages, UnaryOperator<String> networks,
        ToIntFunction<String> weights, ToIntFunction<List<String>> contextRoom, Consumer<List<Device>> gpusFound) {
        this.loop = loop;
        this.command = command;
        this.limits = limits;
        this.listener = listener;
        this.percentages = percentages;
        this.networks = networks;
        this.weights = weights;
        this.contextRoom = contextRoom;
        this.gpusFound = gpusFound;
        whole = new WorkerPool(loop, command, limits, new FirstListener(), others(WorkerKind.FIRST));
        pools = List.of(whole);
    }

    /** Starts the first workers. */
    public void start() {
        whole.start();
    }

    /** Completes on the event loop when the first worker has reported the GPUs; any thread. */
    public CompletableFuture<PoolState> known() {
        return known;
    }

    /** Name of the workers' backend; empty before {@link #known}. Any thread. */
    public String backend() {
        return known.isDone() ? known.join().backend() : "";
    }

    /** The sum of all pools' present states; any thread. */
    public PoolState state() {
        List<PoolState> states = pools.stream().map(WorkerPool::state).toList();
        PoolState first = states.getFirst();
        PoolState worst = states.stream().max(Comparator.comparingInt(PoolState::failures)).orElse(first);
        return new PoolState(states.stream().mapToInt(PoolState::size).sum(),
            states.stream().mapToInt(PoolState::grown).sum(),
            states.stream().mapToInt(PoolState::ready).sum(), states.stream().mapToInt(PoolState::starting).sum(),
            states.stream().mapToInt(PoolState::assigned).sum(), worst.failures(), worst.lastFailure(),
            first.backend(), first.devices(), states.stream().flatMap(state -> state.waiting().entrySet().stream())
                .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue, Integer::sum, TreeMap::new)));
    }

    private WorkerPool.Others others(WorkerKind kind) {
        return new WorkerPool.Others(weights, () -> others(kind, WorkerPool::hasStarts).anyMatch(Boolean::booleanValue),
            () -> others(kind, pool -> pool.state().starting()).mapToInt(Integer::intValue).sum(),
            () -> Math.min(limits.maxSize() - limits.size(), contextRoom.applyAsInt(kind.gpus())
                - others(kind, pool -> pool.state().grown()).mapToInt(Integer::intValue).sum()));
    }

    private <T> Stream<T> others(WorkerKind kind, Function<WorkerPool, T> of) {
        return pools.stream().filter(pool -> !pool.kind().equals(kind)).map(of);
    }

    /** Whether the last start of a worker for one GPU has failed; any thread. */
    public boolean isFailing(String uuid) {
        return pools.stream().anyMatch(pool -> pool.gpus().contains(uuid) && !pool.state().usable());
    }

    /** Why the last start of a worker for this GPU has failed; empty when it has not. Any thread. */
    public String failure(String uuid) {
        return pools.stream().filter(pool -> pool.gpus().isEmpty() || pool.gpus().contains(uuid))
            .map(WorkerPool::state).filter(state -> !state.usable()).map(PoolState::lastFailure).findFirst().orElse("");
    }

    /** Process ids of the workers that have a context and no session; any thread. */
    public List<Integer> idlePids() {
        return pools.stream().flatMap(pool -> pool.idlePids().stream()).toList();
    }

    /**
     * Takes a ready worker for a session's GPUs, or waits for one. The caller assigns it, or {@link Worker#kill kills}
     * it. Completes exceptionally with {@link WorkerPool.NoWorkerException}. Cancelling the future gives up the place
     * in the queue.
     */
    public CompletableFuture<Worker> take(WorkerRequest request) {
        try {
            List<String> gpus = request.gpus();
            return gpus.isEmpty() ? takeFirst(request) : pool(kind(request, gpus)).take(request.vgpu());
        } catch (RefusedException e) {
            return CompletableFuture.failedFuture(new WorkerPool.NoWorkerException(e.getMessage()));
        } finally {
            fitGrown(); // the session's context counts now
        }
    }

    /**
     * Serves a request before the first report of the GPUs: the reporting worker serves the session if it sees exactly
     * the session's GPUs.
     */
    private CompletableFuture<Worker> takeFirst(WorkerRequest request) {
        CompletableFuture<Worker> result = new CompletableFuture<>();
        CompletableFuture<Worker> first = whole.take(request.vgpu());
        forward(first, result, worker -> {
            List<String> gpus;
            try {
                gpus = request.gpus();
            } catch (RefusedException e) {
                worker.kill("the broker refused its session");
                result.completeExceptionally(new WorkerPool.NoWorkerException(e.getMessage()));
                return;
            }
            WorkerPool pool = gpus.isEmpty() ? whole : pool(kind(request, gpus));
            if (pool == whole) {
                give(worker, result);
            } else {
                worker.kill("its GPUs, or its parts of them, are not the session's");
                forward(pool.take(request.vgpu()), result, next -> give(next, result));
            }
        });
        return result;
    }

    private static void give(Worker worker, CompletableFuture<Worker> result) {
        if (!result.complete(worker)) {
            worker.kill("its guest has left");
        }
    }

    private static void forward(CompletableFuture<Worker> from, CompletableFuture<Worker> result,
        Consumer<Worker> taken) {
        result.whenComplete((worker, failure) -> {
            if (result.isCancelled()) {
                from.cancel(false);
            }
        });
        from.whenComplete((worker, failure) -> {
            if (worker != null) {
                taken.accept(worker);
            } else {
                result.completeExceptionally(failure);
            }
        });
    }

    /**
     * Replaces the workers without a session on these GPUs.
     *
     * @param uuids of the GPUs.
     */
    public void renew(List<String> uuids, String reason) {
        pools.stream().filter(pool -> pool.gpus().isEmpty() || !Collections.disjoint(pool.gpus(), uuids))
            .forEach(pool -> pool.renew(reason));
    }

    /** Replaces all workers without a session. */
    public void renewAll(String reason) {
        pools.forEach(pool -> pool.renew(reason));
    }

    private WorkerKind kind(WorkerRequest request, List<String> gpus) {
        return new WorkerKind(gpus, percentages.applyAsInt(request.vgpu()), networks.apply(request.vgpu()));
    }

    private WorkerPool pool(WorkerKind kind) {
        WorkerKind visible = visibleKind(kind);
        return visible.equals(WorkerKind.FIRST) ? whole : open(visible);
    }

    /**
     * The kind as the worker's environment names it: without GPUs when the worker sees all of them, or when their UUIDs
     * are not distinct.
     */
    private WorkerKind visibleKind(WorkerKind kind) {
        return !isSeveral || kind.gpus().equals(all) ? new WorkerKind(List.of(), kind.percentage(), kind.network())
            : kind;
    }

    /** Ends all workers; completes when none is left. Kills workers that do not end in time. */
    public CompletableFuture<Void> stop(String reason) {
        return CompletableFuture.allOf(pools.stream().map(pool -> pool.stop(reason))
            .toArray(CompletableFuture<?>[]::new));
    }

    /** Handles the first worker's report of the GPUs: from then on each needed set of GPUs has a pool. */
    private void setGpus(List<Device> devices) {
        isKnown = true;
        all = devices.stream().map(Device::uuid).toList();
        isSeveral = devices.size() > 1;
        if (isSeveral && (Set.copyOf(all).size() < all.size()
            || !all.stream().allMatch(uuid -> UUID.matcher(uuid).matches()))) {
            LOG.errorf("the GPUs have no distinct UUIDs, so each session gets all of them: gpus=%s", all);
            isSeveral = false;
        }
        gpusFound.accept(devices);
    }

    /**
     * Keeps workers of exactly these kinds ready; a worker of another kind starts when a session needs it.
     *
     * @param kinds each with its GPUs named.
     */
    public void keepReady(Set<WorkerKind> kinds) {
        if (!isKnown) {
            return;
        }
        Set<WorkerKind> needed = kinds.stream().map(this::visibleKind).collect(Collectors.toSet());
        boolean isUnneeded = needed.isEmpty() && !isSeveral; // the next vGPU will most likely use the only GPU
        whole.resize(needed.contains(WorkerKind.FIRST) || isUnneeded ? limits.size() : 0);
        needed.stream().filter(kind -> !kind.equals(WorkerKind.FIRST))
            .forEach(kind -> open(kind).resize(limits.size()));
        for (Map.Entry<WorkerKind, WorkerPool> entry : List.copyOf(byKind.entrySet())) {
            if (!needed.contains(entry.getKey())) {
                entry.getValue().resize(0);
                if (entry.getValue().isIdle()) {
                    entry.getValue().leaveNetwork();
                    byKind.remove(entry.getKey());
                }
            }
        }
        List<WorkerPool> now = new ArrayList<>(byKind.values());
        now.addFirst(whole);
        if (!now.equals(pools)) {
            pools = List.copyOf(now);
            LOG.infof("worker pools changed: gpus=%d kinds=%s", all.size(), needed);
        }
        fitGrown();
    }

    /** Ends workers that demand has added where the GPUs have no more room for them. */
    private void fitGrown() {
        pools.stream().filter(pool -> pool.state().grown() > 0).forEach(WorkerPool::fit);
    }

    private WorkerPool open(WorkerKind wanted) {
        return byKind.computeIfAbsent(wanted, kind -> {
            WorkerPool pool = new WorkerPool(loop, command.of(kind), limits, listener, others(kind), kind);
            List<WorkerPool> more = new ArrayList<>(pools);
            more.add(pool);
            pools = List.copyOf(more);
            return pool;
        });
    }

    /** Forwards all events, and takes the report of the GPUs from the first worker. */
    private final class FirstListener implements WorkerPool.Listener {
        @Override
        public void onMessage(Worker worker, WorkerMessage message) {
            listener.onMessage(worker, message);
        }

        @Override
        public void onExit(Worker worker, String reason) {
            listener.onExit(worker, reason);
        }

        @Override
        public void onReady(Duration time) {
            if (!isKnown) {
                setGpus(whole.state().devices());
            }
            listener.onReady(time);
            known.complete(state());
        }

        @Override
        public void onStartFailure(String reason) {
            listener.onStartFailure(reason);
        }
    }
}
