package io.hawser.worker.calls;

import io.hawser.cuda.generated.cublaslt.cublasLtMatmulAlgo_t;
import java.lang.foreign.MemorySegment;

/**
 * The algorithms (cublasLtMatmulAlgo_t, 64 bytes that only the library understands) that the library has made in a
 * session. A guest returns them as bytes, so they can be anything. The library gets those that it has made here, and
 * those that its own cublasLtMatmulAlgoCheck accepts for the call's descriptors. A library that fails on a hostile
 * algorithm all the same fails in the guest's own worker: its process, uid, seccomp filter and GPU context have nothing
 * of another guest's. Session thread.
 */
final class CublasLtAlgorithms {
    /** Bounds the memory; an algorithm that was forgotten is checked again. */
    static final int MOST = 4096;

    private final ContentCache<Boolean> made = new ContentCache<>(cublasLtMatmulAlgo_t.BYTES, MOST, gone -> {});

    /** Remembers an algorithm from the library. */
    void add(MemorySegment algo) {
        made.wanted().copyFrom(algo);
        made.findOrMake(() -> Boolean.TRUE);
    }

    /** Whether the library has made an algorithm. */
    boolean has(MemorySegment algo) {
        made.wanted().copyFrom(algo);
        return made.find() != null;
    }
}
