package io.hawser.check;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The machine's own CUDA: the driver library, and runtime libraries for native runs. */
final class NativeCuda {
    private static final String DRIVER = "libcuda.so.1";
    private static final Path CONTROL_DEVICE = Path.of("/dev/nvidiactl");
    /** NVIDIA's library has tens of MiB. */
    private static final long MOST_GUEST_LIBRARY_BYTES = 8 << 20;
    private static final Pattern RUNTIME = Pattern.compile("libcudart\\.so\\.[0-9]+");
    private static final List<Path> RUNTIME_FOLDERS = List.of(Path.of("/usr/local/cuda/lib64"),
        Path.of("/usr/local/cuda/targets/x86_64-linux/lib"), Path.of("/usr/lib/x86_64-linux-gnu"),
        Path.of("/usr/lib64"));
    private static final List<Path> DRIVER_FOLDERS = List.of(Path.of("/usr/lib/x86_64-linux-gnu"),
        Path.of("/usr/lib64"), Path.of("/usr/lib/wsl/lib"), Path.of("/usr/local/nvidia/lib64"));

    private final Optional<Path> cudaLibrary;
    private final Set<Path> ownPath = new LinkedHashSet<>();
    private final String linkerCache;

    /**
     * Searches the machine.
     *
     * @param cudaLibrary a folder to search first.
     * @param ldconfig output of {@code ldconfig -p}; empty if it could not be run.
     */
    NativeCuda(Optional<Path> cudaLibrary, Map<String, String> environment, String ldconfig) {
        this.cudaLibrary = cudaLibrary.map(Path::toAbsolutePath);
        this.linkerCache = ldconfig;
        for (String folder : environment.getOrDefault("LD_LIBRARY_PATH", "").split(":")) {
            if (!folder.isEmpty() && !isHawsers(Path.of(folder))) {
                ownPath.add(Path.of(folder).toAbsolutePath());
            }
        }
    }

    /** The CUDA that this process's environment and the usual folders lead to. */
    static NativeCuda here() {
        return new NativeCuda(Optional.empty(), System.getenv(), "");
    }

    /** Whether native programs find the driver's library, and the driver is loaded. */
    boolean isUsable() {
        return Files.exists(CONTROL_DEVICE) && driver().isPresent();
    }

    /** The environment of a broker, without settings of another one and without guest libraries. */
    Map<String, String> brokerEnvironment() {
        Map<String, String> environment = new HashMap<>(System.getenv());
        environment.keySet().removeIf(key -> key.startsWith("HAWSER_"));
        // Workers inherit the path, and must not load a guest library.
        environment.put("LD_LIBRARY_PATH", libraryPath(List.of()));
        return environment;
    }

    /** Whether the libcuda.so.1 of a folder is Hawser's guest library rather than NVIDIA's. */
    private static boolean isHawsers(Path folder) {
        Path library = folder.resolve(DRIVER);
        try {
            return Files.exists(library) && Files.size(library) < MOST_GUEST_LIBRARY_BYTES
                && Files.readString(library, StandardCharsets.ISO_8859_1).contains("HAWSER_CARRIER");
        } catch (IOException e) {
            // An unreadable library cannot be loaded either.
            return false;
        }
    }

    /** The folder of the driver's library; empty if there is none. */
    Optional<Path> driver() {
        return find(DRIVER, DRIVER_FOLDERS).filter(folder -> !isHawsers(folder));
    }

    /** The folder of a runtime library; empty if there is none. */
    Optional<Path> runtime(String name) {
        List<Path> folders = new ArrayList<>();
        cudaLibrary.ifPresent(folders::add);
        folders.addAll(RUNTIME_FOLDERS);
        try (DirectoryStream<Path> versions = Files.newDirectoryStream(Path.of("/usr/local"), "cuda-*")) {
            for (Path version : versions) {
                folders.add(version.resolve("lib64"));
            }
        } catch (IOException e) {
            // Without a readable /usr/local there is no CUDA in it; the caller reports that none was found.
            return find(name, folders);
        }
        return find(name, folders);
    }

    private Optional<Path> find(String name, List<Path> folders) {
        if (cudaLibrary.isPresent() && Files.exists(cudaLibrary.get().resolve(name))) {
            return cudaLibrary;
        }
        Matcher cached = Pattern.compile("\\s" + Pattern.quote(name) + " \\([^)]*x86-64[^)]*\\) => (\\S+)")
            .matcher(linkerCache);
        if (cached.find()) {
            return Optional.of(Path.of(cached.group(1)).getParent());
        }
        List<Path> all = new ArrayList<>(ownPath);
        all.addAll(folders);
        return all.stream().filter(folder -> Files.exists(folder.resolve(name))).findFirst();
    }

    /** The runtime library that a program is linked with, such as libcudart.so.13; empty if it needs none. */
    static Optional<String> neededRuntime(Path program) {
        try {
            // The name of a needed library is plain text in the program's string table.
            Matcher name = RUNTIME.matcher(Files.readString(program, StandardCharsets.ISO_8859_1));
            return name.find() ? Optional.of(name.group()) : Optional.empty();
        } catch (IOException e) {
            throw new CheckException("cannot read " + program, e);
        }
    }

    /** LD_LIBRARY_PATH for a native run with these folders; empty if the linker needs none. */
    String libraryPath(Iterable<Path> folders) {
        Set<Path> all = new LinkedHashSet<>(ownPath);
        folders.forEach(all::add);
        return String.join(":", all.stream().map(Path::toString).toList());
    }
}
