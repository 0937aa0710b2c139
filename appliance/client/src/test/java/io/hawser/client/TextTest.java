package io.hawser.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class TextTest {
    @Test
    void shouldNotLetTextOfGuestsCommandTheTerminal() {
        assertEquals("?[2J??x", Text.printable("\033[2J\r\u009bx"));
        assertEquals("a?b", Text.printable("a\u202eb"), "writing from right to left");
        assertEquals("grün 日本", Text.printable("grün 日本"));
    }
}
