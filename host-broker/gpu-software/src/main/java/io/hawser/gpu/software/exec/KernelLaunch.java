package io.hawser.gpu.software.exec;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** One launch of a kernel: the state that all of its CTAs share. Several threads may run its CTAs at the same time. */
public final class KernelLaunch {
    /** Memory for malloc() and free() in kernels; any thread that runs a CTA may call it. */
    public interface DeviceHeap {
        /** Allocates at least that many bytes, marked allocated, at a multiple of 16; returns 0 if there is no room. */
        long allocate(long bytes);

        /** Frees memory from {@link #allocate}; ignores 0; returns false for any other address. */
        boolean free(long address);
    }

    /** A launch by a kernel: the kernel's address, and the shape of the grid. */
    public record Child(long function, int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ,
        int sharedBytes) {}

    /** Takes the work that a grid's kernel launches; any thread that runs a CTA may call it. Results: cudaError_t. */
    public interface Children {
        /** Bytes of the parameters of the kernel at an address; -1 if there is none. */
        int paramBytes(long function);

        /** Device memory for parameters; 0 if there is no room. */
        long buffer(long bytes);

        /** Stores the launch for which a buffer is. */
        void configure(long buffer, Child child);

        /** Launches a kernel with the parameters of a buffer; null stands for the buffer's stored launch. */
        int launch(Child child, long buffer, long stream);

        /** Copies device memory. */
        int copy(long to, long from, long bytes, long stream);

        /** Sets bytes of device memory. */
        int fill(long to, int value, long bytes, long stream);
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
    Children children;
    int stackBytes = 1024;
    long gridWorkspace;
    final long gridId = GRIDS.incrementAndGet();
    volatile boolean cancelled;

    /**
     * @param packedParams       the parameter buffer, copied; at least the kernel's paramBytes long.
     * @param dynamicSharedBytes the launch's sharedMemBytes.
     * @param output receives the bytes of each printf() as one array; any thread that runs a CTA calls it.
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

    /** Sets the heap of malloc() in kernels; without a heap malloc() returns NULL. Call before the first CTA. */
    public KernelLaunch heap(DeviceHeap deviceHeap) {
        this.heap = deviceHeap;
        return this;
    }

    /** Sets the receiver of launches; only kernels that launch need one. Call before the first CTA. */
    public KernelLaunch children(Children receiver) {
        this.children = receiver;
        return this;
    }

    /** CU_LIMIT_STACK_SIZE: bytes of local memory of a thread for recursive calls. Call before the first CTA. */
    public KernelLaunch stackBytes(int bytes) {
        this.stackBytes = bytes;
        return this;
    }

    /**
     * Sets the address of zeroed device memory for the grid synchronisation of a cooperative launch
     * (%envreg1:%envreg2). It has at least 8 bytes and belongs to one launch. Call before the first CTA.
     */
    public KernelLaunch gridWorkspace(long address) {
        this.gridWorkspace = address;
        return this;
    }

    /** Ends the running CTAs of this launch soon with {@link DeviceFault#CANCELLED}. Any thread. */
    public void cancel() {
        cancelled = true;
    }

    /** Number of threads of a block. */
    public int blockThreads() {
        return blockX * blockY * blockZ;
    }
}
