package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.model.StartException;
import io.hawser.shm.os.FileStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MpsFolderTest {
    private static final int NOBODY = 65534;

    @TempDir
    Path folder;
    private Path pipes;

    @BeforeEach
    void makePipes() throws IOException {
        pipes = Files.createDirectory(folder.resolve("pipes"));
        allow(pipes, "rwxr-xr-x");
    }

    private static void allow(Path path, String permissions) throws IOException {
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(permissions));
    }

    private MpsFolder of(Path path) throws IOException {
        return of(Map.of("hawser.mps.pipe-directory", path.toString()), Map.of()).orElseThrow();
    }

    private Optional<MpsFolder> of(Map<String, String> settings, Map<String, String> environment)
        throws IOException {
        return MpsFolder.of(TestBroker.config(folder, "normal", settings), environment);
    }

    private void refuse(Path path, String rule) {
        IOException refused = assertThrows(IOException.class, () -> of(path));
        assertTrue(refused.getMessage().startsWith("the folder of MPS"), refused.getMessage());
        assertTrue(refused.getMessage().contains(rule) && refused.getMessage().contains("folder=" + path),
            refused.getMessage());
    }

    @Test
    void shouldTakeAFolderThatOnlyTheBrokersUserCanChange() throws IOException {
        assertEquals(pipes, of(pipes).path());
        assertFalse(of(pipes).isServed());
        Files.createFile(pipes.resolve("control"));
        assertTrue(of(pipes).isServed());
    }

    @Test
    void shouldPreferTheSettingToTheEnvironment() throws IOException {
        String standard = "/run/nvidia-mps";
        Map<String, String> inherited = Map.of(MpsFolder.VARIABLE, pipes.toString());
        assertEquals(pipes, of(Map.of(), inherited).orElseThrow().path());
        assertEquals(folder, of(Map.of("hawser.mps.pipe-directory", folder.toString()), inherited).orElseThrow()
            .path());
        assertEquals(Path.of(standard), of(Map.of(), Map.of()).orElseThrow().path(),
            "the default must not be NVIDIA's folder in /tmp");
        assertEquals(Optional.empty(), of(Map.of("hawser.gpu.backend", "software"), inherited));
    }

    @Test
    void shouldRefuseAFolderThatOthersMayWrite() throws IOException {
        allow(pipes, "rwxrwxr-x");
        refuse(pipes, "part=pipes");
        allow(pipes, "rwxr-xrwx");
        refuse(pipes, "part=pipes");
    }

    @Test
    void shouldRefuseAFolderBelowOneThatOthersMayWrite() throws IOException {
        allow(folder, "rwxrwxrwx");
        refuse(pipes, "part=" + folder.getFileName());
    }

    @Test
    void shouldRefuseAFolderThatAnotherUserMayMakeFirst() throws Exception {
        Path shared = Files.createDirectory(folder.resolve("shared"));
        assertEquals(0, new ProcessBuilder("chmod", "1777", shared.toString()).start().waitFor());
        refuse(shared.resolve("nvidia-mps"), "missing=nvidia-mps");
        Files.createDirectory(shared.resolve("nvidia-mps"),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-xr-x")));
        assertEquals(shared.resolve("nvidia-mps"), of(shared.resolve("nvidia-mps")).path(),
            "the broker must accept its own folder in a sticky folder");
    }

    @Test
    void shouldRefuseLinksAndFiles() throws IOException {
        Path link = Files.createSymbolicLink(folder.resolve("link"), pipes);
        refuse(link, "part=link");
        refuse(link.resolve("deeper"), "part=link");
        refuse(Files.createFile(folder.resolve("file")), "part=file");
    }

    @Test
    void shouldRefuseAFolderOfAnotherUser() throws IOException {
        assumeTrue(FileStatus.user() == 0, "skipped: only root can give a folder to another user");
        Files.setAttribute(pipes, "unix:uid", NOBODY);
        refuse(pipes, "owner=" + NOBODY);
    }

    @Test
    void shouldNotStartABrokerWithAnUnsafeFolder() throws IOException {
        allow(pipes, "rwxrwxrwx");
        StartException refused = assertThrows(StartException.class, () -> TestBroker.start(folder.resolve("state"),
            "normal", Map.of(), Map.of(MpsFolder.VARIABLE, pipes.toString())));
        assertTrue(refused.getMessage().contains("folder=" + pipes), refused.getMessage());
    }
}
