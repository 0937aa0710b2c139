package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Instant;
import java.util.List;
import java.util.OptionalDouble;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class MovesCheckTest {
    @Test
    void shouldReadLossesAndTimes() {
        String output = "a warning\nloss 0 0x1.8p+2\nloss 1 0x1.7p+2\nslowest step: 12.5 ms\n";
        assertEquals(List.of("loss 0 0x1.8p+2", "loss 1 0x1.7p+2"), MovesCheck.losses(output));
        Pattern slowest = Pattern.compile("^slowest step: ([0-9.]+) ms", Pattern.MULTILINE);
        assertEquals(12.5, MovesCheck.number(slowest, output));
        assertThrows(CheckException.class, () -> MovesCheck.number(slowest, "loss 0 0x1.8p+2\n"));
    }

    @Test
    void shouldChooseDefaultsByTheGpu() throws UsageException {
        MovesOptions nvidia = MovesOptions.parse(true);
        assertEquals(MovesOptions.SETS, nvidia.sets());
        assertEquals(20_480, nvidia.mib());
        MovesOptions software = MovesOptions.parse(true, "--backend", "software", "--moves", "2");
        assertEquals(List.of("memory"), software.sets());
        assertEquals(64, software.mib());
        assertEquals(2, software.moves());
        assertEquals("software", software.backend());
        assertThrows(UsageException.class, () -> MovesOptions.parse(true, "--sets", "nothing"));
        assertThrows(UsageException.class, () -> MovesOptions.parse(true, "--moves", "0"));
        assertThrows(UsageException.class,
            () -> MovesOptions.parse(true, "--database", "jdbc:postgresql://127.0.0.1/a", "--carrier", "shm"));
    }

    @Test
    void shouldReportAnotherResultAndReasons() throws UsageException {
        MovesRun run = new MovesRun("gpt", List.of(900L, 1200L, 1000L), List.of("it has called f"),
            OptionalDouble.of(9), 1100, false);
        MovesReport report = new MovesReport(Instant.EPOCH, Machine.here(), MovesOptions.parse(true),
            "between two GPUs", 2, List.of(run), List.of(), List.of());
        assertFalse(report.isGood());
        String text = report.text(false);
        assertTrue(text.contains("DIFFERENT"), text);
        assertTrue(text.contains("gpt: not moved: it has called f"), text);
        assertEquals(1000, run.medianMs());
        assertEquals(1200, run.worstMs());
    }
}
