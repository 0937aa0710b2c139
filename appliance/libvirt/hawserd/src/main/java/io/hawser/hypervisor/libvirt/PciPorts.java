package io.hawser.hypervisor.libvirt;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.XMLConstants;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

/**
 * The places for hot-plugged PCI devices in a domain's XML: the root ports of a q35 machine, and the memory that QEMU
 * reserves behind them. Each call reads the document; {@link #add}, {@link #insert} and {@link #reserve} change it.
 */
final class PciPorts {
    /** Namespace of QEMU's arguments. */
    static final String QEMU_NAMESPACE = "http://libvirt.org/schemas/domain/qemu/1.0";
    private static final String RESERVE = "pref64-reserve";
    private static final String GLOBAL = "pcie-root-port." + RESERVE + "=";
    private static final Pattern LONG_GLOBAL =
        Pattern.compile("driver=pcie-root-port,property=" + RESERVE + ",value=(.*)");
    private static final Pattern SIZE = Pattern.compile("(\\d{1,12})([kKmMgGtT]?)");

    private final Document document;
    private final Element root;

    PciPorts(Document document) {
        this.document = document;
        this.root = document.getDocumentElement();
    }

    /**
     * The bus numbers of the root ports that are free and allow hot-plug.
     *
     * @param but a device whose port counts as free; null for none.
     */
    List<Integer> free(Element but) {
        Set<Integer> used = new HashSet<>();
        for (Element device : children(devices(), null)) {
            // Only the device's own addresses: an address inside <source> is the host's.
            for (Element address : device == but ? List.<Element>of() : children(device, "address")) {
                if (address.getAttribute("type").equals("pci")) {
                    number(address.getAttribute("bus")).ifPresent(used::add);
                }
            }
        }
        List<Integer> free = new ArrayList<>();
        for (Element port : rootPorts()) {
            boolean fixed = children(port, "target").stream().anyMatch(t -> t.getAttribute("hotplug").equals("off"));
            OptionalInt bus = number(port.getAttribute("index"));
            if (!fixed && bus.isPresent() && !used.contains(bus.getAsInt())) {
                free.add(bus.getAsInt());
            }
        }
        free.sort(null);
        return free;
    }

    private List<Element> rootPorts() {
        return controllers().stream().filter(c -> c.getAttribute("model").equals("pcie-root-port")).toList();
    }

    private List<Element> controllers() {
        return children(devices(), "controller").stream().filter(c -> c.getAttribute("type").equals("pci")).toList();
    }

    Element devices() {
        return children(root, "devices").stream().findFirst().orElseGet(() -> (Element) root.appendChild(
            document.createElement("devices")));
    }

    /** Adds a root port and returns its bus number. libvirt chooses the port's own address. */
    int add() {
        int last = 0; // the root complex, which libvirt adds if the XML has none
        Element behind = null;
        for (Element controller : controllers()) {
            last = Math.max(last, number(controller.getAttribute("index")).orElse(0));
            behind = controller;
        }
        Element port = document.createElement("controller");
        port.setAttribute("type", "pci");
        port.setAttribute("index", Integer.toString(last + 1));
        port.setAttribute("model", "pcie-root-port");
        insert(port, behind);
        return last + 1;
    }

    /** Adds a device on a line of its own. */
    void insert(Element device, Element behind) {
        Node before = behind == null ? null : behind.getNextSibling();
        devices().insertBefore(document.createTextNode("\n    "), before);
        devices().insertBefore(device, before);
    }

    /**
     * The bytes of prefetchable memory that QEMU reserves behind a root port.
     *
     * @return 0 if the XML sets no reservation.
     */
    long reservedBytes(int bus) {
        Optional<Element> own = overridden(bus);
        if (own.isPresent()) {
            return bytes(own.get().getAttribute("value"));
        }
        return global().map(arg -> bytes(valueOf(arg.getAttribute("value")))).orElse(0L);
    }

    /** Makes QEMU reserve memory behind a root port: in the port's own property if it has one, else for all ports. */
    void reserve(int bus, long bytes) {
        Optional<Element> own = overridden(bus);
        if (own.isPresent()) {
            own.get().setAttribute("type", "unsigned");
            own.get().setAttribute("value", Long.toString(bytes));
            return;
        }
        String value = GLOBAL + bytes / (1 << 20) + "M";
        Optional<Element> there = global();
        if (there.isPresent()) {
            there.get().setAttribute("value", value);
            return;
        }
        Element line = childrenNs(root, "commandline").stream().findFirst().orElse(null);
        if (line == null) {
            root.setAttributeNS(XMLConstants.XMLNS_ATTRIBUTE_NS_URI, "xmlns:qemu", QEMU_NAMESPACE);
            line = document.createElementNS(QEMU_NAMESPACE, "qemu:commandline");
            root.appendChild(line);
        }
        for (String text : List.of("-global", value)) {
            Element arg = document.createElementNS(QEMU_NAMESPACE, "qemu:arg");
            arg.setAttribute("value", text);
            line.appendChild(arg);
        }
    }

    /** The argument of QEMU's command line that sets the reservation of all ports; the last one counts. */
    private Optional<Element> global() {
        Element found = null;
        for (Element line : childrenNs(root, "commandline")) {
            String before = "";
            for (Element arg : childrenNs(line, "arg")) {
                String value = arg.getAttribute("value");
                if (before.equals("-global") && !valueOf(value).isEmpty()) {
                    found = arg;
                }
                before = value;
            }
        }
        return Optional.ofNullable(found);
    }

    private static String valueOf(String global) {
        Matcher parts = LONG_GLOBAL.matcher(global);
        return parts.matches() ? parts.group(1) : global.startsWith(GLOBAL) ? global.substring(GLOBAL.length()) : "";
    }

    /** The reservation of one port in {@code <qemu:override>}. */
    private Optional<Element> overridden(int bus) {
        String alias = rootPorts().stream().filter(p -> number(p.getAttribute("index")).equals(OptionalInt.of(bus)))
            .flatMap(p -> children(p, "alias").stream()).map(a -> a.getAttribute("name")).findFirst()
            .orElse("pci." + bus);
        return childrenNs(root, "override").stream().flatMap(o -> childrenNs(o, "device").stream())
            .filter(d -> d.getAttribute("alias").equals(alias))
            .flatMap(d -> childrenNs(d, "frontend").stream()).flatMap(f -> childrenNs(f, "property").stream())
            .filter(p -> p.getAttribute("name").equals(RESERVE) && p.getAttribute("type").matches("unsigned|string"))
            .findFirst();
    }

    /** Parses a size as QEMU does. */
    private static long bytes(String text) {
        Matcher parts = SIZE.matcher(text);
        if (!parts.matches()) {
            return 0;
        }
        int shift = switch (parts.group(2)) {
            case "k", "K" -> 10;
            case "m", "M" -> 20;
            case "g", "G" -> 30;
            case "t", "T" -> 40;
            default -> 0;
        };
        long number = Long.parseLong(parts.group(1));
        return number > Long.MAX_VALUE >> shift ? Long.MAX_VALUE : number << shift;
    }

    /** libvirt writes addresses in hexadecimal, indices in decimal. */
    private static OptionalInt number(String text) {
        try {
            return OptionalInt.of(Integer.decode(text));
        } catch (NumberFormatException none) {
            return OptionalInt.empty();
        }
    }

    /** Elements of libvirt's namespace with a name; all of them if the name is null. */
    static List<Element> children(Element parent, String name) {
        return children(parent, null, name);
    }

    private static List<Element> childrenNs(Element parent, String name) {
        return children(parent, QEMU_NAMESPACE, name);
    }

    private static List<Element> children(Element parent, String namespace, String name) {
        List<Element> found = new ArrayList<>();
        for (Node node = parent.getFirstChild(); node != null; node = node.getNextSibling()) {
            if (node instanceof Element element && Objects.equals(namespace, element.getNamespaceURI())
            // An element that was created without a namespace has no local name.
                && (name == null || name.equals(namespace == null ? element.getNodeName() : element.getLocalName()))) {
                found.add(element);
            }
        }
        return found;
    }
}
