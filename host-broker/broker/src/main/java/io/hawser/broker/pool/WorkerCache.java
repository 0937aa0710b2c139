package io.hawser.broker.pool;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jboss.logging.Logger;

/**
 * The JVM's ahead-of-time cache of the classes that a starting worker loads and links, and of the profiles of its code
 * (JEP 483, 514, 515). The build makes a cache for each kind of GPU beside the worker's jars
 * ({@code appliance/runtime/make-cache}). Only the Java runtime of the build can use them. Thread-safe.
 */
public final class WorkerCache {
    private static final Logger LOG = Logger.getLogger(WorkerCache.class);
    /** For the software GPU, and for any GPU that lacks a cache of its own. */
    private static final String FILE = "worker.aot";
    private static final String NVIDIA_FILE = "worker-nvidia.aot";
    private static final String RELEASE = ".release"; // ends the name of a copy of that runtime's file "release"

    private final Path file;
    private volatile boolean isUsable;

    /**
     * Looks for the cache.
     *
     * @param jars folder of the worker's jars.
     * @param javaHome folder of the Java runtime that runs workers.
     * @param isNvidia whether the workers open NVIDIA's GPUs.
     * @throws IOException if a file of the cache cannot be read.
     */
    public WorkerCache(Path jars, Path javaHome, boolean isNvidia) throws IOException {
        Path release = javaHome.resolve("release");
        Path own = jars.resolve(isNvidia ? NVIDIA_FILE : FILE);
        file = isUsable(own, release) ? own : jars.resolve(FILE);
        isUsable = isUsable(file, release);
    }

    private static boolean isUsable(Path file, Path release) throws IOException {
        Path madeBy = file.resolveSibling(file.getFileName() + RELEASE);
        return Files.isRegularFile(file) && Files.isRegularFile(madeBy) && Files.isRegularFile(release)
            && Files.mismatch(madeBy, release) < 0;
    }

    /**
     * Adds the cache to a worker's command line, whose first part is the Java program, unless the cache is unusable.
     */
    List<String> use(List<String> command) {
        if (!isUsable) {
            return command;
        }
        List<String> line = new ArrayList<>(command);
        line.add(1, "-XX:AOTCache=" + file);
        return line;
    }

    /** Omits the cache from all later command lines: a worker has failed to start, perhaps because of the cache. */
    void disable() {
        if (isUsable) {
            isUsable = false;
            LOG.warnf("a worker failed to start; workers now start without the cache: file=%s", file);
        }
    }
}
