package io.hawser.broker.region;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.Folder;
import io.hawser.shm.os.SharedMemory;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.region.RegionTag;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jboss.logging.Logger;

/**
 * The ivshmem devices of the virtual machine in which the broker itself runs. Tenants may have written any byte of
 * their memory, except in a new region. The broker therefore trusts only a tag that tenants cannot know.
 */
final class IvshmemDevices {
    private static final Logger LOG = Logger.getLogger(IvshmemDevices.class);
    /** Where Linux lists PCI devices. */
    static final Path PCI = Path.of("/sys/bus/pci/devices");
    private static final String VENDOR = "0x%04x".formatted(RegionLayout.PCI_VENDOR);
    private static final String MEMORY = "resource2";
    private static final String DEVICE = "0x%04x".formatted(RegionLayout.PCI_DEVICE);

    private IvshmemDevices() {
    }

    /**
     * Finds the memory of the device that carries a tag.
     *
     * @param devices {@link #PCI}.
     * @return the device's {@code resource2}.
     * @throws IOException when no device, or more than one, carries the tag; the message is a sentence.
     */
    static Path find(Path devices, RegionTag tag) throws IOException {
        List<Path> found = new ArrayList<>();
        int seen = 0;
        int unreadable = 0;
        try (DirectoryStream<Path> list = Files.newDirectoryStream(devices)) {
            for (Path device : list) {
                if (!is(device.resolve("vendor"), VENDOR) || !is(device.resolve("device"), DEVICE)) {
                    continue;
                }
                seen++;
                try {
                    Path memory = device.resolve(MEMORY);
                    enable(device.resolve("enable"));
                    if (carries(memory, tag)) {
                        found.add(memory);
                    }
                } catch (IOException e) {
                    // The scan skips devices that the machine is removing. The client does not get the message, because
                    // it contains paths of the machine.
                    LOG.warnf("an ivshmem device is unreadable: %s", e.getMessage());
                    unreadable++;
                }
            }
        } catch (NoSuchFileException e) {
            LOG.debugf("this machine has no PCI bus: %s", e.getMessage());
        }
        if (found.size() > 1) {
            throw new IOException("two ivshmem devices must not carry the same tag: devices=" + found.size());
        }
        if (found.isEmpty()) {
            throw new IOException("an ivshmem device must carry the region's tag: tag=" + tag + " devices=" + seen
                + (unreadable == 0 ? "" : " of which unreadable=" + unreadable + " (see the broker's log)"));
        }
        return found.getFirst();
    }

    /**
     * Whether a file is the memory of an ivshmem device.
     *
     * @param device a folder of sysfs, so that the kernel provides its other files as well.
     */
    static boolean isMemory(Folder device, String name) {
        return name.equals(MEMORY) && is(device.path("vendor"), VENDOR) && is(device.path("device"), DEVICE);
    }

    private static boolean is(Path file, String value) {
        try {
            return Files.readString(file).strip().equals(value);
        } catch (IOException e) {
            return false; // removed during the scan
        }
    }

    /**
     * Enables the device, because no driver does, and a disabled device reads as ones. If the broker is not root, udev
     * must do it.
     */
    private static void enable(Path file) throws IOException {
        if (Files.readString(file).strip().equals("0")) {
            Files.writeString(file, "1");
        }
    }

    private static boolean carries(Path memory, RegionTag tag) throws IOException {
        int descriptor = Descriptors.open(memory);
        try {
            if (Descriptors.fileBytes(descriptor) < RegionLayout.PAGE_BYTES) {
                return false;
            }
            try (SharedMemory page = SharedMemory.map(descriptor, RegionLayout.PAGE_BYTES, 0)) {
                return tag.isIn(page.memory());
            }
        } finally {
            Descriptors.close(descriptor);
        }
    }
}
