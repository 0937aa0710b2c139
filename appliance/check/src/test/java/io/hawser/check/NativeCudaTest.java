package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeCudaTest {
    private static final String CACHE = """
        2 libs found in cache `/etc/ld.so.cache'
        \tlibcudart.so.97 (libc6) => /usr/lib32/libcudart.so.97
        \tlibcudart.so.97 (libc6,x86-64) => /opt/cuda/lib/libcudart.so.97
        """;

    @TempDir
    private Path folder;

    @Test
    void shouldFindWhatTheLinkerFinds() {
        NativeCuda cuda = new NativeCuda(Optional.empty(), Map.of(), CACHE);
        assertEquals(Optional.of(Path.of("/opt/cuda/lib")), cuda.runtime("libcudart.so.97"));
        assertEquals(Optional.empty(), cuda.runtime("libcudart.so.98"));
    }

    @Test
    void shouldPreferTheFolderThatIsNamed() throws IOException {
        Files.createFile(folder.resolve("libcudart.so.97"));
        NativeCuda cuda = new NativeCuda(Optional.of(folder), Map.of(), CACHE);
        assertEquals(Optional.of(folder), cuda.runtime("libcudart.so.97"));
    }

    @Test
    void shouldNotTakeTheGuestLibrariesForNvidias() throws IOException {
        Path guest = Files.createDirectory(folder.resolve("guest"));
        Path other = Files.createDirectory(folder.resolve("other"));
        Files.createFile(guest.resolve("libcudart.so.97"));
        Files.writeString(guest.resolve("libcuda.so.1"), "ELF HAWSER_CARRIER");
        Files.createFile(other.resolve("libcudart.so.97"));
        NativeCuda cuda = new NativeCuda(Optional.empty(), Map.of("LD_LIBRARY_PATH", guest + ":" + other), "");
        assertEquals(Optional.of(other), cuda.runtime("libcudart.so.97"));
        assertEquals(other.toString(), cuda.libraryPath(List.of()));
    }

    @Test
    void shouldFindTheRuntimeThatAProgramNeeds() throws IOException {
        Path program = Files.writeString(folder.resolve("p"), "\u0000libm.so.6\u0000libcudart.so.13\u0000");
        assertEquals(Optional.of("libcudart.so.13"), NativeCuda.neededRuntime(program));
        Path other = Files.writeString(folder.resolve("q"), "libcuda.so.1");
        assertEquals(Optional.empty(), NativeCuda.neededRuntime(other));
    }
}
