package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.w3c.dom.Document;
import org.xml.sax.InputSource;

/**
 * The guest's answers to NVML: a shared vGPU on the first of two GPUs, and an exclusive one on the other. {@code hawser
 * smi} asks the functions of libnvidia-ml.so.1.
 */
class NvmlIT {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long LIMIT_S = 300;
    private static final long QUOTA = 256L << 20;
    private static final long HELD_MEBIBYTES = 48;
    private static final long SMALL_MEBIBYTES = 2; // as CUDA: small allocations share pages of this size

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;
    private static Path aloneToken;

    private record Ended(int exit, String out) {
        List<String> lines() {
            return out.lines().toList();
        }
    }

    @BeforeAll
    static void startBroker() throws Exception {
        broker = BrokerProcess.start("nvml", stateDir.resolve("broker"), BrokerProcess.withQuickWorkers(
            Map.of("hawser.gpu.software.devices", "2", "hawser.vgpus.default.memory-bytes", Long.toString(QUOTA))));
        broker.create("/api/v1/vgpus", JSON.createObjectNode().put("name", "alone").put("mode", "exclusive"));
        aloneToken = stateDir.resolve("alone.token");
        Files.writeString(aloneToken, broker.create("/api/v1/vgpus/alone/tokens", JSON.createObjectNode())
            .path("token").asText());
        for (Carrier carrier : Carrier.values()) {
            // A region shows the GPU periodically, and at first before the broker knows it.
            Await.until("the GPU to be shown over " + carrier, () -> {
                Ended listed = smi(carrier.environment(broker), "-L");
                return listed.exit() == 0 ? "" : listed.toString();
            });
        }
    }

    @AfterAll
    static void stopBroker() {
        if (broker != null) {
            broker.close();
        }
    }

    private static Map<String, String> alone() {
        Map<String, String> environment = new HashMap<>(Carrier.TCP.environment(broker));
        environment.put("HAWSER_TOKEN_FILE", aloneToken.toString());
        return environment;
    }

    private static Ended smi(Map<String, String> variables, String... arguments) throws IOException,
        InterruptedException {
        List<String> command = new ArrayList<>(List.of(Chain.COMMAND.toString(), "smi"));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().clear();
        builder.environment().putAll(variables);
        builder.environment().put("HAWSER_CONFIG", "/dev/null");
        builder.environment().put("HAWSER_CONNECT_TIMEOUT_MS", "60000");
        Process process = builder.start();
        process.getOutputStream().close();
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(process.waitFor(LIMIT_S, TimeUnit.SECONDS), "hawser smi does not end");
        return new Ended(process.exitValue(), out);
    }

    private static Set<Long> pids(Map<String, String> environment) throws Exception {
        Ended ended = smi(environment, "--query-compute-apps=pid", "--format=csv,noheader");
        assertEquals(0, ended.exit(), ended::toString);
        return ended.lines().stream().map(Long::valueOf).collect(Collectors.toCollection(TreeSet::new));
    }

    @ParameterizedTest
    @EnumSource
    void shouldAnswerBesideCudaInOneProcess(Carrier carrier) throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_nvml")) {
            GuestProgram.Result result = program.await().assertPassed().assertOver(carrier);
            assertTrue(result.out().contains("process: listed"), result::toString);
        }
        broker.awaitIdle();
    }

    @ParameterizedTest
    @EnumSource
    void shouldListTheProcessesOfTheVgpuAndOfNoOther(Carrier carrier) throws Exception {
        Map<String, String> environment = carrier.environment(broker);
        String memory = Long.toString(HELD_MEBIBYTES);
        try (GuestProgram one = GuestProgram.start(environment, "hold", "--memory", memory, "--idle", "1");
            GuestProgram two = GuestProgram.start(Carrier.TCP.environment(broker), "hold", "--idle", "1");
            GuestProgram other = GuestProgram.start(alone(), "hold", "--idle", "1")) {
            for (GuestProgram program : List.of(one, two, other)) {
                program.awaitLine("READY");
            }
            Set<Long> wanted = new TreeSet<>(List.of(one.pid(), two.pid()));
            Await.until("both processes of the vGPU", () -> {
                Set<Long> found = pids(environment);
                return found.equals(wanted) ? "" : "wanted=" + wanted + " found=" + found;
            });
            Await.until("the process of the other vGPU", () -> {
                Set<Long> found = pids(alone());
                return found.equals(Set.of(other.pid())) ? "" : "wanted=" + other.pid() + " found=" + found;
            });
            String held = one.pid() + ", " + (HELD_MEBIBYTES + SMALL_MEBIBYTES);
            Await.until("the memory of the first process", () -> {
                Ended ended = smi(environment, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits");
                return ended.lines().contains(held) ? "" : ended.toString();
            });
            for (GuestProgram program : List.of(one, two, other)) {
                program.release();
                program.await();
            }
        }
        broker.awaitIdle();
    }

    @ParameterizedTest
    @EnumSource
    void shouldPrintQueriesAsScriptsExpect(Carrier carrier) throws Exception {
        Map<String, String> environment = carrier.environment(broker);
        Ended rows = smi(environment, "--query-gpu=index,memory.total,temperature.gpu,power.draw,clocks.sm",
            "--format=csv");
        assertEquals(List.of("index, memory.total [MiB], temperature.gpu, power.draw [W], clocks.current.sm [MHz]",
            "0, 256 MiB, [N/A], [N/A], [N/A]"), rows.lines());
        assertEquals("0, 256\n", smi(environment, "--query-gpu=index,memory.total", "--format=csv,noheader,nounits")
            .out());
        assertEquals("index\n0\n", smi(environment, "--query-gpu=index").out(), "as nvidia-smi without a format");
        String bus = smi(environment, "--query-gpu=pci.bus_id", "--format=csv,noheader").out().strip();
        assertTrue(smi(environment, "-i", bus, "-L").out().matches("GPU 0: .* \\(UUID: GPU-[0-9a-f-]{36}\\)\n"));
        Ended log = smi(environment, "-q", "-d", "MEMORY");
        assertTrue(log.lines().contains("        Total" + " ".repeat(42) + ": 256 MiB"), log::toString);
        assertTrue(log.lines().stream().noneMatch(line -> line.contains("Utilization")), log::toString);
        Ended monitor = smi(environment, "dmon", "-c", "1", "-s", "u");
        assertEquals(3, monitor.lines().size(), monitor::toString);
        assertEquals(2, smi(environment, "--query-gpu=nonsense", "--format=csv").exit());
        assertEquals(6, smi(environment, "-i", "7", "-L").exit());
    }

    /** The names that exporters find in a help text, and then query all at once. */
    private static List<String> listed(String help) {
        return Pattern.compile("(?m)\\n\\s*\\n^\"([^\"]+)\"").matcher(help).results().map(found -> found.group(1))
            .toList();
    }

    @ParameterizedTest
    @EnumSource
    void shouldAnswerEveryPropertyThatItsHelpLists(Carrier carrier) throws Exception {
        Map<String, String> environment = carrier.environment(broker);
        List<String> names = listed(smi(environment, "--help-query-gpu").out());
        assertTrue(names.size() > 180, names::toString);
        Ended rows = smi(environment, "--query-gpu=" + String.join(",", names), "--format=csv");
        assertEquals(2, rows.lines().size(), rows::toString);
        List<String> titles = List.of(rows.lines().getFirst().split(", ", -1));
        List<String> values = List.of(rows.lines().getLast().split(", ", -1));
        assertEquals(names, titles.stream().map(title -> title.replaceFirst(" \\[.*\\]$", "")).toList());
        assertEquals(names.size(), values.size());
        assertEquals("Enabled", values.get(names.indexOf("persistence_mode")));
        assertEquals("[N/A]", values.get(names.indexOf("mig.mode.current")));
        assertEquals("[N/A]", values.get(names.indexOf("ecc.mode.current")), "the software GPU has no ECC");
        assertEquals("[Requested functionality has been deprecated]", values.get(names.indexOf("display_mode")));
        assertEquals("0 %", values.get(names.indexOf("utilization.encoder")));
        assertEquals("power.draw.average [W]", titles.get(names.indexOf("power.draw.average")));
        List<String> processes = listed(smi(environment, "--help-query-compute-apps").out());
        Ended apps = smi(environment, "--query-compute-apps=" + String.join(",", processes), "--format=csv,nounits");
        assertEquals(0, apps.exit(), apps::toString);
        assertEquals(processes.size(), apps.lines().getFirst().split(", ").length);
    }

    @Test
    void shouldPrintVersionsAndErrorsAsScriptsExpect() throws Exception {
        Map<String, String> environment = Carrier.TCP.environment(broker);
        assertEquals(List.of("NVIDIA-SMI version  : 580", "NVML version        : 580", "DRIVER version      : 580",
            "CUDA Version        : 13.0"), smi(environment, "--version").lines());
        assertEquals("Field \"nonsense\" is not a valid field to query.\n\n",
            smi(environment, "--query-gpu=name,nonsense", "--format=csv").out());
        assertEquals("    Display Mode" + " ".repeat(39) + ": Requested functionality has been deprecated",
            smi(environment, "-q").lines().stream().filter(line -> line.contains("Display Mode")).findFirst()
                .orElse(""));
        Ended ecc = smi(environment, "-q", "-d", "ECC");
        assertTrue(ecc.lines().contains("        Current" + " ".repeat(40) + ": N/A"), ecc::toString);
    }

    @ParameterizedTest
    @EnumSource
    void shouldPrintXmlThatParses(Carrier carrier) throws Exception {
        Ended log = smi(carrier.environment(broker), "-q", "-x");
        Document document = DocumentBuilderFactory.newInstance().newDocumentBuilder()
            .parse(new InputSource(new StringReader(log.out())));
        assertEquals("256 MiB", document.getElementsByTagName("total").item(0).getTextContent());
        assertEquals(1, document.getElementsByTagName("gpu").getLength());
        assertEquals("pci_gpu_link_info", document.getElementsByTagName("pcie_gen").item(0).getParentNode()
            .getNodeName());
        assertEquals("gpu", document.getElementsByTagName("temperature").item(0).getParentNode().getNodeName());
    }

    @Test
    void shouldNeedNeitherASessionNorAWorker() throws Exception {
        broker.awaitIdle();
        double before = broker.metric("hawser_sessions_started_total");
        for (Carrier carrier : Carrier.values()) {
            for (int i = 0; i < 3; i++) {
                assertEquals(0, smi(carrier.environment(broker), "-q").exit());
            }
        }
        assertEquals(before, broker.metric("hawser_sessions_started_total"));
    }
}
