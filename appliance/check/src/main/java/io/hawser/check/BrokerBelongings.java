package io.hawser.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The broker's resources at one moment.
 *
 * @param workers its child processes.
 * @param descriptors its open descriptors.
 * @param threads its threads.
 * @param residentKib its resident memory.
 * @param sessions in the REST interface.
 * @param deviceBytes of all sessions, in the REST interface.
 * @param sharedMemory names in /dev/shm.
 */
record BrokerBelongings(long workers, long descriptors, long threads, long residentKib, int sessions, long deviceBytes,
    Set<String> sharedMemory) {
    /** The REST interface keeps connections for a moment, so the number of descriptors varies a little. */
    private static final int DESCRIPTOR_MARGIN = 6;
    /** Thread pools grow with use. */
    private static final int THREAD_MARGIN = 8;
    /** Garbage that is not collected yet. A leak in every session would exceed this. */
    private static final long RESIDENT_MARGIN_KIB = 64 * 1024;

    /** Reads the present resources. */
    static BrokerBelongings of(BrokerChild broker) {
        Path process = Path.of("/proc/" + broker.process().pid());
        long deviceBytes = 0;
        for (var gpu : broker.get("/api/v1/gpus")) {
            deviceBytes += gpu.path("usedBytes").asLong();
        }
        return new BrokerBelongings(broker.process().descendants().count(), count(process.resolve("fd")),
            count(process.resolve("task")), ProcessMemory.residentKib(broker.process().pid()),
            broker.get("/api/v1/sessions").size(), deviceBytes,
            names(Path.of("/dev/shm")));
    }

    private static long count(Path folder) {
        return names(folder).size();
    }

    private static Set<String> names(Path folder) {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).collect(Collectors.toCollection(TreeSet::new));
        } catch (IOException e) {
            throw new CheckException("a folder must be readable: " + folder, e);
        }
    }

    /** Descriptions of all leaks since an earlier moment; empty if there are none. */
    List<String> leaksSince(BrokerBelongings before) {
        List<String> leaks = new ArrayList<>();
        check(leaks, "workers", before.workers, workers, 0);
        check(leaks, "descriptors", before.descriptors, descriptors, DESCRIPTOR_MARGIN);
        check(leaks, "threads", before.threads, threads, THREAD_MARGIN);
        check(leaks, "resident memory in KiB", before.residentKib, residentKib, RESIDENT_MARGIN_KIB);
        check(leaks, "sessions", 0, sessions, 0);
        check(leaks, "device memory in bytes", 0, deviceBytes, 0);
        Set<String> more = new TreeSet<>(sharedMemory);
        more.removeAll(before.sharedMemory);
        more.removeIf(name -> !name.startsWith("hawser") || name.startsWith(Workplace.REGION_PREFIX)); // of others
        if (!more.isEmpty()) {
            leaks.add("shared memory: " + more);
        }
        return leaks;
    }

    private static void check(List<String> leaks, String what, long before, long after, long margin) {
        if (after > before + margin) {
            leaks.add(what + ": " + before + " before, " + after + " after, at most " + margin + " more are right");
        }
    }

    @Override
    public String toString() {
        return String.format("%3d workers  %4d descriptors  %3d threads  %7d KiB  %d sessions  %d bytes of the GPU  "
            + "%d names in /dev/shm", workers, descriptors, threads, residentKib, sessions, deviceBytes,
            sharedMemory.size());
    }
}
