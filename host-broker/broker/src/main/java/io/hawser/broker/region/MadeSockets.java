package io.hawser.broker.region;

import io.hawser.broker.machine.PrivateFile;
import io.hawser.shm.os.FileStatus;
import io.hawser.shm.os.PinnedFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Record of the doorbell sockets that this broker, and earlier brokers of the same state folder, created: inode and
 * path, a socket a line. A killed broker leaves its sockets behind. By this record the next broker recognises them
 * among other sockets. Event loop only.
 */
public final class MadeSockets {
    private static final Pattern LINE = Pattern.compile("(-?\\d+) (/.*)");

    private final Path file;
    private final Map<Path, Long> inodes = new LinkedHashMap<>();

    /**
     * Reads the record.
     *
     * @param file in the state folder; created with the first socket.
     * @throws IOException when a line is malformed.
     */
    public MadeSockets(Path file) throws IOException {
        this.file = file;
        if (!Files.exists(file)) {
            return;
        }
        for (String line : Files.readAllLines(file)) {
            Matcher matcher = LINE.matcher(line);
            if (!matcher.matches()) {
                throw new IOException("a line of the record of sockets must be inode and path: file=" + file
                    + " (delete the file and the sockets of killed brokers)");
            }
            inodes.put(Path.of(matcher.group(2)), Long.parseLong(matcher.group(1)));
        }
    }

    /** Whether a broker of this state folder made the socket. */
    boolean contains(Path path, FileStatus socket) {
        Long inode = inodes.get(path);
        return inode != null && inode == socket.inode();
    }

    /** Records a socket, before it gets its path. */
    void add(Path path, FileStatus socket) throws IOException {
        for (Path other : inodes.keySet().toArray(Path[]::new)) {
            if (!isThere(other)) {
                inodes.remove(other); // removed by another process
            }
        }
        inodes.put(path, socket.inode());
        write();
    }

    /** Deletes a removed socket from the record. */
    void remove(Path path) throws IOException {
        if (inodes.remove(path) != null) {
            write();
        }
    }

    private boolean isThere(Path path) {
        try (PinnedFile found = PinnedFile.of(path)) {
            return contains(path, found.status());
        } catch (IOException e) {
            return false;
        }
    }

    private void write() throws IOException {
        PrivateFile.write(file, inodes.entrySet().stream().map(e -> e.getValue() + " " + e.getKey() + "\n")
            .collect(Collectors.joining()));
    }
}
