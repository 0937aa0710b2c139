package io.hawser.worker.calls;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CopyReplies;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HwsDevicePlace;
import io.hawser.cuda.generated.HwsExtent;
import io.hawser.cuda.generated.HwsPosition;
import io.hawser.cuda.generated.HwsRegionPlace;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.channel.BulkArea;
import io.hawser.worker.channel.GuestMemory;
import io.hawser.worker.channel.tcp.Stripes;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.DeviceWrite;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamState;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;

/**
 * Copies through the region of shared memory: their bounds, and the chunks that return to the guest. The backend
 * accesses the region directly. Copies from the copy area go the same way. The guest fills the area while a stream
 * waits for a host function, so that its bytes are read in stream order. Over TCP the chunks of stripes take the place
 * of the region's. Session thread.
 */
final class RegionCopies {
    private static final Logger LOG = System.getLogger(RegionCopies.class.getName());

    // Offsets of the chunk's number in the payload: after addresses, lengths and handles of 8 bytes, and structures.
    private static final int COPY_CHUNK_OFFSET = 4 * Long.BYTES;
    private static final int BOX_CHUNK_OFFSET = HwsDevicePlace.BYTES + HwsExtent.BYTES + Long.BYTES
        + HwsRegionPlace.BYTES;
    private static final int ARRAY_CHUNK_OFFSET = Long.BYTES + HwsPosition.BYTES + HwsExtent.BYTES + Long.BYTES
        + HwsRegionPlace.BYTES;
    private static final long PINNED_BYTES = 4L << 20; // pinned at once: about 2 ms with NVIDIA's driver

    private final Session session;
    private final GpuBackend backend;
    private final BulkArea region;
    private final Stripes stripes;
    private final BitSet pinnedChunks = new BitSet(); // chunks that are pinned, or that cannot be
    private boolean isPinningRefused;
    private long settledSequence; // the last call that returns its chunk itself
    private MemorySegment area; // the copy area; null until its first use

    /**
     * Makes the copies of a session.
     *
     * @param session the session.
     * @param region the guest's region or mirror; null over another carrier.
     * @param stripes the session's stripes.
     */
    RegionCopies(Session session, BulkArea region, Stripes stripes) {
        this.session = session;
        this.backend = session.backend();
        this.region = region;
        this.stripes = stripes;
    }

    /**
     * Bytes from the first to the last byte of a box in the region; 0 for an empty box. Saturates.
     *
     * @param place the box's rows there.
     * @param extent lengths; any numbers.
     */
    static long spanBytes(HwsRegionPlace place, HwsExtent extent) {
        return extent.widthBytes() == 0 || extent.rows() == 0 || extent.slices() == 0 ? 0
            : Sizes.add(Sizes.add(Sizes.multiply(extent.slices() - 1, place.slicePitch()),
                Sizes.multiply(extent.rows() - 1, place.pitch())), extent.widthBytes());
    }

    /**
     * Whether the guest may use these bytes; if not, this ends the session.
     *
     * @param chunk the call's chunk number.
     */
    boolean allows(Call call, long offset, long bytes, int chunk) {
        if (chunk == RecordLayout.COPY_AREA_CHUNK) {
            return allowsArea(call, offset, bytes);
        }
        if (Stripes.isChunk(chunk)) {
            return allowsStripe(call, offset, bytes, chunk);
        }
        if (region == null) {
            call.fatal("a session must have a region to copy through it");
            return false;
        }
        if (!region.allows(offset, bytes, chunk)) {
            call.fatal("a copy through the region must lie in its heap or its chunk: regionOffset="
                + Long.toUnsignedString(offset) + " bytes=" + Long.toUnsignedString(bytes) + " chunk=" + chunk);
            return false;
        }
        if (chunk != 0 && !pinnedChunks.get(chunk - 1)) {
            pin(chunk - 1);
        }
        return true;
    }

    private boolean allowsStripe(Call call, long offset, long bytes, int chunk) {
        if (!stripes.allows(chunk, offset, bytes)) {
            call.fatal("a copy through a stripe must lie in a chunk that the guest has: offset="
                + Long.toUnsignedString(offset) + " bytes=" + Long.toUnsignedString(bytes) + " chunk=" + chunk);
            return false;
        }
        return true;
    }

    private boolean allowsArea(Call call, long offset, long bytes) {
        if (offset < 0 || bytes < 0 || offset > RecordLayout.COPY_AREA_BYTES
            || bytes > RecordLayout.COPY_AREA_BYTES - offset) {
            call.fatal("bytes of the copy area must lie in it: areaOffset=" + Long.toUnsignedString(offset) + " bytes="
                + Long.toUnsignedString(bytes));
            return false;
        }
        area = area == null ? session.graphCallbacks().allocateForSession(RecordLayout.COPY_AREA_BYTES) : area;
        if (area == null) {
            call.fail(CudaResult.OUT_OF_MEMORY);
        }
        return area != null;
    }

    /** Puts bytes into the copy area. */
    void writeArea(Call call, long offset, MemorySegment data) {
        if (allowsArea(call, offset, data.byteSize())) {
            area.asSlice(offset, data.byteSize()).copyFrom(data);
            call.finish(0);
        }
    }

    /** Lets the guest write the copy area by itself. */
    void openArea(Call call, GuestMemory carrier) {
        if (!allowsArea(call, 0, 0)) {
            return;
        }
        try {
            CopyReplies.hwsCopyAreaOpen(call.reply(), area.address(), carrier.share(area));
            call.finish(0);
        } catch (IOException e) {
            LOG.log(Level.WARNING, "session {0}: the copy area cannot be registered for RDMA: {1}", session.id(),
                e.getMessage());
            call.fail(CudaResult.NOT_SUPPORTED);
        }
    }

    /** Part of the copy area as the buffer of a copy; null after the call has ended with an error. */
    DeviceWrite.Slots slots(Call call, long offset, long bytes) {
        return allowsArea(call, offset, bytes) ? new DeviceWrite.Slots(area, offset, bytes) : null;
    }

    /** Keeps the copy area until the stream has done its work so far. */
    void uses(Call call) {
        session.graphCallbacks().launchBegins();
        session.work().whenReached(call.lastStream(), status -> session.graphCallbacks().launchEnds());
    }

    /** Bytes that {@link #allows} has accepted. */
    MemorySegment bytes(long offset, long bytes, int chunk) {
        return Stripes.isChunk(chunk) ? stripes.bytes(chunk, offset, bytes)
            : (chunk == RecordLayout.COPY_AREA_CHUNK ? area : region.memory()).asSlice(offset, bytes);
    }

    /**
     * Pins a part of the bulk area at the first copy through it. Pinning all of it at once would delay a guest's first
     * copy.
     */
    private void pin(int chunk) {
        int chunks = (int) (PINNED_BYTES / region.chunkBytes());
        int first = chunk / chunks * chunks;
        pinnedChunks.set(first, first + chunks);
        int count = Math.min(chunks, region.chunkCount() - first);
        int result = backend.pinHost(region.memory().asSlice(region.chunkOffset(first), count * region.chunkBytes()));
        if (result != 0 && !isPinningRefused) {
            isPinningRefused = true;
            LOG.log(Level.WARNING, "session {0}: copies through the region are slow: its memory cannot be pinned: "
                + "CUresult={1}", session.id(), result);
        }
    }

    /**
     * Ends a copy's call. The chunk returns to the guest when the stream has done the copy or has failed.
     *
     * @param call names the stream.
     * @param chunk the call's chunk number.
     * @param offset of a copy to the host: the offset of its bytes, as {@link #allows} got it.
     * @param bytes their number; 0 of a copy to the device.
     * @param issued CUresult of issuing the copy.
     */
    void settle(Call call, int chunk, long offset, long bytes, int issued) {
        if (chunk == RecordLayout.COPY_AREA_CHUNK) {
            uses(call);
        } else if (Stripes.isChunk(chunk)) {
            settledSequence = call.sequence();
            stripes.take(chunk);
            session.graphCallbacks().launchBegins();
            session.work().whenReached(call.lastStream(), status -> {
                session.graphCallbacks().launchEnds();
                int result = issued != 0 ? issued : status;
                stripes.giveBack(chunk, result, result == 0 && bytes != 0 ? (int) (offset + bytes) : 0);
            });
        } else if (chunk != 0) {
            StreamState stream = call.lastStream();
            settledSequence = call.sequence();
            // Runs on the backend's thread, so that the guest can refill the chunk while other chunks are copied.
            int wait = backend.whenStreamReached(stream.context(), stream.stream(),
                status -> giveBack(chunk, offset, bytes, issued != 0 ? issued : status));
            if (wait != 0) {
                giveBack(chunk, offset, bytes, issued != 0 ? issued : wait);
            }
        }
        call.finish(issued);
    }

    private void giveBack(int chunk, long offset, long bytes, int result) {
        region.giveBack(chunk - 1, offset, result == 0 ? bytes : 0, result);
    }

    /** Whether a request copies device memory to the region. */
    static boolean isCopyToRegion(int opcode) {
        return opcode == CudaOpcodes.hwsCopyDtoHShared || opcode == CudaOpcodes.hwsReadBoxShared
            || opcode == CudaOpcodes.hwsReadArrayShared;
    }

    /** Returns the chunk of a copy that failed before it was issued, for example for its stream or its address. */
    void failed(int opcode, Call call) {
        int offset = switch (opcode) {
            case CudaOpcodes.hwsCopyHtoDShared, CudaOpcodes.hwsCopyDtoHShared -> COPY_CHUNK_OFFSET;
            case CudaOpcodes.hwsWriteBoxShared, CudaOpcodes.hwsReadBoxShared -> BOX_CHUNK_OFFSET;
            case CudaOpcodes.hwsWriteArrayShared, CudaOpcodes.hwsReadArrayShared -> ARRAY_CHUNK_OFFSET;
            default -> -1;
        };
        if (offset < 0 || call.sequence() == settledSequence) {
            return;
        }
        int chunk = call.in().i32(offset);
        if (Stripes.isChunk(chunk)) {
            if (stripes.allows(chunk, 0, 0)) {
                stripes.take(chunk);
                stripes.giveBack(chunk, call.result(), 0);
            }
        } else if (region != null && chunk > 0 && chunk <= region.chunkCount()) {
            region.giveBack(chunk - 1, 0, 0, call.result());
        }
    }
}
