package io.hawser.worker.channel.rdma;

import io.hawser.shm.rdma.RdmaEnd;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.channel.BulkArea;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;

/**
 * The chunks of a session over RDMA. Guest and worker have one mirror each; the bytes of a copy to the host are written
 * here, and go to the guest's mirror when their chunk goes back. There is no heap. Any thread.
 */
public final class Mirror implements BulkArea {
    private static final Logger LOG = System.getLogger(Mirror.class.getName());

    private final RdmaEnd end;
    private final MemorySegment memory;

    /** Takes the mirror of an end that is prepared. */
    public Mirror(RdmaEnd end) {
        this.end = end;
        memory = end.mirror();
    }

    @Override
    public MemorySegment memory() {
        return memory;
    }

    @Override
    public int chunkCount() {
        return RecordLayout.MIRROR_CHUNKS;
    }

    @Override
    public long chunkBytes() {
        return RecordLayout.MIRROR_CHUNK_BYTES;
    }

    @Override
    public long chunkOffset(int chunk) {
        return RecordLayout.MIRROR_BULK_OFFSET + (long) chunk * RecordLayout.MIRROR_CHUNK_BYTES;
    }

    @Override
    public boolean allows(long offset, long bytes, int chunk) {
        if (chunk < 1 || chunk > RecordLayout.MIRROR_CHUNKS) {
            return false;
        }
        long start = offset - chunkOffset(chunk - 1);
        return start >= 0 && start <= RecordLayout.MIRROR_CHUNK_BYTES && bytes >= 0
            && bytes <= RecordLayout.MIRROR_CHUNK_BYTES - start && offset >= 0;
    }

    @Override
    public void giveBack(int chunk, long offset, long bytes, int result) {
        int start = bytes == 0 ? 0 : (int) (offset - chunkOffset(chunk)); // in the chunk: allows() has accepted it
        if (end.returnChunk(chunk, start, (int) bytes, result) != 0) {
            LOG.log(Level.DEBUG, "a chunk cannot be returned: {0}", end.fault()); // the session thread notices
        }
    }
}
