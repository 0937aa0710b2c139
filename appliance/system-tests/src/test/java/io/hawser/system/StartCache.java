package io.hawser.system;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Iterator;
import java.util.Map;
import java.util.function.Supplier;

/**
 * What makes the starts of workers shorter ({@code hawser.worker.start-cache}), which are most of what these tests
 * take: made by the first broker of a run and given to those after it, each of which has a new state folder.
 * Thread-safe.
 */
final class StartCache {
    /** The broker's own limit of making it, which it counts from a later time, and more. */
    private static final Duration LIMIT = Duration.ofSeconds(300);
    private static final String FILES = "worker-????????????????.aot"; // the digest of Java, jars and command
    private static final Path FOLDER = Chain.OUTPUT.resolve("start-cache");
    private static Path kept;

    private StartCache() {
    }

    /** Whether the workers of a broker with these settings have the command line that the cache is for. */
    static boolean fits(Map<String, String> settings) {
        return !settings.containsKey("hawser.gpu.software.devices") && !settings.containsKey("hawser.worker.command");
    }

    /** Gives it to a broker that will start, if it has been made. */
    static synchronized void give(Path stateDir) throws IOException {
        if (kept != null) {
            Files.createDirectories(stateDir.getParent());
            if (!Files.isDirectory(stateDir)) {
                Files.createDirectory(stateDir, // as the broker itself would make it
                    PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            }
            Path given = stateDir.resolve(kept.getFileName());
            if (!Files.exists(given)) { // else the broker is started again
                Files.copy(kept, given);
            }
        }
    }

    /** Keeps what a started broker makes, unless there is one. */
    static synchronized void keep(Path stateDir, Supplier<String> otherwise) throws IOException {
        if (kept != null) {
            return;
        }
        Await.until("the making of the workers' cache", LIMIT, otherwise, () -> made(stateDir) == null ? "none" : "");
        Path made = made(stateDir);
        Path copy = Files.createDirectories(FOLDER).resolve(made.getFileName());
        Files.copy(made, copy, StandardCopyOption.REPLACE_EXISTING); // an earlier run's
        kept = copy;
    }

    /** What a broker has made, or null; it has its name when it is whole. */
    private static Path made(Path stateDir) throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(stateDir, FILES)) {
            Iterator<Path> each = files.iterator();
            return each.hasNext() ? each.next() : null;
        }
    }
}
