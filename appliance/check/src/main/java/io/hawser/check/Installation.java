package io.hawser.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * The places of Hawser's parts.
 *
 * @param launcher the program hawser-broker.
 * @param libraries folder of the guest libraries.
 * @param command the guest's command.
 * @param programs folder of the test programs.
 * @param frameworks folder of the frameworks' scripts.
 */
record Installation(Path launcher, Path libraries, Path command, Path programs, Path frameworks) {
    static final String BENCHMARK = "hawser_benchmark";
    /** Programs that other tests start; they do not check a result by themselves. */
    private static final List<String> HELPERS =
        List.of("hold", "churn", "stranger", "tenant", "random_calls", "static_stripped", BENCHMARK);
    /** Folder of the programs with the static CUDA runtime, inside the folder of all. */
    private static final String STATIC = "static";

    /** The installation that the launcher script passes. @throws CheckException if a part is missing. */
    static Installation ofLauncher() {
        Installation installation = new Installation(folder("launcher"), folder("guest"), folder("command"),
            folder("programs"), folder("frameworks"));
        for (Path needed : List.of(installation.launcher, installation.command,
            installation.libraries.resolve("libcuda.so.1"), installation.program(BENCHMARK))) {
            if (!Files.exists(needed)) {
                throw new CheckException("the installation is not complete: " + needed + " is missing");
            }
        }
        return installation;
    }

    private static Path folder(String name) {
        String value = System.getProperty("hawser.check." + name);
        if (value == null) {
            throw new CheckException("hawser.check." + name + " must be set: start hawser-check by its launcher");
        }
        return Path.of(value).toAbsolutePath().normalize();
    }

    Path program(String name) {
        return programs.resolve(name);
    }

    /** Whether a program has the static CUDA runtime; {@code hawser run} starts it as a guest. */
    boolean isStatic(String name) {
        return name.startsWith(STATIC + "/");
    }

    /** Names of all programs that check their own results, sorted; a static one's name contains its folder. */
    List<String> testPrograms() {
        Path withStaticRuntime = programs.resolve(STATIC);
        Stream<String> more = !Files.isDirectory(withStaticRuntime) ? Stream.of() // built without nvcc
            : names(withStaticRuntime).stream().map(name -> STATIC + "/" + name);
        return Stream.concat(names(programs).stream(), more).sorted().toList();
    }

    private static List<String> names(Path folder) {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(Files::isRegularFile).filter(Files::isExecutable)
                .map(file -> file.getFileName().toString()).filter(name -> !HELPERS.contains(name)).toList();
        } catch (IOException e) {
            throw new CheckException("the folder of the programs cannot be read: " + folder, e);
        }
    }
}
