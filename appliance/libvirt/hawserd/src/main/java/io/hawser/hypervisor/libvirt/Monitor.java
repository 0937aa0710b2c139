package io.hawser.hypervisor.libvirt;

import io.hawser.client.Json;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * Reads PCI devices from QEMU's monitor, because libvirt has no call for them. libvirt then marks the domain as {@code
 * custom-monitor}; the only effect is a line in libvirt's log.
 */
final class Monitor {
    /** The monitor command. */
    static final String QUERY_PCI = "{\"execute\":\"query-pci\"}";

    private Monitor() {}

    /**
     * The address of a device's memory.
     *
     * @param answer QEMU's answer to {@link #QUERY_PCI}.
     * @param bar the number of the base address register.
     * @return empty if there is no such device, or no guest has assigned an address.
     */
    static OptionalLong bar(String answer, String alias, int bar) {
        try {
            Object read = Json.read(answer);
            return read instanceof Map<?, ?> map ? in(map.get("return"), alias, bar) : OptionalLong.empty();
        } catch (IOException broken) {
            throw new HypervisorException(Reason.REFUSED, "QEMU's answer to query-pci is not JSON", broken);
        }
    }

    // A bus has "devices"; a bridge has a "pci_bridge" with further "devices".
    private static OptionalLong in(Object node, String alias, int bar) {
        if (node instanceof List<?> list) {
            for (Object one : list) {
                OptionalLong found = in(one, alias, bar);
                if (found.isPresent()) {
                    return found;
                }
            }
        } else if (node instanceof Map<?, ?> map) {
            if (alias.equals(map.get("qdev_id"))) {
                return ofRegions(map.get("regions"), bar);
            }
            OptionalLong found = in(map.get("devices"), alias, bar);
            return found.isPresent() ? found : in(map.get("pci_bridge"), alias, bar);
        }
        return OptionalLong.empty();
    }

    private static OptionalLong ofRegions(Object regions, long bar) {
        if (regions instanceof List<?> list) {
            for (Object one : list) {
                // -1 is QEMU's "no address".
                if (one instanceof Map<?, ?> map && Long.valueOf(bar).equals(map.get("bar"))
                    && map.get("address") instanceof Long address && address != -1) {
                    return OptionalLong.of(address);
                }
            }
        }
        return OptionalLong.empty();
    }
}
