package io.hawser.broker.region;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** Files and settings of regions. */
final class TestRegions {
    private TestRegions() {
    }

    /** Path of a file in shared memory that no other test process uses. */
    static Path file(String name) {
        return Path.of("/dev/shm", "hawser-broker-" + ProcessHandle.current().pid() + "-" + name);
    }

    /** A broker's settings with a region. */
    static Map<String, String> settings(String name, Path file, Map<String, String> region,
        Map<String, String> others) {
        Map<String, String> all = new HashMap<>(others);
        all.put("hawser.regions." + name + ".path", file.toString());
        region.forEach((key, value) -> all.put("hawser.regions." + name + "." + key, value));
        return all;
    }
}
