package io.hawser.hypervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.client.ClientException;
import io.hawser.client.Item;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.FunctionXml;
import io.hawser.hypervisor.domain.NetworkView;
import io.hawser.hypervisor.domain.Xml;
import io.hawser.hypervisor.files.GuestFiles;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.FabricAddress;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** vGPUs by RDMA: hawserd with its socket and a real broker; libvirt and the adapters are simulated. */
class FabricIT {
    private static final int INFINIBAND = 0x5e;

    @TempDir
    static Path folder;
    private static RealBroker broker;

    private Bench bench;

    @BeforeAll
    static void startBroker() throws Exception {
        broker = new RealBroker(Files.createDirectory(folder.resolve("broker")));
    }

    @AfterAll
    static void endBroker() throws Exception {
        broker.close();
    }

    @BeforeEach
    void begin() throws Exception {
        bench = new Bench(folder, broker, UUID.randomUUID().toString());
        bench.sysfs.addEthernet("ens1", 0x3b, 1);
        bench.sysfs.addInfiniband("ib0", INFINIBAND, 1);
        for (String[] network : new String[][] {{"roce", "ens1"}, {"ib", "ib0"}}) {
            bench.hypervisor.networks.put(network[0], new NetworkView(true, "<network><name>" + network[0]
                + "</name><forward mode='hostdev' managed='yes'><pf dev='" + network[1] + "'/></forward></network>"));
        }
    }

    @AfterEach
    void end() throws Exception {
        for (FakeHypervisor.Machine machine : bench.hypervisor.machines.values()) {
            bench.stop(machine);
        }
        bench.await(bench::problem);
        bench.close();
    }

    private static Item vgpu(String name) {
        return broker.ask(c -> Item.of(c.get("/api/v1/vgpus/" + name)));
    }

    private Object attach(String domain, Map<String, String> vgpu, String scope) throws Exception {
        return bench.client().post("/v1/domains/" + domain + "/attach", Map.of("vgpu", vgpu, "timeoutS", 30, scope,
            true), stage -> {});
    }

    private void detach(String domain, String scope) throws Exception {
        bench.client().post("/v1/domains/" + domain + "/detach", Map.of("force", false, "timeoutS", 30, scope, true),
            stage -> {});
    }

    private static boolean hasFunction(String xml) throws Exception {
        return new FunctionXml(DomainXml.parse(xml)).element("").isPresent() || xml.contains("<hostdev");
    }

    @Test
    void shouldGiveADefinitionAFunctionWithItsVgpu() throws Exception {
        for (String network : List.of("roce", "ib")) {
            for (Driver driver : Driver.values()) {
                String name = network + "-" + driver.name().toLowerCase(java.util.Locale.ROOT);
                FakeHypervisor.Machine machine = bench.define(name, driver, "", 0);
                attach(name, Map.of("transport", "rdma", "network", network), "config");
                assertTrue(hasFunction(machine.inactive), machine.inactive);
                assertNull(bench.start(machine));
                bench.await(bench::problem);
                assertTrue(bench.hasState(machine, VgpuStatus.State.READY));
                assertEquals("true", vgpu(name).text("rdma"));
                assertEquals("tcp", vgpu(name).text("carriers"));
                if (driver == Driver.XEN) {
                    assertEquals("rdma", bench.xenStore.get(machine.id).carrier());
                }
                String guid = FabricAddress.portGuid(machine.uuid);
                assertEquals(network.equals("ib"), guid.equals(bench.sysfs.read(INFINIBAND, 0, "port")));
                bench.stop(machine);
                assertNotEquals(guid, bench.sysfs.read(INFINIBAND, 0, "port"));
                detach(name, "config");
                assertFalse(hasFunction(machine.inactive), machine.inactive);
                assertFalse(machine.inactive.contains("fwcfg"));
            }
        }
    }

    @Test
    void shouldPlugAFunctionIntoARunningDomain() throws Exception {
        for (String network : List.of("roce", "ib")) {
            FakeHypervisor.Machine machine = bench.define("live-" + network, Driver.QEMU, "", 0);
            assertNull(bench.start(machine));
            Item answer = Item.of(attach(machine.name, Map.of("transport", "rdma", "network", network), "live"));
            assertEquals("rdma", answer.text("transport"));
            assertEquals(network.equals("ib") ? FabricAddress.portGuid(machine.uuid) : FabricAddress.mac(
                machine.uuid), answer.text("fabricAddress"));
            assertTrue(hasFunction(machine.live), machine.live);
            assertEquals("true", vgpu(machine.name).text("rdma"));
            bench.await(bench::problem);
            // The second domain gets none, and nothing of it stays at the broker.
            FakeHypervisor.Machine other = bench.define("late-" + network, Driver.QEMU, "", 0);
            assertNull(bench.start(other));
            if (network.equals("ib")) {
                assertTrue(assertThrows(ClientException.class, () -> attach(other.name, Map.of("transport", "rdma",
                    "network", network), "live")).getMessage().contains("no virtual function of network ib is free"));
                assertFalse(hasFunction(other.live), other.live);
            }
            detach(machine.name, "live");
            assertFalse(hasFunction(machine.live), machine.live);
            bench.await(bench::problem);
            bench.stop(machine);
            bench.stop(other);
        }
    }

    @Test
    void shouldFollowMetadataThatVirshChanges() throws Exception {
        FakeHypervisor.Machine machine = bench.define("virsh", Driver.QEMU, "", 0);
        assertNull(bench.start(machine));
        bench.hypervisor.virshMetadata(machine, "<vgpu transport='rdma' network='roce'/>");
        bench.await(() -> bench.hasState(machine, VgpuStatus.State.READY) ? bench.problem() : "not ready: "
            + bench.status(machine));
        assertTrue(hasFunction(machine.live), machine.live);
        // A vGPU without a network leaves the function to the administrator, and changes the broker's vGPU.
        bench.hypervisor.virshMetadata(machine, null);
        bench.await(() -> hasFunction(machine.live) ? "it still has the function" : bench.problem());
        bench.hypervisor.virshMetadata(machine, "<vgpu transport='tcp'/>");
        bench.await(() -> bench.hasState(machine, VgpuStatus.State.READY) ? bench.problem() : "not ready");
        assertEquals("false", vgpu("virsh").text("rdma"));
        bench.hypervisor.virshMetadata(machine, "<vgpu transport='rdma'/>");
        bench.await(() -> vgpu("virsh").text("rdma").equals("true") ? bench.problem() : "no RDMA yet");
        assertFalse(hasFunction(machine.live), machine.live);
        assertEquals(Optional.of("rdma"), new GuestFiles(folder.resolve("hypervisor-" + bench.hypervisor.host).resolve(
            "guests")).read(machine.uuid).map(settings -> settings.carrier()));
    }

    @Test
    void shouldRefuseAStartWithoutTheFunction() throws Exception {
        FakeHypervisor.Machine machine = bench.define("bare", Driver.QEMU, "transport='rdma' network='roce'", 0);
        assertTrue(bench.start(machine).contains("there is no interface with the address " + FabricAddress.mac(
            machine.uuid)));
        FakeHypervisor.Machine gone = bench.define("gone", Driver.XEN, "", 0);
        Wish wish = Wish.of(Map.of("transport", "rdma", "network", "ib", "function", "0000:5e:00.7"), Driver.XEN);
        DomainXml xml = DomainXml.parse(gone.inactive);
        xml.setWish(wish);
        new FunctionXml(xml).set(wish, Driver.XEN, "");
        gone.inactive = xml.write();
        assertTrue(bench.start(gone).contains("the host has no virtual function 0000:5e:00.7"));
        assertTrue(assertThrows(ClientException.class, () -> attach("bare", Map.of("transport", "rdma", "network",
            "default"), "config")).getMessage().contains("libvirt has no network default"));
        assertTrue(gone.inactive.contains(Xml.vgpu("").substring(0, 12)));
    }
}
