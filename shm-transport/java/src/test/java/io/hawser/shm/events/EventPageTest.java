package io.hawser.shm.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.Descriptors;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class EventPageTest {
    private static final int ME = 7;
    private static final int OTHER = -8;

    private final EventPage page;

    EventPageTest() throws IOException {
        int descriptor = EventPage.create();
        page = EventPage.map(descriptor);
        Descriptors.close(descriptor);
    }

    @AfterEach
    void close() {
        page.close();
    }

    private void reach(int number) {
        page.value(number).set(ValueLayout.JAVA_INT, 0, number);
    }

    @Test
    void shouldBeDoneBeforeTheFirstRecord() {
        assertEquals(0, page.latest());
        assertTrue(page.isDone(page.latest()));
    }

    @Test
    void shouldFollowTheLatestRecord() throws IOException {
        int first = page.claim(ME);
        int second = page.claim(OTHER);
        assertEquals(second, page.latest());
        reach(second);
        assertTrue(page.isDone(second), "in any order");
        assertFalse(page.isDone(first));
        reach(first);
        assertTrue(page.isDone(first));
    }

    @Test
    void shouldKeepARecordDoneWhenItsSlotIsUsedAgain() throws IOException {
        int first = page.claim(ME);
        reach(first);
        for (int i = 0; i < EventPage.SLOTS; i++) {
            reach(page.claim(ME));
        }
        assertTrue(page.isDone(first));
    }

    @Test
    void shouldWrap() throws IOException {
        page.memory().set(ValueLayout.JAVA_INT, 0, Integer.MAX_VALUE - 1);
        for (int slot = 0; slot < EventPage.SLOTS; slot++) { // as after the records before
            int number = Integer.MAX_VALUE - 1 - slot;
            page.memory().set(ValueLayout.JAVA_LONG, 64 + 16L * Math.floorMod(number, EventPage.SLOTS) + 8, number);
            reach(number);
        }
        for (int i = 0; i < 3 * EventPage.SLOTS; i++) {
            int number = page.claim(ME);
            assertEquals(Integer.MAX_VALUE + i, number);
            assertFalse(page.isDone(number));
            reach(number);
            assertTrue(page.isDone(number));
        }
    }

    @Test
    void shouldCompleteOnlyRecordsOfTheEndedSession() throws IOException {
        int mine = page.claim(ME);
        int other = page.claim(OTHER);
        page.endRecords(OTHER);
        assertFalse(page.isDone(mine));
        assertTrue(page.isDone(other));
        page.endRecords(ME);
        assertTrue(page.isDone(mine));
    }

    @Test
    void shouldGoOnAfterAWorkerThatDiedWithItsClaim() throws IOException {
        int dead = page.claim(OTHER);
        page.memory().set(ValueLayout.JAVA_INT, 0, dead - 1); // it has claimed, but not advanced the latest number
        int next = page.claim(ME);
        assertEquals(dead + 1, next);
        page.endRecords(OTHER);
        assertTrue(page.isDone(dead));
        assertFalse(page.isDone(next));
    }

    @Test
    void shouldNotDecreaseValues() throws IOException {
        int first = page.claim(ME);
        int again = first + EventPage.SLOTS;
        reach(again);
        page.complete(first);
        assertTrue(page.isDone(again));
    }

    @Test
    void shouldGiveEachNumberOnceToThreads() throws Exception {
        int each = 5000;
        List<Integer> taken = Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            int recorder = i;
            threads.add(Thread.ofPlatform().start(() -> {
                try {
                    for (int k = 0; k < each; k++) {
                        taken.add(page.claim(recorder));
                    }
                } catch (IOException e) {
                    taken.clear();
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(4 * each, new HashSet<>(taken).size());
        assertEquals(4 * each, page.latest());
    }

    @Test
    void shouldEndWithAnyBytesInThePage() {
        Random random = new Random(15);
        byte[] bytes = new byte[EventPage.PAGE_BYTES];
        for (int round = 0; round < 2000; round++) {
            random.nextBytes(bytes);
            page.memory().copyFrom(java.lang.foreign.MemorySegment.ofArray(bytes));
            page.isDone(page.latest());
            page.endRecords(random.nextInt(4));
            page.complete(random.nextInt());
            try {
                page.claim(ME);
            } catch (IOException e) {
                assertTrue(e.getMessage().contains("must get a number"), e.getMessage());
            }
        }
    }

    @Test
    void shouldRefuseToClaimWhatAHostileWorkerHolds() {
        page.memory().set(ValueLayout.JAVA_LONG, 64 + 16 + 8, 2); // slot 1 has a later number than it can
        assertThrows(IOException.class, () -> page.claim(ME));
    }
}
