package io.hawser.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;

/** Files for secrets, readable by their owner alone from their creation on. */
public final class PrivateFiles {
    private PrivateFiles() {
    }

    /**
     * Writes a file with mode 0600. Replaces an existing file atomically.
     *
     * @throws ClientException if it cannot be written.
     */
    public static void write(Path file, String text) {
        try {
            Path folder = file.toAbsolutePath().getParent();
            if (!Files.isDirectory(folder)) {
                Files.createDirectories(folder,
                    PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            }
            Path next = Files.createTempFile(folder, ".hawserctl", "",
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            try {
                Files.writeString(next, text);
                Files.move(next, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
            } finally {
                Files.deleteIfExists(next);
            }
        } catch (IOException e) {
            throw new ClientException(Failure.INVALID, "the file cannot be written: " + file + ": " + Problems.of(e));
        }
    }

    /**
     * Reads a secret from a file of one line.
     *
     * @throws ClientException if it cannot be read or is empty.
     */
    static String readSecret(Path file) {
        try {
            String text = Files.readString(file).strip();
            if (text.isEmpty() || text.indexOf('\n') >= 0) {
                throw new ClientException(Failure.INVALID, "the file must have one line: " + file);
            }
            return text;
        } catch (IOException e) {
            throw new ClientException(Failure.INVALID, "the file cannot be read: " + file + ": " + Problems.of(e));
        }
    }
}
