package io.hawser.simulator.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

/** Tables and plots. */
class ReportTest {
    private static TenantResult result(String vgpu, int weight, long fromNs, long untilNs, double ranNs) {
        Histogram waits = new Histogram(3_600_000_000_000L, 2);
        waits.recordValue(1000);
        return new TenantResult("all", vgpu, weight, List.of(0), fromNs, untilNs, ranNs, waits, 1000, 2, 1);
    }

    @Test
    void shouldAskForWeightsWhileTheirTenantsArePresent() {
        long always = Long.MAX_VALUE;
        // a and b: a quarter and three quarters of the first half; then a alone.
        Results results = new Results(List.of(result("a", 100, 0, always, 62.5), result("b", 300, 0, 50, 37.5),
            result("idle", 100, 0, always, 0)), 100, 1);
        assertEquals(1, results.usedPart(), 1e-9);
        // The idle one has waited, so it counts: a gets 1/5 and 1/2, b 3/5 of the half.
        assertTrue(results.table(true).contains("| a    | 1        | 35.0 % | 62.5 % | 1.79 "), results.table(true));
        assertTrue(results.table(true).contains("| b    | 1        | 30.0 % | 37.5 % | 1.25 "), results.table(true));
        assertTrue(results.table(false).contains("| all  | 3        | 33.3 % | 33.3 % | 0.00 to 1.79 "),
            results.table(false));
    }

    @Test
    void shouldDivideAVgpusPartAmongItsSessions() {
        Results results = new Results(List.of(result("a", 100, 0, Long.MAX_VALUE, 25), result("a", 100, 0,
            Long.MAX_VALUE, 25), result("b", 100, 0, Long.MAX_VALUE, 50)), 100, 1);
        assertEquals(1, results.ratios().getMin(), 1e-6);
        assertEquals(1, results.ratios().getMax(), 1e-6);
    }

    @Test
    void shouldRefuseARowOfAnotherLength() {
        assertThrows(IllegalArgumentException.class, () -> new TextTable("a", "b").row("1"));
    }

    private static Document parse(String svg) throws Exception {
        return DocumentBuilderFactory.newInstance().newDocumentBuilder()
            .parse(new ByteArrayInputStream(svg.getBytes(StandardCharsets.UTF_8)));
    }

    @Test
    void shouldDrawALineForEachTenant() throws Exception {
        SharePlot plot = new SharePlot("a <title> & more", 10);
        double[] half = new double[SharePlot.BINS];
        Arrays.fill(half, 0.5);
        plot.add("half", half);
        plot.add("none", new double[SharePlot.BINS]);
        Document svg = parse(plot.svg());
        assertEquals("a <title> & more", svg.getElementsByTagName("text").item(0).getTextContent());
        List<String> lines = IntStream.range(0, svg.getElementsByTagName("path").getLength())
            .mapToObj(i -> (Element) svg.getElementsByTagName("path").item(i))
            .filter(path -> path.getAttribute("fill").equals("none")).map(path -> path.getAttribute("d")).toList();
        assertEquals(2, lines.size());
        assertTrue(lines.get(0).startsWith("M50.3 34.0L54.8 34.0L"), "at the top, half: " + lines.get(0));
        assertTrue(lines.get(1).startsWith("M50.3 260.0L54.8 260.0L"), "at the bottom: " + lines.get(1));
    }

    @Test
    void shouldDrawTheMeanOfGroupsWithManyTenants() {
        ShareSeries series = new ShareSeries(SharePlot.BINS * 10);
        for (int i = 0; i < 13; i++) {
            series.add("group", "tenant-" + i).add(0, i == 0 ? 10 : 0);
        }
        String svg = series.plot("title").svg();
        assertTrue(svg.contains(">group (mean)<"), svg);
        assertTrue(!svg.contains("tenant-0"), svg);
    }
}
