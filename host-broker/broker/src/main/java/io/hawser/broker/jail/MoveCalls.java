package io.hawser.broker.jail;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/**
 * The files for which NVIDIA's driver asks when a helper moves the worker's GPU state to the host and back
 * ({@code cuCheckpointProcess*}; driver 580.159). The driver needs some of them. It does without the others, so the
 * jail refuses them, and the log stays silent about them.
 */
final class MoveCalls {
    /**
     * Refused calls in a second that count for nothing; a move makes about 70. Stops a worker from occupying a
     * processor of the broker by calls that look harmless.
     */
    private static final int MAX_HARMLESS_A_SECOND = 500;

    private static final String PARAMETERS = "/proc/driver/nvidia/params"; // of the kernel's driver; no secrets
    private static final Set<String> TRIED = Set.of("/sys/devices/system/memory/block_size_bytes", "/proc/devices");
    /** The program that makes device files, the links to them, and the memory node of a GPU. */
    private static final Pattern DEVICE_SET_UP = Pattern.compile("/usr/bin/nvidia-modprobe|/dev/char(/195:[0-9]{1,3})?"
        + "|/sys/module/nvidia(_uvm)?/initstate"
        + "|/proc/driver/nvidia/gpus/[0-9a-fA-F:.]{1,20}/numa_status");

    private final Set<String> devices;
    private long windowNs = System.nanoTime();
    private int harmlessInWindow;

    /**
     * For one worker.
     *
     * @param devices paths of the device files that it may open.
     */
    MoveCalls(Set<String> devices) {
        this.devices = devices;
    }

    /**
     * The files that a worker may read for a move, each with the file that is opened.
     *
     * @param pid of the worker: it reads the map of its own memory alone.
     */
    static Map<String, String> readable(int pid) {
        return Map.of("/proc/self/maps", "/proc/" + pid + "/maps", PARAMETERS, PARAMETERS);
    }

    /** Whether the driver makes this call for a move, and does without its success. */
    boolean isTried(int number, String path) {
        return switch (number) {
            case Watcher.OPENAT -> TRIED.contains(path);
            case Watcher.STAT, Watcher.NEWFSTATAT, Watcher.UNLINK, Watcher.SYMLINK ->
                DEVICE_SET_UP.matcher(path).matches();
            case Watcher.ACCESS -> devices.contains(path) || DEVICE_SET_UP.matcher(path).matches();
            default -> false;
        };
    }

    /** Counts a harmless call. Returns whether it is one of so few that it counts for nothing. */
    boolean isFew() {
        long now = System.nanoTime();
        if (now - windowNs > TimeUnit.SECONDS.toNanos(1)) {
            windowNs = now;
            harmlessInWindow = 0;
        }
        return ++harmlessInWindow <= MAX_HARMLESS_A_SECOND;
    }
}
