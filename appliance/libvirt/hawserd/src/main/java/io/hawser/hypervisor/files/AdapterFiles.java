package io.hawser.hypervisor.files;

import io.hawser.hypervisor.model.FabricAddress;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.regex.Pattern;

/**
 * Network adapters and their virtual functions in sysfs. Any thread. PCI addresses have the form {@code 0000:3b:00.2}.
 */
public final class AdapterFiles {
    /** Linux include/uapi/linux/if_arp.h, ARPHRD_INFINIBAND. */
    private static final String INFINIBAND = "32";
    private static final Pattern ADDRESS = Pattern.compile("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");
    private static final Pattern INTERFACE = Pattern.compile("[^/\\s.][^/\\s]{0,14}"); // Linux: at most 15 characters
    /** Drivers that give a device to a domain: of QEMU, and of Xen. */
    private static final Set<String> LENDING_DRIVERS = Set.of("vfio-pci", "mlx5_vfio_pci", "pciback");

    private final Path sysfs;

    /** @param sysfs {@code /sys}, or a test's folder. */
    public AdapterFiles(Path sysfs) {
        this.sysfs = sysfs;
    }

    /** Whether there is a network interface. */
    public boolean hasInterface(String name) {
        return INTERFACE.matcher(name).matches() && Files.isDirectory(sysfs.resolve("class/net").resolve(name));
    }

    /** Whether a network interface is of InfiniBand. */
    public boolean isInfiniband(String name) {
        return hasInterface(name) && INFINIBAND.equals(read(sysfs.resolve("class/net").resolve(name).resolve("type")));
    }

    /** The virtual functions of a network interface's adapter, in the adapter's order. */
    public List<String> functions(String name) {
        List<String> found = new ArrayList<>();
        if (hasInterface(name)) {
            Path adapter = sysfs.resolve("class/net").resolve(name).resolve("device");
            for (int index = 0;; index++) {
                Optional<String> function = target(adapter.resolve("virtfn" + index));
                if (function.isEmpty()) {
                    return found;
                }
                found.add(function.get());
            }
        }
        return found;
    }

    /** Whether the host has a device with this PCI address. */
    public boolean hasDevice(String address) {
        return ADDRESS.matcher(address).matches() && Files.isDirectory(device(address));
    }

    /** Whether a driver holds a device that lends it to a domain. */
    public boolean isLent(String address) {
        return target(device(address).resolve("driver")).filter(LENDING_DRIVERS::contains).isPresent();
    }

    /**
     * Gives an InfiniBand function a domain's GUIDs, and lets its link follow the adapter's. The function's next driver
     * sees them.
     *
     * @throws IOException a sentence.
     */
    public void assign(String function, UUID domain) throws IOException {
        write(function, FabricAddress.nodeGuid(domain), FabricAddress.portGuid(domain), "Follow");
    }

    /**
     * Takes a domain's GUIDs from an InfiniBand function.
     *
     * @throws IOException a sentence.
     */
    public void free(String function) throws IOException {
        Path adapter = adapter(function);
        int index = index(adapter, function);
        String unique = adapterGuid(adapter);
        write(function, FabricAddress.freeGuid(unique, index, 0), FabricAddress.freeGuid(unique, index, 1), "Down");
    }

    private void write(String function, String node, String port, String policy) throws IOException {
        Path adapter = adapter(function);
        Path folder = adapter.resolve("sriov").resolve(Integer.toString(index(adapter, function)));
        if (!Files.isDirectory(folder)) {
            throw new IOException("the adapter of " + function + " takes no GUIDs for its functions: its driver has no"
                + " folder " + folder);
        }
        write(folder.resolve("node"), node);
        write(folder.resolve("port"), port);
        write(folder.resolve("policy"), policy);
    }

    private static void write(Path file, String text) throws IOException {
        // One write: the kernel parses each write by itself. No file is created, because sysfs has all files.
        try (WritableByteChannel channel = Files.newByteChannel(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap((text + "\n").getBytes(StandardCharsets.US_ASCII)));
        } catch (IOException e) {
            throw new IOException(file + " cannot be set to " + text + ": " + e.getMessage()
                + " (hawserd.service needs ReadWritePaths=/sys/devices for InfiniBand)", e);
        }
    }

    /** The folder of the adapter that a function belongs to. */
    private Path adapter(String function) throws IOException {
        Optional<String> address = hasDevice(function) ? target(device(function).resolve("physfn")) : Optional.empty();
        if (address.isEmpty()) {
            throw new IOException("the host has no virtual function " + function + ": prepare the adapter's functions"
                + " (sriov_numvfs)");
        }
        return device(address.get());
    }

    private static int index(Path adapter, String function) throws IOException {
        for (int index = 0;; index++) {
            Optional<String> found = target(adapter.resolve("virtfn" + index));
            if (found.isEmpty()) {
                throw new IOException("the adapter does not list its virtual function " + function);
            }
            if (found.get().equals(function)) {
                return index;
            }
        }
    }

    /** The GUID of an adapter, which its maker has chosen. */
    private static String adapterGuid(Path adapter) throws IOException {
        try (DirectoryStream<Path> devices = Files.newDirectoryStream(adapter.resolve("infiniband"))) {
            for (Path device : devices) {
                String guid = read(device.resolve("node_guid"));
                if (!guid.isEmpty()) {
                    return guid;
                }
            }
        }
        throw new IOException("the adapter has no InfiniBand device: " + adapter);
    }

    private Path device(String address) {
        return sysfs.resolve("bus/pci/devices").resolve(address);
    }

    /** The last name of a link's target; empty if there is no link. */
    private static Optional<String> target(Path link) {
        try {
            return Optional.of(Files.readSymbolicLink(link).getFileName().toString());
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    /** The text of a file; empty if it cannot be read. */
    private static String read(Path file) {
        try {
            return Files.readString(file, StandardCharsets.US_ASCII).strip();
        } catch (IOException e) {
            return "";
        }
    }
}
