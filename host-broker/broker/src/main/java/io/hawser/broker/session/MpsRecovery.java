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
 * workers. A failure of the server itself ends the work on all GPUs. Event loop only.
 */
public final class MpsRecovery {
    private static final Logger LOG = Logger.getLogger(MpsRecovery.class);
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

    /**
     * Replaces the ready workers on the GPUs whose work is lost, and ends all sessions there.
     *
     * @param faulted the session that has reported the fault.
     * @param result the CUresult that its worker has reported.
     */
    public void recover(SessionView faulted, long result) {
        Instant then = Instant.now();
        MpsFault fault = MpsFault.of(result);
        boolean isServer = fault == MpsFault.SERVER;
        LOG.warnf("session %d has lost its work under MPS: %s: CUresult=%d gpus=%s vgpu=%s", faulted.id(),
            fault.reason(), result, faulted.gpus(), faulted.guest().vgpu());
        if (fault == MpsFault.TERMINATED) {
            return;
        }
        if (isServer) {
            pools.renewAll(fault.reason());
        } else {
            pools.renew(faulted.gpus(), fault.reason());
        }
        // The pause lets guests receive the CUDA error of the fault first, if they call.
        loop.schedule(() -> isServer ? sessions.endAllStartedBy(then, fault.reason())
            : sessions.endAllOn(faulted.gpus(), then, fault.reason()), PAUSE_MS, TimeUnit.MILLISECONDS);
    }
}
