package io.hawser.worker.calls;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.WireReplies;
import io.hawser.shm.RegionGeometry;
import io.hawser.shm.RegionLayout;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamState;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Copies through the region of shared memory, and its memory that kernels use. The backend reads and writes the region
 * itself: nothing is moved here. Session thread.
 */
final class RegionCalls {
    private static final Logger LOG = System.getLogger(RegionCalls.class.getName());

    // Payload offsets of the chunk's number: all fields before it have 8 bytes.
    private static final int COPY_CHUNK_OFFSET = 32;
    private static final int BOX_CHUNK_OFFSET = 104;
    private static final long PINNED_BYTES = 4L << 20; // at once: some 2 ms on an NVIDIA GPU's driver
    private static final int ARRAY_CHUNK_OFFSET = 88;

    private final Session session;
    private final GuestObjects objects;
    private final GpuBackend backend;
    private final BoxCopy boxes;
    private final SharedRegion region;
    private final TreeMap<Long, HostMap> maps = new TreeMap<>(); // by offset in the region
    private final BitSet pinnedChunks = new BitSet(); // or those that cannot be
    private boolean isPinningRefused;
    private long settledSequence; // of the last call that sees to its chunk itself

    /** Pinned memory of the guest; the device address is 0 when the backend's kernels cannot use it. */
    private record HostMap(long bytes, long device) { }

    /**
     * A box's bytes in the region.
     *
     * @param offset of the first.
     * @param pitch from a row to the next.
     * @param slicePitch from a slice to the next.
     * @param chunk as in the call.
     */
    record HostBox(long offset, long pitch, long slicePitch, int chunk) {
        /** Bytes from the first to the last that a copy of a box touches; saturates. */
        long spanBytes(Box box) {
            return box.isEmpty() ? 0 : spanBytes(box.widthBytes(), box.rows(), box.slices());
        }

        /** The same for lengths that are over 0. */
        long spanBytes(long widthBytes, long rows, long slices) {
            return Sizes.add(Sizes.add(Sizes.multiply(slices - 1, slicePitch), Sizes.multiply(rows - 1, pitch)),
                widthBytes);
        }
    }

    /**
     * Makes the calls of a session.
     *
     * @param session whose objects they use.
     * @param region of its guest; null when its carrier is another.
     */
    RegionCalls(Session session, SharedRegion region) {
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend();
        this.boxes = new BoxCopy(backend);
        this.region = region;
    }

    void hwsHostMap(Call call, long regionOffset, long byteCount) {
        if (!allows(call, regionOffset, byteCount, 0)) {
            return;
        }
        if (byteCount == 0 || (regionOffset | byteCount) % RegionLayout.GRANULE_BYTES != 0
            || overlaps(regionOffset, byteCount)) {
            call.fatal("host memory must be whole granules that are not mapped: regionOffset=" + regionOffset
                + " byteCount=" + byteCount);
            return;
        }
        long device = 0;
        if (backend.canMapHost()) {
            MemorySegment out = call.scratch(Long.BYTES);
            int result = backend.mapHost(region.memory().asSlice(regionOffset, byteCount), out);
            if (result != 0) {
                call.fail(result);
                return;
            }
            device = out.get(ValueLayout.JAVA_LONG, 0);
            if (!objects.allocations().add(device, byteCount, null)) {
                throw new IllegalStateException("the backend gave an address that is in use: address=0x"
                    + Long.toHexString(device) + " bytes=" + byteCount);
            }
        }
        maps.put(regionOffset, new HostMap(byteCount, device));
        WireReplies.hwsHostMap(call.reply(), device);
        call.finish(0);
    }

    private boolean overlaps(long offset, long bytes) {
        Map.Entry<Long, HostMap> below = maps.lowerEntry(offset + bytes);
        return below != null && below.getKey() + below.getValue().bytes > offset;
    }

    void hwsHostUnmap(Call call, long regionOffset) {
        HostMap map = region == null ? null : maps.remove(regionOffset);
        if (map == null) {
            call.fatal("host memory must have been mapped: regionOffset=" + regionOffset);
            return;
        }
        if (map.device != 0) {
            objects.allocations().removeHost(map.device); // gone for later copies at once
        }
        call.deferWithoutRecord();
        List<Handle> contexts = objects.handles().all(HandleKind.CONTEXT);
        Unmap unmap = new Unmap(call, map.device, contexts.size());
        for (Handle context : contexts) {
            int wait = context.isFailed() ? -1 : backend.whenContextReached(context.nativeHandle(),
                status -> session.completions().add(unmap::reached));
            if (wait != 0) { // a lost context does not wait
                session.completions().add(unmap::reached);
            }
        }
        session.completions().add(unmap::reached); // for itself
    }

    /** Waits for all contexts, then takes the memory back from the backend. */
    private final class Unmap {
        private final Call call;
        private final long device;
        private int missing;

        Unmap(Call call, long device, int contexts) {
            this.call = call;
            this.device = device;
            this.missing = contexts + 1;
        }

        void reached() {
            if (--missing == 0) {
                session.gates().whenClosed(() -> call.finish(device == 0 ? 0 : backend.unmapHost(device)));
            }
        }
    }

    void hwsCopyHtoDShared(Call call, long dstDevice, long regionOffset, long byteCount, int chunk) {
        if (allows(call, regionOffset, byteCount, chunk)) {
            StreamState stream = call.lastStream();
            settle(call, stream, chunk, byteCount == 0 ? 0
                : backend.copyHtoD(dstDevice, region.memory().asSlice(regionOffset, byteCount), stream.stream()));
        }
    }

    void hwsCopyDtoHShared(Call call, long srcDevice, long regionOffset, long byteCount, int chunk) {
        if (allows(call, regionOffset, byteCount, chunk)) {
            StreamState stream = call.lastStream();
            settle(call, stream, chunk, byteCount == 0 ? 0
                : backend.copyDtoH(region.memory().asSlice(regionOffset, byteCount), srcDevice, stream.stream()));
        }
    }

    void hwsWriteBoxShared(Call call, Box box, HostBox host) {
        copyBox(call, box, host, true);
    }

    void hwsReadBoxShared(Call call, Box box, HostBox host) {
        copyBox(call, box, host, false);
    }

    private void copyBox(Call call, Box box, HostBox host, boolean toDevice) {
        // The region first: a box that is none has no length there either.
        long span = box == null ? 0 : host.spanBytes(box);
        if (!allows(call, host.offset, span, host.chunk) || !CopyCalls.check(call, box)) {
            return;
        }
        BoxCopy.Layout layout = new BoxCopy.Layout(host.pitch, host.slicePitch);
        if (!(box.isContiguous() && layout.isPacked(box)) && box.rows() * box.slices() > Box.MAX_ROWS) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        StreamState stream = call.lastStream();
        MemorySegment memory = region.memory().asSlice(host.offset, span);
        settle(call, stream, host.chunk, toDevice ? boxes.write(box, memory, layout, stream.stream())
            : boxes.read(box, memory, layout, stream.stream()));
    }

    /** Issues a copy of another kind. */
    @FunctionalInterface
    interface Issue {
        /**
         * Issues it.
         *
         * @param address of the box's first byte in the region.
         * @param stream where.
         * @return CUresult.
         */
        int issue(long address, StreamState stream);
    }

    /**
     * Copies between the region and something that is no plain memory.
     *
     * @param call names the stream; ends here.
     * @param host where in the region.
     * @param spanBytes from the first to the last byte that is touched there.
     * @param issue does it.
     */
    void copy(Call call, HostBox host, long spanBytes, Issue issue) {
        if (allows(call, host.offset, spanBytes, host.chunk)) {
            StreamState stream = call.lastStream();
            settle(call, stream, host.chunk, issue.issue(region.memory().address() + host.offset, stream));
        }
    }

    /** Whether the guest may name these bytes; if not, the session ends. */
    private boolean allows(Call call, long offset, long bytes, int chunk) {
        if (region == null) {
            call.fatal("a session without a region has nothing to copy through it");
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

    /** Part by part, at the first copy through each: pinning all of it at once would hold up a guest's first copy. */
    private void pin(int chunk) {
        RegionGeometry geometry = region.geometry();
        int chunks = (int) (PINNED_BYTES / geometry.chunkBytes());
        int first = chunk / chunks * chunks;
        pinnedChunks.set(first, first + chunks);
        int count = Math.min(chunks, geometry.chunkCount() - first);
        int result = backend.pinHost(region.memory().asSlice(geometry.chunk(region.place().slot(), first),
            count * geometry.chunkBytes()));
        if (result != 0 && !isPinningRefused) {
            isPinningRefused = true;
            LOG.log(Level.WARNING, "session {0}: copies through the region are slow: its memory cannot be pinned: "
                + "CUresult={1}", session.id(), result);
        }
    }

    /** Ends a copy's call; its chunk goes back when the stream has done what was issued, or has failed. */
    private void settle(Call call, StreamState stream, int chunk, int issued) {
        if (chunk != 0) {
            settledSequence = call.sequence();
            // Straight from the backend's thread: the guest fills the chunk again while others are copied.
            int wait = backend.whenStreamReached(stream.context(), stream.stream(),
                status -> region.releaseChunk(chunk - 1, issued != 0 ? issued : status));
            if (wait != 0) {
                region.releaseChunk(chunk - 1, issued != 0 ? issued : wait);
            }
        }
        call.finish(issued);
    }

    /** Gives back the chunk of a copy that was refused before it was issued: for its stream, say, or its address. */
    void failed(int opcode, Call call) {
        int offset = switch (opcode) {
            case CudaOpcodes.hwsCopyHtoDShared, CudaOpcodes.hwsCopyDtoHShared -> COPY_CHUNK_OFFSET;
            case CudaOpcodes.hwsWriteBoxShared, CudaOpcodes.hwsReadBoxShared -> BOX_CHUNK_OFFSET;
            case CudaOpcodes.hwsWriteArrayShared, CudaOpcodes.hwsReadArrayShared -> ARRAY_CHUNK_OFFSET;
            default -> -1;
        };
        if (offset < 0 || region == null || call.sequence() == settledSequence) {
            return;
        }
        int chunk = call.in().i32(offset);
        if (chunk > 0 && chunk <= region.geometry().chunkCount()) {
            region.releaseChunk(chunk - 1, call.result());
        }
    }
}
