package io.hawser.worker.calls;

import io.hawser.worker.session.Call;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.WorkEnd;

/** Waits for the work of all contexts, for objects that belong to no context. Session thread. */
final class ContextWaits {
    private final Session session;

    ContextWaits(Session session) {
        this.session = session;
    }

    /**
     * Runs a step on the session thread after all work issued before is done or has failed, and no host function waits
     * for the guest. The step may make the driver wait for the whole device.
     *
     * @param call the call that the step ends; it must no longer need its record.
     * @param step the step.
     */
    void run(Call call, Runnable step) {
        call.deferWithoutRecord();
        WorkEnd.await(session, () -> session.gates().whenClosed(step));
    }
}
