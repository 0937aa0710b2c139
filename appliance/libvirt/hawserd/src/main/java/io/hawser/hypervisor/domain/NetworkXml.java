package io.hawser.hypervisor.domain;

import io.hawser.hypervisor.model.WishException;
import java.util.List;
import org.w3c.dom.Element;

/**
 * A network of libvirt.
 *
 * @param mode of its forwarding, such as {@code hostdev}; empty for an isolated network.
 * @param adapters the network interfaces of the physical functions that it names.
 * @param functions the PCI addresses of the virtual functions that it lists.
 */
public record NetworkXml(String mode, List<String> adapters, List<String> functions) {
    /**
     * Parses a network's XML.
     *
     * @throws WishException if the text is no XML.
     */
    public static NetworkXml parse(String xml) throws WishException {
        Element root = DomainXml.document(xml).getDocumentElement();
        for (Element forward : DomainXml.children(root, "forward")) {
            return new NetworkXml(forward.hasAttribute("mode") ? forward.getAttribute("mode") : "nat",
                DomainXml.children(forward, "pf").stream().map(pf -> pf.getAttribute("dev")).toList(),
                DomainXml.children(forward, "address").stream().map(PciAddress::of).toList());
        }
        return new NetworkXml("", List.of(), List.of());
    }
}
