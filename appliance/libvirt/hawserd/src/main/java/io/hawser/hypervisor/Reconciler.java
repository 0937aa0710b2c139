package io.hawser.hypervisor;

import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Makes what is (broker, files, devices) what shall be (the live metadata of running domains), by looking at both:
 * events, hooks and commands only ask it to look earlier. One thread looks; what may wait for libvirt or a guest is
 * done by others.
 */
final class Reconciler implements Hypervisor.Listener, AutoCloseable {
    /** Between looks at a file that is kept: as long as it has been kept, within these. */
    private static final Duration KEPT_FIRST = Duration.ofMillis(200);
    private static final Duration KEPT_LONGEST = Duration.ofSeconds(10);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);
    static final Duration PLUG_TIMEOUT = Duration.ofSeconds(30);

    private final Hypervisor hypervisor;
    private final HotPlug hotPlug;
    private final Shares shares;
    private final Provision provision;
    private final RegionFiles files;
    private final GuestFiles guests;
    private final XenGuestSettings xen;
    private final HostFile hostFile;
    private final GpuDomain gpuDomain;
    private final Patience patience;
    private final ExecutorService slow;
    private final Map<UUID, Tenant> tenants = new ConcurrentHashMap<>();
    private final Thread thread = new Thread(this::run, "reconciler");
    private volatile boolean wanted = true;
    private volatile long dueNs; // by System.nanoTime(): when a look comes although nobody asks for one
    private volatile boolean closed;
    private volatile String host = "";
    private String complaint = "";
    private String brokerComplaint = "";

    /**
     * How long things may be between two states before they count as left over.
     *
     * @param qemuStart of a domain that a hook has let start, until libvirt shows it as running.
     * @param xenStart the same for Xen, where libvirt lets go of the domain while it is made.
     * @param abandoned age of a file that nobody is known to want.
     * @param betweenLooks for what no event tells.
     */
    record Patience(Duration qemuStart, Duration xenStart, Duration abandoned, Duration betweenLooks) {
        /** What fits real hypervisors. */
        static final Patience STANDARD = new Patience(Duration.ofSeconds(15), Duration.ofMinutes(5),
            Duration.ofSeconds(60), Duration.ofSeconds(10));
    }

    /** What it works with. */
    record Tools(Hypervisor hypervisor, HotPlug hotPlug, Shares shares, RegionFiles files, GuestFiles guests,
        GuestNetwork network, XenGuestSettings xen, HostFile hostFile, GpuDomain gpuDomain) { }

    /**
     * Looks at nothing before {@link #start()}.
     *
     * @param slow threads for what may wait for libvirt or a guest.
     */
    Reconciler(Tools tools, Patience patience, ExecutorService slow) {
        hypervisor = tools.hypervisor;
        hotPlug = tools.hotPlug;
        shares = tools.shares;
        files = tools.files;
        guests = tools.guests;
        xen = tools.xen;
        hostFile = tools.hostFile;
        host = hostFile.read();
        gpuDomain = tools.gpuDomain;
        provision = new Provision(shares, files, guests, tools.network, this::host,
            gpuDomain, patience.abandoned());
        this.patience = patience;
        this.slow = slow;
        thread.setDaemon(true);
    }

    /** Begins to look. */
    void start() {
        thread.start();
    }

    /** Asks for a look soon. */
    void request() {
        wanted = true;
        LockSupport.unpark(thread);
    }

    /** Asks for a look after so long, if none comes before. */
    private void request(Duration pause) {
        lookBy(System.nanoTime() + pause.toNanos(), false);
        LockSupport.unpark(thread);
    }

    private synchronized void lookBy(long ns, boolean anew) {
        if (anew || ns - dueNs < 0) {
            dueNs = ns;
        }
    }

    /** What is remembered of a domain. */
    Tenant tenant(UUID uuid, String name) {
        Tenant tenant = tenants.computeIfAbsent(uuid, u -> new Tenant(u, name));
        if (!name.isEmpty()) {
            tenant.name = name;
        }
        return tenant;
    }

    /**
     * What is remembered of a domain, with its steps held: it stays the one that is, until they are let go.
     *
     * @return null when another step has not come to an end by then, or the thread is interrupted.
     */
    Tenant hold(UUID uuid, String name, Duration limit) {
        long end = System.nanoTime() + limit.toNanos();
        while (true) {
            Tenant tenant = tenant(uuid, name);
            try {
                if (!tenant.steps.tryLock(end - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                    return null;
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return null;
            }
            if (!tenant.forgotten) {
                return tenant;
            }
            tenant.steps.unlock(); // a look has forgotten it while we waited
        }
    }

    /** With its steps held. */
    private void forget(Tenant tenant) {
        tenants.remove(tenant.uuid, tenant);
        tenant.forget();
    }

    /**
     * The host's UUID; throws {@link HypervisorException} while libvirt has never answered. The last one is kept in a
     * file: libvirtd starts domains, and calls hooks for them, before anybody can connect to it.
     */
    private String host() {
        String known = host;
        if (known.isEmpty()) {
            throw new HypervisorException(HypervisorException.Reason.DISCONNECTED,
                "hawserd has not yet been connected to libvirt");
        }
        return known;
    }

    private void learnHost() {
        String told = hypervisor.hostUuid();
        if (!told.equals(host)) {
            host = told;
            hostFile.write(told);
        }
    }

    Provision provision() {
        return provision;
    }

    private void run() {
        while (!closed) {
            while (!wanted && !closed && dueNs - System.nanoTime() > 0) {
                LockSupport.parkNanos(this, dueNs - System.nanoTime());
            }
            wanted = false;
            lookBy(System.nanoTime() + patience.betweenLooks().toNanos(), true); // the look may ask for the next before
            try {
                look();
            } catch (RuntimeException e) {
                Log.fault("", e); // the next look may find what this one stumbled over gone
            }
        }
    }

    /** One look at everything, and what follows from it. */
    void look() {
        long seenNs = System.nanoTime();
        List<DomainView> domains;
        try {
            learnHost();
            domains = hypervisor.domains();
            complain("");
        } catch (HypervisorException e) {
            complain(e.getMessage());
            return;
        }
        Shares.Picture picture = picture();
        Map<UUID, DomainView> running = new HashMap<>();
        Set<UUID> known = new HashSet<>(tenants.keySet());
        Set<UUID> lent = new HashSet<>();
        for (DomainView domain : domains) {
            if (domain.running()) {
                running.put(domain.uuid(), domain);
                if (gpuDomain != null && gpuDomain.is(domain)) {
                    lent.addAll(GpuDomain.tenants(domain));
                }
            }
            known.add(domain.uuid());
        }
        if (picture != null) {
            picture.claims().stream().filter(c -> c.owner().concerns(host)).forEach(c -> known.add(c.owner().domain()));
        }
        known.addAll(listed());
        known.addAll(lent);
        for (UUID uuid : known) {
            if (closed) {
                return; // the next hawserd must not have this one beside it
            }
            DomainView domain = running.get(uuid);
            if (domain == null && !tenants.containsKey(uuid) && !isConcerned(uuid, picture) && !lent.contains(uuid)) {
                continue;
            }
            settle(uuid, domain, picture, seenNs);
        }
    }

    private boolean isConcerned(UUID uuid, Shares.Picture picture) {
        return files.exists(uuid) || guests.read(uuid).isPresent()
            || isHeld(uuid, picture);
    }

    private boolean isHeld(UUID uuid, Shares.Picture picture) {
        return picture != null && !picture.held(uuid, host).isEmpty();
    }

    private Set<UUID> listed() {
        Set<UUID> found = new HashSet<>();
        try {
            found.addAll(guests.list());
            found.addAll(files.list());
        } catch (IOException e) {
            Log.error("", "the folder of regions or settings cannot be listed: " + e.getMessage());
        }
        return found;
    }

    private Shares.Picture picture() {
        try {
            Shares.Picture picture = shares.look();
            if (!brokerComplaint.isEmpty()) {
                Log.info("", "the broker answers again: " + shares.where());
                brokerComplaint = "";
            }
            return picture;
        } catch (ShareException e) {
            if (!e.getMessage().equals(brokerComplaint)) {
                brokerComplaint = e.getMessage();
                Log.warn("", brokerComplaint);
            }
            return null;
        }
    }

    private void complain(String reason) {
        if (!reason.equals(complaint)) {
            complaint = reason;
            if (reason.isEmpty()) {
                Log.info("", "libvirt answers again");
            } else {
                Log.warn("", reason);
            }
        }
    }

    private void settle(UUID uuid, DomainView domain, Shares.Picture picture, long seenNs) {
        Tenant tenant = tenant(uuid, domain == null ? "" : domain.name());
        tenant.steps.lock();
        try {
            tenant.heed();
            if (tenant.forgotten || !tenant.isSeenAfterHooks(seenNs) || tenant.busy) {
                return; // another look follows, which sees what has come of it
            }
            if (domain == null) {
                settleStopped(tenant, picture);
            } else {
                tenant.starting = false;
                new RunningDomain(tenant, domain, picture).settle();
            }
        } finally {
            tenant.steps.unlock();
        }
    }

    private void settleStopped(Tenant tenant, Shares.Picture picture) {
        if (tenant.incoming && System.nanoTime() - tenant.incomingSinceNs < Hooks.INCOMING.toNanos()) {
            return; // another host's, until it starts here
        }
        if (tenant.starting && System.nanoTime() - tenant.startingSinceNs < startPatience(tenant).toNanos()) {
            return;
        }
        try {
            boolean ours = tenant.touched || isHeld(tenant.uuid, picture);
            if (!ours && files.exists(tenant.uuid) && !files.isAbandoned(tenant.uuid, patience.abandoned())) {
                forget(tenant);
                return; // of another hawserd of this machine, or not yet old enough to know
            }
            if (provision.withdraw(tenant, picture, Provision.FileFate.GOES)) {
                Log.info(nameOf(tenant), "does not run: what it had is given back");
            }
            tenant.starting = false;
            if (picture != null) {
                forget(tenant);
            }
        } catch (ShareException e) {
            Log.warn(nameOf(tenant), "what it had cannot be given back yet: " + e.getMessage());
        } catch (IOException e) {
            Log.warn(nameOf(tenant), "its region cannot be looked at: " + e.getMessage());
        }
    }

    private Duration startPatience(Tenant tenant) {
        return tenant.xen ? patience.xenStart() : patience.qemuStart();
    }

    static String nameOf(Tenant tenant) {
        return tenant.name.isEmpty() ? tenant.uuid.toString() : tenant.name;
    }

    /** A running domain in one look; the tenant's steps are held. */
    private final class RunningDomain {
        private final Tenant tenant;
        private final DomainView domain;
        private final Shares.Picture picture;
        private DomainXml xml;
        private Wish wish;

        RunningDomain(Tenant tenant, DomainView domain, Shares.Picture picture) {
            this.tenant = tenant;
            this.domain = domain;
            this.picture = picture;
        }

        void settle() {
            if (!domain.liveXml().contains("urn:hawser:") && !domain.liveXml().contains(Shmem.PREFIX)
                && !tenant.touched && tenant.applied == null && !isConcerned(tenant.uuid, picture)) {
                forget(tenant);
                return;
            }
            try {
                xml = DomainXml.parse(domain.liveXml());
                wish = xml.wish(domain.driver()).orElse(null);
                if (wish == null) {
                    withdraw();
                    say(null);
                } else if (wish.byDevice() && said() != null && said().by().equals("metadata")) {
                    takeOut();
                } else if (wish.transport() == Wish.Transport.SHM && xml.device().isEmpty()) {
                    putIn();
                } else if (wish.equals(tenant.plugFailed) && !tenant.plugWanted) {
                    // A guest that has not seen the device gives none back either: QEMU has it until the domain stops.
                    withdraw();
                    say(status(VgpuStatus.State.REFUSED, "", tenant.plugFailure));
                } else {
                    tenant.plugWanted = false;
                    provide(Provision.Arrival.RUNNING);
                }
            } catch (WishException e) {
                say(status(VgpuStatus.State.REFUSED, "", e.getMessage()));
            } catch (ShareException e) {
                say(status(e.reason() == ShareException.Reason.AWAY ? VgpuStatus.State.WAITING
                    : VgpuStatus.State.REFUSED, "", e.getMessage()));
            }
        }

        private VgpuStatus said() {
            return xml == null ? null : xml.status().orElse(null);
        }

        private void withdraw() throws ShareException {
            boolean unplugged = xml.device().isEmpty();
            if (provision.withdraw(tenant, picture, unplugged ? Provision.FileFate.GOES_UNUSED
                : Provision.FileFate.STAYS)) {
                Log.info(domain.name(), "has no vGPU any more");
            }
            if (unplugged && tenant.fileKept) {
                request(untilNextLookAtFile()); // of the end of a process's mapping nobody tells
            }
            if (picture == null) {
                throw new ShareException(ShareException.Reason.AWAY, brokerComplaint);
            }
        }

        private Duration untilNextLookAtFile() {
            Duration kept = Duration.ofNanos(System.nanoTime() - tenant.fileKeptSinceNs);
            return kept.compareTo(KEPT_FIRST) < 0 ? KEPT_FIRST : kept.compareTo(KEPT_LONGEST) > 0 ? KEPT_LONGEST : kept;
        }

        /** The metadata has been removed, the device is still there. */
        private void takeOut() throws ShareException {
            Claim claim = require().claim(tenant.uuid, host).orElse(null);
            if (claim != null && claim.sessions() > 0) {
                say(new VgpuStatus(VgpuStatus.State.WAITING, claim.vgpu(), "shm", Instant.now(), "the metadata has been"
                    + " removed; the device goes when the guest's " + claim.sessions() + " sessions have ended",
                    "metadata"));
                return;
            }
            tenant.busy = true;
            say(new VgpuStatus(VgpuStatus.State.WAITING, "", "shm", Instant.now(),
                "for the guest to give the device back", "metadata"), true);
            slowly(() -> {
                hotPlug.unplug(tenant.uuid, timeout(), tenant::say);
                hypervisor.setMetadata(tenant.uuid, VgpuStatus.NAMESPACE, VgpuStatus.PREFIX, null, Scope.LIVE);
            });
        }

        private Duration timeout() {
            return tenant.plugTimeout == null ? PLUG_TIMEOUT : tenant.plugTimeout;
        }

        /** The metadata is there, the device is not. */
        private void putIn() throws ShareException {
            VgpuStatus said = said();
            boolean had = said != null && said.by().equals("metadata") && (said.state() == VgpuStatus.State.READY
                || said.state() == VgpuStatus.State.DETACHED);
            if (had && !tenant.plugWanted) {
                withdraw();
                say(status(VgpuStatus.State.DETACHED, "", "the device has been taken out; hawserctl attach "
                    + domain.name() + " puts it in again"));
                return;
            }
            if (wish.equals(tenant.plugFailed) && !tenant.plugWanted) {
                withdraw();
                say(status(VgpuStatus.State.REFUSED, "", tenant.plugFailure));
                return;
            }
            Optional<String> refusal = hotPlug.refusal(domain, wish.regionBytes());
            if (refusal.isPresent()) {
                fail(refusal.get());
                withdraw();
                return;
            }
            Claim claim = provision.provide(tenant, wish, Provision.Arrival.PLUG, require());
            tenant.busy = true;
            say(status(VgpuStatus.State.WAITING, claim.vgpu(), "for the guest to see the device"), true);
            slowly(() -> hotPlug.plug(tenant.uuid, wish.regionBytes(), timeout(), tenant::say));
        }

        private void fail(String reason) {
            tenant.plugFailed = wish;
            tenant.plugFailure = reason;
            tenant.plugWanted = false;
            say(status(VgpuStatus.State.REFUSED, "", reason));
        }

        /** What takes its time, without the tenant's steps held; another look follows. */
        private void slowly(Runnable step) {
            slow.execute(() -> {
                String failure = "";
                try {
                    step.run();
                } catch (HypervisorException e) {
                    failure = e.getMessage();
                } catch (RuntimeException e) {
                    Log.fault(domain.name(), e);
                    failure = "hawserd has failed; its log says where";
                } finally {
                    tenant.steps.lock();
                    tenant.heed();
                    tenant.busy = false;
                    tenant.plugWanted = false; // what was asked for meanwhile, too
                    tenant.plugFailed = failure.isEmpty() ? null : wish;
                    tenant.plugFailure = failure;
                    tenant.touch(System.nanoTime()); // what a look saw before is out of date
                    tenant.steps.unlock();
                    request();
                }
            });
        }

        private Shares.Picture require() throws ShareException {
            if (picture == null) {
                throw new ShareException(ShareException.Reason.AWAY, brokerComplaint);
            }
            return picture;
        }

        private void provide(Provision.Arrival arrival) throws ShareException {
            Claim claim = provision.provide(tenant, wish, arrival, require());
            if (domain.driver() == Driver.XEN) {
                GuestSettings settings = provision.settings(tenant.uuid).orElse(null);
                if (settings != null) {
                    try {
                        xen.put(domain.id(), settings);
                    } catch (HypervisorException e) {
                        say(status(VgpuStatus.State.WAITING, claim.vgpu(), e.getMessage()));
                        return;
                    }
                }
            }
            say(claim.problem().isEmpty() ? status(VgpuStatus.State.READY, claim.vgpu(), "")
                : status(VgpuStatus.State.WAITING, claim.vgpu(), claim.problem()));
        }

        private VgpuStatus status(VgpuStatus.State state, String vgpu, String reason) {
            boolean byMetadata = wish == null ? xml != null && xml.hasMetadata() : !wish.byDevice();
            return new VgpuStatus(state, vgpu, wish == null ? "" : wish.transport().label(), Instant.now(), reason,
                byMetadata ? "metadata" : "device");
        }

        private void say(VgpuStatus status) {
            say(status, false);
        }

        /** Says it in the metadata, where it is not said already, in the log, and to those who wait. */
        private void say(VgpuStatus status, boolean busy) {
            if (status == null ? tenant.logged != null : !status.saysAs(tenant.logged)) {
                if (status != null) {
                    String text = "vGPU " + (status.vgpu().isEmpty() ? "" : status.vgpu() + " ")
                        + status.state().label() + (status.reason().isEmpty() ? "" : ": " + status.reason());
                    if (status.state() == VgpuStatus.State.REFUSED) {
                        Log.warn(domain.name(), text);
                    } else {
                        Log.info(domain.name(), text);
                    }
                }
                tenant.logged = status;
            }
            if (xml != null && (status == null ? xml.hasStatus() : !status.saysAs(said()))) {
                StatusWriter.write(hypervisor, slow, tenant, status);
            }
            tenant.conclude(wish, status, busy);
        }
    }

    @Override
    public void connected() {
        request();
    }

    @Override
    public void disconnected(String reason) {
        Log.warn("", "libvirt is away: " + reason);
    }

    @Override
    public void lifecycle(UUID domain, String name, String what) {
        request();
    }

    @Override
    public void deviceAdded(UUID domain, String alias) {
        request();
    }

    @Override
    public void deviceRemoved(UUID domain, String alias) {
        request();
    }

    @Override
    public void metadataChanged(UUID domain, String namespace) {
        if (Wish.NAMESPACE.equals(namespace)) {
            tenant(domain, "").ask(System.nanoTime());
            request();
        }
    }

    /** Ends the looks; the one that goes on is waited for, as far as the broker and libvirt let it end. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
        try {
            thread.join(CLOSE_LIMIT);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
