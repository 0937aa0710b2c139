package io.hawser.worker.channel.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.worker.channel.RecordHandler;
import io.hawser.worker.channel.RecordHeader;
import io.hawser.worker.memory.StagingPool.Staging;
import io.netty.channel.SelectStrategy;
import io.netty.util.IntSupplier;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class SpinningSelectTest {
    private static final IntSupplier NOTHING = () -> 0;
    private static final int MANY = 10_000_000; // looks: a spin is bounded by time

    /** A session that only has work that ends. */
    private static final class Session implements RecordHandler {
        private boolean polled;
        private boolean worth;
        private int ends;
        private int polls;

        @Override
        public boolean poll() {
            assertTrue(polled, "asked after it was told that it is not");
            polls++;
            return ends-- > 0;
        }

        @Override
        public boolean isWorthPolling() {
            return worth;
        }

        @Override
        public void polled(boolean now) {
            polled = now;
        }

        @Override
        public boolean admit(RecordHeader header) {
            throw new AssertionError();
        }

        @Override
        public Staging memoryFor(int bytes) {
            throw new AssertionError();
        }

        @Override
        public void giveBack(Staging memory) {
            throw new AssertionError();
        }

        @Override
        public boolean record(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
            throw new AssertionError();
        }

        @Override
        public void refuse(String reason) {
            throw new AssertionError();
        }

        @Override
        public void drained() {
            throw new AssertionError();
        }

        @Override
        public void gone(String reason) {
            throw new AssertionError();
        }
    }

    private final Session session = new Session();
    private final SpinningSelect select = new SpinningSelect(true);

    private int looksUntilSleep() throws Exception {
        for (int looks = 1; looks < MANY; looks++) {
            if (select.calculateStrategy(NOTHING, false) == SelectStrategy.SELECT) {
                return looks;
            }
        }
        throw new AssertionError("it never sleeps");
    }

    @Test
    void shouldDoAsNettyDoesWithoutASession() throws Exception {
        assertEquals(SelectStrategy.SELECT, select.calculateStrategy(NOTHING, false));
        assertEquals(3, select.calculateStrategy(() -> 3, true));
    }

    @Test
    void shouldNeverSpinWhereItIsNotWanted() throws Exception {
        SpinningSelect sleeps = new SpinningSelect(false);
        sleeps.attend(session);
        assertEquals(SelectStrategy.SELECT, sleeps.calculateStrategy(NOTHING, false));
        assertFalse(session.polled);
        assertEquals(0, session.polls);
    }

    @Test
    void shouldLookForEndsUntilItSleepsAndSayThatItDoesNotAnyMore() throws Exception {
        select.attend(session);
        session.ends = 3;
        int looks = looksUntilSleep();
        assertEquals(looks, session.polls);
        assertTrue(looks > 3, "ends of work are no reason to sleep");
        assertFalse(session.polled);
    }

    @Test
    void shouldPollAgainBeforeWhatHasComeIsServed() throws Exception {
        select.attend(session);
        looksUntilSleep();
        select.awake();
        assertTrue(session.polled);
        looksUntilSleep();
        assertEquals(1, select.calculateStrategy(() -> 1, false));
        assertTrue(session.polled);
    }

    @Test
    void shouldGoOnAsLongAsTheDeviceIsWorthIt() throws Exception {
        select.attend(session);
        session.worth = true;
        // On a crowded machine it may sleep early, as it should; not each time.
        boolean wentOn = false;
        for (int wait = 0; wait < 500 && !wentOn; wait++) {
            long endNs = System.nanoTime() + 1_000_000; // twenty times what it spins for a guest
            boolean goesOn = true;
            while (goesOn && System.nanoTime() < endNs) {
                goesOn = select.calculateStrategy(NOTHING, false) == SelectStrategy.CONTINUE;
            }
            wentOn = goesOn;
        }
        assertTrue(wentOn, "it sleeps although the device is worth it");
        session.worth = false;
        looksUntilSleep();
    }

    @Test
    void shouldLeaveTheSessionAlone() throws Exception {
        select.attend(session);
        select.leave();
        assertFalse(session.polled);
        int polls = session.polls;
        select.awake();
        assertEquals(SelectStrategy.SELECT, select.calculateStrategy(NOTHING, false));
        assertEquals(polls, session.polls);
    }
}
