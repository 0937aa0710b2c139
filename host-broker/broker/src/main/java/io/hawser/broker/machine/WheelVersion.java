package io.hawser.broker.machine;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Stream;
import org.jboss.logging.Logger;

/** The version of a library that a wheel of Python has installed: its file's name has none, but the wheel has. */
final class WheelVersion {
    private static final Logger LOG = Logger.getLogger(WheelVersion.class);
    private static final Set<String> SITES = Set.of("site-packages", "dist-packages");
    private static final String INFO = ".dist-info";
    private static final long MAX_RECORD_BYTES = 4 << 20; // NVIDIA's wheels list some hundred files

    private WheelVersion() {
    }

    /** The version of the wheel that lists a file, for example 13.1.0.3; null when there is none. */
    static String of(Path file) {
        Path site = file.getParent();
        while (site != null && (site.getFileName() == null || !SITES.contains(site.getFileName().toString()))) {
            site = site.getParent();
        }
        if (site == null) {
            return null;
        }
        String listed = site.relativize(file) + ",";
        try (DirectoryStream<Path> wheels = Files.newDirectoryStream(site, "nvidia_*" + INFO)) {
            for (Path wheel : wheels) {
                if (lists(wheel.resolve("RECORD"), listed)) {
                    String name = wheel.getFileName().toString();
                    return name.substring(name.lastIndexOf('-', name.length() - INFO.length()) + 1,
                        name.length() - INFO.length());
                }
            }
        } catch (IOException e) {
            LOG.debugf("the wheels beside a library cannot be read: %s", e.getMessage());
        }
        return null;
    }

    private static boolean lists(Path record, String listed) throws IOException {
        if (!Files.isRegularFile(record) || Files.size(record) > MAX_RECORD_BYTES) {
            return false;
        }
        try (Stream<String> lines = Files.lines(record)) {
            return lines.anyMatch(line -> line.startsWith(listed));
        }
    }
}
