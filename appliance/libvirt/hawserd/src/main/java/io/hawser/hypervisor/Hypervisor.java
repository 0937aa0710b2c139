package io.hawser.hypervisor;

import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.UUID;

/**
 * Everything that hawserd asks of libvirt. Any thread may call; a call blocks as long as libvirt does, which may hold a
 * domain for as long as a hook runs: nobody calls it while answering a hook, or with a lock that a hook's answer needs.
 * Each call may throw {@link HypervisorException}. It connects again by itself, and says so to its listener.
 */
public interface Hypervisor extends AutoCloseable {
    /** The host's UUID as libvirt has it (capabilities, or {@code host_uuid} of libvirtd.conf), in lower case. */
    String hostUuid();

    /** All domains: running, saved, defined and transient. One that ends meanwhile is left out. */
    List<DomainView> domains();

    /** One domain, by its name or UUID. */
    Optional<DomainView> domain(String nameOrUuid);

    /**
     * Sets an element of a domain's metadata.
     *
     * @param xml the element, without a namespace, which libvirt adds; null removes it, also where there is none.
     */
    void setMetadata(UUID domain, String namespace, String prefix, String xml, Scope scope);

    /** Adds a device. That libvirt has done it does not mean that the guest has seen it. */
    void attachDevice(UUID domain, String xml, Scope scope);

    /**
     * Asks the guest to give a device back, or takes it out of the definition. Returns before the guest has answered;
     * {@link Listener#deviceRemoved} tells when it is gone. Does nothing where there is no such device.
     *
     * @param alias {@code ua-...}, as it is in the XML.
     */
    void detachDevice(UUID domain, String alias, Scope scope);

    /** Defines a domain, or changes the definition of the one with the UUID. */
    void defineXml(String xml);

    /** The address that a guest has given to BAR 2 of a device (query-pci); empty while it has given none. */
    OptionalLong barAddress(UUID domain, String alias);

    /**
     * Writes a file in the guest by the guest agent of QEMU, readable by its root alone.
     *
     * @return false when the domain has no agent, or it does not answer.
     */
    boolean guestAgentWrite(UUID domain, String path, byte[] content);

    /** Tells what happens from now on; once, before {@link #start()}. */
    void listen(Listener listener);

    /** Connects, in the background: that libvirtd is away is no failure. */
    void start();

    @Override
    void close();

    /** What happens. Called by one thread, in order, which must not be held up. */
    interface Listener {
        /** Connected, at first or again: whatever was known may have changed. */
        void connected();

        /** Not connected any more; it goes on trying. */
        void disconnected(String reason);

        /** Started, stopped, crashed, defined, undefined, ...: {@code what} is for the log alone. */
        void lifecycle(UUID domain, String name, String what);

        /** A running domain has a device more. */
        void deviceAdded(UUID domain, String alias);

        /** The guest has given a device back. */
        void deviceRemoved(UUID domain, String alias);

        /** An element of the metadata was set or removed. */
        void metadataChanged(UUID domain, String namespace);
    }
}
