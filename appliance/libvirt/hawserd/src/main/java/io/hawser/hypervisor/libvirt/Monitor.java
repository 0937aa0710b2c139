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
    private static final long REGION_BAR = 2; // BAR 2 of ivshmem-plain is its memory

    private Monitor() {}

    /**
     * The address of a device's BAR 2.
     *
     * @param answer QEMU's answer to {@link #QUERY_PCI}.
     * @return empty if there is no such device, or no guest has assigned an address.
     */
    static OptionalLong bar2(String answer, String alias) {
        try {
            Object read = Json.read(answer);
            return read instanceof Map<?, ?> map ? in(map.get("return"), alias) : OptionalLong.empty();
        } catch (IOException broken) {
            throw new HypervisorException(Reason.REFUSED, "QEMU's answer to query-pci is not JSON", broken);
        }
    }

    // A bus has "devices"; a bridge has a "pci_bridge" with further "devices".
    private static OptionalLong in(Object node, String alias) {
        if (node instanceof List<?> list) {
            for (Object one : list) {
                OptionalLong found = in(one, alias);
                if (found.isPresent()) {
                    return found;
                }
            }
        } else if (node instanceof Map<?, ?> map) {
            if (alias.equals(map.get("qdev_id"))) {
                return ofRegions(map.get("regions"));
            }
            OptionalLong found = in(map.get("devices"), alias);
            return found.isPresent() ? found : in(map.get("pci_bridge"), alias);
        }
        return OptionalLong.empty();
    }

    private static OptionalLong ofRegions(Object regions) {
        if (regions instanceof List<?> list) {
            for (Object one : list) {
                // -1 is QEMU's "no address".
                if (one instanceof Map<?, ?> map && Long.valueOf(REGION_BAR).equals(map.get("bar"))
                    && map.get("address") instanceof Long address && address != -1) {
                    return OptionalLong.of(address);
                }
            }
        }
        return OptionalLong.empty();
    }
}
