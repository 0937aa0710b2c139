package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.turns.TurnPage;
import io.hawser.worker.session.CopyWindow.Direction;
import java.util.ArrayDeque;
import java.util.Queue;
import org.junit.jupiter.api.Test;

class CopyWindowTest {
    private static final int MIB = 1 << 20;
    private static final int LIMIT_KIB = 4096;

    private final TurnPage page = TurnPage.alone();
    private final StreamState stream = new StreamState(7, 1);
    private final StreamState other = new StreamState(7, 2);
    private final Queue<Runnable> marks = new ArrayDeque<>();
    private int rings;
    private int checks;
    private long nowNs = 1;
    private final CopyWindow copies = new CopyWindow(new Turns.Surroundings() {
        @Override
        public void mark(StreamState of) {
            throw new AssertionError("launches are not counted here");
        }

        @Override
        public void checkAgain(Runnable check, long delayMs) {
            checks++;
            check.run();
        }

        @Override
        public void whenReached(StreamState of, Runnable action) {
            marks.add(action);
        }

        @Override
        public void ring() {
            rings++;
        }
    }, () -> nowNs);

    CopyWindowTest() {
        copies.use(page);
    }

    private void toDevice(long bytes, StreamState of) {
        assertTrue(copies.mayCopy(Direction.TO_DEVICE));
        copies.issued(Direction.TO_DEVICE, bytes, of);
    }

    @Test
    void shouldNeitherCountNorLimitWhileAlone() {
        for (int i = 0; i < 1000; i++) {
            toDevice(MIB, stream);
        }
        assertEquals(1L << 40, copies.part(Direction.TO_DEVICE, 1L << 40));
        assertEquals(0, page.copied());
        assertEquals(0, rings);
        assertTrue(marks.isEmpty());
    }

    @Test
    void shouldRingOnceWhenItBeginsToCopy() {
        page.setCopies(TurnPage.REPORTED);
        toDevice(64, stream);
        assertEquals(0, rings, "a few bytes harm nobody");
        toDevice(MIB, stream);
        toDevice(MIB, stream);
        assertEquals(1, rings);
        assertEquals(2 * MIB / TurnPage.COPIED_UNIT_BYTES, page.copied());
        page.setCopies(TurnPage.COUNTED);
        toDevice(MIB, stream);
        page.setCopies(TurnPage.REPORTED);
        toDevice(MIB, stream);
        assertEquals(2, rings);
    }

    @Test
    void shouldBeginARoundWhenAllOfTheLastIsDone() {
        page.setCopies(LIMIT_KIB);
        toDevice(2 * MIB, stream);
        assertTrue(marks.isEmpty(), "the round has room");
        toDevice(2 * MIB, other);
        assertEquals(2, marks.size());
        assertFalse(copies.mayCopy(Direction.TO_DEVICE));
        assertTrue(copies.mayCopy(Direction.TO_HOST), "a direction of its own");
        assertTrue(copies.mayCopy(Direction.NONE));
        marks.remove().run();
        assertFalse(copies.mayCopy(Direction.TO_DEVICE), "the other stream still copies");
        marks.remove().run();
        toDevice(MIB, stream);
    }

    @Test
    void shouldIssueALongCopyInPartsOfARound() {
        page.setCopies(LIMIT_KIB);
        toDevice(MIB, stream);
        assertEquals(3 * MIB, copies.part(Direction.TO_DEVICE, 100 * MIB));
        assertEquals(MIB, copies.part(Direction.TO_DEVICE, MIB));
        toDevice(3 * MIB - 1, stream);
        assertEquals(CopyWindow.LEAST_PART_BYTES, copies.part(Direction.TO_DEVICE, 100 * MIB));
        assertEquals(0, copies.issuedOf(5));
        copies.interrupt(5, 3 * MIB);
        assertEquals(3 * MIB, copies.issuedOf(5));
        assertEquals(0, copies.issuedOf(6));
    }

    @Test
    void shouldNotWaitForEverForARound() {
        page.setCopies(LIMIT_KIB);
        toDevice(4 * MIB, stream);
        assertFalse(copies.mayCopy(Direction.TO_DEVICE));
        assertEquals(1, checks);
        nowNs += CopyWindow.STALL_NS;
        toDevice(4 * MIB, other);
        assertFalse(copies.mayCopy(Direction.TO_DEVICE), "the next round is full, too");
        marks.remove().run();
        assertFalse(copies.mayCopy(Direction.TO_DEVICE), "that was the old round");
        marks.remove().run();
        assertTrue(copies.mayCopy(Direction.TO_DEVICE));
    }

    @Test
    void shouldNotLimitASessionThatCopiesSlowly() {
        page.setCopies(LIMIT_KIB);
        for (int i = 0; i < 100; i++) {
            toDevice(MIB, stream);
            nowNs += CopyWindow.STALL_NS / 2;
        }
        assertTrue(marks.isEmpty());
    }

    @Test
    void shouldEndARoundWithTheLimit() {
        page.setCopies(LIMIT_KIB);
        toDevice(4 * MIB, stream);
        assertFalse(copies.mayCopy(Direction.TO_DEVICE));
        page.setCopies(TurnPage.COUNTED);
        toDevice(4 * MIB, stream);
        page.setCopies(LIMIT_KIB);
        marks.remove().run();
        toDevice(4 * MIB, stream);
    }

    @Test
    void shouldNotMarkADestroyedStream() {
        page.setCopies(LIMIT_KIB);
        toDevice(2 * MIB, stream);
        copies.forget(stream);
        toDevice(2 * MIB, other);
        assertEquals(1, marks.size());
        marks.remove().run();
        toDevice(2 * MIB, stream);
        copies.forget(stream);
        toDevice(MIB, other);
        copies.forget(other);
        assertTrue(marks.isEmpty());
        toDevice(0, other);
    }
}
