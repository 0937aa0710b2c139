package io.hawser.worker.session;

import io.hawser.cuda.generated.HandleKind;
import java.util.List;

/** Waits for the work of all contexts of a session. Session thread. */
public final class WorkEnd {
    private final Runnable step;
    private int missing;

    private WorkEnd(int missing, Runnable step) {
        this.missing = missing;
        this.step = step;
    }

    /** Runs a step on the session thread after all work issued before is done or has failed; never in the caller. */
    public static void await(Session session, Runnable step) {
        List<Handle> contexts = session.objects().handles().all(HandleKind.CONTEXT);
        WorkEnd end = new WorkEnd(contexts.size() + 1, step);
        for (Handle context : contexts) {
            int refused = context.isFailed() ? -1 : session.backend().whenContextReached(context.nativeHandle(),
                status -> session.completions().add(end::reached));
            if (refused != 0) { // a lost context reports nothing
                session.completions().add(end::reached);
            }
        }
        session.completions().add(end::reached); // counts for this method itself
    }

    private void reached() {
        if (--missing == 0) {
            step.run();
        }
    }
}
