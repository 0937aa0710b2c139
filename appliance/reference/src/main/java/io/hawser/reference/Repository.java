package io.hawser.reference;

import java.nio.file.Files;
import java.nio.file.Path;

/** The source tree that the build runs in. */
public final class Repository {
    private static final Path ROOT = find();

    private Repository() {
    }

    /** Returns the absolute path of a file, given its path from the root. */
    public static Path file(String path) {
        return ROOT.resolve(path);
    }

    private static Path find() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("mvnw"))) {
            folder = folder.getParent();
            if (folder == null) {
                throw new IllegalStateException("a folder above the working directory must have mvnw: "
                    + Path.of("").toAbsolutePath());
            }
        }
        return folder;
    }
}
