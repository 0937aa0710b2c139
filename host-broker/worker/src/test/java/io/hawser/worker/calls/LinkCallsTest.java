package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class LinkCallsTest {
    private static final int PTX = 1;
    private static final int COMPLETE_FIXED_BYTES = 24;
    private static final int COMPLETE_LOG_OFFSET = 16;

    private static MemorySegment bytes(String text) {
        return MemorySegment.ofArray(text.getBytes(StandardCharsets.UTF_8));
    }

    private static MemorySegment options(int... numbers) {
        ByteBuffer buffer = ByteBuffer.allocate(16 * numbers.length).order(ByteOrder.LITTLE_ENDIAN);
        for (int number : numbers) {
            buffer.putInt(number).putInt(0).putLong(100 + number);
        }
        return MemorySegment.ofArray(buffer.array());
    }

    private static long sendAdd(Guest guest, long link, int type, String text, MemorySegment options)
        throws IOException {
        return guest.send(CudaOpcodes.hwsLinkAdd, Guest.REPLY, out -> add(out, link, 0, type, options, bytes(text)));
    }

    private static void add(RecordWriter out, long link, long blob, int type, MemorySegment options,
        MemorySegment data) {
        out.fixed(40);
        out.i64(0, link);
        out.i64(8, blob);
        out.i32(16, type);
        out.string(20, "input");
        out.i32(24, (int) options.byteSize());
        out.buffer(28, options);
        out.i32(32, data == null ? 0 : (int) data.byteSize());
        out.buffer(36, data);
    }

    private static void complete(RecordWriter out, long link, MemorySegment options) {
        out.fixed(24);
        out.i64(0, link);
        out.i32(8, (int) options.byteSize());
        out.buffer(12, options);
        out.i32(16, 1000);
    }

    private static void read(RecordWriter out, long link, long offset, int count) {
        out.fixed(24);
        out.i64(0, link);
        out.i64(8, offset);
        out.i32(16, count);
    }

    private static int add(Guest guest, long link, String text, int... numbers) throws IOException {
        return guest.replyTo(sendAdd(guest, link, PTX, text, options(numbers))).status();
    }

    private static Guest.Received complete(Guest guest, long link, int... numbers) throws IOException {
        MemorySegment options = options(numbers);
        return guest.call(CudaOpcodes.hwsLinkComplete, out -> complete(out, link, options));
    }

    private static byte[] read(Guest guest, long link, long offset, int count) throws IOException {
        return guest.call(CudaOpcodes.hwsLinkRead, out -> read(out, link, offset, count)).buffer(8, 0);
    }

    @Test
    void shouldLinkInOrderWithOptions() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            assertEquals(0, add(guest, 5, "one", 0, 7));
            assertEquals(0, add(guest, 6, "other link"));
            assertEquals(0, add(guest, 5, "two"));
            Guest.Received completed = complete(guest, 5, 8);
            byte[] expected = "one12two108=108".getBytes(StandardCharsets.UTF_8);
            assertEquals(0, completed.i32(0));
            assertEquals(expected.length, completed.i64(8));
            assertArrayEquals(expected, read(guest, 5, 0, 1000));
            assertArrayEquals("two".getBytes(StandardCharsets.UTF_8), read(guest, 5, 5, 3));
            assertEquals(0, read(guest, 5, expected.length, 10).length);
            guest.send(CudaOpcodes.hwsLinkEnd, 0, 5);
            guest.send(CudaOpcodes.hwsLinkEnd, 0, 6);
            assertEquals(0, add(guest, 5, "an id may be used again"));
        }
    }

    @Test
    void shouldReportWhyLinkFailed() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            assertEquals(0, add(guest, 5, "bad"));
            Guest.Received completed = complete(guest, 5);
            assertEquals(0, completed.status(), "so that the log arrives");
            assertEquals(CUresult.CUDA_ERROR_INVALID_PTX, completed.i32(0));
            assertEquals(0, completed.i64(8));
            assertEquals("input is bad", new String(completed.buffer(COMPLETE_FIXED_BYTES, COMPLETE_LOG_OFFSET),
                StandardCharsets.UTF_8));
            guest.send(CudaOpcodes.hwsLinkEnd, 0, 5);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        }
    }

    @Test
    void shouldBoundLinks() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            for (int link = 1; link <= 64; link++) {
                assertEquals(0, add(guest, link, "x"));
            }
            assertEquals(CudaResult.OUT_OF_MEMORY, add(guest, 65, "x"));
            guest.send(CudaOpcodes.hwsLinkEnd, 0, 1);
            assertEquals(0, add(guest, 65, "x"));
        }
    }

    @FunctionalInterface
    private interface Attack {
        void on(Guest guest) throws IOException;
    }

    private static void refuse(String reason, Attack attack) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            attack.on(rig.guest());
            String told = rig.guest().reasonOfLoss();
            assertTrue(told.contains(reason), () -> "expected: " + reason + " told: " + told);
        }
    }

    @Test
    void shouldEndSessionOfInvalidLinkCall() throws IOException {
        refuse("an option's value must be a number", guest -> sendAdd(guest, 5, PTX, "x", options(3)));
        refuse("options must be complete", guest -> sendAdd(guest, 5, PTX, "x", MemorySegment.ofArray(new byte[15])));
        refuse("a type of CUDA", guest -> sendAdd(guest, 5, 6, "x", options()));
        refuse("must have been staged", guest -> guest.send(CudaOpcodes.hwsLinkAdd, Guest.REPLY,
            out -> add(out, 5, 77, PTX, options(), null)));
        refuse("must have inputs and be completed once", guest -> guest.send(CudaOpcodes.hwsLinkComplete, Guest.REPLY,
            out -> complete(out, 5, options())));
        refuse("must be complete and be read", guest -> {
            add(guest, 5, "x");
            guest.send(CudaOpcodes.hwsLinkRead, Guest.REPLY, out -> read(out, 5, 0, 1));
        });
        refuse("inside its image", guest -> {
            add(guest, 5, "x");
            complete(guest, 5);
            guest.send(CudaOpcodes.hwsLinkRead, Guest.REPLY, out -> read(out, 5, 100, 1));
        });
        refuse("inside its image", guest -> {
            add(guest, 5, "x");
            complete(guest, 5);
            guest.send(CudaOpcodes.hwsLinkRead, Guest.REPLY, out -> read(out, 5, -1, 1));
        });
        refuse("must get no more inputs", guest -> {
            add(guest, 5, "x");
            complete(guest, 5);
            sendAdd(guest, 5, PTX, "y", options());
        });
        refuse("a link that ends", guest -> guest.send(CudaOpcodes.hwsLinkEnd, 0, 5));
    }
}
