package io.hawser.hypervisor.reconcile;

import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;
import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.Functions;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.XenGuestSettings;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.Shmem;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.share.HostId;
import io.hawser.hypervisor.share.Provision;
import io.hawser.hypervisor.tenant.Tenant;
import io.hawser.hypervisor.tenant.Tenants;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ExecutorService;

/**
 * Brings the actual state (broker, files, devices) to the wanted state (the live metadata of running domains). A pass
 * compares both and acts on the differences; events, hooks and commands only request an earlier pass. One thread runs
 * the passes. Other threads run the operations that may wait for libvirt or a guest.
 */
public final class Reconciler implements Hypervisor.Listener, AutoCloseable {
    private final Hypervisor hypervisor;
    private final Shares shares;
    private final Provision provision;
    private final HostId host;
    private final Tenants tenants;
    private final Patience patience;
    private final Passes passes;
    private final RunningDomain.Means means;
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
    public record Patience(Duration qemuStart, Duration xenStart, Duration abandoned, Duration betweenPasses) {
        /** The values for real hypervisors. */
        public static final Patience STANDARD = new Patience(Duration.ofSeconds(15), Duration.ofMinutes(5),
            Duration.ofSeconds(60), Duration.ofSeconds(10));

        /** From the hook that lets a domain start until libvirt shows the domain as running. */
        Duration start(Driver driver) {
            return driver == Driver.XEN ? xenStart : qemuStart;
        }
    }

    /** The objects that the reconciler uses. */
    public record Tools(Hypervisor hypervisor, HotPlug hotPlug, Functions functions, Shares shares,
        Provision provision, XenGuestSettings xen, HostId host, Tenants tenants) {}

    /**
     * Runs no pass before {@link #start()}.
     *
     * @param slow threads for operations that may wait for libvirt or a guest.
     */
    public Reconciler(Tools tools, Patience patience, ExecutorService slow) {
        hypervisor = tools.hypervisor;
        shares = tools.shares;
        provision = tools.provision;
        host = tools.host;
        tenants = tools.tenants;
        this.patience = patience;
        passes = new Passes(this::reconcile, patience.betweenPasses());
        means = new RunningDomain.Means(provision, tools.hotPlug, tools.functions, tools.xen,
            new Operations(hypervisor, tools.hotPlug, tools.functions, passes, slow),
            new StatusWriter(hypervisor, slow), passes);
    }

    /** Starts the passes. */
    public void start() {
        passes.start();
    }

    /** Requests a pass as soon as possible. */
    public void request() {
        passes.request();
    }

    /** Runs one pass over all domains, files and claims. */
    public void reconcile() {
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
        BrokerState broker = readBroker();
        Shares.Picture picture = broker.picture();
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
                settle(uuid, domain, broker, seenNs);
            }
        }
    }

    private BrokerState readBroker() {
        try {
            Shares.Picture picture = shares.readPicture();
            if (!brokerProblem.isEmpty()) {
                Log.info("", "the broker answers again: " + shares.where());
                brokerProblem = "";
            }
            return new BrokerState(picture, "");
        } catch (ShareException e) {
            if (!e.getMessage().equals(brokerProblem)) {
                brokerProblem = e.getMessage();
                Log.warn("", brokerProblem);
            }
            return new BrokerState(null, brokerProblem);
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

    private void settle(UUID uuid, DomainView domain, BrokerState broker, long seenNs) {
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
                settleStopped(tenant, broker.picture());
                return;
            }
            tenant.observedRunning();
            if (isUnconcerned(tenant, domain, broker.picture())) {
                tenants.forget(tenant);
            } else {
                new RunningDomain(means, tenant, domain, broker).settle();
            }
        } finally {
            tenant.release();
        }
    }

    /** Whether a running domain neither wants nor has anything of Hawser. */
    private boolean isUnconcerned(Tenant tenant, DomainView domain, Shares.Picture picture) {
        return !domain.liveXml().contains("urn:hawser:") && !domain.liveXml().contains(Shmem.PREFIX)
            && !tenant.hasChanged() && !tenant.hasShare() && !provision.hasRemains(tenant.uuid(), picture);
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
