package io.hawser.broker.status;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Guest;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.WorkerStats;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class VgpuUseTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private List<SessionView> sessions = List.of();
    private final VgpuUse use = new VgpuUse(() -> sessions);

    private static SessionView session(long id, String vgpu, long gpuTimeMs) {
        return new SessionView(id, new Guest("", vgpu, Carrier.TCP, "", 1, "p", "h"), 1, Instant.EPOCH,
            SessionState.RUNNING, List.of(), 0, new WorkerStats(0, 0, 0, 0, 0, 0, 0, 0, gpuTimeMs, 0));
    }

    @Test
    void shouldSumTheSessionsOfAVgpuAndOfNoOther() {
        sessions = List.of(session(1, "a", 5000), session(2, "a", 0), session(3, "b", 0));
        use.sample(SECOND);
        assertEquals(0, use.percent("a"), "one sample is no figure");
        sessions = List.of(session(1, "a", 5250), session(2, "a", 150), session(3, "b", 1000));
        use.sample(2 * SECOND);
        assertEquals(40, use.percent("a"));
        assertEquals(100, use.percent("b"));
        assertEquals(0, use.percent("c"));
    }

    @Test
    void shouldCountSessionsThatBeginAndForgetThoseThatEnd() {
        use.sample(SECOND);
        sessions = List.of(session(1, "a", 300));
        use.sample(2 * SECOND);
        assertEquals(30, use.percent("a"));
        sessions = List.of();
        use.sample(3 * SECOND);
        assertEquals(0, use.percent("a"));
    }

    @Test
    void shouldLookAtTheLastSecondsOnly() {
        sessions = List.of(session(1, "a", 0));
        use.sample(SECOND);
        sessions = List.of(session(1, "a", 1000));
        use.sample(2 * SECOND);
        assertEquals(100, use.percent("a"));
        for (int i = 3; i < 7; i++) {
            use.sample(i * SECOND);
        }
        assertEquals(0, use.percent("a"));
    }

    @Test
    void shouldStayWithinAHundredWhenSessionsOverlapOrTimeStandsStill() {
        sessions = List.of(session(1, "a", 0), session(2, "a", 0));
        use.sample(SECOND);
        sessions = List.of(session(1, "a", 900), session(2, "a", 900));
        use.sample(2 * SECOND);
        assertEquals(100, use.percent("a"));
        use.sample(2 * SECOND);
        assertEquals(100, use.percent("a"));
    }
}
