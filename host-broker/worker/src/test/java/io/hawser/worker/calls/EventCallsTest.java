package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

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

/** Events and the copies before them. */
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
}
