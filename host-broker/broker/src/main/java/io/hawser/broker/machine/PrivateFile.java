package io.hawser.broker.machine;

import io.hawser.shm.os.FileStatus;
import io.hawser.shm.os.PinnedFile;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/** Files that only their owner can read, written completely or not at all. */
public final class PrivateFile {
    private static final int NOT_OWNER = 0077;

    private PrivateFile() {
    }

    /**
     * Reads a text that no other user can have written and no other user can read. The check and the text concern the
     * same file, even when its name changes meanwhile.
     *
     * @param maxBytes stops a wrong path from filling the memory.
     * @throws IOException when the file is missing, too long, of another user, or accessible to group or others; the
     * message contains nothing of the text.
     */
    public static String read(Path path, long maxBytes) throws IOException {
        try (PinnedFile file = PinnedFile.of(path.toRealPath())) {
            FileStatus status = file.status();
            if (!status.isRegular() || !status.isOwnOrRoots()) {
                throw new IOException("a private file must be a file of the broker's user or root: path=" + path
                    + " owner=" + status.owner());
            }
            if ((status.permissions() & NOT_OWNER) != 0) {
                throw new IOException(String.format("nobody else may reach the file: path=%s mode=%o (chmod 600)", path,
                    status.permissions()));
            }
            if (status.bytes() > maxBytes) {
                throw new IOException("a private file must not exceed its limit: path=" + path + " maxBytes="
                    + maxBytes);
            }
            return Files.readString(file.path());
        }
    }

    /** Writes a file with mode 0600 from its creation; readers see the old text or the new. */
    public static void write(Path path, String text) throws IOException {
        Path temporary = path.resolveSibling(path.getFileName() + ".new");
        try (FileChannel file = create(temporary)) {
            file.write(StandardCharsets.UTF_8.encode(text));
            file.force(true);
        }
        Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    /** Creates an empty file with mode 0600, instead of a present one. */
    public static FileChannel create(Path path) throws IOException {
        Files.deleteIfExists(path);
        return FileChannel.open(path, Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    }
}
