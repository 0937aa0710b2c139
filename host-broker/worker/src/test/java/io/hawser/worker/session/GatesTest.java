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
        assertFalse(gates.mustHoldRecords());
        gates.issued(1);
        assertTrue(gates.mustHoldRecords());
        gates.close(first);
        assertFalse(gates.mustHoldRecords());
        gates.issued(Gates.MAX_BEHIND - 1);
        assertTrue(gates.mustHoldRecords());
        gates.close(second);
        assertFalse(gates.mustHoldRecords());
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
        while (!gates.mustHoldRecords()) {
            Gate next = gates.open();
            gates.close(last);
            last = next;
            assertTrue(++opened < 1000, "records are held at some time");
        }
        gates.close(last);
        gates.runWaiting();
        assertEquals(List.of(1), ran);
        gates.open();
        assertFalse(gates.mustHoldRecords(), "the count starts again");
    }
}
