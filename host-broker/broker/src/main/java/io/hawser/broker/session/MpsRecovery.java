package io.hawser.broker.session;

import io.hawser.broker.model.SessionView;
import io.hawser.broker.pool.WorkerPools;
import java.time.Instant;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * Recovers from faults under MPS. A fault ends the work of all processes on the GPU, and MPS's server accepts no new
 * process there until all previous ones have ended. This includes processes that have not noticed the fault, and ready
 * workers. Event loop only.
 */
public final class MpsRecovery {
    private static final Logger LOG = Logger.getLogger(MpsRecovery.class);
    private static final String REASON = "a fault on its GPU under MPS has ended its work";
    private static final long PAUSE_MS = 2000;

    private final ScheduledExecutorService loop;
    private final WorkerPools pools;
    private final SessionRegistry sessions;

    /** Makes an object that uses the broker's event loop. */
    public MpsRecovery(ScheduledExecutorService loop, WorkerPools pools, SessionRegistry sessions) {
        this.loop = loop;
        this.pools = pools;
        this.sessions = sessions;
    }

    /** Replaces the ready workers on a session's GPUs, and ends all sessions there. */
    public void recover(SessionView faulted) {
        Instant then = Instant.now();
        LOG.warnf("a fault of session %d under MPS ends all work on its GPUs: gpus=%s vgpu=%s",
            faulted.id(), faulted.gpus(), faulted.guest().vgpu());
        pools.renew(faulted.gpus(), REASON);
        // The pause lets guests receive the CUDA error of the fault first, if they call.
        loop.schedule(() -> sessions.endAllOn(faulted.gpus(), then, REASON), PAUSE_MS, TimeUnit.MILLISECONDS);
    }
}
