package io.hawser.hypervisor.command;

import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.FunctionXml;
import io.hawser.hypervisor.domain.Functions;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.Shmem;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import io.hawser.hypervisor.share.Provision;
import java.util.LinkedHashMap;
import java.util.Map;

/** The part of the commands that concerns a domain's definition. Any thread. */
final class Definitions {
    private final Hypervisor hypervisor;
    private final HotPlug hotPlug;
    private final Functions functions;
    private final Provision provision;

    Definitions(Hypervisor hypervisor, HotPlug hotPlug, Functions functions, Provision provision) {
        this.hypervisor = hypervisor;
        this.hotPlug = hotPlug;
        this.functions = functions;
        this.provision = provision;
    }

    /** Sets the wish, the device and the guest's settings in a domain's definition; null removes them. */
    void define(DomainView domain, Wish wish) throws WishException {
        DomainXml xml = DomainXml.parse(domain.inactiveXml());
        String functionBefore = functionOf(xml, domain.driver());
        xml.setWish(wish);
        xml.setGuestFile(wish != null && wish.transport() != Wish.Transport.SHM && domain.driver() == Driver.QEMU
            ? provision.settingsPath(domain.uuid()) : null);
        String text = functions.defined(xml.write(), domain.driver(), wish == null || !wish.hasNetwork() ? null : wish,
            functionBefore);
        hypervisor.defineXml(wish != null && wish.transport() == Wish.Transport.SHM
            ? hotPlug.withDevice(text, domain.uuid(), wish.regionBytes()) : hotPlug.withoutDevice(text));
    }

    /** The function that a definition's metadata names; empty if it names none, or is invalid. */
    private static String functionOf(DomainXml xml, Driver driver) {
        try {
            return xml.wish(driver).map(Wish::function).orElse("");
        } catch (WishException e) {
            return "";
        }
    }

    /**
     * Adds to a domain's definition what hot-plug of such a region needs.
     *
     * @return whether the definition has changed.
     */
    boolean prepare(DomainView domain, long regionBytes) {
        String prepared = hotPlug.prepared(domain.inactiveXml(), regionBytes);
        boolean changed = !prepared.equals(domain.inactiveXml());
        if (changed) {
            hypervisor.defineXml(prepared);
        }
        return changed;
    }

    /** The XML, and the virsh commands as comments, that give a domain a vGPU. */
    Map<String, Object> xml(DomainView domain, Wish wish) throws WishException {
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
        } else {
            if (wish.hasNetwork()) {
                device = new FunctionXml(DomainXml.parse(domain.inactiveXml() != null ? domain.inactiveXml()
                    : domain.liveXml())).text(wish, domain.driver());
                // Before the metadata, as above.
                text = "<!-- virsh attach-device " + domain.name() + scope + " FILE -->\n" + device + "\n" + text;
            }
            String settings = settings(domain);
            if (!settings.isEmpty()) {
                device = device.isEmpty() ? settings : device;
                text += "<!-- virsh edit " + domain.name() + ", under <domain> -->\n" + settings + "\n";
            }
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("metadata", metadata);
        answer.put("device", device);
        answer.put("text", text);
        return answer;
    }

    /** The element that shows the guest its settings; empty for Xen, whose guests read XenStore. */
    private String settings(DomainView domain) {
        return domain.driver() != Driver.QEMU ? "" : "<sysinfo type='fwcfg'>\n  <entry name='" + DomainXml.FWCFG_NAME
            + "' file='" + provision.settingsPath(domain.uuid()) + "'/>\n</sysinfo>";
    }
}
