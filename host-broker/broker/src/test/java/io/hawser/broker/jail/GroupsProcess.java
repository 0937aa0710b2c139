package io.hawser.broker.jail;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/**
 * A process that makes control groups for workers as the broker does, and starts workers that exceed their limits. The
 * process must be alone in its control group. Each check that holds prints a line. A failed check ends the process with
 * status 1, a machine without control groups with 77.
 */
final class GroupsProcess {
    private static final int MAX_THREADS = 32;
    private static final long MEBIBYTE = 1 << 20;
    private static final long LIMIT_NS = TimeUnit.SECONDS.toNanos(60);

    private static Process left;

    private GroupsProcess() {
    }

    private static void check(String what, boolean holds) {
        if (!holds) {
            System.out.println("NOT " + what);
            System.exit(1);
        }
        System.out.println(what);
    }

    /** Starts a shell that reads a line before it runs the script, so that the script runs inside the group. */
    private static Process shell(String script) throws IOException {
        return new ProcessBuilder("sh", "-c", "read -r go && " + script).redirectErrorStream(true).start();
    }

    private static String run(Process process) throws IOException, InterruptedException {
        try (var input = process.outputWriter()) {
            input.write("go\n");
        }
        String output = new String(process.getInputStream().readAllBytes());
        process.waitFor();
        return output;
    }

    private static void await(String what, Callable<Boolean> condition) throws Exception {
        long deadlineNs = System.nanoTime() + LIMIT_NS;
        while (!condition.call()) {
            check(what, System.nanoTime() < deadlineNs);
            TimeUnit.MILLISECONDS.sleep(20);
        }
        System.out.println(what);
    }

    private static WorkerGroups open() throws IOException {
        try {
            return WorkerGroups.open(Path.of("/proc/self"), ProcessHandle.current().pid(), MAX_THREADS);
        } catch (WorkerGroups.MissingException e) {
            System.out.println("SKIPPED: " + e.getMessage());
            System.exit(77);
            throw new IOException(e);
        }
    }

    private static void limits(WorkerGroups groups) throws Exception {
        Process modest = shell("echo alive");
        groups.enter(1, (int) modest.pid(), 64 * MEBIBYTE, Confinement.AWAITED_WEIGHT);
        check("a worker is in a group of its own", Files.readString(Path.of("/proc/" + modest.pid() + "/cgroup"))
            .contains("hawser-workers/worker-1"));
        check("a worker within its limits runs", run(modest).equals("alive\n"));
        check("a worker within its limits does not run out of memory", !groups.ranOut(1));
        // tail holds a line in memory until its end, and zeros have no end of line.
        Process greedy = shell("head -c 1000000000 /dev/zero | tail; echo survived");
        groups.enter(2, (int) greedy.pid(), 64 * MEBIBYTE, Confinement.AWAITED_WEIGHT);
        String said = run(greedy);
        check("the kernel kills a worker that takes too much memory: " + said.strip(), !said.contains("survived"));
        check("the broker sees that the worker ran out of memory", groups.ranOut(2));
        Process more = shell("head -c 100000000 /dev/zero | tail | wc -c; echo survived");
        groups.enter(3, (int) more.pid(), 64 * MEBIBYTE, Confinement.AWAITED_WEIGHT);
        groups.limit(3, 400 * MEBIBYTE);
        Path memory = groups.groups().stream().filter(group -> group.endsWith("worker-3")).findFirst().orElseThrow()
            .resolve("memory.max");
        await("the changed limit is in effect",
            () -> Files.readString(memory).strip().equals(Long.toString(400 * MEBIBYTE)));
        if (groups.noWeights().isEmpty()) {
            check("a starting worker has the greatest weight", Files.readString(memory.resolveSibling("cpu.weight"))
                .strip().equals("10000"));
            groups.weigh(3, 7500);
            await("the weight is in effect",
                () -> Files.readString(memory.resolveSibling("cpu.weight")).strip().equals("7500"));
        } else {
            System.out.println("SKIPPED: no weight: " + groups.noWeights());
        }
        said = run(more);
        check("a worker with a raised limit continues: " + said.strip(), said.contains("survived"));
        Process bomb = shell("i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i + 1)); done; echo started $i");
        groups.enter(4, (int) bomb.pid(), 256 * MEBIBYTE, Confinement.AWAITED_WEIGHT);
        said = run(bomb);
        check("a worker cannot start more processes than its limit", !said.contains("started 100"));
        for (int worker = 1; worker <= 4; worker++) {
            groups.leave(worker);
        }
        await("no group is left", () -> groups.groups().isEmpty());
        left = shell("sleep 600");
        groups.enter(5, (int) left.pid(), 256 * MEBIBYTE, Confinement.AWAITED_WEIGHT);
    }

    /** Runs the checks. An argument names the group to return to, as a broker does that starts after a kill. */
    public static void main(String[] arguments) throws Exception {
        try (WorkerGroups groups = open()) {
            limits(groups);
        }
        if (arguments.length > 0) {
            Files.writeString(Path.of(arguments[0], "cgroup.procs"), Long.toString(ProcessHandle.current().pid()));
            try (WorkerGroups again = open()) {
                check("a new start removes the left groups", again.groups().isEmpty());
                await("a new start ends the left processes", () -> !left.isAlive());
            }
        }
        left.destroyForcibly();
        System.out.println("all as it should be");
    }
}
