package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CudaNative;

/**
 * The device memory that the driver takes for an allocation, for code or for a limit, which differs from the requested
 * amount. Measured with driver 580 on an H200. Any thread.
 */
final class MemoryCosts {
    private static final long PAGE_BYTES = 2L << 20;
    /** Allocations up to this size share pages. */
    private static final long SHARED_BYTES = 1L << 20;
    private static final long GRANULE_BYTES = 512;
    // CUlimit of cuda.h, and the defaults that every context has
    private static final int LIMIT_STACK_SIZE = 0;
    private static final int LIMIT_PRINTF_FIFO_SIZE = 1;
    private static final int LIMIT_MALLOC_HEAP_SIZE = 2;
    private static final int LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3;
    private static final int LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4;
    private static final long DEFAULT_STACK_BYTES = 1024;
    private static final long DEFAULT_PRINTF_BYTES = 1L << 20;
    private static final long DEFAULT_HEAP_BYTES = 8L << 20;
    private static final long DEFAULT_SYNC_DEPTH = 2;
    private static final long DEFAULT_PENDING_LAUNCHES = 2048;
    /** CUDA programming guide, device-side synchronisation: up to 150 MB per level. Hopper GPUs reject the limit. */
    private static final long SYNC_LEVEL_BYTES = 150L << 20;
    /** Allocated with the first kernel of code that launches kernels: 668 MiB for 65,536, 5,442 MiB for 599,186. */
    private static final long PENDING_LAUNCH_BYTES = 9381;
    // CUdevice_attribute
    private static final int MULTIPROCESSOR_COUNT = 16;
    private static final int MAX_THREADS_PER_MULTIPROCESSOR = 39;

    private MemoryCosts() {
    }

    static long ofAllocation(long bytes) {
        return roundUp(bytes, bytes > SHARED_BYTES ? PAGE_BYTES : GRANULE_BYTES);
    }

    /** Variables get pages like an allocation. The code of many small modules shares pages. */
    static long ofCode(long bytes) {
        return bytes == 0 ? 0 : ofAllocation(bytes);
    }

    /** Every thread that can be resident on the device has a stack. */
    static long ofLimit(int device, int limit, long value) {
        return switch (limit) {
            case LIMIT_STACK_SIZE -> stacks(Math.max(0, value - DEFAULT_STACK_BYTES), threads(device));
            case LIMIT_PRINTF_FIFO_SIZE -> Math.max(0, value - DEFAULT_PRINTF_BYTES);
            case LIMIT_MALLOC_HEAP_SIZE -> Math.max(0, value - DEFAULT_HEAP_BYTES);
            case LIMIT_DEV_RUNTIME_SYNC_DEPTH -> times(Math.max(0, value - DEFAULT_SYNC_DEPTH), SYNC_LEVEL_BYTES);
            case LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT ->
                times(Math.max(0, value - DEFAULT_PENDING_LAUNCHES), PENDING_LAUNCH_BYTES);
            default -> 0;
        };
    }

    static long stacks(long bytes, long threads) {
        return times(bytes, threads);
    }

    private static long times(long number, long bytes) {
        return number > Long.MAX_VALUE / Math.max(1, bytes) ? Long.MAX_VALUE : number * bytes;
    }

    private static long threads(int device) {
        return (long) attribute(device, MULTIPROCESSOR_COUNT) * attribute(device, MAX_THREADS_PER_MULTIPROCESSOR);
    }

    private static int attribute(int device, int attribute) {
        return Natives.number(value -> CudaNative.cuDeviceGetAttribute(value, attribute, device), 0);
    }

    private static long roundUp(long value, long unit) {
        return value > Long.MAX_VALUE - unit ? Long.MAX_VALUE : value + unit - 1 & -unit;
    }
}
