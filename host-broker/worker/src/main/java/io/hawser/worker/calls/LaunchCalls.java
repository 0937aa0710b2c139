package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamState;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Set;

/** Kernels and host functions. */
final class LaunchCalls {
    /** Size of a CUlaunchAttribute: id, padding, a value of 64 bytes (CUDA 13.0 cuda.h). */
    private static final int ATTRIBUTE_BYTES = 72;
    private static final int VALUE_OFFSET = 8;
    private static final int ACCESS_POLICY_WINDOW = 1; // CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: holds an address
    /**
     * Attributes whose values are plain numbers, by CUlaunchAttributeID: ignore, cooperative, synchronization policy,
     * cluster dimension, cluster scheduling policy, programmatic stream serialization, priority, memory
     * synchronization domain map and domain, preferred cluster dimension, shared memory carveout. Others hold
     * handles or pointers of the guest.
     */
    private static final Set<Integer> PLAIN_ATTRIBUTES = Set.of(0, 2, 3, 4, 5, 6, 8, 9, 10, 11, 14);

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
        if (params.byteSize() < function.info(ImageCalls.Parameters.class).bytes()) {
            call.fail(CudaResult.INVALID_VALUE); // the backend would read beyond them
            return;
        }
        session.countKernel();
        call.finish(backend.launch(function.nativeHandle(), shape.gridX(), shape.gridY(), shape.gridZ(),
            shape.blockX(), shape.blockY(), shape.blockZ(), shape.sharedBytes(), stream.stream(), shape.flags(),
            params, attributes));
    }

    private boolean check(Call call, MemorySegment attributes) {
        if (attributes.byteSize() % ATTRIBUTE_BYTES != 0) {
            call.fatal("launch attributes are whole: bytes=" + attributes.byteSize());
            return false;
        }
        for (long at = 0; at < attributes.byteSize(); at += ATTRIBUTE_BYTES) {
            int id = attributes.get(ValueLayout.JAVA_INT_UNALIGNED, at);
            if (id == ACCESS_POLICY_WINDOW) {
                long address = attributes.get(ValueLayout.JAVA_LONG_UNALIGNED, at + VALUE_OFFSET);
                long bytes = attributes.get(ValueLayout.JAVA_LONG_UNALIGNED, at + VALUE_OFFSET + Long.BYTES);
                if (!call.checkDevice(address, bytes)) {
                    return false;
                }
            } else if (!PLAIN_ATTRIBUTES.contains(id)) {
                call.fail(CudaResult.NOT_SUPPORTED);
                return false;
            }
        }
        return true;
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
