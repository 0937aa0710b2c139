package io.hawser.hypervisor.libvirt;

import java.util.UUID;

/** Receives events in the event loop's thread. Must return at once: all connections share the loop. */
interface LinkEvents {
    /** The numbers are libvirt's {@code virDomainEventType} and its details. */
    void lifecycle(UUID domain, String name, int event, int detail);

    /** A device was added. */
    void deviceAdded(UUID domain, String alias);

    /** A device was removed. */
    void deviceRemoved(UUID domain, String alias);

    /** An element was set or removed. */
    void metadataChanged(UUID domain, String namespace);
}
