package io.hawser.broker.pool;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jboss.logging.Logger;

/**
 * The JVM's cache of what a starting worker loads and links (JEP 483, 514): made once by a worker that only warms up,
 * then used by all that start later, until the Java, the jars or the flags are others. Thread-safe.
 */
public final class WorkerCache {
    private static final Logger LOG = Logger.getLogger(WorkerCache.class);
    private static final String PREFIX = "worker-";
    private static final String SUFFIX = ".aot";
    private static final int DIGEST_CHARACTERS = 16;
    private static final long TRAINING_LIMIT_S = 180;

    private final Path folder;
    private final List<String> command;
    private final List<String> environment;
    private final Path file;
    private final AtomicBoolean begun = new AtomicBoolean();
    private volatile boolean isUsable;

    /**
     * Looks for the cache.
     *
     * @param folder of the broker alone, where it is kept.
     * @param command of a worker: a Java and its arguments.
     * @param environment of a worker.
     * @param jars folder of the worker's jars.
     * @throws IOException if the jars cannot be listed.
     */
    public WorkerCache(Path folder, List<String> command, List<String> environment, Path jars) throws IOException {
        this.folder = folder;
        this.command = List.copyOf(command);
        this.environment = List.copyOf(environment);
        file = folder.resolve(PREFIX + digest(command, jars) + SUFFIX);
        isUsable = Files.isRegularFile(file);
    }

    private static String digest(List<String> command, Path jars) throws IOException {
        // The JVM looks at these itself, and leaves out a cache that does not fit.
        TreeSet<String> parts = new TreeSet<>();
        try (DirectoryStream<Path> all = Files.newDirectoryStream(jars, "*.jar")) {
            for (Path jar : all) {
                parts.add(jar + " " + Files.size(jar) + " " + Files.getLastModifiedTime(jar));
            }
        }
        String text = System.getProperty("java.vm.version") + command + parts;
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(
                text.getBytes(StandardCharsets.UTF_8))).substring(0, DIGEST_CHARACTERS);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    /** The command line of a worker that uses the cache if there is one. */
    List<String> use() {
        return isUsable ? with("-XX:AOTCache=" + file) : command;
    }

    private List<String> with(String flag) {
        List<String> line = new ArrayList<>(command);
        line.add(1, flag);
        return line;
    }

    /** Where the cache is, or will be. */
    Path file() {
        return file;
    }

    /** A worker has failed to start: the cache is not what further ones shall fail by. */
    void distrust() {
        if (isUsable) {
            isUsable = false;
            LOG.warnf("workers start without their cache from now on: %s", file);
            remove(file);
        }
    }

    /** Makes the cache unless it is there; once, on a thread of its own. */
    public void make() {
        if (!isUsable && begun.compareAndSet(false, true)) {
            Thread.ofPlatform().daemon().name("hawser-worker-cache").start(this::train);
        }
    }

    private void train() {
        Path unfinished = folder.resolve(PREFIX + "unfinished" + SUFFIX);
        try {
            long startNs = System.nanoTime();
            List<String> line = new ArrayList<>(with("-XX:AOTCacheOutput=" + unfinished));
            line.addAll(List.of("--train", "1"));
            ProcessBuilder builder = new ProcessBuilder(line);
            builder.environment().clear();
            for (String variable : environment) {
                int equals = variable.indexOf('=');
                builder.environment().put(variable.substring(0, equals), variable.substring(equals + 1));
            }
            builder.redirectErrorStream(true).redirectOutput(folder.resolve("worker-cache.log").toFile());
            Process training = builder.start();
            training.getOutputStream().close();
            if (!training.waitFor(TRAINING_LIMIT_S, TimeUnit.SECONDS)) {
                training.descendants().forEach(ProcessHandle::destroyForcibly);
                training.destroyForcibly();
                LOG.warnf("the workers' cache was not made in time: limitS=%d", TRAINING_LIMIT_S);
            } else if (training.exitValue() != 0 || !Files.isRegularFile(unfinished)) {
                LOG.warnf("the workers' cache could not be made: exit=%d, see %s", training.exitValue(),
                    folder.resolve("worker-cache.log"));
            } else {
                removeOthers(unfinished);
                Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
                isUsable = true;
                LOG.infof("the workers' cache is made: bytes=%d timeMs=%d", Files.size(file),
                    TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNs));
            }
        } catch (IOException e) {
            LOG.warnf("the workers' cache could not be made: %s", e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            remove(unfinished);
        }
    }

    private void removeOthers(Path unfinished) throws IOException {
        try (DirectoryStream<Path> old = Files.newDirectoryStream(folder, PREFIX + "*" + SUFFIX)) {
            for (Path one : old) {
                if (!one.equals(unfinished)) {
                    remove(one);
                }
            }
        }
    }

    private static void remove(Path path) {
        try {
            Files.deleteIfExists(path);
        } catch (IOException e) {
            LOG.debugf("a file of the workers' cache stays: %s", e.getMessage());
        }
    }
}
