package io.hawser.broker.pool;

import io.hawser.broker.session.Session;
import io.hawser.broker.session.SessionRegistry;
import io.netty.channel.EventLoop;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.jboss.logging.Logger;

/**
 * The workers of all GPUs: a pool for each set of GPUs that some vGPU needs. The first workers see every GPU and so
 * tell which there are; with one GPU they are the only pool. Event loop only, except {@link #state()}.
 */
public final class WorkerPools {
    private static final Logger LOG = Logger.getLogger(WorkerPools.class);
    /** What goes into a worker's environment; a real driver's UUIDs and the software GPU's are of this form. */
    private static final Pattern UUID = Pattern.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");

    private final EventLoop loop;
    private final WorkerCommand command;
    private final WorkerPool.Limits limits;
    private final WorkerPool.Listener listener;
    private final Consumer<List<WorkerMessage.Device>> told;
    private final WorkerPool whole;
    private final Map<List<String>, WorkerPool> bySet = new LinkedHashMap<>(); // UUIDs, in the session's order
    private List<String> all = List.of(); // UUIDs, once they are known
    private boolean known;
    private boolean several; // and they can be told apart
    private volatile List<WorkerPool> pools;

    /**
     * Makes the pools; {@link #start()} starts their workers.
     *
     * @param told of the GPUs when the first worker has told; must say by {@link #need} which sets are needed.
     */
    public WorkerPools(EventLoop loop, WorkerCommand command, WorkerPool.Limits limits,
        WorkerPool.Listener listener, Consumer<List<WorkerMessage.Device>> told) {
        this.loop = loop;
        this.command = command;
        this.limits = limits;
        this.listener = listener;
        this.told = told;
        whole = new WorkerPool(loop, command, limits, new FirstListener());
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
            first.backend(), first.devices());
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
    public CompletableFuture<Worker> take(Session session) {
        try {
            List<String> gpus = session.gpus();
            return gpus.isEmpty() ? takeFirst(session) : pool(gpus).take();
        } catch (SessionRegistry.RefusedException e) {
            return CompletableFuture.failedFuture(new WorkerPool.NoWorkerException(e.getMessage()));
        }
    }

    /** Before the GPUs are known: the worker that tells serves this session, if it is one for its GPUs. */
    private CompletableFuture<Worker> takeFirst(Session session) {
        CompletableFuture<Worker> result = new CompletableFuture<>();
        CompletableFuture<Worker> first = whole.take();
        pass(first, result, worker -> {
            List<String> gpus;
            try {
                gpus = session.gpus();
            } catch (SessionRegistry.RefusedException e) {
                worker.kill("its session is refused");
                result.completeExceptionally(new WorkerPool.NoWorkerException(e.getMessage()));
                return;
            }
            if (gpus.isEmpty() || pool(gpus) == whole) {
                give(worker, result);
            } else {
                worker.kill("it sees GPUs that its session does not have");
                pass(pool(gpus).take(), result, next -> give(next, result));
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

    private WorkerPool pool(List<String> gpus) {
        return !several || gpus.equals(all) ? whole : open(gpus);
    }

    /** Ends all workers; completes when none is left. Those that do not end in time are killed. */
    public CompletableFuture<Void> stop(String reason) {
        return CompletableFuture.allOf(pools.stream().map(pool -> pool.stop(reason))
            .toArray(CompletableFuture<?>[]::new));
    }

    /** The first worker has told which GPUs there are: from now on there is a pool for each set that is needed. */
    private void learn(List<WorkerMessage.Device> devices) {
        known = true;
        all = devices.stream().map(WorkerMessage.Device::uuid).toList();
        several = devices.size() > 1;
        if (several && (Set.copyOf(all).size() < all.size()
            || !all.stream().allMatch(uuid -> UUID.matcher(uuid).matches()))) {
            LOG.errorf("the GPUs cannot be told apart, so that each session has all: gpus=%s", all);
            several = false;
        }
        told.accept(devices);
    }

    /**
     * Keeps workers ready for these sets of GPUs, and for no others.
     *
     * @param sets UUIDs, each in the session's order.
     */
    public void need(Set<List<String>> sets) {
        if (!several) {
            return; // all of one GPU, or all together
        }
        whole.resize(sets.contains(all) ? limits.size() : 0);
        sets.stream().filter(set -> !set.equals(all)).forEach(set -> open(set).resize(limits.size()));
        for (Map.Entry<List<String>, WorkerPool> entry : List.copyOf(bySet.entrySet())) {
            if (!sets.contains(entry.getKey())) {
                entry.getValue().resize(0);
                if (entry.getValue().isIdle()) {
                    bySet.remove(entry.getKey());
                }
            }
        }
        List<WorkerPool> now = new ArrayList<>(bySet.values());
        now.addFirst(whole);
        if (!now.equals(pools)) {
            pools = List.copyOf(now);
            LOG.infof("pools of workers: gpus=%d sets=%d", all.size(), sets.size());
        }
    }

    private WorkerPool open(List<String> gpus) {
        return bySet.computeIfAbsent(gpus, set -> {
            WorkerPool pool = new WorkerPool(loop, command.forGpus(set), limits, listener, set);
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
