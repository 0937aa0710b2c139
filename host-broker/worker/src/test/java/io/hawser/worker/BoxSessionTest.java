package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Copies boxes of device memory on devices that copy a box in one operation and on devices that copy rows; both must
 * give the same bytes.
 */
@Timeout(300)
class BoxSessionTest {
    private static final int HEIGHT_BEYOND = 3; // rows between slices that belong to no box

    /** A box at (x, 1, 1) of an allocation. */
    private record Shape(int pitch, int x, int width, int rows, int slices) {
        int height() {
            return rows + HEIGHT_BEYOND;
        }

        int bytes() {
            return width * rows * slices;
        }

        int allocation() {
            return pitch * height() * (slices + 2);
        }

        int at(int slice, int row) {
            return ((slice + 1) * height() + row + 1) * pitch + x;
        }

        long[] fields(long memory) {
            return new long[] {memory, pitch, height(), x, 1, 1, width, rows, slices, 0};
        }
    }

    @ParameterizedTest
    @CsvSource({"64,5,10,3,2", "64,0,64,1,4", "4096,1,4000,700,1", "1000,3,997,50,40", "40,0,8,2,9000", "64,5,1,1,1",
        "2200000,7,1500000,2,2"})
    void shouldCopySameBytesAtOnceAndByRows(int pitch, int x, int width, int rows, int slices) throws IOException {
        Shape shape = new Shape(pitch, x, width, rows, slices);
        for (Carrier carrier : Carrier.values()) {
            for (boolean atOnce : new boolean[] {true, false}) {
                try (Rig rig = Rig.withGuest(carrier)) {
                    if (atOnce) {
                        rig.gpu().enableBoxCopies();
                    }
                    copy(rig, shape);
                    boolean isBox = shape.rows > 1 || shape.slices > 1;
                    assertEquals(atOnce && isBox, rig.gpu().boxesCopied() > 0);
                }
            }
        }
    }

    private static void copy(Rig rig, Shape shape) throws IOException {
        Guest guest = rig.guest();
        byte[] content = Guest.random(shape.allocation());
        long memory = guest.allocate(content.length);
        for (int at = 0; at < content.length; at += 1 << 20) {
            guest.write(memory + at, 0, java.util.Arrays.copyOfRange(content, at, Math.min(at + (1 << 20),
                content.length)));
            guest.synchronize(0);
        }
        byte[] box = new byte[shape.bytes()];
        for (int slice = 0; slice < shape.slices; slice++) {
            for (int row = 0; row < shape.rows; row++) {
                System.arraycopy(content, shape.at(slice, row), box, (slice * shape.rows + row) * shape.width,
                    shape.width);
            }
        }
        assertArrayEquals(box, guest.collect(guest.send(Guest.READ_BOX, Guest.REPLY, shape.fields(memory)),
            box.length));
        if (box.length <= 1 << 20) {
            byte[] other = Guest.random(box.length + 1);
            byte[] data = java.util.Arrays.copyOf(other, box.length);
            guest.send(Guest.WRITE_BOX, Guest.CREDITED, out -> {
                out.fixed(88);
                long[] fields = shape.fields(memory);
                for (int i = 0; i < fields.length; i++) {
                    out.i64(8L * i, fields[i]);
                }
                out.buffer(80, MemorySegment.ofArray(data));
            });
            for (int slice = 0; slice < shape.slices; slice++) {
                for (int row = 0; row < shape.rows; row++) {
                    System.arraycopy(data, (slice * shape.rows + row) * shape.width, content, shape.at(slice, row),
                        shape.width);
                }
            }
            assertArrayEquals(content, guest.read(memory, content.length, 0), "nothing but the box is written");
            box = data;
        }
        long second = guest.allocate(content.length);
        long[] to = shape.fields(second);
        long[] from = shape.fields(memory);
        guest.send(CudaOpcodes.hwsCopyBox, Guest.CREDITED, to[0], to[1], to[2], to[3], to[4], to[5], from[0], from[1],
            from[2], from[3], from[4], from[5], shape.width, shape.rows, shape.slices, 0);
        assertArrayEquals(box, guest.collect(guest.send(Guest.READ_BOX, Guest.REPLY, shape.fields(second)),
            box.length));
        assertTrue(guest.synchronize(0) == 0);
    }
}
