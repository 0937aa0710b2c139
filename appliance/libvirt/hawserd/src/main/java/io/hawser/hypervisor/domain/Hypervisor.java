package io.hawser.hypervisor.domain;

import io.hawser.hypervisor.model.Driver;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.UUID;

/**
 * All calls of hawserd to libvirt. Any thread. A call blocks as long as libvirt does, and libvirt may hold a domain for
 * as long as a hook runs. So no thread calls it while it answers a hook, or with a lock that a hook's answer needs.
 * Each call may throw {@link HypervisorException}. It reconnects by itself and informs its listener.
 */
public interface Hypervisor extends AutoCloseable {
    /** The host's UUID as libvirt reports it (capabilities, or {@code host_uuid} of libvirtd.conf), in lower case. */
    String hostUuid();

    /** All domains: running, saved, defined and transient. Omits a domain that ends during the call. */
    List<DomainView> domains();

    /** A domain by its name or UUID. */
    Optional<DomainView> domain(String nameOrUuid);

    /**
     * Sets an element of a domain's metadata.
     *
     * @param xml the element without a namespace, which libvirt adds; null removes the element, if there is one.
     */
    void setMetadata(UUID domain, String namespace, String prefix, String xml, Scope scope);

    /** Adds a device. The return shows that libvirt has added it, not that the guest has found it. */
    void attachDevice(UUID domain, String xml, Scope scope);

    /**
     * Asks the guest to give a device back, or removes it from the definition. Returns before the guest answers; {@link
     * Listener#deviceRemoved} reports the removal. Does nothing if there is no such device.
     *
     * @param alias {@code ua-...}, as in the XML.
     */
    void detachDevice(UUID domain, String alias, Scope scope);

    /**
     * Asks the guest to give a device back that has no alias. Returns before the guest answers.
     *
     * @param xml the device's element.
     */
    void detachDeviceXml(UUID domain, String xml, Scope scope);

    /** Defines a domain, or replaces the definition of the domain with that UUID. */
    void defineXml(String xml);

    /** A network of the driver by its name; empty if there is none. */
    Optional<NetworkView> network(Driver driver, String name);

    /**
     * The address that the guest has assigned to a device's memory (query-pci); empty before that.
     *
     * @param bar the number of the base address register.
     */
    OptionalLong barAddress(UUID domain, String alias, int bar);

    /**
     * Writes a file in the guest through QEMU's guest agent, readable only by the guest's root.
     *
     * @return false if the domain has no agent, or the agent does not answer.
     */
    boolean guestAgentWrite(UUID domain, String path, byte[] content);

    /** Reports events to this listener from now on; called once, before {@link #start()}. */
    void listen(Listener listener);

    /** Connects in the background; an absent libvirtd is not a failure. */
    void start();

    @Override
    void close();

    /** Receives events. One thread calls it in order; it must return at once. */
    interface Listener {
        /** Connected, for the first time or again: all earlier knowledge may be out of date. */
        void connected();

        /** Disconnected; the hypervisor keeps reconnecting. */
        void disconnected(String reason);

        /** A domain started, stopped, crashed, was defined or undefined, ...: {@code what} is only for the log. */
        void lifecycle(UUID domain, String name, String what);

        /** A device was added to a running domain. */
        void deviceAdded(UUID domain, String alias);

        /** The guest has given a device back. */
        void deviceRemoved(UUID domain, String alias);

        /** An element of the metadata was set or removed. */
        void metadataChanged(UUID domain, String namespace);
    }
}
