package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SwapsReportTest {
    private static final Moves OUT = new Moves(3, 1, 12_000_000_000L, OptionalDouble.of(54.4), OptionalDouble.of(31));
    private static final Moves IN = new Moves(0, 0, 0, OptionalDouble.empty(), OptionalDouble.empty());

    @TempDir
    Path folder;

    private static SwapsReport report(double series, List<String> defects) throws UsageException {
        SwapRun run = new SwapRun("series", Map.of("at once", 44.8), "series / at once", series,
            new Target(Target.Kind.AT_LEAST, 0.9), OUT, IN);
        return new SwapsReport(Instant.EPOCH, new Machine("p", 2, 3, "s", ""), SwapsOptions.parse(false),
            OptionalDouble.of(13.87), new SwapsReport.Keeper(604, 2), List.of(run), defects);
    }

    private static List<String> lines(SwapsReport report) {
        return report.text(false).lines().map(line -> line.replaceAll(" +", " ")).toList();
    }

    @Test
    void shouldShowTimesMovesAndGoals() throws UsageException {
        List<String> lines = lines(report(0.94, List.of()));
        assertTrue(lines.containsAll(List.of("the keeper had 604 MiB after 2 s",
            "a tenant's program alone, natively: 13.870 s", "at once 44.8", "out of the GPU 3 1 12.0 54.4 31.0",
            "in 0 0 0.000 - -", "series: series / at once shm 0.940 - >= 0.90 yes")), lines::toString);
    }

    @Test
    void shouldNotFailByAMissedGoal() throws UsageException {
        SwapsReport report = report(0.89, List.of());
        assertTrue(lines(report).contains("series: series / at once shm 0.890 - >= 0.90 no"));
        assertTrue(report.isGood());
    }

    @Test
    void shouldFailByADefect() throws UsageException {
        SwapsReport report = report(0.94, List.of("swaps.log: internal error"));
        assertFalse(report.isGood());
        assertTrue(lines(report).contains("defect: swaps.log: internal error"));
    }

    @Test
    void shouldWriteAllFigures() throws UsageException, IOException {
        Path file = folder.resolve("swaps.json");
        report(0.94, List.of()).write(file);
        JsonNode root = new ObjectMapper().readTree(file.toFile());
        assertEquals(44.8, root.at("/runs/0/seconds/at once").asDouble());
        assertEquals(31, root.at("/runs/0/out/worstGBs").asDouble());
        assertTrue(root.at("/runs/0/in/worstGBs").isMissingNode());
        assertEquals("7230M", root.at("/options/memory").asText());
        assertTrue(root.at("/figures/0/reached").asBoolean());
    }
}
