package io.hawser.broker.history;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.view.SessionInfo;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SamplerTest {
    private static final History.Key GPU = new History.Key(History.Kind.GPU, "u");
    private static final History.Key A = new History.Key(History.Kind.VGPU, "a");

    private static SessionInfo session(long id, String vgpu, long calls, long deviceBytes) {
        return new SessionInfo(id, vgpu, "tcp", "", "running", Instant.EPOCH, "", "", "", 1, 1, List.of("u"), 0,
            new SessionInfo.Statistics(calls, calls, calls / 2, calls * 10, calls * 5, 0, deviceBytes, 0, 0,
                calls * 2),
            "");
    }

    @Test
    void shouldAddUpWhatSessionsDidSinceTheLastTime() {
        Sampler sampler = new Sampler();
        Map<String, Double> gpus = Map.of("u", 40.0);
        sampler.sample(List.of(), List.of(session(1, "a", 100, 7), session(2, "b", 10, 1)), gpus, 1);
        // Since the last sample, session 1 continued, session 2 ended after 20 more calls, session 3 began and ended.
        Map<History.Key, Sample> samples = sampler.sample(List.of(session(2, "b", 30, 5), session(3, "a", 8, 9)),
            List.of(session(1, "a", 300, 4)), gpus, 2);
        assertEquals(new Sample(1, 4, 104, 52, 1040, 520, Double.NaN, 20.8), samples.get(A));
        assertEquals(new Sample(0, 0, 10, 5, 100, 50, Double.NaN, 0),
            samples.get(new History.Key(History.Kind.VGPU, "b")));
        assertEquals(new Sample(1, 4, 114, 57, 1140, 570, 40, 22.8), samples.get(GPU));
        assertEquals(samples.get(GPU), samples.get(History.Key.BROKER));
    }

    @Test
    void shouldHaveNothingOfAnIdleVgpuButOfTheGpus() {
        Map<History.Key, Sample> samples = new Sampler().sample(List.of(), List.of(), Map.of("u", Double.NaN), 1);
        assertFalse(samples.containsKey(A));
        assertTrue(Double.isNaN(samples.get(GPU).utilizationPercent()));
        assertEquals(2, samples.size());
    }
}
