package io.hawser.worker.calls;

import io.hawser.cuda.backend.GreenContexts;
import io.hawser.cuda.generated.CUdevSmResource;
import io.hawser.cuda.generated.GreenManualCalls;
import io.hawser.cuda.generated.GreenReplies;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Green contexts. Session thread. */
final class GreenCalls implements GreenManualCalls<Call> {
    private static final int MAX_GREEN_CONTEXTS = 256; // per session; each costs memory in the driver

    private final Session session;
    private final GuestObjects objects;
    private final GreenContexts backend;

    GreenCalls(Session session) {
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend().greenContexts();
    }

    /** The multiprocessors that the guest names; null when this has ended the call. */
    private GreenContexts.Whole whole(Call call, int device, long contextId) {
        Handle context = contextId == 0 ? null : objects.handles().find(HandleKind.CONTEXT, contextId);
        int result = backend == null ? CudaResult.NOT_SUPPORTED
            : device < 0 || device >= session.backend().deviceCount() ? CudaResult.INVALID_DEVICE
            : contextId != 0 && (context == null || !context.isGreen() || objects.deviceOf(context) != device)
                ? CudaResult.INVALID_CONTEXT
            : 0;
        if (result != 0) {
            call.fail(result);
            return null;
        }
        return new GreenContexts.Whole(device, context == null ? 0 : context.nativeHandle());
    }

    @Override
    public void hwsSmResource(Call call, int device, long contextId) {
        GreenContexts.Whole whole = whole(call, device, contextId);
        if (whole == null) {
            return;
        }
        MemorySegment out = call.scratch(CUdevSmResource.BYTES);
        int result = backend.resource(whole, out);
        if (result == 0) {
            GreenReplies.hwsSmResource(call.reply(), out);
        }
        call.finish(result);
    }

    @Override
    public void hwsSmSplit(Call call, int device, long contextId, int flags, int minCount, int wanted) {
        GreenContexts.Whole whole = whole(call, device, contextId);
        if (whole == null) {
            return;
        }
        MemorySegment out = call.scratch(2 * CUdevSmResource.BYTES + Integer.BYTES);
        int result = backend.split(new GreenContexts.Split(whole, flags, minCount, wanted), out);
        if (result == 0) {
            GreenReplies.hwsSmSplit(call.reply(), out.get(ValueLayout.JAVA_INT, 2 * CUdevSmResource.BYTES),
                out.asSlice(0, CUdevSmResource.BYTES), out.asSlice(CUdevSmResource.BYTES, CUdevSmResource.BYTES));
        }
        call.finish(result);
    }

    @Override
    public void hwsGreenContextCreate(Call call, long ctxId, long primaryContext, long contextId, int flags,
        int minCount, int groups, int count, MemorySegment indices) {
        Handle primary = call.lastObject();
        if (primary.isGreen()) {
            call.fail(CudaResult.INVALID_CONTEXT);
            return;
        }
        GreenContexts.Whole whole = whole(call, objects.deviceOf(primary), contextId);
        if (whole == null) {
            return;
        }
        if (objects.handles().all(HandleKind.CONTEXT).stream().filter(Handle::isGreen).count() >= MAX_GREEN_CONTEXTS) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = backend.create(primaryContext, new GreenContexts.Split(whole, flags, minCount, groups),
            indices.toArray(ValueLayout.JAVA_INT_UNALIGNED), out);
        if (result == 0) {
            objects.registerGreenContext(call, ctxId, out.get(ValueLayout.JAVA_LONG, 0), primary);
        }
        call.finish(result);
    }
}
