package io.hawser.hypervisor.files;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.hypervisor.AdapterTree;
import io.hawser.hypervisor.model.FabricAddress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AdapterFilesTest {
    private static final UUID DOMAIN = UUID.fromString("360a25bd-9eb9-4286-ac80-54e49f81aee9");

    @TempDir
    Path folder;
    private AdapterTree tree;
    private AdapterFiles adapters;

    @BeforeEach
    void makeAdapters() throws IOException {
        tree = new AdapterTree(folder);
        tree.addEthernet("ens1", 0x3b, 3);
        tree.addInfiniband("ib0", 0x5e, 2);
        adapters = new AdapterFiles(folder);
    }

    @Test
    void shouldFindTheFunctionsOfAnAdapter() {
        assertEquals(List.of("0000:3b:00.1", "0000:3b:00.2", "0000:3b:00.3"), adapters.functions("ens1"));
        assertEquals(List.of("0000:5e:00.1", "0000:5e:00.2"), adapters.functions("ib0"));
        assertTrue(adapters.isInfiniband("ib0"));
        assertFalse(adapters.isInfiniband("ens1"));
        assertTrue(adapters.hasDevice("0000:3b:00.3"));
        assertFalse(adapters.hasDevice("0000:3b:00.4"));
    }

    @Test
    void shouldNotFollowNamesOutOfItsFolder() {
        for (String name : List.of("", ".", "..", "../net/ens1", "ens1/", "ens2", "a name", "sixteen-letters!")) {
            assertFalse(adapters.hasInterface(name), name);
            assertEquals(List.of(), adapters.functions(name), name);
        }
        for (String address : List.of("", "..", "../devices/0000:3b:00.1", "0000:3B:00.1", "0000:3b:00.8")) {
            assertFalse(adapters.hasDevice(address), address);
            assertThrows(IOException.class, () -> adapters.assign(address, DOMAIN), address);
        }
    }

    @Test
    void shouldGiveAnInfinibandFunctionItsGuidsAndTakeThemBack() throws IOException {
        adapters.assign("0000:5e:00.2", DOMAIN);
        assertEquals(FabricAddress.nodeGuid(DOMAIN), tree.read(0x5e, 1, "node"));
        assertEquals(FabricAddress.portGuid(DOMAIN), tree.read(0x5e, 1, "port"));
        assertEquals("Follow", tree.read(0x5e, 1, "policy"));
        assertEquals("00:00:00:00:00:00:00:00", tree.read(0x5e, 0, "node"));
        adapters.free("0000:5e:00.2");
        assertNotEquals(FabricAddress.nodeGuid(DOMAIN), tree.read(0x5e, 1, "node"));
        assertNotEquals(tree.read(0x5e, 1, "node"), tree.read(0x5e, 1, "port"));
        assertTrue(tree.read(0x5e, 1, "policy").startsWith("Down"));
    }

    @Test
    void shouldExplainAFunctionThatTakesNoGuids() throws IOException {
        assertTrue(assertThrows(IOException.class, () -> adapters.assign("0000:3b:00.1", DOMAIN)).getMessage()
            .contains("takes no GUIDs"));
        assertTrue(assertThrows(IOException.class, () -> adapters.assign("0000:5e:00.0", DOMAIN)).getMessage()
            .contains("no virtual function 0000:5e:00.0"));
        Files.delete(folder.resolve("bus/pci/devices/0000:5e:00.0/sriov/0/node"));
        assertTrue(assertThrows(IOException.class, () -> adapters.assign("0000:5e:00.1", DOMAIN)).getMessage()
            .contains("cannot be set to " + FabricAddress.nodeGuid(DOMAIN)));
        assertFalse(Files.exists(folder.resolve("bus/pci/devices/0000:5e:00.0/sriov/0/node")), "nothing is created");
    }

    @Test
    void shouldKnowWhichFunctionsAreLent() throws IOException {
        tree.bind("0000:5e:00.1", "vfio-pci");
        tree.bind("0000:5e:00.2", "mlx5_core");
        assertTrue(adapters.isLent("0000:5e:00.1"));
        assertFalse(adapters.isLent("0000:5e:00.2"));
        assertFalse(adapters.isLent("0000:3b:00.1"), "without a driver");
    }
}
