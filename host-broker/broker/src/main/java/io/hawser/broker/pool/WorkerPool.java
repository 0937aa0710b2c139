package io.hawser.broker.pool;

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
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.ToIntFunction;
import org.jboss.logging.Logger;

/**
 * A pool of workers started ahead. A worker that dies before it has a session counts as a failed start. The pool delays
 * the next start, longer after each failure. Event loop only, except {@link #state()}.
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

    /** Sizes and times. */
    public record Limits(int size, Duration startTimeout, Duration minBackOff, Duration maxBackOff,
        Duration endTimeout, StartRules starts) {}

    /**
     * Determines the order of starts.
     *
     * @param weights of vGPUs, by name, 1 to 100.
     * @param activeElsewhere whether a start waits, or has waited lately, for a worker of another pool.
     */
    record Fairness(ToIntFunction<String> weights, BooleanSupplier activeElsewhere) {}

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
    private final WorkerKind kind;
    private final boolean isFirst; // of the broker's pools: its first worker reports the GPUs
    private int size;
    private int failures;
    private String lastFailure = "";
    private ScheduledFuture<?> backOff;
    private boolean stopping;
    private String backend = "";
    private List<Device> devices = List.of();
    private volatile PoolState state;
    private volatile List<Integer> idlePids = List.of();

    /** Makes the first pool of a broker; {@link #start()} starts its workers. */
    WorkerPool(EventLoop loop, WorkerCommand command, Limits limits, Listener listener, Fairness fairness) {
        this(loop, command, limits, listener, fairness, WorkerKind.FIRST, true);
    }

    /**
     * Makes a pool of workers of one kind, once the broker knows the GPUs. It keeps none ready before {@link #resize}.
     *
     * @param command selects the kind for the workers.
     */
    WorkerPool(EventLoop loop, WorkerCommand command, Limits limits, Listener listener, Fairness fairness,
        WorkerKind kind) {
        this(loop, command, limits, listener, fairness, kind, false);
    }

    private WorkerPool(EventLoop loop, WorkerCommand command, Limits limits, Listener listener, Fairness fairness,
        WorkerKind kind, boolean isFirst) {
        this.loop = loop;
        this.command = command;
        this.limits = limits;
        this.listener = listener;
        this.kind = kind;
        this.isFirst = isFirst;
        waiting = new StartQueue<>(limits.starts(), fairness.weights(), fairness.activeElsewhere(), System::nanoTime);
        size = isFirst ? limits.size() : 0;
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

    /** Whether a start waits, or has waited lately, for one of the pool's workers. */
    boolean hasStarts() {
        return waiting.isActive();
    }

    /** Sets the number of workers to keep ready, and ends ready workers beyond it. */
    void resize(int wanted) {
        size = wanted;
        while (ready.size() > size) {
            Worker worker = ready.poll();
            workers.put(worker, Phase.ENDING);
            worker.end("it is not needed");
        }
        refill();
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
        if (backOff != null && ready.isEmpty()) {
            taken.completeExceptionally(new NoWorkerException("no worker can be started: " + lastFailure));
        } else if (waiting.offer(vgpu, taken)) {
            taken.whenComplete((worker, failure) -> {
                if (taken.isCancelled() && waiting.remove(vgpu, taken)) {
                    publish();
                }
            });
            serve();
        } else {
            taken.completeExceptionally(new NoWorkerException("starts of a vGPU that wait for a worker must be at "
                + "most " + limits.starts().maxWaiting() + ": vgpu=" + vgpu));
        }
        refill();
        return taken;
    }

    /** Gives ready workers to starts, within the shares of the vGPUs. */
    private void serve() {
        pruneReady();
        for (CompletableFuture<Worker> next; (next = waiting.next(ready.size(), size)) != null; pruneReady()) {
            Worker worker = ready.poll();
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
        while (!stopping && backOff == null && (waiting.toStart(ready.size(), count(Phase.STARTING), size) > 0
            || ready.size() + count(Phase.STARTING) < probe)) {
            startOne();
        }
        if (stopping && workers.isEmpty()) {
            stopped.complete(null);
        }
        publish();
    }

    private void startOne() {
        try {
            // A waiting guest gains more from an early worker than from fast first calls.
            boolean awaited = waiting.fairWaiting() > count(Phase.STARTING);
            String vgpu = waiting.needsMost(startedFor.values());
            long id = NEXT_ID.getAndIncrement();
            Worker worker = Worker.start(id, loop, command.line(id),
                awaited ? command.environmentWithoutWarmUp() : command.environment(), command.confinement(),
                limits.endTimeout(), new WorkerListener());
            workers.put(worker, Phase.STARTING);
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
            // The worker started together with another that has failed: count one failure, not two.
            LOG.errorf("a worker failed before it had a session: %s", reason);
            return;
        }
        failures++;
        long factor = 1L << Math.min(failures - 1, 20);
        long delayMs = Math.min(limits.minBackOff().toMillis() * factor, limits.maxBackOff().toMillis());
        LOG.errorf("a worker failed before it had a session, next start in %d ms: failures=%d%s: %s", delayMs,
            failures, kind.equals(WorkerKind.FIRST) ? "" : " gpus=" + kind, reason);
        refuseAll("no worker can be started: " + reason);
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
        state = new PoolState(size, ready.size(), count(Phase.STARTING), count(Phase.ASSIGNED), failures,
            lastFailure, backend, devices, waiting.sizes());
    }

    private void becameReady(Worker worker, WorkerMessage.Ready message) {
        startDeadlines.remove(worker).cancel(false);
        failures = 0;
        lastFailure = "";
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
        if (ready.size() > size && ready.remove(worker)) {
            workers.put(worker, Phase.ENDING);
            worker.end("it is not needed");
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
