package io.hawser.shm.os;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SocketFileTest {
    private static final String NAME = "socket";
    private static final SocketFile.Record NOBODYS = new SocketFile.Record() {
        @Override
        public boolean contains(FileStatus socket) {
            return false;
        }

        @Override
        public void add(FileStatus socket) {
            assertTrue(socket.isSocket());
        }
    };

    @TempDir
    private Path place;

    private static ServerSocketChannel listen(Path path) throws IOException {
        ServerSocketChannel channel = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        channel.bind(UnixDomainSocketAddress.of(path));
        return channel;
    }

    private SocketFile prepare(SocketFile.Record record) throws IOException {
        return SocketFile.prepare(Folder.open(place), NAME, record);
    }

    private List<String> names() throws IOException {
        try (var files = Files.list(place)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    @Test
    void shouldHaveItsModeBeforeItHasItsName() throws IOException {
        List<FileStatus> noted = new ArrayList<>();
        SocketFile.Record record = new SocketFile.Record() {
            @Override
            public boolean contains(FileStatus socket) {
                return false;
            }

            @Override
            public void add(FileStatus socket) {
                assertFalse(Files.exists(place.resolve(NAME)), "noted before it has its name");
                noted.add(socket);
            }
        };
        try (SocketFile file = prepare(record); ServerSocketChannel channel = listen(file.bindPath())) {
            assertEquals(1, names().size());
            Path hidden = place.resolve(names().getFirst());
            assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(hidden)));
            file.publish(PosixFilePermissions.fromString("rw-r-----"), -1);
            assertEquals(List.of(NAME), names());
            assertEquals("rw-r-----",
                PosixFilePermissions.toString(Files.getPosixFilePermissions(place.resolve(NAME))));
            try (PinnedFile now = PinnedFile.of(place.resolve(NAME))) {
                assertTrue(now.status().isSameFile(noted.getFirst()));
            }
            try (SocketChannel client = SocketChannel.open(UnixDomainSocketAddress.of(place.resolve(NAME)));
                SocketChannel served = channel.accept()) {
                assertTrue(client.isConnected() && served.isConnected());
            }
        }
        assertEquals(List.of(), names());
    }

    @Test
    void shouldReplaceASocketThatNobodyListensOnAndNoOther() throws IOException {
        try (ServerSocketChannel other = listen(place.resolve(NAME))) {
            String refusal = assertThrows(IOException.class, () -> prepare(SocketFile.Record.NONE)).getMessage();
            assertTrue(refusal.contains("somebody listens"), refusal);
            assertTrue(other.isOpen());
        }
        String refusal = assertThrows(IOException.class, () -> prepare(NOBODYS)).getMessage();
        assertTrue(refusal.contains("must be free"), refusal);
        assertEquals(List.of(NAME), names());
        if (FileStatus.user() == 0) {
            Files.setAttribute(place.resolve(NAME), "unix:uid", 4711);
            refusal = assertThrows(IOException.class, () -> prepare(SocketFile.Record.NONE)).getMessage();
            assertTrue(refusal.contains("must be free"), refusal);
            Files.setAttribute(place.resolve(NAME), "unix:uid", 0);
        }
        prepare(SocketFile.Record.NONE).close();
        assertEquals(List.of(), names());
    }

    @Test
    void shouldRemoveNoFileAndNoLink() throws IOException {
        Path path = place.resolve(NAME);
        Path socket = place.resolve("other");
        listen(socket).close();
        for (int kind = 0; kind < 3; kind++) {
            switch (kind) {
                case 0 -> Files.writeString(path, "precious");
                case 1 -> Files.createSymbolicLink(path, socket);
                default -> Files.createDirectory(path);
            }
            String refusal = assertThrows(IOException.class, () -> prepare(SocketFile.Record.NONE)).getMessage();
            assertTrue(refusal.contains("must be free"), refusal);
            assertEquals(List.of("other", NAME), names());
            Files.delete(path);
        }
    }

    @Test
    void shouldTakeNoNameThatWasTakenMeanwhile() throws IOException {
        try (SocketFile file = prepare(SocketFile.Record.NONE); ServerSocketChannel channel = listen(file.bindPath())) {
            Files.writeString(place.resolve(NAME), "precious");
            assertThrows(IOException.class, () -> file.publish(PosixFilePermissions.fromString("rw-------"), -1));
            assertTrue(channel.isOpen());
        }
        assertEquals("precious", Files.readString(place.resolve(NAME)));
        assertEquals(List.of(NAME), names());
    }

    @Test
    void shouldLeaveAFileThatHasReplacedIt() throws IOException {
        try (SocketFile file = prepare(SocketFile.Record.NONE); ServerSocketChannel channel = listen(file.bindPath())) {
            file.publish(PosixFilePermissions.fromString("rw-------"), -1);
            Files.delete(place.resolve(NAME));
            Files.writeString(place.resolve(NAME), "precious");
            assertTrue(channel.isOpen());
        }
        assertEquals("precious", Files.readString(place.resolve(NAME)));
    }
}
