package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MarkersTest {
    private static final int NOT_READY = 600;
    private static final long CONTEXT = 1;

    /** Events that a test marks as reached. */
    private static final class HandEvents implements Markers.Events {
        final AtomicLong next = new AtomicLong(1);
        final Map<Long, Integer> reached = new ConcurrentHashMap<>();

        @Override
        public long create() {
            return next.getAndIncrement();
        }

        @Override
        public int query(long event) {
            return reached.getOrDefault(event, NOT_READY);
        }

        @Override
        public void flush(long event) {
            assertTrue(reached.containsKey(event));
        }
    }

    @Test
    void shouldRunActionAtOnceWhenWorkIsDoneAndNothingIsWatched() {
        HandEvents events = new HandEvents();
        try (Markers markers = new Markers(events)) {
            long event = markers.event(CONTEXT);
            events.reached.put(event, 0);
            List<Integer> seen = new ArrayList<>();
            markers.add(CONTEXT, 7, event, seen::add);
            assertEquals(List.of(0), seen);
            assertEquals(event, markers.event(CONTEXT), "an event is reused");
        }
    }

    @Test
    void shouldGiveErrorOfFailedContextToEveryMarker() throws Exception {
        HandEvents events = new HandEvents();
        CountDownLatch all = new CountDownLatch(3);
        List<Integer> seen = Collections.synchronizedList(new ArrayList<>());
        try (Markers markers = new Markers(events)) {
            List<Long> made = new ArrayList<>();
            for (int stream = 0; stream < 3; stream++) {
                long event = markers.event(CONTEXT);
                made.add(event);
                markers.add(CONTEXT, stream, event, status -> {
                    seen.add(status);
                    all.countDown();
                });
            }
            made.forEach(event -> events.reached.put(event, 700));
            assertTrue(all.await(120, TimeUnit.SECONDS));
        }
        assertEquals(List.of(700, 700, 700), seen);
    }

    @Test
    void shouldLeavePollingToSessionThreadThatPolls() throws Exception {
        HandEvents events = new HandEvents();
        CountDownLatch second = new CountDownLatch(1);
        List<Integer> seen = new ArrayList<>();
        try (Markers markers = new Markers(events)) {
            markers.setPolled(true);
            long first = markers.event(CONTEXT);
            markers.add(CONTEXT, 1, first, seen::add);
            assertFalse(markers.poll());
            events.reached.put(first, 0);
            assertTrue(markers.poll());
            assertEquals(List.of(0), seen);
            long other = markers.event(CONTEXT);
            events.reached.remove(other);
            markers.add(CONTEXT, 1, other, status -> second.countDown());
            events.reached.put(other, 0);
            markers.setPolled(false); // as before a sleep
            assertTrue(second.await(120, TimeUnit.SECONDS));
        }
    }

    @Test
    void shouldForgetEventsOfDestroyedContext() {
        HandEvents events = new HandEvents();
        try (Markers markers = new Markers(events)) {
            long event = markers.event(CONTEXT);
            markers.forget(CONTEXT);
            markers.give(CONTEXT, event);
            assertTrue(markers.event(CONTEXT) != event, "an event of a context that is gone must not be used");
        }
    }

    /** Events are reached in an order that their dependencies allow, while the markers' thread polls all the time. */
    @Test
    void shouldRunActionsInOrderOfDependencies() throws Exception {
        runInOrder(false);
    }

    /** The same, with the issuing thread and the markers' thread polling in turns. */
    @Test
    void shouldKeepOrderBetweenThreadsThatPoll() throws Exception {
        runInOrder(true);
    }

    private static void runInOrder(boolean inTurns) throws Exception {
        Random random = new Random(11);
        int count = 20_000;
        HandEvents events = new HandEvents();
        int[] before = new int[count]; // the marker that each one waits for, on any stream; -1 for none
        boolean[] ran = new boolean[count];
        List<String> wrong = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch all = new CountDownLatch(count);
        try (Markers markers = new Markers(events)) {
            List<Long> made = new ArrayList<>();
            int reached = 0;
            int[] lastOfStream = {-1, -1, -1, -1};
            for (int i = 0; i < count; i++) {
                if (inTurns) {
                    markers.setPolled(i % 100 < 60);
                    markers.poll();
                    markers.pass();
                }
                int stream = random.nextInt(lastOfStream.length);
                before[i] = i == 0 ? -1 : i - 1 - random.nextInt(Math.min(i, 5));
                int previous = lastOfStream[stream];
                int own = i;
                long event = markers.event(CONTEXT);
                events.reached.remove(event); // the event is recorded again
                made.add(event);
                markers.add(CONTEXT, stream, event, status -> {
                    if (before[own] >= 0 && !ran[before[own]] || previous >= 0 && !ran[previous]) {
                        wrong.add(own + " after " + before[own] + " and " + previous);
                    }
                    ran[own] = true;
                    all.countDown();
                });
                lastOfStream[stream] = i;
                // Events are reached in the order of issue, which covers every order of dependencies that a poll can
                // distinguish.
                for (int burst = random.nextInt(3); burst > 0 && reached < made.size(); burst--) {
                    events.reached.put(made.get(reached++), 0);
                }
            }
            while (reached < made.size()) {
                events.reached.put(made.get(reached++), 0);
            }
            markers.setPolled(false);
            assertTrue(all.await(120, TimeUnit.SECONDS));
        }
        assertEquals(List.of(), wrong);
    }

    @Test
    void shouldHaveRunActionsOfDoneWorkWhenCaughtUp() throws Exception {
        HandEvents events = new HandEvents();
        try (Markers markers = new Markers(events)) {
            for (int i = 0; i < 200; i++) {
                boolean[] ran = new boolean[1];
                long other = markers.event(CONTEXT);
                CountDownLatch otherRan = new CountDownLatch(1);
                markers.add(CONTEXT, 2, other, status -> otherRan.countDown());
                long event = markers.event(CONTEXT);
                markers.add(CONTEXT, 1, event, status -> ran[0] = true);
                events.reached.put(event, 0);
                markers.catchUp();
                assertTrue(ran[0]);
                events.reached.put(other, 0);
                assertTrue(otherRan.await(120, TimeUnit.SECONDS));
                events.reached.clear();
            }
        }
    }

    /** The session thread passes while it polls; when it has stopped unnoticed, the class's own thread does. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void shouldCatchUpByTheSessionThread(boolean polls) throws Exception {
        HandEvents events = new HandEvents();
        try (Markers markers = new Markers(events)) {
            markers.setPolled(true);
            for (int i = 0; i < 200; i++) {
                AtomicBoolean ran = new AtomicBoolean();
                long other = markers.event(CONTEXT);
                markers.add(CONTEXT, 2, other, status -> {});
                long event = markers.event(CONTEXT);
                markers.add(CONTEXT, 1, event, status -> ran.set(true));
                events.reached.put(event, 0);
                CompletableFuture<Boolean> caughtUp = CompletableFuture.supplyAsync(() -> {
                    markers.catchUp();
                    return ran.get();
                });
                while (polls && !caughtUp.isDone()) {
                    markers.poll();
                }
                assertTrue(caughtUp.get(120, TimeUnit.SECONDS));
                events.reached.put(other, 0);
                markers.pass();
                assertFalse(markers.isWatching());
                events.reached.clear();
            }
        }
    }
}
