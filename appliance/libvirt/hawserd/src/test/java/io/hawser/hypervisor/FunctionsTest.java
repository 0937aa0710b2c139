package io.hawser.hypervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.FunctionXml;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.NetworkView;
import io.hawser.hypervisor.domain.Xml;
import io.hawser.hypervisor.files.AdapterFiles;
import io.hawser.hypervisor.libvirt.LibvirtFunctions;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.FabricAddress;
import io.hawser.hypervisor.model.Wish;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Virtual functions of a made /sys, for domains of a simulated libvirt. */
class FunctionsTest {
    private static final Duration SHORT = Duration.ofMillis(300);
    private static final int ROCE = 0x3b;
    private static final int INFINIBAND = 0x5e;

    @TempDir
    Path folder;
    private final FakeHypervisor libvirt = new FakeHypervisor(UUID.randomUUID().toString());
    private Hypervisor connection;
    private AdapterTree tree;
    private LibvirtFunctions functions;

    @BeforeEach
    void begin() throws Exception {
        tree = new AdapterTree(folder);
        tree.addEthernet("ens1", ROCE, 2);
        tree.addInfiniband("ib0", INFINIBAND, 2);
        tree.addEthernet("ens9", 0x70, 0);
        network("roce", true, "<forward mode='hostdev' managed='yes'><pf dev='ens1'/></forward>");
        network("ib", false, "<forward mode='hostdev' managed='yes'><pf dev='ib0'/></forward>");
        network("bare", true, "<forward mode='hostdev' managed='yes'><pf dev='ens9'/></forward>");
        network("gone", true, "<forward mode='hostdev' managed='yes'><pf dev='ens7'/></forward>");
        network("nat", true, "<forward/>");
        connection = libvirt.connect();
        functions = new LibvirtFunctions(connection, new AdapterFiles(folder));
    }

    private void network(String name, boolean active, String forward) {
        libvirt.networks.put(name, new NetworkView(active, "<network><name>" + name + "</name>" + forward
            + "</network>"));
    }

    private FakeHypervisor.Machine machine(String name, Driver driver, boolean running, String devices) {
        UUID uuid = UUID.randomUUID();
        String xml = Xml.domain(uuid, name, "", devices).replace(" id='7'", "").replace("pc-q35-7.2",
            "pc-i440fx-7.2");
        FakeHypervisor.Machine machine = libvirt.define(uuid, name, driver, xml);
        if (running) {
            assertEquals(null, libvirt.start(machine, (operation, suboperation, text) -> null));
        }
        return machine;
    }

    private DomainView view(FakeHypervisor.Machine machine) {
        return connection.domain(machine.uuid.toString()).orElseThrow();
    }

    private static Wish wish(String network) throws Exception {
        return Wish.of(Map.of("transport", "rdma", "network", network), Driver.QEMU);
    }

    private static String hostdev(String function, String kind) {
        return "<" + kind + (kind.equals("interface") ? " type='hostdev'" : " mode='subsystem' type='pci'")
            + "><source><address type='pci' domain='0x0000' bus='0x" + function.substring(5, 7)
            + "' slot='0x00' function='0x" + function.substring(11) + "'/></source></" + kind + ">";
    }

    private String refusedChoice(FakeHypervisor.Machine machine, String network) {
        return assertThrows(HypervisorException.class, () -> functions.choose(view(machine), wish(network)))
            .getMessage();
    }

    @Test
    void shouldRefuseANetworkThatSuppliesNoFunctions() throws Exception {
        FakeHypervisor.Machine machine = machine("a", Driver.QEMU, true, "");
        assertTrue(refusedChoice(machine, "missing").contains("libvirt has no network missing"));
        assertTrue(refusedChoice(machine, "nat").contains("must be hostdev: mode=nat"));
        assertTrue(refusedChoice(machine, "gone").contains("does not have: ens7"));
        assertTrue(functions.refusal(view(machine), wish("bare")).orElse("").contains("sriov_numvfs"));
        assertTrue(functions.refusal(view(machine), wish("ib")).orElse("").contains("must name a function"));
        libvirt.networks.computeIfPresent("roce", (name, known) -> new NetworkView(false, known.xml()));
        assertTrue(functions.refusal(view(machine), wish("roce")).orElse("").contains("virsh net-start roce"));
    }

    @Test
    void shouldRefuseWhenNoRoceFunctionIsFree() throws Exception {
        FakeHypervisor.Machine machine = machine("a", Driver.QEMU, true, "");
        machine("one", Driver.QEMU, true, hostdev(AdapterTree.address(ROCE, 1), "interface"));
        assertEquals("", functions.refusal(view(machine), functions.choose(view(machine), wish("roce"))).orElse(""));
        FakeHypervisor.Machine two = machine("two", Driver.XEN, true, hostdev(AdapterTree.address(ROCE, 2),
            "hostdev"));
        assertEquals("no virtual function of network roce is free: 2 exist, of the domains one, two",
            functions.refusal(view(machine), wish("roce")).orElse(""));
        libvirt.stop(two, (operation, suboperation, text) -> null);
        two.inactive = two.inactive.replaceAll("<hostdev.*</hostdev>", "");
        assertEquals("", functions.refusal(view(machine), wish("roce")).orElse(""));
    }

    @Test
    void shouldChooseDifferentInfinibandFunctions() throws Exception {
        FakeHypervisor.Machine first = machine("a", Driver.QEMU, false, "");
        FakeHypervisor.Machine second = machine("b", Driver.XEN, false, "");
        FakeHypervisor.Machine third = machine("c", Driver.QEMU, false, "");
        Wish chosen = functions.choose(view(first), wish("ib"));
        assertEquals(AdapterTree.address(INFINIBAND, 1), chosen.function());
        assertEquals(chosen, functions.choose(view(first), wish("ib")), "again");
        assertEquals(AdapterTree.address(INFINIBAND, 2), functions.choose(view(second), wish("ib")).function());
        assertTrue(refusedChoice(third, "ib").contains("no virtual function of network ib is free: 2 exist"));
        first.inactive = functions.defined(first.inactive, Driver.QEMU, chosen, "");
        assertTrue(refusedChoice(third, "ib").endsWith("of the domains a"));
        // A new hawserd has no reservations, and knows what the definitions name.
        functions = new LibvirtFunctions(connection, new AdapterFiles(folder));
        assertEquals(AdapterTree.address(INFINIBAND, 2), functions.choose(view(third), wish("ib")).function());
        assertEquals(chosen, functions.choose(view(first), wish("ib")));
    }

    @Test
    void shouldNotChooseAFunctionThatAnotherProgramHasLent() throws Exception {
        tree.bind(AdapterTree.address(INFINIBAND, 1), "vfio-pci");
        FakeHypervisor.Machine machine = machine("a", Driver.QEMU, true, "");
        assertEquals(AdapterTree.address(INFINIBAND, 2), functions.choose(view(machine), wish("ib")).function());
    }

    @Test
    void shouldPlugAndUnplugFunctions() throws Exception {
        for (Driver driver : Driver.values()) {
            for (String network : List.of("roce", "ib")) {
                FakeHypervisor.Machine machine = machine("a", driver, true, "");
                String before = machine.live;
                Wish wish = functions.choose(view(machine), wish(network));
                List<String> stages = new ArrayList<>();
                int index = wish.function().isEmpty() ? 0 : wish.function().charAt(11) - '1';
                functions.plug(machine.uuid, wish, SHORT, stages::add);
                assertTrue(new FunctionXml(DomainXml.parse(machine.live)).has(wish));
                if (network.equals("ib")) {
                    assertEquals(FabricAddress.portGuid(machine.uuid), tree.read(INFINIBAND, index, "port"));
                }
                assertEquals("", functions.refusal(view(machine), wish).orElse(""));
                machine.live = FakeHypervisor.withMetadata(machine.live, Wish.NAMESPACE, Wish.PREFIX,
                    DomainXml.element("vgpu", wish.attributes()));
                functions.unplug(machine.uuid, SHORT, stages::add);
                assertFalse(machine.live.contains("<hostdev") || machine.live.contains("<interface"));
                assertFalse(tree.read(INFINIBAND, index, "port").equals(FabricAddress.portGuid(machine.uuid)));
                assertEquals(before.contains("<hostdev"), machine.live.contains("<hostdev"));
                functions.unplug(machine.uuid, SHORT, stages::add);
                libvirt.machines.remove(machine.uuid);
            }
        }
    }

    @Test
    void shouldTakeAFunctionBackThatTheGuestDoesNotFind() throws Exception {
        FakeHypervisor.Machine machine = machine("a", Driver.QEMU, true, "");
        machine.guestWorks = false;
        Wish wish = functions.choose(view(machine), wish("ib"));
        HypervisorException late = assertThrows(HypervisorException.class,
            () -> functions.plug(machine.uuid, wish, SHORT, stage -> machine.guestWorks |= stage.contains("again")));
        assertEquals(HypervisorException.Reason.TIMEOUT, late.reason());
        assertTrue(late.getMessage().endsWith("it has been removed again"), late.getMessage());
        assertFalse(machine.live.contains("<hostdev"));
        assertFalse(tree.read(INFINIBAND, 0, "port").equals(FabricAddress.portGuid(machine.uuid)));
    }
}
