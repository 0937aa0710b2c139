package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class WatchesTest {
    private static final int NOT_READY = 600;

    private final Map<Long, Integer> streams = new HashMap<>(); // streams that are not idle
    private final Map<Long, Integer> events = new HashMap<>(); // events that have been reached
    private final List<String> seen = new ArrayList<>();
    private final List<Long> flushed = new ArrayList<>();
    private int sealResult;
    private Markers markers;
    private Watches watches;

    @BeforeEach
    void make() {
        markers = new Markers(new Markers.Events() {
            @Override
            public long create() {
                return 1;
            }

            @Override
            public int query(long event) {
                return events.getOrDefault(event, NOT_READY);
            }

            @Override
            public void flush(long event) {
            }
        });
        markers.setPolled(true); // keeps the markers' thread out of this test
        watches = new Watches(new Watches.Streams() {
            @Override
            public int query(long stream) {
                return streams.getOrDefault(stream, 0);
            }

            @Override
            public void flush(long stream) {
                flushed.add(stream);
            }
        }, markers);
    }

    @AfterEach
    void close() {
        markers.close();
    }

    private void watch(String name, long... of) {
        watches.add(of, status -> seen.add(name + "=" + status), () -> {
            seen.add(name + " sealed");
            return sealResult;
        });
    }

    @Test
    void shouldAnswerForIdleStreamsWithoutAnEvent() {
        watch("a", 1, 2);
        assertEquals(List.of(), seen, "actions run only in a poll");
        assertTrue(watches.poll());
        assertEquals(List.of("a=0"), seen);
        assertEquals(List.of(1L, 2L), flushed);
        assertFalse(watches.poll());
        assertTrue(watches.isEmpty());
    }

    @Test
    void shouldAnswerWhenLastStreamIsIdle() {
        streams.put(2L, NOT_READY);
        watch("a", 1, 2, 3);
        streams.put(3L, NOT_READY);
        assertFalse(watches.poll());
        streams.remove(2L);
        assertFalse(watches.poll());
        streams.remove(3L);
        assertTrue(watches.poll());
        assertEquals(List.of("a=0"), seen);
    }

    @Test
    void shouldGiveErrorOfAnyStream() {
        streams.put(1L, 700);
        streams.put(2L, NOT_READY);
        watch("a", 1, 2);
        assertTrue(watches.poll());
        assertEquals(List.of("a=700"), seen);
    }

    @Test
    void shouldAnswerInOrderAfterOlderMarkers() {
        long event = 5;
        markers.add(1, 1, event, status -> seen.add("marker=" + status));
        streams.put(1L, NOT_READY);
        watch("a", 1);
        watch("b", 2);
        watch("c", 1);
        events.put(event, 0);
        assertTrue(watches.poll());
        assertEquals(List.of("marker=0", "b=0"), seen);
        streams.clear();
        assertTrue(watches.poll());
        assertEquals(List.of("marker=0", "b=0", "a=0", "c=0"), seen);
    }

    @Test
    void shouldSealUnfinishedWatchesBeforeFurtherWork() {
        streams.put(1L, NOT_READY);
        watch("a", 1);
        watches.seal();
        assertEquals(List.of("a sealed"), seen);
        streams.clear();
        assertFalse(watches.poll(), "its event has taken over");
    }

    @Test
    void shouldAnswerWithErrorOfEventThatCannotBeRecorded() {
        streams.put(1L, NOT_READY);
        sealResult = 709;
        watch("a", 1);
        watches.seal();
        assertEquals(List.of("a sealed", "a=709"), seen);
    }

    @Test
    void shouldQueryAtOnceWithoutPolling() {
        markers.setPolled(false);
        watch("idle", 1);
        assertEquals(List.of("idle=0"), seen);
        streams.put(1L, NOT_READY);
        watch("busy", 1);
        assertEquals(List.of("idle=0", "busy sealed"), seen);
    }
}
