package io.hawser.broker.swap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Sessions that move by pieces, on a GPU of 140 bytes, with little memory of the host. Times are simulated. */
class ExchangeTest {
    private static final long ROOM = 140;
    private static final long PIECE = 2;
    private static final long SECOND = 1_000_000_000;
    private static final int STEPS = 50_000;

    private final Map<String, Residency.Totals> totals = new HashMap<>();
    private final List<Session> sessions = new ArrayList<>();
    private long hostBytes;
    private long allocatedBytes;
    private long now = 1;
    private Residency residency;
    private Session first;
    private Session second;

    private void open(long host, long allocated) {
        hostBytes = host;
        allocatedBytes = allocated;
        residency = new Residency(new SwapRules(host, 0, PIECE, SECOND, SECOND, 4 * SECOND, 0), () -> ROOM,
            () -> allocatedBytes, totals);
    }

    private enum Place { IN, DRAINING, LEAVING, OUT, ENTERING }

    /** A session as its worker moves it. */
    private final class Session extends ShallowSeat {
        private final String vgpu;
        private Place place;
        private long heldBytes; // on the GPU
        private long keptBytes; // on the host
        private long movedBytes;
        private long limitBytes;

        Session(String vgpu, long quotaBytes) {
            this.vgpu = vgpu;
            sessions.add(this);
            place = residency.join(this, vgpu, quotaBytes, 100, () -> heldOf(vgpu), now) ? Place.IN : Place.OUT;
        }

        @Override
        public void leave(long bytes) {
            if (place == Place.IN) {
                place = Place.DRAINING;
                movedBytes = 0;
            }
            assertTrue(place == Place.DRAINING || place == Place.LEAVING, place::toString);
            limitBytes = bytes;
        }

        @Override
        public void enter(long bytes) {
            if (place == Place.OUT) {
                place = Place.ENTERING;
                movedBytes = 0;
            }
            assertEquals(Place.ENTERING, place);
            limitBytes = bytes;
        }

        /** Goes on with what it was told. Returns whether anything happened. */
        boolean move() {
            if (place == Place.DRAINING) {
                place = Place.LEAVING;
                residency.moved(this, 0, now);
            } else if (place == Place.LEAVING) {
                long piece = Math.min(PIECE, heldBytes);
                if (piece == 0) {
                    place = Place.OUT;
                    residency.left(this, movedBytes, "", now);
                } else if (movedBytes + piece <= limitBytes) {
                    heldBytes -= piece;
                    keptBytes += piece;
                    movedBytes += piece;
                    residency.moved(this, movedBytes, now);
                } else {
                    return false;
                }
            } else if (place == Place.ENTERING) {
                long piece = Math.min(PIECE, keptBytes);
                if (piece == 0) {
                    place = Place.IN;
                    residency.entered(this, movedBytes, true);
                } else if (movedBytes + piece <= limitBytes) {
                    keptBytes -= piece;
                    heldBytes += piece;
                    movedBytes += piece;
                    residency.moved(this, movedBytes, now);
                } else {
                    return false;
                }
            } else {
                return false;
            }
            residency.step(now);
            check("");
            return true;
        }

        void want() {
            residency.want(this, now);
            residency.step(now);
        }

        void end() {
            sessions.remove(this);
            residency.remove(this, now);
            residency.step(now);
        }
    }

    private long heldOf(String vgpu) {
        return sessions.stream().filter(session -> session.vgpu.equals(vgpu)).mapToLong(session -> session.heldBytes)
            .sum();
    }

    private void check(String context) {
        long held = sessions.stream().mapToLong(session -> session.heldBytes).sum();
        long kept = sessions.stream().mapToLong(session -> session.keptBytes).sum();
        assertTrue(held <= ROOM && kept <= hostBytes, () -> context + " held=" + held + " kept=" + kept);
    }

    private void settle() {
        boolean isMoving = true;
        for (int i = 0; isMoving; i++) {
            assertTrue(i < STEPS, "the moves must end");
            isMoving = false;
            for (Session session : List.copyOf(sessions)) {
                isMoving |= session.move();
            }
        }
    }

    /** The first session is on the GPU, and the second one waits with 60 bytes on the host. */
    private void startExchange(long host, long allocated, long firstBytes) {
        open(host, allocated);
        first = new Session("first", ROOM);
        first.heldBytes = firstBytes;
        second = new Session("second", ROOM);
        residency.left(second, 60, "", now);
        second.keptBytes = 60;
        second.want();
        pass(5);
    }

    private void pass(double seconds) {
        now += (long) (seconds * SECOND);
        residency.step(now);
    }

    @Test
    void shouldExchangeThreeVgpusWithRoomForLittleMoreThanOne() {
        open(64, 64);
        List<Session> three = List.of(new Session("a", 60), new Session("b", 60), new Session("c", 60));
        three.get(0).heldBytes = 60;
        three.get(1).heldBytes = 60;
        for (int turn = 0; turn < 9; turn++) {
            Session comer = three.stream().filter(session -> session.place == Place.OUT).findFirst().orElseThrow();
            comer.want();
            pass(5);
            settle();
            assertEquals(Place.IN, comer.place);
            comer.heldBytes = 60; // at its first turn it allocates
            check("turn=" + turn);
            assertEquals(60, sessions.stream().mapToLong(session -> session.keptBytes).sum());
        }
    }

    @Test
    void shouldCopyInBothDirectionsAtOnce() {
        startExchange(200, 200, 60);
        first.move(); // drained
        second.move();
        assertEquals(Place.LEAVING, first.place);
        assertEquals(PIECE, second.heldBytes);
        while (second.move()) {
            check("");
        }
        assertEquals(60 - PIECE, second.heldBytes, "its last piece waits for the whole vGPU's room");
        settle();
        assertEquals(Place.IN, second.place);
    }

    @Test
    void shouldNotBeginToComeBeforeTheHostsMemoryIsAllocated() {
        startExchange(200, 60, 60);
        first.move();
        assertFalse(second.move());
        assertEquals(0, second.heldBytes);
        settle();
        assertEquals(Place.IN, second.place);
    }

    @Test
    void shouldKeepAVgpuThatTheHostHasNoRoomFor() {
        startExchange(62, 62, 61);
        assertEquals(Place.IN, first.place);
        assertEquals("the host's memory for swapped sessions is too small: maxBytes=62 swappedBytes=60 usedBytes=61",
            residency.stays("first"));
        first.heldBytes = 60;
        pass(0.1);
        settle();
        assertEquals(Place.IN, second.place);
        assertEquals(60, first.keptBytes);
        assertEquals("", residency.stays("first"));
    }

    @Test
    void shouldNameSessionsWhoseMovesStandStill() {
        startExchange(64, 64, 60);
        assertEquals(Place.DRAINING, first.place);
        assertEquals(List.of(), residency.stuck(now));
        assertEquals(List.of(first), residency.stuck(now + Residency.STUCK_NS));
        first.move();
        while (first.move()) { // until the host's memory is full
            check("");
        }
        assertTrue(first.heldBytes > 0 && second.limitBytes >= PIECE, () -> "limit=" + second.limitBytes);
        assertEquals(List.of(second), residency.stuck(now + Residency.STUCK_NS), "the other one waits for it");
        second.end();
        assertTrue(residency.step(now), "the first one moves, although nobody waits");
        settle();
        assertEquals(Place.OUT, first.place);
        assertFalse(residency.step(now));
        assertEquals(List.of(), residency.stuck(now + Residency.STUCK_NS));
    }

    /** Any order of events keeps both memories within their limits, and lets everybody in at last. */
    @Test
    void shouldKeepTheLimitsWhateverHappens() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        open(150, 0);
        for (int step = 0; step < STEPS; step++) {
            String context = "seed=" + seed + " step=" + step;
            now += random.nextLong(SECOND / 4);
            int event = random.nextInt(10);
            Session any = sessions.isEmpty() ? null : sessions.get(random.nextInt(sessions.size()));
            if (any == null || event == 0 && sessions.size() < 5) {
                new Session("v" + random.nextInt(3), 70);
            } else if (event == 1 && random.nextInt(20) == 0) {
                any.end();
            } else if (event == 2) {
                any.want();
            } else if (event == 3) {
                residency.active(any, now);
            } else if (event == 4 && any.place == Place.IN) {
                any.heldBytes = 0;
                any.heldBytes = random.nextLong(70 - heldOf(any.vgpu) - keptOf(any.vgpu) + 1);
            } else if (event == 5) {
                allocatedBytes = Math.min(hostBytes, allocatedBytes + random.nextLong(4));
            } else {
                any.move();
            }
            residency.step(now);
            check(context);
        }
        for (Session session : sessions) {
            for (int i = 0; i < 50 && session.place != Place.IN; i++) {
                session.want();
                pass(5);
                settle();
            }
            assertEquals(Place.IN, session.place, () -> "seed=" + seed + " vgpu=" + session.vgpu);
        }
    }

    private long keptOf(String vgpu) {
        return sessions.stream().filter(session -> session.vgpu.equals(vgpu)).mapToLong(session -> session.keptBytes)
            .sum();
    }
}
