package io.hawser.hypervisor.command;

import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;
import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.Functions;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import io.hawser.hypervisor.reconcile.Reconciler;
import io.hawser.hypervisor.share.Provision;
import io.hawser.hypervisor.tenant.Tenants;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The administrator's commands: {@code attach}, {@code detach}, {@code prepare}, the list of domains. Any thread. Each
 * command may take as long as libvirt and the guest do. A failure is a {@link CommandException} with a sentence.
 */
public final class Commands {
    private final Hypervisor hypervisor;
    private final Functions functions;
    private final LiveCommands liveCommands;
    private final Definitions definitions;
    private final DomainReport report;

    public Commands(Hypervisor hypervisor, HotPlug hotPlug, Functions functions, Shares shares, Provision provision,
        Tenants tenants, Reconciler reconciler) {
        this.hypervisor = hypervisor;
        this.functions = functions;
        liveCommands = new LiveCommands(hypervisor, hotPlug, functions, shares, provision, tenants, reconciler);
        definitions = new Definitions(hypervisor, hotPlug, functions, provision);
        report = new DomainReport(hypervisor, shares);
    }

    /**
     * The arguments of {@code attach}.
     *
     * @param live whether to change the running domain; null: if it runs.
     * @param config whether to change the definition; null: if there is one.
     */
    public record Attach(Map<String, String> attributes, Boolean live, Boolean config, Duration timeout) {}

    /** The arguments of {@code detach}. */
    public record Detach(boolean force, Boolean live, Boolean config, Duration timeout) {}

    private DomainView find(String name) {
        return hypervisor.domain(name).orElseThrow(() -> new CommandException(CommandException.Kind.NO_DOMAIN,
            "there is no such domain: " + name));
    }

    private static boolean isLive(DomainView domain, Boolean wanted) {
        if (Boolean.TRUE.equals(wanted) && !domain.running()) {
            throw CommandException.refused("the domain does not run: " + domain.name());
        }
        return wanted == null ? domain.running() : wanted;
    }

    private static boolean isConfig(DomainView domain, Boolean wanted) {
        if (Boolean.TRUE.equals(wanted) && domain.inactiveXml() == null) {
            throw CommandException.refused("the domain is transient and has no definition: " + domain.name());
        }
        return wanted == null ? domain.inactiveXml() != null : wanted;
    }

    /** Gives a domain a vGPU: first the running domain, so that an impossible vGPU never enters the definition. */
    public Map<String, Object> attach(String name, Attach wanted, Consumer<String> progress) {
        DomainView domain = find(name);
        boolean live = isLive(domain, wanted.live());
        boolean config = isConfig(domain, wanted.config());
        try {
            Wish wish = functions.choose(domain, Wish.of(wanted.attributes(), domain.driver()));
            List<String> notes = new ArrayList<>();
            if (live) {
                notes.addAll(liveCommands.attach(domain, wish, wanted.timeout(), progress));
            }
            if (config) {
                definitions.define(domain, wish);
                if (!live) {
                    notes.add("from the next start on");
                }
            }
            Map<String, Object> answer = report.of(find(name));
            answer.put("notes", notes);
            return answer;
        } catch (WishException e) {
            throw CommandException.refused(e.getMessage());
        } finally {
            functions.chosen(domain.uuid());
        }
    }

    /** Removes a domain's vGPU. */
    public Map<String, Object> detach(String name, Detach wanted, Consumer<String> progress) {
        DomainView domain = find(name);
        boolean live = isLive(domain, wanted.live());
        boolean config = isConfig(domain, wanted.config());
        try {
            if (live) {
                liveCommands.detach(domain, wanted.force(), wanted.timeout(), progress);
            }
            if (config) {
                definitions.define(domain, null);
            }
            return report.of(find(name));
        } catch (WishException | ShareException e) {
            throw CommandException.refused(e.getMessage());
        }
    }

    /** Adds to a domain's definition what hot-plug needs. */
    public Map<String, Object> prepare(String name, long regionBytes) {
        DomainView domain = find(name);
        isConfig(domain, true); // refuses a domain without a definition
        if (domain.driver() == Driver.XEN) {
            throw CommandException.refused("a Xen domain has no region and needs no preparation: " + name);
        }
        boolean changed = definitions.prepare(domain, regionBytes);
        Map<String, Object> answer = report.of(find(name));
        answer.put("notes", List.of(!changed ? "the domain was already prepared" : domain.running()
            ? "prepared from the next start on; a reboot inside the guest does not count as a start" : "prepared"));
        return answer;
    }

    /** The XML, and the virsh commands as comments, that give a domain a vGPU. */
    public Map<String, Object> xml(String name, Map<String, String> attributes) {
        DomainView domain = find(name);
        try {
            return definitions.xml(domain, functions.choose(domain, Wish.of(attributes, domain.driver())));
        } catch (WishException e) {
            throw CommandException.refused(e.getMessage());
        } finally {
            functions.chosen(domain.uuid());
        }
    }

    /** All domains that have a vGPU, a device or a wish for one, by name. */
    public List<Object> list() {
        return report.all();
    }
}
