package io.hawser.broker.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.broker.Broker;
import io.hawser.broker.TestBroker;
import io.hawser.broker.model.StartException;
import io.hawser.shm.os.Descriptors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The files and sockets that a broker uses for regions, and the files that it must leave alone. */
class RegionPlacesIT {
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");
    private static final Path FILE = TestRegions.file("places");
    private static final long BYTES = 16 << 20;
    private static final int OTHER_USER = 4711;
    @TempDir
    Path stateDir;

    @AfterEach
    void tidy() throws IOException {
        Files.deleteIfExists(FILE);
    }

    private static void makeFile(Path file) throws IOException {
        int descriptor = Descriptors.create(file);
        Descriptors.resize(descriptor, BYTES);
        Descriptors.close(descriptor);
    }

    private TestBroker start(Map<String, String> settings) {
        return TestBroker.start(stateDir, "silent", settings);
    }

    private static String refusal(TestBroker broker, Path path, Path socket) throws Exception {
        RegionSettings settings = RegionSettings.ofRest("refused", Optional.ofNullable(path), BYTES, "default", 4,
            Duration.ofSeconds(30), Optional.ofNullable(socket), Optional.empty());
        ExecutionException failure = assertThrows(ExecutionException.class, () -> broker.broker().regions()
            .create(settings).get(60, TimeUnit.SECONDS), () -> path + " " + socket);
        assertTrue(failure.getCause() instanceof RegionException, () -> failure.getCause().toString());
        return failure.getCause().getMessage();
    }

    private void assertStartFails(String what, Path file, String reason) {
        StartException failure = assertThrows(StartException.class, () -> Broker.start(TestBroker.config(
            stateDir.resolve("failing"), "silent", TestRegions.settings("r", file, Map.of("size", "16M", "slots", "4"),
                Map.of())),
            System.getenv(), TestBroker.NO_LISTENER, 0), what);
        assertTrue(failure.getMessage().contains(reason), what + ": " + failure.getMessage());
    }

    @Test
    void shouldTellRestNothingOfPathsOutsideTheFolders() throws Exception {
        Path there = Files.writeString(stateDir.resolve("there"), "precious");
        List<Path> outside = new ArrayList<>(List.of(there, stateDir.resolve("missing"), stateDir,
            stateDir.resolve("missing/deeper"), there.resolve("below-a-file"), Path.of("/dev/null"), SHARED_MEMORY,
            Path.of("/sys/bus/pci/devices"), Path.of("/dev/shm/../null"), Path.of("/dev/shm/./../shm/x"),
            Path.of("/dev/shm2/x"), Path.of("/proc/self/mem")));
        try (TestBroker broker = start(Map.of())) {
            Set<String> texts = new HashSet<>();
            for (Path path : outside) {
                texts.add(refusal(broker, path, null));
            }
            assertEquals(1, texts.size(), "the answer must not depend on the path: " + texts);
            assertTrue(texts.iterator().next().contains("below a folder of hawser.region-folders"), texts::toString);
            texts.clear();
            outside.add(SHARED_MEMORY.resolve("hawser-doorbell"));
            for (Path path : outside) {
                texts.add(refusal(broker, null, path));
            }
            assertEquals(1, texts.size(), "the answer must not depend on the path: " + texts);
            assertTrue(texts.iterator().next().contains("below a folder of hawser.doorbell-folders"), texts::toString);
        }
        assertEquals("precious", Files.readString(there));
        assertTrue(Files.exists(Path.of("/dev/null")));
    }

    @Test
    void shouldLeaveWhatIsInItsFoldersAndNotItsOwn() throws Exception {
        Path sockets = Files.createDirectory(stateDir.resolve("doorbells"));
        Path socket = sockets.resolve("one");
        try (TestBroker broker = start(Map.of("hawser.region-folders", "/dev/shm," + stateDir))) {
            for (Map.Entry<String, FileMaker> maker : FileMaker.all().entrySet()) {
                maker.getValue().make(socket);
                Object before = FileMaker.identity(socket);
                assertTrue(refusal(broker, null, socket).contains("path must be free"), maker.getKey());
                assertTrue(refusal(broker, socket, null).contains(": it must be "), maker.getKey());
                assertEquals(before, FileMaker.identity(socket), maker.getKey());
                Files.delete(socket);
            }
            RegionSettings settings = RegionSettings.ofRest("r", Optional.empty(), BYTES, "default", 4,
                Duration.ofSeconds(30), Optional.of(socket), Optional.empty());
            TestBroker.done(broker.broker().regions().create(settings));
            assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(socket)));
            assertTrue(refusal(broker, null, socket).contains("somebody listens"));
        }
        assertTrue(Files.notExists(socket));
    }

    @Test
    void shouldMakeTheFolderOfDoorbellsForItselfAlone() throws Exception {
        Path socket = stateDir.resolve("doorbells/one");
        try (TestBroker broker = start(Map.of())) {
            TestBroker.done(broker.broker().regions().create(RegionSettings.ofRest("r", Optional.empty(), BYTES,
                "default", 4, Duration.ofSeconds(30), Optional.of(socket), Optional.empty())));
            assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(socket.getParent())));
            assertTrue(refusal(broker, null, stateDir.resolve("doorbells/a/b")).contains("a file must open: name=a"));
        }
    }

    @Test
    void shouldNotFollowLinksBelowTheFolders() throws Exception {
        Path target = Files.createDirectory(stateDir.resolve("target"));
        Path open = Files.createDirectory(stateDir.resolve("doorbells"));
        Files.createSymbolicLink(open.resolve("link"), target);
        Path shared = Files.createDirectory(open.resolve("shared"));
        Files.setPosixFilePermissions(shared, PosixFilePermissions.fromString("rwxrwxrwx"));
        try (TestBroker broker = start(Map.of())) {
            assertTrue(refusal(broker, null, open.resolve("link/one")).contains("a file must open: name=link"));
            assertTrue(refusal(broker, null, shared.resolve("one")).contains("others must not have write permission"));
        }
        try (var files = Files.list(target)) {
            assertEquals(0, files.count());
        }
    }

    @Test
    void shouldNotServeAFileThatAnotherUserPutThere() throws Exception {
        assumeTrue(FileMaker.isRoot(), "SKIPPED: only root can make a file of another user");
        makeFile(FILE);
        Files.setAttribute(FILE, "unix:uid", OTHER_USER);
        Object before = FileMaker.identity(FILE);
        assertStartFails("another user's", FILE, "its owner must be the broker's user or root, since the owner can "
            + "read the vGPU's data: owner=4711");
        try (TestBroker broker = start(Map.of())) {
            assertTrue(refusal(broker, FILE, null).contains("owner=4711"));
        }
        assertEquals(before, FileMaker.identity(FILE), "the broker must neither change nor remove the file");
    }

    @Test
    void shouldServeOnlyAFileThatNobodyElseCanHaveOpen() throws Exception {
        for (Map.Entry<String, FileMaker> maker : FileMaker.all().entrySet()) {
            if (!maker.getKey().equals("file")) {
                maker.getValue().make(FILE);
                Object before = FileMaker.identity(FILE);
                assertStartFails(maker.getKey(), FILE, "it must be a file, not a link");
                assertEquals(before, FileMaker.identity(FILE), maker.getKey());
                Files.delete(FILE);
            }
        }
        makeFile(FILE);
        Path second = TestRegions.file("places-second");
        Files.createLink(second, FILE);
        try {
            assertStartFails("a second name", FILE, "the file must have one hard link: links=2");
        } finally {
            Files.delete(second);
        }
        for (String mode : new String[] {"rw----r--", "rw-----w-", "rw-r--r--", "rw-rw-rw-"}) {
            Files.setPosixFilePermissions(FILE, PosixFilePermissions.fromString(mode));
            assertStartFails(mode, FILE, "others must have no permission on it");
        }
        Files.setPosixFilePermissions(FILE, PosixFilePermissions.fromString("rw-rw----"));
        try (TestBroker broker = start(TestRegions.settings("r", FILE, Map.of("slots", "4"), Map.of()))) {
            assertEquals(RegionView.State.SERVING, broker.broker().regions().find("r").orElseThrow().state());
        }
        assertTrue(Files.exists(FILE), "the broker must keep an existing file");
    }

    @Test
    void shouldNotTakeSysfsForMemory() throws Exception {
        Path file = Path.of("/sys/kernel/mm/transparent_hugepage/enabled");
        assumeTrue(Files.exists(file), "SKIPPED: this kernel has no such file");
        String before = Files.readString(file);
        assertStartFails("a file of sysfs", file, "a file of sysfs must be resource2 of an ivshmem device");
        assertEquals(before, Files.readString(file));
    }

    @Test
    void shouldNotTakeADiskForMemory() throws Exception {
        Path disk = Files.writeString(Files.createTempFile(Path.of("target").toAbsolutePath(), "precious", ""), "data");
        assertStartFails("a file of a disk", disk, "it must be on a memory file system");
        assertEquals("data", Files.readString(disk));
        Files.delete(disk);
        assertStartFails("no file of a disk", disk, "it must be on a memory file system");
        assertFalse(Files.exists(disk, LinkOption.NOFOLLOW_LINKS));
    }

    @Test
    void shouldRemoveOnlyTheFileThatItMade() throws Exception {
        Map<String, String> small = Map.of("size", "16M", "slots", "4");
        try (TestBroker broker = start(TestRegions.settings("r", FILE, small, Map.of()))) {
            assertEquals(RegionView.State.SERVING, broker.broker().regions().find("r").orElseThrow().state());
            Files.delete(FILE);
            Files.writeString(FILE, "of somebody else");
        }
        assertEquals("of somebody else", Files.readString(FILE));
    }
}
