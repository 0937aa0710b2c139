package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A hostile guest gets LOST with a reason, the statistics count a rejected record, and none of its resources remain.
 */
@Timeout(300)
@ParameterizedClass
@EnumSource(Carrier.class)
class HostileGuestTest {
    @Parameter
    private Carrier carrier;

    @FunctionalInterface
    private interface Attack {
        void on(Guest guest) throws IOException;
    }

    /** Runs an attack on a session, and checks that the session ends with a reason. */
    private void refuse(String reason, Attack attack) throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            attack.on(rig.guest());
            String told = rig.guest().reasonOfLoss();
            assertTrue(told.contains(reason), () -> "expected: " + reason + " told: " + told);
            rig.guest().close();
            assertTrue(rig.expect("ended").path("error").asBoolean());
            assertEquals(1, rig.lastStats().path("refusedRecords").asLong());
            assertTrue(!rig.join(), "a refused guest is an error");
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    private static byte[] patched(byte[] record, int offset, int value) {
        ByteBuffer.wrap(record).order(ByteOrder.LITTLE_ENDIAN).putInt(offset, value);
        return record;
    }

    private static byte[] allocation(Guest guest) {
        return guest.encode(Guest.MEM_ALLOC, Guest.REPLY, out -> {
            out.fixed(8);
            out.i64(0, 64);
        });
    }

    @Test
    void shouldRefuseEveryImpossibleLength() throws IOException {
        int[] lengths = {0, -1, 8, 24, 31, 33, 36, RecordLayout.MAX_RECORD_BYTES + 8, Integer.MAX_VALUE,
            Integer.MIN_VALUE};
        for (int length : lengths) {
            refuse("length must be a multiple of 8", guest -> guest.sendRaw(patched(allocation(guest), 0, length)));
        }
    }

    @Test
    void shouldRefuseSequenceThatIsNotTheNext() throws IOException {
        refuse("sequence must be the next", guest -> guest.sendRaw(patched(allocation(guest), 8, 99)));
        refuse("sequence must be the next", guest -> {
            byte[] record = allocation(guest);
            guest.sendRaw(record);
            guest.sendRaw(record);
        });
    }

    @Test
    void shouldRefuseUnknownFlagsThreadsAndReservedBits() throws IOException {
        refuse("unknown flags", guest -> guest.sendRaw(patched(allocation(guest), 24, 4)));
        refuse("unknown flags", guest -> guest.sendRaw(patched(allocation(guest), 28, 1)));
        refuse("thread's number", guest -> guest.sendRaw(patched(allocation(guest), 16, -5)));
        refuse("thread's number", guest -> guest.sendRaw(patched(allocation(guest), 16, (1 << 20) + 1)));
    }

    @Test
    void shouldRefuseOpcodeWithoutDescription() throws IOException {
        int[] opcodes = {0x1FFFF, 0xF0001, 0x7FFF0001, RecordLayout.CONTROL_HELLO, RecordLayout.CONTROL_WELCOME,
            RecordLayout.CONTROL_LOST, Guest.MEM_ALLOC | RecordLayout.REPLY_BIT, 0};
        for (int opcode : opcodes) {
            refuse("opcode must be",
                guest -> guest.sendRaw(patched(allocation(guest), 4, opcode)));
        }
    }

    @Test
    void shouldRefuseUnknownContext() throws IOException {
        refuse("context must have been created", guest -> guest.sendRaw(patched(allocation(guest), 20, 12345)));
    }

    @Test
    void shouldRefuseHandlesThatWereNeverCreated() throws IOException {
        refuse("handle must have been created",
            guest -> guest.send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, 4L << 40 | 77));
        refuse("handle must have been created", guest -> {
            long stream = guest.createStream();
            guest.send(Guest.IMAGE_UNLOAD, 0, stream); // a stream's id instead of a module's
        });
        refuse("handle must have been created", guest -> guest.send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, 3));
        refuse("handle must have been created", guest -> guest.send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, -1));
    }

    @Test
    void shouldRefuseNewHandleWithIdInUse() throws IOException {
        refuse("that is not in use", guest -> {
            long stream = guest.createStream();
            guest.send(Guest.STREAM_CREATE, 0, stream, 0);
        });
        refuse("that is not in use", guest -> guest.send(Guest.STREAM_CREATE, 0, 5L << 40 | 1, 0));
    }

    @Test
    void shouldFailCallWithDestroyedHandle() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long first = guest.loadImage("fill");
            guest.loadImage("fill");
            guest.send(Guest.IMAGE_UNLOAD, 0, first);
            assertEquals(400, guest.call(Guest.FUNCTION_GET, out -> {
                out.fixed(24);
                out.i64(0, first);
                out.i64(16, guest.newId(HandleKind.FUNCTION));
                out.string(8, "fill");
            }).status());
        }
    }

    @Test
    void shouldFailCallWithHandleWhoseCreationHasFailed() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long event = guest.newId(HandleKind.EVENT);
            guest.send(CudaOpcodes.cuEventCreate, 0, event, 0x40); // not a flag of CUDA
            assertEquals(1, guest.call(Guest.CTX_SYNCHRONIZE).status(), "the error of its creation, deferred");
            assertEquals(400, guest.call(CudaOpcodes.cuEventQuery, event).status());
        }
    }

    @Test
    void shouldRefuseOverdraftOfCredit() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(1 << 20);
            guest.launch(guest.function(guest.loadImage("hold"), "hold"), 0, new byte[0]);
            try {
                for (int i = 0; i < 33; i++) {
                    guest.write(memory, 0, new byte[1 << 20]);
                }
            } catch (IOException e) {
                // The worker's ring is full of records that it did not read.
                assertEquals("the worker has ended", e.getMessage());
            }
            assertTrue(guest.reasonOfLoss().contains("keep to its credit"));
            rig.expect("ended"); // although the kernel still runs
            assertEquals(1, rig.lastStats().path("refusedRecords").asLong());
        }
    }

    @Test
    void shouldRefuseWaitingWorkWithoutCredit() throws IOException {
        refuse("credit flag must be", guest -> {
            long memory = guest.allocate(64);
            guest.send(Guest.COPY_HTOD, 0, out -> Guest.write(out, memory, 0, new byte[64]));
        });
        refuse("credit flag must be", guest -> guest.send(Guest.HOST_FUNCTION, 0, 0, 1));
    }

    @Test
    void shouldRefuseUnrequestedAcknowledgement() throws IOException {
        refuse("must answer a CALLBACK", guest -> guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, 5));
    }

    @Test
    void shouldRefuseRecordTruncatedAtEveryLength() throws IOException {
        try (Rig template = Rig.withGuest(carrier)) {
            byte[] whole = template.guest().encode(Guest.IMAGE_LOAD, Guest.REPLY,
                out -> Guest.image(out, 2L << 40 | 9, 0, "image fill".getBytes()));
            for (int length = RecordLayout.HEADER_BYTES; length < whole.length; length += 8) {
                byte[] cut = patched(Arrays.copyOf(whole, length), 0, length);
                refuse("hwsImageLoad:", guest -> guest.sendRaw(patched(cut, 20, 1)));
            }
            byte[] longer = patched(Arrays.copyOf(whole, whole.length + 8), 0, whole.length + 8);
            refuse("hwsImageLoad:", guest -> guest.sendRaw(patched(longer, 20, 1)));
        }
    }

    @Test
    void shouldRefuseControlRecordsThatBreakTheirRules() throws IOException {
        refuse("malformed", guest -> guest.send(RecordLayout.CONTROL_STAGE, Guest.REPLY, 1, 2));
        refuse("malformed", guest -> guest.send(RecordLayout.CONTROL_STAGE_DATA, Guest.CREDITED, 1));
        refuse("malformed", guest -> guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0));
        refuse("STAGE must name", guest -> guest.send(RecordLayout.CONTROL_STAGE, Guest.REPLY, 0, 8, 0, 0, 0, 0));
        refuse("must continue a blob", guest -> guest.send(RecordLayout.CONTROL_STAGE_DATA, Guest.CREDITED, out -> {
            out.fixed(RecordLayout.STAGE_DATA_FIXED_BYTES);
            out.buffer(RecordLayout.STAGE_DATA_BYTES_OFFSET, java.lang.foreign.MemorySegment.ofArray(new byte[8]));
        }));
    }

    @Test
    void shouldEndSessionOfGuestThatLeavesInsideRecord() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            byte[] record = rig.guest().encode(Guest.COPY_HTOD, Guest.CREDITED,
                out -> Guest.write(out, 0, 0, new byte[1 << 20]));
            rig.guest().sendRaw(Arrays.copyOf(record, 500_000));
            rig.guest().close();
            rig.expect("ended");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldNotDisturbAnotherSession() throws IOException {
        try (Rig other = Rig.withGuest(carrier)) {
            long memory = other.guest().allocate(64);
            refuse("sequence must be the next", guest -> guest.sendRaw(patched(allocation(guest), 8, 99)));
            assertEquals(64, other.guest().read(memory, 64, 0).length);
        }
    }

    /** Sends mutated valid traffic: the session ends or continues, and leaves no resources. */
    @Test
    void shouldSurviveMutatedTraffic() throws IOException {
        for (int seed = 0; seed < 150; seed++) {
            Random random = new Random(seed);
            try (Rig rig = Rig.withGuest(carrier, 1 << 20)) {
                Guest guest = rig.guest();
                long module = guest.loadImage("fill print");
                long fill = guest.function(module, "fill");
                long stream = guest.createStream();
                long memory = guest.allocate(4096);
                try {
                    for (int i = 0; i < 20; i++) {
                        byte[] record = honest(guest, random, fill, stream, memory);
                        for (int flips = random.nextInt(4); flips > 0; flips--) {
                            // Other tests cover length and sequence; changing them here would end every run early.
                            int at = random.nextInt(10) == 0 ? random.nextInt(record.length)
                                : 16 + random.nextInt(record.length - 16);
                            record[at] = (byte) (random.nextBoolean() ? random.nextInt() : record[at] ^ 1 << at % 8);
                        }
                        guest.sendRaw(record);
                    }
                } catch (IOException e) {
                    assertTrue(e.getMessage() != null, "the session has ended while we were sending");
                }
                guest.kill();
                rig.expect("ended");
                rig.join();
                assertEquals("", rig.gpu().leftAtClose(), "seed=" + seed);
            }
        }
    }

    private static byte[] honest(Guest guest, Random random, long fill, long stream, long memory) {
        return switch (random.nextInt(9)) {
            case 0 -> guest.encode(Guest.COPY_HTOD, Guest.CREDITED,
                out -> Guest.write(out, memory, stream, new byte[random.nextInt(4096)]));
            case 1 -> guest.encode(Guest.COPY_DTOH, Guest.REPLY, out -> words(out, memory, 4096, stream));
            case 2 -> guest.encode(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, out -> words(out, stream));
            case 3 -> guest.encode(Guest.MEM_ALLOC, Guest.REPLY, out -> words(out, random.nextInt(1 << 16)));
            case 4 -> guest.encode(Guest.MEM_FREE, 0, out -> words(out, memory));
            case 5 -> guest.encode(Guest.IMAGE_LOAD, Guest.REPLY, out -> Guest.image(out,
                guest.newId(HandleKind.MODULE), 0, "image fill".getBytes()));
            case 6 -> guest.encode(Guest.READ_BOX, Guest.REPLY, out -> words(out, memory, 64, 8, 1, 1, 1, 10, 3, 2,
                stream));
            case 7 -> guest.encode(RecordLayout.CONTROL_STAGE, Guest.REPLY,
                out -> words(out, random.nextInt(5), 64, 0, 0, 0, 0));
            default -> guest.encode(Guest.LAUNCH, Guest.CREDITED, out -> {
                out.fixed(64);
                out.i64(0, fill);
                out.i64(8, stream);
                out.i32(16, 1);
                out.i32(28, 1);
                // No parameters: with mutated ones, a kernel would write to arbitrary addresses.
                out.buffer(52, java.lang.foreign.MemorySegment.ofArray(new byte[0]));
                out.buffer(60, java.lang.foreign.MemorySegment.ofArray(new byte[0]));
            });
        };
    }

    private static void words(io.hawser.shm.wire.RecordWriter out, long... fields) {
        out.fixed(8 * fields.length);
        for (int i = 0; i < fields.length; i++) {
            out.i64(8L * i, fields[i]);
        }
    }
}
