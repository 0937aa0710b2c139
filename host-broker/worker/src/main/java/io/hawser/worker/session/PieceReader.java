package io.hawser.worker.session;

import java.lang.foreign.MemorySegment;

/** Reads a piece of device memory into staging memory, in stream order. */
@FunctionalInterface
public interface PieceReader {
    /**
     * Issues the copy of a piece.
     *
     * @param destination as long as the piece.
     * @param offsetBytes offset of the piece in the copy.
     * @param stream native stream.
     * @return CUresult.
     */
    int read(MemorySegment destination, long offsetBytes, long stream);
}
