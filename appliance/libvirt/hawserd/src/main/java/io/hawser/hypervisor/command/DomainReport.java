package io.hawser.hypervisor.command;

import io.hawser.hypervisor.broker.Claim;
import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;
import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.model.FabricAddress;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Domains and their vGPUs in the form of the answers to commands, from libvirt and the broker. Any thread. */
final class DomainReport {
    private final Hypervisor hypervisor;
    private final Shares shares;

    DomainReport(Hypervisor hypervisor, Shares shares) {
        this.hypervisor = hypervisor;
        this.shares = shares;
    }

    /** All domains that have a vGPU, a device or a wish for one, by name. */
    List<Object> all() {
        Shares.Picture picture = picture();
        return new ArrayList<>(hypervisor.domains().stream().sorted(Comparator.comparing(DomainView::name))
            .map(domain -> view(domain, picture)).filter(view -> !view.get("status").equals("none")).toList());
    }

    /** A domain. */
    Map<String, Object> of(DomainView domain) {
        return view(domain, picture());
    }

    /** The broker's state; null if the broker is away, because the answer then shows at least what libvirt knows. */
    private Shares.Picture picture() {
        try {
            return shares.readPicture();
        } catch (ShareException e) {
            return null;
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
            view.put("swappable", wish.swappable());
            view.put("maxSessions", wish.sessions());
            view.put("regionBytes", wish.regionBytes());
            view.put("network", wish.network());
            view.put("function", wish.function());
            view.put("fabricAddress", !wish.hasNetwork() ? "" : wish.function().isEmpty()
                ? FabricAddress.mac(domain.uuid()) : FabricAddress.portGuid(domain.uuid()));
            view.put("required", wish.required());
        }
        return view;
    }
}
