package io.hawser.broker.machine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class MathLibrariesTest {
    /** In the build's folder, whose parents only its owner can write. */
    private final Path folder = Path.of("target/math-libraries").toAbsolutePath();

    @BeforeEach
    void makeFolder() throws IOException {
        if (Files.exists(folder)) {
            try (var files = Files.walk(folder)) {
                for (Path file : files.filter(file -> !file.equals(folder)).sorted(Comparator.reverseOrder())
                    .toList()) {
                    Files.delete(file);
                }
            }
        }
        Files.createDirectories(folder);
        allow(folder, "rwxr-xr-x");
    }

    private static void allow(Path path, String permissions) throws IOException {
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(permissions));
    }

    private Path file(String name) throws IOException {
        Path made = Files.createFile(folder.resolve(name));
        allow(made, "rw-r--r--");
        return made;
    }

    @Test
    void shouldOfferLibraryWithTheFilesOfItsFolder() throws IOException {
        Path real = file("libcublas.so.13.1.0");
        Files.createSymbolicLink(folder.resolve("libcublas.so.13"), real.getFileName());
        Path other = file("libcublasLt.so.13");
        Path builtins = file("libnvrtc-builtins.so.13.0");
        file("libnvrtc-builtins.so.13.0.88");
        file("secret.txt");
        MathLibraries libraries = MathLibraries.find(List.of(Path.of("/no-such-folder"), folder));
        assertEquals(Map.of("libcublas.so.13", folder.resolve("libcublas.so.13"), "libcublasLt.so.13", other,
            "libnvrtc-builtins.so.13.0", builtins), libraries.found());
        assertEquals(real.toRealPath().toString(), libraries.files().get(folder + "/libcublas.so.13"));
        assertEquals(other.toRealPath().toString(), libraries.files().get(other.toString()));
        assertFalse(libraries.files().containsKey(folder + "/secret.txt"));
        assertTrue(libraries.variable().contains("libcublas.so.13=" + folder + "/libcublas.so.13"));
    }

    @Test
    void shouldTakeVersionsFromTheNamesOfFiles() throws IOException {
        Files.createSymbolicLink(folder.resolve("libcublas.so.13"), file("libcublas.so.13.1.0.3").getFileName());
        file("libcublasLt.so.13");
        Files.createSymbolicLink(folder.resolve("libopenblas.so.0"), file("libopenblasp-r0.3.21.so").getFileName());
        assertEquals(Arrays.asList("13.1.0.3", null, "0.3.21"), MathLibraries.find(List.of(folder)).libraries().stream()
            .map(MathLibraries.Library::version).toList());
    }

    @Test
    void shouldTakeVersionsFromWheels() throws IOException {
        Path site = folder.resolve("site-packages");
        Path lib = Files.createDirectories(site.resolve("nvidia/cu13/lib"));
        for (Path part = lib; !part.equals(folder); part = part.getParent()) {
            allow(part, "rwxr-xr-x");
        }
        for (String name : List.of("libcublas.so.13", "libcudnn.so.9")) {
            allow(Files.createFile(lib.resolve(name)), "rw-r--r--");
        }
        Path other = Files.createDirectory(site.resolve("nvidia_cudnn_cu13-9.19.0.56.dist-info"));
        Files.writeString(other.resolve("RECORD"), "nvidia/cu13/lib/libcublas.so.13.other,,\n");
        Path wheel = Files.createDirectory(site.resolve("nvidia_cublas-13.1.0.3.dist-info"));
        Files.writeString(wheel.resolve("RECORD"), "x,,\nnvidia/cu13/lib/libcublas.so.13,sha256=a,1\n");
        assertEquals(Arrays.asList("13.1.0.3", null), MathLibraries.find(List.of(lib)).libraries().stream()
            .map(MathLibraries.Library::version).toList());
    }

    @Test
    void shouldSkipFolderThatOthersCanWrite() throws IOException {
        file("libcublas.so.13");
        allow(folder, "rwxrwxrwx");
        MathLibraries libraries = MathLibraries.find(List.of(folder));
        assertTrue(libraries.found().isEmpty() && libraries.files().isEmpty(), libraries::toString);
    }

    @Test
    void shouldUseFolderBelowOneWhoseEntriesOthersCannotReplace() throws IOException {
        Path inner = Files.createDirectories(folder.resolve("inner"));
        try {
            Path library = Files.createFile(inner.resolve("libcublas.so.13"));
            allow(library, "rw-r--r--");
            allow(inner, "rwxr-xr-x");
            Files.setAttribute(folder, "unix:mode", 01777);
            assertEquals(Map.of("libcublas.so.13", library), MathLibraries.find(List.of(inner)).found());
            Files.setAttribute(folder, "unix:mode", 0777);
            assertEquals(Map.of(), MathLibraries.find(List.of(inner)).found());
            Files.setAttribute(inner, "unix:mode", 01777);
            assertEquals(Map.of(), MathLibraries.find(List.of(inner)).found());
        } finally {
            Files.deleteIfExists(inner.resolve("libcublas.so.13"));
            Files.delete(inner);
        }
    }

    @Test
    void shouldNotOfferFileThatOthersCanWrite() throws IOException {
        file("libcublas.so.13");
        allow(file("libcublasLt.so.13"), "rw-rw-rw-");
        MathLibraries libraries = MathLibraries.find(List.of(folder));
        assertFalse(libraries.files().containsKey(folder + "/libcublasLt.so.13"));
        allow(folder.resolve("libcublas.so.13"), "rw-rw-rw-");
        assertEquals(Map.of(), MathLibraries.find(List.of(folder)).found());
    }

    @Test
    void shouldOfferNothingWithoutLibrary() throws IOException {
        file("libother.so.1");
        assertEquals(new MathLibraries(Map.of(), Map.of()), MathLibraries.find(List.of(folder)));
    }
}
