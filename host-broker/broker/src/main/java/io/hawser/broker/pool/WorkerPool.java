package io.hawser.broker.pool;

import io.hawser.broker.jail.Confinement;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.WorkerKind;
import io.hawser.broker.posix.PosixException;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.IntSupplier;
import java.util.function.ToIntFunction;
import org.jboss.logging.Logger;

/**
 * A pool of workers started ahead.
 *
 * <p>Starts compete with running sessions for processors, so the pool starts few workers at a time ({@link
 * StartRules}). While guests wait, it starts workers only for them. Such a worker omits its warm-up and has the
 * weight of a full compute share. Afterwards the pool refills itself, slower while sessions run. These workers warm up
 * at a tenth of that weight. A guest that comes meanwhile waits for the worker that is starting already, and gives it
 * the full weight.
 *
 * <p>{@link PoolSize} follows the demand. The pool ends workers that demand has added when another vGPU reserves their
 * GPU memory.
 *
 * <p>A worker that dies before it has a session counts as a failed start. The pool delays the next start, longer after
 * each failure in a row; while guests wait, it replaces the first one at once. It rejects the waiting guests when no
 * other worker is starting. Event loop only, except {@link #state()}.
 */
public final class WorkerPool {
    private static final Logger LOG = Logger.getLogger(WorkerPool.class);

    /** Receives the events of the pool's workers, on the event loop. */
    public interface Listener {
        /** A worker with a session has sent a message. */
        void onMessage(Worker worker, WorkerMessage message);

        /** A worker with a session has ended. */
        void onExit(Worker worker, String reason);

        /** A worker became ready, this long after its start. */
        void onReady(Duration time);

        /** A worker failed before it had a session. */
        default void onStartFailure(String reason) {}
    }

    /** The pool cannot provide a worker; the message gives the reason. */
    public static final class NoWorkerException extends Exception {
        private static final long serialVersionUID = 1L;

        NoWorkerException(String message) {
            super(message);
        }
    }

    /**
     * Sizes and times.
     *
     * @param size workers to keep ready without demand.
     * @param maxSize workers to keep ready at most; no growth up to {@code size}.
     * @param idleTime time after which the pool gives up workers that demand has added and no start has needed.
     */
    public record Limits(int size, int maxSize, Duration idleTime, Duration startTimeout, Duration minBackOff,
        Duration maxBackOff, Duration endTimeout, StartRules starts) {
        /** Checks the ranges. */
        public Limits {
            if (idleTime.toMillis() < 1) {
                throw new IllegalArgumentException("a time must be 1 ms or more: hawser.pool.idle-time=" + idleTime);
            }
        }
    }

    /**
     * Facts about the other pools.
     *
     * @param weights of vGPUs, by name, 1 to 100.
     * @param active whether a start waits, or has waited lately, for a worker of another pool.
     * @param starting workers of other pools that are not ready yet.
     * @param mostGrown workers that demand may add to this pool.
     */
    record Others(ToIntFunction<String> weights, BooleanSupplier active, IntSupplier starting,
        IntSupplier mostGrown) {}

    private enum Phase { STARTING, READY, ASSIGNED, ENDING }

    private final EventLoop loop;
    private final WorkerCommand command;
    private final Limits limits;
    private final Listener listener;
    private final Map<Worker, Phase> workers = new HashMap<>();
    private final Map<Worker, ScheduledFuture<?>> startDeadlines = new HashMap<>();
    private final Deque<Worker> ready = new ArrayDeque<>();
    private final StartQueue<CompletableFuture<Worker>> waiting;
    private final Map<Worker, String> startedFor = new HashMap<>(); // vGPU for which each worker started
    private final CompletableFuture<Void> stopped = new CompletableFuture<>();
    private static final AtomicLong NEXT_ID = new AtomicLong(1);
    private final Set<Worker> ahead = new HashSet<>(); // workers that start for no guest
    private final WorkerKind kind;
    private final boolean isFirst; // of the broker's pools: its first worker reports the GPUs
    private final Others others;
    private final PoolSize size;
    private ScheduledFuture<?> review;
    private int failures;
    private String lastFailure = "";
    private ScheduledFuture<?> backOff;
    private boolean stopping;
    private String backend = "";
    private List<Device> devices = List.of();
    private volatile PoolState state;
    private volatile List<Integer> idlePids = List.of();

    /** Makes the first pool of a broker; {@link #start()} starts its workers. */
    WorkerPool(EventLoop loop, WorkerCommand command, Limits limits, Listener listener, Others others) {
        this(loop, command, limits, listener, others, WorkerKind.FIRST, true);
    }

    /**
     * Makes a pool of workers of one kind, once the broker knows the GPUs. It keeps none ready before {@link #resize}.
     *
     * @param command selects the kind for the workers.
     */
    WorkerPool(EventLoop loop, WorkerCommand command, Limits limits, Listener listener, Others others,
        WorkerKind kind) {
        this(loop, command, limits, listener, others, kind, false);
    }

    private WorkerPool(EventLoop loop, WorkerCommand command, Limits limits, Listener listener, Others others,
        WorkerKind kind, boolean isFirst) {
        this.loop = loop;
        this.command = command;
        this.limits = limits;
        this.listener = listener;
        this.kind = kind;
        this.isFirst = isFirst;
        this.others = others;
        waiting = new StartQueue<>(limits.starts(), others.weights(), others.active(), System::nanoTime);
        size = new PoolSize(isFirst ? limits.size() : 0);
        publish();
    }

    /** Starts the first workers; at least one, since a worker reports the GPUs. */
    public void start() {
        refill();
    }

    /** The present state; any thread. */
    public PoolState state() {
        return state;
    }

    /** Process ids of the ready workers without a session; any thread. */
    List<Integer> idlePids() {
        return idlePids;
    }

    /** Kind of the pool's workers. */
    WorkerKind kind() {
        return kind;
    }

    /** UUIDs of the GPUs that the pool's workers see; empty for all. Any thread. */
    List<String> gpus() {
        return kind.gpus();
    }

    /** Whether the pool has no worker and no waiting start. */
    boolean isIdle() {
        return workers.isEmpty() && waiting.size() == 0;
    }

    /** Gives up the network that the pool's workers share, if they have one. */
    void leaveNetwork() {
        if (command.confinement().communicates()) {
            command.confinement().close();
        }
    }

    /** Whether a start waits, or has waited lately, for one of the pool's workers. */
    boolean hasStarts() {
        return waiting.isActive();
    }

    /** Sets the number of workers to keep ready without demand. */
    void resize(int wanted) {
        size.setLeast(wanted);
        fit();
    }

    /** Ends ready workers beyond the pool's size, and beyond the memory that the GPUs have left for them. */
    void fit() {
        size.limit(others.mostGrown().getAsInt());
        while (ready.size() > size.target()) {
            retire(ready.poll());
        }
        refill();
    }

    private void retire(Worker worker) {
        workers.put(worker, Phase.ENDING);
        worker.end("it is not needed");
    }

    /** Replaces the workers that have no session. */
    void renew(String reason) {
        for (Worker worker : List.copyOf(workers.keySet())) {
            Phase phase = workers.get(worker);
            if (phase == Phase.READY || phase == Phase.STARTING) {
                workers.put(worker, Phase.ENDING);
                ready.remove(worker);
                worker.kill(reason);
            }
        }
        refill();
    }

    /**
     * Takes a ready worker, or waits for one in the line of the vGPU. The caller assigns it, or {@link Worker#kill
     * kills} it. Completes exceptionally with {@link NoWorkerException}. Cancelling the future gives up the place in
     * the line.
     */
    public CompletableFuture<Worker> take(String vgpu) {
        CompletableFuture<Worker> taken = new CompletableFuture<>();
        if (stopping) {
            taken.completeExceptionally(new NoWorkerException("the broker is shutting down"));
            return taken;
        }
        pruneReady();
        if (backOff != null && count(Phase.STARTING) == 0 && ready.isEmpty()) {
            taken.completeExceptionally(new NoWorkerException("no worker can be started: " + lastFailure));
        } else if (waiting.offer(vgpu, taken)) {
            taken.whenComplete((worker, failure) -> {
                if (taken.isCancelled() && waiting.remove(vgpu, taken)) {
                    publish();
                }
            });
            serve();
            if (waiting.fairWaiting() > 0) {
                noteDemand();
            }
        } else {
            taken.completeExceptionally(new NoWorkerException("starts of a vGPU that wait for a worker must be at "
                + "most " + limits.starts().maxWaiting() + ": vgpu=" + vgpu));
        }
        refill();
        return taken;
    }

    /** A guest waits: hastens workers that start ahead, and grows the pool when too few of them are starting. */
    private void noteDemand() {
        if (waiting.fairWaiting() > ahead.size()) {
            size.grow(others.mostGrown().getAsInt());
            if (review == null && size.grown() > 0) {
                review = loop.scheduleWithFixedDelay(this::review, limits.idleTime().toMillis(),
                    limits.idleTime().toMillis(), TimeUnit.MILLISECONDS);
            }
        }
        ahead.forEach(worker -> worker.setCpuWeight(Confinement.AWAITED_WEIGHT));
    }

    /** Gives up the workers that demand has added and no start has needed lately. */
    private void review() {
        size.review(ready.size());
        if (size.grown() == 0) {
            review.cancel(false);
            review = null;
        }
        fit();
    }

    /** Gives ready workers to starts, within the shares of the vGPUs. */
    private void serve() {
        pruneReady();
        for (CompletableFuture<Worker> next; (next = waiting.next(ready.size(), size.target())) != null;
            pruneReady()) {
            Worker worker = ready.poll();
            size.note(ready.size());
            workers.put(worker, Phase.ASSIGNED);
            publish(); // before the pool's caller serves the guest
            next.complete(worker);
        }
    }

    private void pruneReady() {
        ready.removeIf(worker -> !worker.isUsable());
    }

    /** Ends all workers; completes when none is left. Kills workers that do not end in time. */
    public CompletableFuture<Void> stop(String reason) {
        stopping = true;
        if (backOff != null) {
            backOff.cancel(false);
        }
        if (review != null) {
            review.cancel(false);
        }
        refuseAll(reason);
        ready.clear();
        for (Worker worker : List.copyOf(workers.keySet())) {
            if (workers.get(worker) == Phase.STARTING) {
                worker.kill(reason);
            } else {
                worker.end(reason);
            }
        }
        refill();
        return stopped;
    }

    private void refuseAll(String reason) {
        waiting.removeAll().forEach(start -> start.completeExceptionally(new NoWorkerException(reason)));
    }

    private void refill() {
        int probe = isFirst && devices.isEmpty() ? 1 : 0;
        while (!stopping && backOff == null && (waiting.toStart(stock()) > 0
            || ready.size() + count(Phase.STARTING) < probe)) {
            startOne();
        }
        if (stopping && workers.isEmpty()) {
            stopped.complete(null);
        }
        publish();
    }

    private StartQueue.Stock stock() {
        return new StartQueue.Stock(size.target(), ready.size(), count(Phase.STARTING),
            others.starting().getAsInt(), count(Phase.ASSIGNED) > 0);
    }

    /** The number of the next worker of any pool. */
    static long nextId() {
        return NEXT_ID.getAndIncrement();
    }

    private void startOne() {
        try {
            // A waiting guest gains more from an early worker than from fast first calls.
            boolean isAwaited = waiting.fairWaiting() > count(Phase.STARTING);
            String vgpu = waiting.needsMost(startedFor.values());
            long id = nextId();
            Worker worker = Worker.start(id, loop, command.line(id, isAwaited),
                isAwaited ? command.environmentWithoutWarmUp() : command.environment(), command.confinement(),
                isAwaited ? Confinement.AWAITED_WEIGHT : Confinement.AHEAD_WEIGHT, limits.endTimeout(),
                new WorkerListener());
            workers.put(worker, Phase.STARTING);
            if (!isAwaited) {
                ahead.add(worker);
            }
            if (vgpu != null) {
                startedFor.put(worker, vgpu);
            }
            startDeadlines.put(worker, loop.schedule(() -> worker.kill("it was not ready in time: timeoutMs="
                + limits.startTimeout().toMillis()), limits.startTimeout().toMillis(), TimeUnit.MILLISECONDS));
            LOG.debugf("worker %d started: pid=%d", worker.id(), worker.pid());
        } catch (PosixException e) {
            failed(e.getMessage());
        }
    }

    private void failed(String reason) {
        lastFailure = reason;
        listener.onStartFailure(reason);
        command.disableCache();
        if (backOff != null) {
            // The worker started together with others that have failed: count one failure, not several.
            LOG.errorf("a worker failed before it had a session: %s", reason);
        } else if (++failures == 1 && waiting.size() > 0) {
            LOG.errorf("a worker failed before it had a session, the next one starts at once: %s", reason);
            return;
        } else {
            delayStarts(reason);
        }
        if (count(Phase.STARTING) == 0) {
            refuseAll("no worker can be started: " + reason);
        }
    }

    private void delayStarts(String reason) {
        long factor = 1L << Math.min(failures - 1, 20);
        long delayMs = Math.min(limits.minBackOff().toMillis() * factor, limits.maxBackOff().toMillis());
        LOG.errorf("a worker failed before it had a session, next start in %d ms: failures=%d%s: %s", delayMs,
            failures, kind.equals(WorkerKind.FIRST) ? "" : " gpus=" + kind, reason);
        if (!stopping) {
            backOff = loop.schedule(() -> {
                backOff = null;
                refill();
            }, delayMs, TimeUnit.MILLISECONDS);
        }
    }

    private int count(Phase phase) {
        return (int) workers.values().stream().filter(p -> p == phase).count();
    }

    private void publish() {
        idlePids = ready.stream().map(Worker::pid).toList();
        state = new PoolState(size.target(), size.grown(), ready.size(), count(Phase.STARTING), count(Phase.ASSIGNED),
            failures, lastFailure, backend, devices, waiting.sizes());
    }

    private void becameReady(Worker worker, WorkerMessage.Ready message) {
        startDeadlines.remove(worker).cancel(false);
        ahead.remove(worker);
        failures = 0;
        lastFailure = "";
        if (backOff != null) {
            backOff.cancel(false);
            backOff = null;
        }
        backend = message.backend();
        command.confinement().reportJail(message.jail());
        devices = message.devices();
        publish();
        listener.onReady(worker.age());
        LOG.infof("worker %d is ready: pid=%d backend=%s gpus=%s startMs=%d", worker.id(), worker.pid(), backend,
            kind, worker.age().toMillis());
        String vgpu = startedFor.remove(worker);
        workers.put(worker, Phase.READY);
        ready.add(worker);
        serve();
        if (ready.size() > size.target() && ready.remove(worker)) {
            retire(worker);
            if (vgpu != null) {
                waiting.charge(vgpu);
            }
        }
        refill();
    }

    /** Handles messages and exits of workers by their phase. */
    private final class WorkerListener implements Worker.Listener {
        @Override
        public void onMessage(Worker worker, WorkerMessage message) {
            Phase phase = workers.get(worker);
            if (phase == Phase.STARTING && message instanceof WorkerMessage.Ready first) {
                becameReady(worker, first);
            } else if (phase == Phase.ASSIGNED && !(message instanceof WorkerMessage.Ready)) {
                listener.onMessage(worker, message);
            } else if (phase == Phase.STARTING && message instanceof WorkerMessage.Ended ended) {
                worker.kill("it ended before it was ready: " + ended.reason());
            } else if (phase != Phase.ENDING) {
                worker.kill("it sent a message out of turn: " + message.getClass().getSimpleName() + " when " + phase);
            }
        }

        @Override
        public void onExit(Worker worker, String reason) {
            Phase phase = workers.remove(worker);
            ready.remove(worker);
            ahead.remove(worker);
            startedFor.remove(worker);
            ScheduledFuture<?> deadline = startDeadlines.remove(worker);
            if (deadline != null) {
                deadline.cancel(false);
            }
            if (phase == Phase.ASSIGNED) {
                listener.onExit(worker, reason);
            } else if (phase != Phase.ENDING && !stopping) {
                failed("worker " + worker.id() + ": " + reason);
            }
            refill();
        }
    }
}
