package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.Signals;
import io.hawser.cuda.generated.CudaMemopsNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Signals by the driver's stream memory operations on registered memory. Session thread only. */
final class NvidiaSignals implements Signals {
    private static final int NEWER_OR_EQUAL = 0; // CU_STREAM_WAIT_VALUE_GEQ: compares the difference

    private final NvidiaBackend backend;

    NvidiaSignals(NvidiaBackend backend) {
        this.backend = backend;
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
        return CudaMemopsNative.cuStreamWaitValue32_v2(stream, word.address(), number, NEWER_OR_EQUAL);
    }
}
