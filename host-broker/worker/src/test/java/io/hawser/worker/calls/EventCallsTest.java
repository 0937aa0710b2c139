package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Events: announced records, and the copies before them. */
@Timeout(60)
class EventCallsTest {
    private static final int ROUNDS = 500;

    private static long createEvent(Guest guest) throws IOException {
        long event = guest.newId(HandleKind.EVENT);
        guest.send(CudaOpcodes.cuEventCreate, 0, event, 2);
        return event;
    }

    @ParameterizedTest
    @EnumSource
    void shouldAnnounceARecordBeforeTheReplyOfALaterWait(Carrier carrier) throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long event = createEvent(guest);
            long stream = guest.createStream();
            long record = guest.send(CudaOpcodes.hwsEventRecord, Guest.CREDITED, event, stream);
            long wait = guest.send(CudaOpcodes.cuStreamSynchronize, Guest.REPLY, stream);
            Guest.Received reached = guest.next();
            assertEquals(RecordLayout.CONTROL_REACHED, reached.opcode());
            assertEquals(record, reached.fields().sequence());
            assertEquals(event, reached.i64(RecordLayout.REACHED_EVENT_ID_OFFSET));
            assertEquals(0, guest.replyTo(wait).status());
            rig.leave();
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldAnnounceNothingWhileAnErrorWaitsForAReply(Carrier carrier) throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long event = createEvent(guest);
            long stream = guest.createStream();
            guest.send(Guest.MEM_FREE, 0, 64); // no memory of the session
            guest.send(CudaOpcodes.hwsEventRecord, Guest.CREDITED, event, stream);
            long wait = guest.send(CudaOpcodes.cuStreamSynchronize, Guest.REPLY, stream);
            assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, guest.replyTo(wait).status());
            long record = guest.send(CudaOpcodes.hwsEventRecord, Guest.CREDITED, event, stream);
            assertEquals(record, guest.next().fields().sequence());
            rig.leave();
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldSendTheDataOfCopiesBeforeAQueryThatCoversThem(Carrier carrier) throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long event = createEvent(guest);
            long stream = guest.createStream();
            long memory = guest.allocate(64);
            for (int i = 0; i < ROUNDS; i++) { // a query overtakes the data now and then, if nothing prevents that
                long read = guest.send(Guest.COPY_DTOH, Guest.REPLY, memory, 64, stream);
                guest.send(CudaOpcodes.cuEventRecordWithFlags, Guest.CREDITED, event, stream, 0);
                boolean hasData = false;
                boolean isReached = false;
                boolean hasEnded = false;
                long query = guest.send(CudaOpcodes.cuEventQuery, Guest.REPLY, event);
                while (!isReached || !hasEnded) {
                    Guest.Received record = guest.next();
                    hasData |= record.opcode() == RecordLayout.CONTROL_DATA;
                    hasEnded |= record.fields().sequence() == read && record.opcode() < 0;
                    if (record.fields().sequence() == query) {
                        isReached = record.status() == 0;
                        assertTrue(!isReached || hasData, "round " + i);
                        query = isReached ? 0 : guest.send(CudaOpcodes.cuEventQuery, Guest.REPLY, event);
                    }
                }
            }
            rig.leave();
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldAnnounceNoOrdinaryRecord(Carrier carrier) throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long stream = guest.createStream();
            guest.send(CudaOpcodes.cuEventRecordWithFlags, Guest.CREDITED, createEvent(guest), stream, 0);
            assertEquals(0, guest.synchronize(stream));
            rig.leave();
        }
    }
}
