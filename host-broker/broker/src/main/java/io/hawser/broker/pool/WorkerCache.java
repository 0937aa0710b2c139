package io.hawser.broker.pool;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jboss.logging.Logger;

/**
 * The JVM's ahead-of-time cache of classes that a starting worker loads and links (JEP 483, 514). The build makes the
 * cache beside the worker's jars ({@code appliance/runtime/make-cache}). Only the Java runtime of the build can use it.
 * Thread-safe.
 */
public final class WorkerCache {
    private static final Logger LOG = Logger.getLogger(WorkerCache.class);
    private static final String FILE = "worker.aot";
    private static final String RELEASE = "worker.aot.release"; // a copy of that runtime's file "release"

    private final Path file;
    private volatile boolean isUsable;

    /**
     * Looks for the cache.
     *
     * @param jars folder of the worker's jars.
     * @param javaHome folder of the Java runtime that runs workers.
     * @throws IOException if a file of the cache cannot be read.
     */
    public WorkerCache(Path jars, Path javaHome) throws IOException {
        file = jars.resolve(FILE);
        Path madeBy = jars.resolve(RELEASE);
        Path release = javaHome.resolve("release");
        isUsable = Files.isRegularFile(file) && Files.isRegularFile(madeBy) && Files.isRegularFile(release)
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
