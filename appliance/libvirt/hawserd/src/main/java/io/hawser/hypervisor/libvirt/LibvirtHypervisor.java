package io.hawser.hypervisor.libvirt;

import com.sun.jna.Pointer;
import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import io.hawser.hypervisor.domain.NetworkView;
import io.hawser.hypervisor.domain.Scope;
import io.hawser.hypervisor.model.Driver;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.ToIntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.libvirt.Domain;
import org.libvirt.Error.ErrorNumber;
import org.libvirt.LibvirtException;
import org.libvirt.Network;

/**
 * libvirt, with one connection for each driver. Any thread; a thread of its own reports the events. The look-up of a
 * domain searches all connections. {@link #domains()} fails unless all are up, because a domain missing from the list
 * would count as stopped.
 */
public final class LibvirtHypervisor implements Hypervisor {
    private static final Pattern UUID_TEXT = Pattern.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}");
    private static final Pattern LIVE_ID = Pattern.compile("<domain\\s[^>]*\\bid=['\"](\\d{1,9})['\"]");
    private static final Pattern XEN_TYPE = Pattern.compile("<domain\\s[^>]*type=['\"]xen['\"]");

    private final List<Connection> connections = new ArrayList<>();
    // One thread, so that events keep libvirt's order; the event loop only fills its queue.
    private final ExecutorService publisher =
        Executors.newSingleThreadExecutor(Thread.ofPlatform().name("libvirt-publisher").daemon().factory());
    private Listener listener;
    private boolean whole; // publisher's thread

    /**
     * Connects nothing yet.
     *
     * @param uris {@code qemu:///system}, {@code xen:///system}, at least one, each driver once.
     */
    public LibvirtHypervisor(String... uris) {
        if (uris.length == 0) {
            throw new IllegalArgumentException("at least one URI of libvirt is needed");
        }
        for (String uri : uris) {
            connections.add(new Connection(uri, new Events(), new Connection.Watcher() {
                @Override
                public void connected() {
                    publish(LibvirtHypervisor.this::onConnected);
                }

                @Override
                public void disconnected(String reason) {
                    publish(() -> onDisconnected(reason));
                }
            }));
        }
    }

    @Override
    public void listen(Listener all) {
        listener = all;
    }

    @Override
    public void start() {
        if (listener == null) {
            throw new IllegalStateException("listen() comes before start()");
        }
        try {
            EventLoop.start();
        } catch (LibvirtException failed) {
            throw Failures.of("libvirt's event loop cannot be started", failed, false);
        }
        connections.forEach(Connection::start);
    }

    private void onConnected() {
        if (!whole && connections.stream().allMatch(Connection::isConnected)) {
            whole = true;
            listener.connected();
        }
    }

    private void onDisconnected(String reason) {
        if (whole) {
            whole = false;
            listener.disconnected(reason);
        }
        // Otherwise two connections that break at once would be reported once, and the return of the second never.
        onConnected();
    }

    private void publish(Runnable what) {
        if (!publisher.isShutdown()) {
            publisher.execute(what);
        }
    }

    @Override
    public String hostUuid() {
        return connections.getFirst().hostUuid();
    }

    @Override
    public List<DomainView> domains() {
        List<DomainView> views = new ArrayList<>();
        for (Connection connection : connections) {
            views.addAll(connection.call("the domains cannot be listed", link -> {
                List<DomainView> seen = new ArrayList<>();
                for (Domain domain : link.listAllDomains(0)) {
                    try {
                        view(domain, connection.driver()).ifPresent(seen::add);
                    } finally {
                        domain.free();
                    }
                }
                return seen;
            }));
        }
        return views;
    }

    @Override
    public Optional<DomainView> domain(String nameOrUuid) {
        HypervisorException away = null;
        for (Connection connection : connections) {
            try {
                Optional<DomainView> view = connection.call("domain " + nameOrUuid + " cannot be read", link -> {
                    Domain domain = UUID_TEXT.matcher(nameOrUuid).matches() ? link.domainLookupByUUIDString(nameOrUuid)
                        : link.domainLookupByName(nameOrUuid);
                    try {
                        return view(domain, connection.driver());
                    } finally {
                        domain.free();
                    }
                });
                if (view.isPresent()) {
                    return view;
                }
            } catch (HypervisorException failed) {
                if (failed.reason() != Reason.NO_DOMAIN) {
                    away = failed;
                }
            }
        }
        if (away != null) {
            throw away;
        }
        return Optional.empty();
    }

    /** Empty if the domain has disappeared between two calls. */
    private static Optional<DomainView> view(Domain domain, Driver driver) throws LibvirtException {
        try {
            UUID uuid = UUID.fromString(domain.getUUIDString());
            String inactive = domain.isPersistent() == 1
                ? domain.getXMLDesc(LibvirtCalls.XML_SECURE | LibvirtCalls.XML_INACTIVE) : null;
            String live = domain.isActive() == 1 ? domain.getXMLDesc(LibvirtCalls.XML_SECURE) : null;
            int id = live == null ? -1 : liveId(live);
            if (id < 0) {
                live = null; // it stopped between the two calls
            }
            return live == null && inactive == null ? Optional.empty()
                : Optional.of(new DomainView(uuid, domain.getName(), driver, id, live != null, live, inactive));
        } catch (LibvirtException failed) {
            if (Failures.of("", failed, false).reason() == Reason.NO_DOMAIN) {
                return Optional.empty();
            }
            throw failed;
        }
    }

    /** libvirt's number of a running domain, which only its live XML contains; -1 if there is none. */
    private static int liveId(String xml) {
        Matcher id = LIVE_ID.matcher(xml);
        return id.find() ? Integer.parseInt(id.group(1)) : -1;
    }

    /** Runs a call on the connection that has the domain. */
    private <T> T onDomain(UUID uuid, String what, DomainCall<T> call) {
        HypervisorException last = null;
        for (Connection connection : connections) {
            try {
                return connection.call(what, link -> {
                    Domain domain = link.domainLookupByUUIDString(uuid.toString());
                    try {
                        return call.on(link, domain);
                    } finally {
                        domain.free();
                    }
                });
            } catch (HypervisorException failed) {
                // Another connection may have the domain. The final error prefers "disconnected" to "no such domain".
                if (failed.reason() != Reason.NO_DOMAIN && failed.reason() != Reason.DISCONNECTED) {
                    throw failed;
                }
                last = last == null || failed.reason() == Reason.DISCONNECTED ? failed : last;
            }
        }
        throw last;
    }

    private interface DomainCall<T> {
        T on(Link link, Domain domain) throws LibvirtException;
    }

    private static int flags(Scope scope) {
        return switch (scope) {
            case LIVE -> LibvirtCalls.AFFECT_LIVE;
            case CONFIG -> LibvirtCalls.AFFECT_CONFIG;
            case BOTH -> LibvirtCalls.AFFECT_LIVE | LibvirtCalls.AFFECT_CONFIG;
        };
    }

    @Override
    public void setMetadata(UUID domain, String namespace, String prefix, String xml, Scope scope) {
        onDomain(domain, "the metadata of domain " + domain + " cannot be set", (link, found) -> {
            found.setMetadata(LibvirtCalls.METADATA_ELEMENT, xml, prefix, namespace, flags(scope));
            return null;
        });
    }

    @Override
    public void attachDevice(UUID domain, String xml, Scope scope) {
        onDomain(domain, "the device cannot be added to domain " + domain, (link, found) -> {
            found.attachDeviceFlags(xml, flags(scope));
            return null;
        });
    }

    @Override
    public void detachDevice(UUID domain, String alias, Scope scope) {
        detach(domain, "device " + alias, handle -> LibvirtCalls.LIBVIRT.virDomainDetachDeviceAlias(handle, alias,
            flags(scope)));
    }

    @Override
    public void detachDeviceXml(UUID domain, String xml, Scope scope) {
        detach(domain, "the device", handle -> LibvirtCalls.LIBVIRT.virDomainDetachDeviceFlags(handle, xml,
            flags(scope)));
    }

    private void detach(UUID domain, String device, ToIntFunction<Pointer> call) {
        String what = device + " cannot be removed from domain " + domain;
        onDomain(domain, what, (link, found) -> {
            var handle = LibvirtCalls.LIBVIRT.virDomainLookupByUUIDString(link.pointer(), domain.toString());
            if (handle == null) {
                throw Failures.last(what, link.hasEnded());
            }
            try {
                if (call.applyAsInt(handle) < 0
                    && LibvirtCalls.LIBVIRT.virGetLastErrorCode() != LibvirtCalls.ERROR_DEVICE_MISSING) {
                    throw Failures.last(what, link.hasEnded());
                }
            } finally {
                LibvirtCalls.LIBVIRT.virDomainFree(handle);
            }
            return null;
        });
    }

    @Override
    public void defineXml(String xml) {
        Driver driver = XEN_TYPE.matcher(xml).find() ? Driver.XEN : Driver.QEMU;
        connection(driver).call("libvirt rejects the definition", link -> {
            link.domainDefineXML(xml).free();
            return null;
        });
    }

    @Override
    public Optional<NetworkView> network(Driver driver, String name) {
        return connection(driver).call("network " + name + " cannot be read", link -> {
            Network network;
            try {
                network = link.networkLookupByName(name);
            } catch (LibvirtException failed) {
                if (failed.getError() != null && failed.getError().getCode() == ErrorNumber.VIR_ERR_NO_NETWORK) {
                    return Optional.empty();
                }
                throw failed;
            }
            try {
                return Optional.of(new NetworkView(network.isActive() == 1, network.getXMLDesc(0)));
            } finally {
                network.free();
            }
        });
    }

    private Connection connection(Driver driver) {
        return connections.stream().filter(one -> one.driver() == driver).findFirst()
            .orElseThrow(() -> new HypervisorException(Reason.REFUSED, "no libvirt connection is configured for "
                + driver));
    }

    @Override
    public OptionalLong barAddress(UUID domain, String alias, int bar) {
        String answer = onDomain(domain, "domain " + domain + " does not list its PCI devices", (link,
            found) -> "Xen".equalsIgnoreCase(link.getType()) ? "" : found.qemuMonitorCommand(Monitor.QUERY_PCI, 0));
        return answer.isEmpty() ? OptionalLong.empty() : Monitor.bar(answer, alias, bar);
    }

    @Override
    public boolean guestAgentWrite(UUID domain, String path, byte[] content) {
        return onDomain(domain, "domain " + domain + " does not reach its agent",
            (link, found) -> new GuestAgent((command, timeoutS) -> found.qemuAgentCommand(command, timeoutS, 0))
                .write(path, content));
    }

    @Override
    public void close() {
        connections.forEach(Connection::close);
        publisher.shutdown();
    }

    /** Runs in the event loop: puts events into the queue of the reporting thread. */
    private final class Events implements LinkEvents {
        @Override
        public void lifecycle(UUID domain, String name, int event, int detail) {
            publish(() -> listener.lifecycle(domain, name, Lifecycle.words(event, detail)));
        }

        @Override
        public void deviceAdded(UUID domain, String alias) {
            publish(() -> listener.deviceAdded(domain, alias));
        }

        @Override
        public void deviceRemoved(UUID domain, String alias) {
            publish(() -> listener.deviceRemoved(domain, alias));
        }

        @Override
        public void metadataChanged(UUID domain, String namespace) {
            publish(() -> listener.metadataChanged(domain, namespace));
        }
    }
}
