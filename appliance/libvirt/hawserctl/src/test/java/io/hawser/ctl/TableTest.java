package io.hawser.ctl;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class TableTest {
    @Test
    void shouldAlignTextToTheLeftAndNumbersToTheRight() {
        assertEquals(List.of("NAME     SIZE  NOTE", "a       1 MiB", "longer   12 B  ä b"),
            new Table("NAME", ">SIZE", "NOTE").row("a", "1 MiB", "").row("longer", " 12 B", "ä b").lines());
    }

    @Test
    void shouldNotLetTextOfGuestsCommandTheTerminal() {
        assertEquals("?[2J??x", Table.printable("\033[2J\r\u009bx"));
        assertEquals("a?b", Table.printable("a\u202eb"), "writing from right to left");
        assertEquals("grün 日本", Table.printable("grün 日本"));
    }
}
