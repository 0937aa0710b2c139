package io.hawser.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.nvml.FakeNvml;
import io.hawser.cuda.generated.Description;
import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.RecordLayout;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The metrics of a broker process with fake GPUs: format, values, and the names that dashboard and alerts use. */
class MetricsIT {
    private static final Pattern LINE = Pattern.compile("([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\\{(.*)})? (\\S+)");
    private static final Pattern LABEL = Pattern.compile("([a-zA-Z_]\\w*)=\"((?:[^\"\\\\]|\\\\.)*)\",?");
    private static final Pattern USED = Pattern.compile("\\bhawser_[a-z0-9_]+");
    private static final Path GRAFANA = Path.of("../../appliance/grafana");
    /** Names with other units than base units, or with types, which promtool's linter rejects. */
    private static final Pattern NOT_BASE = Pattern.compile(
        ".*_(milliseconds|ms|microseconds|minutes|hours|kilobytes|megabytes|mib|gib|percent|milliwatts|mw|fahrenheit"
            + "|gauge|counter|histogram|summary)(_.*)?");

    @TempDir
    private static Path folder;
    private static RealProcess broker;
    private static JsonNode endpoints;
    private static String exposition;

    @BeforeAll
    static void startBroker() throws Exception {
        new FakeNvml(folder);
        Path stateDir = folder.resolve("state");
        broker = new RealProcess(folder, "metrics", stateDir, Map.of("LD_LIBRARY_PATH", folder.toString()),
            "-Dhawser.worker.command=" + TestBroker.workerCommand("nvidia"), "-Dhawser.vgpus.default.mode=exclusive",
            "-Dhawser.vgpus.swaps.memory-bytes=100", "-Dhawser.vgpus.swaps.gpus=1",
            "-Dhawser.vgpus.swaps.swappable=true");
        endpoints = broker.awaitEndpoints();
        TestBroker.await("the GPUs' metrics", () -> scrape().contains("hawser_gpu_power_watts{"));
        try (TestGuest guest = new TestGuest(endpoints.get("guest").asText())) {
            guest.handshake("default", TestGuest.secret(stateDir), Description.HASH);
            assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
            TestBroker.await("the session's totals", () -> scrape().contains(
                "hawser_vgpu_calls_total{vgpu=\"default\"} 10.0"));
            exposition = scrape();
        }
    }

    @AfterAll
    static void stopBroker() throws Exception {
        if (broker != null) {
            broker.terminate();
            broker.awaitExit();
            broker.close();
        }
    }

    private static String scrape() {
        // Without this media type the broker would answer in the OpenMetrics format.
        HttpResponse<String> response = broker.request("GET", "/q/metrics", "", "text/plain");
        assertEquals(200, response.statusCode(), response.body());
        return response.body().replace(",}", "}");
    }

    /** The samples of the broker's own metrics. */
    private static List<Matcher> samples() {
        List<Matcher> samples = new ArrayList<>();
        exposition.lines().filter(line -> line.startsWith("hawser_")).forEach(line -> {
            Matcher matcher = LINE.matcher(line);
            assertTrue(matcher.matches(), "the line must be a sample: " + line);
            samples.add(matcher);
        });
        return samples;
    }

    private static Map<String, String> comments(String kind) {
        Map<String, String> comments = new HashMap<>();
        exposition.lines().filter(line -> line.startsWith("# " + kind + " hawser_")).forEach(line -> {
            String[] parts = line.split(" ", 4);
            assertEquals(null, comments.put(parts[2], parts.length < 4 ? "" : parts[3]),
                "a duplicate comment: " + line);
        });
        return comments;
    }

    @Test
    void shouldBeAsPrometheusWantsThem() {
        Map<String, String> types = comments("TYPE");
        Map<String, String> helps = comments("HELP");
        List<String> wrong = new ArrayList<>();
        types.forEach((name, type) -> {
            if (helps.getOrDefault(name, "").isBlank()) {
                wrong.add(name + ": no help");
            }
            if (type.equals("counter") != name.endsWith("_total")) {
                wrong.add(name + ": counters, and nothing else, end with _total");
            }
            if (NOT_BASE.matcher(name).matches() || type.equals("gauge") && name.matches(".*_(count|sum|bucket)")) {
                wrong.add(name + ": base units, and no types");
            }
        });
        assertEquals(List.of(), wrong);
        Set<String> seen = new HashSet<>();
        for (Matcher sample : samples()) {
            String family = types.containsKey(sample.group(1)) ? sample.group(1)
                : sample.group(1).replaceFirst("_(bucket|count|sum)$", "");
            assertTrue(types.containsKey(family), "the sample must have a type: " + sample.group());
            assertTrue(seen.add(sample.group(1) + "{" + sample.group(2)), "a duplicate sample: " + sample.group());
            assertTrue(Double.isFinite(Double.parseDouble(sample.group(3))), sample.group());
            String rest = sample.group(2) == null ? "" : LABEL.matcher(sample.group(2)).replaceAll("");
            assertEquals("", rest, "the labels must be well-formed: " + sample.group());
        }
        for (String name : types.keySet().stream().filter(n -> types.get(n).equals("histogram")).toList()) {
            assertTrue(exposition.lines().anyMatch(l -> l.startsWith(name + "_bucket") && l.contains("le=\"+Inf\"")),
                name + ": must have the bucket +Inf");
        }
    }

    private static double value(String sample) {
        String line = exposition.lines().filter(l -> l.startsWith(sample + " ")).findFirst()
            .orElseThrow(() -> new AssertionError("no " + sample + " in\n" + exposition));
        return Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1));
    }

    @Test
    void shouldTellOfGpusAndVgpus() {
        String gpu = "{gpu=\"" + FakeNvml.GPU_0 + "\"";
        assertEquals(0.37, value("hawser_gpu_utilization_ratio" + gpu + "}"));
        assertEquals(41, value("hawser_gpu_temperature_celsius" + gpu + "}"));
        assertEquals(71.5, value("hawser_gpu_power_watts" + gpu + "}"));
        assertEquals(350, value("hawser_gpu_memory_bytes" + gpu + ",kind=\"used\"}"));
        assertEquals(1000, value("hawser_gpu_memory_bytes" + gpu + ",kind=\"total\"}"));
        assertEquals(1, value("hawser_gpu_health" + gpu + ",health=\"ok\"}"));
        assertEquals(0, value("hawser_gpu_health" + gpu + ",health=\"lost\"}"));
        assertEquals(1, value("hawser_ready"));
        assertEquals(1, value("hawser_vgpu_sessions{vgpu=\"default\"}"));
        assertEquals(0, value("hawser_vgpu_starts_waiting{vgpu=\"default\"}"));
        assertEquals(10, value("hawser_vgpu_calls_total{vgpu=\"default\"}"));
        assertEquals(3, value("hawser_vgpu_synchronous_round_trips_total{vgpu=\"default\"}"));
        assertEquals(0, value("hawser_vgpu_memory_bytes{vgpu=\"default\",kind=\"quota\"}"));
        assertEquals(1, value("hawser_session_start_seconds_count{carrier=\"tcp\"}"));
        for (String swap : List.of("resident_bytes", "swapped_bytes", "swaps_total", "swap_wait_seconds_total")) {
            assertEquals(0, value("hawser_vgpu_" + swap + "{vgpu=\"swaps\"}"));
            assertFalse(exposition.contains("hawser_vgpu_" + swap + "{vgpu=\"default\"}"), "it is not swappable");
        }
        assertTrue(exposition.contains("hawser_build_info{version=\""), exposition);
    }

    @Test
    void shouldTellAnExclusiveVgpuTheFiguresOfItsGpu() throws Exception {
        try (TestGuest guest = new TestGuest(endpoints.get("guest").asText())) {
            guest.send(guest.proof(HandshakeProof.Purpose.STATUS, guest.challenge("default", Description.HASH),
                TestGuest.secret(folder.resolve("state"))));
            String status = new String(guest.receive().payload(), StandardCharsets.UTF_8);
            assertTrue(status.contains("\ndriver\t580.159.03\n"), status);
            assertTrue(status.contains("\nsensors\t0\t99\t71500\t700000\t690000\t680000\t200000\t710000\t5000000000"
                + "\t1000\t1001\t1002\t1003\t2000\t2001\t2002\t-\t2\t-\t511\t50\t-\t100\t101\t110\t111\n"), status);
            assertTrue(status.contains("\t37\t41\t72\t"), status);
        }
    }

    @Test
    void shouldHaveEachMetricThatDashboardAndAlertsAskFor() throws Exception {
        Set<String> there = samples().stream().map(m -> m.group(1)).collect(Collectors.toSet());
        JsonNode dashboard = new ObjectMapper().readTree(GRAFANA.resolve("hawser.json").toFile());
        List<String> expressions = new ArrayList<>();
        dashboard.findValuesAsText("expr", expressions);
        dashboard.at("/templating/list").forEach(variable -> expressions.add(variable.path("query").asText()));
        assertTrue(expressions.size() > 20, "expressions: " + expressions.size());
        JsonNode alerts = new YAMLMapper().readTree(GRAFANA.resolve("hawser-alerts.yml").toFile());
        List<String> rules = alerts.findValuesAsText("expr");
        assertFalse(rules.isEmpty());
        expressions.addAll(rules);
        Set<String> missing = new TreeSet<>();
        for (String expression : expressions) {
            Matcher used = USED.matcher(expression);
            while (used.find()) {
                if (!there.contains(used.group())) {
                    missing.add(used.group());
                }
            }
            assertEquals(expression.chars().filter(c -> c == '(').count(), expression.chars().filter(c -> c == ')')
                .count(), expression);
        }
        assertEquals(Set.of(), missing);
    }
}
