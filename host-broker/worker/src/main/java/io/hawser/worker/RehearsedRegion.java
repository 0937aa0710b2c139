package io.hawser.worker;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.ring.RingCorruptException;
import io.hawser.shm.ring.RingReader;
import io.hawser.shm.ring.RingWriter;
import io.hawser.shm.ring.Sleeper;
import io.hawser.shm.ring.Waker;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.channel.shm.SharedRegion;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * The guest's end of a region with one slot, for a {@link Rehearsal}. Apart from the session thread, only one thread
 * uses it.
 */
final class RehearsedRegion implements RehearsedGuest.Peer, AutoCloseable {
    private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();
    private static final long REGION_BYTES = 1 << 20;
    /** The slot that the guest has claimed. */
    static final SharedRegion.Place PLACE = new SharedRegion.Place(REGION_BYTES, 1, 0, RegionLayout.KIND_PROCESS, 0);
    private static final long TIMEOUT_NS = 5_000_000_000L;
    private static final long NAP_NS = 100_000_000;

    private final SharedRegion region; // mapped as the guest maps it
    private final RingWriter commands;
    private final RingReader replies;
    private final Waker worker;
    private final Sleeper sleeper;
    private final long stateOffset;
    private int descriptor;

    /** Creates the region and claims its slot. */
    RehearsedRegion() throws IOException {
        descriptor = Descriptors.memory("hawser-rehearsed-region", REGION_BYTES);
        try {
            region = SharedRegion.map(descriptor, PLACE);
        } catch (IOException e) {
            Descriptors.close(descriptor);
            throw e;
        }
        MemorySegment memory = region.memory();
        RegionGeometry geometry = region.geometry();
        long guest = geometry.guestPage(0);
        long host = geometry.hostPage(0);
        stateOffset = guest + RegionLayout.GUEST_STATE_OFFSET;
        WORD.setRelease(memory, stateOffset, RegionLayout.GUEST_CLAIMED);
        commands = RingWriter.command(memory, geometry, 0);
        replies = RingReader.reply(memory, geometry, 0);
        worker = new Waker(memory, host + RegionLayout.HOST_COMMAND_WAITING_OFFSET,
            guest + RegionLayout.GUEST_COMMAND_SIGNAL_OFFSET);
        sleeper = new Sleeper(memory, guest + RegionLayout.GUEST_REPLY_WAITING_OFFSET,
            host + RegionLayout.HOST_REPLY_SIGNAL_OFFSET);
    }

    /** The memory's descriptor, once; the caller closes it. */
    int takeDescriptor() {
        int taken = descriptor;
        descriptor = -1;
        return taken;
    }

    @Override
    public void send(RecordWriter record, int lengthBytes) throws IOException {
        try {
            if (commands.room() < lengthBytes) {
                throw new IOException("a rehearsal's calls must fit their ring: room=" + commands.room());
            }
        } catch (RingCorruptException e) {
            throw new IOException(e);
        }
        commands.put(record.memory(), 0, lengthBytes);
        commands.commit();
        worker.wake();
    }

    @Override
    public void receive(byte[] target, int offset, int bytes) throws IOException {
        MemorySegment memory = MemorySegment.ofArray(target);
        long deadline = System.nanoTime() + TIMEOUT_NS;
        try {
            for (int at = 0; at < bytes;) {
                int seen = sleeper.prepare();
                int count = (int) replies.takeAvailable(memory, offset + at, bytes - at);
                if (count > 0) {
                    at += count;
                    replies.release();
                } else if (System.nanoTime() > deadline) {
                    throw new InterruptedIOException("the rehearsed session sent no reply in time");
                } else {
                    sleeper.sleep(seen, NAP_NS);
                }
            }
        } catch (RingCorruptException e) {
            throw new IOException(e);
        }
    }

    @Override
    public void leave() {
        WORD.setRelease(region.memory(), stateOffset, RegionLayout.GUEST_LEFT);
        worker.wake();
    }

    /** Unmaps the guest's mapping. */
    @Override
    public void close() {
        if (descriptor >= 0) {
            Descriptors.close(descriptor);
        }
        region.close();
    }
}
