package io.hawser.broker.pool;

import io.hawser.broker.jail.Confinement;
import io.hawser.broker.posix.PosixException;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jboss.logging.Logger;

/**
 * The process that moves the whole GPU state of workers to the host and back. It is a worker without a session and
 * without a jail: it must reach other processes of the broker. The first move starts it, and it stays. One move at a
 * time, ways back first, since a guest waits for them. A helper that dies, or hangs for {@value #LIMIT_MS} ms, is
 * replaced at the next move. Event loop only.
 */
public final class MoveHelper {
    private static final Logger LOG = Logger.getLogger(MoveHelper.class);
    private static final long LIMIT_MS = 30_000;

    /**
     * The end of a move.
     *
     * @param problem why the process has not moved; empty when it has.
     * @param state of the process now; FAILED also when nobody knows it.
     * @param ms time that the move took; 0 when it has not begun.
     * @param isOfDriver whether the driver has given the result, not the helper's end.
     */
    public record Outcome(String problem, WorkerMessage.ProcessState state, long ms, boolean isOfDriver) {
        private Outcome(String problem, WorkerMessage.ProcessState state) {
            this(problem, state, 0, false);
        }
    }

    private record Move(Worker target, boolean isBack, long bytes, Consumer<Outcome> done) {}

    private final EventLoop loop;
    private final WorkerCommand command;
    private final Duration startTimeout;
    private final Duration endTimeout;
    private final Deque<Move> back = new ArrayDeque<>();
    private final Deque<Move> away = new ArrayDeque<>();
    private final CompletableFuture<Void> stopped = new CompletableFuture<>();
    private Worker helper; // null while there is none
    private boolean isReady;
    private Move current; // null while the helper has no order
    private ScheduledFuture<?> deadline; // of the helper's start, or of the present move; null while neither runs
    private boolean isStopping;

    /**
     * Starts without a process.
     *
     * @param command of the broker's workers.
     * @param startTimeout limit of the helper's start.
     * @param endTimeout limit of its end.
     */
    public MoveHelper(EventLoop loop, WorkerCommand command, Duration startTimeout, Duration endTimeout) {
        this.loop = loop;
        this.command = command;
        this.startTimeout = startTimeout;
        this.endTimeout = endTimeout;
    }

    /**
     * Moves a worker's GPU state to the host. The worker makes no call of the driver meanwhile.
     *
     * @param bytes length of the state, as far as it is known.
     * @param done gets the end, unless the worker ends before; never during this call.
     */
    public void checkpoint(Worker target, long bytes, Consumer<Outcome> done) {
        away.add(new Move(target, false, bytes, done));
        loop.execute(this::next);
    }

    /** Moves a worker back to its GPU. As {@link #checkpoint}. */
    public void restore(Worker target, Consumer<Outcome> done) {
        back.add(new Move(target, true, 0, done));
        loop.execute(this::next);
    }

    private void next() {
        back.removeIf(move -> !move.target.isUsable());
        away.removeIf(move -> !move.target.isUsable());
        if (current != null || isStopping || back.isEmpty() && away.isEmpty()) {
            return;
        }
        if (helper == null) {
            start();
        } else if (isReady && helper.isUsable()) { // else the event of its start or end calls this method again
            current = back.isEmpty() ? away.remove() : back.remove();
            if (current.isBack) {
                helper.restore(current.target.pid());
            } else {
                helper.checkpoint(current.target.pid(), current.bytes);
            }
            limit(LIMIT_MS, "a move took longer than " + LIMIT_MS + " ms");
        }
    }

    private void limit(long ms, String reason) {
        Worker limited = helper;
        deadline = loop.schedule(() -> limited.kill(reason), ms, TimeUnit.MILLISECONDS);
    }

    private void endLimit() {
        if (deadline != null) {
            deadline.cancel(false);
            deadline = null;
        }
    }

    private void start() {
        List<String> line = command.helperLine();
        if (line.isEmpty()) {
            refuseAll("hawser.worker.command names a program that cannot help");
            return;
        }
        try {
            helper = Worker.start(WorkerPool.nextId(), loop, line, command.environment(), Confinement.NONE,
                Confinement.AWAITED_WEIGHT, endTimeout, new HelperListener());
            limit(startTimeout.toMillis(), "it was not ready in time: timeoutMs=" + startTimeout.toMillis());
        } catch (PosixException e) {
            refuseAll("the helper cannot be started: " + e.getMessage());
        }
    }

    /** Nothing has happened to the processes that wait. */
    private void refuseAll(String reason) {
        LOG.warnf("no process can be moved: %s", reason);
        List<Move> all = Stream.concat(back.stream(), away.stream()).toList();
        back.clear();
        away.clear();
        all.forEach(move -> move.done.accept(new Outcome(reason, move.isBack
            ? WorkerMessage.ProcessState.CHECKPOINTED : WorkerMessage.ProcessState.RUNNING)));
    }

    private void finish(Outcome outcome) {
        Move done = current;
        current = null;
        endLimit();
        done.done.accept(outcome);
    }

    /** Ends the helper; completes when it has ended. */
    public CompletableFuture<Void> stop(String reason) {
        isStopping = true;
        if (helper == null) {
            stopped.complete(null);
        } else if (current == null && isReady) {
            helper.end(reason);
        } else {
            helper.kill(reason);
        }
        return stopped;
    }

    private final class HelperListener implements Worker.Listener {
        @Override
        public void onMessage(Worker worker, WorkerMessage message) {
            if (message instanceof WorkerMessage.Ready && !isReady) {
                isReady = true;
                endLimit();
                LOG.infof("worker %d moves the whole GPU state of sessions: pid=%d startMs=%d", worker.id(),
                    worker.pid(), worker.age().toMillis());
            } else if (message instanceof WorkerMessage.ProcessMoved moved && current != null
                && moved.pid() == current.target.pid()) {
                finish(outcome(moved));
            } else {
                worker.kill("it sent a message out of turn: " + message.getClass().getSimpleName());
            }
            next();
        }

        private Outcome outcome(WorkerMessage.ProcessMoved moved) {
            WorkerMessage.ProcessState wanted = current.isBack ? WorkerMessage.ProcessState.RUNNING
                : WorkerMessage.ProcessState.CHECKPOINTED;
            boolean isDone = moved.result() == 0 && moved.state() == wanted;
            return new Outcome(isDone ? "" : "CUresult=" + moved.result() + " state=" + moved.state(), moved.state(),
                moved.ms(), true);
        }

        @Override
        public void onExit(Worker worker, String reason) {
            boolean wasReady = isReady;
            helper = null;
            isReady = false;
            endLimit();
            if (isStopping) {
                stopped.complete(null);
                return;
            }
            LOG.warnf("the helper that moves sessions has ended: worker=%d: %s", worker.id(), reason);
            if (current != null) {
                finish(new Outcome("the helper has ended during the move: " + reason,
                    WorkerMessage.ProcessState.FAILED));
            }
            if (!wasReady) {
                refuseAll("the helper cannot be started: " + reason);
            }
            next();
        }
    }
}
