package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.check.ProgramResult.Verdict;
import java.io.IOException;
import java.time.Instant;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class FrameworkCaseTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static JsonNode json(String text) {
        try {
            return JSON.readTree(text);
        } catch (IOException e) {
            throw new IllegalArgumentException(text, e);
        }
    }

    private static FrameworkRun run(boolean hung, String carrier, String... lines) {
        return FrameworkRun.of(new ProgramRun(hung, 0, String.join("\n", lines), "", 1,
            carrier.isEmpty() ? List.of() : List.of(carrier), 10, 2));
    }

    private static String result(String result, String more) {
        return "{\"case\": \"a\", \"steps\": 0, \"tolerance\": 0.0" + more + ", \"result\": " + result + "}";
    }

    /** A case with one native run and one over shared memory. */
    private static FrameworkCase of(FrameworkRun natively, FrameworkRun shm) {
        Map<Way, List<FrameworkRun>> runs = new EnumMap<>(Way.class);
        runs.put(Way.NATIVE, List.of(natively));
        runs.put(Way.SHM, List.of(shm));
        return new FrameworkCase("script", "a", runs, Map.of());
    }

    @Test
    void shouldReadWhatAScriptPrints() {
        FrameworkRun run = run(false, "shm", "{\"framework\": \"torch\", \"version\": \"2\"}", "a warning", "{not json",
            result("[1.5]", ""));
        assertEquals("torch 2", run.framework());
        assertEquals(List.of("a"), List.copyOf(run.cases().keySet()));
        assertEquals("numba", run(false, "", "{\"missing\": \"numba\"}").missing());
    }

    @Test
    void shouldTellTheTimesOfARunAtItsEnd() {
        FrameworkRun run = run(false, "shm", result("[1.5]", ", \"seconds\": 0.0185"),
            "{\"case\": \"b\", \"error\": \"OSError: none\"}");
        assertEquals("a 18.5 ms, b failed, 1 s in all", run.summary());
        assertTrue(run(true, "", "").summary().contains("killed"));
    }

    @Test
    void shouldWantEqualBitsWithoutTolerance() {
        FrameworkRun natively = run(false, "", result("[1.0, 2.0]", ""));
        assertEquals(Verdict.RIGHT, of(natively, run(false, "shm", result("[1.0, 2.0]", ""))).verdict(Way.SHM));
        FrameworkCase wrong = of(natively, run(false, "shm", result("[1.0, 2.0000000001]", "")));
        assertEquals(Verdict.WRONG, wrong.verdict(Way.SHM));
        assertTrue(wrong.remark(Way.SHM).contains("2.0000000001"), wrong.remark(Way.SHM));
        assertEquals(Verdict.WRONG, of(natively, run(false, "shm", result("[1.0]", ""))).verdict(Way.SHM));
        assertFalse(new FrameworkReport(Instant.EPOCH, Machine.here(), List.of(), Map.of(), List.of(), List.of(wrong),
            List.of()).isGood());
    }

    @Test
    void shouldMeasureToleranceByTheLargestNumber() {
        assertTrue(FrameworkRun.agree(json("[1e-9, 100]"), json("[2e-9, 100.001]"), 1e-4));
        assertFalse(FrameworkRun.agree(json("[1e-9, 100]"), json("[2e-9, 100.1]"), 1e-4));
        assertFalse(FrameworkRun.agree(json("[true, 100]"), json("[false, 100]"), 1));
        assertFalse(FrameworkRun.agree(json("[1]"), json("\"not a number\""), 1));
    }

    @Test
    void shouldNotCallAMissingResultRight() {
        FrameworkRun natively = run(false, "", result("1", ""));
        assertEquals(Verdict.WRONG, of(natively, run(false, "shm")).verdict(Way.SHM));
        assertEquals(Verdict.HUNG, of(natively, run(true, "shm")).verdict(Way.SHM));
        assertEquals(Verdict.WRONG, of(natively, run(false, "shm", "{\"case\": \"a\", \"error\": \"no\"}"))
            .verdict(Way.SHM));
        assertEquals(Verdict.WRONG, of(natively, run(false, "tcp", result("1", ""))).verdict(Way.SHM));
        assertEquals(Verdict.WRONG, of(natively, run(false, "", result("1", ""))).verdict(Way.SHM));
        assertFalse(
            new FrameworkReport(Instant.EPOCH, Machine.here(), List.of(), Map.of(), List.of(), List.of(), List.of())
                .isGood());
    }

    @Test
    void shouldNotBlameHawserForWhatFailsNatively() {
        FrameworkCase failed = of(run(false, "", "{\"case\": \"a\", \"error\": \"no such function\"}"),
            run(false, "shm", "{\"case\": \"a\", \"error\": \"no such function\"}"));
        assertEquals(Verdict.NOT_HERE, failed.verdict(Way.NATIVE));
        assertEquals(Verdict.NOT_HERE, failed.verdict(Way.SHM));
    }

    @Test
    void shouldReportTheMedianOfTheRuns() {
        Map<Way, List<FrameworkRun>> runs = new EnumMap<>(Way.class);
        runs.put(Way.SHM, List.of(run(false, "shm", result("1", ", \"seconds\": 3")), run(false, "shm", result("1",
            ", \"seconds\": 1")), run(false, "shm", result("1", ", \"seconds\": 9"))));
        assertEquals(3, new FrameworkCase("script", "a", runs, Map.of()).seconds(Way.SHM).orElseThrow());
    }
}
