package io.hawser.worker.calls;

import io.hawser.cuda.generated.CudaDriver;
import io.hawser.cuda.generated.EventManualCalls;
import io.hawser.cuda.generated.EventReplies;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MovedEvents;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Events. Those for other processes keep their state in shared memory: {@link InterprocessEvent}. Session thread. */
final class EventCalls implements EventManualCalls<Call> {
    private final Session session;
    private final GuestObjects objects;
    private final CudaDriver driver;

    EventCalls(Session session) {
        this.session = session;
        this.objects = session.objects();
        this.driver = session.backend().driver();
    }

    /** The event of a handle if other sessions can use it, else null. */
    static InterprocessEvent shared(Handle handle) {
        InterprocessEvent event = handle.info(InterprocessEvent.class);
        return event == null || !event.isShared() ? null : event;
    }

    @Override
    public void cuEventCreate(Call call, long eventId, int flags) {
        boolean isInterprocess = (flags & InterprocessEvent.FLAG) != 0;
        MemorySegment out = call.scratch(Long.BYTES);
        int result = isInterprocess && session.backend().signals() == null ? CudaResult.NOT_SUPPORTED
            : driver.cuEventCreate(out, flags & ~InterprocessEvent.FLAG);
        if (result != 0) {
            call.registerFailed(HandleKind.EVENT, eventId);
        } else {
            register(call, eventId, out.get(ValueLayout.JAVA_LONG, 0), isInterprocess);
        }
        call.finish(result);
    }

    private void register(Call call, long eventId, long event, boolean isInterprocess) {
        if (isInterprocess) {
            objects.register(call, HandleKind.EVENT, eventId, event, objects.owningContext(),
                new InterprocessEvent(session, event));
        } else {
            call.register(HandleKind.EVENT, eventId, event);
        }
    }

    @Override
    public void cuEventElapsedTime_v2(Call call, long start, long end) {
        MemorySegment out = call.scratch(Float.BYTES);
        MovedEvents moved = session.moving().events();
        int result = moved.has(start) || moved.has(end) ? moved.elapsed(driver, start, end, out)
            : driver.cuEventElapsedTime_v2(out, start, end);
        EventReplies.cuEventElapsedTime_v2(call.reply(), out.get(ValueLayout.JAVA_FLOAT, 0));
        call.finish(result);
    }

    @Override
    public void cuEventRecordWithFlags(Call call, long event, long stream, int flags) {
        session.moving().events().forget(event);
        InterprocessEvent shared = shared(call.lastObject());
        call.finish(shared == null ? driver.cuEventRecordWithFlags(event, stream, flags)
            : shared.record(call.lastStream()));
    }

    @Override
    public void hwsEventRecord(Call call, long event, long stream) {
        session.moving().events().forget(event);
        Handle handle = call.lastObject();
        long sequence = call.sequence();
        int result = shared(handle) != null ? CudaResult.INVALID_VALUE
            : driver.cuEventRecordWithFlags(event, stream, 0);
        if (result == 0) {
            session.work().issued(call.lastStream(), 1);
            session.work().whenReached(call.lastStream(), status -> session.reached(handle.id(), sequence, status));
        }
        call.finish(result);
    }

    @Override
    public void cuEventQuery(Call call, long event) {
        InterprocessEvent shared = shared(call.lastObject());
        call.finish(shared == null ? driver.cuEventQuery(event) : shared.query());
    }

    @Override
    public void cuEventSynchronize(Call call, long event) {
        InterprocessEvent shared = shared(call.lastObject());
        call.deferWithoutRecord();
        if (shared != null && !shared.isLocal()) {
            shared.whenReached(() -> call.finishSynchronised(0));
            return;
        }
        int wait = session.backend().whenEventReached(event,
            status -> session.completions().add(() -> call.finishSynchronised(status)));
        if (wait != 0) {
            session.completions().add(() -> call.finishSynchronised(wait));
        }
    }
}
