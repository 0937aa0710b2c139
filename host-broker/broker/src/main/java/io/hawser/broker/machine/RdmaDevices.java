package io.hawser.broker.machine;

import io.hawser.shm.rdma.RdmaOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** The RDMA devices of this machine. */
public final class RdmaDevices {
    /** The kernel's folder of devices. */
    public static final Path FOLDER = Path.of("/sys/class/infiniband");
    /** The environment variable that replaces libibverbs, for tests: its devices have no place in the folder. */
    private static final String LIBRARY = "HAWSER_VERBS_LIBRARY";
    private static final String ACTIVE = "ACTIVE";

    private RdmaDevices() {
    }

    /** Whether the workers' library of verbs is another one than the machine's. */
    public static boolean isReplaced(List<String> environment) {
        return environment.stream().anyMatch(variable -> variable.startsWith(LIBRARY + "="));
    }

    /**
     * Whether workers will find a device.
     *
     * @param folder {@link #FOLDER}.
     * @return why they will not; empty when they will.
     */
    public static String problem(Path folder, RdmaOptions options) {
        String missing = options.device().isEmpty() ? "no RDMA device has an active port"
            : "the RDMA device has no active port: device=" + options.device();
        try (Stream<Path> devices = Files.list(folder)) {
            List<Path> chosen = devices.filter(device -> options.device().isEmpty()
                || device.getFileName().toString().equals(options.device())).toList();
            return chosen.stream().anyMatch(device -> isActive(device, options.port())) ? "" : missing;
        } catch (IOException e) {
            return "this machine has no RDMA devices: " + folder;
        }
    }

    private static boolean isActive(Path device, int port) {
        try (Stream<Path> ports = Files.list(device.resolve("ports"))) {
            return ports.filter(each -> port == 0 || each.getFileName().toString().equals(Integer.toString(port)))
                .anyMatch(RdmaDevices::isActive);
        } catch (IOException e) {
            return false; // the device has just been removed
        }
    }

    private static boolean isActive(Path port) {
        try {
            return Files.readString(port.resolve("state")).contains(ACTIVE);
        } catch (IOException e) {
            return false; // the device has just been removed
        }
    }
}
