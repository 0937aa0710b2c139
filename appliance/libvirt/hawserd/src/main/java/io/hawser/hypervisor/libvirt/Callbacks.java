package io.hawser.hypervisor.libvirt;

import com.sun.jna.Callback;
import com.sun.jna.Pointer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;

/**
 * The native callbacks of a connection and its successors. While this object is reachable, the garbage collector cannot
 * free a callback that libvirt is executing.
 */
final class Callbacks {
    private final Map<Integer, Callback> byEvent;

    Callbacks(LinkEvents events) {
        LibvirtCalls.LifecycleCallback lifecycle = (connection, domain, event, detail, opaque) -> {
            events.lifecycle(uuid(domain), LibvirtCalls.LIBVIRT.virDomainGetName(domain), event, detail);
            return 0;
        };
        LibvirtCalls.DeviceCallback added =
            (connection, domain, alias, opaque) -> events.deviceAdded(uuid(domain), alias);
        LibvirtCalls.DeviceCallback removed =
            (connection, domain, alias, opaque) -> events.deviceRemoved(uuid(domain), alias);
        LibvirtCalls.MetadataCallback metadata = (connection, domain, type, namespace, opaque) -> {
            if (type == LibvirtCalls.METADATA_ELEMENT && namespace != null) {
                events.metadataChanged(uuid(domain), namespace);
            }
        };
        byEvent = Map.of(LibvirtCalls.EVENT_LIFECYCLE, lifecycle, LibvirtCalls.EVENT_DEVICE_ADDED, added,
            LibvirtCalls.EVENT_DEVICE_REMOVED, removed, LibvirtCalls.EVENT_METADATA_CHANGE, metadata);
    }

    /** The callbacks by number of their event. */
    Map<Integer, Callback> byEvent() {
        return byEvent;
    }

    private static UUID uuid(Pointer domain) {
        byte[] text = new byte[LibvirtCalls.UUID_TEXT_BYTES];
        LibvirtCalls.LIBVIRT.virDomainGetUUIDString(domain, text);
        return UUID.fromString(new String(text, 0, text.length - 1, StandardCharsets.US_ASCII));
    }
}
