package io.hawser.worker.jail;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A real process in the jail. Its classes are in a jar, as a worker's are, because a jailed process cannot load from a
 * folder.
 */
@Timeout(300)
class JailIT {
    private static final long TIMEOUT_S = 60; // a prisoner needs a second or two
    private static final long POLL_MS = 10;
    private static final String WAIT = "wait";
    private static final int SIGSYS = 31;
    private static final int USER = 1_900_065_000;
    private static final long EPERM = -1;

    @TempDir
    private static Path folder;
    private static Path jar;

    @BeforeAll
    static void pack() throws IOException {
        jar = folder.resolve("prisoner.jar");
        try (OutputStream file = Files.newOutputStream(jar); JarOutputStream out = new JarOutputStream(file)) {
            for (Class<?> kind : List.of(Jail.class, Prisoner.class)) {
                Path root = Path.of(kind.getProtectionDomain().getCodeSource().getLocation().getPath());
                if (Files.isDirectory(root)) {
                    copy(root, out);
                } else { // after a Maven build, the worker's classes are in a jar already
                    try (FileSystem classes = FileSystems.newFileSystem(root)) {
                        copy(classes.getPath("/"), out);
                    }
                }
            }
        }
    }

    private static void copy(Path root, JarOutputStream out) throws IOException {
        try (Stream<Path> classes = Files.walk(root.resolve("io/hawser/worker/jail"))) {
            for (Path one : classes.filter(path -> path.toString().endsWith(".class")
                && !path.endsWith("package-info.class")).toList()) {
                out.putNextEntry(new JarEntry(root.relativize(one).toString()));
                Files.copy(one, out);
            }
        }
    }

    private record Outcome(int exit, List<String> lines) {
        String report() {
            return lines.stream().filter(line -> line.startsWith("report ")).findFirst().orElseThrow();
        }
    }

    /** Inspects a prisoner from outside, in its folder of /proc. */
    @FunctionalInterface
    private interface Look {
        void at(Path process) throws IOException;
    }

    /** Without compilers, no other thread can have returned memory before the jail. */
    private static String jvmMode(String... acts) {
        return List.of(acts).equals(List.of(Prisoner.RETURN_MEMORY)) ? "-Xint" : "-Xmixed";
    }

    private static Outcome run(String mode, int user, String... acts) throws IOException, InterruptedException {
        return run(process -> {}, mode, user, acts);
    }

    /**
     * Runs a prisoner to its end. Ends a prisoner that hangs, and reports the reason; no process outlives this call.
     *
     * @param look runs when the prisoner waits, if it does.
     */
    private static Outcome run(Look look, String mode, int user, String... acts)
        throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin",
            "java").toString(), jvmMode(acts), "-XX:+UseSerialGC", "-XX:-UsePerfData",
            "--enable-native-access=ALL-UNNAMED", "-cp",
            jar.toString(), Prisoner.class.getName(), mode, Integer.toString(user)));
        command.addAll(List.of(acts));
        // A file instead of a pipe: with a broken filter, a child of the prisoner would keep a pipe open for ever.
        Path output = Files.createTempFile(folder, "prisoner", ".out");
        Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile())
            .start();
        boolean hasEnded;
        List<Long> left;
        try {
            if (List.of(acts).contains(WAIT)) {
                awaitWait(process, output);
                look.at(Path.of("/proc", Long.toString(process.pid())));
            }
            process.getOutputStream().close();
            hasEnded = process.waitFor(TIMEOUT_S, TimeUnit.SECONDS);
        } finally {
            process.destroyForcibly().waitFor();
            left = endAll();
        }
        List<String> lines = lines(output);
        assertTrue(hasEnded, () -> "the prisoner hung at the last of these lines: " + lines);
        assertEquals(List.of(), left, () -> "the prisoner left these processes: " + lines);
        return new Outcome(process.exitValue(), lines);
    }

    private static List<String> lines(Path output) throws IOException {
        return new String(Files.readAllBytes(output), StandardCharsets.UTF_8).lines().toList();
    }

    private static void awaitWait(Process process, Path output) throws IOException, InterruptedException {
        long deadlineNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_S);
        while (!lines(output).contains("try " + WAIT)) {
            boolean isOver = process.waitFor(POLL_MS, TimeUnit.MILLISECONDS) || System.nanoTime() - deadlineNs > 0;
            List<String> lines = lines(output);
            assertFalse(isOver, () -> "the prisoner never waited: " + lines);
        }
    }

    /** Ends each process with the prisoners' jar in its command line, children of children too; returns their ids. */
    private static List<Long> endAll() throws IOException, InterruptedException {
        Set<Long> ended = new TreeSet<>();
        for (List<Long> left = prisoners(); !left.isEmpty(); left = prisoners()) {
            ended.addAll(left);
            left.forEach(id -> ProcessHandle.of(id).ifPresent(ProcessHandle::destroyForcibly));
            Thread.sleep(POLL_MS);
        }
        return List.copyOf(ended);
    }

    private static List<Long> prisoners() throws IOException {
        List<Long> found = new ArrayList<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(Path.of("/proc"), "[0-9]*")) {
            for (Path process : processes) {
                if (isPrisoner(process)) {
                    found.add(Long.parseLong(process.getFileName().toString()));
                }
            }
        }
        return found;
    }

    /** Checks the command lines of the threads, because a process whose first thread has ended has none. */
    private static boolean isPrisoner(Path process) {
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(process.resolve("task"))) {
            for (Path thread : threads) {
                String command = new String(Files.readAllBytes(thread.resolve("cmdline")), StandardCharsets.UTF_8);
                if (command.contains(jar.toString())) {
                    return true;
                }
            }
        } catch (IOException | DirectoryIteratorException e) {
            return false; // the process ended meanwhile
        }
        return false;
    }

    private static boolean isRoot() throws IOException {
        return Files.readString(Path.of("/proc/self/status")).contains("CapEff:\t000001ff");
    }

    private static final String[] REFUSED = {"openat", "open", "create", "open-memory-of-broker", "open-here",
        "openat2", "stat", "unlink", "mkdir", "chroot", "socket-inet", "socket-unix", "socketpair", "connect", "bind",
        "fork", "vfork", "clone-process", "kill-broker", "kill-all", "tgkill-broker", "tkill-broker",
        "rt_sigqueueinfo", "pidfd_open", "process_vm_readv", "kcmp", "setresuid", "capset", "unshare", "setns", "bpf",
        "io_uring_setup", "perf_event_open", "userfaultfd", "keyctl", "shmget", "prctl-dumpable", "setrlimit"};

    private static void assertAllRefused(Outcome outcome) {
        assertEquals(0, outcome.exit(), outcome::toString);
        assertTrue(outcome.lines().contains("before 0"), outcome::toString);
        for (String act : REFUSED) {
            assertTrue(outcome.lines().contains(act + ' ' + EPERM), () -> act + ": " + outcome);
        }
        assertTrue(outcome.lines().contains("signal 0"), outcome::toString);
        assertTrue(outcome.lines().contains("alive 0"), outcome::toString);
    }

    @Test
    void shouldRefuseEverythingThatLeadsOut() throws IOException, InterruptedException {
        Outcome outcome = run("AUTO", 0, REFUSED);
        assertAllRefused(outcome);
        assertTrue(outcome.report().contains("system calls"), outcome::toString);
        assertTrue(outcome.report().contains("no_new_privs"), outcome::toString);
        assertTrue(outcome.report().contains("not: user of its own"), outcome::toString);
    }

    @Test
    void shouldChangeUserAsRoot() throws IOException, InterruptedException {
        assumeTrue(isRoot(), "SKIPPED: a change of user needs root");
        Outcome outcome = run("STRICT", USER, REFUSED);
        assertAllRefused(outcome);
        assertTrue(outcome.report().contains("user " + USER), outcome::toString);
        assertTrue(outcome.report().contains("no capabilities"), outcome::toString);
        assertTrue(outcome.report().contains("empty root folder"), outcome::toString);
        assertFalse(outcome.report().contains("not:"), outcome::toString);
    }

    @ParameterizedTest
    @ValueSource(strings = {"execve", "ptrace", "process_vm_writev", "mount"})
    void shouldKillProcessThatMakesDeadlyCall(String act) throws IOException, InterruptedException {
        Outcome outcome = run("AUTO", 0, act);
        assertEquals(128 + SIGSYS, outcome.exit(), outcome::toString);
        assertFalse(outcome.lines().stream().anyMatch(line -> line.startsWith(act)), outcome::toString);
    }

    @Test
    void shouldFailIfStrictJailIsIncomplete() throws IOException, InterruptedException {
        Outcome outcome = run("STRICT", 0, "openat");
        assertEquals(1, outcome.exit(), outcome::toString);
        assertTrue(outcome.lines().stream().anyMatch(line -> line.contains("the jail must be complete")
            && line.contains("user of its own")), outcome::toString);
    }

    /** A thread that opens a file waits for the watcher. It must not hold the lock of the memory meanwhile. */
    @Test
    void shouldReturnMemoryWithoutAWatcher() throws IOException, InterruptedException {
        Outcome outcome = run("AUTO", isRoot() ? USER : 0, Prisoner.RETURN_MEMORY);
        assertEquals(0, outcome.exit(), outcome::toString);
        assertTrue(outcome.lines().contains(Prisoner.RETURN_MEMORY + " 0"), outcome::toString);
    }

    @Test
    void shouldChangeNothingWhenOff() throws IOException, InterruptedException {
        Outcome outcome = run("OFF", 0, "stat", "socketpair");
        assertEquals(0, outcome.exit(), outcome::toString);
        assertTrue(outcome.lines().contains("stat 0"), outcome::toString);
        assertTrue(outcome.lines().contains("socketpair 0") || outcome.lines().contains("socketpair -14"),
            outcome::toString);
    }

    private static Map<String, String> fields(Path file) throws IOException {
        return Files.readAllLines(file).stream().map(line -> line.split(":\\s*|  +", 2))
            .collect(Collectors.toMap(field -> field[0], field -> field.length > 1 ? field[1].strip() : ""));
    }

    /** Checks the kernel's view, because the report comes from the process itself. */
    private static void assertHasNothing(Path process) throws IOException {
        Map<String, String> status = fields(process.resolve("status"));
        String user = String.join("\t", Collections.nCopies(4, Integer.toString(USER)));
        assertEquals(user, status.get("Uid"));
        assertEquals(user, status.get("Gid"));
        assertEquals("", status.get("Groups"));
        for (String set : List.of("CapInh", "CapPrm", "CapEff", "CapAmb")) {
            assertEquals("0000000000000000", status.get(set), set);
        }
        assertEquals("1", status.get("NoNewPrivs"));
        assertEquals("2", status.get("Seccomp"));
        Map<String, String> limits = fields(process.resolve("limits"));
        assertTrue(limits.get("Max core file size").startsWith("0 "), limits::toString);
        assertTrue(limits.get("Max msgqueue size").startsWith("0 "), limits::toString);
        assertTrue(limits.get("Max open files").matches("16384 +16384 .*"), limits::toString);
        assertTrue(limits.get("Max processes").matches("4096 +4096 .*"), limits::toString);
        assertEquals("500", Files.readString(process.resolve("oom_score_adj")).strip());
        try (Stream<Path> files = Files.list(process.resolve("root"))) {
            assertEquals(List.of(), files.toList());
        }
    }

    @Test
    void shouldHaveNothingButItsGuest() throws IOException, InterruptedException {
        assumeTrue(isRoot(), "SKIPPED: a complete jail needs root");
        Outcome outcome = run(JailIT::assertHasNothing, "STRICT", USER, WAIT);
        assertEquals(0, outcome.exit(), outcome::toString);
    }
}
