package io.hawser.hypervisor;

import io.hawser.client.ClientException;
import io.hawser.client.DaemonClient;
import io.hawser.client.Item;
import io.hawser.hypervisor.broker.Claim;
import io.hawser.hypervisor.config.HawserdConfig;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.XenGuestSettings;
import io.hawser.hypervisor.domain.Xml;
import io.hawser.hypervisor.files.AdapterFiles;
import io.hawser.hypervisor.files.GuestFiles;
import io.hawser.hypervisor.libvirt.LibvirtFunctions;
import io.hawser.hypervisor.libvirt.LibvirtHotPlug;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.GuestSettings;
import io.hawser.hypervisor.model.Shmem;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import io.hawser.hypervisor.reconcile.Reconciler;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A host: hawserd with its socket, a hypervisor in memory, and a real broker. */
final class Bench implements AutoCloseable {
    static final long LIMIT_S = 600;
    /** A busy machine may delay a hook's answer beyond libvirt's limit. */
    private static final String PATIENT = "hook.timeout = \"300\"";
    private static final Reconciler.Patience SHORT = new Reconciler.Patience(Duration.ofMillis(300),
        Duration.ofMillis(300), Duration.ofSeconds(2), Duration.ofHours(1)); // no test may depend on the periodic pass

    final FakeHypervisor hypervisor;
    final RealBroker broker;
    final Path regions;
    final Path socket;
    final AdapterTree sysfs;
    final Map<Integer, GuestSettings> xenStore = new ConcurrentHashMap<>();
    private final Path config;
    private final Path state;
    private Daemon daemon;

    /** Keeps everything in a folder; region files are in a folder of their own in /dev/shm. */
    Bench(Path folder, RealBroker broker, String host) throws IOException {
        this(folder, broker, host, PATIENT);
    }

    /** The same with additional settings. */
    Bench(Path folder, RealBroker broker, String host, String settings) throws IOException {
        this.broker = broker;
        hypervisor = new FakeHypervisor(host);
        regions = Files.createTempDirectory(Path.of("/dev/shm"), "hawserd-test-");
        sysfs = new AdapterTree(Files.createTempDirectory(folder, "sys"));
        state = folder.resolve("hypervisor-" + host);
        socket = folder.resolve("s-" + host.substring(0, 8));
        config = Files.writeString(folder.resolve("hawserd-" + host + ".conf"), """
            broker.state-dir = "%s"
            guest.broker = "10.1.2.3:7654"
            region.folder = "%s"
            socket.path = "%s"
            state-dir = "%s"
            %s
            """.formatted(broker.stateDir(), regions, socket, state, settings));
        start();
    }

    void start() throws IOException {
        Hypervisor connection = hypervisor.connect();
        daemon = new Daemon(HawserdConfig.read(config, true), new Daemon.Parts(connection,
            new LibvirtHotPlug(connection), new LibvirtFunctions(connection, new AdapterFiles(sysfs.root())),
            new XenGuestSettings() {
                @Override
                public void put(int domainId, GuestSettings settings) {
                    xenStore.put(domainId, settings);
                }

                @Override
                public void remove(int domainId) {
                    xenStore.remove(domainId);
                }
            }), SHORT);
    }

    /** Stops hawserd; as after kill -9, its memory is lost. */
    void stop() {
        daemon.close();
    }

    DaemonClient client() {
        return new DaemonClient(socket);
    }

    /** libvirt's hook, through the socket; returns null if hawserd allows the operation or does not answer. */
    FakeHypervisor.Hook hook(String driver) {
        return (operation, suboperation, xml) -> {
            try {
                new UnixHttp(socket).post("/v1/hooks/" + driver + "/" + operation + "/" + suboperation, xml);
                return null;
            } catch (ClientException | IOException e) {
                return operation.equals("prepare") ? e.getMessage() : null;
            }
        };
    }

    FakeHypervisor.Machine define(String name, Driver driver, String metadata, long deviceMebibytes) {
        UUID uuid = UUID.randomUUID();
        String xml = Xml.domain(uuid, name, metadata.isEmpty() ? "" : Xml.vgpu(metadata),
            deviceMebibytes == 0 ? "" : Xml.shmem(uuid, deviceMebibytes)).replace(" id='7'", "")
            .replace("pc-q35-7.2", "pc-i440fx-7.2");
        return hypervisor.define(uuid, name, driver, xml);
    }

    String start(FakeHypervisor.Machine machine) {
        return hypervisor.start(machine, hook(machine.driver == Driver.XEN ? "libxl" : "qemu"));
    }

    void stop(FakeHypervisor.Machine machine) {
        hypervisor.stop(machine, hook(machine.driver == Driver.XEN ? "libxl" : "qemu"));
    }

    VgpuStatus status(FakeHypervisor.Machine machine) {
        try {
            String live = machine.live;
            return live == null ? null : DomainXml.parse(live).status().orElse(null);
        } catch (WishException e) {
            throw new AssertionError(e);
        }
    }

    /** Whether a running domain's metadata shows its vGPU in that state. */
    boolean hasState(FakeHypervisor.Machine machine, VgpuStatus.State state) {
        VgpuStatus status = status(machine);
        return status != null && status.state() == state;
    }

    /** Runs one pass in the caller's thread. */
    void runPass() {
        daemon.reconciler().reconcile();
    }

    /** Runs one pass after all events so far have been delivered. */
    void runPassAfterEvents() throws Exception {
        hypervisor.awaitEvents();
        runPass();
    }

    /** Waits until there is no problem. */
    void await(java.util.concurrent.Callable<String> problem) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        String seen = problem.call();
        while (!seen.isEmpty()) {
            if (System.nanoTime() - end > 0) {
                throw new AssertionError(seen);
            }
            daemon.reconciler().request();
            TimeUnit.MILLISECONDS.sleep(20);
            seen = problem.call();
        }
    }

    /**
     * The first difference between the running domains' wishes and the actual state; empty if there is none. Includes
     * leftovers at the broker and on disk.
     */
    String problem() throws Exception {
        List<Item> vgpus = broker.ask(c -> Item.list(c.get("/api/v1/vgpus")));
        List<Item> served = broker.ask(c -> Item.list(c.get("/api/v1/regions")));
        Map<UUID, Item> ours = new HashMap<>();
        for (Item vgpu : vgpus) {
            Claim.Owner owner = Claim.Owner.parse(vgpu.item("owner").text("kind"), vgpu.item("owner").text("id"))
                .orElse(null);
            if (owner != null && owner.host().equals(hypervisor.host)) {
                if (ours.put(owner.domain(), vgpu) != null) {
                    return "two vGPUs of one domain: " + owner.domain();
                }
            }
        }
        Set<UUID> shm = new HashSet<>();
        Set<UUID> tcp = new HashSet<>();
        Set<UUID> named = new HashSet<>();
        for (FakeHypervisor.Machine machine : hypervisor.machines.values()) {
            String problem = problem(machine, ours.get(machine.uuid), shm, tcp, named);
            if (!problem.isEmpty()) {
                return machine.name + " " + machine.uuid + ": " + problem;
            }
        }
        Set<UUID> all = new HashSet<>(shm);
        all.addAll(tcp);
        if (!all.equals(ours.keySet())) {
            return "vGPUs of " + ours.keySet() + ", wanted for " + all;
        }
        Set<String> regionNames = new TreeSet<>();
        for (Item region : served) {
            regionNames.add(region.text("name"));
            UUID of = UUID.fromString(region.text("name").substring(Shmem.PREFIX.length()));
            if (!ours.containsKey(of) || !ours.get(of).text("name").equals(region.text("vgpu"))
                || !region.text("path").equals(regions.resolve(region.text("name")).toString())
                || !region.text("state").equals("serving")) {
                return "a region that opens another's vGPU, or none: " + region;
            }
        }
        Set<String> wanted = new TreeSet<>();
        shm.forEach(uuid -> wanted.add(Shmem.PREFIX + uuid));
        Set<String> files = names(regions);
        Set<String> filesWanted = new TreeSet<>(wanted);
        named.forEach(uuid -> filesWanted.add(Shmem.PREFIX + uuid));
        Set<String> settings = new TreeSet<>();
        tcp.forEach(uuid -> settings.add(uuid + ".toml"));
        return !wanted.equals(regionNames) ? "regions " + regionNames + ", wanted " + wanted
            : !files.containsAll(wanted) || !filesWanted.containsAll(files) ? "files " + files + ", wanted "
                + filesWanted
            : !settings.equals(names(state.resolve("guests"))) ? "settings "
                + names(state.resolve("guests")) + ", wanted " + settings
            : "";
    }

    private String problem(FakeHypervisor.Machine machine, Item vgpu, Set<UUID> shm, Set<UUID> tcp, Set<UUID> named)
        throws Exception {
        String live = machine.live;
        if (live == null) {
            return vgpu == null ? "" : "it is off and has the vGPU " + vgpu.text("name");
        }
        DomainXml xml = DomainXml.parse(live);
        VgpuStatus status = xml.status().orElse(null);
        if (xml.device().isPresent()) {
            named.add(machine.uuid);
        }
        Wish wish = xml.wish(machine.driver).orElse(null);
        if (wish == null) {
            return vgpu != null ? "it wants none and has " + vgpu.text("name") : status != null
                ? "it wants none and says " + status : "";
        }
        if (status == null || status.state() == VgpuStatus.State.WAITING) {
            return "it is not settled: " + status;
        }
        if (status.state() != VgpuStatus.State.READY) {
            return status.reason().isEmpty() ? "without a reason: " + status : vgpu != null ? "it is "
                + status.state() + " and has " + vgpu.text("name") : "";
        }
        (wish.transport() == Wish.Transport.SHM ? shm : tcp).add(machine.uuid);
        if (vgpu == null) {
            return "it is ready and has none";
        }
        GuestSettings settings = new GuestFiles(state.resolve("guests")).read(machine.uuid).orElse(null);
        boolean tokens = wish.transport() != Wish.Transport.SHM && (settings == null
            || !settings.carrier().equals(wish.transport().label()) || broker.ask(c -> Item.list(
                c.get("/api/v1/vgpus/" + vgpu.text("name") + "/tokens"))).stream()
                .noneMatch(t -> settings.token().startsWith(t.text("keyId") + ".")));
        return !vgpu.text("name").equals(status.vgpu()) ? "it says " + status.vgpu() + " and has " + vgpu.text("name")
            : vgpu.number("memoryBytes") != wish.memoryBytes() || vgpu.number("computeShare") != wish.share()
                || vgpu.number("maxSessions") != wish.sessions() ? "it has another vGPU than it wants: " + vgpu
            : tokens ? "its settings open nothing" : "";
    }

    private static Set<String> names(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return new TreeSet<>(files.map(f -> f.getFileName().toString()).toList());
        }
    }

    @Override
    public void close() throws IOException {
        daemon.close();
        List<Path> all;
        try (Stream<Path> walk = Files.walk(regions)) {
            all = new ArrayList<>(walk.sorted(Comparator.reverseOrder()).toList());
        }
        for (Path path : all) {
            Files.delete(path);
        }
    }
}
