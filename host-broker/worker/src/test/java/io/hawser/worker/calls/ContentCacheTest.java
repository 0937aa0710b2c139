package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class ContentCacheTest {
    private static final int KEY_BYTES = 312;
    private static final int CONTENTS = 100_000;

    @Test
    void shouldFindObjectExactlyForEqualContents() {
        ContentCache<Integer> cache = new ContentCache<>(KEY_BYTES, CONTENTS, gone -> {});
        Map<String, Integer> expected = new HashMap<>();
        Random random = new Random(1);
        for (int i = 0; i < CONTENTS; i++) {
            // Few bytes that differ: collisions of sums would show, and contents repeat.
            cache.wanted().fill((byte) 0);
            long at = random.nextInt(KEY_BYTES);
            byte value = (byte) random.nextInt(64);
            long other = random.nextInt(KEY_BYTES);
            cache.wanted().set(ValueLayout.JAVA_BYTE, at, value);
            cache.wanted().set(ValueLayout.JAVA_BYTE, other, (byte) (value + 1));
            String text = HexFormat.of().formatHex(cache.wanted().toArray(ValueLayout.JAVA_BYTE));
            int made = i;
            assertEquals(expected.computeIfAbsent(text, key -> made), cache.findOrMake(() -> made));
        }
        assertEquals(expected.size(), cache.size());
    }

    @Test
    void shouldDropTheObjectThatWasNotUsedForLongest() {
        List<String> gone = new ArrayList<>();
        ContentCache<String> cache = new ContentCache<>(8, 2, gone::add);
        for (String name : new String[] {"a", "b", "a", "c"}) {
            cache.wanted().set(ValueLayout.JAVA_LONG, 0, name.charAt(0));
            assertEquals(name, cache.findOrMake(() -> name));
        }
        assertEquals(List.of("b"), gone);
        cache.wanted().set(ValueLayout.JAVA_LONG, 0, 'b');
        assertNull(cache.find());
    }
}
