package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.gpu.nvidia.SpareStreams.Kind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class SpareStreamsTest {
    private static final int NOT_READY = 600;
    private static final int ILLEGAL_ADDRESS = 700;
    private static final Kind KIND = new Kind(1, 0);

    private final Map<Long, Integer> states = new HashMap<>(); // of streams that are not idle
    private final List<Long> destroyed = new ArrayList<>();
    private final SpareStreams spares = new SpareStreams(new SpareStreams.Streams() {
        @Override
        public int query(long stream) {
            return states.getOrDefault(stream, 0);
        }

        @Override
        public void destroy(long stream) {
            destroyed.add(stream);
        }
    });

    @Test
    void shouldGiveAStreamOfTheSameKindOnce() {
        assertTrue(spares.give(7, KIND));
        assertEquals(0, spares.take(new Kind(0, 0)));
        assertEquals(0, spares.take(new Kind(1, -1)));
        assertEquals(7, spares.take(KIND));
        assertEquals(0, spares.take(KIND));
        assertEquals(List.of(), destroyed);
    }

    @Test
    void shouldNotGiveAStreamThatHasWork() {
        states.put(7L, NOT_READY);
        spares.give(7, KIND);
        assertEquals(0, spares.take(KIND));
        assertFalse(spares.areIdle());
        states.clear();
        assertEquals(7, spares.take(KIND));
        assertTrue(spares.areIdle());
    }

    @Test
    void shouldFindAnIdleStreamBehindOneThatIsBusyForLong() {
        states.put(7L, NOT_READY);
        spares.give(7, KIND);
        spares.give(8, KIND);
        assertEquals(0, spares.take(KIND));
        assertEquals(8, spares.take(KIND));
    }

    @Test
    void shouldNotGiveAStreamOfAFailedContext() {
        states.put(7L, ILLEGAL_ADDRESS);
        spares.give(7, KIND);
        assertEquals(0, spares.take(KIND));
        assertFalse(spares.areIdle(), "the context's own event must report the error");
    }

    @Test
    void shouldKeepAFewStreams() {
        for (long stream = 1; stream <= SpareStreams.MAX + 2; stream++) {
            assertTrue(spares.give(stream, KIND));
        }
        assertEquals(List.of(1L, 2L), destroyed);
    }

    @Test
    void shouldLeaveAStreamToItsOwnerWhenTheSparesAreBusy() {
        for (long stream = 1; stream <= SpareStreams.MAX; stream++) {
            states.put(stream, NOT_READY);
            assertTrue(spares.give(stream, KIND));
        }
        assertFalse(spares.give(99, KIND));
        assertEquals(List.of(), destroyed);
    }

    @Test
    void shouldAgreeWithAModelOfStreams() {
        Random random = new Random(20261123);
        Set<Long> used = new HashSet<>();
        Map<Long, Kind> kinds = new HashMap<>();
        long next = 1;
        for (int i = 0; i < 100_000; i++) {
            Kind kind = new Kind(random.nextInt(2), -random.nextInt(2));
            if (random.nextBoolean() || used.isEmpty()) {
                long stream = spares.take(kind);
                if (stream == 0) {
                    stream = next++;
                    kinds.put(stream, kind);
                }
                assertTrue(used.add(stream), "a stream has one user");
                assertEquals(kind, kinds.get(stream));
                assertNotEquals(NOT_READY, states.get(stream));
                assertFalse(destroyed.contains(stream));
                if (random.nextBoolean()) {
                    states.put(stream, NOT_READY);
                }
            } else {
                long stream = used.iterator().next();
                used.remove(stream);
                if (!spares.give(stream, kinds.get(stream))) {
                    destroyed.add(stream);
                }
            }
            if (random.nextInt(4) == 0 && !states.isEmpty()) {
                states.remove(states.keySet().iterator().next());
            }
        }
        assertEquals(new HashSet<>(destroyed).size(), destroyed.size(), "a stream is destroyed once");
        assertTrue(next - 1 - used.size() - destroyed.size() <= SpareStreams.MAX, "no stream may be lost");
    }
}
