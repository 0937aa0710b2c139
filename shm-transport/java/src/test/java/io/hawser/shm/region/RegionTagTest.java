package io.hawser.shm.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RegionTagTest {
    private static final long REGION_BYTES = 16L << 20;

    @Test
    void shouldBeFoundWhereItWasWrittenUntilTheRegionIsFormatted(@TempDir Path folder) throws IOException {
        RegionTag tag = RegionTag.random();
        try (Arena arena = Arena.ofConfined();
            FileChannel file = FileChannel.open(folder.resolve("region"), StandardOpenOption.CREATE_NEW,
                StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            MemorySegment region = file.map(MapMode.READ_WRITE, 0, REGION_BYTES, arena);
            assertFalse(tag.isIn(region));
            tag.write(file);
            assertTrue(tag.isIn(region));
            assertFalse(RegionTag.random().isIn(region));

            new RegionHeader(1, 2, 3, 0, "default", RegionGeometry.of(REGION_BYTES, 1)).format(region);
            assertFalse(tag.isIn(region), "the format must take the tag away");

            // After a restart of the broker, the tag does not change a header that guests use.
            byte[] before = region.asSlice(0, RegionLayout.HEADER_TAG_OFFSET)
                .toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
            tag.write(file);
            assertEquals(-1, MemorySegment.ofArray(before).mismatch(region.asSlice(0, before.length)));
        }
    }

    @Test
    void shouldBeAnotherTagEachTime() {
        Set<RegionTag> tags = new HashSet<>();
        for (int i = 0; i < 1000; i++) {
            assertTrue(tags.add(RegionTag.random()));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "0", "00000000000000000000000000000000", "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdef0", "0123456789ABCDEF0123456789abcdef", "0123456789abcdef0123456789abcdeg",
        "0123456789abcdef0123456789abcde\n", " 0123456789abcdef0123456789abcdef"})
    void shouldRefuseAnInvalidTagWithoutRevealingIt(String text) {
        String message = assertThrows(IllegalArgumentException.class, () -> new RegionTag(text)).getMessage();
        assertTrue(text.length() < 10 || !message.contains(text), message);
    }

    @Test
    void shouldHideItselfFromLogs() {
        RegionTag tag = RegionTag.random();
        assertNotEquals(tag.hex(), tag.toString());
        assertTrue(tag.toString().length() < 16);
    }
}
