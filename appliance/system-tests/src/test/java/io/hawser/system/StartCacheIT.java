package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A JVM that rejects its cache still starts, only slower. Its memory map shows whether it uses the cache. */
class StartCacheIT {
    private static final String CODE_LOG = "-Xlog:aot+codecache+init:stdout";
    private static final String WORKER = "io.hawser.worker.WorkerMain";

    @TempDir
    private Path stateDir;

    private static String maps(long pid) throws IOException {
        return Files.readString(Path.of("/proc/" + pid + "/maps"));
    }

    /** Workers without a jail, so that a test without root can read their maps. */
    static Map<String, String> settings() {
        return Map.of("hawser.worker.pool-size", "1", "hawser.worker.jail", "off");
    }

    static void assertCachesInUse(BrokerProcess broker) throws IOException {
        assertTrue(maps(broker.pid()).contains("/broker.aot"), broker::logEnd);
        List<Long> workers = ProcessHandle.of(broker.pid()).orElseThrow().children().map(ProcessHandle::pid).toList();
        assertFalse(workers.isEmpty(), broker::logEnd);
        for (long worker : workers) {
            assertTrue(maps(worker).contains("/worker.aot"), () -> "pid=" + worker + broker.logEnd());
        }
    }

    @Test
    void shouldStartBrokerAndWorkersFromTheCachesOfTheBuild() throws Exception {
        try (BrokerProcess broker = BrokerProcess.start("start-cache", stateDir.resolve("broker"), settings())) {
            assertCachesInUse(broker);
        }
    }

    /** The training run needs no GPU, and neither does this test: the guest's libcuda.so.1 serves as NVIDIA's. */
    @Test
    void shouldStartNvidiaWorkersFromTheirOwnCache() throws Exception {
        try (BrokerProcess broker = BrokerProcess.start("nvidia-cache", stateDir.resolve("broker"), settings())) {
            Map<String, String> environment = new HashMap<>(Carrier.SHM.environment(broker));
            environment.put("HAWSER_CONFIG", "/dev/null");
            environment.put("LD_LIBRARY_PATH", Chain.LIBRARIES.toString());
            List<String> command = worker("worker-nvidia.aot", "-Xlog:class+load:stdout",
                "-Dhawser.nvidia.control-file=/dev/null");
            command.addAll(List.of(WORKER, "--backend", "nvidia", "--train", "start"));
            Ended ended = run(environment, command);
            assertEquals(0, ended.exit(), ended::output);
            assertTrue(ended.output().contains("io.hawser.gpu.nvidia.NvidiaBackend source: shared objects file"),
                ended::output);
        }
    }

    @Test
    void shouldHoldNoMachineCodeThatAnOlderProcessorCannotRun() throws Exception {
        for (String cache : List.of("worker.aot", "worker-nvidia.aot")) {
            List<String> command = worker(cache, CODE_LOG);
            command.add("-version");
            assertNoCode(run(Map.of(), command).output());
        }
        // This setting ends the start after the JVM has opened its cache.
        assertNoCode(run(Map.of("HAWSER_BROKER_JAVA_OPTS", CODE_LOG), List.of(Chain.LAUNCHER.toString(),
            "-Dhawser.listen.port=none")).output());
    }

    private static void assertNoCode(String output) {
        assertTrue(output.contains("AOT Code Cache is empty"), output);
        assertFalse(output.contains("Loaded"), output);
    }

    /** The command line of a worker that starts from a cache of the build, up to its class. */
    private static List<String> worker(String cache, String... furtherFlags) throws Exception {
        String java = Chain.ROOT.resolve("appliance/runtime/target/java/bin/java").toString();
        Path jars = Chain.ROOT.resolve("host-broker/worker/target/app");
        String classPath;
        try (Stream<Path> files = Files.list(jars)) {
            classPath = files.map(Path::toString).filter(name -> name.endsWith(".jar")).sorted()
                .collect(Collectors.joining(":"));
        }
        List<String> command = new ArrayList<>(List.of(java));
        command.addAll(List.of(run(Map.of(), List.of(java, "-cp", classPath, WORKER, "--flags")).output().strip()
            .split(" ")));
        command.addAll(List.of(furtherFlags));
        command.addAll(List.of("-XX:AOTCache=" + jars.resolve(cache), "-cp", classPath));
        return command;
    }

    /** The end of a process. */
    private record Ended(int exit, String output) {}

    private static Ended run(Map<String, String> environment, List<String> command) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Ended(process.waitFor(), output);
    }
}
