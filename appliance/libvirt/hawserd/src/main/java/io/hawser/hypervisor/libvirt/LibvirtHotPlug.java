package io.hawser.hypervisor.libvirt;

import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import io.hawser.hypervisor.domain.Scope;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.Shmem;
import io.hawser.hypervisor.model.WishException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Consumer;
import org.w3c.dom.Element;

/**
 * The device of a vGPU in QEMU domains. A {@code pc} machine accepts it without preparation. A {@code q35} machine
 * needs a free root port, and a window behind it that was reserved when the machine started: a guest's kernel cannot
 * enlarge it later. Any thread; the methods that wait do so in the caller's thread.
 */
public final class LibvirtHotPlug implements HotPlug {
    /** Limit for the return of a device that the guest has not even found. */
    private static final Duration TAKE_BACK = Duration.ofSeconds(10);
    /** The window must hold the region at any alignment. */
    private static final int RESERVE_FACTOR = 2;
    private static final int MIB = 1 << 20;
    private static final int REGION_BAR = 2; // BAR 2 of ivshmem-plain is its memory

    private final Hypervisor hypervisor;

    public LibvirtHotPlug(Hypervisor hypervisor) {
        this.hypervisor = hypervisor;
    }

    /** The behaviour of a machine type in hot-plug. */
    private enum Machine { PC, Q35, OTHER }

    private static Machine machine(String type) {
        if (type.equals("q35") || type.startsWith("pc-q35")) {
            return Machine.Q35;
        }
        return type.equals("pc") || type.startsWith("pc-") ? Machine.PC : Machine.OTHER;
    }

    @Override
    public Optional<String> refusal(DomainView domain, long regionBytes) {
        if (!domain.running()) {
            return Optional.of("domain " + domain.name() + " does not run");
        }
        if (domain.driver() == Driver.XEN) {
            return Optional.of("Xen domains have no such device; use transport tcp or rdma");
        }
        DomainXml xml = parse(domain.liveXml());
        return switch (machine(xml.machine())) {
            case PC -> Optional.empty();
            case Q35 -> refusalOfQ35(domain.name(), new PciPorts(xml.document()), regionBytes);
            case OTHER -> Optional.of("a machine " + xml.machine() + " cannot take the device while it runs; after the"
                + " domain has stopped, hawserctl attach " + domain.name() + " adds it to the definition");
        };
    }

    private static Optional<String> refusalOfQ35(String name, PciPorts ports, long regionBytes) {
        String prepare = "; run hawserctl prepare " + name + " --region " + regionBytes / MIB
            + "M, then stop and start the domain";
        List<Integer> free = ports.free(null);
        if (free.isEmpty()) {
            return Optional.of("domain " + name + " (q35) has no free pcie-root-port for the device" + prepare);
        }
        if (roomyPort(ports, regionBytes).isPresent()) {
            return Optional.empty();
        }
        return Optional.of("domain " + name + " (q35) reserves too little behind its root ports for a region of "
            + regionBytes / MIB + "M: pref64-reserve must be at least " + RESERVE_FACTOR * regionBytes / MIB
            + "M and is " + ports.reservedBytes(free.getFirst()) / MIB + "M" + prepare);
    }

    private static Optional<Integer> roomyPort(PciPorts ports, long regionBytes) {
        return ports.free(null).stream().filter(bus -> ports.reservedBytes(bus) >= RESERVE_FACTOR * regionBytes)
            .findFirst();
    }

    @Override
    public void plug(UUID domain, long regionBytes, Duration timeout, Consumer<String> progress) {
        DomainView view = LiveDomain.running(hypervisor, domain);
        DomainXml xml = parse(view.liveXml());
        boolean ours = xml.device().isEmpty();
        if (ours) {
            refusal(view, regionBytes).ifPresent(why -> {
                throw new HypervisorException(Reason.REFUSED, why);
            });
            PciPorts ports = new PciPorts(xml.document());
            Element device = device(xml, regionBytes);
            if (machine(xml.machine()) == Machine.Q35) {
                address(device, roomyPort(ports, regionBytes).orElseThrow());
            }
            ours = attach(domain, text(device));
        }
        progress.accept("waiting for the guest of " + view.name() + " to find the device");
        String alias = ours ? ALIAS : deviceOf(domain).map(Shmem::alias).orElse(ALIAS);
        if (LiveDomain.await(timeout, () -> hypervisor.barAddress(domain, alias, REGION_BAR).isPresent())) {
            return;
        }
        String failed = "the guest of " + view.name() + " has not assigned the device an address within "
            + timeout.toSeconds() + " s (does its kernel have PCI hot-plug, and does it run?)";
        if (!ours) {
            throw new HypervisorException(Reason.TIMEOUT, failed);
        }
        progress.accept("the guest has not found the device; removing it again");
        hypervisor.detachDevice(domain, ALIAS, Scope.LIVE);
        throw new HypervisorException(Reason.TIMEOUT,
            failed + (LiveDomain.await(TAKE_BACK, () -> deviceOf(domain).isEmpty())
                ? "; it has been removed again"
                : ", nor given it back: it disappears when the domain is reset or stopped"));
    }

    /** Whether this call has added the device: an operator with virsh may have added it first. */
    private boolean attach(UUID domain, String device) {
        try {
            hypervisor.attachDevice(domain, device, Scope.LIVE);
            return true;
        } catch (HypervisorException refused) {
            if (refused.reason() == Reason.REFUSED && deviceOf(domain).isPresent()) {
                return false;
            }
            throw refused;
        }
    }

    @Override
    public void unplug(UUID domain, Duration timeout, Consumer<String> progress) {
        Optional<Shmem> device = deviceOf(domain);
        if (device.isEmpty()) {
            return;
        }
        try {
            hypervisor.detachDevice(domain, device.get().alias(), Scope.LIVE);
        } catch (HypervisorException refused) {
            // An earlier request is pending and the guest has not answered yet, so this method continues to wait.
            if (!refused.getMessage().contains("already in the process of unplug")) {
                throw refused;
            }
        }
        progress.accept("waiting for the guest to give the device back");
        if (!LiveDomain.await(timeout, () -> deviceOf(domain).isEmpty())) {
            throw new HypervisorException(Reason.TIMEOUT, "the guest has not given the device back within "
                + timeout.toSeconds() + " s; it disappears when the guest does so or the domain stops");
        }
    }

    /** The device as the domain has it now; empty also if the domain no longer runs. */
    private Optional<Shmem> deviceOf(UUID domain) {
        return hypervisor.domain(domain.toString()).filter(DomainView::running)
            .flatMap(view -> parse(view.liveXml()).device());
    }

    @Override
    public String withDevice(String inactiveXml, UUID domain, long regionBytes) {
        DomainXml xml = parse(inactiveXml);
        PciPorts ports = new PciPorts(xml.document());
        Element there = element(xml);
        Optional<Shmem> shmem = xml.device();
        if (shmem.isPresent() && shmem.get().sizeBytes() == regionBytes
            && shmem.get().model().equals("ivshmem-plain") && shmem.get().alias().equals(ALIAS)) {
            return inactiveXml;
        }
        Element device = device(xml, regionBytes);
        if (machine(xml.machine()) == Machine.Q35) {
            // libvirt's default address is behind a PCI bridge, from which the device cannot be unplugged.
            address(device, ports.free(there).stream().findFirst().orElseGet(ports::add));
        }
        if (there != null) {
            there.getParentNode().replaceChild(device, there);
        } else {
            ports.insert(device, null);
        }
        return xml.write();
    }

    @Override
    public String withoutDevice(String inactiveXml) {
        DomainXml xml = parse(inactiveXml);
        Element there = element(xml);
        if (there == null) {
            return inactiveXml;
        }
        there.getParentNode().removeChild(there);
        return xml.write();
    }

    @Override
    public String prepared(String inactiveXml, long regionBytes) {
        DomainXml xml = parse(inactiveXml);
        if (machine(xml.machine()) != Machine.Q35) {
            return inactiveXml;
        }
        PciPorts ports = new PciPorts(xml.document());
        // The port of the existing device counts as free: it will be free when the device is plugged in again.
        List<Integer> free = ports.free(element(xml));
        boolean changed = free.isEmpty();
        int bus = free.isEmpty() ? ports.add() : free.getFirst();
        if (ports.reservedBytes(bus) < RESERVE_FACTOR * regionBytes) {
            ports.reserve(bus, RESERVE_FACTOR * regionBytes);
            changed = true;
        }
        return changed ? xml.write() : inactiveXml;
    }

    @Override
    public boolean lend(String domain, UUID tenant, long regionBytes) {
        DomainView view = hypervisor.domain(domain).filter(DomainView::running).orElseThrow(
            () -> new HypervisorException(Reason.NOT_RUNNING, "the broker's domain " + domain + " does not run"));
        DomainXml xml = parse(view.liveXml());
        if (lent(xml, tenant).isPresent()) {
            return false;
        }
        Element device = device(xml, Shmem.PREFIX + tenant, HotPlug.lentAlias(tenant), regionBytes);
        if (machine(xml.machine()) == Machine.Q35) {
            refusalOfQ35(view.name(), new PciPorts(xml.document()), regionBytes).ifPresent(why -> {
                throw new HypervisorException(Reason.REFUSED, why);
            });
            address(device, roomyPort(new PciPorts(xml.document()), regionBytes).orElseThrow());
        }
        hypervisor.attachDevice(view.uuid(), text(device), Scope.LIVE);
        return true;
    }

    @Override
    public void takeBack(String domain, UUID tenant) {
        Optional<DomainView> view = hypervisor.domain(domain).filter(DomainView::running);
        Optional<Shmem> there = view.flatMap(running -> lent(parse(running.liveXml()), tenant));
        if (there.isEmpty()) {
            return;
        }
        try {
            hypervisor.detachDevice(view.get().uuid(), there.get().alias(), Scope.LIVE);
        } catch (HypervisorException refused) {
            // An earlier request is pending, and the guest has not answered yet.
            if (!refused.getMessage().contains("already in the process of unplug")) {
                throw refused;
            }
        }
    }

    private static Optional<Shmem> lent(DomainXml xml, UUID tenant) {
        return xml.shmems().stream().filter(shmem -> shmem.name().equals(Shmem.PREFIX + tenant)).findFirst();
    }

    /** The device's element; null if there is none. */
    private static Element element(DomainXml xml) {
        return PciPorts.children(new PciPorts(xml.document()).devices(), "shmem").stream()
            .filter(shmem -> shmem.getAttribute("name").equals(xml.regionName())).findFirst().orElse(null);
    }

    private static Element device(DomainXml xml, long regionBytes) {
        return device(xml, xml.regionName(), ALIAS, regionBytes);
    }

    private static Element device(DomainXml xml, String name, String alias, long regionBytes) {
        Element device = xml.document().createElement("shmem");
        device.setAttribute("name", name);
        append(device, "model").setAttribute("type", "ivshmem-plain");
        Element size = append(device, "size");
        size.setAttribute("unit", "bytes");
        size.setTextContent(Long.toString(regionBytes));
        append(device, "alias").setAttribute("name", alias);
        return device;
    }

    private static void address(Element device, int bus) {
        Element address = append(device, "address");
        address.setAttribute("type", "pci");
        address.setAttribute("domain", "0x0000");
        address.setAttribute("bus", "0x%02x".formatted(bus));
        address.setAttribute("slot", "0x00");
        address.setAttribute("function", "0x0");
    }

    private static Element append(Element parent, String name) {
        return (Element) parent.appendChild(parent.getOwnerDocument().createElement(name));
    }

    /** The XML text of an element of this class. Names and numbers need no escaping. */
    private static String text(Element element) {
        StringBuilder text = new StringBuilder("<" + element.getTagName());
        for (int i = 0; i < element.getAttributes().getLength(); i++) {
            text.append(' ').append(element.getAttributes().item(i));
        }
        text.append('>');
        List<Element> children = PciPorts.children(element, null);
        children.forEach(child -> text.append(text(child)));
        return text.append(children.isEmpty() ? element.getTextContent() : "").append("</")
            .append(element.getTagName()).append('>').toString();
    }

    private static DomainXml parse(String xml) {
        try {
            return DomainXml.parse(xml);
        } catch (WishException broken) {
            throw new HypervisorException(Reason.REFUSED, broken.getMessage(), broken);
        }
    }
}
