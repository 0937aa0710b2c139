package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.worker.session.Gates.Gate;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class GatesTest {
    private final Gates gates = new Gates();
    private final List<Integer> ran = new ArrayList<>();

    @Test
    void shouldRunAtOnceWithoutGates() {
        gates.whenClosed(() -> ran.add(1));
        assertEquals(List.of(1), ran);
        assertFalse(gates.runWaiting());
    }

    @Test
    void shouldRunInOrderWhenLastGateIsClosed() {
        Gate first = gates.open();
        Gate second = gates.open();
        gates.whenClosed(() -> ran.add(1));
        gates.close(first);
        assertFalse(gates.runWaiting());
        gates.close(second);
        gates.whenClosed(() -> ran.add(2)); // behind the action that still waits
        assertEquals(List.of(), ran);
        assertTrue(gates.runWaiting());
        assertEquals(List.of(1, 2), ran);
    }

    @Test
    void shouldPostponeActionsAfterOneThatOpensGate() {
        Gate gate = gates.open();
        gates.whenClosed(() -> {
            ran.add(1);
            gates.open();
        });
        gates.whenClosed(() -> ran.add(2));
        gates.close(gate);
        gates.runWaiting();
        assertEquals(List.of(1), ran);
    }

    @Test
    void shouldCountWorkBehindOldestOpenGate() {
        Gate first = gates.open();
        gates.issued(Gates.MAX_BEHIND - 1);
        Gate second = gates.open();
        assertFalse(gates.isFull());
        gates.issued(1);
        assertTrue(gates.isFull());
        gates.close(first);
        assertFalse(gates.isFull());
        gates.issued(Gates.MAX_BEHIND - 1);
        assertTrue(gates.isFull());
        gates.close(second);
        assertFalse(gates.isFull());
    }

    @Test
    void shouldNotCountWorkThatHasEnded() {
        gates.open();
        gates.issued(Gates.MAX_BEHIND);
        assertTrue(gates.isFull());
        gates.ended(1);
        assertFalse(gates.isFull());
        gates.issued(1);
        assertTrue(gates.isFull());
    }

    @Test
    void shouldAskForEndsBeforeItIsFull() {
        gates.open();
        int asked = 0;
        for (int i = 0; i < Gates.MAX_BEHIND; i++) {
            assertFalse(gates.isFull());
            asked += gates.issued(1) ? 1 : 0;
        }
        assertTrue(gates.isFull());
        assertTrue(asked > 1, "asked in good time and at the limit: " + asked);
        gates.ended(Gates.MAX_BEHIND);
        assertFalse(gates.issued(1));
    }

    @Test
    void shouldCountGatesThatCloseInAnyOrderOnce() {
        Gate first = gates.open();
        Gate second = gates.open();
        gates.close(second);
        gates.close(second);
        assertTrue(gates.isOpen());
        gates.close(first);
        assertFalse(gates.isOpen());
    }

    @Test
    void shouldNotPostponeForeverWhileGatesOverlap() {
        Gate last = gates.open();
        gates.whenClosed(() -> ran.add(1));
        int opened = 0;
        while (!gates.mustDrain()) {
            Gate next = gates.open();
            gates.close(last);
            last = next;
            assertTrue(++opened < 1000, "no more gates open at some time");
        }
        gates.close(last);
        gates.runWaiting();
        assertEquals(List.of(1), ran);
        gates.open();
        assertFalse(gates.mustDrain(), "the count starts again");
    }

    @Test
    void shouldLetGatesOpenWhileOneIsOlderThanPostponedAction() {
        Gate old = gates.open();
        gates.whenClosed(() -> ran.add(1));
        for (int i = 0; i < 1000; i++) {
            gates.close(gates.open());
            assertFalse(gates.mustDrain(), "the guest may need them to close the old one");
        }
        Gate late = gates.open();
        gates.close(old);
        assertTrue(gates.mustDrain(), "now only later gates delay the action");
        gates.close(late);
        gates.runWaiting();
        assertEquals(List.of(1), ran);
    }
}
