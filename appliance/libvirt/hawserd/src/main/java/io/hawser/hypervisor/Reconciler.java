package io.hawser.hypervisor;

import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ExecutorService;

/**
 * Brings the actual state (broker, files, devices) to the wanted state (the live metadata of running domains). A pass
 * compares both and acts on the differences; events, hooks and commands only request an earlier pass. One thread runs
 * the passes. Other threads run the operations that may wait for libvirt or a guest.
 */
final class Reconciler implements Hypervisor.Listener, AutoCloseable {
    /**
     * Interval between passes that examine a file that is still mapped: as long as the file has been kept, within these
     * limits.
     */
    private static final Duration KEPT_FIRST = Duration.ofMillis(200);
    private static final Duration KEPT_LONGEST = Duration.ofSeconds(10);

    private final Hypervisor hypervisor;
    private final HotPlug hotPlug;
    private final Shares shares;
    private final Provision provision;
    private final XenGuestSettings xen;
    private final HostId host;
    private final Tenants tenants;
    private final Patience patience;
    private final ExecutorService slow;
    private final StatusWriter statuses;
    private final Passes passes;
    private String libvirtProblem = "";
    private String brokerProblem = "";

    /**
     * How long a state between two others may last before its remains count as left over.
     *
     * @param qemuStart from the hook that lets a domain start until libvirt shows the domain as running.
     * @param xenStart the same for Xen, where libvirt does not hold the domain while libxl makes it.
     * @param abandoned age of a file without a known domain.
     * @param betweenPasses longest time between passes, for changes without an event.
     */
    record Patience(Duration qemuStart, Duration xenStart, Duration abandoned, Duration betweenPasses) {
        /** The values for real hypervisors. */
        static final Patience STANDARD = new Patience(Duration.ofSeconds(15), Duration.ofMinutes(5),
            Duration.ofSeconds(60), Duration.ofSeconds(10));

        /** From the hook that lets a domain start until libvirt shows the domain as running. */
        Duration start(Driver driver) {
            return driver == Driver.XEN ? xenStart : qemuStart;
        }
    }

    /** The objects that the reconciler uses. */
    record Tools(Hypervisor hypervisor, HotPlug hotPlug, Shares shares, Provision provision, XenGuestSettings xen,
        HostId host, Tenants tenants) { }

    /**
     * Runs no pass before {@link #start()}.
     *
     * @param slow threads for operations that may wait for libvirt or a guest.
     */
    Reconciler(Tools tools, Patience patience, ExecutorService slow) {
        hypervisor = tools.hypervisor;
        hotPlug = tools.hotPlug;
        shares = tools.shares;
        provision = tools.provision;
        xen = tools.xen;
        host = tools.host;
        tenants = tools.tenants;
        this.patience = patience;
        this.slow = slow;
        statuses = new StatusWriter(hypervisor, slow);
        passes = new Passes(this::reconcile, patience.betweenPasses());
    }

    /** Starts the passes. */
    void start() {
        passes.start();
    }

    /** Requests a pass as soon as possible. */
    void request() {
        passes.request();
    }

    /** Runs one pass over all domains, files and claims. */
    void reconcile() {
        long seenNs = System.nanoTime();
        List<DomainView> domains;
        try {
            host.learn(hypervisor.hostUuid());
            domains = hypervisor.domains();
            reportLibvirt("");
        } catch (HypervisorException e) {
            reportLibvirt(e.getMessage());
            return;
        }
        Shares.Picture picture = picture();
        Map<UUID, DomainView> running = new HashMap<>();
        Set<UUID> known = new HashSet<>(tenants.domains());
        for (DomainView domain : domains) {
            if (domain.running()) {
                running.put(domain.uuid(), domain);
            }
            known.add(domain.uuid());
        }
        Set<UUID> lent = provision.tenantsOfLentRegions(running.values());
        known.addAll(lent);
        known.addAll(provision.tenantsOfFiles());
        if (picture != null) {
            picture.claims().stream().filter(c -> c.owner().concerns(host.uuid()))
                .forEach(c -> known.add(c.owner().domain()));
        }
        for (UUID uuid : known) {
            if (passes.isClosed()) {
                return; // two hawserds must not work at the same time
            }
            DomainView domain = running.get(uuid);
            if (domain != null || tenants.has(uuid) || provision.hasRemains(uuid, picture) || lent.contains(uuid)) {
                settle(uuid, domain, picture, seenNs);
            }
        }
    }

    private Shares.Picture picture() {
        try {
            Shares.Picture picture = shares.readPicture();
            if (!brokerProblem.isEmpty()) {
                Log.info("", "the broker answers again: " + shares.where());
                brokerProblem = "";
            }
            return picture;
        } catch (ShareException e) {
            if (!e.getMessage().equals(brokerProblem)) {
                brokerProblem = e.getMessage();
                Log.warn("", brokerProblem);
            }
            return null;
        }
    }

    private void reportLibvirt(String reason) {
        if (!reason.equals(libvirtProblem)) {
            libvirtProblem = reason;
            if (reason.isEmpty()) {
                Log.info("", "libvirt answers again");
            } else {
                Log.warn("", reason);
            }
        }
    }

    private void settle(UUID uuid, DomainView domain, Shares.Picture picture, long seenNs) {
        Tenant tenant = tenants.of(uuid, domain == null ? "" : domain.name());
        tenant.hold();
        try {
            if (tenant.isForgotten()) {
                return;
            }
            tenant.takeUpWishChange();
            if (!tenant.isUpToDate(seenNs) || tenant.isBusy()) {
                return; // a later pass sees the result of the hook or command
            }
            if (domain == null) {
                settleStopped(tenant, picture);
            } else {
                tenant.observedRunning();
                new RunningDomain(tenant, domain, picture).settle();
            }
        } finally {
            tenant.release();
        }
    }

    private void settleStopped(Tenant tenant, Shares.Picture picture) {
        if (tenant.isExpected(System.nanoTime(), patience::start)) {
            return;
        }
        try {
            if (!tenant.hasChanged() && !provision.isHeld(tenant.uuid(), picture)
                && provision.hasRecentFile(tenant.uuid())) {
                tenants.forget(tenant);
                return; // a file of another hawserd, or too young to tell
            }
            if (provision.withdraw(tenant, picture, Provision.FileFate.GOES)) {
                Log.info(tenant.label(), "does not run; its vGPU is released");
            }
            tenant.startAbandoned();
            if (picture != null) {
                tenants.forget(tenant);
            }
        } catch (ShareException e) {
            Log.warn(tenant.label(), "its vGPU cannot be released yet: " + e.getMessage());
        }
    }

    /** One running domain in one pass; the thread holds the tenant. */
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
                && !tenant.hasChanged() && !tenant.hasShare() && !provision.hasRemains(tenant.uuid(), picture)) {
                tenants.forget(tenant);
                return;
            }
            try {
                xml = DomainXml.parse(domain.liveXml());
                wish = xml.wish(domain.driver()).orElse(null);
                if (wish == null) {
                    withdraw();
                    publish(null);
                } else if (wish.byDevice() && writtenStatus() != null && writtenStatus().by().equals("metadata")) {
                    takeOut();
                } else if (wish.transport() == Wish.Transport.SHM && xml.device().isEmpty()) {
                    putIn();
                } else if (tenant.failure(wish).isPresent()) {
                    // A guest that never found the device does not give it back either; QEMU keeps it until the domain
                    // stops.
                    withdraw();
                    publish(status(VgpuStatus.State.REFUSED, "", tenant.failure(wish).orElseThrow()));
                } else {
                    tenant.deviceSeen();
                    provide(Provision.Arrival.RUNNING);
                }
            } catch (WishException e) {
                publish(status(VgpuStatus.State.REFUSED, "", e.getMessage()));
            } catch (ShareException e) {
                publish(status(e.reason() == ShareException.Reason.AWAY ? VgpuStatus.State.WAITING
                    : VgpuStatus.State.REFUSED, "", e.getMessage()));
            }
        }

        private VgpuStatus writtenStatus() {
            return xml == null ? null : xml.status().orElse(null);
        }

        private void withdraw() throws ShareException {
            boolean unplugged = xml.device().isEmpty();
            if (provision.withdraw(tenant, picture, unplugged ? Provision.FileFate.GOES_UNUSED
                : Provision.FileFate.STAYS)) {
                Log.info(domain.name(), "has no vGPU any more");
            }
            if (unplugged && tenant.isFileKept()) {
                passes.request(untilNextPass()); // there is no event for the end of a mapping
            }
            if (picture == null) {
                throw new ShareException(ShareException.Reason.AWAY, brokerProblem);
            }
        }

        private Duration untilNextPass() {
            Duration kept = tenant.fileKeptFor(System.nanoTime());
            return kept.compareTo(KEPT_FIRST) < 0 ? KEPT_FIRST : kept.compareTo(KEPT_LONGEST) > 0 ? KEPT_LONGEST : kept;
        }

        /** Removes the device: the metadata has been removed, the device is still there. */
        private void takeOut() throws ShareException {
            Claim claim = require().claim(tenant.uuid(), host.uuid()).orElse(null);
            if (claim != null && claim.sessions() > 0) {
                publish(new VgpuStatus(VgpuStatus.State.WAITING, claim.vgpu(), "shm", Instant.now(),
                    "the metadata has been removed; hawserd removes the device when the guest's " + claim.sessions()
                        + " sessions end", "metadata"));
                return;
            }
            tenant.operationBegan();
            publish(new VgpuStatus(VgpuStatus.State.WAITING, "", "shm", Instant.now(),
                "for the guest to give the device back", "metadata"), true);
            Duration timeout = tenant.plugTimeout();
            runSlowly(() -> {
                hotPlug.unplug(tenant.uuid(), timeout, tenant.feedback()::progress);
                hypervisor.setMetadata(tenant.uuid(), VgpuStatus.NAMESPACE, VgpuStatus.PREFIX, null, Scope.LIVE);
            });
        }

        /** Plugs the device in: the metadata is there, the device is not. */
        private void putIn() throws ShareException {
            VgpuStatus written = writtenStatus();
            boolean had = written != null && written.by().equals("metadata")
                && (written.state() == VgpuStatus.State.READY || written.state() == VgpuStatus.State.DETACHED);
            if (had && !tenant.isPlugWanted()) {
                withdraw();
                publish(status(VgpuStatus.State.DETACHED, "", "the device has been removed; hawserctl attach "
                    + domain.name() + " adds it again"));
                return;
            }
            if (tenant.failure(wish).isPresent()) {
                withdraw();
                publish(status(VgpuStatus.State.REFUSED, "", tenant.failure(wish).orElseThrow()));
                return;
            }
            Optional<String> refusal = hotPlug.refusal(domain, wish.regionBytes());
            if (refusal.isPresent()) {
                fail(refusal.get());
                withdraw();
                return;
            }
            Claim claim = provision.provide(tenant, wish, Provision.Arrival.PLUG, require());
            tenant.operationBegan();
            publish(status(VgpuStatus.State.WAITING, claim.vgpu(), "for the guest to see the device"), true);
            Duration timeout = tenant.plugTimeout();
            runSlowly(() -> hotPlug.plug(tenant.uuid(), wish.regionBytes(), timeout, tenant.feedback()::progress));
        }

        private void fail(String reason) {
            tenant.plugRejected(wish, reason);
            publish(status(VgpuStatus.State.REFUSED, "", reason));
        }

        /** Runs an operation that may take long, without the tenant. Another pass follows it. */
        private void runSlowly(Runnable step) {
            slow.execute(() -> {
                String failure = "";
                try {
                    step.run();
                } catch (HypervisorException e) {
                    failure = e.getMessage();
                } catch (RuntimeException e) {
                    Log.fault(domain.name(), e);
                    failure = "hawserd has failed; see its log";
                } finally {
                    tenant.hold();
                    if (failure.isEmpty()) {
                        tenant.operationSucceeded(System.nanoTime());
                    } else {
                        tenant.operationFailed(wish, failure, System.nanoTime());
                    }
                    tenant.release();
                    request();
                }
            });
        }

        private Shares.Picture require() throws ShareException {
            if (picture == null) {
                throw new ShareException(ShareException.Reason.AWAY, brokerProblem);
            }
            return picture;
        }

        private void provide(Provision.Arrival arrival) throws ShareException {
            Claim claim = provision.provide(tenant, wish, arrival, require());
            if (domain.driver() == Driver.XEN) {
                GuestSettings settings = provision.settings(tenant.uuid()).orElse(null);
                if (settings != null) {
                    try {
                        xen.put(domain.id(), settings);
                    } catch (HypervisorException e) {
                        publish(status(VgpuStatus.State.WAITING, claim.vgpu(), e.getMessage()));
                        return;
                    }
                }
            }
            publish(claim.problem().isEmpty() ? status(VgpuStatus.State.READY, claim.vgpu(), "")
                : status(VgpuStatus.State.WAITING, claim.vgpu(), claim.problem()));
        }

        private VgpuStatus status(VgpuStatus.State state, String vgpu, String reason) {
            boolean byMetadata = wish == null ? xml != null && xml.hasMetadata() : !wish.byDevice();
            return new VgpuStatus(state, vgpu, wish == null ? "" : wish.transport().label(), Instant.now(), reason,
                byMetadata ? "metadata" : "device");
        }

        private void publish(VgpuStatus status) {
            publish(status, false);
        }

        /** Publishes the status: in the metadata and the log if it has changed, and to waiting commands. */
        private void publish(VgpuStatus status, boolean busy) {
            if (tenant.statusPublished(status) && status != null) {
                String text = "vGPU " + (status.vgpu().isEmpty() ? "" : status.vgpu() + " ")
                    + status.state().label() + (status.reason().isEmpty() ? "" : ": " + status.reason());
                if (status.state() == VgpuStatus.State.REFUSED) {
                    Log.warn(domain.name(), text);
                } else {
                    Log.info(domain.name(), text);
                }
            }
            if (xml != null && (status == null ? xml.hasStatus() : !status.isSameAs(writtenStatus()))) {
                statuses.write(tenant.uuid(), tenant.label(), status);
            }
            tenant.feedback().conclude(wish, status, busy);
        }
    }

    @Override
    public void connected() {
        request();
    }

    @Override
    public void disconnected(String reason) {
        Log.warn("", "libvirt does not answer: " + reason);
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
            tenants.of(domain, "").wishChanged(System.nanoTime());
            request();
        }
    }

    /** Stops the passes. Waits for the present one, up to a limit. */
    @Override
    public void close() {
        passes.close();
    }
}
