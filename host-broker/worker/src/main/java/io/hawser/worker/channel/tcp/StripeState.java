package io.hawser.worker.channel.tcp;

import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The place of a stripe between two records.
 *
 * @param isReading whether the guest has sent READ.
 * @param chunks the bytes that the guest has put into each chunk for copies that it has not asked for yet.
 */
public record StripeState(boolean isReading, List<MemorySegment> chunks) {
    /**
     * Checks a state that another process has written.
     *
     * @throws IOException if no stripe can have it.
     */
    public void requireValid() throws IOException {
        if (chunks.size() != RecordLayout.STRIPE_CHUNKS
            || chunks.stream().anyMatch(chunk -> chunk.byteSize() > RecordLayout.STRIPE_CHUNK_BYTES)) {
            throw new IOException("a stripe must have " + RecordLayout.STRIPE_CHUNKS + " chunks of at most "
                + RecordLayout.STRIPE_CHUNK_BYTES + " bytes: chunks=" + chunks.size());
        }
    }
}
