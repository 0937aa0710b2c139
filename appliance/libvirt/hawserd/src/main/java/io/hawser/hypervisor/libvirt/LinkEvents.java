package io.hawser.hypervisor.libvirt;

import java.util.UUID;

/** Where the event loop puts what happens. Must return at once: all connections share the loop. */
interface LinkEvents {
    /** Numbers are libvirt's {@code virDomainEventType} and its details. */
    void lifecycle(UUID domain, String name, int event, int detail);

    /** A device more. */
    void deviceAdded(UUID domain, String alias);

    /** A device less. */
    void deviceRemoved(UUID domain, String alias);

    /** An element set or removed. */
    void metadataChanged(UUID domain, String namespace);
}
