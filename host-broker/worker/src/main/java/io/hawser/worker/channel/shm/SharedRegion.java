package io.hawser.worker.channel.shm;

import io.hawser.shm.os.SharedMemory;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.ring.Waker;
import io.hawser.worker.channel.BulkArea;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The region that a session's guest shares with this worker, and the guest's slot in it. The guest can write every byte
 * of it at any time, so the offsets of its parts are computed and never read from it. Any thread.
 */
public final class SharedRegion implements BulkArea, AutoCloseable {
    private static final VarHandle WORD = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private static final Logger LOG = System.getLogger(SharedRegion.class.getName());

    private final SharedMemory mapping;
    private final MemorySegment memory;
    private final RegionGeometry geometry;
    private final Place place;
    private final boolean canWake;
    private final Waker reader;
    private final Waker sender;

    /**
     * The place of a session in its region.
     *
     * @param regionBytes length of the region.
     * @param slotCount number of slots.
     * @param slot the guest's slot.
     * @param kind KIND_PROCESS or KIND_MACHINE.
     * @param mapAddress address at which the guest claims to have mapped the region; 0 for unknown.
     */
    public record Place(long regionBytes, int slotCount, int slot, int kind, long mapAddress) {}

    /**
     * Maps a region, at the guest's address if that address is free in this process.
     *
     * @param descriptor descriptor of its file; the caller may close it afterwards.
     * @param place the place that the broker sent.
     * @throws IOException if the region cannot be mapped or has no such slot.
     */
    public static SharedRegion map(int descriptor, Place place) throws IOException {
        if (place.kind != RegionLayout.KIND_PROCESS && place.kind != RegionLayout.KIND_MACHINE) {
            throw new IOException("a guest must be a process or a machine: kind=" + place.kind);
        }
        RegionGeometry geometry;
        try {
            geometry = RegionGeometry.of(place.regionBytes, place.slotCount);
            geometry.slot(place.slot);
        } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
            throw new IOException(e.getMessage(), e);
        }
        return new SharedRegion(SharedMemory.map(descriptor, place.regionBytes, place.mapAddress), geometry, place);
    }

    private SharedRegion(SharedMemory mapping, RegionGeometry geometry, Place place) {
        this.mapping = mapping;
        this.memory = mapping.memory();
        this.geometry = geometry;
        this.place = place;
        this.canWake = place.kind == RegionLayout.KIND_PROCESS;
        long guest = geometry.guestPage(place.slot);
        long signal = geometry.hostPage(place.slot) + RegionLayout.HOST_REPLY_SIGNAL_OFFSET;
        this.reader = new Waker(memory, guest + RegionLayout.GUEST_REPLY_WAITING_OFFSET, signal);
        this.sender = new Waker(memory, guest + RegionLayout.GUEST_ROOM_WAITING_OFFSET, signal);
    }

    /** The whole region. */
    @Override
    public MemorySegment memory() {
        return memory;
    }

    /** The offsets of the region's parts. */
    public RegionGeometry geometry() {
        return geometry;
    }

    /** The session's place in the region. */
    public Place place() {
        return place;
    }

    @Override
    public int chunkCount() {
        return geometry.chunkCount();
    }

    @Override
    public long chunkBytes() {
        return geometry.chunkBytes();
    }

    @Override
    public long chunkOffset(int chunk) {
        return geometry.chunk(place.slot, chunk);
    }

    @Override
    public boolean allows(long offset, long bytes, int chunk) {
        return chunk == 0 ? geometry.isInHeap(offset, bytes)
            : geometry.isInChunk(place.slot, chunk - 1, offset, bytes);
    }

    /** The release store makes all earlier accesses to the chunk visible before it. */
    @Override
    public void giveBack(int chunk, long offset, long bytes, int result) {
        try {
            WORD.setRelease(memory, geometry.chunkWord(place.slot, chunk), result);
            wakeReader();
        } catch (InternalError e) {
            // The guest has truncated its region's file, so it cannot wait for the word. The session thread will
            // notice.
            LOG.log(Level.DEBUG, "a chunk is gone: {0}", e.getMessage());
        }
    }

    /** Wakes the guest, if it sleeps, after a reply or the return of a chunk. Costs a fence if the guest is awake. */
    void wakeReader() {
        if (canWake) {
            reader.wake();
        }
    }

    /** Wakes the guest, if it waits for room, after the worker has made room in the command ring. */
    void wakeSender() {
        if (canWake) {
            sender.wake();
        }
    }

    /** The state that the guest has written; GUEST_CLAIMED while it uses the slot. */
    int guestState() {
        // Pairs with the guest's release store of its state: all bytes that it put into its ring before are visible.
        return (int) WORD.getAcquire(memory, geometry.guestPage(place.slot) + RegionLayout.GUEST_STATE_OFFSET);
    }

    /** Unmaps the region; no thread may use it any more. */
    @Override
    public void close() {
        mapping.close();
    }
}
