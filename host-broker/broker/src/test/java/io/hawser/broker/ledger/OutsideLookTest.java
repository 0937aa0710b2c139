package io.hawser.broker.ledger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.model.Amount;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.Guest;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.WorkerStats;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class OutsideLookTest {
    private static final long GIB = 1L << 30;
    private static final String GPU = "gpu";

    private final List<SessionView> sessions = new ArrayList<>();
    private final Map<Long, Long> processes = new HashMap<>();
    private final List<Long> ended = new ArrayList<>();
    private Amount amount = Amount.quota(4 * GIB, 100 * GIB);
    private long contextBytes = GIB / 2;

    private final OutsideLook look = new OutsideLook(new OutsideLook.Watched() {
        @Override
        public List<SessionView> sessions() {
            return sessions;
        }

        @Override
        public List<Device> devices() {
            return List.of(new Device("GPU", GPU, 100 * GIB, "", ""));
        }

        @Override
        public Amount amount(String vgpu, Device device) {
            return amount;
        }

        @Override
        public OptionalLong processBytes(String gpu, long pid) {
            return processes.containsKey(pid) ? OptionalLong.of(processes.get(pid)) : OptionalLong.empty();
        }

        @Override
        public long contextBytes(String gpu) {
            return contextBytes;
        }

        @Override
        public void end(long session, String reason) {
            assertTrue(reason.contains("more device memory"), reason);
            ended.add(session);
        }
    });

    private void session(long id, String vgpu, long admitsTo, long has) {
        sessions.add(new SessionView(id, guest(vgpu), id, Instant.EPOCH, SessionState.RUNNING, List.of(GPU), 4 * GIB,
            WorkerStats.NONE.withDeviceBytes(admitsTo)));
        processes.put(id, has);
    }

    private static Guest guest(String vgpu) {
        return new Guest("key", vgpu, Carrier.TCP, "peer", 1, "program", "host");
    }

    private void looks(int times) {
        for (int i = 0; i < times; i++) {
            look.check();
        }
    }

    @Test
    void shouldLeaveSessionsAloneThatHaveWhatTheyMay() {
        session(1, "a", 2 * GIB, 2 * GIB + GIB / 2);
        session(2, "a", 2 * GIB, 2 * GIB + GIB / 2 + GIB / 4); // the rest of pages that small allocations share
        looks(10);
        assertEquals(List.of(), ended);
    }

    @Test
    void shouldEndTheOneThatHasMostBeyondWhatItAdmitsTo() {
        session(1, "a", 3 * GIB, 4 * GIB);
        session(2, "a", 0, 3 * GIB);
        session(3, "b", 0, GIB);
        looks(2);
        assertEquals(List.of(), ended, "two looks must not end a session");
        looks(1);
        assertEquals(List.of(2L), ended);
    }

    @Test
    void shouldForgiveWhatDoesNotLast() {
        session(1, "a", 0, 10 * GIB);
        looks(2);
        processes.put(1L, GIB);
        looks(1);
        processes.put(1L, 10 * GIB);
        looks(2);
        assertEquals(List.of(), ended);
        looks(1);
        assertEquals(List.of(1L), ended);
    }

    @Test
    void shouldCountEachVgpuByItself() {
        session(1, "a", 4 * GIB, 4 * GIB + GIB / 2);
        session(2, "b", 4 * GIB, 4 * GIB + GIB / 2);
        looks(5);
        assertEquals(List.of(), ended);
    }

    @Test
    void shouldEndNobodyWhereTheDriverDoesNotTellOrThereIsNoLimit() {
        session(1, "a", 0, 50 * GIB);
        processes.clear();
        looks(5);
        processes.put(1L, 50 * GIB);
        amount = Amount.bestEffort(0, 0);
        looks(5);
        assertEquals(List.of(), ended);
        amount = Amount.bestEffort(100 * GIB, 90 * GIB);
        looks(3);
        assertEquals(List.of(1L), ended, "best effort must stay within the memory that no vGPU has reserved");
    }

    @Test
    void shouldAllowForAContextThatNobodyHasMeasured() {
        contextBytes = 0;
        session(1, "a", 4 * GIB, 5 * GIB);
        looks(5);
        assertEquals(List.of(), ended);
    }

    /** The broker tolerates an excess of an eighth of the quota and 256 MiB for a minute only. */
    @Test
    void shouldNotLeaveASmallExcessForEver() {
        session(1, "a", 3 * GIB, 3 * GIB + GIB / 2);
        session(2, "a", GIB, 2 * GIB);
        looks(59);
        assertEquals(List.of(), ended);
        processes.put(2L, GIB + GIB / 2);
        looks(1);
        processes.put(2L, 2 * GIB);
        looks(59);
        assertEquals(List.of(), ended, "a look within the quota must restart the minute");
        looks(1);
        assertEquals(List.of(2L), ended);
    }

    @Test
    void shouldLeaveSessionsWhatIsNotCounted() {
        long uncounted = GIB / 8; // of each session: reserves of pools, streams, code
        session(1, "a", 2 * GIB, 2 * GIB + GIB / 2 + uncounted);
        session(2, "a", 2 * GIB, 2 * GIB + GIB / 2 + uncounted);
        looks(1000);
        assertEquals(List.of(), ended);
    }

    /** On an H200 the driver counts memory opened by IPC for the opener once the owner has freed it or has ended. */
    @Test
    void shouldCountOpenedMemoryWhoseOwnerHasEnded() {
        session(1, "a", 0, 5 * GIB + GIB / 2);
        session(2, "a", 2 * GIB, 2 * GIB + GIB / 2);
        looks(3);
        assertEquals(List.of(1L), ended);
    }
}
