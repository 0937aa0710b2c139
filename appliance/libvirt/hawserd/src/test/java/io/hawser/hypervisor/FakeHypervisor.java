package io.hawser.hypervisor;

import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import io.hawser.hypervisor.domain.NetworkView;
import io.hawser.hypervisor.domain.Scope;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.UnaryOperator;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

/**
 * Domains in memory that behave like libvirt's to their callers. A domain is held while a hook runs, hooks come in
 * libvirt's order, and events follow in a thread of their own. Several hawserds may use it, one after the other.
 */
final class FakeHypervisor {
    final String host;
    final Map<UUID, Machine> machines = new ConcurrentHashMap<>();
    private final List<Hypervisor.Listener> listeners = new CopyOnWriteArrayList<>();
    private final ExecutorService events = Executors.newSingleThreadExecutor(Thread.ofPlatform().daemon().factory());
    /** libvirt's networks. */
    final Map<String, NetworkView> networks = new ConcurrentHashMap<>();
    private volatile boolean away;

    /** A hook as libvirt calls it; returns the reason of a refusal, or null. */
    interface Hook {
        String call(String operation, String suboperation, String xml);
    }

    /** A domain. */
    static final class Machine {
        final ReentrantLock lock = new ReentrantLock();
        final UUID uuid;
        final String name;
        final Driver driver;
        volatile String inactive;
        volatile String live;
        volatile boolean running;
        /** Whether the guest assigns addresses to devices and gives devices back. */
        volatile boolean guestWorks = true;
        int id;

        Machine(UUID uuid, String name, Driver driver, String inactive) {
            this.uuid = uuid;
            this.name = name;
            this.driver = driver;
            this.inactive = inactive;
        }
    }

    FakeHypervisor(String host) {
        this.host = host;
    }

    Machine define(UUID uuid, String name, Driver driver, String inactive) {
        Machine machine = new Machine(uuid, name, driver, inactive);
        machines.put(uuid, machine);
        return machine;
    }

    /** Starts a domain; returns the reason of a refusal, or null. */
    String start(Machine machine, Hook hook, String... before) {
        machine.lock.lock();
        try {
            String xml = machine.inactive;
            for (String operation : before) {
                hook.call(operation, "begin", xml);
            }
            String refused = hook.call("prepare", "begin", xml);
            if (refused != null) {
                hook.call("stopped", "end", xml);
                hook.call("release", "end", xml);
                return refused;
            }
            machine.live = xml;
            machine.running = true;
            machine.id++;
            hook.call("start", "begin", xml);
            hook.call("started", "begin", xml.replaceFirst("<domain ", "<domain id='" + machine.id + "' "));
        } finally {
            machine.lock.unlock();
        }
        publish(l -> l.lifecycle(machine.uuid, machine.name, "started"));
        return null;
    }

    /** Ends a domain in any way. A null hook simulates an end while libvirtd is down. */
    void stop(Machine machine, Hook hook) {
        machine.lock.lock();
        try {
            String xml = machine.live;
            machine.running = false;
            machine.live = null;
            if (hook != null && xml != null) {
                hook.call("stopped", "end", xml);
                hook.call("release", "end", xml);
            }
        } finally {
            machine.lock.unlock();
        }
        if (hook != null) {
            publish(l -> l.lifecycle(machine.uuid, machine.name, "stopped"));
        }
    }

    void publish(java.util.function.Consumer<Hypervisor.Listener> event) {
        events.execute(() -> listeners.forEach(event));
    }

    /** Waits until all listeners have received all events so far. */
    void awaitEvents() throws Exception {
        events.submit(() -> {}).get(Bench.LIMIT_S, TimeUnit.SECONDS);
    }

    /** Stops or starts libvirtd. */
    void away(boolean gone) {
        away = gone;
        publish(gone ? l -> l.disconnected("it was stopped") : Hypervisor.Listener::connected);
    }

    /** The interface for one hawserd. */
    Hypervisor connect() {
        return new Connected();
    }

    /** Adds or removes a device, as {@code virsh attach-device} and {@code detach-device} do. */
    void virshDevice(Machine machine, String device) {
        machine.lock.lock();
        try {
            if (!machine.running) {
                return;
            }
            machine.live = device != null ? withDevice(machine.live, device) : withoutShmem(machine.live);
        } finally {
            machine.lock.unlock();
        }
        publish(device != null ? l -> l.deviceAdded(machine.uuid, HotPlug.ALIAS)
            : l -> l.deviceRemoved(machine.uuid, HotPlug.ALIAS));
    }

    /** Sets metadata of a running domain, as {@code virsh metadata --live} does. */
    void virshMetadata(Machine machine, String vgpu) {
        machine.lock.lock();
        try {
            if (!machine.running) {
                return;
            }
            machine.live = withMetadata(machine.live, Wish.NAMESPACE, Wish.PREFIX, vgpu);
        } finally {
            machine.lock.unlock();
        }
        publish(l -> l.metadataChanged(machine.uuid, Wish.NAMESPACE));
    }

    static String withDevice(String xml, String device) {
        return xml.replaceFirst("</devices>", java.util.regex.Matcher.quoteReplacement(device) + "</devices>");
    }

    static String withoutShmem(String xml) {
        return xml.replaceAll("(?s)<shmem .*?</shmem>", "");
    }

    static String withoutFunction(String xml) {
        return xml.replaceAll("(?s)<(interface|hostdev) .*?</\\1>", "");
    }

    static String withMetadata(String xml, String namespace, String prefix, String element) {
        try {
            DomainXml read = DomainXml.parse(xml);
            Element metadata = (Element) read.document().getElementsByTagName("metadata").item(0);
            for (Node node = metadata.getFirstChild(); node != null;) {
                Node next = node.getNextSibling();
                if (namespace.equals(node.getNamespaceURI())) {
                    metadata.removeChild(node);
                }
                node = next;
            }
            String rest = read.write();
            return element == null ? rest : rest.replaceFirst("</metadata>", java.util.regex.Matcher.quoteReplacement(
                element.replaceFirst("<(\\w+)", "<" + prefix + ":$1 xmlns:" + prefix + "='" + namespace + "'"))
                + "</metadata>");
        } catch (WishException e) {
            throw new HypervisorException(Reason.REFUSED, e.getMessage(), e);
        }
    }

    /** One connection. */
    private final class Connected implements Hypervisor {
        private volatile Listener listener;

        private void require() {
            if (away) {
                throw new HypervisorException(Reason.DISCONNECTED, "libvirt does not answer");
            }
        }

        private Machine machine(UUID domain) {
            require();
            Machine machine = machines.get(domain);
            if (machine == null) {
                throw new HypervisorException(Reason.NO_DOMAIN, "there is no such domain: " + domain);
            }
            return machine;
        }

        private Machine live(UUID domain) {
            Machine machine = machine(domain);
            if (!machine.running) {
                machine.lock.unlock();
                throw new HypervisorException(Reason.NOT_RUNNING, "the domain does not run: " + machine.name);
            }
            return machine;
        }

        @Override
        public String hostUuid() {
            require();
            return host;
        }

        @Override
        public List<DomainView> domains() {
            require();
            List<DomainView> all = new ArrayList<>();
            for (Machine machine : machines.values()) {
                all.add(view(machine));
            }
            return all;
        }

        private DomainView view(Machine machine) {
            machine.lock.lock(); // as in libvirt, not while a hook runs
            try {
                return new DomainView(machine.uuid, machine.name, machine.driver, machine.running ? machine.id : -1,
                    machine.running, machine.live, machine.inactive);
            } finally {
                machine.lock.unlock();
            }
        }

        @Override
        public Optional<DomainView> domain(String nameOrUuid) {
            require();
            return machines.values().stream().filter(m -> m.name.equals(nameOrUuid)
                || m.uuid.toString().equals(nameOrUuid)).findFirst().map(this::view);
        }

        @Override
        public void setMetadata(UUID domain, String namespace, String prefix, String xml, Scope scope) {
            Machine machine = machine(domain);
            machine.lock.lock();
            try {
                live(domain);
                machine.live = withMetadata(machine.live, namespace, prefix, xml);
            } finally {
                machine.lock.unlock();
            }
            publish(l -> l.metadataChanged(domain, namespace));
        }

        @Override
        public void attachDevice(UUID domain, String xml, Scope scope) {
            Machine machine = machine(domain);
            machine.lock.lock();
            try {
                live(domain);
                machine.live = withDevice(machine.live, xml);
            } finally {
                machine.lock.unlock();
            }
            publish(l -> l.deviceAdded(domain, HotPlug.ALIAS));
        }

        @Override
        public void detachDevice(UUID domain, String alias, Scope scope) {
            detach(domain, alias, FakeHypervisor::withoutShmem);
        }

        private void detach(UUID domain, String alias, UnaryOperator<String> change) {
            Machine machine = machine(domain);
            boolean gone;
            machine.lock.lock();
            try {
                live(domain);
                gone = machine.guestWorks;
                machine.live = gone ? change.apply(machine.live) : machine.live;
            } finally {
                machine.lock.unlock();
            }
            if (gone) {
                publish(l -> l.deviceRemoved(domain, alias));
            }
        }

        @Override
        public void detachDeviceXml(UUID domain, String xml, Scope scope) {
            detach(domain, HotPlug.ALIAS, FakeHypervisor::withoutFunction);
        }

        @Override
        public void defineXml(String xml) {
            require();
            try {
                machines.get(DomainXml.parse(xml).uuid()).inactive = xml;
            } catch (WishException e) {
                throw new HypervisorException(Reason.REFUSED, e.getMessage(), e);
            }
        }

        @Override
        public Optional<NetworkView> network(Driver driver, String name) {
            require();
            return Optional.ofNullable(networks.get(name));
        }

        @Override
        public OptionalLong barAddress(UUID domain, String alias, int bar) {
            Machine machine = machine(domain);
            if (!machine.running) {
                throw new HypervisorException(Reason.NOT_RUNNING, "the domain does not run: " + machine.name);
            }
            return machine.guestWorks ? OptionalLong.of(0x380000000000L) : OptionalLong.empty();
        }

        @Override
        public boolean guestAgentWrite(UUID domain, String path, byte[] content) {
            return false;
        }

        @Override
        public void listen(Listener told) {
            listener = told;
        }

        @Override
        public void start() {
            listeners.add(listener);
            publish(Listener::connected);
        }

        @Override
        public void close() {
            listeners.remove(listener);
        }
    }
}
