package io.hawser.broker.token;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/** Files that only their owner can read, written whole or not at all. */
public final class PrivateFile {
    private PrivateFile() {
    }

    /** Writes a file with mode 0600 from its first moment; whoever reads it sees the old text or the new. */
    public static void write(Path path, String text) throws IOException {
        Path temporary = path.resolveSibling(path.getFileName() + ".new");
        Files.deleteIfExists(temporary);
        try (FileChannel file = FileChannel.open(temporary,
            Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
            file.write(StandardCharsets.UTF_8.encode(text));
            file.force(true);
        }
        Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }
}
