package io.hawser.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Instant;
import org.junit.jupiter.api.Test;

class UnitsTest {
    private static final Instant NOW = Instant.parse("2026-11-21T12:00:00Z");

    @Test
    void shouldReadSizesInPowersOf1024() {
        assertEquals(16L << 30, Units.bytes("16G"));
        assertEquals(16L << 30, Units.bytes("16GiB"));
        assertEquals(16L << 30, Units.bytes("16 gib"));
        assertEquals(3L << 29, Units.bytes("1.5G"));
        assertEquals(512L << 20, Units.bytes("512M"));
        assertEquals(4096, Units.bytes("4096"));
        assertEquals(0, Units.bytes("0"));
        assertEquals(7L << 50, Units.bytes("7P"));
    }

    @Test
    void shouldRejectInvalidSizes() {
        for (String text : new String[] {"", "G", "-1G", "16X", "1e3", "16G16", "1.5", "9999999P", "0x10", "16 Gbit"}) {
            assertThrows(IllegalArgumentException.class, () -> Units.bytes(text), text);
        }
    }

    @Test
    void shouldShowSizesAndCounts() {
        assertEquals("0 B", Units.size(0));
        assertEquals("1023 B", Units.size(1023));
        assertEquals("1 KiB", Units.size(1024));
        assertEquals("1.5 KiB", Units.size(1536));
        assertEquals("1 MiB", Units.size((1 << 20) - 1), "rounded up to the next unit");
        assertEquals("141 GiB", Units.size(141L << 30));
        assertEquals("999", Units.count(999));
        assertEquals("1.0M", Units.count(999_999));
        assertEquals("12.3k", Units.count(12_345));
    }

    @Test
    void shouldReadTimes() {
        assertEquals(Instant.parse("2026-12-21T12:00:00Z"), Units.instant("30d", NOW));
        assertEquals(Instant.parse("2026-11-22T00:00:00Z"), Units.instant("12h", NOW));
        assertEquals(Instant.parse("2026-11-28T12:00:00Z"), Units.instant("1w", NOW));
        assertEquals(Instant.parse("2027-01-31T12:00:00Z"), Units.instant("2027-01-31T12:00:00Z", NOW));
        for (String text : new String[] {"", "30", "d", "-1d", "tomorrow", "99999999999999999999d", "9999999999999w"}) {
            assertThrows(IllegalArgumentException.class, () -> Units.instant(text, NOW), text);
        }
    }

    @Test
    void shouldShowAges() {
        assertEquals("0s", Units.age("2026-11-21T12:00:07Z", NOW), "a clock that is ahead");
        assertEquals("119s", Units.age("2026-11-21T11:58:01Z", NOW));
        assertEquals("5m", Units.age("2026-11-21T11:54:01Z", NOW));
        assertEquals("47h", Units.age("2026-11-19T12:30:00Z", NOW));
        assertEquals("12d", Units.age("2026-11-09T11:00:00Z", NOW));
        assertEquals("", Units.age("soon", NOW));
    }
}
