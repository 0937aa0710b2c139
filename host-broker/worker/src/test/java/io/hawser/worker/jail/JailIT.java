package io.hawser.worker.jail;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A real process in the jail. Its classes are in a jar, as a worker's are: from a folder it could load no more. */
@Timeout(300)
class JailIT {
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
                } else { // built by Maven, the worker's own are in a jar already
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

    private static Outcome run(String mode, int user, String... acts) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin",
            "java").toString(), "-XX:+UseSerialGC", "-XX:-UsePerfData", "--enable-native-access=ALL-UNNAMED", "-cp",
            jar.toString(), Prisoner.class.getName(), mode, Integer.toString(user)));
        command.addAll(List.of(acts));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Outcome(process.waitFor(), output.lines().toList());
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
    void shouldBecomeSomebodyElseWhereItMay() throws IOException, InterruptedException {
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
    void shouldEndWhoActsAsNoWorkerDoes(String act) throws IOException, InterruptedException {
        Outcome outcome = run("AUTO", 0, act);
        assertEquals(128 + SIGSYS, outcome.exit(), outcome::toString);
        assertFalse(outcome.lines().stream().anyMatch(line -> line.startsWith(act)), outcome::toString);
    }

    @Test
    void shouldNotGoOnWithoutWhatStrictAsksFor() throws IOException, InterruptedException {
        Outcome outcome = run("STRICT", 0, "openat");
        assertEquals(1, outcome.exit(), outcome::toString);
        assertTrue(outcome.lines().stream().anyMatch(line -> line.contains("the jail must be complete")
            && line.contains("user of its own")), outcome::toString);
    }

    @Test
    void shouldChangeNothingWhenOff() throws IOException, InterruptedException {
        Outcome outcome = run("OFF", 0, "stat", "socketpair");
        assertEquals(0, outcome.exit(), outcome::toString);
        assertTrue(outcome.lines().contains("stat 0"), outcome::toString);
        assertTrue(outcome.lines().contains("socketpair 0") || outcome.lines().contains("socketpair -14"),
            outcome::toString);
    }
}
