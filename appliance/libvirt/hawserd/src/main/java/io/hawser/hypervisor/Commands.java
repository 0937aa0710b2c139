package io.hawser.hypervisor;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * The administrator's commands: {@code attach}, {@code detach}, {@code prepare}, the list of domains. Any thread. Each
 * command may take as long as libvirt and the guest do. A failure is a {@link CommandException} with a sentence.
 */
final class Commands {
    /** The time that libvirt, the broker and the reconciler may take in addition to the guest's. */
    private static final Duration BESIDE = Duration.ofSeconds(60);
    /** Interval of the requests to the broker, which reports no end of a vGPU. */
    private static final Duration ASK_AGAIN = Duration.ofMillis(200);
    private static final String GUEST_FOLDER = "/run/hawser/";

    private final Hypervisor hypervisor;
    private final HotPlug hotPlug;
    private final Shares shares;
    private final Provision provision;
    private final Tenants tenants;
    private final Reconciler reconciler;

    Commands(Hypervisor hypervisor, HotPlug hotPlug, Shares shares, Provision provision, Tenants tenants,
        Reconciler reconciler) {
        this.hypervisor = hypervisor;
        this.hotPlug = hotPlug;
        this.shares = shares;
        this.provision = provision;
        this.tenants = tenants;
        this.reconciler = reconciler;
    }

    /**
     * The arguments of {@code attach}.
     *
     * @param live whether to change the running domain; null: if it runs.
     * @param config whether to change the definition; null: if there is one.
     */
    record Attach(Map<String, String> attributes, Boolean live, Boolean config, Duration timeout) { }

    /** The arguments of {@code detach}. */
    record Detach(boolean force, Boolean live, Boolean config, Duration timeout) { }

    private DomainView find(String name) {
        return hypervisor.domain(name).orElseThrow(() -> new CommandException(CommandException.Kind.NO_DOMAIN,
            "there is no such domain: " + name));
    }

    private static boolean isLive(DomainView domain, Boolean wanted) {
        if (Boolean.TRUE.equals(wanted) && !domain.running()) {
            throw refused("the domain does not run: " + domain.name());
        }
        return wanted == null ? domain.running() : wanted;
    }

    private static boolean isConfig(DomainView domain, Boolean wanted) {
        if (Boolean.TRUE.equals(wanted) && domain.inactiveXml() == null) {
            throw refused("the domain is transient and has no definition" 
                + ": " + domain.name());
        }
        return wanted == null ? domain.inactiveXml() != null : wanted;
    }

    /** Gives a domain a vGPU: first the running domain, so that an impossible vGPU never enters the definition. */
    Map<String, Object> attach(String name, Attach wanted, Consumer<String> progress) {
        DomainView domain = find(name);
        boolean live = isLive(domain, wanted.live());
        boolean config = isConfig(domain, wanted.config());
        try {
            Wish wish = Wish.of(wanted.attributes(), domain.driver());
            List<String> notes = new ArrayList<>();
            if (live) {
                attachLive(domain, wish, wanted.timeout(), progress, notes);
            }
            if (config) {
                define(domain, wish);
                if (!live) {
                    notes.add("from the next start on");
                }
            }
            Map<String, Object> answer = view(find(name), picture().orElse(null));
            answer.put("notes", notes);
            return answer;
        } catch (WishException e) {
            throw refused(e.getMessage());
        }
    }

    private void attachLive(DomainView domain, Wish wish, Duration timeout, Consumer<String> progress,
        List<String> notes) throws WishException {
        DomainXml before = DomainXml.parse(domain.liveXml());
        Wish had = before.wish(domain.driver()).orElse(null);
        boolean shm = wish.transport() == Wish.Transport.SHM;
        if (had != null && before.device().isPresent() && (!shm || had.regionBytes() != wish.regionBytes())) {
            throw new WishException("the running domain has a vGPU by " + had.transport().label() + " with the region "
                + Wish.size(had.regionBytes()) + ", which cannot change while it runs: hawserctl detach "
                + domain.name() + " first");
        }
        if (shm && before.device().isEmpty()) {
            Optional<String> refusal = hotPlug.refusal(domain, wish.regionBytes());
            if (refusal.isPresent()) {
                throw refused(refusal.get());
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
            notes.add("waiting: " + status.reason());
        } else if (!shm && domain.driver() == Driver.QEMU) {
            notes.add(putGuestSettings(domain));
        }
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
        throw refused("another change of this domain's vGPU is in progress: " + domain.name());
    }

    private static CommandException refused(String sentence) {
        return new CommandException(CommandException.Kind.REFUSED, sentence);
    }

    /** Waits until the passes have given the domain its vGPU. */
    private static VgpuStatus await(Tenant tenant, Wish wish, Duration limit, Consumer<String> progress) {
        VgpuStatus status;
        try {
            status = tenant.feedback().await(wish, limit, progress).orElseThrow(() ->
                refused("the domain has stopped in the meantime: " + tenant.name()));
        } catch (TimeoutException e) {
            throw refused(e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw refused("hawserd is stopping");
        }
        if (status.state() != VgpuStatus.State.READY
            && (status.state() != VgpuStatus.State.WAITING || wish.required())) {
            throw refused(status.reason());
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

    /** Gives a running guest its settings for TCP through its guest agent. Without an agent the note names the file. */
    private String putGuestSettings(DomainView domain) {
        GuestSettings settings = provision.settings(domain.uuid()).orElseThrow(() ->
            refused("the guest's settings have been removed"));
        String path = provision.settingsPath(domain.uuid());
        boolean caWritten = settings.ca().isEmpty() || hypervisor.guestAgentWrite(domain.uuid(),
            GUEST_FOLDER + "ca.pem", settings.ca().getBytes(java.nio.charset.StandardCharsets.UTF_8));
        String text = "[guest]\ncarrier = \"tcp\"\nbroker = \"" + settings.broker() + "\"\ntoken = \""
            + settings.token() + "\"\n" + (settings.ca().isEmpty() ? "" : "ca_file = \"" + GUEST_FOLDER + "ca.pem\"\n");
        if (caWritten && hypervisor.guestAgentWrite(domain.uuid(), GUEST_FOLDER + "guest.toml",
            text.getBytes(java.nio.charset.StandardCharsets.UTF_8))) {
            return "the guest has its settings: " + GUEST_FOLDER + "guest.toml";
        }
        return "the guest has no agent to receive its settings: until its next start, copy " + path
            + " from this host to /etc/hawser/guest.toml in the guest";
    }

    private void define(DomainView domain, Wish wish) throws WishException {
        DomainXml xml = DomainXml.parse(domain.inactiveXml());
        xml.setWish(wish);
        xml.setGuestFile(wish != null && wish.transport() == Wish.Transport.TCP && domain.driver() == Driver.QEMU
            ? provision.settingsPath(domain.uuid()) : null);
        String text = xml.write();
        hypervisor.defineXml(wish != null && wish.transport() == Wish.Transport.SHM
            ? hotPlug.withDevice(text, domain.uuid(), wish.regionBytes()) : hotPlug.withoutDevice(text));
    }

    /** Removes a domain's vGPU. */
    Map<String, Object> detach(String name, Detach wanted, Consumer<String> progress) {
        DomainView domain = find(name);
        boolean live = isLive(domain, wanted.live());
        boolean config = isConfig(domain, wanted.config());
        try {
            if (live) {
                detachLive(domain, wanted, progress);
            }
            if (config) {
                define(domain, null);
            }
            return view(find(name), picture().orElse(null));
        } catch (WishException e) {
            throw refused(e.getMessage());
        } catch (ShareException e) {
            throw refused(e.getMessage());
        }
    }

    private void detachLive(DomainView domain, Detach wanted, Consumer<String> progress)
        throws WishException, ShareException {
        DomainXml xml = DomainXml.parse(domain.liveXml());
        if (!xml.hasMetadata() && xml.device().isEmpty()) {
            return;
        }
        Tenant tenant = hold(domain);
        tenant.unplugCommandBegan(wanted.timeout(), System.nanoTime());
        tenant.release();
        try {
            Claim claim = shares.readPicture().claim(domain.uuid(), hypervisor.hostUuid()).orElse(null);
            if (claim != null && claim.sessions() > 0 && !wanted.force()) {
                throw refused("the guest has " + claim.sessions()
                    + " sessions on the vGPU " + claim.vgpu() + ": end its programs first, or use --force to end them");
            }
            if (xml.device().isPresent()) {
                shares.endRegion(xml.regionName());
                hotPlug.unplug(domain.uuid(), wanted.timeout(), progress);
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

    /** Waits until the broker has freed everything, so that the caller can use the room at once. */
    private void awaitRelease(Tenant tenant, DomainView domain, Consumer<String> progress) {
        long end = System.nanoTime() + BESIDE.toNanos();
        while (System.nanoTime() - end < 0) {
            Optional<Shares.Picture> picture = picture();
            if (picture.isEmpty()) {
                progress.accept("the broker does not answer; hawserd will release the vGPU when it does");
                return;
            }
            if (picture.get().claim(domain.uuid(), hypervisor.hostUuid()).isEmpty()) {
                return;
            }
            try {
                tenant.feedback().awaitReport(ASK_AGAIN);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
        }
        progress.accept("the broker is still releasing the vGPU");
    }

    /** Adds to a domain's definition what hot-plug needs. */
    Map<String, Object> prepare(String name, long regionBytes) {
        DomainView domain = find(name);
        isConfig(domain, true); // refuses a domain without a definition
        if (domain.driver() == Driver.XEN) {
            throw refused("a Xen domain uses TCP and needs no "
                + "preparation: " + name);
        }
        String prepared = hotPlug.prepared(domain.inactiveXml(), regionBytes);
        boolean changed = !prepared.equals(domain.inactiveXml());
        if (changed) {
            hypervisor.defineXml(prepared);
        }
        Map<String, Object> answer = view(find(name), picture().orElse(null));
        answer.put("notes", List.of(!changed ? "the domain was already prepared" : domain.running()
            ? "prepared from the next start on; a reboot inside the guest does not count as a start" : "prepared"));
        return answer;
    }

    /** The XML, and the virsh commands as comments, that give a domain a vGPU. */
    Map<String, Object> xml(String name, Map<String, String> attributes) {
        DomainView domain = find(name);
        try {
            Wish wish = Wish.of(attributes, domain.driver());
            String metadata = DomainXml.element("vgpu", wish.attributes());
            String scope = (domain.running() ? " --live" : "") + (domain.inactiveXml() != null ? " --config" : "");
            String device = "";
            String text = "<!-- virsh metadata " + domain.name() + " --uri " + Wish.NAMESPACE + " --key " + Wish.PREFIX
                + scope + " --set '...' -->\n" + metadata + "\n";
            if (wish.transport() == Wish.Transport.SHM) {
                device = "<shmem name='" + Shmem.PREFIX + domain.uuid() + "'>\n  <model type='ivshmem-plain'/>\n"
                    + "  <size unit='M'>" + (wish.regionBytes() >> 20) + "</size>\n  <alias name='" + HotPlug.ALIAS
                    + "'/>\n</shmem>";
                // The device comes before the metadata. If a running domain has only the metadata, the reconciler plugs
                // the device in, and libvirt then rejects a second device of this alias.
                text = "<!-- virsh attach-device " + domain.name() + scope + " FILE -->\n" + device + "\n" + text;
            } else if (domain.driver() == Driver.QEMU) {
                device = "<sysinfo type='fwcfg'>\n  <entry name='" + DomainXml.FWCFG_NAME + "' file='"
                    + provision.settingsPath(domain.uuid()) + "'/>\n</sysinfo>";
                text += "<!-- virsh edit " + domain.name() + ", under <domain> -->\n" + device + "\n";
            }
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("metadata", metadata);
            answer.put("device", device);
            answer.put("text", text);
            return answer;
        } catch (WishException e) {
            throw refused(e.getMessage());
        }
    }

    /** All domains that have a vGPU, a device or a wish for one, by name. */
    List<Object> list() {
        Shares.Picture picture = picture().orElse(null);
        return new ArrayList<>(hypervisor.domains().stream().sorted(java.util.Comparator.comparing(DomainView::name))
            .map(domain -> view(domain, picture)).filter(view -> !view.get("status").equals("none")).toList());
    }

    private Optional<Shares.Picture> picture() {
        try {
            return Optional.of(shares.readPicture());
        } catch (ShareException e) {
            return Optional.empty(); // the list shows at least what libvirt knows
        }
    }

    private Map<String, Object> view(DomainView domain, Shares.Picture picture) {
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("domain", domain.name());
        view.put("uuid", domain.uuid().toString());
        view.put("state", domain.running() ? "running" : "off");
        Wish wish = null;
        VgpuStatus status = null;
        String problem = "";
        try {
            DomainXml xml = DomainXml.parse(domain.running() ? domain.liveXml() : domain.inactiveXml());
            status = domain.running() ? xml.status().orElse(null) : null;
            wish = xml.wish(domain.driver()).orElse(null);
        } catch (WishException e) {
            problem = e.getMessage();
        }
        Claim claim = picture == null ? null : picture.claim(domain.uuid(), hypervisor.hostUuid()).orElse(null);
        view.put("vgpu", claim != null ? claim.vgpu() : status != null ? status.vgpu() : "");
        view.put("transport", wish == null ? "" : wish.transport().label());
        if (!problem.isEmpty()) {
            status = new VgpuStatus(VgpuStatus.State.REFUSED, "", "", Instant.now(), problem, "metadata");
        }
        view.put("status", status != null ? status.state().label() : wish == null ? "none"
            : domain.running() ? "waiting" : "configured");
        view.put("reason", status == null ? "" : status.reason());
        view.put("since", status == null ? "" : status.since().toString());
        view.put("sessions", claim == null ? 0 : claim.sessions());
        if (wish != null) {
            view.put("memoryBytes", wish.memoryBytes());
            view.put("share", wish.share());
            view.put("mode", wish.mode().label());
            view.put("gpus", wish.gpus());
            view.put("maxSessions", wish.sessions());
            view.put("regionBytes", wish.regionBytes());
            view.put("required", wish.required());
        }
        return view;
    }
}
