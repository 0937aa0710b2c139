package io.hawser.worker.calls;

import io.hawser.cuda.generated.EventManualCalls;
import io.hawser.cuda.generated.StreamManualCalls;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Session;

/**
 * Waits for streams and events. The calls are issued in order and answered when their work is done; they block no other
 * thread.
 */
final class StreamCalls implements StreamManualCalls<Call>, EventManualCalls<Call> {
    private final Session session;

    StreamCalls(Session session) {
        this.session = session;
    }

    @Override
    public void cuStreamSynchronize(Call call, long hStream) {
        call.deferWithoutRecord();
        session.work().whenReached(call.lastStream(), call::finishSynchronised);
    }

    @Override
    public void cuEventSynchronize(Call call, long hEvent) {
        call.deferWithoutRecord();
        int wait = session.backend().whenEventReached(hEvent,
            status -> session.completions().add(() -> call.finishSynchronised(status)));
        if (wait != 0) {
            session.completions().add(() -> call.finishSynchronised(wait));
        }
    }
}
