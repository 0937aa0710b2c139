package io.hawser.broker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CpuSharesTest {
    private final Map<String, Integer> shares = new HashMap<>(Map.of("large", 75, "small", 25));
    private final Map<String, Integer> weights = new HashMap<>();
    private final CpuShares<String> cpu = new CpuShares<>(shares::get, weights::put);

    @Test
    void shouldGiveSessionsTheWeightOfTheirShare() {
        cpu.begin("a", "large");
        cpu.begin("b", "small");
        assertEquals(Map.of("a", 7500, "b", 2500), weights);
    }

    @Test
    void shouldGiveAVgpuNoMoreForMoreSessions() {
        cpu.begin("a", "large");
        for (int i = 0; i < 4; i++) {
            cpu.begin("b" + i, "small");
        }
        assertEquals(7500, weights.remove("a"));
        assertEquals(Map.of("b0", 625, "b1", 625, "b2", 625, "b3", 625), weights);
        weights.clear();
        cpu.end("b0", "small");
        cpu.end("b1", "small");
        assertEquals(1250, weights.get("b3"));
        weights.clear();
        cpu.end("b0", "small");
        assertEquals(Map.of(), weights, "a repeated end must change no weight");
        cpu.end("b2", "small");
        assertEquals(Map.of("b3", 2500), weights);
        weights.clear();
        cpu.end("b3", "small");
        assertEquals(Map.of(), weights, "the last end must change no weight");
    }

    @Test
    void shouldFollowTheShare() {
        cpu.begin("a", "large");
        cpu.begin("b", "large");
        shares.put("large", 10);
        cpu.updateWeights("large");
        cpu.updateWeights("unknown");
        assertEquals(Map.of("a", 500, "b", 500), weights);
    }

    @Test
    void shouldStayInTheKernelsRange() {
        assertEquals(CpuShares.MAX_WEIGHT, CpuShares.weight(100, 1));
        assertEquals(CpuShares.MIN_WEIGHT, CpuShares.weight(1, 1000));
        assertEquals(100, CpuShares.weight(1, 1));
    }
}
