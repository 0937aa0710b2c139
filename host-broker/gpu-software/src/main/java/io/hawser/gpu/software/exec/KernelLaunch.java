package io.hawser.gpu.software.exec;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** One launch of a kernel: what all of its CTAs share. Any number of threads may run CTAs of it at once. */
public final class KernelLaunch {
    /** Memory for the device's malloc() and free(); called by any thread that runs a CTA. */
    public interface DeviceHeap {
        /** Address of at least that many bytes, a multiple of 16, marked allocated; 0 if there is no room. */
        long allocate(long bytes);

        /** Frees what {@link #allocate} gave; 0 is ignored; returns false for anything else. */
        boolean free(long address);
    }

    private static final AtomicLong GRIDS = new AtomicLong();

    final int gridX;
    final int gridY;
    final int gridZ;
    final int blockX;
    final int blockY;
    final int blockZ;
    final int dynamicSharedBytes;
    final int[] params;
    final Consumer<byte[]> output;
    DeviceHeap heap;
    int stackBytes = 1024;
    long gridWorkspace;
    final long gridId = GRIDS.incrementAndGet();
    volatile boolean cancelled;

    /**
     * @param packedParams       the parameter buffer, copied; at least the kernel's paramBytes long.
     * @param dynamicSharedBytes the launch's sharedMemBytes.
     * @param output             receives the bytes of each printf() as one array; called by any thread that runs a CTA.
     */
    public KernelLaunch(int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ, int dynamicSharedBytes,
                        MemorySegment packedParams, Consumer<byte[]> output) {
        if (gridX < 1 || gridY < 1 || gridZ < 1 || blockX < 1 || blockY < 1 || blockZ < 1
            || (long) blockX * blockY > 1024 || (long) blockX * blockY * blockZ > 1024 || dynamicSharedBytes < 0) {
            throw new IllegalArgumentException("grid and block must be positive, a block at most 1024 threads: grid="
                + gridX + "," + gridY + "," + gridZ + " block=" + blockX + "," + blockY + "," + blockZ
                + " dynamicSharedBytes=" + dynamicSharedBytes);
        }
        this.gridX = gridX;
        this.gridY = gridY;
        this.gridZ = gridZ;
        this.blockX = blockX;
        this.blockY = blockY;
        this.blockZ = blockZ;
        this.dynamicSharedBytes = dynamicSharedBytes;
        this.output = output;
        this.params = new int[(int) ((packedParams.byteSize() + 7) / 8 * 2)];
        MemorySegment.copy(packedParams, 0, MemorySegment.ofArray(params), 0, packedParams.byteSize());
    }

    /** The heap of the device's malloc(); without one malloc() returns NULL. Before the first CTA. */
    public KernelLaunch heap(DeviceHeap deviceHeap) {
        this.heap = deviceHeap;
        return this;
    }

    /** CU_LIMIT_STACK_SIZE: bytes of local memory a thread has for calls that recurse. Before the first CTA. */
    public KernelLaunch stackBytes(int bytes) {
        this.stackBytes = bytes;
        return this;
    }

    /**
     * Address of zeroed device memory that grid synchronisation of a cooperative launch uses (%envreg1:%envreg2), at
     * least 8 bytes
     * a launch. Before the first CTA.
     */
    public KernelLaunch gridWorkspace(long address) {
        this.gridWorkspace = address;
        return this;
    }

    /** Makes running CTAs of this launch end with {@link DeviceFault#CANCELLED} soon. Any thread. */
    public void cancel() {
        cancelled = true;
    }

    /** Number of threads of a block. */
    public int blockThreads() {
        return blockX * blockY * blockZ;
    }
}
