package io.hawser.hypervisor.door;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DoorTest {
    @TempDir
    private Path folder;
    private final ExecutorService threads = Executors.newCachedThreadPool();

    @AfterEach
    void endThreads() {
        threads.shutdownNow();
    }

    private Path socket() {
        return folder.resolve("hawserd.sock");
    }

    private Door open() throws IOException {
        return Door.open(socket(), -1, new Api(null, null, threads, Duration.ofSeconds(20), 0), threads);
    }

    private List<String> names() throws IOException {
        try (var files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    @Test
    void shouldListenForItsGroupAndLeaveNothing() throws IOException {
        try (Door _ = open()) {
            assertEquals("rw-rw----", PosixFilePermissions.toString(Files.getPosixFilePermissions(socket())));
            String refusal = assertThrows(IOException.class, this::open).getMessage();
            assertTrue(refusal.contains("somebody listens") && refusal.contains(socket().toString()), refusal);
            assertEquals(List.of("hawserd.sock"), names());
        }
        assertEquals(List.of(), names());
    }

    @Test
    void shouldReplaceTheSocketOfADaemonThatWasKilled() throws IOException {
        try (ServerSocketChannel left = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            left.bind(UnixDomainSocketAddress.of(socket()));
        }
        assertEquals(List.of("hawserd.sock"), names());
        open().close();
        assertEquals(List.of(), names());
    }

    @Test
    void shouldRemoveNothingButASocket() throws Exception {
        for (String[] make : new String[][] {{"touch"}, {"mkfifo"}, {"mkdir"}, {"ln", "-s", "nowhere"}}) {
            List<String> command = new java.util.ArrayList<>(List.of(make));
            command.add(socket().toString());
            assertEquals(0, new ProcessBuilder(command).inheritIO().start().waitFor());
            Object before = Files.getAttribute(socket(), "unix:ino", LinkOption.NOFOLLOW_LINKS);
            String refusal = assertThrows(IOException.class, this::open, make[0]).getMessage();
            assertTrue(refusal.contains("path must be free"), refusal);
            assertEquals(before, Files.getAttribute(socket(), "unix:ino", LinkOption.NOFOLLOW_LINKS), make[0]);
            Files.delete(socket());
        }
    }
}
