package io.hawser.worker.calls;

import io.hawser.cuda.CallContext;
import io.hawser.cuda.generated.EventManualCalls;
import io.hawser.cuda.generated.StreamManualCalls;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Session;

/** Waiting for streams and events: issued in order, answered when reached, holding up nobody. */
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
