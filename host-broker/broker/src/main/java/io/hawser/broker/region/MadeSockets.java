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
 * Which doorbell sockets this broker and earlier ones of the same state folder made: path and inode, a socket a line.
 * A broker that was killed leaves its sockets behind; by this record the next one knows them from sockets of others.
 * Event loop only.
 */
public final class MadeSockets {
    private static final Pattern LINE = Pattern.compile("(-?\\d+) (/.*)");

    private final Path file;
    private final Map<Path, Long> inodes = new LinkedHashMap<>();

    /**
     * Reads the record.
     *
     * @param file in the state folder; made with the first socket.
     * @throws IOException when a line of it is none.
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
                    + " (delete the file, and sockets that a killed broker left behind)");
            }
            inodes.put(Path.of(matcher.group(2)), Long.parseLong(matcher.group(1)));
        }
    }

    /** Whether a broker of this state folder made the socket. */
    boolean contains(Path path, FileStatus socket) {
        Long inode = inodes.get(path);
        return inode != null && inode == socket.inode();
    }

    /** Notes a socket, before it gets its path. */
    void add(Path path, FileStatus socket) throws IOException {
        for (Path other : inodes.keySet().toArray(Path[]::new)) {
            if (!isThere(other)) {
                inodes.remove(other); // somebody else removed it
            }
        }
        inodes.put(path, socket.inode());
        write();
    }

    /** Forgets a socket that was removed. */
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
