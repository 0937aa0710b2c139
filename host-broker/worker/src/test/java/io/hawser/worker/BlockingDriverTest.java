package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.CublasOpcodes;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.fixture.Rig;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests a driver that blocks the session thread, as NVIDIA's does, while a host function of the guest blocks a stream.
 * The session thread must not block, because it reads the guest's acknowledgement.
 */
@Timeout(300)
@ParameterizedClass
@EnumSource(Carrier.class)
class BlockingDriverTest {
    private static final int ENTRIES = 1024; // entries of a stream's queue, as in NVIDIA's driver
    private static final long CALLBACK = 77;
    private static final int NOT_READY = 600; // CUDA_ERROR_NOT_READY

    @Parameter
    private Carrier carrier;

    private static byte[] fill(long pointer, int words, int value) {
        return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putLong(pointer).putInt(words).putInt(value)
            .array();
    }

    private static Consumer<RecordWriter> words(long... fields) {
        return out -> {
            out.fixed(8 * fields.length);
            for (int i = 0; i < fields.length; i++) {
                out.i64(8L * i, fields[i]);
            }
        };
    }

    private Rig rig() throws IOException {
        Rig rig = Rig.withGuest(carrier);
        rig.gpu().blockLikeNvidia(ENTRIES);
        return rig;
    }

    /** Issues a host function and reads the worker's CALLBACK. */
    private static void holdStream(Guest guest, long stream) throws IOException {
        guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, CALLBACK);
        takeRequest(guest);
    }

    private static void takeRequest(Guest guest) throws IOException {
        Received request = guest.next();
        assertEquals(RecordLayout.CONTROL_CALLBACK, request.opcode());
        assertEquals(CALLBACK, request.i64(RecordLayout.CALLBACK_CALLBACK_ID_OFFSET));
    }

    private static void acknowledge(Guest guest) throws IOException {
        guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK);
    }

    /** Neither a host function nor a long copy may need a call that waits for the kernel. */
    @Test
    void shouldCallHostFunctionWhileAKernelOfAnotherStreamRuns() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long other = guest.createStream();
            guest.launch(guest.function(guest.loadImage("hold"), "hold"), 0, new byte[0]);
            holdStream(guest, other);
            acknowledge(guest);
            assertEquals(0, guest.synchronize(other));
            rig.gpu().release();
            rig.leave();
        }
    }

    @Test
    void shouldFreeWhenHostFunctionIsOver() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long held = guest.createStream();
            long memory = guest.allocate(4096);
            long module = guest.loadImage("fill");
            // Sent in one piece: the free becomes due while the host function has already been issued.
            ByteArrayOutputStream together = new ByteArrayOutputStream();
            together.write(guest.as(2).encode(Guest.MEM_FREE, 0, words(memory)));
            together.write(guest.encode(Guest.IMAGE_UNLOAD, 0, words(module)));
            together.write(guest.as(1).encode(Guest.HOST_FUNCTION, Guest.CREDITED, words(held, CALLBACK)));
            guest.sendRaw(together.toByteArray());
            takeRequest(guest);
            long other = guest.allocate(64); // served meanwhile
            assertEquals(0, guest.synchronize(0));
            acknowledge(guest);
            assertEquals(0, guest.synchronize(held));
            guest.send(Guest.MEM_FREE, 0, other);
            rig.leave();
        }
    }

    @Test
    void shouldAnswerCallThatWaitsForDeviceWhenHostFunctionIsOver() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long held = guest.createStream();
            holdStream(guest, held);
            byte[] image = "image fill".getBytes(StandardCharsets.US_ASCII);
            long module = guest.newId(HandleKind.MODULE);
            long load = guest.as(2).send(Guest.IMAGE_LOAD, Guest.REPLY, out -> Guest.image(out, module, 0, image));
            assertEquals(0, guest.as(1).synchronize(0), "another thread is served meanwhile");
            acknowledge(guest);
            Received reply = guest.replyTo(load);
            assertEquals(0, reply.status());
            guest.function(module, "fill");
            rig.leave();
        }
    }

    /** The first product of a kind loads a kernel's code. */
    @Test
    void shouldCallLibraryWhenHostFunctionIsOver() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long matrix = guest.allocate(64);
            long handle = guest.newId(HandleKind.CUBLAS);
            assertEquals(0, guest.call(CublasOpcodes.cublasCreate_v2, handle).status());
            holdStream(guest, guest.createStream());
            long product = guest.as(2).send(CublasOpcodes.cublasSgemm_v2, Guest.REPLY | Guest.CREDITED, out -> {
                out.fixed(192);
                out.i64(0, handle);
                for (int size : new int[] {64, 68, 72, 120, 136, 184}) {
                    out.i32(size, 1);
                }
                out.i32(84, Float.BYTES);
                out.i32(148, Float.BYTES);
                for (int address : new int[] {112, 128, 176}) {
                    out.i64(address, matrix);
                }
            });
            assertEquals(0, guest.as(1).synchronize(0), "another thread is served meanwhile");
            acknowledge(guest);
            assertEquals(0, guest.replyTo(product).status());
            rig.leave();
        }
    }

    @Test
    void shouldTakeAnyNumberOfCallsBehindHostFunction() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            int launches = 5000;
            long memory = guest.allocate(8L * launches);
            long fill = guest.function(guest.loadImage("fill"), "fill");
            holdStream(guest, 0);
            for (int i = 0; i < launches; i++) {
                guest.launch(fill, 0, fill(memory, launches - i, i)); // makes the order of execution visible
                if (i % 1000 == 999) {
                    guest.write(memory + 4L * launches, 0, new byte[20_000]); // a record with its own memory
                }
            }
            long waits = guest.as(2).send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, 0);
            guest.as(1);
            acknowledge(guest);
            assertEquals(0, guest.replyTo(waits).status());
            ByteBuffer expected = ByteBuffer.allocate(4 * launches).order(ByteOrder.LITTLE_ENDIAN);
            for (int i = 0; i < launches; i++) {
                expected.putInt(launches - 1 - i);
            }
            assertArrayEquals(expected.array(), guest.read(memory, 4 * launches, 0));
            rig.leave();
        }
    }

    @Test
    void shouldAnswerAnyNumberOfCallsThatIssueNothing() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long held = guest.createStream();
            holdStream(guest, held);
            for (int i = 0; i < 3000; i++) {
                assertEquals(NOT_READY, guest.call(CudaOpcodes.cuStreamQuery, held).status());
                assertEquals(0, guest.call(Guest.MEM_GET_INFO).status());
            }
            acknowledge(guest);
            assertEquals(0, guest.synchronize(held));
            rig.leave();
        }
    }

    @Test
    void shouldServeAnyNumberOfCallsWhoseWorkEnds() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            int launches = 5000;
            long held = guest.createStream();
            long other = guest.createStream();
            long memory = guest.allocate(4096);
            long fill = guest.function(guest.loadImage("fill"), "fill");
            holdStream(guest, held);
            for (int i = 0; i < 100; i++) {
                guest.launch(fill, held, fill(memory + 8, 1, i)); // work that does not end
            }
            for (int i = 0; i < launches; i++) {
                guest.launch(fill, other, fill(memory, 1, i));
            }
            assertEquals(0, guest.synchronize(other));
            for (int i = 0; i < launches; i++) {
                assertEquals(4, guest.read(memory, 4, other).length);
            }
            acknowledge(guest);
            assertEquals(0, guest.synchronize(held));
            rig.leave();
        }
    }

    @Test
    void shouldServeAnyNumberOfStreamsThatAreDestroyed() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long memory = guest.allocate(4096);
            long fill = guest.function(guest.loadImage("fill"), "fill");
            long held = guest.createStream();
            holdStream(guest, held);
            for (int i = 0; i < 1500; i++) {
                long stream = guest.createStream();
                guest.launch(fill, stream, fill(memory, 1, i));
                guest.send(CudaOpcodes.cuStreamDestroy_v2, 0, stream);
            }
            long last = guest.createStream();
            guest.launch(fill, last, fill(memory, 1, 7));
            assertEquals(0, guest.synchronize(last));
            acknowledge(guest);
            assertEquals(0, guest.synchronize(held));
            rig.leave();
        }
    }

    @Test
    void shouldLetHostFunctionsRunThatAnotherWaitsFor() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long memory = guest.allocate(64);
            long held = guest.createStream();
            long other = guest.createStream();
            holdStream(guest, held);
            guest.as(2).send(Guest.MEM_FREE, 0, memory); // waits for the host function
            guest.as(1);
            for (int i = 0; i < 200; i++) {
                guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, other, CALLBACK + 1);
                assertEquals(CALLBACK + 1, guest.next().i64(RecordLayout.CALLBACK_CALLBACK_ID_OFFSET));
                guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK + 1);
                assertEquals(0, guest.synchronize(other));
            }
            acknowledge(guest);
            assertEquals(0, guest.synchronize(held));
            rig.leave();
        }
    }

    @Test
    void shouldTakeAnyNumberOfHostFunctionsBehindHostFunction() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            int functions = 300;
            long memory = guest.allocate(64);
            long fill = guest.function(guest.loadImage("fill"), "fill");
            holdStream(guest, 0);
            for (int i = 1; i <= functions; i++) {
                guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, 0, CALLBACK + i);
                guest.launch(fill, 0, fill(memory, 1, i));
            }
            acknowledge(guest);
            for (int i = 1; i <= functions; i++) {
                assertEquals(CALLBACK + i, guest.next().i64(RecordLayout.CALLBACK_CALLBACK_ID_OFFSET));
                guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK + i);
            }
            assertEquals(0, guest.synchronize(0));
            rig.leave();
        }
    }

    @Test
    void shouldAnswerQueriesWhileCallsAreHeld() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long memory = guest.allocate(64);
            long fill = guest.function(guest.loadImage("fill"), "fill");
            long held = guest.createStream();
            long idle = guest.createStream();
            long recorded = guest.newId(HandleKind.EVENT);
            long other = guest.newId(HandleKind.EVENT);
            guest.send(CudaOpcodes.cuEventCreate, 0, recorded, 2);
            guest.send(CudaOpcodes.cuEventCreate, 0, other, 2);
            holdStream(guest, held);
            for (int i = 0; i < 2000; i++) { // more than are issued
                guest.launch(fill, held, fill(memory, 1, i));
            }
            guest.send(CudaOpcodes.cuEventRecordWithFlags, Guest.CREDITED, recorded, held, 0);
            guest.send(CudaOpcodes.cuStreamWaitEvent, Guest.CREDITED, held, other, 0);
            for (int i = 0; i < 3; i++) {
                assertEquals(NOT_READY, guest.call(CudaOpcodes.cuStreamQuery, held).status());
                assertEquals(NOT_READY, guest.call(CudaOpcodes.cuEventQuery, recorded).status());
                assertEquals(0, guest.call(CudaOpcodes.cuStreamQuery, idle).status());
                assertEquals(0, guest.call(CudaOpcodes.cuEventQuery, other).status());
                assertEquals(0, guest.synchronize(idle));
            }
            long waits = guest.as(2).send(CudaOpcodes.cuEventSynchronize, Guest.REPLY, recorded);
            guest.as(1);
            acknowledge(guest);
            assertEquals(0, guest.replyTo(waits).status());
            assertEquals(0, guest.synchronize(held));
            assertEquals(0, guest.call(CudaOpcodes.cuStreamQuery, held).status());
            rig.leave();
        }
    }

    @Test
    void shouldCopyLongDataToGuestBesideFrees() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            int bytes = 100 << 20; // more than the staging memory, so the stream waits for the guest to read
            long memory = guest.allocate(bytes);
            long other = guest.allocate(64);
            long read = guest.as(2).send(Guest.COPY_DTOH, Guest.REPLY, memory, bytes, 0);
            guest.as(1).send(Guest.MEM_FREE, 0, other);
            guest.collect(read, bytes);
            assertEquals(0, guest.synchronize(0));
            rig.leave();
        }
    }

    /** NVIDIA's driver calls one host function at a time: a read must not need one while the guest's waits. */
    @Test
    void shouldCopyLongDataToGuestInManyStreamsWhileHostFunctionWaits() throws IOException {
        try (Rig rig = rig()) {
            rig.gpu().callHostFunctionsInTurn();
            Guest guest = rig.guest();
            long held = guest.createStream();
            holdStream(guest, held);
            int streams = 40;
            int bytes = 3 << 20; // all together more than the staging memory
            byte[] written = Guest.random(bytes);
            long memory = guest.allocate(bytes);
            for (int at = 0; at < bytes; at += 1 << 20) {
                guest.write(memory + at, 0, Arrays.copyOfRange(written, at, at + (1 << 20)));
            }
            assertEquals(0, guest.synchronize(0));
            Map<Long, byte[]> copies = new HashMap<>(); // by the read's number
            for (int i = 0; i < streams; i++) {
                long read = guest.as(i + 1).send(Guest.COPY_DTOH, Guest.REPLY, memory, bytes, guest.createStream());
                copies.put(read, new byte[bytes]);
            }
            while (!copies.isEmpty()) {
                Received record = guest.next();
                if (record.opcode() < 0) {
                    assertEquals(0, record.status());
                    assertArrayEquals(written, copies.remove(record.fields().sequence()));
                } else {
                    Guest.place(record, copies.get(record.fields().sequence()));
                }
            }
            acknowledge(guest);
            assertEquals(0, guest.synchronize(held));
            rig.leave();
        }
    }

    /** The stream waits for the long copy. The short one must not stand in the queue that the long one needs. */
    @Test
    void shouldCopyLongDataToGuestBeforeShortDataOfTheSameStream() throws IOException {
        try (Rig rig = rig()) {
            rig.gpu().copyToHostInOrderOfIssue();
            Guest guest = rig.guest();
            int bytes = 100 << 20; // more than the staging memory
            long memory = guest.allocate(bytes);
            long stream = guest.createStream();
            long longRead = guest.as(1).send(Guest.COPY_DTOH, Guest.REPLY, memory, bytes, stream);
            long shortRead = guest.as(2).send(Guest.COPY_DTOH, Guest.REPLY, memory, 64, stream);
            guest.collect(longRead, bytes);
            guest.collect(shortRead, 64);
            assertEquals(0, guest.synchronize(stream));
            rig.leave();
        }
    }

    @Test
    void shouldEndWithHostFunctionAndHeldCalls() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long memory = guest.allocate(64);
            long fill = guest.function(guest.loadImage("fill"), "fill");
            holdStream(guest, 0);
            guest.as(2).send(Guest.IMAGE_LOAD, Guest.REPLY, out -> Guest.image(out, guest.newId(HandleKind.MODULE), 0,
                "image fill".getBytes(StandardCharsets.US_ASCII)));
            for (int i = 0; i < 2000; i++) {
                guest.launch(fill, 0, fill(memory, 16, i));
            }
            guest.write(memory, 0, new byte[64]);
            guest.kill();
            rig.expect("ended");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldEndGuestThatSendsWithoutEndBehindHostFunction() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            holdStream(guest, 0);
            byte[] image = new byte[60_000];
            byte[] loads = new byte[0];
            for (int i = 0; i < 64 + (72 << 20) / image.length; i++) {
                long module = guest.newId(HandleKind.MODULE);
                loads = guest.encode(Guest.IMAGE_LOAD, Guest.REPLY, out -> Guest.image(out, module, 0, image));
                try {
                    guest.sendRaw(loads);
                } catch (IOException e) {
                    break; // the session has ended meanwhile
                }
            }
            assertTrue(guest.reasonOfLoss().contains("behind a waiting host function"));
        }
    }
}
