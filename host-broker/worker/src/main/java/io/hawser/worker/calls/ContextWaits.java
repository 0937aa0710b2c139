package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.util.List;

/** Waits for the work of all contexts, for objects that belong to no context. Session thread. */
final class ContextWaits {
    private final Session session;
    private final GpuBackend backend;

    ContextWaits(Session session) {
        this.session = session;
        this.backend = session.backend();
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
        List<Handle> contexts = session.objects().handles().all(HandleKind.CONTEXT);
        Wait wait = new Wait(() -> session.gates().whenClosed(step), contexts.size());
        for (Handle context : contexts) {
            int refused = context.isFailed() ? -1 : backend.whenContextReached(context.nativeHandle(),
                status -> session.completions().add(wait::reached));
            if (refused != 0) { // a lost context reports nothing
                session.completions().add(wait::reached);
            }
        }
        session.completions().add(wait::reached); // counts for this method itself
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
