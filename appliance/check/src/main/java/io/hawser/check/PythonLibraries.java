package io.hawser.check;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** The math libraries that frameworks bring along, for the broker. */
final class PythonLibraries {
    /** The broker's setting. */
    static final String SETTING = "hawser.libraries.path";
    /** Longest time of a script that asks for no GPU. */
    static final Duration LIMIT = Duration.ofSeconds(60);

    private PythonLibraries() {
    }

    /**
     * The wheels' folders and the broker's own, separated by commas; empty without wheels.
     *
     * @param script prints the folders of Python's wheels.
     */
    static String folders(Guests guests, Children children, String python, Path script) {
        Guests.Started started = guests.startScript(null, null, python, script, List.of());
        if (!children.await(started.process(), LIMIT) || started.process().exitValue() != 0) {
            throw new CheckException("no Python: " + python + " cannot run " + script + "; name one by --python",
                CheckException.REFUSED);
        }
        try {
            String folders = Files.readString(started.out(), StandardCharsets.UTF_8).strip();
            String own = System.getenv().getOrDefault("HAWSER_LIBRARIES_PATH",
                "/usr/local/cuda/lib64,/usr/lib/x86_64-linux-gnu");
            return folders.isEmpty() ? "" : folders + "," + own;
        } catch (IOException e) {
            throw new CheckException("the folders of Python's wheels cannot be read: " + started.out(), e);
        }
    }
}
