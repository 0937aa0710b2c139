package io.hawser.cuda.generator.emit;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The output folder. An unchanged file keeps its modification time, so that no tool compiles it again. Stale files are
 * removed.
 */
public final class OutputFiles {
    private final Path folder;
    private final String banner;
    private final Set<Path> written = new HashSet<>();

    /**
     * Creates the writer.
     *
     * @param banner names the generator and the description in each file; without comment marks.
     */
    public OutputFiles(Path folder, String banner) {
        this.folder = folder;
        this.banner = banner;
    }

    /** Writes a C or Java file under its banner. */
    public void write(String name, Object text) throws IOException {
        Path file = folder.resolve(name);
        String whole = "/* " + banner + " */\n" + text;
        Files.createDirectories(file.getParent());
        if (!Files.exists(file) || !Files.readString(file).equals(whole)) {
            Files.writeString(file, whole);
        }
        written.add(file);
    }

    /** Removes files that begin with this generator's banner and that this run did not write. */
    public void removeStale(String bannerStart) throws IOException {
        List<Path> files;
        try (Stream<Path> tree = Files.walk(folder)) {
            files = tree.filter(Files::isRegularFile).toList();
        }
        for (Path file : files) {
            boolean ours = file.toString().matches(".*\\.(c|h|inc|java)")
                && Files.readString(file).startsWith("/* " + bannerStart);
            if (ours && !written.contains(file)) {
                Files.delete(file);
            }
        }
    }
}
