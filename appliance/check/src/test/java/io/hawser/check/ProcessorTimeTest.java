package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ProcessorTimeTest {
    private static final String STAT = "17 (a ) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 700 100 20 0";

    @Test
    void shouldReadTheTimesBehindAnyName() {
        assertEquals(2, ProcessorTime.seconds(STAT, 14));
        assertEquals(8, ProcessorTime.seconds(STAT, 16));
    }

    @Test
    void shouldCountEndedChildrenOfThisProcess() throws Exception {
        double before = ProcessorTime.ofEndedChildren();
        Process busy = new ProcessBuilder("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done").start();
        assertEquals(0, busy.waitFor());
        assertTrue(ProcessorTime.ofEndedChildren() > before);
        assertTrue(ProcessorTime.ofChildren(ProcessHandle.current()) >= ProcessorTime.ofEndedChildren());
    }
}
