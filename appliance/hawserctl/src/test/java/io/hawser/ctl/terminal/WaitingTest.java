package io.hawser.ctl.terminal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class WaitingTest {
    @Test
    void shouldShowTheSecondsAndRemoveTheLine() throws Exception {
        StringWriter shown = new StringWriter();
        try (Waiting waiting = Waiting.start(new PrintWriter(shown), "moving a", true)) {
            while (!shown.toString().contains("\rmoving a, 1 s")) {
                Thread.onSpinWait();
            }
        }
        assertTrue(shown.toString().endsWith(" \r"), shown.toString());
    }

    @Test
    void shouldShowNothingForAQuickAnswerOrWithoutATerminal() {
        StringWriter shown = new StringWriter();
        Waiting.start(new PrintWriter(shown), "moving a", true).close();
        Waiting.start(new PrintWriter(shown), "moving a", false).close();
        assertEquals("", shown.toString());
    }
}
