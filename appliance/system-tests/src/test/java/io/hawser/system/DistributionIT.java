package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The archive, unpacked into an empty folder, without any Java on the PATH. */
class DistributionIT {
    private static final Path TARGET = Path.of(System.getProperty("hawser.root", "../..")).resolve("appliance/target");
    private static final long LIMIT_S = 900;
    private static final int MOST_BYTES = 66_000_000;
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    private static Path folder;
    private static Path archive;
    private static Path home;

    /** The result of a command. */
    private record Ended(int exit, String out, String err) {}

    @BeforeAll
    static void unpack() throws Exception {
        try (Stream<Path> files = Files.list(TARGET)) {
            archive = files.filter(f -> f.getFileName().toString().matches("hawser-.*-linux-x86_64\\.tar\\.xz"))
                .findFirst().orElseThrow(() -> new AssertionError("no archive in " + TARGET));
        }
        Path place = Files.createDirectory(folder.resolve("unpacked"));
        assertEquals(0, run(List.of("/bin/tar", "-xf", archive.toString(), "-C", place.toString())).exit());
        try (Stream<Path> files = Files.list(place)) {
            List<Path> all = files.toList();
            assertEquals(1, all.size(), "one folder, named like the archive");
            home = all.getFirst();
        }
        assertEquals(archive.getFileName().toString(), home.getFileName() + ".tar.xz");
    }

    private static Process start(List<String> command, Path out, Path err) throws IOException {
        // The folders contain only the programs that the launchers call, so they cannot find the machine's java.
        Path bin = Files.createDirectories(Chain.OUTPUT.resolve("path"));
        for (String name : List.of("sh", "bash", "uname", "dirname", "readlink", "sed", "cat", "tar", "xz")) {
            Files.deleteIfExists(bin.resolve(name));
            Files.createSymbolicLink(bin.resolve(name), Path.of("/usr/bin", name));
        }
        ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile());
        builder.environment().clear();
        builder.environment().putAll(Map.of("PATH", bin.toString(), "HOME", folder.toString()));
        return builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    }

    private static Ended run(List<String> command) throws IOException, InterruptedException {
        Path out = Files.createTempFile(folder, "out", "");
        Path err = Files.createTempFile(folder, "err", "");
        Process process = start(command, out, err);
        if (!process.waitFor(LIMIT_S, TimeUnit.SECONDS)) {
            process.destroy();
            throw new AssertionError(command + " did not end within " + LIMIT_S + " s:\n" + Files.readString(err));
        }
        return new Ended(process.exitValue(), Files.readString(out), Files.readString(err));
    }

    private static Ended launch(String launcher, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(home.resolve("bin").resolve(launcher).toString()));
        command.addAll(List.of(arguments));
        return run(command);
    }

    /** The files that runs of hawser-check left behind. */
    private static Set<Path> leftovers() throws IOException {
        Set<Path> found = new HashSet<>();
        for (String place : List.of("/dev/shm", "/tmp")) {
            try (Stream<Path> files = Files.list(Path.of(place))) {
                files.filter(f -> f.getFileName().toString().startsWith("hawser-check-")).forEach(found::add);
            }
        }
        return found;
    }

    @Test
    void shouldBeSmallAndHoldNothingOfOtherSystems() throws IOException {
        assertTrue(Files.size(archive) <= MOST_BYTES, "bytes of the archive: " + Files.size(archive));
        List<String> foreign = new ArrayList<>();
        try (Stream<Path> files = Files.walk(home)) {
            for (Path jar : files.filter(f -> f.toString().endsWith(".jar")).toList()) {
                try (ZipFile zip = new ZipFile(jar.toFile())) {
                    zip.stream().map(ZipEntry::getName).filter(DistributionIT::isForeign)
                        .forEach(n -> foreign.add(jar.getFileName() + ": " + n));
                }
            }
        }
        assertEquals(List.of(), foreign);
    }

    private static boolean isForeign(String entry) {
        return entry.matches(".*\\.(dll|dylib|jnilib|a)")
            || entry.endsWith(".so") && !entry.contains("x86_64") && !entry.contains("linux-amd64");
    }

    /** The archive's folder differs from the build's, and its files have other times than in the build. */
    @Test
    void shouldStartFromTheCachesInTheArchive(@TempDir Path stateDir) throws Exception {
        try (BrokerProcess broker = BrokerProcess.startInstalled(home.resolve("bin/hawser-broker"), "installed",
            stateDir.resolve("broker"), StartCacheIT.settings())) {
            StartCacheIT.assertCachesInUse(broker);
        }
    }

    @Test
    void shouldNameItsVersionAndExplainItself() throws Exception {
        String version = Files.readString(home.resolve("VERSION")).strip();
        assertEquals("hawser-broker " + version + "\n", launch("hawser-broker", "--version").out());
        assertTrue(launch("hawser-broker", "--help").out().contains("--check"));
        assertTrue(launch("hawser-check", "--help").out().contains("--carriers"));
        assertTrue(launch("hawser-fabric", "--help").out().contains("measure HOST"));
        assertTrue(Files.isExecutable(home.resolve("lib/programs/hawser_benchmark")), "hawser-fabric runs it");
        assertTrue(Files.isReadable(home.resolve("lib/fabric-measure")), "hawser-fabric reads it");
        assertEquals(2, launch("hawser-broker", "--wrong").exit());
        assertEquals(2, launch("hawser-fabric", "--wrong").exit());
        assertEquals(2, launch("hawser-check", "--carriers", "rdma").exit());
    }

    @Test
    void shouldReportTheMachinesParts() throws Exception {
        Ended check = launch("hawser-broker", "--check", "-Dhawser.gpu.backend=software");
        assertEquals(0, check.exit(), check::toString);
        assertTrue(check.out().contains("C library: glibc 2."), check::toString);
        assertTrue(check.out().contains("GPU: the software GPU"), check::toString);
        assertTrue(check.out().contains("shared memory: /dev/shm"), check::toString);
    }

    /** A broker on the bundled runtime, and programs over both carriers, compared and measured. */
    @Test
    void shouldAcceptItself() throws Exception {
        Set<Path> before = leftovers();
        Path json = folder.resolve("results.json");
        // A few programs suffice: ProgramsIT runs them all over both carriers.
        Ended check = launch("hawser-check", "--quick", "--programs", "drv_vector_add,drv_printf,drv_mapped_memory",
            "--backend", "software", "--json", json.toString());
        assertEquals(0, check.exit(), check::toString);
        assertTrue(check.out().contains("All agree."), check::toString);
        JsonNode results = JSON.readTree(json.toFile());
        assertTrue(results.path("agree").asBoolean(), results::toString);
        assertFalse(results.path("nativeMissing").asText().isEmpty(), "the software GPU cannot run natively");
        for (JsonNode program : results.path("programs")) {
            for (String carrier : List.of("shm", "tcp")) {
                assertEquals("right", program.path(carrier).path("verdict").asText(), program::toString);
            }
        }
        assertEquals(3, results.path("programs").size(), results::toString);
        List<String> figures = results.path("figures").findValuesAsText("name");
        for (String name : List.of("calls.synchronize", "copies.pinned_in.1048576", "small.out", "applications.nbody",
            "start.init", "start.cold_init")) {
            assertTrue(figures.contains(name), () -> name + " is not in " + figures);
        }
        assertEquals(before, leftovers(), "neither a region nor a folder is left");
    }

    /** Over TCP, which needs no room in /dev/shm. */
    @Test
    void shouldMeasureSharesSwapsAndMoves() throws Exception {
        Set<Path> before = leftovers();
        Path json = folder.resolve("sharing.json");
        Ended shares = launch("hawser-check", "--shares", "--backend", "software", "--ways", "tcp", "--sets", "equal2",
            "--warm-up", "1", "--json", json.toString());
        assertEquals(0, shares.exit(), shares::toString);
        JsonNode run = JSON.readTree(json.toFile()).at("/runs/0");
        assertTrue(run.path("kernels").asLong() > 0, run::toString);
        assertEquals(2, run.path("programs").size(), run::toString);

        Ended swaps = launch("hawser-check", "--swaps", "--backend", "software", "--carrier", "tcp", "--sets",
            "exchange", "--mib", "20", "--json", json.toString());
        assertEquals(0, swaps.exit(), swaps::toString);
        JsonNode exchange = JSON.readTree(json.toFile()).at("/runs/0");
        long bytes = 0; // a program that has ended leaves its room, so the other one may only come in
        for (String way : List.of("out", "in")) {
            bytes += exchange.path(way).path("bytes").asLong();
            assertEquals(0, exchange.path(way).path("failed").asInt(-1), exchange::toString);
        }
        assertTrue(bytes >= 20 << 20, exchange::toString);
        Ended moves = launch("hawser-check", "--moves", "--backend", "software", "--mib", "8", "--moves", "1", "--json",
            json.toString());
        assertEquals(0, moves.exit(), moves::toString);
        JsonNode memory = JSON.readTree(json.toFile()).at("/runs/0");
        assertEquals(1, memory.path("moveMs").size(), memory::toString);
        assertTrue(memory.path("longestStepMs").asDouble() > 0, memory::toString);
        assertEquals(before, leftovers(), "neither a region nor a folder is left");
    }

    @Test
    void shouldLeaveNothingWhenItIsInterrupted() throws Exception {
        Set<Path> before = leftovers();
        Path out = Files.createTempFile(folder, "out", "");
        Path err = Files.createTempFile(folder, "err", "");
        Process check = start(List.of(home.resolve("bin/hawser-check").toString(), "--backend", "software"), out, err);
        try {
            Await.until("programs to run", Duration.ofSeconds(300), () -> "", () -> {
                if (!check.isAlive()) {
                    throw new AssertionError("it ended: " + Files.readString(err));
                }
                String said = Files.readString(err);
                return said.contains("programs in 2 ways") ? "" : "its output: " + said;
            });
            List<ProcessHandle> all = check.descendants().toList();
            assertFalse(all.isEmpty(), "a broker, its workers and a program");
            check.destroy();
            assertTrue(check.waitFor(LIMIT_S, TimeUnit.SECONDS), "it ends");
            assertEquals(143, check.exitValue(), () -> "128 + SIGTERM, Java's exit code");
            Await.until("the end of all that it has started",
                () -> all.stream().filter(ProcessHandle::isAlive).map(ProcessHandle::pid).toList().isEmpty() ? ""
                    : "some still run");
            assertEquals(before, leftovers());
        } finally {
            check.destroyForcibly();
        }
    }

    @Test
    void shouldFailForAProgramThatIsWrong() throws Exception {
        Path wrong = home.resolve("lib/programs/drv_wrong");
        Files.writeString(wrong, "#!/bin/sh\necho FAIL drv_wrong: one, expected two\nexit 1\n");
        assertTrue(wrong.toFile().setExecutable(true));
        Set<Path> before = leftovers();
        try {
            Ended check = launch("hawser-check", "--programs", "drv_wrong", "--no-benchmarks", "--carriers", "tcp",
                "--backend", "software");
            assertEquals(1, check.exit(), check::toString);
            assertTrue(check.out().contains("NOT all agree."), check::toString);
            assertTrue(check.out().contains("tcp: exit 1: FAIL drv_wrong: one, expected two"), check::toString);
            Set<Path> kept = leftovers();
            kept.removeAll(before);
            assertEquals(1, kept.size(), "logs and outputs are kept");
            Path logs = kept.iterator().next();
            assertTrue(check.err().contains("logs and outputs are in " + logs), check::toString);
            try (Stream<Path> files = Files.walk(logs)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        } finally {
            Files.delete(wrong);
        }
    }
}
