package io.hawser.hypervisor.libvirt;

import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.FunctionXml;
import io.hawser.hypervisor.domain.Functions;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import io.hawser.hypervisor.domain.NetworkView;
import io.hawser.hypervisor.domain.NetworkXml;
import io.hawser.hypervisor.domain.Scope;
import io.hawser.hypervisor.files.AdapterFiles;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Consumer;

/**
 * Virtual functions from libvirt's networks of the forward mode {@code hostdev}. libvirt chooses a RoCE function itself
 * and sets its Ethernet address and VLAN. It cannot set the GUIDs of an InfiniBand function. So hawserd chooses that
 * function, sets the GUIDs in sysfs, and adds the function as a host device. Any thread; the methods that wait do so in
 * the caller's thread.
 */
public final class LibvirtFunctions implements Functions {
    /** Limit for the return of a function that the guest has not even found. */
    private static final Duration TAKE_BACK = Duration.ofSeconds(10);
    /** How long a chosen function stays reserved before it appears in its domain. */
    private static final Duration RESERVED = Duration.ofMinutes(2);
    private static final int MEMORY_BAR = 0;

    private final Hypervisor hypervisor;
    private final AdapterFiles adapters;
    private final Map<String, Reservation> reservations = new HashMap<>();

    private record Reservation(UUID domain, long sinceNs) {}

    public LibvirtFunctions(Hypervisor hypervisor, AdapterFiles adapters) {
        this.hypervisor = hypervisor;
        this.adapters = adapters;
    }

    @Override
    public synchronized Wish choose(DomainView domain, Wish wish) {
        if (!wish.hasNetwork()) {
            return wish;
        }
        NetworkXml network = pool(domain.driver(), wish.network());
        if (!isInfiniband(network)) {
            if (!wish.function().isEmpty()) {
                throw refused("only a network of an InfiniBand adapter has a function in the metadata: libvirt chooses"
                    + " the function of " + wish.network());
            }
            return wish;
        }
        List<String> all = functions(network, wish.network());
        if (!wish.function().isEmpty()) {
            if (!all.contains(wish.function())) {
                throw refused("network " + wish.network() + " has no virtual function " + wish.function()
                    + ": it has " + String.join(", ", all));
            }
            return wish;
        }
        Map<String, String> users = users(domain.uuid());
        long nowNs = System.nanoTime();
        reservations.values().removeIf(r -> nowNs - r.sinceNs > RESERVED.toNanos()
            || r.domain.equals(domain.uuid()));
        String chosen = own(domain, all).orElseGet(() -> all.stream().filter(one -> !users.containsKey(one)
            && !reservations.containsKey(one) && adapters.hasDevice(one) && !adapters.isLent(one)).findFirst()
            .orElseThrow(() -> refused(noneFree(wish.network(), all, users))));
        reservations.put(chosen, new Reservation(domain.uuid(), nowNs));
        return wish.withFunction(chosen);
    }

    @Override
    public synchronized void chosen(UUID domain) {
        reservations.values().removeIf(reservation -> reservation.domain.equals(domain));
    }

    @Override
    public Optional<String> refusal(DomainView domain, Wish wish) {
        try {
            NetworkView view = find(domain.driver(), wish.network());
            NetworkXml network = pool(domain.driver(), wish.network());
            boolean infiniband = isInfiniband(network);
            if (infiniband && wish.function().isEmpty()) {
                return Optional.of("network " + wish.network() + " is of an InfiniBand adapter, so the metadata must"
                    + " name a function: hawserctl attach " + domain.name() + " chooses one");
            }
            if (!infiniband && !view.active()) {
                return Optional.of("network " + wish.network() + " is not active: virsh net-start " + wish.network());
            }
            List<String> all = functions(network, wish.network());
            Map<String, String> users = users(domain.uuid());
            if (!wish.function().isEmpty() && users.containsKey(wish.function())) {
                return Optional.of("the virtual function " + wish.function() + " belongs to the domain "
                    + users.get(wish.function()));
            }
            if (wish.function().isEmpty() && all.stream().noneMatch(one -> !users.containsKey(one)
                && adapters.hasDevice(one))) {
                return Optional.of(noneFree(wish.network(), all, users));
            }
            return refusalOfMachine(domain);
        } catch (HypervisorException e) {
            if (e.reason() != Reason.REFUSED) {
                throw e;
            }
            return Optional.of(e.getMessage());
        }
    }

    private static Optional<String> refusalOfMachine(DomainView domain) {
        DomainXml xml = parse(domain.liveXml());
        boolean q35 = xml.machine().equals("q35") || xml.machine().startsWith("pc-q35");
        return q35 && new PciPorts(xml.document()).free(null).isEmpty() ? Optional.of("domain " + domain.name()
            + " (q35) has no free pcie-root-port for the function; run hawserctl prepare " + domain.name()
            + ", then stop and start the domain") : Optional.empty();
    }

    private String noneFree(String name, List<String> all, Map<String, String> users) {
        List<String> present = all.stream().filter(adapters::hasDevice).toList();
        if (present.isEmpty()) {
            return "network " + name + " has no virtual function on this host: prepare the adapter's functions"
                + " (sriov_numvfs)";
        }
        TreeSet<String> names = new TreeSet<>();
        present.stream().filter(users::containsKey).forEach(one -> names.add(users.get(one)));
        return "no virtual function of network " + name + " is free: " + present.size() + " exist"
            + (names.isEmpty() ? "" : ", of the domains " + String.join(", ", names));
    }

    /** The function of a network that a domain has already. */
    private static Optional<String> own(DomainView domain, List<String> all) {
        for (String text : new String[] {domain.liveXml(), domain.inactiveXml()}) {
            Optional<String> found = text == null ? Optional.empty() : new FunctionXml(parse(text)).hostDevices()
                .stream().filter(all::contains).findFirst();
            if (found.isPresent()) {
                return found;
            }
        }
        return Optional.empty();
    }

    /** The devices of the host that other domains have, running or defined, with these domains' names. */
    private Map<String, String> users(UUID but) {
        Map<String, String> users = new HashMap<>();
        for (DomainView domain : hypervisor.domains()) {
            if (domain.uuid().equals(but)) {
                continue;
            }
            for (String text : new String[] {domain.inactiveXml(), domain.liveXml()}) {
                if (text != null && (text.contains("<hostdev") || text.contains("<interface"))) {
                    new FunctionXml(parse(text)).hostDevices().forEach(one -> users.put(one, domain.name()));
                }
            }
        }
        return users;
    }

    private NetworkView find(Driver driver, String name) {
        return hypervisor.network(driver, name)
            .orElseThrow(() -> refused("libvirt has no network " + name + " (virsh net-list --all shows all)"));
    }

    private NetworkXml pool(Driver driver, String name) {
        try {
            NetworkXml network = NetworkXml.parse(find(driver, name).xml());
            if (!network.mode().equals("hostdev")) {
                throw refused("network " + name + " supplies no virtual functions: its forward mode must be hostdev: "
                    + (network.mode().isEmpty() ? "it has none" : "mode=" + network.mode()));
            }
            for (String adapter : network.adapters()) {
                if (!adapters.hasInterface(adapter)) {
                    throw refused("network " + name + " names an adapter that this host does not have: " + adapter);
                }
            }
            return network;
        } catch (WishException e) {
            throw new HypervisorException(Reason.REFUSED, "network " + name + ": " + e.getMessage(), e);
        }
    }

    private boolean isInfiniband(NetworkXml network) {
        return network.adapters().stream().anyMatch(adapters::isInfiniband);
    }

    /** The functions of a network: those of its adapters, else those that it lists. */
    private List<String> functions(NetworkXml network, String name) {
        List<String> all = new ArrayList<>();
        network.adapters().forEach(adapter -> all.addAll(adapters.functions(adapter)));
        if (network.adapters().isEmpty()) {
            all.addAll(network.functions());
        }
        if (all.isEmpty()) {
            throw refused(noneFree(name, all, Map.of()));
        }
        return all;
    }

    private static HypervisorException refused(String sentence) {
        return new HypervisorException(Reason.REFUSED, sentence);
    }

    @Override
    public void plug(UUID domain, Wish wish, Duration timeout, Consumer<String> progress) {
        DomainView view = LiveDomain.running(hypervisor, domain);
        DomainXml xml = parse(view.liveXml());
        FunctionXml functions = new FunctionXml(xml);
        boolean ours = !functions.has(wish);
        if (ours) {
            refusal(view, wish).ifPresent(why -> {
                throw refused(why);
            });
            prepare(domain, wish);
            try {
                hypervisor.attachDevice(domain, functions.text(wish, view.driver()), Scope.LIVE);
            } catch (HypervisorException e) {
                release(domain, wish.function());
                throw e;
            }
        }
        if (view.driver() == Driver.XEN) {
            return; // Xen does not report what the guest has found
        }
        progress.accept("waiting for the guest of " + view.name() + " to find the virtual function");
        if (LiveDomain.await(timeout, () -> hypervisor.barAddress(domain, FunctionXml.ALIAS, MEMORY_BAR).isPresent())) {
            return;
        }
        String failed = "the guest of " + view.name() + " has not assigned the virtual function an address within "
            + timeout.toSeconds() + " s (does its kernel have PCI hot-plug, and does it run?)";
        if (!ours) {
            throw new HypervisorException(Reason.TIMEOUT, failed);
        }
        progress.accept("the guest has not found the virtual function; removing it again");
        detach(domain, wish.function());
        boolean removed = LiveDomain.await(TAKE_BACK, () -> !isThere(domain, wish.function()));
        if (removed) {
            release(domain, wish.function());
        }
        throw new HypervisorException(Reason.TIMEOUT, failed + (removed ? "; it has been removed again"
            : ", nor given it back: it disappears when the domain is reset or stopped"));
    }

    @Override
    public void unplug(UUID domain, Duration timeout, Consumer<String> progress) {
        Optional<DomainView> view = hypervisor.domain(domain.toString()).filter(DomainView::running);
        String named = view.map(LibvirtFunctions::wished).orElse("");
        // Also after the metadata has been removed.
        String function = view.flatMap(one -> new FunctionXml(parse(one.liveXml())).address(named)).orElse("");
        if (!detach(domain, function)) {
            return;
        }
        progress.accept("waiting for the guest to give the virtual function back");
        if (!LiveDomain.await(timeout, () -> !isThere(domain, function))) {
            throw new HypervisorException(Reason.TIMEOUT, "the guest has not given the virtual function back within "
                + timeout.toSeconds() + " s; it disappears when the guest does so or the domain stops");
        }
        release(domain, function);
    }

    /** The function that a running domain's metadata names; empty if it names none, or is invalid. */
    private static String wished(DomainView view) {
        try {
            return DomainXml.parse(view.liveXml()).wish(view.driver()).map(Wish::function).orElse("");
        } catch (WishException e) {
            return "";
        }
    }

    /** Asks the guest to give the function back; false if there is none. */
    private boolean detach(UUID domain, String function) {
        Optional<String> device = deviceOf(domain, function);
        if (device.isEmpty()) {
            return false;
        }
        try {
            hypervisor.detachDeviceXml(domain, device.get(), Scope.LIVE);
        } catch (HypervisorException refused) {
            // An earlier request is pending and the guest has not answered yet, so the caller continues to wait.
            if (!refused.getMessage().contains("already in the process of unplug")) {
                throw refused;
            }
        }
        return true;
    }

    private boolean isThere(UUID domain, String function) {
        return deviceOf(domain, function).isPresent();
    }

    /** The element of the function that the domain has now; empty also if the domain no longer runs. */
    private Optional<String> deviceOf(UUID domain, String function) {
        return hypervisor.domain(domain.toString()).filter(DomainView::running)
            .flatMap(view -> new FunctionXml(parse(view.liveXml())).text(function));
    }

    @Override
    public String defined(String inactiveXml, Driver driver, Wish wish, String functionBefore) {
        DomainXml xml = parse(inactiveXml);
        new FunctionXml(xml).set(wish, driver, functionBefore);
        return xml.write();
    }

    @Override
    public void prepare(UUID domain, Wish wish) {
        if (wish.function().isEmpty()) {
            return;
        }
        try {
            adapters.assign(wish.function(), domain);
        } catch (IOException e) {
            throw new HypervisorException(Reason.REFUSED, e.getMessage(), e);
        }
    }

    @Override
    public void release(UUID domain, String function) {
        if (function.isEmpty()) {
            return;
        }
        try {
            adapters.free(function);
        } catch (IOException e) {
            Log.warn(domain.toString(), "its virtual function keeps its GUIDs: " + e.getMessage());
        }
    }

    private static DomainXml parse(String xml) {
        try {
            return DomainXml.parse(xml);
        } catch (WishException broken) {
            throw new HypervisorException(Reason.REFUSED, broken.getMessage(), broken);
        }
    }
}
