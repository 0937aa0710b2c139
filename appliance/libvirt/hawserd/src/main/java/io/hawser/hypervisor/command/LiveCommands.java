package io.hawser.hypervisor.command;

import io.hawser.hypervisor.broker.Claim;
import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;
import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.FunctionXml;
import io.hawser.hypervisor.domain.Functions;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.Scope;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.GuestSettings;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import io.hawser.hypervisor.reconcile.Reconciler;
import io.hawser.hypervisor.share.Provision;
import io.hawser.hypervisor.tenant.Tenant;
import io.hawser.hypervisor.tenant.Tenants;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/** The part of {@code attach} and {@code detach} that changes the running domain. Any thread. */
final class LiveCommands {
    /** The time that libvirt, the broker and the reconciler may take in addition to the guest's. */
    private static final Duration BESIDE = Duration.ofSeconds(60);
    /** Interval of the requests to the broker, which reports no end of a vGPU. */
    private static final Duration ASK_AGAIN = Duration.ofMillis(200);
    private static final String GUEST_FOLDER = "/run/hawser/";

    private final Hypervisor hypervisor;
    private final HotPlug hotPlug;
    private final Functions functions;
    private final Shares shares;
    private final Provision provision;
    private final Tenants tenants;
    private final Reconciler reconciler;

    LiveCommands(Hypervisor hypervisor, HotPlug hotPlug, Functions functions, Shares shares, Provision provision,
        Tenants tenants, Reconciler reconciler) {
        this.hypervisor = hypervisor;
        this.hotPlug = hotPlug;
        this.functions = functions;
        this.shares = shares;
        this.provision = provision;
        this.tenants = tenants;
        this.reconciler = reconciler;
    }

    /**
     * Gives a running domain a vGPU.
     *
     * @return notes for the administrator.
     */
    List<String> attach(DomainView domain, Wish wish, Duration timeout, Consumer<String> progress)
        throws WishException {
        DomainXml before = DomainXml.parse(domain.liveXml());
        Wish had = before.wish(domain.driver()).orElse(null);
        boolean shm = wish.transport() == Wish.Transport.SHM;
        if (had != null && before.device().isPresent() && (!shm || had.regionBytes() != wish.regionBytes())) {
            throw new WishException("the running domain has a vGPU by " + had.transport().label() + " with the region "
                + Wish.size(had.regionBytes()) + ", which cannot change while it runs: hawserctl detach "
                + domain.name() + " first");
        }
        FunctionXml function = new FunctionXml(before);
        if (had != null && function.element(had.function()).isPresent() && !(wish.network().equals(had.network())
            && wish.function().equals(had.function()))) {
            throw new WishException("the running domain has a virtual function of the network " + had.network()
                + ", which cannot change while it runs: hawserctl detach " + domain.name() + " first");
        }
        if (wish.hasNetwork() && !function.has(wish)) {
            Optional<String> refusal = functions.refusal(domain, wish);
            if (refusal.isPresent()) {
                throw CommandException.refused(refusal.get());
            }
        }
        if (shm && before.device().isEmpty()) {
            Optional<String> refusal = hotPlug.refusal(domain, wish.regionBytes());
            if (refusal.isPresent()) {
                throw CommandException.refused(refusal.get());
            }
        }
        Tenant tenant = hold(domain);
        tenant.plugCommandBegan(timeout, System.nanoTime());
        tenant.release();
        hypervisor.setMetadata(domain.uuid(), Wish.NAMESPACE, Wish.PREFIX,
            DomainXml.element("vgpu", wish.attributes()), Scope.LIVE);
        reconciler.request();
        VgpuStatus status;
        try {
            status = await(tenant, wish, timeout.plus(BESIDE), progress);
        } catch (CommandException e) {
            undo(domain, before);
            throw e;
        }
        if (status.state() == VgpuStatus.State.WAITING && !wish.required()) {
            return List.of("waiting: " + status.reason());
        }
        return !shm && domain.driver() == Driver.QEMU ? List.of(putGuestSettings(domain)) : List.of();
    }

    /**
     * Holds the domain's tenant, to begin a command.
     *
     * @throws CommandException if another command or operation works on its device.
     */
    private Tenant hold(DomainView domain) {
        Tenant tenant = tenants.hold(domain.uuid(), domain.name(), BESIDE);
        if (tenant != null && !tenant.isBusy()) {
            return tenant;
        }
        if (tenant != null) {
            tenant.release();
        }
        throw CommandException.refused("another change of this domain's vGPU is in progress: " + domain.name());
    }

    /** Waits until the passes have given the domain its vGPU. */
    private static VgpuStatus await(Tenant tenant, Wish wish, Duration limit, Consumer<String> progress) {
        VgpuStatus status;
        try {
            status = tenant.feedback().await(wish, limit, progress).orElseThrow(
                () -> CommandException.refused("the domain has stopped in the meantime: " + tenant.name()));
        } catch (TimeoutException e) {
            throw CommandException.refused(e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw CommandException.refused("hawserd is stopping");
        }
        if (status.state() != VgpuStatus.State.READY
            && (status.state() != VgpuStatus.State.WAITING || wish.required())) {
            throw CommandException.refused(status.reason());
        }
        return status;
    }

    /** Restores the metadata from before a failed attach. */
    private void undo(DomainView domain, DomainXml before) {
        try {
            String xml = before.hasMetadata()
                ? DomainXml.element("vgpu", before.wish(domain.driver()).orElseThrow().attributes()) : null;
            hypervisor.setMetadata(domain.uuid(), Wish.NAMESPACE, Wish.PREFIX, xml, Scope.LIVE);
        } catch (HypervisorException | WishException e) {
            Log.warn(domain.name(), "the metadata of a failed attach could not be removed: " + e.getMessage());
        }
        reconciler.request();
    }

    /** Gives a running guest its settings through its guest agent. Without an agent the note names the file. */
    private String putGuestSettings(DomainView domain) {
        GuestSettings settings = provision.settings(domain.uuid())
            .orElseThrow(() -> CommandException.refused("the guest's settings have been removed"));
        String path = provision.settingsPath(domain.uuid());
        boolean caWritten = settings.ca().isEmpty() || hypervisor.guestAgentWrite(domain.uuid(),
            GUEST_FOLDER + "ca.pem", settings.ca().getBytes(StandardCharsets.UTF_8));
        String text = "[guest]\ncarrier = \"" + settings.carrier() + "\"\nbroker = \"" + settings.broker()
            + "\"\ntoken = \""
            + settings.token() + "\"\n" + (settings.ca().isEmpty() ? "" : "ca_file = \"" + GUEST_FOLDER + "ca.pem\"\n");
        if (caWritten && hypervisor.guestAgentWrite(domain.uuid(), GUEST_FOLDER + "guest.toml",
            text.getBytes(StandardCharsets.UTF_8))) {
            return "the guest has its settings: " + GUEST_FOLDER + "guest.toml";
        }
        return "the guest has no agent to receive its settings: until its next start, copy " + path
            + " from this host to /etc/hawser/guest.toml in the guest";
    }

    /** Removes the vGPU of a running domain. Ends its sessions only by force. */
    void detach(DomainView domain, boolean force, Duration timeout, Consumer<String> progress)
        throws WishException, ShareException {
        DomainXml xml = DomainXml.parse(domain.liveXml());
        if (!xml.hasMetadata() && xml.device().isEmpty() && !hasFunction(xml, domain)) {
            return;
        }
        Tenant tenant = hold(domain);
        tenant.unplugCommandBegan(timeout, System.nanoTime());
        tenant.release();
        try {
            Claim claim = provision.claim(domain.uuid(), shares.readPicture()).orElse(null);
            if (claim != null && claim.sessions() > 0 && !force) {
                throw CommandException.refused("the guest has " + claim.sessions() + " sessions on the vGPU "
                    + claim.vgpu() + ": end its programs first, or use --force to end them");
            }
            if (xml.device().isPresent()) {
                shares.endRegion(xml.regionName());
                hotPlug.unplug(domain.uuid(), timeout, progress);
            }
            if (hasFunction(xml, domain)) {
                functions.unplug(domain.uuid(), timeout, progress);
            }
            hypervisor.setMetadata(domain.uuid(), Wish.NAMESPACE, Wish.PREFIX, null, Scope.LIVE);
            hypervisor.setMetadata(domain.uuid(), VgpuStatus.NAMESPACE, VgpuStatus.PREFIX, null, Scope.LIVE);
        } finally {
            tenant.hold();
            tenant.unplugCommandEnded(System.nanoTime());
            tenant.release();
            reconciler.request();
        }
        awaitRelease(tenant, domain, progress);
    }

    /** Whether the domain has a virtual function from hawserd, with or without valid metadata. */
    private static boolean hasFunction(DomainXml xml, DomainView domain) {
        String function;
        try {
            function = xml.wish(domain.driver()).map(Wish::function).orElse("");
        } catch (WishException e) {
            function = "";
        }
        return new FunctionXml(xml).element(function).isPresent();
    }

    /** Waits until the broker has freed everything, so that the caller can use the room at once. */
    private void awaitRelease(Tenant tenant, DomainView domain, Consumer<String> progress) {
        long end = System.nanoTime() + BESIDE.toNanos();
        while (System.nanoTime() - end < 0) {
            try {
                if (provision.claim(domain.uuid(), shares.readPicture()).isEmpty()) {
                    return;
                }
                tenant.feedback().awaitReport(ASK_AGAIN);
            } catch (ShareException e) {
                progress.accept("the broker does not answer; hawserd will release the vGPU when it does");
                return;
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
        }
        progress.accept("the broker is still releasing the vGPU");
    }
}
