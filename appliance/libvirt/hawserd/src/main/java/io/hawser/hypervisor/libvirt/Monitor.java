package io.hawser.hypervisor.libvirt;

import io.hawser.ctl.Json;
import io.hawser.hypervisor.HypervisorException;
import io.hawser.hypervisor.HypervisorException.Reason;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * What QEMU's monitor says of PCI devices. libvirt has no call for it, and marks a domain that was asked as
 * {@code custom-monitor}: a line in its log and no more.
 */
final class Monitor {
    /** The question. */
    static final String QUERY_PCI = "{\"execute\":\"query-pci\"}";
    private static final long REGION_BAR = 2; // ivshmem-plain has its memory in BAR 2

    private Monitor() { }

    /**
     * The address of BAR 2 of a device.
     *
     * @param answer QEMU's to {@link #QUERY_PCI}.
     * @return empty when there is no such device, or no guest has given it an address.
     */
    static OptionalLong bar2(String answer, String alias) {
        try {
            Object read = Json.read(answer);
            return read instanceof Map<?, ?> map ? in(map.get("return"), alias) : OptionalLong.empty();
        } catch (IOException broken) {
            throw new HypervisorException(Reason.REFUSED, "QEMU's answer to query-pci is no JSON", broken);
        }
    }

    // Buses have "devices"; a bridge has "pci_bridge", and that has "devices" again.
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
                // -1 is QEMU's "none".
                if (one instanceof Map<?, ?> map && Long.valueOf(REGION_BAR).equals(map.get("bar"))
                    && map.get("address") instanceof Long address && address != -1) {
                    return OptionalLong.of(address);
                }
            }
        }
        return OptionalLong.empty();
    }
}
