package io.hawser.gpu.software.device;

/** Computes the blocks that fit a multiprocessor, from the limits in {@link Properties}. */
final class Occupancy {
    private Occupancy() {
    }

    /** Blocks of a kernel that one multiprocessor holds at the same time; 0 when none fits. */
    static int blocksPerMultiprocessor(KernelFunction function, int blockThreads, long dynamicSharedBytes) {
        int threads = warps(blockThreads) * Properties.WARP_SIZE;
        long shared = function.kernel.staticSharedBytes() + dynamicSharedBytes;
        if (blockThreads > function.kernel.maxThreadsPerBlock() || shared > Properties.SHARED_BYTES_OPT_IN
            || dynamicSharedBytes > function.maxDynamicSharedBytes) {
            return 0;
        }
        long blocks = Math.min(Properties.BLOCKS_PER_MULTIPROCESSOR, Properties.THREADS_PER_MULTIPROCESSOR / threads);
        if (shared > 0) {
            blocks = Math.min(blocks, Properties.SHARED_BYTES_PER_MULTIPROCESSOR / shared);
        }
        int registers = Math.max(1, function.kernel.registers());
        blocks = Math.min(blocks, Properties.REGISTERS_PER_MULTIPROCESSOR / ((long) registers * threads));
        return (int) blocks;
    }

    /** The most dynamic shared memory for a block that still lets {@code blocks} blocks fit a multiprocessor. */
    static long availableDynamicSharedBytes(KernelFunction function, int blocks) {
        int each = Properties.SHARED_BYTES_PER_MULTIPROCESSOR / blocks - function.kernel.staticSharedBytes();
        return Math.max(0, Math.min(each, function.maxDynamicSharedBytes));
    }

    private static int warps(int threads) {
        return (threads + Properties.WARP_SIZE - 1) / Properties.WARP_SIZE;
    }
}
