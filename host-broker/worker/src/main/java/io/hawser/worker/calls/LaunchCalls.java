package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.WireReplies;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamState;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Kernels and host functions. */
final class LaunchCalls {
    private final Session session;
    private final GpuBackend backend;

    LaunchCalls(Session session) {
        this.session = session;
        this.backend = session.backend();
    }

    /**
     * Extents of a launch.
     *
     * @param gridX blocks.
     * @param gridY blocks.
     * @param gridZ blocks.
     * @param blockX threads.
     * @param blockY threads.
     * @param blockZ threads.
     * @param sharedBytes dynamic shared memory.
     * @param flags bit 0: cooperative.
     */
    record Shape(int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ, int sharedBytes, int flags) { }

    void hwsLaunch(Call call, Shape shape, MemorySegment params, MemorySegment attributes) {
        Handle function = call.lastObject();
        StreamState stream = call.lastStream();
        if (!check(call, attributes)) {
            return;
        }
        ImageCalls.Parameters wanted = function.info(ImageCalls.Parameters.class);
        if (params.byteSize() < wanted.bytes()) {
            call.fail(CudaResult.INVALID_VALUE); // otherwise the backend would read beyond the parameters
            return;
        }
        if (wanted.stackBytes() > 0 && !session.objects().claimStack(wanted.stackBytes())) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return;
        }
        session.countKernel();
        call.finish(backend.launch(function.nativeHandle(), shape.gridX(), shape.gridY(), shape.gridZ(),
            shape.blockX(), shape.blockY(), shape.blockZ(), shape.sharedBytes(), stream.stream(), shape.flags(),
            params, attributes));
    }

    void hwsOccupancyClusters(Call call, Shape shape, MemorySegment attributes) {
        Handle function = call.lastObject();
        if (!check(call, attributes)) {
            return;
        }
        MemorySegment out = call.scratch(2 * Integer.BYTES);
        int result = backend.clusters(function.nativeHandle(), shape.gridX(), shape.gridY(), shape.gridZ(),
            shape.blockX(), shape.blockY(), shape.blockZ(), shape.sharedBytes(), attributes, out);
        WireReplies.hwsOccupancyClusters(call.reply(), out.get(ValueLayout.JAVA_INT, 0),
            out.get(ValueLayout.JAVA_INT, Integer.BYTES));
        call.finish(result);
    }

    private boolean check(Call call, MemorySegment attributes) {
        if (attributes.byteSize() % LaunchAttributes.BYTES != 0) {
            call.fatal("launch attributes must be complete: bytes=" + attributes.byteSize());
            return false;
        }
        int result = LaunchAttributes.check(attributes, session.objects().allocations());
        if (result != 0) {
            call.fail(result);
        }
        return result == 0;
    }

    void hwsHostFunction(Call call, long callbackId) {
        int result = session.callbacks().issue(call.lastStream(), callbackId);
        if (result < 0) {
            call.fatal("a host function's id must not be in use: callbackId=" + callbackId);
            return;
        }
        call.finish(result);
    }
}
