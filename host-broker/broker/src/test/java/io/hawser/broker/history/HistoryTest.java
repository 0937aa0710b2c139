package io.hawser.broker.history;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Test;

class HistoryTest {
    private static final long START = 86_400;
    private static final History.Key VGPU = new History.Key(History.Kind.VGPU, "one");
    private static final Instant NOW = Instant.parse("2026-01-01T00:10:00Z");

    private static Sample calls(double calls) {
        return new Sample(1, 1 << 20, calls, 0, 0, 0, Double.NaN, 0);
    }

    private static List<Double> repeated(double value, int count) {
        return DoubleStream.generate(() -> value).limit(count).boxed().toList();
    }

    @Test
    void shouldPackFiguresWithinTheirPrecision() {
        for (long exact : new long[] {0, 1, 100, 127, 1024, 2047, 1L << 40}) {
            assertEquals(exact, Packed.value(Packed.of(exact)), "exact: " + exact);
        }
        assertEquals(0.5, Packed.value(Packed.of(0.5)));
        assertEquals(0, Packed.value(Packed.of(-3)));
        assertTrue(Double.isNaN(Packed.value(Packed.of(Double.NaN))));
        Random random = new Random(1);
        for (int i = 0; i < 100_000; i++) {
            double value = Math.exp(random.nextDouble() * 36);
            assertEquals(value, Packed.value(Packed.of(value)), Math.max(value / 1024, 1.0 / 16));
        }
        int last = -1;
        for (double value = 0; value < 1e6; value += 7.3) {
            int bits = Short.toUnsignedInt(Packed.of(value));
            assertTrue(bits >= last, "the packed value must grow with the value");
            last = bits;
        }
    }

    @Test
    void shouldShowTheLastSecondsAndNothingBeforeTheStart() {
        History history = new History(START);
        for (int i = 0; i < 30; i++) {
            history.add(START + i, Map.of(VGPU, calls(i)));
        }
        HistoryInfo info = history.of(VGPU, 10, NOW);
        assertEquals(1, info.stepSeconds());
        assertEquals(List.of(20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0), info.callsPerSecond());
        assertEquals(NOW.minusSeconds(10), info.from());
        assertNull(info.utilizationPercent().getFirst(), "an unknown value must not read as 0");
        assertEquals(30, history.of(VGPU, 600, NOW).callsPerSecond().size());
        assertEquals(repeated(0, 30), history.of(new History.Key(History.Kind.VGPU, "idle"), 600, NOW)
            .callsPerSecond());
    }

    @Test
    void shouldForgetAfterTenMinutesByTheSecondAndKeepADayByAverages() {
        History history = new History(START);
        for (int i = 0; i < 1501; i++) {
            history.add(START + i, i < 600 ? Map.of(VGPU, calls(100)) : Map.of());
        }
        assertEquals(repeated(0, 600), history.of(VGPU, 600, NOW).callsPerSecond());
        HistoryInfo day = history.of(VGPU, 86_400, NOW);
        assertEquals(90, day.stepSeconds());
        assertEquals(100.0, day.callsPerSecond().get(2));
        assertEquals(0.0, day.callsPerSecond().getLast());
        HistoryInfo half = history.of(VGPU, 1500, NOW);
        assertEquals(15, half.stepSeconds());
        assertEquals(100, half.callsPerSecond().size());
        assertEquals(100.0, half.callsPerSecond().get(39));
        assertEquals(0.0, half.callsPerSecond().get(40));
    }

    @Test
    void shouldFillAPauseWithWhatWasMeasuredOverIt() {
        History history = new History(START);
        history.add(START, Map.of(VGPU, calls(1)));
        history.add(START + 4, Map.of(VGPU, calls(2)));
        history.add(START + 4, Map.of(VGPU, calls(9)));
        assertEquals(List.of(1.0, 2.0, 2.0, 2.0, 2.0), history.of(VGPU, 600, NOW).callsPerSecond());
    }

    @Test
    void shouldHoldNothingForTheIdleAndLetTheOldestGoWhenItIsTooMuch() {
        History history = new History(START, 20, 1000);
        for (int i = 0; i < 120; i++) {
            Map<History.Key, Sample> samples = new HashMap<>();
            for (int v = 0; v < 15; v++) {
                samples.put(new History.Key(History.Kind.VGPU, "v" + v), calls(v + 1));
            }
            history.add(START + i, samples);
        }
        assertTrue(history.chunks() <= 20 + 15,
            "the history must hold 15 coarse and at most 20 fine chunks: " + history.chunks());
        HistoryInfo info = history.of(new History.Key(History.Kind.VGPU, "v3"), 600, NOW);
        assertEquals(4.0, info.callsPerSecond().getLast());
        assertTrue(info.callsPerSecond().subList(0, 60).stream().allMatch(v -> v == null || v == 4.0));
        long unknown = 0;
        for (int v = 0; v < 15; v++) {
            unknown += history.of(new History.Key(History.Kind.VGPU, "v" + v), 600, NOW).callsPerSecond().stream()
                .filter(c -> c == null).count();
        }
        assertEquals(10 * 60, unknown, "the ten dropped chunks must read as unknown, not as 0");
    }

    @Test
    void shouldGiveBackWhatIsPast() {
        History history = new History(START);
        for (int i = 0; i < 60; i++) {
            history.add(START + i, Map.of(VGPU, calls(1)));
        }
        assertTrue(history.chunks() > 0);
        for (int i = 60; i < 90_000; i += 60) {
            history.add(START + i, Map.of());
        }
        assertEquals(0, history.chunks());
    }

    @Test
    void shouldForgetWhatIsDeleted() {
        History history = new History(START);
        history.add(START, Map.of(VGPU, calls(5)));
        history.keep(Set.of(), Set.of("other"));
        history.add(START + 1, Map.of());
        assertEquals(List.of(0.0, 0.0), history.of(VGPU, 600, NOW).callsPerSecond());
    }
}
