package io.hawser.worker.calls;

import io.hawser.cuda.CallContext;
import io.hawser.cuda.generated.EventManualCalls;
import io.hawser.cuda.generated.StreamManualCalls;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Session;

/**
 * Waits for streams and events. The calls are issued in order and answered when their work is done; they block no other
 * thread.
 */
final class StreamCalls implements StreamManualCalls, EventManualCalls {
    private final Session session;

    StreamCalls(Session session) {
        this.session = session;
    }

    @Override
    public void cuStreamSynchronize(CallContext context, long hStream) {
        Call call = Call.of(context);
        call.deferWithoutRecord();
        session.work().whenReached(call.lastStream(), call::finishSynchronised);
    }

    @Override
    public void cuEventSynchronize(CallContext context, long hEvent) {
        Call call = Call.of(context);
        call.deferWithoutRecord();
        int wait = session.backend().whenEventReached(hEvent,
            status -> session.completions().add(() -> call.finishSynchronised(status)));
        if (wait != 0) {
            session.completions().add(() -> call.finishSynchronised(wait));
        }
    }
}
