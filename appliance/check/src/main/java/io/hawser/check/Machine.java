package io.hawser.check;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The machine, for readers of the results elsewhere.
 *
 * @param processor its name.
 * @param cores processors that the operating system shows.
 * @param memoryGib main memory.
 * @param system distribution and kernel.
 * @param driver version of NVIDIA's driver; empty without one.
 */
record Machine(String processor, int cores, long memoryGib, String system, String driver) {
    private static final long GIB = 1L << 30;

    /** This machine. */
    static Machine here() {
        long memory =
            ManagementFactory.getOperatingSystemMXBean() instanceof com.sun.management.OperatingSystemMXBean system
                ? system.getTotalMemorySize() : 0;
        return new Machine(find("/proc/cpuinfo", "model name\\s*:\\s*(.*)").orElse("unknown processor"),
            Runtime.getRuntime().availableProcessors(), Math.round((double) memory / GIB),
            find("/etc/os-release", "PRETTY_NAME=\"?([^\"]*)\"?").orElse("Linux") + ", kernel "
                + System.getProperty("os.version"),
            find("/proc/driver/nvidia/version", "Kernel Module.*?\\s([0-9]+(?:\\.[0-9]+)+)\\s").orElse(""));
    }

    /** Writes the machine as the files of results describe it. */
    void write(ObjectNode node) {
        node.put("processor", processor).put("processors", cores).put("memoryGiB", memoryGib).put("system", system)
            .put("driver", driver);
    }

    private static Optional<String> find(String file, String pattern) {
        try {
            Matcher matcher = Pattern.compile(pattern).matcher(
                Files.readString(Path.of(file), StandardCharsets.ISO_8859_1));
            return matcher.find() ? Optional.of(matcher.group(1).strip()) : Optional.empty();
        } catch (IOException e) {
            // A missing file only leaves its value out.
            return Optional.empty();
        }
    }

    /** The description on one line. */
    String text() {
        return processor + ", " + cores + " processors, " + memoryGib + " GiB; " + system
            + (driver.isEmpty() ? "; no NVIDIA driver" : "; NVIDIA driver " + driver);
    }
}
