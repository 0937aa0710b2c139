package io.hawser.hypervisor.reconcile;

import io.hawser.hypervisor.broker.Claim;
import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.FunctionXml;
import io.hawser.hypervisor.domain.Functions;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.XenGuestSettings;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.GuestSettings;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import io.hawser.hypervisor.share.Provision;
import io.hawser.hypervisor.tenant.Tenant;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;

/** One running domain in one pass; the thread holds the tenant. */
final class RunningDomain {
    /**
     * Interval between passes that examine a file that is still mapped: as long as the file has been kept, within these
     * limits.
     */
    private static final Duration KEPT_FIRST = Duration.ofMillis(200);
    private static final Duration KEPT_LONGEST = Duration.ofSeconds(10);

    private final Means means;
    private final Tenant tenant;
    private final DomainView domain;
    private final BrokerState broker;
    private DomainXml xml;
    private Wish wish;

    /** The objects by which a pass acts on a running domain. */
    record Means(Provision provision, HotPlug hotPlug, Functions functions, XenGuestSettings xen,
        Operations operations, StatusWriter statuses, Passes passes) {}

    RunningDomain(Means means, Tenant tenant, DomainView domain, BrokerState broker) {
        this.means = means;
        this.tenant = tenant;
        this.domain = domain;
        this.broker = broker;
    }

    /** Gives the domain what its metadata asks for, and publishes the result. */
    void settle() {
        try {
            xml = DomainXml.parse(domain.liveXml());
            wish = xml.wish(domain.driver()).orElse(null);
            if (wish == null && hasFunction() && isWrittenByMetadata()) {
                takeOut();
            } else if (wish == null) {
                withdraw();
                publish(null);
            } else if (wish.byDevice() && isWrittenByMetadata()) {
                takeOut();
            } else if (!hasDevice()) {
                putIn();
            } else if (tenant.failure(wish).isPresent()) {
                // A guest that never found the device does not give it back either; QEMU keeps it until the domain
                // stops.
                withdraw();
                publish(status(VgpuStatus.State.REFUSED, "", tenant.failure(wish).orElseThrow()));
            } else {
                tenant.deviceSeen();
                provide();
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

    private boolean isWrittenByMetadata() {
        return writtenStatus() != null && writtenStatus().by().equals("metadata");
    }

    private boolean hasFunction() {
        return new FunctionXml(xml).element("").isPresent();
    }

    /** Whether the domain has the device that its wish needs, if any. */
    private boolean hasDevice() {
        return wish.transport() == Wish.Transport.SHM ? xml.device().isPresent()
            : !wish.hasNetwork() || new FunctionXml(xml).has(wish);
    }

    private void withdraw() throws ShareException {
        boolean unplugged = xml.device().isEmpty();
        if (means.provision.withdraw(tenant, broker.picture(), unplugged ? Provision.FileFate.GOES_UNUSED
            : Provision.FileFate.STAYS)) {
            Log.info(domain.name(), "has no vGPU any more");
        }
        if (unplugged && tenant.isFileKept()) {
            means.passes.request(untilNextPass()); // there is no event for the end of a mapping
        }
        broker.require();
    }

    private Duration untilNextPass() {
        Duration kept = tenant.fileKeptFor(System.nanoTime());
        return kept.compareTo(KEPT_FIRST) < 0 ? KEPT_FIRST : kept.compareTo(KEPT_LONGEST) > 0 ? KEPT_LONGEST : kept;
    }

    /** Removes the device: the metadata has been removed, the device is still there. */
    private void takeOut() throws ShareException {
        Claim claim = means.provision.claim(tenant.uuid(), broker.require()).orElse(null);
        String transport = (wish == null ? Wish.Transport.RDMA : wish.transport()).label();
        if (claim != null && claim.sessions() > 0) {
            publish(new VgpuStatus(VgpuStatus.State.WAITING, claim.vgpu(), transport, Instant.now(),
                "the metadata has been removed; hawserd removes the device when the guest's " + claim.sessions()
                    + " sessions end",
                "metadata"));
            return;
        }
        publish(new VgpuStatus(VgpuStatus.State.WAITING, "", transport, Instant.now(),
            "for the guest to give the device back", "metadata"), true);
        means.operations.unplug(tenant, wish);
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
        Optional<String> refusal = wish.hasNetwork() ? means.functions.refusal(domain, wish)
            : means.hotPlug.refusal(domain, wish.regionBytes());
        if (refusal.isPresent()) {
            tenant.plugRejected(wish, refusal.get());
            publish(status(VgpuStatus.State.REFUSED, "", refusal.get()));
            withdraw();
            return;
        }
        Claim claim = means.provision.provide(tenant, wish, Provision.Arrival.PLUG, broker.require());
        publish(status(VgpuStatus.State.WAITING, claim.vgpu(), "for the guest to see the device"), true);
        means.operations.plug(tenant, wish);
    }

    private void provide() throws ShareException {
        Claim claim = means.provision.provide(tenant, wish, Provision.Arrival.RUNNING, broker.require());
        if (domain.driver() == Driver.XEN) {
            GuestSettings settings = means.provision.settings(tenant.uuid()).orElse(null);
            if (settings != null) {
                try {
                    means.xen.put(domain.id(), settings);
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
            means.statuses.write(tenant.uuid(), tenant.label(), status);
        }
        tenant.feedback().conclude(wish, status, busy);
    }
}
