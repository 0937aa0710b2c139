package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StartRulesTest {
    @ParameterizedTest
    @CsvSource({"1,2,1,1", "4,2,1,1", "8,3,2,1", "16,6,4,1", "64,24,16,4"})
    void shouldDeriveLimitsFromProcessors(int processors, int atOnce, int ration, int refill) {
        assertEquals(new StartRules(atOnce, ration, refill, 32), StartRules.of(processors, 0, 32));
    }

    @ParameterizedTest
    @CsvSource({"1,5", "64,1"})
    void shouldPreferTheSetting(int processors, int maxStarting) {
        assertEquals(maxStarting, StartRules.of(processors, maxStarting, 32).atOnce());
    }
}
