package io.hawser.broker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MpsFaultTest {
    /** Errors that an H200's workers reported after drv_fault and after the server's end (driver 580.159), and 810. */
    @ParameterizedTest
    @CsvSource({"700, CLIENT", "719, CLIENT", "806, SERVER", "805, SERVER", "810, TERMINATED"})
    void shouldTellAClientsFaultFromTheServers(long result, MpsFault fault) {
        assertEquals(fault, MpsFault.of(result));
    }
}
