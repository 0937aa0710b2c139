package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class BrokerBelongingsTest {
    private static BrokerBelongings with(String... sharedMemory) {
        return new BrokerBelongings(2, 200, 30, 150_000, 0, 0, Set.of(sharedMemory));
    }

    @Test
    void shouldReportSharedMemoryOfTheBroker() {
        assertEquals(List.of("shared memory: [hawser-events]"),
            with("hawser-check-11", "hawser-events").leaksSince(with("hawser-check-11")));
    }

    @Test
    void shouldIgnoreSharedMemoryOfOthers() {
        assertEquals(List.of(), with("hawser-check-11", "hawser-check-12", "own").leaksSince(with("hawser-check-11")));
    }
}
