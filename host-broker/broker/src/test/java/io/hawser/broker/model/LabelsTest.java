package io.hawser.broker.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class LabelsTest {
    private static void assertInvalid(String rule, Map<String, String> labels) {
        VgpuException refused = assertThrows(VgpuException.class, () -> Labels.of(labels));
        assertEquals(VgpuException.Kind.INVALID, refused.kind());
        assertTrue(refused.getMessage().contains(rule), refused.getMessage());
    }

    private static Map<String, String> many(int count, int characters) {
        Map<String, String> labels = new TreeMap<>();
        for (int i = 0; i < count; i++) {
            labels.put(("%02d" + "k".repeat(61)).formatted(i), "v".repeat(characters));
        }
        return labels;
    }

    @Test
    void shouldReadItsOwnText() throws VgpuException {
        for (Map<String, String> labels : List.of(Map.<String, String>of(), Map.of("job", "12"),
            Map.of("a", "", "b.c/d-e",
                "x=y = z", "z", "grün"),
            many(16, 128))) {
            assertEquals(labels, Labels.parse(Labels.of(labels).text()).map());
            assertTrue(Labels.of(labels).text().length() <= 4096, "the column must hold all labels");
        }
    }

    @Test
    void shouldRefuseLabelsThatItCouldNotStoreOrShow() throws VgpuException {
        assertInvalid("at most 16 labels: labels=17", many(17, 1));
        for (String key : List.of("", "A", "a b", "a=b", "a\nb", "k".repeat(64))) {
            assertInvalid("the key of a label must match", Map.of(key, "v"));
        }
        for (String value : List.of("a\nb", "\u0000", "\u001b[31m", "\u2028", "\u202e", "\ud800", "v".repeat(129))) {
            assertInvalid("the value of a label must have at most 128", Map.of("k", value));
        }
        Map<String, String> none = new TreeMap<>();
        none.put("k", null);
        assertInvalid("value=null", none);
    }

    @Test
    void shouldFindALabelByKeyAndValue() throws VgpuException {
        Labels labels = Labels.of(Map.of("job", "12", "empty", ""));
        assertTrue(labels.contains("job=12"));
        assertTrue(labels.contains("empty="));
        assertFalse(labels.contains("job=1"));
        assertFalse(labels.contains("other="));
        assertThrows(VgpuException.class, () -> labels.contains("job"));
    }
}
