package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.util.List;

/** Ends calls when the work of all contexts is done: for what belongs to none of them. Session thread. */
final class ContextWaits {
    private final Session session;
    private final GpuBackend backend;

    ContextWaits(Session session) {
        this.session = session;
        this.backend = session.backend();
    }

    /**
     * Runs a step on the session thread, later, when all work that was issued before is done or has failed, and no host
     * function waits for the guest: the step may make the driver wait for the whole device.
     *
     * @param call that the step ends; it must not need its record any more.
     * @param step what is to be done.
     */
    void run(Call call, Runnable step) {
        call.deferWithoutRecord();
        List<Handle> contexts = session.objects().handles().all(HandleKind.CONTEXT);
        Wait wait = new Wait(() -> session.gates().whenClosed(step), contexts.size());
        for (Handle context : contexts) {
            int refused = context.isFailed() ? -1 : backend.whenContextReached(context.nativeHandle(),
                status -> session.completions().add(wait::reached));
            if (refused != 0) { // a lost context does not wait
                session.completions().add(wait::reached);
            }
        }
        session.completions().add(wait::reached); // for itself
    }

    private static final class Wait {
        private final Runnable step;
        private int missing;

        Wait(Runnable step, int contexts) {
            this.step = step;
            missing = contexts + 1;
        }

        void reached() {
            if (--missing == 0) {
                step.run();
            }
        }
    }
}
