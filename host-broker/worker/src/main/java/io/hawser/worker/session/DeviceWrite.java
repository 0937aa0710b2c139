package io.hawser.worker.session;

import io.hawser.cuda.backend.Signals;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;

/**
 * One copy of the guest's memory to the device, by way of staging memory. Session thread.
 *
 * <p>When the stream has reached the copy, the carrier fetches the first pieces to slots of staging memory. The stream
 * waits for each piece ({@link WaitWords}) and copies it. A slot whose piece has been copied takes a later one, so that
 * the carrier and the GPU work at the same time. No other stream takes part: many streams share few queues of NVIDIA's
 * driver, where a copy in another stream could wait behind the one that waits for its bytes.
 */
public final class DeviceWrite extends AwaitedCopy {
    private static final Logger LOG = System.getLogger(DeviceWrite.class.getName());

    private static final int SLOTS = 4;
    /** Bounds the entries of the stream's queue: the driver blocks a thread that fills it. */
    private static final long MAX_PIECES = 64;

    /**
     * Where pieces lie on their way.
     *
     * @param memory the whole staging memory.
     * @param offset of the first slot.
     * @param bytes of all slots.
     */
    public record Slots(MemorySegment memory, long offset, long bytes) {
        private long slotBytes() {
            return bytes / SLOTS;
        }

        /** Whether a copy has few enough pieces; over 0 bytes, as an unsigned number. */
        public boolean serve(long copyBytes) {
            return slotBytes() > 0 && Long.compareUnsigned((copyBytes - 1) / slotBytes(), MAX_PIECES) < 0;
        }

        private long offsetOf(long piece) {
            return offset + piece % SLOTS * slotBytes();
        }
    }

    private final long device;
    private final long bytes;
    private final Slots slots;
    private final long pieces;
    private long requested; // pieces that the carrier has been asked for
    private long arrived;
    private long copied; // at least, of those whose slot another piece needs

    DeviceWrite(StreamWork work, Call call, StreamState stream, long device, long bytes, GuestPlace place,
        Slots slots) {
        super(work, call, stream, place);
        this.device = device;
        this.bytes = bytes;
        this.slots = slots;
        this.pieces = (bytes - 1) / slots.slotBytes() + 1;
    }

    @Override
    int issue() {
        int refused = 0;
        for (long piece = 0; piece < pieces && refused == 0; piece++) {
            refused = issue(piece);
        }
        return refused;
    }

    private int issue(long piece) {
        int refused = word.await(stream.stream());
        if (refused == 0) {
            MemorySegment source = slots.memory().asSlice(slots.offsetOf(piece), length(piece));
            refused = work.copy(source, device + piece * slots.slotBytes(), stream);
        }
        if (refused == 0 && piece + SLOTS < pieces) {
            work.whenReached(stream, this::copied);
            work.seal();
        }
        return refused;
    }

    @Override
    long entries() {
        return pieces * (Signals.AWAIT_ENTRIES + 1);
    }

    private long length(long piece) {
        return Math.min(slots.slotBytes(), bytes - piece * slots.slotBytes());
    }

    private void copied(int ended) {
        copied++;
        reached(ended);
    }

    /** Asks for the pieces that have a slot. */
    @Override
    void proceed() {
        try {
            while (result == 0 && !isOpen() && requested < Math.min(pieces, copied + SLOTS)) {
                long piece = requested++;
                work.guestMemory().read(place.address() + piece * slots.slotBytes(), place.key(), slots.memory(),
                    slots.offsetOf(piece), (int) length(piece), this::arrived);
            }
        } catch (IOException e) {
            LOG.log(Level.WARNING, "the copy area cannot be registered for RDMA: {0}", e.getMessage());
            result = CudaResult.OUT_OF_MEMORY;
        }
        if (result != 0) {
            open();
        }
    }

    private void arrived() {
        if (isOpen()) {
            return; // the copy has failed meanwhile
        }
        word.openNext();
        if (++arrived == pieces) {
            open();
        }
    }
}
