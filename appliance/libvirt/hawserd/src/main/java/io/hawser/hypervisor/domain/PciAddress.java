package io.hawser.hypervisor.domain;

import org.w3c.dom.Element;

/** PCI addresses in XML and as text: {@code 0000:3b:00.2}. */
final class PciAddress {
    private PciAddress() {}

    /** The address of an element of libvirt; empty if its numbers are invalid. */
    static String of(Element address) {
        try {
            return "%04x:%02x:%02x.%x".formatted(number(address, "domain"), number(address, "bus"),
                number(address, "slot"), number(address, "function"));
        } catch (NumberFormatException e) {
            return "";
        }
    }

    private static int number(Element address, String name) {
        String text = address.getAttribute(name);
        return text.isEmpty() ? 0 : Integer.decode(text);
    }

    /** Sets the attributes of libvirt's element. */
    static void put(Element element, String address) {
        String[] parts = address.split("[:.]");
        element.setAttribute("domain", "0x" + parts[0]);
        element.setAttribute("bus", "0x" + parts[1]);
        element.setAttribute("slot", "0x" + parts[2]);
        element.setAttribute("function", "0x" + parts[3]);
    }
}
