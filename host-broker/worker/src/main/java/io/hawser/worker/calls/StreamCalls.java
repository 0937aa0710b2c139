package io.hawser.worker.calls;

import io.hawser.cuda.generated.StreamManualCalls;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Session;

/** Waits for streams, and waits of streams. The calls are issued in order; they block no other thread. */
final class StreamCalls implements StreamManualCalls<Call> {
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
    public void cuStreamWaitEvent(Call call, long hStream, long hEvent, int flags) {
        InterprocessEvent shared = EventCalls.shared(call.lastObject());
        call.finish(shared == null ? session.backend().driver().cuStreamWaitEvent(hStream, hEvent, flags)
            : shared.wait(call.lastStream()));
    }
}
