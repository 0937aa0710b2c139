package io.hawser.reference;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Assertions;

/**
 * A committed file that the build makes again and compares.
 *
 * @param path from the root of the tree.
 */
public record Page(String path) {
    /** The command that writes all such files. */
    public static final String COMMAND = "appliance/docs/generate";
    private static final boolean WRITES = Boolean.getBoolean("reference.write");

    /** Returns the notice that heads a generated Markdown page. */
    public static String notice(String source) {
        return "<!-- Generated from " + source + " by " + COMMAND + ". Do not edit. -->\n";
    }

    /** Fails when the committed file differs from the given text; writes it under {@code -Dreference.write=true}. */
    public void check(String text) {
        Path file = Repository.file(path);
        try {
            if (WRITES) {
                Files.createDirectories(file.getParent());
                Files.writeString(file, text);
                return;
            }
            String committed = Files.exists(file) ? Files.readString(file) : "";
            if (!text.equals(committed)) {
                Assertions.fail(path + " differs from its source; run " + COMMAND + " and commit the result. "
                    + firstDifference(committed.split("\n", -1), text.split("\n", -1)));
            }
        } catch (IOException e) {
            throw new UncheckedIOException("a generated file must be readable and writable: " + file, e);
        }
    }

    private static String firstDifference(String[] committed, String[] generated) {
        int line = Arrays.mismatch(committed, generated);
        return "First difference in line " + (line + 1) + ": committed=" + line(committed, line) + " generated="
            + line(generated, line);
    }

    private static String line(String[] lines, int number) {
        return number < lines.length ? lines[number] : "(end)";
    }
}
