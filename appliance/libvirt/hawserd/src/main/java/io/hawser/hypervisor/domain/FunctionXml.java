package io.hawser.hypervisor.domain;

import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.FabricAddress;
import io.hawser.hypervisor.model.Wish;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

/**
 * The virtual function of a vGPU in a domain's XML. From a network of RoCE adapters it is an interface, which has the
 * domain's Ethernet address. Of an InfiniBand adapter it is a host device, which the metadata names. Not thread-safe.
 */
public final class FunctionXml {
    /** The alias in QEMU domains. libxl keeps no aliases. */
    public static final String ALIAS = "ua-hawser-rdma";

    private final DomainXml xml;

    public FunctionXml(DomainXml xml) {
        this.xml = xml;
    }

    /** Whether the domain has the function that a wish asks for. */
    public boolean has(Wish wish) {
        return wish.function().isEmpty() ? ownInterface().isPresent() : hostDevice(wish.function()).isPresent();
    }

    /**
     * The domain's function, also without a valid wish.
     *
     * @param function of the wish; empty if it names none.
     */
    public Optional<Element> element(String function) {
        return ownInterface().or(() -> function.isEmpty() ? Optional.empty() : hostDevice(function))
            .or(() -> DomainXml.children(devices(), "hostdev").stream().filter(FunctionXml::hasAlias).findFirst());
    }

    /** The PCI address of an InfiniBand function; empty if the domain has none, or a RoCE function. */
    public Optional<String> address(String function) {
        return element(function).filter(device -> device.getNodeName().equals("hostdev"))
            .flatMap(device -> sources(device).stream().findFirst());
    }

    /** The domain's function as text, without the parts that libvirt adds. */
    public Optional<String> text(String function) {
        return element(function).map(device -> {
            Element copy = (Element) device.cloneNode(true);
            for (String part : new String[] {"address", "alias", "driver"}) {
                DomainXml.children(copy, part).forEach(copy::removeChild);
            }
            return DomainXml.text(copy);
        });
    }

    private Optional<Element> ownInterface() {
        String mac = FabricAddress.mac(xml.uuid());
        return DomainXml.children(devices(), "interface").stream().filter(one -> DomainXml.children(one, "mac").stream()
            .anyMatch(m -> m.getAttribute("address").equalsIgnoreCase(mac))).findFirst();
    }

    private Optional<Element> hostDevice(String function) {
        return DomainXml.children(devices(), "hostdev").stream().filter(one -> sources(one).contains(function))
            .findFirst();
    }

    private static boolean hasAlias(Element device) {
        return DomainXml.children(device, "alias").stream().anyMatch(a -> a.getAttribute("name").equals(ALIAS));
    }

    /** The PCI addresses of all devices of the host that the domain has. */
    public Set<String> hostDevices() {
        Set<String> all = new LinkedHashSet<>();
        for (String kind : new String[] {"interface", "hostdev"}) {
            DomainXml.children(devices(), kind).forEach(device -> all.addAll(sources(device)));
        }
        return all;
    }

    private static Set<String> sources(Element device) {
        Set<String> all = new LinkedHashSet<>();
        for (Element source : DomainXml.children(device, "source")) {
            DomainXml.children(source, "address").stream().filter(a -> !a.getAttribute("bus").isEmpty())
                .forEach(a -> all.add(PciAddress.of(a)));
        }
        return all;
    }

    /** Adds the function that a wish asks for, or replaces another one; null removes it. */
    public void set(Wish wish, Driver driver, String functionBefore) {
        Optional<Element> before = element(functionBefore);
        if (wish != null && before.isPresent() && has(wish) && fits(before.get(), wish)) {
            return;
        }
        before.ifPresent(device -> device.getParentNode().removeChild(device));
        if (wish != null) {
            devices().appendChild(device(wish, driver));
        }
    }

    private static boolean fits(Element device, Wish wish) {
        return !wish.function().isEmpty() || DomainXml.children(device, "source").stream()
            .anyMatch(source -> source.getAttribute("network").equals(wish.network()));
    }

    /** The device that a wish asks for, as text. */
    public String text(Wish wish, Driver driver) {
        return DomainXml.text(device(wish, driver));
    }

    private Element device(Wish wish, Driver driver) {
        Document document = xml.document();
        Element device = document.createElement(wish.function().isEmpty() ? "interface" : "hostdev");
        if (wish.function().isEmpty()) {
            device.setAttribute("type", "network");
            append(device, "mac").setAttribute("address", FabricAddress.mac(xml.uuid()));
            append(device, "source").setAttribute("network", wish.network());
        } else {
            device.setAttribute("mode", "subsystem");
            device.setAttribute("type", "pci");
            device.setAttribute("managed", "yes");
            PciAddress.put(append(append(device, "source"), "address"), wish.function());
        }
        if (driver == Driver.QEMU) {
            append(device, "alias").setAttribute("name", ALIAS);
        }
        return device;
    }

    private static Element append(Element parent, String name) {
        return (Element) parent.appendChild(parent.getOwnerDocument().createElement(name));
    }

    private Element devices() {
        Element root = xml.document().getDocumentElement();
        return DomainXml.children(root, "devices").stream().findFirst().orElseGet(() -> append(root, "devices"));
    }
}
