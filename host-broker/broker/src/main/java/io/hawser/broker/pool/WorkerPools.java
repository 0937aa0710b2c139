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
import java.util.function.ToIntFunction;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jboss.logging.Logger;

/**
 * The workers of all GPUs: a pool for each kind that some vGPU needs, which is a set of GPUs and, under MPS, what it
 * may have of them. The first workers see every GPU and so tell which there are; with one GPU and no MPS they are the
 * only pool. Event loop only, except {@link #state()}.
 */
public final class WorkerPools {
    private static final Logger LOG = Logger.getLogger(WorkerPools.class);
    /** What goes into a worker's environment; a real driver's UUIDs and the software GPU's are of this form. */
    private static final Pattern UUID = Pattern.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");

    private final EventLoop loop;
    private final WorkerCommand command;
    private final WorkerPool.Limits limits;
    private final WorkerPool.Listener listener;
    private final ToIntFunction<String> percentages;
    private final ToIntFunction<String> weights;
    private final Consumer<List<Device>> told;
    private final WorkerPool whole;
    private final Map<WorkerKind, WorkerPool> byKind = new LinkedHashMap<>();
    private List<String> all = List.of(); // UUIDs, once they are known
    private boolean known;
    private boolean several; // and they can be told apart
    private volatile List<WorkerPool> pools;

    /**
     * Makes the pools; {@link #start()} starts their workers.
     *
     * @param percentages of vGPUs, by name, as {@link WorkerKind} has them.
     * @param weights of vGPUs, by name: their parts of the starts when several wait, 1 to 100.
     * @param told of the GPUs when the first worker has told; must say by {@link #need} which kinds are needed.
     */
    public WorkerPools(EventLoop loop, WorkerCommand command, WorkerPool.Limits limits,
        WorkerPool.Listener listener, ToIntFunction<String> percentages,
        ToIntFunction<String> weights, Consumer<List<Device>> told) {
        this.loop = loop;
        this.command = command;
        this.limits = limits;
        this.listener = listener;
        this.percentages = percentages;
        this.weights = weights;
        this.told = told;
        whole = new WorkerPool(loop, command, limits, new FirstListener(), fairness(WorkerKind.FIRST));
        pools = List.of(whole);
    }

    /** Starts the first workers. */
    public void start() {
        whole.start();
    }

    /** A picture of now; any thread. */
    public PoolState state() {
        List<PoolState> states = pools.stream().map(WorkerPool::state).toList();
        PoolState first = states.getFirst();
        PoolState worst = states.stream().max(Comparator.comparingInt(PoolState::failures)).orElse(first);
        return new PoolState(states.stream().mapToInt(PoolState::size).sum(),
            states.stream().mapToInt(PoolState::ready).sum(), states.stream().mapToInt(PoolState::starting).sum(),
            states.stream().mapToInt(PoolState::assigned).sum(), worst.failures(), worst.lastFailure(),
            first.backend(), first.devices(), states.stream().flatMap(state -> state.waiting().entrySet().stream())
            .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue, Integer::sum, TreeMap::new)));
    }

    /** The rules of the order of starts in the pool of a kind. */
    private WorkerPool.Fairness fairness(WorkerKind kind) {
        return new WorkerPool.Fairness(weights, () -> pools.stream()
            .anyMatch(pool -> !pool.kind().equals(kind) && pool.hasStarts()));
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

    /** Processes of the workers that have a context and no session; any thread. */
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
        }
    }

    /** Before the GPUs are known: the worker that tells serves this session, if it is one for its GPUs. */
    private CompletableFuture<Worker> takeFirst(WorkerRequest request) {
        CompletableFuture<Worker> result = new CompletableFuture<>();
        CompletableFuture<Worker> first = whole.take(request.vgpu());
        pass(first, result, worker -> {
            List<String> gpus;
            try {
                gpus = request.gpus();
            } catch (RefusedException e) {
                worker.kill("its session is refused");
                result.completeExceptionally(new WorkerPool.NoWorkerException(e.getMessage()));
                return;
            }
            WorkerPool pool = gpus.isEmpty() ? whole : pool(kind(request, gpus));
            if (pool == whole) {
                give(worker, result);
            } else {
                worker.kill("it has GPUs, or parts of them, that its session does not have");
                pass(pool.take(request.vgpu()), result, next -> give(next, result));
            }
        });
        return result;
    }

    private static void give(Worker worker, CompletableFuture<Worker> result) {
        if (!result.complete(worker)) {
            worker.kill("its guest has left");
        }
    }

    private static void pass(CompletableFuture<Worker> from, CompletableFuture<Worker> result,
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
     * Ends the workers without a session for these GPUs, and starts others.
     *
     * @param uuids of the GPUs.
     */
    public void renew(List<String> uuids, String reason) {
        pools.stream().filter(pool -> pool.gpus().isEmpty() || !Collections.disjoint(pool.gpus(), uuids))
            .forEach(pool -> pool.renew(reason));
    }

    private WorkerKind kind(WorkerRequest request, List<String> gpus) {
        return new WorkerKind(gpus, percentages.applyAsInt(request.vgpu()));
    }

    private WorkerPool pool(WorkerKind kind) {
        WorkerKind told = told(kind);
        return told.equals(WorkerKind.FIRST) ? whole : open(told);
    }

    /** As workers are told: nothing of GPUs to those that see all, or that cannot tell them apart. */
    private WorkerKind told(WorkerKind kind) {
        return !several || kind.gpus().equals(all) ? new WorkerKind(List.of(), kind.percentage()) : kind;
    }

    /** Ends all workers; completes when none is left. Those that do not end in time are killed. */
    public CompletableFuture<Void> stop(String reason) {
        return CompletableFuture.allOf(pools.stream().map(pool -> pool.stop(reason))
            .toArray(CompletableFuture<?>[]::new));
    }

    /** The first worker has told which GPUs there are: from now on there is a pool for each set that is needed. */
    private void learn(List<Device> devices) {
        known = true;
        all = devices.stream().map(Device::uuid).toList();
        several = devices.size() > 1;
        if (several && (Set.copyOf(all).size() < all.size()
            || !all.stream().allMatch(uuid -> UUID.matcher(uuid).matches()))) {
            LOG.errorf("the GPUs cannot be told apart, so that each session has all: gpus=%s", all);
            several = false;
        }
        told.accept(devices);
    }

    /**
     * Keeps workers of these kinds ready, and no others; one of another kind is started when a session needs it.
     *
     * @param kinds each with its GPUs named.
     */
    public void need(Set<WorkerKind> kinds) {
        if (!known) {
            return;
        }
        Set<WorkerKind> needed = kinds.stream().map(this::told).collect(Collectors.toSet());
        boolean isNobodys = needed.isEmpty() && !several; // whoever comes next has this GPU, most likely
        whole.resize(needed.contains(WorkerKind.FIRST) || isNobodys ? limits.size() : 0);
        needed.stream().filter(kind -> !kind.equals(WorkerKind.FIRST))
            .forEach(kind -> open(kind).resize(limits.size()));
        for (Map.Entry<WorkerKind, WorkerPool> entry : List.copyOf(byKind.entrySet())) {
            if (!needed.contains(entry.getKey())) {
                entry.getValue().resize(0);
                if (entry.getValue().isIdle()) {
                    byKind.remove(entry.getKey());
                }
            }
        }
        List<WorkerPool> now = new ArrayList<>(byKind.values());
        now.addFirst(whole);
        if (!now.equals(pools)) {
            pools = List.copyOf(now);
            LOG.infof("pools of workers: gpus=%d kinds=%s", all.size(), needed);
        }
    }

    private WorkerPool open(WorkerKind wanted) {
        return byKind.computeIfAbsent(wanted, kind -> {
            WorkerPool pool = new WorkerPool(loop, command.of(kind), limits, listener, fairness(kind), kind);
            List<WorkerPool> more = new ArrayList<>(pools);
            more.add(pool);
            pools = List.copyOf(more);
            return pool;
        });
    }

    /** Passes everything on, and learns from the first worker which GPUs there are. */
    private final class FirstListener implements WorkerPool.Listener {
        @Override
        public void said(Worker worker, WorkerMessage message) {
            listener.said(worker, message);
        }

        @Override
        public void gone(Worker worker, String reason) {
            listener.gone(worker, reason);
        }

        @Override
        public void started(Duration time) {
            if (!known) {
                learn(whole.state().devices());
            }
            listener.started(time);
        }

        @Override
        public void failed(String reason) {
            listener.failed(reason);
        }
    }
}
