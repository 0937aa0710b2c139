package io.hawser.worker.calls;

import io.hawser.worker.session.MemoryQuota;
import java.util.List;

/** Says of which pieces of {@link io.hawser.cuda.backend.VirtualMemory} the guest's memory consists. Session thread. */
@FunctionalInterface
interface MemoryParts {
    /**
     * A part of a piece.
     *
     * @param handle the backend's handle of the piece.
     * @param handleBytes length of the whole piece.
     * @param offset of the part in the piece.
     * @param bytes length of the part.
     * @param charge the piece's, given back after its release.
     */
    record Part(long handle, long handleBytes, long offset, long bytes, MemoryQuota.Charge charge) {}

    /**
     * The parts of a range, in order. Only the first part may begin within its piece, and only the last may end there.
     *
     * @param bytes as the guest says, any number.
     * @return empty for memory of the driver, and when the range does not lie in the guest's memory.
     */
    List<Part> parts(long address, long bytes);
}
