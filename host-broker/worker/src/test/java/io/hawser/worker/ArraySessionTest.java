package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.fixture.RegionPipe;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Arrays, textures and surfaces of a session: which calls succeed, and which fail. */
@Timeout(300)
@ParameterizedClass
@EnumSource(Carrier.class)
class ArraySessionTest {
    private static final int INVALID_VALUE = 1;
    private static final int INVALID_HANDLE = 400;
    private static final int UINT8 = 1;
    private static final int FLOAT = 0x20;
    private static final int SURFACE = 2;

    @Parameter
    private Carrier carrier;

    /** Creates an array of elements with one channel; returns the status. */
    private static int create(Guest guest, long id, long width, long height, long depth, int format, int channels,
        int flags) throws IOException {
        return guest.call(CudaOpcodes.cuArray3DCreate_v2, out -> {
            out.fixed(48);
            out.i64(0, id);
            out.i64(8, width);
            out.i64(16, height);
            out.i64(24, depth);
            out.i32(32, format);
            out.i32(36, channels);
            out.i32(40, flags);
        }).status();
    }

    private static long array(Guest guest, long width, long height, long depth) throws IOException {
        long id = guest.newId(HandleKind.ARRAY);
        assertEquals(0, create(guest, id, width, height, depth, UINT8, 1, 0));
        return id;
    }

    private static void write(Guest guest, long array, long[] box, byte[] data) throws IOException {
        guest.send(CudaOpcodes.hwsWriteArray, Guest.CREDITED, out -> {
            out.fixed(72);
            out.i64(0, array);
            for (int i = 0; i < box.length; i++) {
                out.i64(8 + 8L * i, box[i]);
            }
            out.i64(56, 0);
            out.buffer(64, MemorySegment.ofArray(data));
        });
    }

    private static long sendRead(Guest guest, long array, long... box) throws IOException {
        return guest.send(CudaOpcodes.hwsReadArray, Guest.REPLY, array, box[0], box[1], box[2], box[3], box[4], box[5],
            0);
    }

    @Test
    void shouldCopyBoxesBothWays() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long array = array(guest, 50, 20, 8);
            byte[] data = Guest.random(10 * 5 * 3);
            write(guest, array, new long[] {7, 4, 2, 10, 5, 3}, data);
            assertArrayEquals(data, guest.collect(sendRead(guest, array, 7, 4, 2, 10, 5, 3), data.length));
            assertArrayEquals(Arrays.copyOfRange(data, 53, 58),
                guest.collect(sendRead(guest, array, 10, 4, 3, 5, 1, 1), 5));
            guest.send(CudaOpcodes.cuArrayDestroy, 0, array);
            assertEquals(INVALID_HANDLE, guest.replyTo(sendRead(guest, array, 0, 0, 0, 1, 1, 1)).status());
            rig.leave();
        }
    }

    @Test
    void shouldCopyNothingOfEmptyBox() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long array = array(guest, 50, 20, 8);
            for (long[] box : new long[][] {{7, 4, 2, 0, 5, 3}, {7, 4, 2, 10, 0, 3}, {7, 4, 2, 10, 5, 0},
                {0, 0, 0, 0, 0, 0}}) {
                write(guest, array, box, new byte[0]);
                assertEquals(0, guest.replyTo(sendRead(guest, array, box)).status(), Arrays.toString(box));
            }
            assertEquals(0, guest.synchronize(0));
            rig.leave();
        }
    }

    @Test
    void shouldSendBoxesLargerThanRecords() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            int width = 100_003;
            long array = array(guest, width, 7, 6);
            byte[] all = Guest.random(width * 7 * 6);
            for (int row = 0; row < 42; row++) {
                write(guest, array, new long[] {0, row % 7, row / 7, width, 1, 1},
                    Arrays.copyOfRange(all, row * width, (row + 1) * width));
                guest.synchronize(0); // reads CREDIT records too
            }
            assertArrayEquals(all, guest.collect(sendRead(guest, array, 0, 0, 0, width, 7, 6), all.length));
            rig.leave();
        }
    }

    @Test
    void shouldCopyBetweenArraysAndMemory() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long first = array(guest, 32, 8, 0);
            long second = array(guest, 16, 16, 0);
            long memory = guest.allocate(1024);
            byte[] data = Guest.random(32 * 8);
            write(guest, first, new long[] {0, 0, 0, 32, 8, 1}, data);
            guest.send(CudaOpcodes.hwsArrayToArray, Guest.CREDITED, second, 2, 3, 0, first, 20, 1, 0, 10, 4, 1, 0);
            guest.send(CudaOpcodes.hwsArrayToDevice, Guest.CREDITED, second, 2, 3, 0, 10, 4, 1, memory, 64, 4, 5, 2, 0,
                0);
            guest.send(CudaOpcodes.hwsDeviceToArray, Guest.CREDITED, first, 0, 7, 0, 8, 1, 1, memory, 64, 4, 5, 3, 0,
                0);
            byte[] row = guest.collect(sendRead(guest, first, 0, 7, 0, 8, 1, 1), 8);
            assertArrayEquals(Arrays.copyOfRange(data, 2 * 32 + 20, 2 * 32 + 28), row);
            rig.leave();
        }
    }

    @Test
    void shouldFailBoxesThatLeaveTheirArray() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long array = guest.newId(HandleKind.ARRAY);
            assertEquals(0, create(guest, array, 10, 6, 4, FLOAT, 1, 0));
            long[][] boxes = {
                {0, 0, 0, 44, 1, 1}, {4, 0, 0, 40, 1, 1}, {0, 1, 0, 4, 6, 1}, {0, 0, 3, 4, 1, 2}, {38, 0, 0, 4, 1, 1},
                {0, 0, 0, 41, 1, 1}, {-4, 0, 0, 4, 1, 1}, {0, -1, 0, 4, 1, 1}, {0, 0, -1, 4, 1, 1},
                {Long.MAX_VALUE - 3, 0, 0, 8, 1, 1}, {0, Long.MAX_VALUE, 0, 4, 1, 1}, {0, 0, 0, -4, 1, 1},
                {0, 0, 0, 4, Long.MIN_VALUE, 1}, {0, 0, 0, 4, 1, -1}, {0, 0, 0, 1L << 62, 1 << 4, 1},
            };
            for (long[] box : boxes) {
                assertEquals(INVALID_VALUE, guest.replyTo(sendRead(guest, array, box)).status(),
                    () -> Arrays.toString(box));
            }
            long memory = guest.allocate(100);
            guest.send(CudaOpcodes.hwsArrayToDevice, Guest.CREDITED, array, 0, 0, 0, 40, 3, 1, memory, 40, 3, 0, 0, 0,
                0); // 120 bytes
            assertEquals(INVALID_VALUE, guest.synchronize(0));
            guest.send(CudaOpcodes.hwsDeviceToArray, Guest.CREDITED, array, 0, 0, 0, 40, 2, 1, memory - 4, 40, 2, 0, 0,
                0, 0);
            assertEquals(INVALID_VALUE, guest.synchronize(0));
            rig.leave();
        }
    }

    @Test
    void shouldRefuseShapesThatNoArrayCanHave() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long[][] shapes = {
                {0, 0, 0, FLOAT, 1, 0}, {-1, 0, 0, FLOAT, 1, 0}, {1, Long.MIN_VALUE, 0, FLOAT, 1, 0},
                {1L << 40, 0, 0, FLOAT, 1, 0}, {1, 1L << 40, 1, FLOAT, 1, 0}, {1, 1, 1L << 40, FLOAT, 1, 0},
                {1, 1, 1, 0x99, 1, 0}, {1, 1, 1, FLOAT, 3, 0}, {1, 1, 1, FLOAT, 0, 0}, {1, 1, 1, FLOAT, 1, 0x100},
                {1, 1, 1, FLOAT, 1, -1},
            };
            for (long[] shape : shapes) {
                assertEquals(INVALID_VALUE, create(guest, guest.newId(HandleKind.ARRAY), shape[0], shape[1], shape[2],
                    (int) shape[3], (int) shape[4], (int) shape[5]), () -> Arrays.toString(shape));
            }
            rig.leave();
        }
    }

    @Test
    void shouldChargeArraysToQuota() throws IOException {
        try (Rig rig = Rig.withGuest(carrier, 1 << 20)) {
            Guest guest = rig.guest();
            assertEquals(2, create(guest, guest.newId(HandleKind.ARRAY), 1024, 1025, 0, UINT8, 1, 0));
            long array = array(guest, 1024, 1024, 0);
            assertEquals(0, guest.call(Guest.MEM_GET_INFO).i64(0));
            assertEquals(2, create(guest, guest.newId(HandleKind.ARRAY), 1, 0, 0, UINT8, 1, 0));
            assertEquals(2, guest.call(Guest.MEM_ALLOC, 1).status());
            guest.send(CudaOpcodes.cuArrayDestroy, 0, array);
            long again = array(guest, 1024, 512, 0);
            assertEquals(512 << 10, guest.call(Guest.MEM_GET_INFO).i64(0));
            guest.send(CudaOpcodes.cuArrayDestroy, 0, again);
            assertEquals(0, guest.synchronize(0));
            rig.leave();
        }
    }

    @Test
    void shouldGiveQuotaBackWithContext() throws IOException {
        try (Rig rig = Rig.withGuest(carrier, 1 << 20)) {
            Guest guest = rig.guest();
            long own = guest.newId(HandleKind.CONTEXT);
            guest.call(Guest.CONTEXT_CREATE, own, 0, 0);
            guest.useContext(own);
            array(guest, 1024, 1024, 0);
            assertEquals(0, guest.call(Guest.MEM_GET_INFO).i64(0));
            // The reply arrives when the context is destroyed.
            assertEquals(0, guest.call(Guest.CONTEXT_DESTROY, own).status());
            long other = guest.newId(HandleKind.CONTEXT);
            guest.useContext(0);
            guest.call(Guest.CONTEXT_CREATE, other, 0, 0);
            guest.useContext(other);
            assertEquals(1 << 20, guest.call(Guest.MEM_GET_INFO).i64(0));
            rig.leave();
        }
    }

    @Test
    void shouldKeepLevelsWithTheirMipmappedArray() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long mipmap = guest.newId(HandleKind.MIPMAPPED_ARRAY);
            assertEquals(0, guest.call(CudaOpcodes.cuMipmappedArrayCreate, out -> {
                out.fixed(56);
                out.i64(0, mipmap);
                out.i64(8, 32);
                out.i64(16, 16);
                out.i32(32, UINT8);
                out.i32(36, 1);
                out.i32(48, 3);
            }).status());
            long level = guest.newId(HandleKind.ARRAY);
            assertEquals(0, guest.call(CudaOpcodes.cuMipmappedArrayGetLevel, level, mipmap, 2).status());
            byte[] data = Guest.random(8 * 4);
            write(guest, level, new long[] {0, 0, 0, 8, 4, 1}, data);
            assertArrayEquals(data, guest.collect(sendRead(guest, level, 0, 0, 0, 8, 4, 1), data.length));
            assertEquals(INVALID_VALUE, guest.replyTo(sendRead(guest, level, 0, 0, 0, 9, 4, 1)).status());
            for (long number : new long[] {3, -1}) {
                assertEquals(INVALID_VALUE, guest.call(CudaOpcodes.cuMipmappedArrayGetLevel,
                    guest.newId(HandleKind.ARRAY), mipmap, number).status());
            }
            guest.send(CudaOpcodes.cuArrayDestroy, 0, level);
            assertEquals(INVALID_HANDLE, guest.synchronize(0));
            guest.send(CudaOpcodes.cuMipmappedArrayDestroy, 0, mipmap);
            assertEquals(INVALID_HANDLE, guest.replyTo(sendRead(guest, level, 0, 0, 0, 1, 1, 1)).status());
            rig.leave();
        }
    }

    private static Received texture(Guest guest, long array, long mipmap, int type, long address, long width,
        long height, long pitch) throws IOException {
        return guest.call(CudaOpcodes.hwsTextureCreate, out -> {
            out.fixed(288);
            out.i64(0, array);
            out.i64(8, mipmap);
            out.i32(16, type);
            out.i32(20, FLOAT);
            out.i32(24, 1);
            out.i64(32, address);
            out.i64(40, width);
            out.i64(48, height);
            out.i64(56, pitch);
        });
    }

    @Test
    void shouldMakeTexturesOnlyFromOwnObjects() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long array = array(guest, 32, 8, 0);
            long memory = guest.allocate(1024);
            long number = texture(guest, array, 0, 0, 0, 0, 0, 0).i64(0);
            long linear = texture(guest, 0, 0, 2, memory, 1024, 0, 0).i64(0);
            assertEquals(0, texture(guest, 0, 0, 3, memory, 100, 2, 512).status());
            assertEquals(INVALID_VALUE, texture(guest, 0, 0, 2, memory, 1025, 0, 0).status());
            assertEquals(INVALID_VALUE, texture(guest, 0, 0, 2, memory + 4096, 16, 0, 0).status());
            assertEquals(INVALID_VALUE, texture(guest, 0, 0, 2, memory, -1, 0, 0).status());
            assertEquals(INVALID_VALUE, texture(guest, 0, 0, 3, memory, 100, 3, 512).status());
            assertEquals(INVALID_VALUE, texture(guest, 0, 0, 3, memory, 1L << 62, 2, 512).status());
            assertEquals(INVALID_VALUE, texture(guest, 0, 0, 3, memory, 100, 1L << 62, 512).status());
            assertEquals(INVALID_VALUE, texture(guest, array, 0, 2, memory, 1024, 0, 0).status());
            assertEquals(INVALID_VALUE, texture(guest, 0, 0, 0, 0, 0, 0, 0).status());
            assertEquals(INVALID_VALUE, texture(guest, array, 0, 1, 0, 0, 0, 0).status());
            assertEquals(INVALID_VALUE, texture(guest, array, 0, 77, 0, 0, 0, 0).status());
            guest.send(CudaOpcodes.cuTexObjectDestroy, 0, number);
            assertEquals(0, guest.synchronize(0));
            guest.send(CudaOpcodes.cuTexObjectDestroy, 0, number);
            assertEquals(INVALID_VALUE, guest.synchronize(0));
            guest.send(CudaOpcodes.cuSurfObjectDestroy, 0, linear); // the number of a texture
            assertEquals(INVALID_VALUE, guest.synchronize(0));
            rig.leave();
        }
    }

    @Test
    void shouldMakeSurfaces() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long plain = array(guest, 32, 8, 0);
            long array = guest.newId(HandleKind.ARRAY);
            assertEquals(0, create(guest, array, 32, 8, 0, UINT8, 1, SURFACE));
            assertEquals(0, guest.call(CudaOpcodes.hwsSurfaceCreate, plain).status()); // CUDA accepts this too
            long number = guest.call(CudaOpcodes.hwsSurfaceCreate, array).i64(0);
            guest.send(CudaOpcodes.cuSurfObjectDestroy, 0, number);
            assertEquals(0, guest.synchronize(0));
            rig.leave();
        }
    }

    @Test
    void shouldEndSessionThatPassesOtherHandlesAsArrays() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long stream = guest.createStream();
            sendRead(guest, stream, 0, 0, 0, 1, 1, 1);
            String reason = guest.reasonOfLoss();
            assertTrue(reason.contains("handle must have been created"), reason);
            guest.close();
            assertTrue(rig.expect("ended").path("error").asBoolean());
            rig.join();
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldCopyThroughRegionAndGiveChunksBack() throws IOException {
        if (carrier != Carrier.SHM) {
            return; // no region over this carrier
        }
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long array = array(guest, 40, 6, 4);
            long heap = rig.region().geometry().heapOffset();
            byte[] data = Guest.random(64 * 8 * 3);
            rig.region().memory().asSlice(heap, data.length).copyFrom(MemorySegment.ofArray(data));
            guest.send(CudaOpcodes.hwsWriteArrayShared, Guest.CREDITED, array, 3, 1, 1, 20, 5, 3, 0, heap, 64, 512, 0);
            byte[] slice = guest.collect(sendRead(guest, array, 3, 3, 2, 20, 1, 1), 20);
            assertArrayEquals(Arrays.copyOfRange(data, 512 + 128, 512 + 148), slice);
            long chunk = rig.region().geometry().chunk(RegionPipe.SLOT, 1);
            rig.region().begin(1);
            guest.send(CudaOpcodes.hwsReadArrayShared, Guest.CREDITED, array, 3, 3, 2, 20, 1, 1, 0, chunk, 20, 20, 2);
            assertEquals(0, rig.region().await(1));
            assertArrayEquals(slice, rig.region().memory().asSlice(chunk, 20).toArray(ValueLayout.JAVA_BYTE));
            long[][] bad = {{41, 1, 1, 41, 41}, {20, 2, 2, 20, 41}, {20, 2, 1, 19, 38}, {20, 1, 5, 20, 20}};
            for (long[] box : bad) {
                rig.region().begin(1);
                guest.send(CudaOpcodes.hwsReadArrayShared, Guest.CREDITED, array, 0, 0, 0, box[0], box[1], box[2], 0,
                    chunk, box[3], box[4], 2);
                assertEquals(INVALID_VALUE, rig.region().await(1), () -> Arrays.toString(box));
                assertEquals(INVALID_VALUE, guest.synchronize(0));
            }
            rig.leave();
        }
    }

    @Test
    void shouldEndSessionThatLeavesItsRegion() throws IOException {
        if (carrier != Carrier.SHM) {
            return; // no region over this carrier
        }
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long array = array(guest, 40, 6, 4);
            long heap = rig.region().geometry().heapOffset();
            guest.send(CudaOpcodes.hwsWriteArrayShared, Guest.CREDITED, array, 0, 0, 0, 40, 2, 1, 0, heap,
                Long.MAX_VALUE / 2, 0, 0);
            String reason = guest.reasonOfLoss();
            assertTrue(reason.contains("copy through the region must lie"), reason);
        }
    }
}
