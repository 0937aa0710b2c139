package io.hawser.ctl.terminal;

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
    void shouldInsertAColumnBehindTheFirst() {
        assertEquals(List.of("  N  AT  SIZE", "  1  b     12", "100  -      7"),
            new Table(">N", ">SIZE").row(1, 12).row(100, 7).withSecond("AT", List.of("b", "-")).lines());
    }
}
