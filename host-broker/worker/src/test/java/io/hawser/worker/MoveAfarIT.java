package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.fixture.StateBuilder;
import io.hawser.worker.fixture.WorkerProcess;
import io.hawser.worker.move.SessionStream;
import io.hawser.worker.move.StateWriter;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Sessions that move to a worker of another broker: the guest connects anew, and all bytes go by a connection. */
@Timeout(120)
class MoveAfarIT extends MovedGuest {
    private static final String ADDRESS = "gpu2.example:7654";
    private static final int LARGE_PAGES = (int) (2 * SessionStream.CHUNK_BYTES / PAGE) + 1;
    private static final int GUEST_LIMIT_S = 10;

    private Rig first;
    private WorkerProcess target;
    private WorkerProcess second;
    private Rig.Connection fresh; // of the guest to the target

    private void start(boolean follows) throws IOException {
        first = rig(Carrier.TCP, 1);
        try (Rig.Connection connection = Rig.Connection.open()) {
            first.pass(new String(Rig.assignment(0, ",\"mayLeave\":true"), StandardCharsets.UTF_8),
                connection.accepted());
            guest = new Guest(connection.client());
        }
        Guest.Received welcome = guest.next();
        assertEquals(RecordLayout.FLAG_MAY_LEAVE, welcome.status());
        if (follows) {
            guest.send(RecordLayout.CONTROL_FOLLOWS, 0);
        }
        open(PLAIN);
        target = process();
        fresh = Rig.Connection.open();
    }

    @AfterEach
    void close() throws IOException {
        first.close();
        fresh.close();
        for (WorkerProcess worker : new WorkerProcess[] {target, second}) {
            if (worker != null) {
                worker.close();
            }
        }
    }

    /** Orders the session out; returns the target's end of the connection. */
    private int leave() throws IOException {
        int[] pair = Rig.socketPair();
        first.tell("{\"type\":\"moveout\",\"address\":\"" + ADDRESS + "\"}", pair[0]);
        return pair[1];
    }

    private void receiveLeave() throws IOException {
        Guest.Received leave = guest.next();
        assertEquals(RecordLayout.CONTROL_LEAVE, leave.opcode());
        assertEquals(ADDRESS,
            new String(leave.buffer(RecordLayout.LEAVE_FIXED_BYTES, RecordLayout.LEAVE_ADDRESS_OFFSET),
                StandardCharsets.US_ASCII));
    }

    private void left(String reason) throws IOException {
        guest.send(RecordLayout.CONTROL_LEFT, 0, out -> {
            out.fixed(RecordLayout.LEFT_FIXED_BYTES);
            out.string(RecordLayout.LEFT_REASON_OFFSET, reason);
        });
    }

    /** Gives the target the session; returns its answer. */
    private JsonNode arrive(WorkerProcess to, int connection) throws IOException {
        to.tell("{\"type\":\"movestream\"}", connection);
        to.pass(new String(Rig.assignment(0, ",\"mayLeave\":true"), StandardCharsets.UTF_8), fresh.accepted());
        return to.expect("movedin");
    }

    private void goOnAt(WorkerProcess to, Socket socket) throws IOException {
        to.tell("{\"type\":\"moveend\",\"moved\":true}", -1);
        assertNull(guest.next(), "the old connection must end");
        guest.resume(socket);
        assertEquals(RecordLayout.CONTROL_RESUMED, guest.next().opcode());
    }

    @Test
    void shouldGoOnAtTheOtherBroker() throws IOException {
        start(true);
        // Longer than what travels at a time; the program has not allocated all of it.
        map(base + 16 * PAGE, LARGE_PAGES * PAGE, base + 17 * PAGE);
        byte[] data = Guest.random(100_000);
        long last = base + (16 + LARGE_PAGES) * PAGE - data.length;
        guest.write(last, 0, data);
        guest.write(base + 8 * PAGE + 512, 0, data);
        steps();
        int connection = leave();
        receiveLeave();
        steps(); // the guest works on
        left("");
        assertEquals("", arrive(target, connection).path("reason").asText());
        JsonNode ready = first.expect("moveready");
        assertEquals("", ready.path("reason").asText());
        assertEquals((3 + LARGE_PAGES) * PAGE, ready.path("bytes").asLong());
        first.moved();
        first.tell("{\"type\":\"moveend\",\"moved\":true}", -1);
        first.expect("ended");
        goOnAt(target, fresh.client());
        steps();
        assertEquals(expected(3 * STEPS), word());
        assertArrayEquals(data, guest.read(last, data.length, 0));
        assertArrayEquals(data, guest.read(base + 8 * PAGE + 512, data.length, 0));
    }

    @Test
    void shouldGoOnAtTheSourceWhenTheBrokerEndsTheMove() throws IOException {
        start(true);
        steps();
        int connection = leave();
        receiveLeave();
        left("");
        assertEquals("", arrive(target, connection).path("reason").asText());
        assertEquals("", first.expect("moveready").path("reason").asText());
        first.tell("{\"type\":\"moveend\",\"moved\":false}", -1);
        assertEquals(RecordLayout.CONTROL_STAY, guest.next().opcode());
        steps();
        assertEquals(expected(2 * STEPS), word());
    }

    @Test
    void shouldAnswerWhenTheBrokerEndsTheMoveBeforeTheTargetHasAll() throws Exception {
        start(true);
        steps();
        int connection = leave();
        receiveLeave();
        left("");
        SessionStream other = new SessionStream(connection);
        other.receiveState().close(); // the source waits for an answer now
        first.tell("{\"type\":\"moveend\",\"moved\":false}", -1);
        assertEquals("the move is over", first.expect("moveready").path("reason").asText());
        assertEquals(RecordLayout.CONTROL_STAY, guest.next().opcode());
        other.close();
        steps();
        assertEquals(expected(2 * STEPS), word());
        assertEquals("", arrive(target, again()).path("reason").asText());
        assertEquals("", first.expect("moveready").path("reason").asText());
    }

    @Test
    void shouldKeepASessionWhoseGuestAnswersAfterTheEndOfTheMove() throws Exception {
        start(true);
        leave();
        receiveLeave();
        first.tell("{\"type\":\"moveend\",\"moved\":false}", -1);
        assertEquals("the move is over", first.expect("moveready").path("reason").asText());
        leave();
        assertEquals("its guest has not answered the last invitation to another broker yet",
            first.expect("moveready").path("reason").asText());
        left("");
        assertEquals(RecordLayout.CONTROL_STAY, guest.next().opcode());
        steps();
        assertEquals(expected(STEPS), word());
        assertEquals("", arrive(target, again()).path("reason").asText());
        assertEquals("", first.expect("moveready").path("reason").asText());
    }

    /** Orders the session out once more. */
    private int again() throws IOException {
        int connection = leave();
        receiveLeave();
        left("");
        return connection;
    }

    @Test
    void shouldGoOnAtTheSourceWhenTheTargetDies() throws IOException {
        start(true);
        steps();
        int connection = leave();
        receiveLeave();
        left("");
        target.tell("{\"type\":\"movestream\"}", connection);
        target.close(); // with or without a part of the state
        target = null;
        String reason = first.expect("moveready").path("reason").asText();
        assertTrue(reason.startsWith("the other worker does not take it: "), reason);
        assertEquals(RecordLayout.CONTROL_STAY, guest.next().opcode());
        steps();
        assertEquals(expected(2 * STEPS), word());
        assertEquals(0, guest.synchronize(stream));
    }

    @Test
    void shouldTellTheSourceWhyTheTargetCannotTakeIt() throws IOException {
        start(true);
        try (Rig taken = rig(Carrier.TCP, 1)) { // of this process, whose addresses the source has
            int connection = leave();
            receiveLeave();
            left("");
            taken.tell("{\"type\":\"movestream\"}", connection);
            taken.pass(new String(Rig.assignment(0), StandardCharsets.UTF_8), fresh.accepted());
            String reason = taken.expect("movedin").path("reason").asText();
            assertTrue(reason.startsWith("the addresses of its memory are not free"), reason);
            assertEquals(reason, first.expect("moveready").path("reason").asText());
        }
        assertEquals(RecordLayout.CONTROL_STAY, guest.next().opcode());
        steps();
        assertEquals(expected(STEPS), word());
    }

    @Test
    void shouldStayWhenTheGuestStays() throws IOException {
        start(true);
        leave();
        receiveLeave();
        left("no route\nto it");
        assertEquals("its guest stays: no route?to it", first.expect("moveready").path("reason").asText());
        steps();
        assertEquals(expected(STEPS), word());
    }

    @Test
    void shouldStayWhenTheGuestDoesNotAnswer() throws IOException {
        start(true);
        leave();
        receiveLeave();
        steps();
        assertEquals("its guest does not answer within " + GUEST_LIMIT_S * 1000 + " ms",
            first.expect("moveready").path("reason").asText());
        assertEquals(expected(STEPS), word());
    }

    @Test
    void shouldNotInviteAGuestThatCannotFollow() throws IOException {
        start(false);
        leave();
        assertEquals("its guest's package cannot follow to another broker",
            first.expect("moveready").path("reason").asText());
        steps();
        assertEquals(expected(STEPS), word());
    }

    @Test
    void shouldEndASessionThatLeavesUninvited() throws IOException {
        start(true);
        left("");
        String reason = guest.reasonOfLoss();
        assertTrue(reason.contains("LEFT must answer a LEAVE"), reason);
    }

    @Test
    void shouldTakeNoSlabThatIsNotOfTheState() throws IOException {
        start(true);
        StateBuilder state = new StateBuilder();
        assertEquals("", receive(state, SessionStream.Slab.END));
        target.close();
        target = process();
        String reason = receive(state, new SessionStream.Slab(base, PAGE));
        assertTrue(reason.startsWith("a slab must be one of the state"), reason);
    }

    /** Sends the target a state and a slab; returns its answer. */
    private String receive(StateBuilder builder, SessionStream.Slab slab) throws IOException {
        int[] pair = Rig.socketPair();
        SessionStream stream = new SessionStream(pair[0]);
        try (StateWriter out = new StateWriter();
            Arena arena = Arena.ofConfined()) {
            builder.write(out);
            MemorySegment state = arena.allocate(out.length(), Long.BYTES).copyFrom(out.copy());
            stream.sendState(state);
            stream.sendSlab(slab);
            String broker = arrive(target, pair[1]).path("reason").asText();
            assertEquals(broker, stream.receiveAnswer());
            return broker;
        } finally {
            stream.close();
        }
    }
}
