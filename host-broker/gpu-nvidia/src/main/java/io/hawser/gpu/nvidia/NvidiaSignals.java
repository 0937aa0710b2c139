package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.Signals;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.cuda.generated.CudaMemopsNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;

/**
 * Signals by the driver's stream memory operations on registered memory. Session thread only.
 *
 * <p>A wait stands in the queue of the stream's last work. The streams of a context share a few queues for copies to
 * the host, and each stream always uses the same one (580.159, H100). A wait there would stop the copies of other
 * streams, for ever if it waits for one of them. So a fill of four bytes precedes each wait: it takes the wait to a
 * queue for kernels. New work of other streams goes to such a queue that is free.
 */
final class NvidiaSignals implements Signals {
    private static final int NEWER_OR_EQUAL = 0; // CU_STREAM_WAIT_VALUE_GEQ: compares the difference

    private final NvidiaBackend backend;
    private final CudaDriver driver;
    private final Map<Long, Long> filled = new HashMap<>(); // device memory of four bytes, by context

    /**
     * @param driver its memory stays when the guest resets a primary context.
     */
    NvidiaSignals(NvidiaBackend backend, CudaDriver driver) {
        this.backend = backend;
        this.driver = driver;
    }

    @Override
    public int open(MemorySegment page) {
        try (Arena arena = Arena.ofConfined()) {
            return backend.mapHost(page, arena.allocate(ValueLayout.JAVA_LONG));
        }
    }

    @Override
    public int close(MemorySegment page) {
        return backend.unmapHost(page.address());
    }

    // With unified addressing, the device address of registered memory equals its host address in this process.

    @Override
    public int write(long stream, MemorySegment word, int number) {
        return CudaMemopsNative.cuStreamWriteValue32_v2(stream, word.address(), number, 0);
    }

    @Override
    public int await(long stream, MemorySegment word, int number) {
        int result = fill(stream);
        return result != 0 ? result
            : CudaMemopsNative.cuStreamWaitValue32_v2(stream, word.address(), number, NEWER_OR_EQUAL);
    }

    private int fill(long stream) {
        long context = backend.home();
        Long memory = filled.get(context);
        if (memory == null) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
                int result = driver.cuMemAlloc_v2(out, Integer.BYTES);
                if (result != 0) {
                    return result;
                }
                memory = out.get(ValueLayout.JAVA_LONG, 0);
                filled.put(context, memory);
            }
        }
        return driver.cuMemsetD32Async(memory, 0, 1, stream);
    }

    /** Drops the memory of a context that is about to be destroyed with it. */
    void forget(long context) {
        filled.remove(context);
    }
}
