package io.hawser.broker.jail;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WorkerGroupsIT {
    private static final Path ROOT = Path.of("/sys/fs/cgroup");

    @TempDir
    Path folder;

    private static WorkerGroups.MissingException missing(Path proc) {
        return assertThrows(WorkerGroups.MissingException.class, () -> WorkerGroups.open(proc, 1, 1));
    }

    private Path proc(String cgroup, String mountinfo) throws IOException {
        Files.writeString(folder.resolve("cgroup"), cgroup);
        Files.writeString(folder.resolve("mountinfo"), mountinfo);
        return folder;
    }

    private String mount(String root, Path place, String type) {
        return "22 1 0:20 / /sys rw - sysfs sysfs rw\n30 22 0:26 " + root + " " + place + " rw,nosuid shared:9 - "
            + type + " x rw\n";
    }

    @Test
    void shouldSayWhyThereCanBeNoGroups() throws Exception {
        Path here = Files.createDirectories(folder.resolve("fs/unit"));
        assertTrue(missing(proc("1:cpu:/x\n", mount("/", folder.resolve("fs"), "cgroup"))).getMessage()
            .contains("no control groups of version 2"));
        assertTrue(missing(proc("0::/unit\n", mount("/other", folder.resolve("fs"), "cgroup2"))).getMessage()
            .contains("no control groups of version 2"));
        Files.writeString(here.resolve("cgroup.controllers"), "cpu pids\n");
        Files.writeString(here.resolve("cgroup.procs"), "");
        Path proc = proc("0::/outer/unit\n", mount("/outer", folder.resolve("fs"), "cgroup2"));
        assertTrue(missing(proc).getMessage().contains("controllers=[cpu, pids] (in a systemd unit: Delegate=yes)"));
    }

    /** Makes folders and files like the kernel's control groups, without effect. GroupsProcess uses the kernel's. */
    private Path groups(String controllers) throws IOException {
        Path own = Files.createDirectories(folder.resolve("fs/unit"));
        Path worker = Files.createDirectories(own.resolve("hawser-workers"));
        Files.createDirectories(own.resolve("hawser-broker"));
        Files.writeString(own.resolve("cgroup.controllers"), controllers + "\n");
        for (Path group : new Path[] {own, own.resolve("hawser-broker"), worker}) {
            Files.writeString(group.resolve("cgroup.procs"), "");
            Files.writeString(group.resolve("cgroup.subtree_control"), "");
        }
        proc("0::/unit\n", mount("/", folder.resolve("fs"), "cgroup2"));
        return worker;
    }

    @Test
    void shouldWeighWorkersByTheirShare() throws Exception {
        Path workers = groups("cpu io memory pids");
        Path weight;
        try (WorkerGroups groups = WorkerGroups.open(folder, 1, 1)) {
            assertEquals("", groups.noWeights());
            for (Path group : new Path[] {workers, workers.getParent()}) {
                assertTrue(Files.readString(group.resolve("cgroup.subtree_control")).startsWith("+cpu"),
                    group::toString);
            }
            weight = Files.writeString(Files.createDirectory(workers.resolve("worker-7")).resolve("cpu.weight"), "100");
            groups.weigh(7, 2500);
        }
        assertEquals("2500", Files.readString(weight), "close must write the pending weights");
    }

    @Test
    void shouldLimitWithoutWeightsWhereTheProcessorsAreNotDelegated() throws Exception {
        Path workers = groups("memory pids");
        Path weight;
        try (WorkerGroups groups = WorkerGroups.open(folder, 1, 1)) {
            assertTrue(groups.noWeights().contains("controllers=[memory, pids]"), groups.noWeights());
            weight = Files.writeString(Files.createDirectory(workers.resolve("worker-7")).resolve("cpu.weight"), "100");
            groups.weigh(7, 2500);
        }
        assertEquals("100", Files.readString(weight));
        assertEquals("+memory +pids", Files.readString(workers.resolve("cgroup.subtree_control")));
    }

    @Test
    void shouldLimitBySettingsAndBackend() {
        MemoryLimit standard = new MemoryLimit(OptionalLong.empty(), 64L << 30);
        MemoryLimit set = new MemoryLimit(OptionalLong.of(3L << 30), 64L << 30);
        assertEquals(32L << 30, standard.beforeSession());
        assertEquals(3L << 30, set.beforeSession());
        assertEquals((2L << 30) + 7 + 5, standard.duringSession("software", 7, 5));
        assertEquals((3L << 30) + 7 + 5, set.duringSession("software", 7, 5));
        assertEquals((32L << 30) + 5, standard.duringSession("nvidia", 7, 5),
            "device memory must not count as memory of the process");
        assertEquals((3L << 30) + 5, set.duringSession("nvidia", 7, 5));
    }

    /** Wraps a command to run it alone in a group: below systemd's user manager, or as root below the root group. */
    private static List<String> alone(List<String> command) throws IOException, InterruptedException {
        List<String> start = new ArrayList<>();
        if (Files.isWritable(ROOT.resolve("cgroup.subtree_control"))) {
            start.addAll(List.of("sh", "-c", "g=" + ROOT + "/hawser-test-$$; mkdir $g && echo $$ > $g/cgroup.procs "
                + "&& \"$@\"; s=$?; echo $$ > " + ROOT + "/cgroup.procs; find $g -depth -type d -exec rmdir {} +; "
                + "exit $s", "sh"));
        } else {
            Process manager = new ProcessBuilder("sh", "-c", "systemctl --user is-system-running").start();
            manager.waitFor();
            assumeTrue(manager.exitValue() == 0, "SKIPPED: no control group of version 2 can be had: not root in a "
                + "machine that has them, and no systemd of this user");
            start.addAll(List.of("systemd-run", "--user", "--scope", "-q", "-p", "Delegate=yes"));
        }
        start.addAll(command);
        return start;
    }

    @Test
    void shouldHoldWorkersThatWantTooMuch() throws Exception {
        Process process = new ProcessBuilder(alone(List.of(Path.of(System.getProperty("java.home"), "bin", "java")
            .toString(), "-Xmx64m", "-cp", System.getProperty("java.class.path"), GroupsProcess.class.getName())))
            .redirectErrorStream(true).start();
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes());
        assertTrue(process.waitFor(5, TimeUnit.MINUTES), output);
        assumeTrue(process.exitValue() != 77, output);
        assertEquals(0, process.exitValue(), output);
        assertTrue(output.contains("all as it should be"), output);
    }
}
