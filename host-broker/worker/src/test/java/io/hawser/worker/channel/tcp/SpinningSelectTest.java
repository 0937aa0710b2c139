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
    private static final int MANY = 10_000_000; // number of polls; time limits a spin much earlier

    /** A session whose only work is ends of device work. */
    private static final class PolledSession implements RecordHandler {
        private boolean polled;
        private boolean worth;
        private int ends;
        private int polls;

        @Override
        public boolean poll() {
            assertTrue(polled, "polled although polling was announced to have ended");
            polls++;
            return ends-- > 0;
        }

        @Override
        public boolean isWorthPolling() {
            return worth;
        }

        @Override
        public void setPolled(boolean now) {
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

    private final PolledSession session = new PolledSession();
    private final SpinningSelect select = new SpinningSelect(true);

    private int pollsUntilSleep() throws Exception {
        for (int polls = 1; polls < MANY; polls++) {
            if (select.calculateStrategy(NOTHING, false) == SelectStrategy.SELECT) {
                return polls;
            }
        }
        throw new AssertionError("it never sleeps");
    }

    @Test
    void shouldBehaveLikeNettyWithoutSession() throws Exception {
        assertEquals(SelectStrategy.SELECT, select.calculateStrategy(NOTHING, false));
        assertEquals(3, select.calculateStrategy(() -> 3, true));
    }

    @Test
    void shouldNeverSpinWhenDisabled() throws Exception {
        SpinningSelect sleeps = new SpinningSelect(false);
        sleeps.attend(session);
        assertEquals(SelectStrategy.SELECT, sleeps.calculateStrategy(NOTHING, false));
        assertFalse(session.polled);
        assertEquals(0, session.polls);
    }

    @Test
    void shouldPollUntilItSleepsAndAnnounceTheSleep() throws Exception {
        select.attend(session);
        session.ends = 3;
        int polls = pollsUntilSleep();
        assertEquals(polls, session.polls);
        assertTrue(polls > 3, "ends of work must not let it sleep");
        assertFalse(session.polled);
    }

    @Test
    void shouldPollAgainBeforeServingInput() throws Exception {
        select.attend(session);
        pollsUntilSleep();
        select.awake();
        assertTrue(session.polled);
        pollsUntilSleep();
        assertEquals(1, select.calculateStrategy(() -> 1, false));
        assertTrue(session.polled);
    }

    @Test
    void shouldKeepPollingWhileDeviceIsWorthIt() throws Exception {
        select.attend(session);
        session.worth = true;
        // On a crowded machine it may rightly sleep early, but not every time.
        boolean wentOn = false;
        for (int wait = 0; wait < 500 && !wentOn; wait++) {
            long endNs = System.nanoTime() + 1_000_000; // twenty times the longest spin for a guest
            boolean goesOn = true;
            while (goesOn && System.nanoTime() < endNs) {
                goesOn = select.calculateStrategy(NOTHING, false) == SelectStrategy.CONTINUE;
            }
            wentOn = goesOn;
        }
        assertTrue(wentOn, "it sleeps although the device is worth it");
        session.worth = false;
        pollsUntilSleep();
    }

    @Test
    void shouldNotCallSessionAfterLeave() throws Exception {
        select.attend(session);
        select.leave();
        assertFalse(session.polled);
        int polls = session.polls;
        select.awake();
        assertEquals(SelectStrategy.SELECT, select.calculateStrategy(NOTHING, false));
        assertEquals(polls, session.polls);
    }
}
