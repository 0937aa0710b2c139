package io.hawser.broker.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.hawser.broker.BrokerListener;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.Refusal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class EventFeedTest {
    private final List<String> passed = new ArrayList<>();
    private final EventLog log = new EventLog(System::nanoTime);
    private final EventFeed feed = new EventFeed(log, new BrokerListener() {
        @Override
        public void refused(Carrier carrier, Refusal refusal) {
            passed.add("refused " + refusal);
        }

        @Override
        public void sessionStarted(Carrier carrier, Duration time) {
            passed.add("started " + carrier);
        }

        @Override
        public void workerStarted(Duration time) {
            passed.add("worker");
        }

        @Override
        public void workerFailed(String reason) {
            passed.add("failed " + reason);
        }

        @Override
        public void moveOver(MoveOutcome outcome) {
            passed.add("move " + outcome.result());
        }
    });

    private List<String> told() {
        return log.take().stream().map(e -> e.kind() + " " + e.severity() + " " + e.vgpu() + " " + e.text()).toList();
    }

    @Test
    void shouldTellOfRefusalsAndCountEachOnce() {
        feed.refused(Carrier.TCP, Refusal.CAPACITY, "v", "10.0.0.1:5", "all in use");
        feed.refused(Carrier.SHM, Refusal.INTERNAL, "", "region r slot 0", "no worker");
        feed.refused(Carrier.TCP, Refusal.CONNECTIONS); // a flood: only counted
        assertEquals(List.of("refused warning v A guest was refused (capacity, tcp 10.0.0.1:5): all in use",
            "refused error  A guest was refused (internal, shm region r slot 0): no worker"), told());
        assertEquals(List.of("refused CAPACITY", "refused INTERNAL", "refused CONNECTIONS"), passed);
    }

    @Test
    void shouldTellOfMovesThatHaveBegun() {
        feed.moveOver(new MoveOutcome("v", MoveOutcome.Result.MOVED, "u-0", "u-1", 2, 70, ""));
        feed.moveOver(new MoveOutcome("v", MoveOutcome.Result.FAILED, "u-0", "u-1", 0, 70, "the mover has ended"));
        feed.moveOver(new MoveOutcome("v", MoveOutcome.Result.REFUSED, "", "7", 0, 0, "there is no such GPU"));
        assertEquals(List.of("vgpu info v vGPU v moved: from=u-0 to=u-1 sessions=2 ms=70",
            "vgpu warning v vGPU v has not moved: from=u-0 to=u-1: the mover has ended"), told());
        assertEquals(List.of("move MOVED", "move FAILED", "move REFUSED"), passed);
    }

    @Test
    void shouldTellOfWorkersThatFailAndPassOnWhatGoesWell() {
        feed.workerStarted(Duration.ZERO);
        feed.sessionStarted(Carrier.TCP, Duration.ZERO);
        feed.workerFailed("killed by signal 9");
        assertEquals(List.of("worker error  A worker failed before it had a session: killed by signal 9"), told());
        assertEquals(List.of("worker", "started TCP", "failed killed by signal 9"), passed);
        assertNull(feed.pollOver());
    }
}
