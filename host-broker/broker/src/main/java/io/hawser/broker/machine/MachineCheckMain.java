package io.hawser.broker.machine;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** {@code hawser-broker --check}: prints the findings. It does not start Quarkus, so few problems can prevent it. */
public final class MachineCheckMain {
    private static final List<String> BACKENDS = List.of("auto", "nvidia", "software");

    private MachineCheckMain() {
    }

    /** Ends the process with 0 when nothing is missing, with 1 otherwise, and with 2 for a wrong backend. */
    public static void main(String[] arguments) {
        // Quarkus sets it where Quarkus starts; without it the first line of the log is an error.
        System.setProperty("java.util.logging.manager", "org.jboss.logmanager.LogManager");
        String environment = System.getenv().getOrDefault("HAWSER_GPU_BACKEND", "auto");
        String backend = System.getProperty("hawser.gpu.backend", environment);
        if (!BACKENDS.contains(backend)) {
            System.err.println("hawser-broker: hawser.gpu.backend must be one of " + BACKENDS + ": " + backend);
            System.exit(2);
        }
        List<Finding> findings = new ArrayList<>(MachineCheck.of(Path.of("/"), CLibrary.glibcVersion(), backend));
        if (!backend.equals("software") && Files.exists(Path.of("/dev/nvidiactl"))) {
            findings.addAll(DriverCheck.run());
        }
        findings.addAll(libraries());
        boolean missing = false;
        for (Finding finding : findings) {
            System.out.println(switch (finding.level()) {
                case FOUND -> "found    ";
                case NOTE -> "note     ";
                case MISSING -> "MISSING  ";
            } + finding.text());
            missing |= finding.level() == Finding.Level.MISSING;
        }
        System.out.println(missing ? "Something is missing: see above." : "Nothing is missing.");
        System.exit(missing ? 1 : 0);
    }

    /** The math libraries, by the same setting as the broker's. */
    private static List<Finding> libraries() {
        String environment = System.getenv().getOrDefault("HAWSER_LIBRARIES_PATH", MathLibraries.FOLDERS);
        String path = System.getProperty("hawser.libraries.path", environment);
        List<Finding> libraries = MathLibraries.find(Arrays.stream(path.split(",")).map(String::strip).map(Path::of)
            .toList()).libraries().stream().map(library -> Finding.found("math library " + library)).toList();
        return libraries.isEmpty() ? List.of(Finding.note("math libraries: none in " + path
            + ", so calls of cuBLAS are not supported; name their folders in hawser.libraries.path")) : libraries;
    }
}
