package io.hawser.hypervisor;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A folder like /sys with network adapters and their virtual functions. */
public final class AdapterTree {
    private static final String ETHERNET = "1";
    private static final String INFINIBAND = "32";

    private final Path root;

    /** Makes an empty tree. */
    public AdapterTree(Path root) {
        this.root = root;
    }

    /** The folder to use instead of /sys. */
    public Path root() {
        return root;
    }

    /** Adds an Ethernet adapter at 0000:{@code bus}:00.0 with functions at .1, .2 and so on, 7 at most. */
    public void addEthernet(String name, int bus, int functions) throws IOException {
        add(name, bus, functions, ETHERNET);
    }

    /** The same for InfiniBand, with files for the functions' GUIDs. */
    public void addInfiniband(String name, int bus, int functions) throws IOException {
        Path adapter = add(name, bus, functions, INFINIBAND);
        Path device = Files.createDirectories(adapter.resolve("infiniband/mlx5_" + bus));
        Files.writeString(device.resolve("node_guid"), "b8ce:f603:00e4:%04x\n".formatted(bus));
        for (int i = 0; i < functions; i++) {
            Path folder = Files.createDirectories(adapter.resolve("sriov/" + i));
            for (String file : new String[] {"node", "port"}) {
                Files.writeString(folder.resolve(file), "00:00:00:00:00:00:00:00\n");
            }
            Files.writeString(folder.resolve("policy"), "Down\n");
        }
    }

    private Path add(String name, int bus, int functions, String type) throws IOException {
        Path devices = Files.createDirectories(root.resolve("bus/pci/devices"));
        Path adapter = Files.createDirectory(devices.resolve(address(bus, 0)));
        Path netdev = Files.createDirectories(root.resolve("class/net").resolve(name));
        Files.writeString(netdev.resolve("type"), type + "\n");
        Files.createSymbolicLink(netdev.resolve("device"), adapter);
        for (int i = 0; i < functions; i++) {
            Path function = Files.createDirectory(devices.resolve(address(bus, i + 1)));
            Files.createSymbolicLink(adapter.resolve("virtfn" + i), Path.of("..").resolve(function.getFileName()));
            Files.createSymbolicLink(function.resolve("physfn"), Path.of("..").resolve(adapter.getFileName()));
        }
        return adapter;
    }

    /** Binds a device to a driver. */
    public void bind(String address, String driver) throws IOException {
        Path folder = Files.createDirectories(root.resolve("bus/pci/drivers").resolve(driver));
        Files.createSymbolicLink(root.resolve("bus/pci/devices").resolve(address).resolve("driver"), folder);
    }

    /** A file of an InfiniBand function: node, port or policy. */
    public String read(int bus, int function, String file) throws IOException {
        return Files.readString(root.resolve("bus/pci/devices").resolve(address(bus, 0)).resolve("sriov/" + function)
            .resolve(file)).strip();
    }

    /** The PCI address of a function of a bus. */
    public static String address(int bus, int function) {
        return "0000:%02x:00.%d".formatted(bus, function);
    }
}
