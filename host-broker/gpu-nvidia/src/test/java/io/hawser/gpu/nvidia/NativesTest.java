package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NativesTest {
    @ParameterizedTest
    @CsvSource({"700, true", "719, true", "805, true", "806, true", "810, true", "0, false", "1, false", "2, false",
        "807, false", "808, false", "600, false"})
    void shouldKnowTheErrorsAfterWhichAProcessCanWorkNoMore(int result, boolean isPoisoned) {
        assertEquals(isPoisoned, Natives.isPoisoned(result));
    }
}
