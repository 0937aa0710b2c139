package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class SwapsTest {
    @Test
    void shouldReadTheTimeOfAProgramThatPassed() {
        assertEquals(14.061,
            Swaps.seconds("READY\nPASS drv_idle_rounds: 300 rounds over 120 blocks of 7 values in 14.061 s\n"));
    }

    @Test
    void shouldFailWithoutAPass() {
        for (String output : new String[] {"READY\n", "FAIL drv_idle_rounds: in 3.0 s\n", "READY\nPASS p: done\n",
            "not PASS p: in 1.0 s\n"}) {
            assertThrows(CheckException.class, () -> Swaps.seconds(output));
        }
    }

    @Test
    void shouldFindTheKeeperInTheBrokersLog() {
        assertEquals(OptionalLong.empty(), Swaps.keeper("INFO  [Broker] started: pid=7\n"));
        assertEquals(OptionalLong.of(4711), Swaps.keeper("INFO  [Broker] started: pid=7\nINFO  [Swapping] worker 1 "
            + "keeps the memory of swapped sessions: gpu=GPU-1 maxBytes=512 pid=4711\n"));
    }
}
