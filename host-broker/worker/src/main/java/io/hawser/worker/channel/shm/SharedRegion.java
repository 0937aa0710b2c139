package io.hawser.worker.channel.shm;

import io.hawser.shm.RegionGeometry;
import io.hawser.shm.RegionLayout;
import io.hawser.shm.os.SharedMemory;
import io.hawser.shm.ring.Waker;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The region that a session's guest shares with this worker, and the guest's slot in it. The guest can write every byte
 * of it at any time: where things lie is computed, never read. Any thread.
 */
public final class SharedRegion implements AutoCloseable {
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
     * Where a session is.
     *
     * @param regionBytes length of the region.
     * @param slotCount its slots.
     * @param slot the guest's.
     * @param kind KIND_PROCESS or KIND_MACHINE.
     * @param mapAddress where the guest has mapped the region, as it says; 0 for unknown.
     */
    public record Place(long regionBytes, int slotCount, int slot, int kind, long mapAddress) { }

    /**
     * Maps a region, where the guest has if that is free here.
     *
     * @param descriptor of its file, which may be closed afterwards.
     * @param place what the broker says about it.
     * @throws IOException if it cannot be mapped or has no such slot.
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
    public MemorySegment memory() {
        return memory;
    }

    /** Where things lie in it. */
    public RegionGeometry geometry() {
        return geometry;
    }

    /** Where the session is. */
    public Place place() {
        return place;
    }

    /**
     * Whether a copy may use these bytes of the region.
     *
     * @param offset of the first in the region, an unsigned number of the guest's.
     * @param bytes how many, as well.
     * @param chunk 0 for bytes of the heap, else 1 + the chunk of the slot's bulk area that holds them.
     */
    public boolean allows(long offset, long bytes, int chunk) {
        return chunk == 0 ? geometry.isInHeap(offset, bytes)
            : geometry.isInChunk(place.slot, chunk - 1, offset, bytes);
    }

    /**
     * Gives a chunk back to the guest: all that was done with it comes before.
     *
     * @param chunk its number, from 0.
     * @param result CUresult of the copy.
     */
    public void releaseChunk(int chunk, int result) {
        try {
            WORD.setRelease(memory, geometry.chunkWord(place.slot, chunk), result);
            wakeReader();
        } catch (InternalError e) {
            // The guest has cut its region's file: nobody waits for the word, and the session thread will find out.
            LOG.log(Level.DEBUG, "a chunk is gone: {0}", e.getMessage());
        }
    }

    /** After a reply or a chunk: wakes the guest if it sleeps. Costs a fence where it does not. */
    void wakeReader() {
        if (canWake) {
            reader.wake();
        }
    }

    /** After room was made in the command ring: wakes the guest if it waits for it. */
    void wakeSender() {
        if (canWake) {
            sender.wake();
        }
    }

    /** What the guest says of itself; GUEST_CLAIMED as long as it is there. */
    int guestState() {
        // Pairs with the guest's store: all that it put into its ring before comes before.
        return (int) WORD.getAcquire(memory, geometry.guestPage(place.slot) + RegionLayout.GUEST_STATE_OFFSET);
    }

    /** Ends the mapping: nothing may use the region any more. */
    @Override
    public void close() {
        mapping.close();
    }
}
