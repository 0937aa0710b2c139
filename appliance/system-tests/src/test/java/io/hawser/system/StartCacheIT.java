package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A JVM that rejects its cache still starts, only slower. Its memory map shows whether it uses the cache. */
class StartCacheIT {
    private static final String CODE_LOG = "-Xlog:aot+codecache+init:stdout";

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

    @Test
    void shouldHoldNoMachineCodeThatAnOlderProcessorCannotRun() throws Exception {
        Path java = Chain.ROOT.resolve("appliance/runtime/target/java/bin/java");
        Path jars = Chain.ROOT.resolve("host-broker/worker/target/app");
        String classPath;
        try (Stream<Path> files = Files.list(jars)) {
            classPath = files.map(Path::toString).filter(name -> name.endsWith(".jar")).sorted()
                .collect(Collectors.joining(":"));
        }
        String worker = "io.hawser.worker.WorkerMain";
        List<String> command = new ArrayList<>(List.of(java.toString()));
        command.addAll(List.of(run(Map.of(), List.of(java.toString(), "-cp", classPath, worker, "--flags"))
            .strip().split(" ")));
        command.addAll(List.of("-XX:AOTCache=" + jars.resolve("worker.aot"), CODE_LOG, "-cp", classPath, "-version"));
        assertNoCode(run(Map.of(), command));
        // This setting ends the start after the JVM has opened its cache.
        assertNoCode(run(Map.of("HAWSER_BROKER_JAVA_OPTS", CODE_LOG), List.of(Chain.LAUNCHER.toString(),
            "-Dhawser.listen.port=none")));
    }

    private static void assertNoCode(String output) {
        assertTrue(output.contains("AOT Code Cache is empty"), output);
        assertFalse(output.contains("Loaded"), output);
    }

    private static String run(Map<String, String> environment, List<String> command) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return output;
    }
}
