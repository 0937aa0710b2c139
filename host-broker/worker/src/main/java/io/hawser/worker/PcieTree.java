package io.hawser.worker;

import java.io.IOException;
import java.nio.file.Path;

/**
 * Where devices of this machine lie in the trees of PCIe. Any thread.
 *
 * @param sysfs the kernel's folder of devices.
 */
record PcieTree(Path sysfs) {
    private static final String ROOT = "pci"; // begins the name of a root complex, as in pci0000:3a

    static PcieTree ofKernel() {
        return new PcieTree(Path.of("/sys"));
    }

    /**
     * Whether the way between an RDMA device and a GPU passes no root complex: both lie below one port of it, and so
     * below a switch.
     *
     * @param rdma name of the RDMA device.
     * @param pciBusId the GPU's, as 0000:41:00.0.
     * @return false also for devices that have no place in PCIe.
     */
    boolean haveCommonSwitch(String rdma, String pciBusId) {
        Path one = port(sysfs.resolve("class/infiniband").resolve(rdma).resolve("device"));
        return one != null && one.equals(port(sysfs.resolve("bus/pci/devices").resolve(pciBusId)));
    }

    /** The port of the root complex above a device; null for a device without one. */
    private static Path port(Path device) {
        Path place;
        try {
            place = device.toRealPath();
        } catch (IOException e) {
            return null;
        }
        for (int i = 1; i + 2 < place.getNameCount(); i++) { // the device itself is no port
            if (place.getName(i).toString().startsWith(ROOT)) {
                return place.subpath(0, i + 2);
            }
        }
        return null;
    }
}
