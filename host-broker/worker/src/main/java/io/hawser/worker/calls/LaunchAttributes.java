package io.hawser.worker.calls;

import io.hawser.worker.session.AllocationMap;
import io.hawser.worker.session.CudaResult;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Set;

/** Attributes of a launch or of a graph's kernel, in the guest's form: an array of CUlaunchAttribute. */
final class LaunchAttributes {
    /** Size of a CUlaunchAttribute: id, padding, a value of 64 bytes (CUDA 13.0 cuda.h). */
    static final int BYTES = 72;

    private static final int VALUE_OFFSET = 8;
    private static final int ACCESS_POLICY_WINDOW = 1; // CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: holds an address
    /**
     * Attributes whose values are plain numbers, by CUlaunchAttributeID: ignore, cooperative, synchronization policy,
     * cluster dimension, cluster scheduling policy, programmatic stream serialization, priority, memory synchronization
     * domain map and domain, preferred cluster dimension, shared memory carveout, NVLink-centric scheduling. Other
     * attributes hold the guest's handles or pointers.
     */
    private static final Set<Integer> PLAIN = Set.of(0, 2, 3, 4, 5, 6, 8, 9, 10, 11, 14, 16);

    private LaunchAttributes() {}

    /**
     * Checks attributes.
     *
     * @param attributes complete ones.
     * @param allocations the memory that the guest may address.
     * @return CUresult.
     */
    static int check(MemorySegment attributes, AllocationMap allocations) {
        for (long at = 0; at < attributes.byteSize(); at += BYTES) {
            int id = attributes.get(ValueLayout.JAVA_INT_UNALIGNED, at);
            if (id == ACCESS_POLICY_WINDOW) {
                long address = attributes.get(ValueLayout.JAVA_LONG_UNALIGNED, at + VALUE_OFFSET);
                long bytes = attributes.get(ValueLayout.JAVA_LONG_UNALIGNED, at + VALUE_OFFSET + Long.BYTES);
                if (!allocations.contains(address, bytes)) {
                    return CudaResult.INVALID_VALUE;
                }
            } else if (!PLAIN.contains(id)) {
                return CudaResult.NOT_SUPPORTED;
            }
        }
        return CudaResult.SUCCESS;
    }
}
