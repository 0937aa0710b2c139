package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The wheel {@code hawser_guest} in a virtual environment of Python, unpacked as pip would do it. */
class WheelIT {
    private static final Path PACKAGES = Chain.ROOT.resolve("appliance/target/packages");
    private static final Path SCRIPT = Chain.ROOT.resolve("appliance/frameworks/python_ctypes.py");
    private static final long LIMIT_S = 300;

    @TempDir
    private static Path folder;
    private static Path site;
    private static Path python;
    private static BrokerProcess broker;

    private record Ended(int exit, String out) {}

    @BeforeAll
    static void install() throws Exception {
        python = folder.resolve("venv/bin/python");
        Ended made = run(Map.of(), "", "/usr/bin/env", "python3", "-m", "venv", "--without-pip",
            folder.resolve("venv").toString());
        assumeTrue(made.exit() == 0, () -> "SKIPPED: no virtual environment of Python 3: " + made.out());
        Ended asked =
            run(Map.of(), "", python.toString(), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))");
        site = Path.of(asked.out().strip());
        unpack(wheel());
        broker = BrokerProcess.start("wheel", folder.resolve("broker"), Map.of());
    }

    @AfterAll
    static void stopBroker() {
        if (broker != null) {
            broker.close();
        }
    }

    private static Path wheel() throws IOException {
        try (Stream<Path> files = Files.list(PACKAGES)) {
            return files.filter(file -> file.toString().endsWith(".whl")).findFirst().orElseThrow();
        }
    }

    private static void unpack(Path wheel) throws IOException {
        try (FileSystem zip = FileSystems.newFileSystem(wheel, Map.of("enablePosixFileAttributes", true));
            Stream<Path> files = Files.walk(zip.getPath("/"))) {
            files.filter(Files::isRegularFile).forEach(file -> {
                try {
                    Path target = site.resolve(file.toString().substring(1));
                    Files.createDirectories(target.getParent());
                    Files.copy(file, target);
                    if (Files.getPosixFilePermissions(file).contains(PosixFilePermission.OWNER_EXECUTE)) {
                        assertTrue(target.toFile().setExecutable(true));
                    }
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
    }

    private static Ended run(Map<String, String> variables, String input, String... command) throws IOException,
        InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        Map<String, String> environment = new HashMap<>(variables);
        environment.put("PATH", System.getenv("PATH"));
        environment.put("HAWSER_CONFIG", "/dev/null");
        environment.put("HAWSER_CONNECT_TIMEOUT_MS", "60000");
        builder.environment().clear();
        builder.environment().putAll(environment);
        Process process = builder.start();
        try (var in = process.getOutputStream()) {
            in.write(input.getBytes(StandardCharsets.UTF_8));
        }
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(process.waitFor(LIMIT_S, TimeUnit.SECONDS), "the program does not end");
        return new Ended(process.exitValue(), out);
    }

    private static Ended python(Map<String, String> variables, String input, String... arguments) throws IOException,
        InterruptedException {
        List<String> command = new ArrayList<>(List.of(python.toString()));
        command.addAll(List.of(arguments));
        return run(variables, input, command.toArray(String[]::new));
    }

    @ParameterizedTest
    @EnumSource
    void shouldRunPythonWithoutCommandInFront(Carrier carrier) throws Exception {
        Ended ended = python(carrier.environment(broker), "", SCRIPT.toString(), "--case", "copies");
        assertEquals(0, ended.exit(), ended::toString);
        assertTrue(ended.out().contains("\"result\": true"), ended::toString);
        broker.awaitIdle();
    }

    @Test
    void shouldKeepArgumentsInputAndOptionsOfTheInterpreter() throws Exception {
        String program = "import sys; print(sys.argv[1:], sys.flags.dev_mode, sys.prefix, sys.stdin.read())";
        Ended ended = python(Map.of(), "input", "-X", "dev", "-c", program, "a b", "", "-u");
        assertEquals("['a b', '', '-u'] True " + folder.resolve("venv") + " input\n", ended.out());
        assertEquals("7\n", python(Map.of(), "print(3 + 4)", "-").out());
        assertEquals(5, python(Map.of(), "", "-c", "import sys; sys.exit(5)").exit());
    }

    @Test
    void shouldDoNothingOnRequest() throws Exception {
        String program = "import os; print(os.environ.get('LD_AUDIT', 'none').rpartition('/')[2])";
        assertEquals("libhawser-audit.so\n", python(Map.of(), "", "-c", program).out());
        assertEquals("none\n", python(Map.of("HAWSER_PYTHON", "off"), "", "-c", program).out());
        assertEquals("none\n", python(Map.of(), "", "-S", "-c", program).out(), "without site-packages");
    }

    @Test
    void shouldRunPythonWhoseLibrariesAreMissing() throws Exception {
        Path command = site.resolve("hawser_guest/bin/hawser");
        Path away = command.resolveSibling("away");
        Files.move(command, away);
        try {
            Ended ended = python(Map.of(), "", "-c", "print('runs')");
            assertEquals(0, ended.exit());
            assertTrue(ended.out().startsWith("hawser: Python runs without Hawser's libraries: "), ended::toString);
            assertTrue(ended.out().endsWith("runs\n"), ended::toString);
        } finally {
            Files.move(away, command);
        }
    }

    /** pip verifies the digests of RECORD in some versions, and removes the files that it lists. */
    @Test
    void shouldListEachFileWithItsDigest() throws Exception {
        try (FileSystem zip = FileSystems.newFileSystem(wheel(), Map.of());
            Stream<Path> files = Files.walk(zip.getPath("/"))) {
            Set<String> present = new TreeSet<>();
            List<String> record = List.of();
            for (Path file : (Iterable<Path>) files.filter(Files::isRegularFile)::iterator) {
                present.add(file.toString().substring(1));
                record = file.endsWith("RECORD") ? Files.readAllLines(file) : record;
            }
            Set<String> listed = new TreeSet<>();
            for (String line : record) {
                String[] parts = line.split(",", -1);
                listed.add(parts[0]);
                if (!parts[0].endsWith("/RECORD")) {
                    byte[] bytes = Files.readAllBytes(zip.getPath("/" + parts[0]));
                    assertEquals("sha256=" + Base64.getUrlEncoder().withoutPadding()
                        .encodeToString(MessageDigest.getInstance("SHA-256").digest(bytes)), parts[1], parts[0]);
                    assertEquals(bytes.length, Integer.parseInt(parts[2]), parts[0]);
                }
            }
            assertEquals(present, listed);
        }
    }
}
