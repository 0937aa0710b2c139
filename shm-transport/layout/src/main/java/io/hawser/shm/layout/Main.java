package io.hawser.shm.layout;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Command: writes the layouts of record and region for one language. */
public final class Main {
    private static final String USAGE = """
        usage: io.hawser.shm.layout.Main --language c|java --out DIR
        Writes the layouts of record and region: DIR/hws_layout.h and DIR/hws_region.h, or wire/RecordLayout.java
        and region/RegionLayout.java in DIR/io/hawser/shm.
        A file that is already right keeps its time, so that nothing is compiled again for it.""";

    private Main() {
    }

    /**
     * Writes the files.
     *
     * @throws IOException if a file cannot be written.
     */
    public static void main(String[] args) throws IOException {
        if (args.length != 4 || !args[0].equals("--language") || !args[2].equals("--out")) {
            throw new IllegalArgumentException(USAGE);
        }
        RecordDescription record = RecordDescription.load();
        RegionDescription region = RegionDescription.load();
        Path out = Path.of(args[3]);
        switch (args[1]) {
            case "c" -> {
                write(out.resolve("hws_layout.h"), new CLayoutEmitter().emit(record));
                write(out.resolve("hws_region.h"), new CRegionEmitter().emit(region));
            }
            case "java" -> {
                write(out.resolve("io/hawser/shm/wire/RecordLayout.java"), new JavaLayoutEmitter().emit(record));
                write(out.resolve("io/hawser/shm/region/RegionLayout.java"), new JavaRegionEmitter().emit(region));
            }
            default -> throw new IllegalArgumentException(USAGE);
        }
    }

    private static void write(Path file, String text) throws IOException {
        Files.createDirectories(file.getParent());
        if (!Files.exists(file) || !Files.readString(file).equals(text)) {
            Files.writeString(file, text);
        }
    }
}
