package io.hawser.worker;

import io.hawser.cuda.backend.ProcessCheckpoints;
import io.hawser.cuda.generated.CUresult;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.ControlCodec;
import io.hawser.worker.control.ControlSocket;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.memory.AvailableMemory;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * The process that moves the GPU state of other workers to host memory and back. It has no jail, because it must reach
 * the other workers, and no context on a GPU. It serves no guest: it obeys the broker alone, which names each process,
 * and reads nothing from the workers. It exits when the broker closes the control socket, also during a move.
 */
final class Helper {
    private static final Logger LOG = System.getLogger(Helper.class.getName());
    /** How long calls of a process may delay its move. A worker that is ready for the move makes none. */
    private static final int LOCK_LIMIT_MS = 5000;
    /** Memory of the host that stays available, as with a keeper: a host that is short of it ends processes. */
    private static final long SPARE_BYTES = 512L << 20;

    private final ControlSocket control;
    private final ControlCodec codec = new ControlCodec();
    private final ProcessCheckpoints checkpoints;
    private final AvailableMemory available;
    /** Not the reader's thread: the process must notice the broker's end while a call of the driver hangs. */
    private final ExecutorService mover = Executors.newSingleThreadExecutor(task -> {
        Thread thread = new Thread(task, "mover");
        thread.setDaemon(true);
        return thread;
    });
    private volatile boolean hasFailed;

    Helper(ControlSocket control, ProcessCheckpoints checkpoints, AvailableMemory available) {
        this.control = control;
        this.checkpoints = checkpoints;
        this.available = available;
    }

    /**
     * Runs a helper until the broker ends it.
     *
     * @param backend as in {@link WorkerOptions#backend}.
     * @return false after a failure.
     * @throws IllegalStateException where the driver does not start, or this kind of GPU has no such moves.
     */
    static boolean run(ControlSocket control, String backend) throws IOException {
        ProcessCheckpoints checkpoints = Backends.provider(backend).checkpoints();
        if (checkpoints == null) {
            throw new IllegalStateException("this kind of GPU cannot move the state of processes: backend=" + backend);
        }
        Helper helper = new Helper(control, checkpoints, AvailableMemory.open());
        control.write(helper.codec.encode(new WorkerMessage.Ready(ProcessHandle.current().pid(),
            Backends.provider(backend).name(), "", List.of())));
        return helper.obey();
    }

    /**
     * Obeys the broker's orders, one at a time, until its end or the broker's.
     *
     * @return false after a failure.
     */
    boolean obey() throws IOException {
        for (ControlSocket.Frame frame = control.read(); frame != null; frame = control.read()) {
            switch (codec.decode(frame.json())) {
                case BrokerMessage.Checkpoint move -> mover.execute(() -> move(move.pid(), () -> checkpoint(move)));
                case BrokerMessage.Restore move -> mover.execute(
                    () -> move(move.pid(), () -> checkpoints.restore(move.pid())));
                case BrokerMessage.End end -> {
                    LOG.log(Level.DEBUG, "the helper ends: {0}", end.reason());
                    return !hasFailed;
                }
                case null, default -> throw new IOException("a helper must get only orders to move processes");
            }
        }
        return !hasFailed;
    }

    private void move(int pid, Callable<ProcessCheckpoints.Outcome> move) {
        long startNs = System.nanoTime();
        try {
            ProcessCheckpoints.Outcome outcome = move.call();
            control.write(codec.encode(new WorkerMessage.ProcessMoved(pid, outcome.result(),
                outcome.state().ordinal(), TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNs))));
        } catch (Exception e) {
            LOG.log(Level.ERROR, "the helper has failed: " + e.getMessage(), e);
            hasFailed = true;
            control.end(); // the reader then ends the process
        }
    }

    private ProcessCheckpoints.Outcome checkpoint(BrokerMessage.Checkpoint move) throws IOException {
        if (available.bytes() - SPARE_BYTES < move.bytes()) {
            return new ProcessCheckpoints.Outcome(CUresult.CUDA_ERROR_OUT_OF_MEMORY, ProcessCheckpoints.State.RUNNING);
        }
        return checkpoints.checkpoint(move.pid(), LOCK_LIMIT_MS);
    }
}
