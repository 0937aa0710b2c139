package io.hawser.shm.os;

import java.io.IOException;
import java.net.ConnectException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Set;

/**
 * The file of a listening Unix socket. The socket is bound in a folder that only its owner can use, and gets its name
 * afterwards: nobody can connect before its mode is right. It replaces only a socket that its owner left behind. One
 * thread at a time.
 */
public final class SocketFile implements AutoCloseable {
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final int RANDOM_BYTES = 8;

    /** The sockets that their owner created. */
    public interface Record {
        /** Accepts any socket of this process's user: for names that no other program of the user has. */
        Record NONE = new Record() {
            @Override
            public boolean contains(FileStatus socket) {
                return true;
            }

            @Override
            public void add(FileStatus socket) {
                assert socket.isSocket();
            }
        };

        /** Whether the owner created this socket. */
        boolean contains(FileStatus socket);

        /** Called before the owner gives this socket its name. */
        void add(FileStatus socket) throws IOException;
    }

    private final Folder folder;
    private final String name;
    private final Record record;
    private final String hiddenName;
    private final String bound;
    private Folder hidden;
    private boolean hiddenIsThere;
    private FileStatus published;

    private SocketFile(Folder folder, String name, Record record) {
        this.folder = folder;
        this.name = name;
        this.record = record;
        byte[] random = new byte[RANDOM_BYTES];
        RANDOM.nextBytes(random);
        bound = HexFormat.of().formatHex(random);
        hiddenName = ".hawser-" + bound;
    }

    /**
     * Frees the name and creates a place to bind the socket.
     *
     * @param folder folder of the name; this object closes it.
     * @throws IOException when another file has the name, or a process listens on the socket; nothing is left behind.
     */
    public static SocketFile prepare(Folder folder, String name, Record record) throws IOException {
        SocketFile file = new SocketFile(folder, name, record);
        try {
            file.removeStale();
            file.hidden = folder.make(file.hiddenName);
            file.hiddenIsThere = true;
            return file;
        } catch (IOException | RuntimeException e) {
            file.close();
            throw e;
        }
    }

    private void removeStale() throws IOException {
        Optional<PinnedFile> found = folder.find(name);
        if (found.isEmpty()) {
            return;
        }
        try (PinnedFile old = found.get()) {
            if (!old.status().isSocket() || !old.status().isOwn() || !record.contains(old.status())) {
                throw new IOException("the socket's path must be free: only a socket of an earlier start is removed");
            }
            if (hasListener(old)) {
                throw new IOException("somebody listens on the socket already");
            }
            remove(old.status());
        }
    }

    /** Does not wait, because the listener may be the same thread. */
    private static boolean hasListener(PinnedFile socket) throws IOException {
        try (SocketChannel probe = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            probe.configureBlocking(false);
            probe.connect(UnixDomainSocketAddress.of(socket.path()));
            return true;
        } catch (ConnectException e) {
            return false;
        }
    }

    /** Removes the name if it still refers to this file. */
    private void remove(FileStatus file) throws IOException {
        Optional<PinnedFile> found = folder.find(name);
        if (found.isPresent()) {
            try (PinnedFile now = found.get()) {
                if (now.status().isSameFile(file)) {
                    folder.remove(name);
                }
            }
        }
    }

    /** The path to bind the socket at, shorter than 50 bytes; invalid in other processes. */
    public Path bindPath() {
        return hidden.path(bound);
    }

    /**
     * Gives the bound socket its name.
     *
     * @param mode permissions, which decide which users can connect.
     * @param group id of the socket's group; -1 keeps the group.
     * @throws IOException when another file got the name meanwhile.
     */
    public void publish(Set<PosixFilePermission> mode, int group) throws IOException {
        Files.setPosixFilePermissions(bindPath(), mode);
        if (group >= 0) {
            Files.setAttribute(bindPath(), "unix:gid", group);
        }
        FileStatus made;
        try (PinnedFile socket = hidden.find(bound).orElseThrow(() -> new IOException("no socket is bound"))) {
            made = socket.status();
        }
        record.add(made);
        if (!hidden.link(bound, folder, name)) {
            throw new IOException("the socket's path must be free");
        }
        published = made;
        removeHidden();
    }

    private void removeHidden() throws IOException {
        hidden.remove(bound);
        folder.removeFolder(hiddenName);
        hiddenIsThere = false;
    }

    /**
     * Removes the socket's name, if it still refers to this socket, and the remaining files. Call after the listener
     * has ended: {@link #bindPath} then becomes invalid.
     */
    @Override
    public void close() throws IOException {
        try (folder; Folder last = hidden) {
            if (published != null) {
                remove(published);
            }
            if (last != null && hiddenIsThere) {
                removeHidden();
            }
        }
    }
}
