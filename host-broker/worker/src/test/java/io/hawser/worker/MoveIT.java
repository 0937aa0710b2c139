package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.fixture.StripePeer;
import io.hawser.worker.fixture.WorkerPeer;
import io.hawser.worker.fixture.WorkerProcess;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Sessions that move on the software GPU. The target is a process of its own, because both workers use the same
 * addresses.
 */
@Timeout(120)
class MoveIT extends MovedGuest {
    private Rig first;
    private Rig mover;
    private WorkerPeer source;
    private WorkerProcess target;
    private WorkerProcess second;
    private boolean isShared;

    /** Starts the workers, and a guest of the source with a slab, a stream and a kernel. */
    private void start(boolean overRegion) throws IOException {
        isShared = overRegion;
        first = rig(isShared ? Carrier.SHM : Carrier.TCP, 1);
        source = first;
        target = process();
        mover = rig(Carrier.TCP, 2);
        mover.tell("{\"type\":\"mover\"}", -1);
        first.assign(0);
        begin(first.guest(), PLAIN);
    }

    private static int connect(WorkerPeer to, String json) throws IOException {
        int[] pair = Rig.socketPair();
        to.tell(json, pair[0]);
        return pair[1];
    }

    private static String text(byte[] json) {
        return new String(json, StandardCharsets.UTF_8);
    }

    /** Stops the source; returns its answer. */
    private JsonNode leave() throws IOException {
        source.tell("{\"type\":\"moveout\"}", connect(mover, "{\"type\":\"moveside\",\"pair\":1,\"source\":true}"));
        return source.expect("moveready");
    }

    /** Makes the session at the target; returns its answer. */
    private JsonNode arrive(JsonNode ready) throws IOException {
        assertEquals("", ready.path("reason").asText());
        target.tell("{\"type\":\"movein\"}", source.descriptors().receive());
        target.tell("{\"type\":\"movelink\"}", connect(mover, "{\"type\":\"moveside\",\"pair\":1,\"source\":false}"));
        if (ready.path("socket").asBoolean()) {
            target.tell(text(Rig.assignment(0)), source.descriptors().receive());
        } else {
            target.tell(text(Rig.assignment(0, Rig.place(first.region()))),
                Descriptors.reopen(first.region().descriptor()));
        }
        for (int i = ready.path("stripes").asInt(); i > 0; i--) {
            target.tell("{\"type\":\"stripe\"}", source.descriptors().receive());
        }
        return target.expect("movedin");
    }

    private void end(boolean isMoved) throws IOException {
        if (isMoved && source == first) {
            first.moved();
        }
        source.tell("{\"type\":\"moveend\",\"moved\":" + isMoved + "}", -1);
        if (isMoved) {
            source.expect("ended");
            target.tell("{\"type\":\"moveend\",\"moved\":true}", -1);
        }
    }

    @AfterEach
    void close() throws IOException {
        if (first != null) {
            first.close();
        }
        mover.close();
        for (WorkerProcess worker : Arrays.asList(target, second)) {
            if (worker != null) {
                worker.close();
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldGoOnAtTheTarget(boolean overRegion) throws IOException {
        start(overRegion);
        byte[] data = Guest.random(4096);
        guest.write(base + 8 * PAGE + 512, 0, data);
        steps();
        JsonNode moved = arrive(leave());
        assertEquals("", moved.path("reason").asText());
        end(true);
        steps();
        assertEquals(expected(2 * STEPS), word());
        assertArrayEquals(data, guest.read(base + 8 * PAGE + 512, data.length, 0));
        long second = guest.createStream();
        assertEquals(0, guest.synchronize(second));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldServeRecordsThatHaveWaited(boolean overRegion) throws IOException {
        start(overRegion);
        steps();
        JsonNode ready = leave();
        steps();
        long request = guest.send(CudaOpcodes.cuStreamSynchronize, Guest.REPLY, stream);
        JsonNode moved = arrive(ready);
        assertEquals("", moved.path("reason").asText());
        end(true);
        assertEquals(0, guest.replyTo(request).status());
        assertEquals(expected(2 * STEPS), word());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldGoOnAtTheSource(boolean overRegion) throws IOException {
        start(overRegion);
        steps();
        JsonNode ready = leave();
        steps();
        assertEquals("", arrive(ready).path("reason").asText());
        target.close();
        target = null;
        end(false);
        assertEquals(expected(2 * STEPS), word());
    }

    @Test
    void shouldMoveTwice() throws IOException {
        start(false);
        steps();
        assertEquals("", arrive(leave()).path("reason").asText());
        end(true);
        steps();
        guest.call(Guest.CTX_SYNCHRONIZE);
        second = target;
        source = second;
        target = process();
        assertEquals("", arrive(leave()).path("reason").asText());
        end(true);
        steps();
        assertEquals(expected(3 * STEPS), word());
    }

    /** The source is a process as well, so its first device lies where that of the target does. */
    @Test
    void shouldMoveVariables() throws IOException {
        second = process();
        source = second;
        target = process();
        mover = rig(Carrier.TCP, 2);
        mover.tell("{\"type\":\"mover\"}", -1);
        try (Rig.Connection connection = Rig.Connection.open()) {
            second.pass(text(Rig.assignment(0)), connection.accepted());
            begin(new Guest(connection.client()), COUNTING);
        }
        steps();
        assertEquals("", arrive(leave()).path("reason").asText());
        end(true);
        steps();
        assertEquals(expected(2 * STEPS, true), word());
        guest.close();
    }

    @Test
    void shouldKeepTheTimesOfEvents() throws IOException {
        start(false);
        long first = event();
        long second = event();
        record(first);
        steps();
        record(second);
        long never = event();
        assertEquals(0, guest.synchronize(stream));
        float before = elapsed(first, second);
        assertEquals("", arrive(leave()).path("reason").asText());
        end(true);
        assertEquals(before, elapsed(first, second), 0.01f);
        record(never);
        assertEquals(0, guest.synchronize(stream));
        assertTrue(elapsed(second, never) > 0);
        assertEquals(-elapsed(second, never), elapsed(never, second), 0.01f);
        record(first);
        assertEquals(0, guest.synchronize(stream));
        assertTrue(elapsed(never, first) >= 0 && elapsed(never, first) < elapsed(second, first));
    }

    private long event() throws IOException {
        long id = guest.newId(HandleKind.EVENT);
        guest.send(CudaOpcodes.cuEventCreate, 0, out -> {
            out.fixed(16);
            out.i64(0, id);
        });
        return id;
    }

    private void record(long event) throws IOException {
        guest.send(CudaOpcodes.cuEventRecordWithFlags, Guest.CREDITED, event, stream, 0);
    }

    private float elapsed(long start, long end) throws IOException {
        Guest.Received reply = guest.call(CudaOpcodes.cuEventElapsedTime_v2, start, end);
        assertEquals(0, reply.status());
        return Float.intBitsToFloat(reply.i32(0));
    }

    /** Uses both kinds of further connections. */
    private void copy(StripePeer fills, int chunk, StripePeer reads) throws IOException {
        byte[] data = Guest.random(70_001);
        fills.fill(chunk, data);
        take(fills, chunk, data);
        fills.fill(chunk + 1, new byte[8]);
        guest.send(CudaOpcodes.hwsCopyDtoHShared, Guest.CREDITED, base + PAGE, 0, data.length, stream, chunk + 1);
        assertArrayEquals(data, fills.done(chunk + 1, 0));
        byte[] all = new byte[(int) (2 * PAGE)];
        int striped = 0;
        while (striped == 0) { // until the worker has begun to send by the connection
            long copy = guest.send(Guest.COPY_DTOH, Guest.REPLY, base, all.length, stream);
            for (Guest.Received next = guest.next(); next.fields().sequence() != copy || next.opcode() >= 0;
                next = guest.next()) {
                if (next.opcode() == RecordLayout.CONTROL_DATA) {
                    Guest.place(next, all);
                }
                long bytes = next.opcode() == RecordLayout.CONTROL_AWAIT
                    ? next.i64(RecordLayout.AWAIT_BYTES_OFFSET) : 0;
                for (striped += (int) bytes; bytes > 0;) {
                    StripePeer.Piece piece = reads.piece();
                    piece.placeIn(all);
                    bytes -= piece.bytes().length;
                }
            }
        }
        assertArrayEquals(data, Arrays.copyOfRange(all, (int) PAGE, (int) PAGE + data.length));
    }

    /** Copies a chunk that has been filled before. */
    private void take(StripePeer fills, int chunk, byte[] data) throws IOException {
        guest.send(CudaOpcodes.hwsCopyHtoDShared, Guest.CREDITED, base + PAGE, 0, data.length, stream, chunk);
        assertEquals(0, fills.done(chunk, 0).length);
        assertArrayEquals(data, guest.read(base + PAGE, data.length, stream));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldGoOnWithFurtherConnections(boolean isMoved) throws IOException {
        start(false);
        try (StripePeer fills = new StripePeer(first); StripePeer reads = new StripePeer(first)) {
            int chunk = fills.joined();
            reads.sendRead(reads.joined());
            copy(fills, chunk, reads);
            byte[] waiting = Guest.random(12_345);
            fills.fill(chunk + 2, waiting); // its call comes after the move
            JsonNode ready = leave();
            assertEquals(2, ready.path("stripes").asInt());
            fills.send(RecordLayout.CONTROL_FILL, chunk + 3, waiting.length, waiting);
            assertEquals("", arrive(ready).path("reason").asText());
            if (!isMoved) {
                target.close();
                target = null;
            }
            end(isMoved);
            assertEquals(chunk + 3, fills.next(RecordLayout.CONTROL_FILLED).getInt(RecordLayout.FILLED_CHUNK_OFFSET));
            take(fills, chunk + 2, waiting);
            take(fills, chunk + 3, waiting);
            copy(fills, chunk, reads);
        }
    }

    @Test
    void shouldStayWhileAPartOfACopyIsOnItsWay() throws IOException {
        start(false);
        try (StripePeer fills = new StripePeer(first)) {
            int chunk = fills.joined();
            fills.begin(chunk, 8);
            byte[] data = Guest.random(8);
            JsonNode ready = leave();
            while (ready.path("reason").asText().isEmpty()) { // the worker has stopped before the header
                for (int passed = 0; passed < 3; passed++) {
                    Descriptors.close(source.descriptors().receive());
                }
                end(false);
                ready = leave();
            }
            assertEquals("its guest is sending a part of a copy", ready.path("reason").asText());
            fills.sendRaw(data);
            fills.next(RecordLayout.CONTROL_FILLED);
            take(fills, chunk, data);
        }
    }

    @Test
    void shouldRefuseWhatCannotMove() throws IOException {
        start(false);
        guest.send(CudaOpcodes.hwsGraphCreate, 0, guest.newId(HandleKind.GRAPH), 0);
        guest.call(Guest.CTX_SYNCHRONIZE); // the worker has the record
        JsonNode ready = leave();
        assertEquals("it has an object that cannot move: graph", ready.path("reason").asText());
        steps();
        assertEquals(expected(STEPS), word());
    }
}
