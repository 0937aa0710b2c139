package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

class TableTest {
    private static Table table() {
        Table table = new Table("lr", "name", "us");
        table.row("a|b", "1.00");
        return table;
    }

    @Test
    void shouldAlignColumns() {
        assertEquals("name    us\na|b   1.00\n", table().text(false));
    }

    @Test
    void shouldEscapeInMarkdown() {
        assertEquals("| name | us |\n|---|---:|\n| a\\|b | 1.00 |\n", table().text(true));
    }

    @Test
    void shouldRefuseARowOfAnotherLength() {
        assertThrows(IllegalArgumentException.class, () -> table().row("a"));
    }
}
