package io.hawser.hypervisor.libvirt;

import com.sun.jna.Callback;
import com.sun.jna.Pointer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;

/**
 * The functions that libvirt calls for a connection and each one that takes its place. As long as the process holds
 * them, none of them goes away while libvirt is in it.
 */
final class Callbacks {
    private final Map<Integer, Callback> byEvent;

    Callbacks(LinkEvents events) {
        LibvirtCalls.LifecycleCallback lifecycle = (connection, domain, event, detail, opaque) -> {
            events.lifecycle(uuid(domain), LibvirtCalls.LIBVIRT.virDomainGetName(domain), event, detail);
            return 0;
        };
        LibvirtCalls.DeviceCallback added = (connection, domain, alias, opaque) ->
            events.deviceAdded(uuid(domain), alias);
        LibvirtCalls.DeviceCallback removed = (connection, domain, alias, opaque) ->
            events.deviceRemoved(uuid(domain), alias);
        LibvirtCalls.MetadataCallback metadata = (connection, domain, type, namespace, opaque) -> {
            if (type == LibvirtCalls.METADATA_ELEMENT && namespace != null) {
                events.metadataChanged(uuid(domain), namespace);
            }
        };
        byEvent = Map.of(LibvirtCalls.EVENT_LIFECYCLE, lifecycle, LibvirtCalls.EVENT_DEVICE_ADDED, added,
            LibvirtCalls.EVENT_DEVICE_REMOVED, removed, LibvirtCalls.EVENT_METADATA_CHANGE, metadata);
    }

    /** Each by the number of its event. */
    Map<Integer, Callback> byEvent() {
        return byEvent;
    }

    private static UUID uuid(Pointer domain) {
        byte[] text = new byte[LibvirtCalls.UUID_TEXT_BYTES];
        LibvirtCalls.LIBVIRT.virDomainGetUUIDString(domain, text);
        return UUID.fromString(new String(text, 0, text.length - 1, StandardCharsets.US_ASCII));
    }
}
