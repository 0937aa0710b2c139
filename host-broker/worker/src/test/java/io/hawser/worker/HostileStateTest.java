package io.hawser.worker;

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
import io.hawser.worker.fixture.StateBuilder;
import io.hawser.worker.session.HandleTable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** States from a source that its guest controls: the target refuses them, and its guest hears nothing of it. */
@Timeout(30)
class HostileStateTest {
    private static final long CONTEXT = HandleTable.id(HandleKind.CONTEXT, 1);
    private static final long STREAM = HandleTable.id(HandleKind.STREAM, 1);

    private StateBuilder state;

    @BeforeEach
    void begin() {
        state = new StateBuilder().call(record(CudaOpcodes.hwsContextCreate, 0, Guest.REPLY, CONTEXT, 0, 1));
    }

    /** A record without a guest. */
    private static byte[] record(int opcode, int context, int flags, long... fields) {
        return Guest.record(opcode, context, flags, fields);
    }

    /** Gives the state to a target; returns its answer: movedin or ended. */
    private JsonNode arrive() throws IOException {
        int[] mover = Rig.socketPair();
        try (Rig target = new Rig(Carrier.TCP); Rig.Connection guest = Rig.Connection.open()) {
            target.tell("{\"type\":\"movein\"}", state.seal());
            target.tell("{\"type\":\"movelink\"}", mover[1]);
            target.broker().write(Rig.assignment(0), guest.accepted());
            JsonNode answer = target.expectAny(Set.of("movedin", "ended"));
            assertEquals(0, guest.client().getInputStream().available(), "nothing is sent before the commit");
            return answer;
        } finally {
            Descriptors.close(mover[0]);
        }
    }

    @Test
    void shouldRefuseAConnectionWithOtherChunks() throws IOException {
        refuse("a stripe must have 4 chunks", wrong -> wrong.stripes.add(new byte[3][8]));
        state.stripes.clear();
        refuse("a stripe must have 4 chunks",
            wrong -> wrong.stripes.add(new byte[4][RecordLayout.STRIPE_CHUNK_BYTES + 8]));
    }

    @Test
    void shouldRefuseAConnectionThatTheStateLacks() throws IOException {
        try (Rig target = new Rig(Carrier.TCP); Rig.Connection guest = Rig.Connection.open();
            Rig.Connection further = Rig.Connection.open()) {
            int[] mover = Rig.socketPair();
            target.tell("{\"type\":\"movein\"}", state.seal());
            target.tell("{\"type\":\"movelink\"}", mover[1]);
            target.broker().write(Rig.assignment(0), guest.accepted());
            target.expectAny(Set.of("movedin")); // without a fault so far
            target.broker().write("{\"type\":\"stripe\"}".getBytes(StandardCharsets.UTF_8), further.accepted());
            JsonNode answer = target.expectAny(Set.of("movedin", "ended"));
            assertTrue(answer.path("reason").asText().contains("only the connections of its state"), answer::toString);
            Descriptors.close(mover[0]);
        }
    }

    private void refuse(String reason, Consumer<StateBuilder> change) throws IOException {
        change.accept(state);
        String found = arrive().path("reason").asText();
        assertTrue(found.contains(reason), found);
    }

    @Test
    void shouldTakeAStateThatCanBe() throws IOException {
        state.call(record(CudaOpcodes.cuStreamCreateWithPriority, 1, 0, STREAM, 0));
        JsonNode answer = arrive();
        assertEquals("movedin", answer.path("type").asText());
        assertEquals("", answer.path("reason").asText());
    }

    @Test
    void shouldRefuseAnotherForm() throws IOException {
        refuse("the form of a state", wrong -> wrong.magic++);
    }

    @Test
    void shouldRefuseAnotherDescription() throws IOException {
        refuse("the description of the API", wrong -> wrong.hash++);
    }

    @Test
    void shouldRefuseCreditThatWasNeverGiven() throws IOException {
        refuse("a credit window must be possible", wrong -> wrong.received = 1L << 40);
    }

    @Test
    void shouldRefuseObjectsThatWereNeverMade() throws IOException {
        refuse("must have been created", wrong -> wrong.call(
            record(CudaOpcodes.cuFuncSetCacheConfig, 1, 0, HandleTable.id(HandleKind.FUNCTION, 9), 0)));
    }

    @Test
    void shouldRefuseCallsBeyondTheDescription() throws IOException {
        refuse("must be a record of the description", wrong -> wrong.call(record(0x7fff1234, 1, 0)));
    }

    @Test
    void shouldRefuseARecordThatIsNotWhole() throws IOException {
        refuse("must be a record", wrong -> wrong.call(new byte[7]));
    }

    @Test
    void shouldRefuseAnImageThatIsNotThere() throws IOException {
        refuse("the code of a module must be in the state", wrong -> wrong.image = "ab".repeat(32));
    }

    @Test
    void shouldRefuseAnImageWithoutADigest() throws IOException {
        refuse("an image must be named by its digest", wrong -> wrong.image = "../../etc/passwd");
    }

    @Test
    void shouldRefuseResultsThatAreDifferent() throws IOException {
        refuse("a result is different", wrong -> wrong.call(record(CudaOpcodes.hwsDeviceInfo, 1, Guest.REPLY, 0),
            new byte[] {1, 2, 3, 4, 5, 6, 7, 8}));
    }

    @Test
    void shouldRefuseVariablesOfNoModule() throws IOException {
        refuse("a variable must belong to a module",
            wrong -> wrong.variables.add(new long[] {HandleTable.id(HandleKind.MODULE, 1), CONTEXT, 4096, 8}));
    }

    @Test
    void shouldRefuseTimesOfNoEvent() throws IOException {
        refuse("an event with a time must exist", wrong -> wrong.events.add(HandleTable.id(HandleKind.EVENT, 1)));
    }

    @Test
    void shouldRefuseTooFewKindsOfHandles() throws IOException {
        refuse("all kinds of handles", wrong -> wrong.kinds = 1);
    }
}
