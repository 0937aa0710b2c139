package io.hawser.shm.os;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FolderTest {
    @TempDir
    private Path place;
    private Path inside;

    @BeforeEach
    void makeFiles() throws IOException {
        inside = Files.createDirectory(place.resolve("inside"));
        Files.writeString(inside.resolve("file"), "text");
        Files.createSymbolicLink(inside.resolve("link"), place);
        Files.createSymbolicLink(inside.resolve("nowhere"), place.resolve("missing"));
    }

    @Test
    void shouldFindTheFileOfANameWithoutFollowingLinks() throws IOException {
        try (Folder folder = Folder.open(inside)) {
            assertTrue(folder.find("missing").isEmpty());
            try (PinnedFile file = folder.find("file").orElseThrow();
                PinnedFile link = folder.find("link").orElseThrow();
                PinnedFile nowhere = folder.find("nowhere").orElseThrow()) {
                assertTrue(file.status().isRegular() && file.status().isOwn() && file.status().isOwnOrRoots());
                assertEquals(4, file.status().bytes());
                assertEquals(1, file.status().links());
                for (PinnedFile found : new PinnedFile[] {link, nowhere}) {
                    FileStatus status = found.status();
                    assertFalse(status.isRegular() || status.isFolder() || status.isSocket());
                    assertFalse(status.isSameFile(file.status()));
                }
            }
            assertThrows(IOException.class, () -> folder.folder("link"));
            assertThrows(IOException.class, () -> folder.folder("file"));
            assertThrows(IOException.class, () -> Folder.open(inside.resolve("file")));
            assertThrows(IOException.class, () -> Folder.open(inside.resolve("missing")));
        }
        try (Folder folder = Folder.open(inside.resolve("link"))) {
            assertTrue(folder.status().isFolder(), "the administrator's links are followed");
        }
    }

    @Test
    void shouldKeepAFileWhenItsNameRefersToAnother() throws IOException {
        try (Folder folder = Folder.open(inside); PinnedFile pinned = folder.find("file").orElseThrow()) {
            Files.move(inside.resolve("file"), inside.resolve("moved"));
            Files.writeString(inside.resolve("file"), "another text");
            int descriptor = pinned.open();
            try {
                assertEquals(4, Descriptors.fileBytes(descriptor));
                assertTrue(FileStatus.of(descriptor).isSameFile(pinned.status()));
            } finally {
                Descriptors.close(descriptor);
            }
        }
    }

    @Test
    void shouldStayTheSameFolderWhenItsPathIsReplaced() throws IOException {
        try (Folder folder = Folder.open(inside)) {
            Files.move(inside, place.resolve("moved"));
            Files.createDirectory(inside);
            Descriptors.close(folder.create("new"));
        }
        assertTrue(Files.exists(place.resolve("moved/new")));
        assertFalse(Files.exists(inside.resolve("new")));
    }

    @Test
    void shouldMakeOnlyWhereTheNameIsFree() throws IOException {
        try (Folder folder = Folder.open(inside)) {
            for (String taken : new String[] {"file", "link", "nowhere"}) {
                assertThrows(IOException.class, () -> folder.create(taken), taken);
                assertThrows(IOException.class, () -> folder.make(taken), taken);
            }
            assertFalse(Files.exists(place.resolve("missing")), "no link was followed");
            Descriptors.close(folder.create("new"));
            assertEquals("rw-------", mode(inside.resolve("new")));
            try (Folder made = folder.make("folder")) {
                assertEquals("rwx------", mode(inside.resolve("folder")));
                Descriptors.close(made.create("deeper"));
                assertTrue(made.link("deeper", folder, "higher"));
                assertFalse(made.link("deeper", folder, "file"), "no name is taken from another file");
                assertFalse(made.link("deeper", folder, "nowhere"));
            }
        }
        assertTrue(Files.isSameFile(inside.resolve("higher"), inside.resolve("folder/deeper")));
        assertEquals("text", Files.readString(inside.resolve("file")));
    }

    @Test
    void shouldRemoveALinkAndNotWhereItLeads() throws IOException {
        Files.delete(inside.resolve("link"));
        Files.createSymbolicLink(inside.resolve("link"), inside.resolve("file"));
        try (Folder folder = Folder.open(inside)) {
            folder.remove("link");
            folder.remove("missing");
            folder.removeFolder("missing");
            assertThrows(IOException.class, () -> folder.removeFolder("file"));
            folder.make("empty").close();
            assertThrows(IOException.class, () -> folder.remove("empty"));
            folder.removeFolder("empty");
        }
        assertEquals("text", Files.readString(inside.resolve("file")));
        assertFalse(Files.exists(inside.resolve("link"), LinkOption.NOFOLLOW_LINKS));
        assertFalse(Files.exists(inside.resolve("empty")));
    }

    @Test
    void shouldTakeSingleNamesOnly() throws IOException {
        try (Folder folder = Folder.open(inside)) {
            for (String name : new String[] {"", ".", "..", "../file", "a/b", "/etc", "a\0b"}) {
                assertThrows(IllegalArgumentException.class, () -> folder.find(name), name);
                assertThrows(IllegalArgumentException.class, () -> folder.create(name), name);
                assertThrows(IllegalArgumentException.class, () -> folder.folder(name), name);
                assertThrows(IllegalArgumentException.class, () -> folder.make(name), name);
                assertThrows(IllegalArgumentException.class, () -> folder.remove(name), name);
                assertThrows(IllegalArgumentException.class, () -> folder.link("file", folder, name), name);
                assertThrows(IllegalArgumentException.class, () -> folder.path(name), name);
            }
        }
    }

    @Test
    void shouldKnowTheFileSystem() throws IOException {
        try (Folder memory = Folder.open(Path.of("/dev/shm")); Folder kernel = Folder.open(Path.of("/sys"));
            PinnedFile file = kernel.folder("kernel").find("mm").orElseThrow()) {
            assertEquals(0x01021994L, memory.fileSystem());
            assertEquals(0x62656572L, file.fileSystem());
        }
    }

    private static String mode(Path path) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
    }
}
