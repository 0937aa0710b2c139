package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CUlaunchAttribute;
import io.hawser.cuda.generated.CudaNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Launches kernels with one downcall each; it allocates its structures only once. Session thread only. */
final class Launches {
    // CUlaunchConfig of CUDA 13.0 cuda.h
    private static final int SHARED_OFFSET = 24;
    private static final int STREAM_OFFSET = 32;
    private static final int ATTRIBUTES_OFFSET = 40;
    private static final int COUNT_OFFSET = 48;
    private static final int CONFIG_BYTES = 56;
    // cuda.h: CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE
    private static final long BUFFER_POINTER = 1;
    private static final long BUFFER_SIZE = 2;
    private static final int MAX_ATTRIBUTES = 64 + 1; // from a record, and the cooperative one
    private static final int COOPERATIVE = 2; // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    private static final int COOPERATIVE_FLAG = 1;

    private final MemorySegment config = Arena.global().allocate(CONFIG_BYTES, Long.BYTES);
    private final MemorySegment extra = Arena.global().allocate(5L * Long.BYTES, Long.BYTES);
    private final MemorySegment bytes = Arena.global().allocate(ValueLayout.JAVA_LONG);
    private final MemorySegment list = Arena.global().allocate((long) MAX_ATTRIBUTES * CUlaunchAttribute.BYTES,
        Long.BYTES);

    Launches() {
        config.set(ValueLayout.JAVA_LONG, ATTRIBUTES_OFFSET, list.address());
        extra.setAtIndex(ValueLayout.JAVA_LONG, 0, BUFFER_POINTER);
        extra.setAtIndex(ValueLayout.JAVA_LONG, 2, BUFFER_SIZE);
        extra.setAtIndex(ValueLayout.JAVA_LONG, 3, bytes.address());
    }

    int launch(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ, int sharedBytes,
        long stream, int flags, MemorySegment params, MemorySegment attributes) {
        fill(gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, stream, flags, attributes);
        if (params.byteSize() == 0) {
            return CudaNative.cuLaunchKernelEx(config, function, MemorySegment.NULL, MemorySegment.NULL);
        }
        extra.setAtIndex(ValueLayout.JAVA_LONG, 1, params.address());
        bytes.set(ValueLayout.JAVA_LONG, 0, params.byteSize());
        return CudaNative.cuLaunchKernelEx(config, function, MemorySegment.NULL, extra);
    }

    /** See GpuBackend.clusters. */
    int clusters(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ, int sharedBytes,
        MemorySegment attributes, MemorySegment out) {
        fill(gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, 0, 0, attributes);
        int active = CudaNative.cuOccupancyMaxActiveClusters(out, function, config);
        if (active != 0) {
            out.set(ValueLayout.JAVA_INT, 0, -active);
        }
        MemorySegment size = out.asSlice(Integer.BYTES);
        int potential = CudaNative.cuOccupancyMaxPotentialClusterSize(size, function, config);
        if (potential != 0) {
            size.set(ValueLayout.JAVA_INT, 0, -potential);
        }
        return 0;
    }

    private void fill(int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ, int sharedBytes, long stream,
        int flags, MemorySegment attributes) {
        config.set(ValueLayout.JAVA_INT, 0, gridX);
        config.set(ValueLayout.JAVA_INT, 4, gridY);
        config.set(ValueLayout.JAVA_INT, 8, gridZ);
        config.set(ValueLayout.JAVA_INT, 12, blockX);
        config.set(ValueLayout.JAVA_INT, 16, blockY);
        config.set(ValueLayout.JAVA_INT, 20, blockZ);
        config.set(ValueLayout.JAVA_INT, SHARED_OFFSET, sharedBytes);
        config.set(ValueLayout.JAVA_LONG, STREAM_OFFSET, stream);
        int count = (int) (attributes.byteSize() / CUlaunchAttribute.BYTES);
        MemorySegment.copy(attributes, 0, list, 0, (long) count * CUlaunchAttribute.BYTES);
        if ((flags & COOPERATIVE_FLAG) != 0) {
            MemorySegment own = list.asSlice((long) count++ * CUlaunchAttribute.BYTES, CUlaunchAttribute.BYTES);
            own.fill((byte) 0);
            own.set(ValueLayout.JAVA_INT, 0, COOPERATIVE);
            own.set(ValueLayout.JAVA_INT, Long.BYTES, 1);
        }
        config.set(ValueLayout.JAVA_INT, COUNT_OFFSET, count);
    }
}
