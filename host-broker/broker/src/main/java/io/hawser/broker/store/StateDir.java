package io.hawser.broker.store;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.hawser.broker.machine.PrivateFile;
import io.hawser.broker.model.StartException;
import io.hawser.shm.os.FileStatus;
import io.hawser.shm.os.Folder;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/** The broker's folder, locked while this is open: two brokers would overwrite each other's files. */
public final class StateDir implements AutoCloseable {
    private static final int MAX_PID_CHARACTERS = 20;

    private final Path path;
    private final FileChannel lockFile;

    private StateDir(Path path, FileChannel lockFile) {
        this.path = path;
        this.lockFile = lockFile;
    }

    /**
     * Creates the folder with mode 0700 if it is missing, and locks it.
     *
     * @throws StartException when it is unusable, another user can change it, or another broker uses it.
     */
    public static StateDir open(Path path) {
        Path absolute = path.toAbsolutePath();
        FileChannel file = null;
        try {
            if (!Files.isDirectory(absolute)) {
                Files.createDirectories(absolute.getParent());
                Files.createDirectory(absolute,
                    PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            }
            check(absolute);
            file = FileChannel.open(absolute.resolve("lock"), Set.of(StandardOpenOption.CREATE,
                StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            FileLock lock = lock(file);
            if (lock == null) {
                String pid = readPid(file);
                file.close();
                throw new StartException("another broker uses the state folder: hawser.state-dir=" + absolute + " pid="
                    + pid);
            }
            file.truncate(0);
            file.write(StandardCharsets.US_ASCII.encode(ProcessHandle.current().pid() + "\n"));
            return new StateDir(absolute, file);
        } catch (IOException e) {
            throw new StartException("the state folder cannot be used: hawser.state-dir=" + absolute + ": " + e);
        }
    }

    /** Checks the folder's owner: another user who can change it could put a token there. */
    private static void check(Path path) throws IOException {
        try (Folder folder = Folder.open(path)) {
            FileStatus status = folder.status();
            if (!status.isOwn() || status.isWritableByOthers()) {
                throw new StartException(String.format("the state folder must be the broker's user's, and nobody else "
                    + "may write to it: hawser.state-dir=%s owner=%d user=%d mode=%o", path, status.owner(),
                    FileStatus.user(), status.permissions()));
            }
        }
    }

    private static FileLock lock(FileChannel file) throws IOException {
        try {
            return file.tryLock();
        } catch (OverlappingFileLockException e) {
            // This JVM holds the lock: the same answer as for another process.
            return null;
        }
    }

    private static String readPid(FileChannel file) throws IOException {
        ByteBuffer text = ByteBuffer.allocate(MAX_PID_CHARACTERS);
        file.read(text, 0);
        return StandardCharsets.US_ASCII.decode(text.flip()).toString().strip();
    }

    /** The path of a file in the folder. */
    public Path resolve(String name) {
        return path.resolve(name);
    }

    /** Writes the broker's addresses; readers see the old file or the new. */
    public void writeEndpoints(String guest, String guestTls, String http) throws IOException {
        PrivateFile.write(resolve("endpoints.json"), JsonNodeFactory.instance.objectNode().put("guest", guest)
            .put("guestTls", guestTls).put("http", http) + "\n");
    }

    @Override
    public void close() throws IOException {
        Files.deleteIfExists(resolve("endpoints.json"));
        lockFile.close();
    }
}
