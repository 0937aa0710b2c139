package io.hawser.broker.machine;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.shm.rdma.RdmaOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RdmaDevicesTest {
    @TempDir
    private Path folder;

    private void port(String device, int port, String state) throws IOException {
        Path at = Files.createDirectories(folder.resolve(device).resolve("ports").resolve(Integer.toString(port)));
        Files.writeString(at.resolve("state"), state + "\n");
    }

    private String problem(String device, int port) {
        return RdmaDevices.problem(folder, new RdmaOptions(device, port, -1, 0, 0, 0, 0));
    }

    @Test
    void shouldFindActivePort() throws IOException {
        port("mlx5_0", 1, "1: DOWN");
        assertEquals("no RDMA device has an active port", problem("", 0));
        port("mlx5_1", 2, "4: ACTIVE");
        assertEquals("", problem("", 0));
        assertEquals("", problem("mlx5_1", 2));
        assertEquals("the RDMA device has no active port: device=mlx5_1", problem("mlx5_1", 1));
        assertEquals("the RDMA device has no active port: device=mlx5_0", problem("mlx5_0", 0));
        assertEquals("the RDMA device has no active port: device=other", problem("other", 0));
    }

    @Test
    void shouldSayThatTheMachineHasNoDevices() {
        Path missing = folder.resolve("none");
        assertEquals("this machine has no RDMA devices: " + missing, RdmaDevices.problem(missing, RdmaOptions.DEFAULT));
    }
}
