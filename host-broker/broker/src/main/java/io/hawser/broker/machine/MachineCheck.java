package io.hawser.broker.machine;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Checks the machine by reading files. It loads no driver, so the broker can run it at each start. One thread. */
public final class MachineCheck {
    /** First version with posix_spawn_file_actions_addclosefrom_np; the guest libraries need it too. */
    private static final int LEAST_GLIBC_MINOR = 34;
    /** The usual size of a container's /dev/shm is below this and too small for a region. */
    private static final long LEAST_SHARED_MIB = 128;
    /** Enough for a broker and one worker, a JVM with staging memory. */
    private static final long LEAST_MEMORY_MIB = 1024;
    /** A session costs the broker some descriptors, and a worker about a hundred. */
    private static final long LEAST_DESCRIPTORS = 1024;
    /** The driver of CUDA 13.0, which the tests use, and the oldest usable one, that of CUDA 12.4. */
    private static final int TESTED_DRIVER = 580;
    private static final int LEAST_DRIVER = 550;
    private static final long MIB = 1 << 20;
    private static final Pattern VERSION = Pattern.compile("Kernel Module.*?\\s(([0-9]+)(?:\\.[0-9]+)+)\\s");

    private final Path root;
    private final String glibc;
    private final String backend;
    private final List<Finding> findings = new ArrayList<>();

    private MachineCheck(Path root, String glibc, String backend) {
        this.root = root;
        this.glibc = glibc;
        this.backend = backend;
    }

    /**
     * Makes all checks.
     *
     * @param root of the file system; other than {@code /} only in tests.
     * @param glibc its version, such as 2.39; empty for another C library.
     * @param backend auto, nvidia or software.
     */
    public static List<Finding> of(Path root, String glibc, String backend) {
        MachineCheck check = new MachineCheck(root, glibc, backend);
        check.library();
        check.memory();
        check.sharedMemory();
        check.limits();
        if (backend.equals("software")) {
            check.add(Finding.found("GPU: the software GPU, by hawser.gpu.backend"));
        } else {
            check.driver();
        }
        return List.copyOf(check.findings);
    }

    private void add(Finding finding) {
        findings.add(finding);
    }

    private void library() {
        Matcher version = Pattern.compile("2\\.([0-9]+).*").matcher(glibc);
        if (!version.matches()) {
            add(Finding.missing("C library: glibc 2." + LEAST_GLIBC_MINOR + " or newer is needed; this is "
                + (glibc.isEmpty() ? "another library" : "glibc " + glibc)));
        } else if (Integer.parseInt(version.group(1)) < LEAST_GLIBC_MINOR) {
            add(Finding.missing("C library: glibc " + glibc + " is too old; 2." + LEAST_GLIBC_MINOR
                + " or newer is needed (Debian 12, Ubuntu 22.04, RHEL 9)"));
        } else {
            add(Finding.found("C library: glibc " + glibc));
        }
    }

    private void memory() {
        Optional<Matcher> total = find("proc/meminfo", Pattern.compile("MemTotal:\\s+([0-9]+) kB"));
        if (total.isEmpty()) {
            add(Finding.note("memory: the size is unknown, since /proc/meminfo cannot be read"));
            return;
        }
        long mib = Long.parseLong(total.get().group(1)) / 1024;
        String text = "memory: " + mib + " MiB, " + Runtime.getRuntime().availableProcessors() + " processors";
        add(mib < LEAST_MEMORY_MIB ? Finding.note(text + "; a broker and a worker need " + LEAST_MEMORY_MIB + " MiB")
            : Finding.found(text));
    }

    private void sharedMemory() {
        Path folder = root.resolve("dev/shm");
        try {
            FileStore store = Files.getFileStore(folder);
            long total = store.getTotalSpace() / MIB;
            long free = store.getUsableSpace() / MIB;
            String text = "shared memory: /dev/shm has " + total + " MiB, " + free + " free";
            if (free < LEAST_SHARED_MIB) {
                add(Finding.note(text + ": too little for a region, so guests on this host use TCP (docker run"
                    + " --shm-size=2g; mount -o remount,size=2g /dev/shm)"));
            } else {
                add(Finding.found(text));
            }
        } catch (IOException e) {
            add(Finding.note("shared memory: regions cannot use /dev/shm, which is missing: " + e.getMessage()));
        }
    }

    private void limits() {
        Optional<Matcher> files =
            find("proc/self/limits", Pattern.compile("Max open files\\s+([0-9]+|unlimited)\\s+([0-9]+|unlimited)"));
        files.ifPresent(limit -> {
            // The JVM raises the soft limit to the hard one.
            String most = limit.group(2);
            String text = "open files: at most " + most;
            add(!most.equals("unlimited") && Long.parseLong(most) < LEAST_DESCRIPTORS
                ? Finding.note(text + "; many sessions need " + LEAST_DESCRIPTORS + " (ulimit -n)")
                : Finding.found(text));
        });
        Optional<Matcher> locked =
            find("proc/self/limits", Pattern.compile("Max locked memory\\s+([0-9]+|unlimited)\\s"));
        locked.ifPresent(limit -> add(Finding.found("locked memory: " + (limit.group(1).equals("unlimited")
            ? "unlimited" : "at most " + Long.parseLong(limit.group(1)) / 1024 + " KiB")
            + " (limits the pinned memory that a guest over TCP locks; ulimit -l)")));
    }

    private void driver() {
        Path control = root.resolve("dev/nvidiactl");
        if (!Files.exists(control)) {
            add(backend.equals("nvidia")
                ? Finding.missing("GPU: no NVIDIA driver: /dev/nvidiactl is missing (modprobe nvidia; in a container:"
                    + " --gpus all), and hawser.gpu.backend=nvidia excludes the software GPU")
                : Finding.note("GPU: no NVIDIA driver (/dev/nvidiactl is missing): workers use the software GPU"));
            return;
        }
        Optional<Matcher> version = find("proc/driver/nvidia/version", VERSION);
        if (version.isEmpty()) {
            add(Finding.note("GPU: the version of the NVIDIA driver is unknown:"
                + " /proc/driver/nvidia/version cannot be read"));
        } else {
            add(driver(version.get().group(1), Integer.parseInt(version.get().group(2))));
        }
        for (String device : List.of("dev/nvidiactl", "dev/nvidia-uvm")) {
            Path file = root.resolve(device);
            if (!Files.exists(file)) {
                add(Finding.missing("GPU: /" + device + " is missing (nvidia-modprobe -u -c 0 as root creates it)"));
            } else if (!Files.isReadable(file) || !Files.isWritable(file)) {
                add(Finding.missing("GPU: this user may not read and write /" + device));
            }
        }
    }

    private static Finding driver(String version, int major) {
        String text = "GPU: NVIDIA driver " + version;
        if (major < LEAST_DRIVER) {
            return Finding.missing(text + " is too old; " + LEAST_DRIVER + " (CUDA 12.4) or newer is needed");
        }
        if (major < TESTED_DRIVER) {
            return Finding.note(text + " is older than " + TESTED_DRIVER + " (CUDA 13.0): missing functions return"
                + " CUDA_ERROR_NOT_SUPPORTED, and programs of a newer CUDA may not start");
        }
        return Finding.found(text + (major > TESTED_DRIVER
            ? " (newer than " + TESTED_DRIVER + ", which the tests of Hawser use)" : ""));
    }

    private Optional<Matcher> find(String file, Pattern pattern) {
        try {
            Matcher matcher = pattern.matcher(Files.readString(root.resolve(file), StandardCharsets.ISO_8859_1));
            return matcher.find() ? Optional.of(matcher) : Optional.empty();
        } catch (IOException e) {
            // The caller reports the missing value.
            return Optional.empty();
        }
    }
}
