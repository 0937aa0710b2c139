package io.hawser.hypervisor.share;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.hypervisor.domain.HypervisorException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HostIdTest {
    private final String uuid = UUID.randomUUID().toString();

    @TempDir
    Path folder;

    private HostId read() {
        return new HostId(folder.resolve("host-uuid"));
    }

    @Test
    void shouldKeepTheLastUuidBeyondARestart() {
        HostId host = read();
        assertThrows(HypervisorException.class, host::uuid, "libvirt has never answered");
        host.learn(UUID.randomUUID().toString());
        host.learn(uuid);
        assertEquals(uuid, host.uuid());
        assertEquals(uuid, read().uuid());
    }

    @Test
    void shouldIgnoreAFileWithoutAUuid() throws Exception {
        Files.writeString(folder.resolve("host-uuid"), uuid + "x");
        assertThrows(HypervisorException.class, () -> read().uuid());
    }
}
