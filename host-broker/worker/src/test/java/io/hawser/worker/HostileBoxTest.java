package io.hawser.worker;

import static io.hawser.worker.HostileLaunchTest.refuse;
import static io.hawser.worker.HostileLaunchTest.session;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Copies of boxes access only the guest's own memory, from the first byte to the last, by each kind of copy call. */
@Timeout(300)
class HostileBoxTest {
    private static final int INVALID_VALUE = 1;
    private static final int ALLOCATED_BYTES = 4096;
    private static final long MAX_ROWS = 1L << 22; // rows of one copy, as in Box

    /**
     * One kind of copy call for a box, given as base, pitch, height, x, y, z, width, rows and slices; returns the
     * result.
     */
    @FunctionalInterface
    private interface Way {
        int copy(Rig rig, long... box) throws IOException;
    }

    private static long[] joined(long[] box, long... more) {
        return LongStream.concat(Arrays.stream(box), Arrays.stream(more)).toArray();
    }

    private static int result(Guest guest) throws IOException {
        return guest.call(Guest.CTX_SYNCHRONIZE).status();
    }

    private static int write(Rig rig, long... box) throws IOException {
        send(rig.guest(), Math.toIntExact(box[6] * box[7] * box[8]), box);
        return result(rig.guest());
    }

    private static void send(Guest guest, int bytes, long... box) throws IOException {
        guest.send(Guest.WRITE_BOX, Guest.CREDITED, out -> {
            out.fixed(88);
            for (int i = 0; i < box.length; i++) {
                out.i64(8L * i, box[i]);
            }
            out.buffer(80, MemorySegment.ofArray(new byte[bytes]));
        });
    }

    private static int read(Rig rig, long... box) throws IOException {
        long request = rig.guest().send(Guest.READ_BOX, Guest.REPLY, joined(box, 0));
        while (true) { // DATA records, then the reply
            Guest.Received record = rig.guest().next();
            if (record.opcode() < 0) {
                assertEquals(request, record.fields().sequence());
                return record.status();
            }
        }
    }

    /** A contiguous box of the same size in another allocation. */
    private static long[] other(Guest guest, long... box) throws IOException {
        long bytes = Math.max(1, box[6] * box[7] * box[8]);
        return new long[] {guest.allocate(bytes), box[6], box[7], 0, 0, 0};
    }

    private static int copyFrom(Rig rig, long... box) throws IOException {
        rig.guest().send(CudaOpcodes.hwsCopyBox, Guest.CREDITED, joined(other(rig.guest(), box), joined(box, 0)));
        return result(rig.guest());
    }

    private static int copyTo(Rig rig, long... box) throws IOException {
        rig.guest().send(CudaOpcodes.hwsCopyBox, Guest.CREDITED, joined(Arrays.copyOf(box, 6),
            joined(other(rig.guest(), box), box[6], box[7], box[8], 0)));
        return result(rig.guest());
    }

    private static int shared(Rig rig, int opcode, long... box) throws IOException {
        rig.guest().send(opcode, Guest.CREDITED, joined(box, 0, rig.region().geometry().heapOffset(), box[6],
            box[6] * box[7], 0));
        return result(rig.guest());
    }

    private static final Way[] WAYS = {HostileBoxTest::write, HostileBoxTest::read, HostileBoxTest::copyFrom,
        HostileBoxTest::copyTo, (rig, box) -> shared(rig, CudaOpcodes.hwsWriteBoxShared, box),
        (rig, box) -> shared(rig, CudaOpcodes.hwsReadBoxShared, box)};

    @Test
    void shouldRefuseBoxesThatLeaveTheGuestsAllocation() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            long end = memory + ALLOCATED_BYTES;
            long[][] boxes = {{memory - 1, 64, 64, 0, 0, 0, 64, 1, 1}, {end, 1, 1, 0, 0, 0, 1, 1, 1},
                {memory + 1, 64, 64, 0, 0, 0, 64, 64, 1}, {memory, 64, 64, 1, 0, 0, 63, 65, 1},
                {memory, 64, 64, 0, 1, 0, 64, 64, 1}, {memory, 64, 64, 0, 0, 1, 64, 1, 1},
                {memory, 128, 64, 0, 0, 0, 64, 33, 1}, {memory, 64, 32, 0, 0, 0, 64, 2, 3},
                {memory, 64, 33, 0, 0, 0, 64, 32, 2}, {4096, 64, 64, 0, 0, 0, 64, 1, 1}, {0, 64, 64, 0, 0, 0, 64, 1, 1},
                {-64, 64, 64, 0, 0, 0, 64, 1, 1}, {-64, 64, 64, 0, 0, 0, 64, 2, 1}};
            for (int way = 0; way < WAYS.length; way++) {
                assertEquals(0, WAYS[way].copy(rig, memory, 64, 32, 0, 0, 0, 64, 32, 2), "all of it, way " + way);
                assertEquals(0, WAYS[way].copy(rig, memory, 128, 32, 64, 0, 0, 64, 32, 1), "to its end, way " + way);
                for (long[] box : boxes) {
                    assertEquals(INVALID_VALUE, WAYS[way].copy(rig, box), Arrays.toString(box) + " way " + way);
                }
            }
        });
    }

    @Test
    void shouldRefuseMoreRowsThanACopyMayHave() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            for (int way = 0; way < WAYS.length; way++) { // rows without bytes; each still counts as an operation
                assertEquals(0, WAYS[way].copy(rig, memory, 2, MAX_ROWS, 0, 0, 0, 0, MAX_ROWS, 1), "way " + way);
                assertEquals(INVALID_VALUE,
                    WAYS[way].copy(rig, memory, 2, MAX_ROWS + 1, 0, 0, 0, 0, MAX_ROWS + 1, 1), "way " + way);
            }
        });
    }

    @Test
    void shouldRefuseMoreRowsThanACopyMayHaveInTheRegion() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            long heap = rig.region().geometry().heapOffset();
            for (int opcode : new int[] {CudaOpcodes.hwsWriteBoxShared, CudaOpcodes.hwsReadBoxShared}) {
                // The rows are contiguous on the device, but not in the region.
                for (long rows : new long[] {MAX_ROWS, MAX_ROWS + 1}) {
                    guest.send(opcode, Guest.CREDITED, memory, 0, rows, 0, 0, 0, 0, rows, 1, 0, heap, 8, 8 * rows, 0);
                    assertEquals(rows == MAX_ROWS ? 0 : INVALID_VALUE, result(guest), "rows=" + rows);
                }
            }
        });
    }

    @Test
    void shouldRefuseInvalidBoxes() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            long[][] boxes = {{memory, 32, 64, 0, 0, 0, 64, 2, 1}, {memory, 64, 1, 0, 0, 0, 64, 2, 2},
                {memory, -64, 64, 0, 0, 0, 64, 2, 1}, {memory, 64, -1, 0, 0, 0, 64, 1, 2},
                {memory, 64, 64, -1, 0, 0, 64, 1, 1}, {memory, 64, 64, 0, -1, 0, 64, 1, 1},
                {memory, 64, 64, 0, 0, -1, 64, 1, 1}, {memory, 1L << 49, 64, 0, 0, 0, 64, 2, 1}};
            for (long[] box : boxes) {
                for (int way = 0; way < WAYS.length; way++) {
                    assertEquals(INVALID_VALUE, WAYS[way].copy(rig, box), Arrays.toString(box) + " way " + way);
                }
            }
        });
    }

    @Test
    void shouldRefuseDataOfAnotherLengthThanTheBox() throws IOException {
        for (int bytes : new int[] {0, 1, 127, 129, 256}) {
            refuse("a buffer must have the described length",
                (rig, guest) -> send(guest, bytes, guest.allocate(ALLOCATED_BYTES), 64, 2, 0, 0, 0, 64, 2, 1));
        }
    }
}
