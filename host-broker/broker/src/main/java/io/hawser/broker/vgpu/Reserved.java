package io.hawser.broker.vgpu;

import io.hawser.broker.model.Vgpu;

/**
 * The memory that vGPUs reserve on one GPU, in bytes. Any thread.
 *
 * @param fixedBytes sum of the vGPUs that are not swappable.
 * @param swappableBytes sum of the swappable vGPUs.
 * @param largestSwappableBytes the largest swappable vGPU; 0 without one.
 */
public record Reserved(long fixedBytes, long swappableBytes, long largestSwappableBytes) {
    /** No reservation. */
    public static final Reserved NONE = new Reserved(0, 0, 0);

    /** These reservations and that of another vGPU. */
    Reserved plus(Vgpu vgpu) {
        long bytes = vgpu.memoryBytes();
        return vgpu.swappable()
            ? new Reserved(fixedBytes, swappableBytes + bytes, Math.max(largestSwappableBytes, bytes))
            : new Reserved(fixedBytes + bytes, swappableBytes, largestSwappableBytes);
    }

    /** Memory of all vGPUs, also of swappable ones that are not on the GPU. */
    long allBytes() {
        return fixedBytes + swappableBytes;
    }

    /** Memory that the GPU must hold at the same time: each swappable vGPU fits alone beside the others. */
    long togetherBytes() {
        return fixedBytes + largestSwappableBytes;
    }
}
