package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SharesReportTest {
    @TempDir
    Path folder;

    private static SharesRun run(String name, Way way, long... kernels) {
        ShareSet set = ShareSet.all().stream().filter(s -> s.name().equals(name)).findFirst().orElseThrow();
        assertEquals(set.tenants().size(), kernels.length);
        return new SharesRun(set, way, IntStream.range(0, kernels.length)
            .mapToObj(i -> new TenantFigures(set.tenants().get(i).weight(), kernels[i], 1.5, 2.5, 3.5)).toList());
    }

    private static SharesReport report(List<String> defects, SharesRun... runs) throws UsageException {
        return new SharesReport(Instant.EPOCH, new Machine("p", 2, 3, "s", ""), SharesOptions.parse(), 256,
            List.of(runs), defects);
    }

    /** The words of the table's line that begins with these. */
    private static String line(String text, String begin) {
        return text.lines().map(line -> line.replaceAll(" +", " ")).filter(line -> line.startsWith(begin)).findFirst()
            .orElseThrow();
    }

    @Test
    void shouldCompareEqualProgramsWithNativeOnes() throws UsageException {
        String text = report(List.of(), run("equal2", Way.NATIVE, 500, 500), run("equal2", Way.SHM, 485, 485),
            run("equal2", Way.TCP, 461, 485)).text(false);
        assertEquals("equal2: work done together, kernels shm 970 0.970 >= 0.97 native yes",
            line(text, "equal2: work done together, kernels shm"));
        assertEquals("equal2: most over least shm 1.00 - <= 1.05 yes", line(text, "equal2: most over least shm"));
        assertEquals("equal2: work done together, kernels tcp 946 0.946 >= 0.95 native no",
            line(text, "equal2: work done together, kernels tcp"));
        assertEquals("equal2: most over least tcp 1.05 - <= 1.05 no", line(text, "equal2: most over least tcp"));
    }

    @Test
    void shouldShowEachProgramWithItsTail() throws UsageException {
        String text = report(List.of(), run("equal2", Way.SHM, 1000, 2000)).text(false);
        assertEquals("program 2 1 2,000 1.500 2.500 3.500", line(text, "program 2"));
        assertEquals("all 3,000", line(text, "all"));
        assertEquals("most over least, per weight 2.000", line(text, "most over least"));
        assertEquals("equal2: work done together, kernels shm 3,000 - >= 0.97 native -",
            line(text, "equal2: work done together"));
    }

    @Test
    void shouldCompareWeightsWithin10Percent() throws UsageException {
        String text = report(List.of(), run("weights", Way.SHM, 100, 219, 400), run("weights", Way.TCP, 100, 221, 400),
            run("weightloops", Way.SHM, 100, 184, 404)).text(false);
        assertEquals("weights: deviation from 1 : 2 : 4, % shm 9.50 - <= 10 yes", line(text, "weights: deviation from "
            + "1 : 2 : 4, % shm"));
        assertEquals("weights: deviation from 1 : 2 : 4, % tcp 10.5 - <= 10 no", line(text, "weights: deviation from "
            + "1 : 2 : 4, % tcp"));
        assertEquals("parts 1 : 2.19 : 4.00 1 : 2.21 : 4.00", line(text, "parts"));
        assertEquals("weightloops: deviation from 1 : 2 : 4, % shm 8.00 - <= 10 yes", line(text, "weightloops: "));
    }

    @Test
    void shouldCompareTheTailWithTheNativeOne() throws UsageException {
        long[] kernels = new long[8];
        SharesRun slow = run("tail8", Way.TCP, kernels);
        List<TenantFigures> tenants = new ArrayList<>(slow.tenants());
        tenants.set(0, new TenantFigures(0, 1, 1.5, 3.1, 3.5));
        String text = report(List.of(), run("tail8", Way.NATIVE, kernels), run("tail8", Way.SHM, kernels),
            new SharesRun(slow.set(), Way.TCP, tenants)).text(false);
        assertEquals("tail8: 99th percentile of program 1, ms shm 2.50 1.00 <= 1.20 native yes",
            line(text, "tail8: 99th percentile of program 1, ms shm"));
        assertEquals("tail8: 99th percentile of program 1, ms tcp 3.10 1.24 <= 1.20 native no",
            line(text, "tail8: 99th percentile of program 1, ms tcp"));
    }

    @Test
    void shouldShowAStarvedProgram() throws UsageException {
        assertEquals("parts -", line(report(List.of(), run("weights", Way.SHM, 0, 2, 4)).text(false), "parts"));
    }

    @Test
    void shouldFailByADefectOnly() throws UsageException {
        assertTrue(report(List.of(), run("equal2", Way.SHM, 1, 1000)).isGood());
        SharesReport report = report(List.of("shares.log: internal error"));
        assertFalse(report.isGood());
        assertTrue(report.text(false).contains("defect: shares.log: internal error\n"));
    }

    @Test
    void shouldWriteAllFigures() throws UsageException, IOException {
        Path file = folder.resolve("shares.json");
        report(List.of(), run("weights", Way.SHM, 0, 200, 400)).write(file);
        JsonNode root = new ObjectMapper().readTree(file.toFile());
        assertTrue(root.path("good").asBoolean());
        assertEquals(600, root.at("/runs/0/kernels").asInt());
        assertTrue(root.at("/runs/0/mostOverLeast").isNull());
        assertEquals(2.5, root.at("/runs/0/programs/1/p99Ms").asDouble());
        assertEquals("<= 10", root.at("/figures/0/target").asText());
        assertFalse(root.at("/figures/0/reached").asBoolean(true));
    }
}
