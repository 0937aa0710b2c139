package io.hawser.hypervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.client.ClientException;
import io.hawser.client.Failure;
import io.hawser.client.Item;
import io.hawser.hypervisor.broker.Claim;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.Xml;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.GuestSettings;
import io.hawser.hypervisor.model.Shmem;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.WishException;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** hawserd with its socket and a real broker; only libvirt is simulated in memory. */
class DomainsIT {
    private static final String SHM = "region='4M' sessions='2'";
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

    @Test
    void shouldGiveADomainItsShareAsLongAsItRuns() throws Exception {
        FakeHypervisor.Machine machine = bench.define("boot 1", Driver.QEMU, SHM + " memory='64M' share='30'", 4);
        assertNull(bench.start(machine));
        assertEquals(64L << 20, vgpu("boot-1").number("memoryBytes"));
        assertEquals(machine.uuid + "@" + bench.hypervisor.host, vgpu("boot-1").item("owner").text("id"));
        bench.await(bench::problem);
        assertEquals(VgpuStatus.State.READY, bench.status(machine).state());
        assertEquals(4L << 20, Files.size(bench.regions.resolve("hawser-" + machine.uuid)));
        bench.stop(machine);
        assertEquals("", bench.problem(), "given back when the hook has been answered");
    }

    @Test
    void shouldStartTwoHundredDomainsAtOnce() throws Exception {
        int count = 200;
        List<FakeHypervisor.Machine> machines = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            machines.add(bench.define("auto-" + i, Driver.QEMU, "transport='tcp'", 0));
        }
        try (ExecutorService starters = Executors.newFixedThreadPool(count)) {
            CyclicBarrier together = new CyclicBarrier(count);
            List<Future<String>> starts = new ArrayList<>();
            for (FakeHypervisor.Machine machine : machines) {
                starts.add(starters.submit(() -> {
                    together.await(Bench.LIMIT_S, TimeUnit.SECONDS);
                    return bench.start(machine);
                }));
            }
            for (Future<String> start : starts) {
                assertNull(start.get(Bench.LIMIT_S, TimeUnit.SECONDS));
            }
        }
        bench.await(bench::problem);
    }

    @Test
    void shouldRefuseAStartWithTheReason() throws Exception {
        FakeHypervisor.Machine bad = bench.define("bad", Driver.QEMU, SHM + " share='0'", 4);
        assertTrue(bench.start(bad).contains("share must be 1 to 100: share=0"));
        FakeHypervisor.Machine huge = bench.define("huge", Driver.QEMU, SHM + " memory='4096G'", 4);
        assertTrue(bench.start(huge).contains("memory"), "the broker's reason");
        FakeHypervisor.Machine bare = bench.define("bare", Driver.QEMU, SHM, 0);
        assertTrue(bench.start(bare).contains("there is no device"));
        FakeHypervisor.Machine thief = bench.define("thief", Driver.QEMU, SHM, 4);
        thief.inactive = FakeHypervisor.withDevice(thief.inactive, Xml.shmem(bad.uuid, 4));
        assertTrue(bench.start(thief).contains("only its own region"));
        bench.await(bench::problem);
    }

    @Test
    void shouldNameVgpusWithoutConflicts() throws Exception {
        broker.ask(c -> c.change("POST", "/api/v1/vgpus", Map.of("name", "web")));
        FakeHypervisor.Machine first = bench.define("web", Driver.QEMU, SHM, 4);
        assertNull(bench.start(first));
        bench.await(bench::problem);
        assertEquals("web-" + first.uuid.toString().substring(0, 8), bench.status(first).vgpu());
        FakeHypervisor.Machine named = bench.define("other", Driver.QEMU, SHM + " name='web'", 4);
        assertTrue(bench.start(named).contains("already has a vGPU of the name web"));
        assertEquals("", vgpu("web").item("owner").text("id"));
        broker.ask(c -> c.change("DELETE", "/api/v1/vgpus/web", null));
    }

    @Test
    void shouldGiveGuestsByTcpTheirSettings() throws Exception {
        FakeHypervisor.Machine xen = bench.define("xen", Driver.XEN, "memory='64M'", 0);
        FakeHypervisor.Machine tcp = bench.define("tcp", Driver.QEMU, "transport='tcp'", 0);
        assertNull(bench.start(xen));
        assertNull(bench.start(tcp));
        bench.await(bench::problem);
        GuestSettings settings = bench.xenStore.get(xen.id);
        assertEquals("10.1.2.3:7654", settings.broker());
        String key = settings.token().split("\\.")[0];
        assertEquals(key, broker.ask(c -> Item.list(c.get("/api/v1/vgpus/xen/tokens"))).getFirst().text("keyId"));
        assertFalse(xen.live.contains(settings.token()), "no token in XML");
        assertEquals("rw-------", java.nio.file.attribute.PosixFilePermissions.toString(Files.getPosixFilePermissions(
            folder.resolve("hypervisor-" + bench.hypervisor.host + "/guests/" + tcp.uuid + ".toml"))));
    }

    @Test
    void shouldAttachAndDetachWhileItRuns() throws Exception {
        FakeHypervisor.Machine machine = bench.define("hot", Driver.QEMU, "", 0);
        assertNull(bench.start(machine));
        List<String> progress = new ArrayList<>();
        Map<String, Object> wanted = Map.of("vgpu", Map.of("region", "4M", "sessions", "2", "memory", "32M"));
        String byVirsh = Item.of(bench.client().post("/v1/domains/hot/xml", wanted, p -> {})).text("text");
        assertTrue(byVirsh.indexOf("virsh attach-device hot --live --config") < byVirsh.indexOf("virsh metadata hot"),
            "the metadata comes last, because hawserd plugs the device in as soon as it is set: " + byVirsh);
        assertTrue(byVirsh.contains("virsh attach-device"), byVirsh);
        Item answer = Item.of(bench.client().post("/v1/domains/hot/attach", wanted, progress::add));
        assertEquals("ready", answer.text("status"));
        assertEquals("hot", answer.text("vgpu"));
        assertTrue(progress.stream().anyMatch(p -> p.contains("waiting for the guest")), progress.toString());
        bench.await(bench::problem);
        assertTrue(machine.inactive.contains("<shmem name=\"hawser-" + machine.uuid), machine.inactive);
        assertEquals("hot", Item.list(bench.client().get("/v1/domains")).getFirst().text("domain"));
        assertEquals("off", Item.of(bench.client().post("/v1/domains/hot/detach", Map.of(), p -> {})).text("state")
            .replace("running", "off"));
        // A thread that had already begun may write the status once more.
        bench.await(() -> machine.live.contains("hawser") ? machine.live : bench.problem());
        assertFalse(machine.inactive.contains("hawser"), machine.inactive);
    }

    @Test
    void shouldRemoveARegionsFileSoonAfterItsLastReaderHasGone() throws Exception {
        FakeHypervisor.Machine machine = bench.define("read", Driver.QEMU, "", 0);
        assertNull(bench.start(machine));
        Map<String, Object> wanted = Map.of("vgpu", Map.of("region", "4M", "sessions", "2"));
        bench.client().post("/v1/domains/read/attach", wanted, p -> {});
        Path file = bench.regions.resolve("hawser-" + machine.uuid);
        try (Arena reader = Arena.ofShared(); FileChannel region = FileChannel.open(file)) {
            region.map(FileChannel.MapMode.READ_ONLY, 0, 4096, reader);
            bench.client().post("/v1/domains/read/detach", Map.of(), p -> {});
            bench.runPassAfterEvents(); // no further event requests a pass
            assertTrue(Files.exists(file), "a process maps it");
        }
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Bench.LIMIT_S);
        while (Files.exists(file)) {
            assertTrue(System.nanoTime() - end < 0, "no process maps it any more");
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    @Test
    void shouldUndoAnAttachThatTheGuestDoesNotFind() throws Exception {
        FakeHypervisor.Machine machine = bench.define("deaf", Driver.QEMU, "", 0);
        assertNull(bench.start(machine));
        machine.guestWorks = false;
        ClientException refused = assertThrows(ClientException.class, () -> bench.client().post(
            "/v1/domains/deaf/attach",
            Map.of("vgpu", Map.of("region", "4M", "sessions", "2"), "timeoutS", 1), p -> {}));
        assertTrue(refused.getMessage().contains("has not assigned the device an address within 1 s"),
            refused.getMessage());
        bench.await(() -> machine.live.contains("urn:hawser:vgpu:1") ? "the metadata is still there" : "");
        assertFalse(machine.inactive.contains("hawser"));
        assertTrue(broker.ask(c -> Item.list(c.get("/api/v1/vgpus"))).stream()
            .noneMatch(v -> v.text("name").equals("deaf")));
    }

    @Test
    void shouldFollowVirsh() throws Exception {
        FakeHypervisor.Machine machine = bench.define("virsh", Driver.QEMU, "", 0);
        assertNull(bench.start(machine));
        Path file = bench.regions.resolve("hawser-" + machine.uuid);
        try (Arena qemu = Arena.ofShared(); FileChannel region = FileChannel.open(file, StandardOpenOption.CREATE_NEW,
            StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            region.map(FileChannel.MapMode.READ_WRITE, 0, 4 << 20, qemu); // an unmapped file counts as left over
            bench.hypervisor.virshDevice(machine, Xml.shmem(machine.uuid, 4));
            bench.await(() -> bench.status(machine) == null ? "nothing has come of it" : bench.problem());
        }
        assertEquals(VgpuStatus.State.READY, bench.status(machine).state());
        assertTrue(vgpu("virsh").number("maxSessions") >= 2, "as many as there is room for");
        bench.hypervisor.virshDevice(machine, null);
        bench.await(() -> bench.status(machine) != null ? "it still says " + bench.status(machine) : bench.problem());
        bench.hypervisor.virshMetadata(machine, "<vgpu region='4M' sessions='2'/>");
        bench.await(() -> bench.status(machine) == null ? "nothing yet" : bench.problem());
        assertEquals(VgpuStatus.State.READY, bench.status(machine).state());
        bench.hypervisor.virshMetadata(machine, "<vgpu region='4M' sessions='2' share='7'/>");
        bench.await(() -> vgpu("virsh").number("computeShare") == 7 ? bench.problem() : "the share is not changed");
        String swappable = "<vgpu region='4M' sessions='2' share='7' memory='512' swappable='";
        bench.hypervisor.virshMetadata(machine, swappable + "yes'/>");
        bench.await(() -> vgpu("virsh").text("swappable").equals("true") ? bench.problem() : "it is not swappable");
        bench.hypervisor.virshMetadata(machine, swappable + "no'/>");
        bench.await(() -> vgpu("virsh").text("swappable").equals("false") ? bench.problem() : "it is swappable");
        bench.runPassAfterEvents(); // otherwise the event may come after the unplug, and request the device again
        bench.hypervisor.virshDevice(machine, null);
        bench.await(() -> bench.hasState(machine, VgpuStatus.State.DETACHED) ? bench.problem() : "not yet");
        bench.stop();
        bench.start();
        bench.await(() -> bench.hasState(machine, VgpuStatus.State.DETACHED) ? bench.problem() : "not yet");
        bench.hypervisor.virshMetadata(machine, "<vgpu region='4M' sessions='2'/>");
        bench.await(() -> bench.hasState(machine, VgpuStatus.State.READY) ? bench.problem() : "not yet");
        bench.hypervisor.virshMetadata(machine, null);
        bench.await(() -> machine.live.contains("<shmem") ? "the device is still there" : bench.problem());
    }

    @Test
    void shouldStartDomainsThatDoNotRequireTheirVgpuWithoutABroker() throws Exception {
        FakeHypervisor.Machine must = bench.define("must", Driver.QEMU, SHM, 4);
        FakeHypervisor.Machine may = bench.define("may", Driver.QEMU, SHM + " required='no'", 4);
        FakeHypervisor.Machine runs = bench.define("runs", Driver.QEMU, SHM, 4);
        assertNull(bench.start(runs));
        broker.kill();
        String refused = bench.start(must);
        assertTrue(refused != null && refused.contains("broker"), refused);
        assertNull(bench.start(may));
        bench.stop(runs); // the broker is away, so the vGPU cannot be released yet
        bench.await(() -> bench.hasState(may, VgpuStatus.State.WAITING) ? "" : "it waits: " + bench.status(may));
        broker.start();
        bench.await(bench::problem);
        assertEquals(VgpuStatus.State.READY, bench.status(may).state());
    }

    @Test
    void shouldLendRegionsToTheBrokersDomain() throws Exception {
        try (Bench host = new Bench(folder, broker, UUID.randomUUID().toString(), "broker.domain = \"gpu\"\n"
            + "hook.timeout = \"40\"")) { // hawserd retries for half of it
            FakeHypervisor.Machine tenant = host.define("tenant", Driver.QEMU, SHM, 4);
            assertTrue(host.start(tenant).contains("the broker's domain cannot have the region"));
            FakeHypervisor.Machine gpu = host.define("gpu", Driver.QEMU, "", 0);
            assertNull(host.start(gpu));
            List<Shmem> seen = new ArrayList<>();
            FakeHypervisor.Hook hook = host.hook("qemu");
            // This broker runs on the host and has no such device: its error is the reason, and hawserd releases
            // everything.
            String refused = host.hypervisor.start(tenant, (operation, suboperation, xml) -> {
                String reason = hook.call(operation, suboperation, xml);
                try {
                    seen.addAll(operation.equals("prepare") ? DomainXml.parse(gpu.live).shmems() : List.of());
                } catch (WishException e) {
                    throw new AssertionError(e);
                }
                return reason;
            });
            assertTrue(refused.contains("ivshmem"), refused);
            assertEquals(List.of(new Shmem("hawser-" + tenant.uuid, 4 << 20, "ivshmem-plain",
                "ua-hawser-" + tenant.uuid)), seen);
            assertFalse(gpu.live.contains("shmem"), gpu.live);
            // hawserd also finds and removes a device whose tenant's end it has not seen.
            host.hypervisor.virshDevice(gpu, Xml.shmem(tenant.uuid, 4).replace("ua-hawser", "ua-hawser-"
                + tenant.uuid));
            host.await(() -> gpu.live.contains("<shmem") ? "the region is still there" : host.problem());
            host.stop(gpu);
            host.await(host::problem);
        }
    }

    @Test
    void shouldMigrateWithoutLosingTheShare() throws Exception {
        try (Bench other = new Bench(folder, broker, UUID.randomUUID().toString())) {
            FakeHypervisor.Machine here = bench.define("nomad", Driver.QEMU, "transport='tcp'", 0);
            assertNull(bench.start(here));
            String id = vgpu("nomad").text("id");
            FakeHypervisor.Machine there = other.hypervisor.define(here.uuid, "nomad", Driver.QEMU, here.inactive);
            assertNotEquals(null, other.start(there), "not without a migration");
            assertNull(other.hypervisor.start(there, other.hook("qemu"), "migrate"));
            other.stop(there); // it has failed
            bench.await(() -> vgpu("nomad").item("owner").text("id").endsWith("@" + bench.hypervisor.host)
                ? bench.problem() : "the owner is " + vgpu("nomad").item("owner"));
            other.hook("qemu").call("migrate", "begin", there.inactive);
            other.runPass(); // libvirt takes time between the two; hawserd must remember the migration meanwhile
            assertNull(other.start(there));
            bench.stop(here);
            assertEquals(id, vgpu("nomad").text("id"));
            other.await(() -> vgpu("nomad").item("owner").text("id").endsWith("@" + other.hypervisor.host)
                ? other.problem() : "the owner is " + vgpu("nomad").item("owner"));
            other.stop(there);
            other.await(other::problem);
        }
    }

    @Test
    void shouldFreeAShareThatTwoHostsGiveUpAtOnce() throws Exception {
        try (Bench other = new Bench(folder, broker, UUID.randomUUID().toString());
            ExecutorService hosts = Executors.newFixedThreadPool(2)) {
            for (int round = 0; round < 20; round++) {
                UUID uuid = UUID.randomUUID();
                String name = "nomad-" + round;
                // As in a migration that both hosts lose: the domain crashes right after its arrival.
                String owner = new Claim.Owner(uuid, other.hypervisor.host, bench.hypervisor.host).id();
                broker.ask(c -> c.change("POST", "/api/v1/vgpus", Map.of("name", name, "owner", Map.of("kind", "domain",
                    "id", owner))));
                String xml = Xml.domain(uuid, name, Xml.vgpu("transport='tcp'"), "");
                CyclicBarrier together = new CyclicBarrier(2);
                List<Future<String>> hooks = new ArrayList<>();
                for (Bench host : List.of(bench, other)) {
                    hooks.add(hosts.submit(() -> {
                        together.await(Bench.LIMIT_S, TimeUnit.SECONDS);
                        return host.hook("qemu").call("release", "end", xml);
                    }));
                }
                for (Future<String> hook : hooks) {
                    assertNull(hook.get(Bench.LIMIT_S, TimeUnit.SECONDS));
                }
                // At once: neither host considers the other the owner, and no later pass is needed.
                assertEquals(List.of(), broker.ask(c -> Item.list(c.get("/api/v1/vgpus"))).stream()
                    .filter(v -> v.text("name").equals(name)).map(v -> v.item("owner").text("id")).toList());
            }
        }
    }

    @Test
    void shouldReachTheWantedStateAfterAnyOperations() throws Exception {
        int operations = Integer.getInteger("hawserd.operations", 1000);
        long seed = Long.getLong("hawserd.seed", System.nanoTime());
        System.out.println("DomainsIT: " + operations + " operations, -Dhawserd.seed=" + seed);
        Random random = new Random(seed);
        List<FakeHypervisor.Machine> machines = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            machines.add(i % 3 == 2 ? bench.define("r" + i, i == 5 ? Driver.XEN : Driver.QEMU,
                "transport='tcp' memory='16M'", 0) : bench.define("r" + i, Driver.QEMU, SHM, 4));
        }
        for (int i = 0; i < operations; i++) {
            operation(random, machines.get(random.nextInt(machines.size())));
            if (i % 50 == 49) {
                int at = i;
                bench.await(() -> {
                    String problem = bench.problem();
                    return problem.isEmpty() ? "" : "seed " + seed + " operation " + at + ": " + problem;
                });
            }
        }
    }

    private void operation(Random random, FakeHypervisor.Machine machine) throws Exception {
        boolean tcp = machine.inactive.contains("tcp");
        switch (random.nextInt(100)) {
            case 0 -> {
                bench.stop();
                bench.start();
            }
            case 1 -> {
                bench.hypervisor.away(true);
                bench.hypervisor.stop(machine, null);
                bench.hypervisor.away(false);
            }
            case 2 -> {
                // hawserd is down: it receives neither hooks nor events.
                bench.stop();
                bench.hypervisor.stop(machine, bench.hook("qemu"));
                bench.start();
            }
            case 3 -> {
                if (random.nextInt(8) == 0) {
                    broker.kill();
                    if (random.nextBoolean() && machine.running) {
                        bench.stop(machine);
                    }
                    broker.start();
                }
            }
            case 4, 5, 6, 7 -> bench.hypervisor.publish(l -> {
                l.lifecycle(machine.uuid, machine.name, "stopped");
                l.deviceRemoved(machine.uuid, HotPlug.ALIAS);
                l.connected();
            });
            case 8, 9, 10, 11 -> {
                Map<String, Object> body = Map.of("name", machine.name);
                try {
                    broker.ask(c -> random.nextBoolean() ? c.change("POST", "/api/v1/vgpus", body)
                        : c.change("DELETE", "/api/v1/vgpus/" + machine.name + "?force=true", null));
                } catch (ClientException e) {
                    assertTrue(e.failure() == Failure.REFUSED || e.failure() == Failure.NOT_FOUND, e.getMessage());
                }
            }
            case 12, 13, 14, 15, 16, 17, 18, 19, 20, 21 -> bench.hypervisor.virshMetadata(machine,
                random.nextInt(3) == 0 ? null : tcp ? "<vgpu transport='tcp' share='" + (1 + random.nextInt(100))
                    + "'/>" : "<vgpu region='4M' sessions='2' share='" + (1 + random.nextInt(100)) + "'/>");
            case 22, 23, 24, 25, 26, 27 -> {
                if (!tcp) {
                    bench.hypervisor.virshDevice(machine, null);
                }
            }
            case 28, 29, 30 -> command(machine, "attach", Map.of("vgpu", tcp ? Map.of("transport", "tcp")
                : Map.of("region", "4M", "sessions", "2"), "live", true, "config", false));
            case 31, 32, 33 -> command(machine, "detach", Map.of("live", true, "config", false));
            default -> {
                if (machine.running) {
                    bench.stop(machine);
                } else {
                    bench.start(machine); // refused or not, nothing may be left over
                }
            }
        }
    }

    private void command(FakeHypervisor.Machine machine, String what, Map<String, Object> body) {
        try {
            bench.client().post("/v1/domains/" + machine.name + "/" + what, body, p -> {});
        } catch (ClientException e) {
            // The domain does not run, or another change is in progress.
            assertEquals(Failure.REFUSED, e.failure(), e.getMessage());
        }
    }
}
