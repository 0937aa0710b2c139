package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.PeerManualCalls;
import io.hawser.cuda.generated.PeerReplies;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Attributes of pairs of GPUs: the access of one GPU to another's memory. */
final class PeerCalls implements PeerManualCalls<Call> {
    private final GpuBackend backend;

    PeerCalls(Session session) {
        this.backend = session.backend();
    }

    @Override
    public void hwsPeerAttribute(Call call, int device, int peer, int attribute) {
        int devices = backend.deviceCount();
        if (device < 0 || device >= devices || peer < 0 || peer >= devices) {
            call.fail(CudaResult.INVALID_DEVICE);
            return;
        }
        MemorySegment value = call.scratch(Integer.BYTES);
        int result = backend.peerAttribute(device, peer, attribute, value);
        if (result == 0) {
            PeerReplies.hwsPeerAttribute(call.reply(), value.get(ValueLayout.JAVA_INT_UNALIGNED, 0));
        }
        call.finish(result);
    }
}
