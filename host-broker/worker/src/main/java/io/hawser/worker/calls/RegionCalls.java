package io.hawser.worker.calls;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.WireReplies;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
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
 * Copies through the region of shared memory, and memory of the region that kernels use. The backend accesses the
 * region directly; this class copies no bytes. Session thread.
 */
final class RegionCalls {
    private static final Logger LOG = System.getLogger(RegionCalls.class.getName());

    // Offsets of the chunk's number in the payload: all fields before it have 8 bytes.
    private static final int COPY_CHUNK_OFFSET = 32;
    private static final int BOX_CHUNK_OFFSET = 104;
    private static final long PINNED_BYTES = 4L << 20; // pinned at once: about 2 ms with NVIDIA's driver
    private static final int ARRAY_CHUNK_OFFSET = 88;

    private final Session session;
    private final GuestObjects objects;
    private final GpuBackend backend;
    private final BoxCopy boxes;
    private final SharedRegion region;
    private final TreeMap<Long, HostMap> maps = new TreeMap<>(); // by offset in the region
    private final BitSet pinnedChunks = new BitSet(); // chunks that are pinned, or that cannot be
    private boolean isPinningRefused;
    private long settledSequence; // the last call that returns its chunk itself

    /** Pinned memory of the guest; the device address is 0 when the backend's kernels cannot use it. */
    private record HostMap(long bytes, long device) { }

    /**
     * The bytes of a box in the region.
     *
     * @param offset offset of the first byte.
     * @param pitch bytes from one row to the next.
     * @param slicePitch bytes from one slice to the next.
     * @param chunk the call's chunk number.
     */
    record HostBox(long offset, long pitch, long slicePitch, int chunk) {
        /** Bytes from the first to the last byte that a copy of a box uses; saturates. */
        long spanBytes(Box box) {
            return box.isEmpty() ? 0 : spanBytes(box.widthBytes(), box.rows(), box.slices());
        }

        /** The same, for lengths over 0. */
        long spanBytes(long widthBytes, long rows, long slices) {
            return Sizes.add(Sizes.add(Sizes.multiply(slices - 1, slicePitch), Sizes.multiply(rows - 1, pitch)),
                widthBytes);
        }
    }

    /**
     * Makes the calls of a session.
     *
     * @param session the session.
     * @param region the guest's region; null over another carrier.
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
            call.fatal("host memory must be whole granules that are not mapped yet: regionOffset=" + regionOffset
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
                throw new IllegalStateException("the backend must not return an address that is in use: address=0x"
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
            objects.allocations().removeHost(map.device); // later copies cannot use it from now on
        }
        call.deferWithoutRecord();
        List<Handle> contexts = objects.handles().all(HandleKind.CONTEXT);
        Unmap unmap = new Unmap(call, map.device, contexts.size());
        for (Handle context : contexts) {
            int wait = context.isFailed() ? -1 : backend.whenContextReached(context.nativeHandle(),
                status -> session.completions().add(unmap::reached));
            if (wait != 0) { // a lost context reports nothing
                session.completions().add(unmap::reached);
            }
        }
        session.completions().add(unmap::reached); // counts for this method itself
    }

    /** Waits for all contexts, then unmaps the memory from the backend. */
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
        // The region is checked first. An invalid box has no length there.
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
         * Issues the copy.
         *
         * @param address address of the box's first byte in the region.
         * @param stream the stream.
         * @return CUresult.
         */
        int issue(long address, StreamState stream);
    }

    /**
     * Copies between the region and an object that is not linear memory.
     *
     * @param call names the stream; ends here.
     * @param host the bytes in the region.
     * @param spanBytes bytes there from the first to the last byte of the copy.
     * @param issue issues the copy.
     */
    void copy(Call call, HostBox host, long spanBytes, Issue issue) {
        if (allows(call, host.offset, spanBytes, host.chunk)) {
            StreamState stream = call.lastStream();
            settle(call, stream, host.chunk, issue.issue(region.memory().address() + host.offset, stream));
        }
    }

    /** Whether the guest may use these bytes; if not, this ends the session. */
    private boolean allows(Call call, long offset, long bytes, int chunk) {
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

    /**
     * Pins a part of the bulk area at the first copy through it. Pinning all of it at once would delay a guest's first
     * copy.
     */
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

    /** Ends a copy's call. The chunk returns to the guest when the stream has done the copy or has failed. */
    private void settle(Call call, StreamState stream, int chunk, int issued) {
        if (chunk != 0) {
            settledSequence = call.sequence();
            // Runs on the backend's thread, so that the guest can refill the chunk while other chunks are copied.
            int wait = backend.whenStreamReached(stream.context(), stream.stream(),
                status -> region.releaseChunk(chunk - 1, issued != 0 ? issued : status));
            if (wait != 0) {
                region.releaseChunk(chunk - 1, issued != 0 ? issued : wait);
            }
        }
        call.finish(issued);
    }

    /** Returns the chunk of a copy that failed before it was issued, for example for its stream or its address. */
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
