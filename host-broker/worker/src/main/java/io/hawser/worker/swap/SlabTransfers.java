package io.hawser.worker.swap;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.IntConsumer;

/**
 * Copies memory of the GPU that other processes share, to the host and back. Each direction has its stream, so copies
 * of both directions run at the same time. The memory of later copies is mapped and unmapped while a copy runs. All
 * methods, and all ends of copies, run on one thread.
 */
final class SlabTransfers {
    private static final int ACCESS_READ_WRITE = 3; // CUmemAccess_flags
    private static final int NON_BLOCKING = 1; // CUstream_flags
    private static final int DEVICE = 0;

    private final GpuBackend backend;
    private final VirtualMemory memory;
    private final Executor thread;
    private long context; // native
    private long toHost; // streams
    private long toDevice;

    /** Copies between an address of the device and a piece of the host's memory. */
    private interface Copy {
        int issue(long address, MemorySegment piece);
    }

    /** Memory of another process, at addresses of this one. */
    private record Mapping(long address, long bytes, long handle) {}

    /**
     * Prepares transfers.
     *
     * @param backend of the GPU, with virtual memory.
     * @param thread the thread of all calls.
     */
    SlabTransfers(GpuBackend backend, Executor thread) {
        this.backend = backend;
        this.memory = backend.virtualMemory();
        this.thread = thread;
    }

    /** Opens the GPU. Returns a CUresult. */
    int open() {
        backend.setPolled(false);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(Long.BYTES, Long.BYTES);
            int result = backend.createContext(DEVICE, 0, true, out);
            context = out.get(ValueLayout.JAVA_LONG, 0);
            result = result != 0 ? result : backend.setCurrent(context);
            result = result != 0 ? result : backend.driver().cuStreamCreateWithPriority(out, NON_BLOCKING, 0);
            toHost = out.get(ValueLayout.JAVA_LONG, 0);
            result = result != 0 ? result : backend.driver().cuStreamCreateWithPriority(out, NON_BLOCKING, 0);
            toDevice = out.get(ValueLayout.JAVA_LONG, 0);
            return result;
        }
    }

    /**
     * Copies a slab to the host.
     *
     * @param descriptor of the slab's memory, which the caller can close afterwards; below 0 for none.
     * @param bytes length that its owner reports.
     * @param pieces where its bytes go; together as long as the slab.
     * @param done gets the CUresult of the whole copy, perhaps at once.
     */
    void store(int descriptor, long bytes, List<MemorySegment> pieces, IntConsumer done) {
        copy(descriptor, bytes, pieces, toHost, (address, piece) -> backend.copyDtoH(piece, address, toHost), done);
    }

    /** Copies a slab back; as {@link #store}. */
    void load(int descriptor, long bytes, List<MemorySegment> pieces, IntConsumer done) {
        copy(descriptor, bytes, pieces, toDevice, (address, piece) -> backend.copyHtoD(address, piece, toDevice), done);
    }

    private void copy(int descriptor, long bytes, List<MemorySegment> pieces, long stream, Copy copy,
        IntConsumer done) {
        if (descriptor < 0) {
            done.accept(CUresult.CUDA_ERROR_INVALID_VALUE);
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(2 * Long.BYTES, Long.BYTES);
            int result = memory.reserve(bytes, 0, 0, out);
            if (result != 0) {
                done.accept(result);
                return;
            }
            long address = out.get(ValueLayout.JAVA_LONG, 0);
            result = memory.open(descriptor, bytes, out);
            if (result != 0) {
                memory.unreserve(address, bytes);
                done.accept(result);
                return;
            }
            map(new Mapping(address, bytes, out.get(ValueLayout.JAVA_LONG, 0)), pieces, stream, copy, done);
        }
    }

    private void map(Mapping mapping, List<MemorySegment> pieces, long stream, Copy copy, IntConsumer done) {
        int result = memory.map(mapping.address, mapping.bytes, 0, mapping.handle);
        if (result != 0) {
            memory.release(mapping.handle);
            memory.unreserve(mapping.address, mapping.bytes);
            done.accept(result);
            return;
        }
        result = memory.setAccess(mapping.address, mapping.bytes, DEVICE, ACCESS_READ_WRITE);
        long address = mapping.address;
        for (int i = 0; i < pieces.size() && result == 0; i++) {
            result = copy.issue(address, pieces.get(i));
            address += pieces.get(i).byteSize();
        }
        int issued = result;
        // Also after an error: the earlier copies use the mapping.
        int refused = backend.whenStreamReached(context, stream,
            ended -> thread.execute(() -> unmap(mapping, issued != 0 ? issued : ended, done)));
        backend.seal(); // nobody polls here: the backend itself must find the end
        if (refused != 0) {
            unmap(mapping, issued != 0 ? issued : refused, done);
        }
    }

    private void unmap(Mapping mapping, int copied, IntConsumer done) {
        int unmapped = memory.unmap(mapping.address, mapping.bytes);
        int released = memory.release(mapping.handle);
        int unreserved = memory.unreserve(mapping.address, mapping.bytes);
        done.accept(copied != 0 ? copied : unmapped != 0 ? unmapped : released != 0 ? released : unreserved);
    }
}
