package io.hawser.shm.layout;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.layout.RegionDescription.Block;
import io.hawser.shm.layout.RegionDescription.Field;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class RegionDescriptionTest {
    private static final int LINE = 64;

    @Test
    void shouldKeepRingPositionsOfDifferentWritersAndRingsOnLinesOfTheirOwn() throws Exception {
        RegionDescription region = RegionDescription.load();
        Set<String> seen = new HashSet<>();
        for (String name : List.of("commandTail", "replyHead", "commandHead", "replyTail", "commandSignal",
            "replySignal")) {
            Block block = region.blocks().stream().filter(b -> b.fields().stream().anyMatch(f -> f.name().equals(name)))
                .findFirst().orElseThrow();
            Field field = block.fields().stream().filter(f -> f.name().equals(name)).findFirst().orElseThrow();
            assertTrue(seen.add(block.name() + field.offset() / LINE), name);
        }
    }

    @Test
    void shouldSpellTheMagicInMemory() throws Exception {
        long magic = RegionDescription.load().constants().stream().filter(c -> c.name().equals("REGION_MAGIC"))
            .findFirst().orElseThrow().value();
        StringBuilder letters = new StringBuilder();
        for (int i = 0; i < 8; i++) {
            letters.append((char) (magic >>> 8 * i & 0xFF));
        }
        assertEquals("HAWSERRG", letters.toString());
    }

    @Test
    void shouldRefuseOverlappingOrMisalignedFields() {
        assertThrows(IllegalArgumentException.class, () -> region(0, 4).checked());
        assertThrows(IllegalArgumentException.class, () -> region(4, 12).checked());
        region(0, 8).checked();
    }

    private static RegionDescription region(int first, int second) {
        return new RegionDescription(1, List.of(new Block("A", "host", "", List.of(
            new Field("one", "u64", first, ""), new Field("two", "u32", second, "")))), List.of());
    }
}
