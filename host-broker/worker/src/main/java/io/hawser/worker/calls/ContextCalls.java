package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.ContextManualCalls;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Contexts. Session thread. */
final class ContextCalls implements ContextManualCalls<Call> {
    private final Session session;
    private final GuestObjects objects;
    private final GpuBackend backend;

    ContextCalls(Session session) {
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend();
    }

    @Override
    public void hwsContextCreate(Call call, long ctxId, int device, int flags, int primary) {
        if (device < 0 || device >= backend.deviceCount()) {
            call.fail(CudaResult.INVALID_DEVICE);
            return;
        }
        // The placement of vGPUs accounts for the primary context of each worker, so only other contexts are charged
        // here.
        MemoryQuota.Charge charge = objects.quota().claim(device, primary != 0 ? 0
            : objects.quota().contextBytes(device));
        if (charge == null) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = backend.createContext(device, flags, primary != 0, out);
        if (result != 0) {
            charge.giveBack();
        } else {
            long nativeContext = out.get(ValueLayout.JAVA_LONG, 0);
            for (Handle other : objects.handles().all(HandleKind.CONTEXT)) {
                if (other.nativeHandle() == nativeContext) {
                    call.fatal("a device's primary context must have only one handle: device=" + device);
                    return;
                }
            }
            objects.registerContext(call, ctxId, nativeContext, device, charge);
        }
        call.finish(result);
    }

    @Override
    public void cuCtxSetLimit(Call call, int limit, long value) {
        long before = objects.claimedFor(limit);
        int result = value < 0 ? CudaResult.OUT_OF_MEMORY : objects.claimLimit(limit, value);
        if (result == 0) {
            result = backend.driver().cuCtxSetLimit(limit, value);
            if (result != 0) {
                objects.unclaimLimit(limit, before);
            }
        }
        call.finish(result);
    }

    @Override
    public void cuCtxEnablePeerAccess(Call call, long peerContext, int flags) {
        Handle peer = call.lastObject();
        int result = backend.driver().cuCtxEnablePeerAccess(peerContext, flags);
        call.finish(result != 0 ? result : allowPeer(peer, true));
    }

    @Override
    public void cuCtxDisablePeerAccess(Call call, long peerContext) {
        Handle peer = call.lastObject();
        int result = backend.driver().cuCtxDisablePeerAccess(peerContext);
        call.finish(result != 0 ? result : allowPeer(peer, false));
    }

    /** Lets the current context's device use the arena of another context's device, or ends that. */
    private int allowPeer(Handle peer, boolean isAllowed) {
        return objects.arena().allowPeer(objects.deviceOf(peer), objects.deviceOf(objects.currentContext()), isAllowed);
    }

    @Override
    public void hwsContextDestroy(Call call, long ctx, long ctxId) {
        Handle context = call.lastObject();
        call.deferWithoutRecord();
        Runnable destroy = () -> session.gates().whenClosed(() -> destroy(call, context));
        int wait = backend.whenContextReached(context.nativeHandle(),
            status -> session.completions().add(destroy));
        if (wait != 0) { // a lost context reports nothing
            session.completions().add(destroy);
        }
    }

    private void destroy(Call call, Handle context) {
        if (!objects.isLive(context)) {
            call.finish(CudaResult.INVALID_CONTEXT);
            return;
        }
        call.finish(objects.destroyContext(context));
    }

    @Override
    public void cuCtxSynchronize(Call call) {
        Handle context = objects.currentContext();
        if (context == null) {
            call.fail(CudaResult.INVALID_CONTEXT);
            return;
        }
        call.deferWithoutRecord();
        long launches = session.turns().last();
        int wait = backend.whenContextReached(context.nativeHandle(), status -> session.completions().add(() -> {
            session.turns().contextReached(context.nativeHandle(), launches);
            call.finishSynchronised(status);
        }));
        if (wait != 0) {
            session.completions().add(() -> call.finishSynchronised(wait));
        }
    }

    @Override
    public void cuCtxRecordEvent(Call call, long context, long event) {
        InterprocessEvent shared = EventCalls.shared(call.lastObject());
        call.finish(shared == null ? backend.driver().cuCtxRecordEvent(context, event) : shared.recordContext(context));
    }

    @Override
    public void cuCtxWaitEvent(Call call, long context, long event) {
        InterprocessEvent shared = EventCalls.shared(call.lastObject());
        call.finish(shared == null ? backend.driver().cuCtxWaitEvent(context, event) : shared.waitContext(context));
    }
}
