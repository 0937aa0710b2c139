package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PcieTreeTest {
    private static final String ADAPTER = "pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0";

    @TempDir
    private Path sysfs;

    private Path device(String place) throws Exception {
        return Files.createDirectories(sysfs.resolve("devices").resolve(place));
    }

    private void linkAdapter(String place) throws Exception {
        Path folder = Files.createDirectories(sysfs.resolve("class/infiniband/mlx5_0"));
        Files.createSymbolicLink(folder.resolve("device"), device(place));
    }

    private boolean haveCommonSwitch(String gpu) throws Exception {
        Path devices = Files.createDirectories(sysfs.resolve("bus/pci/devices"));
        Path place = device(gpu);
        String id = place.getFileName().toString();
        Files.createSymbolicLink(devices.resolve(id), place);
        return new PcieTree(sysfs).haveCommonSwitch("mlx5_0", id);
    }

    @ParameterizedTest
    @CsvSource({"pci0000:3a/0000:3a:01.0/0000:3b:00.0/0000:3c:01.0/0000:41:00.0, true",
        "pci0000:3a/0000:3a:02.0/0000:41:00.0, false", "pci0000:5c/0000:5c:01.0/0000:41:00.0, false",
        "pci0000:3a/0000:3a:01.0, false"})
    void shouldFindTheSwitchAboveBoth(String gpu, boolean expected) throws Exception {
        linkAdapter(ADAPTER);
        assertEquals(expected, haveCommonSwitch(gpu));
    }

    /** Two devices of the root complex itself share only that, and devices of software have no place. */
    @ParameterizedTest
    @CsvSource({"pci0000:00/0000:00:05.0, pci0000:00/0000:00:06.0", "virtual/net/rxe, pci0000:00/0000:00:06.0",
        "virtual/net/rxe, virtual/gpu"})
    void shouldFindNoSwitch(String adapter, String gpu) throws Exception {
        linkAdapter(adapter);
        assertEquals(false, haveCommonSwitch(gpu));
    }

    @Test
    void shouldFindNoSwitchOfDevicesThatAreMissing() {
        assertEquals(false, new PcieTree(sysfs).haveCommonSwitch("mlx5_0", "0000:41:00.0"));
    }
}
