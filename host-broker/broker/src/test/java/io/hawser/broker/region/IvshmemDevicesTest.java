package io.hawser.broker.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.Folder;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.region.RegionTag;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The search in a folder like Linux' folder of PCI devices. The lane gpu-domain repeats it with devices of QEMU. */
class IvshmemDevicesTest {
    private static final String TEXT = "0123456789abcdef0123456789abcdef";

    @TempDir
    private Path devices;
    private final RegionTag tag = new RegionTag(TEXT);

    @BeforeEach
    void addOthers() throws IOException {
        // These must not match: another device id, no tag, shorter than a page, another vendor, no files.
        write(device("0000:00:01.0", "0x1af4", "0x1041", 8192), tag);
        device("0000:00:02.0", "0x1af4", "0x1110", 8192);
        device("0000:00:03.0", "0x1af4", "0x1110", 100);
        write(device("0000:00:04.0", "0x8086", "0x1110", 8192), tag);
        Files.createDirectory(devices.resolve("0000:00:05.0"));
    }

    private Path device(String address, String vendor, String id, int bytes) throws IOException {
        Path folder = Files.createDirectory(devices.resolve(address));
        Files.writeString(folder.resolve("vendor"), vendor + "\n");
        Files.writeString(folder.resolve("device"), id + "\n");
        Files.writeString(folder.resolve("enable"), "0\n");
        return Files.write(folder.resolve("resource2"), new byte[bytes]);
    }

    private static void write(Path memory, RegionTag tag) throws IOException {
        try (FileChannel file = FileChannel.open(memory, StandardOpenOption.WRITE)) {
            tag.write(file);
        }
    }

    private String refusal() {
        return assertThrows(IOException.class, () -> IvshmemDevices.find(devices, tag)).getMessage();
    }

    @Test
    void shouldFindTheDeviceThatCarriesTheTag() throws IOException {
        Path memory = device("0000:00:06.0", "0x1af4", "0x1110", 8192);
        write(memory, tag);
        assertEquals(memory, IvshmemDevices.find(devices, tag));
        assertEquals("1", Files.readString(memory.resolveSibling("enable")).strip());
    }

    @Test
    void shouldRefuseATagThatNoIvshmemDeviceCarries() {
        String refusal = refusal();
        assertTrue(refusal.contains("devices=2"), refusal);
        assertFalse(refusal.contains(TEXT), refusal);
    }

    @Test
    void shouldRefuseATagThatTwoDevicesCarry() throws IOException {
        write(device("0000:00:06.0", "0x1af4", "0x1110", 8192), tag);
        write(device("0000:00:07.0", "0x1af4", "0x1110", 8192), tag);
        String refusal = refusal();
        assertTrue(refusal.contains("the same tag: devices=2"), refusal);
        assertFalse(refusal.contains("0000:00"), refusal);
    }

    @Test
    void shouldFindNothingInMemoryThatIsAnything() throws IOException {
        Random random = new Random(4711);
        for (int i = 0; i < 32; i++) {
            byte[] bytes = new byte[4096 + random.nextInt(4096)];
            random.nextBytes(bytes);
            Files.write(device("0000:01:%02x.0".formatted(i), "0x1af4", "0x1110", 0), bytes);
        }
        assertTrue(refusal().contains("devices=34"), refusal());
    }

    @Test
    void shouldPassOverADeviceThatIsBeingTakenOut() throws IOException {
        Files.delete(device("0000:00:06.0", "0x1af4", "0x1110", 8192));
        Path memory = device("0000:00:07.0", "0x1af4", "0x1110", RegionLayout.PAGE_BYTES);
        write(memory, tag);
        assertEquals(memory, IvshmemDevices.find(devices, tag));
    }

    @Test
    void shouldRefuseSettingsWithoutATagAndNotShowOneThatIs() throws RegionException {
        settings("ivshmem:" + TEXT).check();
        assertEquals("ivshmem:01234567...", settings("ivshmem:" + TEXT).place());
        for (String path : new String[] {"ivshmem:", "ivshmem:" + TEXT + "0", "ivshmem:../../dev/mem",
            "ivshmem:" + TEXT.toUpperCase(java.util.Locale.ROOT), "ivshmem/" + TEXT, " ivshmem:" + TEXT}) {
            assertThrows(RegionException.class, () -> settings(path).check(), path);
        }
    }

    @Test
    void shouldRefuseATagWhereThereIsNoPciBus() {
        IOException refusal = assertThrows(IOException.class,
            () -> IvshmemDevices.find(devices.resolve("missing"), tag));
        assertTrue(refusal.getMessage().contains("devices=0"), refusal.getMessage());
        assertFalse(refusal.getMessage().contains("missing"), refusal.getMessage());
    }

    @Test
    void shouldTellNoPathOfADeviceThatCannotBeRead() throws IOException {
        Files.createDirectory(device("0000:00:06.0", "0x1af4", "0x1110", 0).resolveSibling("gone"));
        Files.delete(devices.resolve("0000:00:06.0/resource2"));
        Files.createDirectory(devices.resolve("0000:00:06.0/resource2"));
        String refusal = refusal();
        assertTrue(refusal.contains("of which unreadable=1"), refusal);
        assertFalse(refusal.contains(devices.toString()) || refusal.contains("0000:00"), refusal);
    }

    @Test
    void shouldKnowTheMemoryOfAnIvshmemDeviceByItsFolder() throws IOException {
        device("0000:00:06.0", "0x1af4", "0x1110", 8192);
        device("0000:00:07.0", "0x10de", "0x2335", 8192);
        try (Folder ours = Folder.open(devices.resolve("0000:00:06.0"));
            Folder gpu = Folder.open(devices.resolve("0000:00:07.0"))) {
            assertTrue(IvshmemDevices.isMemory(ours, "resource2"));
            assertFalse(IvshmemDevices.isMemory(ours, "resource0"));
            assertFalse(IvshmemDevices.isMemory(ours, "config"));
            assertFalse(IvshmemDevices.isMemory(gpu, "resource2"));
        }
    }

    private static RegionSettings settings(String path) {
        return RegionSettings.ofRest("tenant", Optional.of(Path.of(path)), 0, "default", 1, Duration.ofSeconds(30),
            Optional.empty(), Optional.empty());
    }
}
