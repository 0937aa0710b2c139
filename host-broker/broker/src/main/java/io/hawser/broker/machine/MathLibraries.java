package io.hawser.broker.machine;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jboss.logging.Logger;

/**
 * The math libraries that workers may open, and the files that the dynamic linker opens with them. The broker searches
 * its folders once, at its start.
 *
 * @param found soname to path.
 * @param files paths that a worker may ask for, with the files that the broker then opens for it.
 */
public record MathLibraries(Map<String, Path> found, Map<String, String> files) {
    /** The folders without a setting. */
    public static final String FOLDERS = "/usr/local/cuda/lib64,/usr/lib/x86_64-linux-gnu";

    /** The libraries that workers call: the worker's math providers name them. */
    private static final List<String> SONAMES = List.of("libcublas.so.13", "libcublas.so.12", "libcublasLt.so.13",
        "libcublasLt.so.12", "libcufft.so.12", "libcufft.so.11", "libcudnn.so.9", "libnvrtc.so.13", "libnvrtc.so.12",
        "libcusolver.so.12", "libcusolver.so.11", "libcusparse.so.12", "libcurand.so.10", "libnvJitLink.so.13",
        "libnvJitLink.so.12", "libnccl.so.2", "libcusparseLt.so.0", "libopenblas.so.0");
    /** A part of NVRTC, which opens it by this name. */
    private static final Pattern NVRTC_BUILTINS = Pattern.compile("libnvrtc-builtins\\.so\\.[0-9]+\\.[0-9]+");
    /** Of the workers' environment (MathProvider.LIBRARIES). */
    private static final String VARIABLE = "HAWSER_LIBRARIES";

    private static final Logger LOG = Logger.getLogger(MathLibraries.class);
    private static final Pattern VERSION = Pattern.compile("[0-9]+(\\.[0-9]+)+");
    private static final int FOREIGN_WRITERS = 022; // group and others
    private static final int STICKY = 01000; // of a folder such as /tmp: only an entry's owner replaces it
    /** Files of a folder; stops a folder of another kind from filling the memory. */
    private static final int MAX_FILES = 16384;
    /** Libraries of the system that the math libraries need, which the JVM may not have loaded. */
    private static final List<String> SYSTEM = List.of("libgcc_s.so.1", "libstdc++.so.6", "libgfortran.so.5",
        "libquadmath.so.0", "libm.so.6", "librt.so.1", "libz.so.1", "libpthread.so.0", "libdl.so.2");
    private static final List<Path> SYSTEM_FOLDERS = List.of(Path.of("/lib/x86_64-linux-gnu"), Path.of("/lib64"),
        Path.of("/usr/lib/x86_64-linux-gnu"), Path.of("/usr/lib64"));
    private static final Path CACHE = Path.of("/etc/ld.so.cache");

    /** Searches folders. Skips those that do not exist and, with a warning, those that others can write. */
    public static MathLibraries find(List<Path> folders) {
        Map<String, Path> found = new LinkedHashMap<>();
        Map<String, String> files = new HashMap<>();
        for (Path folder : folders) {
            try {
                search(folder.toAbsolutePath().normalize(), found, files);
            } catch (IOException e) {
                LOG.warnf("hawser.libraries.path: a folder cannot be read: %s", e.getMessage());
            }
        }
        if (!found.isEmpty()) {
            add(CACHE, files);
            SYSTEM_FOLDERS.forEach(folder -> SYSTEM.forEach(name -> add(folder.resolve(name), files)));
        }
        return new MathLibraries(Map.copyOf(found), Map.copyOf(files));
    }

    private static void search(Path folder, Map<String, Path> found, Map<String, String> files) throws IOException {
        List<String> here = SONAMES.stream().filter(name -> !found.containsKey(name)
            && Files.isRegularFile(folder.resolve(name))).toList();
        if (here.isEmpty()) {
            return;
        }
        String writer = foreignWriter(folder.toRealPath());
        if (writer != null) {
            LOG.warnf("hawser.libraries.path: %s is not used, because others can write %s", folder, writer);
            return;
        }
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder, "lib*.so*")) {
            for (Path entry : entries) {
                if (files.size() < MAX_FILES) {
                    add(entry, files);
                }
                String name = entry.getFileName().toString();
                if (NVRTC_BUILTINS.matcher(name).matches() && files.containsKey(entry.toString())) {
                    found.putIfAbsent(name, entry);
                }
            }
        }
        here.stream().filter(name -> files.containsKey(folder.resolve(name).toString()))
            .forEach(name -> found.put(name, folder.resolve(name)));
    }

    private static void add(Path path, Map<String, String> files) {
        try {
            Path file = path.toRealPath();
            if (Files.isRegularFile(file) && foreignWriter(file) == null) {
                files.put(path.toString(), file.toString());
            }
        } catch (IOException e) {
            LOG.debugf("a library is not offered to workers: %s", e.getMessage()); // a link to nothing, or no file
        }
    }

    /** The part of a path that another user than root and the broker's can write; null for none. */
    private static String foreignWriter(Path path) throws IOException {
        int user = (int) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
        for (Path part = path; part != null; part = part.getParent()) {
            int owner = (int) Files.getAttribute(part, "unix:uid");
            int mode = (int) Files.getAttribute(part, "unix:mode");
            boolean isShared = (mode & FOREIGN_WRITERS) != 0 && (part.equals(path) || (mode & STICKY) == 0);
            if (owner != 0 && owner != user || isShared) {
                return part.toString();
            }
        }
        return null;
    }

    /**
     * A library that workers may open.
     *
     * @param version of its file's name or its wheel, for example 13.1.0.3; null when neither has one.
     */
    public record Library(String soname, Path path, String version) {
        @Override
        public String toString() {
            return soname + ": " + path + (version == null ? "" : ", version " + version);
        }
    }

    /** The libraries, in the order of their names. The broker opens none of them. */
    public List<Library> libraries() {
        return found.entrySet().stream().sorted(Map.Entry.comparingByKey())
            .map(e -> new Library(e.getKey(), e.getValue(), version(e.getKey(), files.get(e.getValue().toString()))))
            .toList();
    }

    /** NVIDIA's files are named libcublas.so.13.1.0.3, those of OpenBLAS libopenblasp-r0.3.21.so. */
    private static String version(String soname, String file) {
        String name = file == null ? soname : Path.of(file).getFileName().toString();
        if (name.equals(soname)) {
            return file == null ? null : WheelVersion.of(Path.of(file));
        }
        Matcher version = VERSION.matcher(name);
        return version.find() ? version.group() : null;
    }

    /** The variable of the workers' environment that lists the libraries. */
    public String variable() {
        return VARIABLE + "=" + found.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue())
            .collect(Collectors.joining(":"));
    }
}
