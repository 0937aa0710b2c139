package io.hawser.broker.vgpu;

import io.hawser.broker.model.Amount;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.GpuChoice;
import io.hawser.broker.model.Sharing;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.model.WorkerKind;
import io.hawser.broker.store.VgpuStore;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import org.jboss.logging.Logger;

/**
 * The vGPUs in memory: the admission of guests to each, and its place on the GPUs. No method waits or writes to the
 * database; {@code VgpuService} changes both together. Event loop only, except {@link #list}, {@link #find} and {@link
 * #gpus}.
 */
public final class VgpuTable {
    private static final Logger LOG = Logger.getLogger(VgpuTable.class);
    private static final int MAX_VGPUS = 10_000; // each takes some hundred bytes, and each placement reads all

    /** Receives each change, on the event loop. */
    @FunctionalInterface
    public interface Listener {
        /**
         * A vGPU has changed; its number of sessions and tokens counts too.
         *
         * @param before null for a new vGPU.
         * @param after null for a deleted vGPU.
         */
        void changed(VgpuView before, VgpuView after);
    }

    /**
     * The result of a placement.
     *
     * @param moved new UUIDs by name, of vGPUs whose GPUs have changed.
     * @param lost names of vGPUs whose sessions have lost their GPUs.
     */
    public record Settled(Map<String, List<String>> moved, Set<String> lost) {
        /** Nothing has changed. */
        public static final Settled NOTHING = new Settled(Map.of(), Set.of());
    }

    /** A planned vGPU and its GPUs. */
    public record Planned(Vgpu vgpu, List<String> home) {}

    private final Placement placement;
    private final int spareWorkers;
    private final Predicate<String> failing;
    private final List<Listener> listeners = new ArrayList<>();
    private final Map<String, VgpuEntry> entries = new LinkedHashMap<>(); // the oldest first
    private final ConcurrentSkipListMap<String, VgpuView> pictures = new ConcurrentSkipListMap<>();
    private final Map<String, Long> contextBytes = new HashMap<>();
    private List<Device> devices = List.of();
    private boolean isKnown; // the workers have reported the GPUs
    private boolean isSettled = true; // no GPU has come or gone since the last placement of all vGPUs
    private boolean byPercentage; // a worker gets its vGPU's part of a GPU at its start
    private final Set<String> drained = new HashSet<>(); // UUIDs of GPUs that get no vGPU
    private volatile List<GpuLoad> gpuPicture = List.of();

    /**
     * Makes an empty table.
     *
     * @param spareWorkers number of workers to keep ready of each kind.
     * @param failing whether workers for a GPU fail to start, by its UUID.
     */
    public VgpuTable(Placement placement, int spareWorkers, Predicate<String> failing) {
        this.placement = placement;
        this.spareWorkers = spareWorkers;
        this.failing = failing;
    }

    /** Adds a listener. */
    public void addListener(Listener listener) {
        listeners.add(listener);
    }

    /** Makes each vGPU's share a percentage of its GPUs, for MPS. The call precedes the first vGPU. */
    public void shareByPercentage() {
        byPercentage = true;
    }

    /** The vGPUs, by name. Any thread. */
    public List<VgpuView> list() {
        return List.copyOf(pictures.values());
    }

    /** A vGPU by its name. Any thread. */
    public Optional<VgpuView> find(String name) {
        return Optional.ofNullable(pictures.get(name));
    }

    /** A vGPU's compute share, 1 to 100; the full share when the vGPU does not exist. Any thread. */
    public int computeShare(String name) {
        return find(name).map(view -> view.vgpu().computeShare()).orElse(Vgpu.FULL_SHARE);
    }

    /** Reservations on each GPU, in the workers' order; empty before the broker knows the GPUs. Any thread. */
    public List<GpuLoad> gpus() {
        return gpuPicture;
    }

    /** Whether the vGPU exists and accepts guests. */
    public boolean has(String name) {
        VgpuEntry entry = entries.get(name);
        return entry != null && !entry.isClosed();
    }

    /** The rules of placement. Any thread. */
    public Placement placement() {
        return placement;
    }

    /** The percentage of its GPUs that a vGPU's workers have, as in {@link WorkerKind}. Any thread. */
    public int percentage(String name) {
        return find(name).map(view -> percentage(view.vgpu())).orElse(WorkerKind.WHOLE);
    }

    private int percentage(Vgpu vgpu) {
        boolean isShared = byPercentage && vgpu.mode() == Sharing.SHARED;
        return isShared ? vgpu.computeShare() : WorkerKind.WHOLE; // an exclusive vGPU has all of its GPUs
    }

    /** The network that a vGPU's workers share, as in {@link WorkerKind}. Any thread. */
    public String network(String name) {
        return find(name).map(view -> view.vgpu().network()).orElse("");
    }

    /**
     * The kinds of workers to keep ready: that of each vGPU with a network of its own, and for each set of GPUs that
     * other vGPUs have, the percentages that most of them have.
     */
    public Set<WorkerKind> kinds() {
        return kinds(null);
    }

    private Set<WorkerKind> kinds(VgpuEntry except) {
        return NeededKinds.of(entries.values().stream().filter(entry -> entry != except), this::percentage);
    }

    /**
     * Waits for the end of a vGPU's move.
     *
     * @return completes when the vGPU stays, has moved or is gone, in the middle of that change; is complete when the
     *     vGPU does not move, or too many guests wait for it.
     */
    public CompletableFuture<Void> whenMoved(String name) {
        VgpuEntry entry = entries.get(name);
        return entry == null ? CompletableFuture.completedFuture(null) : entry.whenMoved();
    }

    /** Why the vGPU refuses a guest now, as a message for the guest; null when it accepts the guest. */
    public String objection(String name, Carrier carrier) {
        VgpuEntry entry = entries.get(name);
        if (entry == null) {
            return "the guest's vGPU does not exist: vgpu=" + name;
        }
        Vgpu vgpu = entry.vgpu;
        if (entry.objection() != null) {
            return entry.objection();
        }
        if (!vgpu.carriers().contains(carrier)) {
            return "the vGPU does not let guests come this way: vgpu=" + name + " carrier=" + carrier.label()
                + " carriers=" + vgpu.carriers().stream().map(Carrier::label).sorted().toList();
        }
        if (vgpu.maxSessions() > 0 && entry.sessions >= vgpu.maxSessions()) {
            return "the vGPU's sessions are all in use: vgpu=" + name + " max=" + vgpu.maxSessions();
        }
        if (entry.state == VgpuState.UNPLACED) {
            return "the vGPU has no GPU: vgpu=" + name + ": " + entry.problem;
        }
        boolean isContextReserved = vgpu.reserves() && entry.sessions == 0;
        if (isContextReserved || contextBytes.isEmpty() || entry.state == VgpuState.WAITING) {
            return null;
        }
        return loads(null).stream().filter(gpu -> entry.home.contains(gpu.device().uuid()))
            .map(placement::contextObjection).filter(o -> o != null).findFirst().orElse(null);
    }

    /**
     * Number of further contexts that have room on each of these GPUs, beside all reservations.
     *
     * @param gpus UUIDs; empty for all GPUs.
     */
    public int contextRoom(List<String> gpus) {
        return contextBytes.isEmpty() ? Integer.MAX_VALUE : loads(null).stream()
            .filter(gpu -> gpus.isEmpty() || gpus.contains(gpu.device().uuid())).mapToInt(placement::contextRoom).min()
            .orElse(0);
    }

    /** Counts a new session of a vGPU until {@link #leave}. */
    public Vgpu enter(String name) {
        VgpuEntry entry = entries.get(name);
        entry.sessions++;
        publish(entry);
        return entry.vgpu;
    }

    /** Ends the count of a session of a vGPU. */
    public void leave(String name) {
        VgpuEntry entry = entries.get(name);
        if (entry != null) {
            entry.sessions--;
            publish(entry);
        }
    }

    /** Sets the number of tokens of a vGPU. */
    public void setTokenCount(String name, int tokens) {
        VgpuEntry entry = entries.get(name);
        if (entry != null) {
            entry.tokens = tokens;
            publish(entry);
        }
    }

    /** Sets the measured memory of a worker's context on a GPU. */
    public void setContextBytes(String uuid, long bytes) {
        if (contextBytes.getOrDefault(uuid, 0L) != bytes) {
            contextBytes.put(uuid, bytes);
            gpuPicture = loads(null);
        }
    }

    /** The vGPUs as the database must store them, the oldest first. */
    public List<VgpuStore.Kept> kept() {
        return entries.values().stream().map(entry -> new VgpuStore.Kept(entry.vgpu, entry.home)).toList();
    }

    /**
     * Makes a vGPU equal to its row in the pool's database. A vGPU whose GPUs are there is then ready; {@link #settle}
     * places the others.
     */
    public void synchronize(Vgpu vgpu, List<String> placed) {
        VgpuEntry entry = entries.get(vgpu.name());
        if (entry == null) {
            load(vgpu, placed);
            entry = entries.get(vgpu.name());
        } else if (!entry.destination().isEmpty()) {
            return; // the end of its move sets its place; until then the row may already name the new one
        } else if (!entry.vgpu.equals(vgpu) || !entry.home.equals(placed)) {
            entry.vgpu = vgpu;
            entry.state = entry.home.equals(placed) ? entry.state : VgpuState.WAITING;
            entry.home = List.copyOf(placed);
            publish(entry);
        }
        if (isKnown && entry.state == VgpuState.WAITING && !placed.isEmpty()
            && devices.stream().map(Device::uuid).toList().containsAll(placed)) {
            setState(entry, VgpuState.READY, "");
        }
        gpuPicture = loads(null);
    }

    /** The reservations on each GPU now. */
    public List<GpuLoad> present() {
        return loads(null);
    }

    /** Whether {@link #settle} has a vGPU to place. */
    public boolean hasHomeless() {
        return !isSettled || isKnown && entries.values().stream().anyMatch(entry -> entry.state != VgpuState.READY);
    }

    /** Adds a vGPU from the database; {@link #settle} then places it. */
    public void load(Vgpu vgpu, List<String> home) {
        VgpuEntry entry = new VgpuEntry(vgpu, home);
        entries.put(vgpu.name(), entry);
        publish(entry);
    }

    /**
     * Sets the present GPUs: each vGPU stays on its GPUs, or gets others.
     *
     * @param present in the workers' order; empty when all are lost.
     */
    public Settled settle(List<Device> present) {
        setDevices(present);
        return settle();
    }

    /** Sets the present GPUs; {@link #settle()} then places the vGPUs. */
    public void setDevices(List<Device> present) {
        devices = List.copyOf(present);
        isKnown = true;
        isSettled = false;
    }

    /** Places all vGPUs that have no place or have lost it. */
    public Settled settle() {
        isSettled = true;
        return settle(entries.values());
    }

    private Settled settle(Collection<VgpuEntry> some) {
        Map<String, List<String>> moved = new LinkedHashMap<>();
        Set<String> lost = new HashSet<>();
        Set<String> uuids = new HashSet<>();
        devices.forEach(device -> uuids.add(device.uuid()));
        List<VgpuEntry> homeless = new ArrayList<>();
        for (VgpuEntry entry : isKnown ? some : List.<VgpuEntry>of()) {
            boolean all = entry.vgpu.gpus().kind() == GpuChoice.Kind.ALL
                && !entry.home.equals(devices.stream().map(Device::uuid).toList());
            boolean present = !entry.home.isEmpty() && uuids.containsAll(entry.home);
            if (present && entry.state != VgpuState.UNPLACED && (!all || entry.sessions > 0)) {
                setState(entry, VgpuState.READY, ""); // no check of the rules: its place was promised
            } else {
                if (entry.state == VgpuState.READY) {
                    lost.add(entry.vgpu.name());
                }
                entry.state = VgpuState.WAITING;
                homeless.add(entry);
            }
        }
        for (VgpuEntry entry : homeless) {
            find(entry, uuids).ifPresent(home -> moved.put(entry.vgpu.name(), home));
        }
        gpuPicture = loads(null);
        return new Settled(moved, lost);
    }

    /**
     * Finds a place for a vGPU without one.
     *
     * @return the GPUs, if they differ from the last ones.
     */
    private Optional<List<String>> find(VgpuEntry entry, Set<String> uuids) {
        List<GpuLoad> loads = loads(entry);
        try {
            List<String> home;
            if (entry.vgpu.gpus().kind() == GpuChoice.Kind.LIST && !entry.home.isEmpty()) {
                home = entry.home; // an index in its list may denote another GPU by now
                placement.requireFit(entry.vgpu, home, loads);
            } else if (entry.vgpu.gpus().kind() == GpuChoice.Kind.ANY && uuids.containsAll(entry.home)
                && !entry.home.isEmpty() && fits(entry.vgpu, entry.home, loads)) {
                home = entry.home;
            } else {
                home = placement.place(entry.vgpu, loads);
            }
            boolean other = !home.equals(entry.home);
            entry.home = home;
            setState(entry, VgpuState.READY, "");
            if (other) {
                LOG.infof("placed vGPU %s: gpus=%s", entry.vgpu.name(), home);
            }
            return other ? Optional.of(home) : Optional.empty();
        } catch (Placement.NoPlaceException e) {
            if (!e.getMessage().equals(entry.problem)) {
                LOG.errorf("vGPU %s has no GPU: %s", entry.vgpu.name(), e.getMessage());
            }
            setState(entry, VgpuState.UNPLACED, e.getMessage());
            return Optional.empty();
        }
    }

    private boolean fits(Vgpu vgpu, List<String> home, List<GpuLoad> loads) {
        try {
            placement.requireFit(vgpu, home, loads);
            return true;
        } catch (Placement.NoPlaceException e) {
            return false; // the caller's new placement reports the reason
        }
    }

    private void setState(VgpuEntry entry, VgpuState state, String problem) {
        if (entry.state == state && entry.problem.equals(problem)) {
            return;
        }
        entry.state = state;
        entry.problem = problem;
        publish(entry);
    }

    /** Memory of a GPU that a vGPU has now. */
    public Amount amount(String name, Device device) {
        VgpuEntry entry = entries.get(name);
        if (entry == null || !entry.isOn(device.uuid())) {
            return Amount.NONE;
        }
        if (entry.vgpu.reserves()) {
            return Amount.quota(entry.vgpu.memoryBytes(), device.totalBytes());
        }
        Reserved reserved = Reserved.NONE;
        for (VgpuEntry other : entries.values()) {
            reserved = other.isOn(device.uuid()) ? reserved.plus(other.vgpu) : reserved;
        }
        return Amount.bestEffort(device.totalBytes(), placement.keptBytes(reserved));
    }

    /**
     * GPUs of a vGPU's sessions: UUIDs in its order; empty while the broker does not know the GPUs, or without a place.
     */
    public List<String> home(String name) {
        VgpuEntry entry = entries.get(name);
        return entry == null || entry.state != VgpuState.READY ? List.of() : entry.home;
    }

    /** Plans the place of a new vGPU. */
    public Planned plan(Vgpu vgpu) throws VgpuException {
        if (entries.containsKey(vgpu.name())) {
            throw VgpuException.conflict("a vGPU with this name already exists: vgpu=" + vgpu.name());
        }
        if (entries.size() >= MAX_VGPUS) {
            throw VgpuException.conflict("the broker has its maximum of vGPUs: max=" + MAX_VGPUS);
        }
        return new Planned(vgpu, place(vgpu, null));
    }

    private List<String> place(Vgpu vgpu, VgpuEntry except) throws VgpuException {
        if (!isKnown) {
            throw new VgpuException(VgpuException.Kind.UNAVAILABLE,
                "no worker has reported the GPUs yet; the broker can place vGPUs only afterwards");
        }
        return placement.placeOn(vgpu, loads(except));
    }

    /** Adds a planned vGPU, after its insertion into the database. */
    public Settled add(Planned planned) {
        load(planned.vgpu, planned.home);
        return settle(List.of(entries.get(planned.vgpu.name())));
    }

    /**
     * Plans a change. If the vGPU moves, it refuses guests until {@link #change} or {@link #open}.
     *
     * @param usedBytes memory that its sessions hold on a GPU, by its UUID.
     */
    public Planned planChange(String name, Vgpu after, ToLongFunction<String> usedBytes) throws VgpuException {
        VgpuEntry entry = existing(name);
        Vgpu before = entry.vgpu;
        boolean placedAnew = !after.gpus().equals(before.gpus()) || after.mode() != before.mode()
            || after.swappable() != before.swappable();
        // No ledger counts memory that is out, and it needs its room when it comes back.
        boolean isRoomChanged = before.swappable() && after.memoryBytes() != before.memoryBytes();
        if ((placedAnew || isRoomChanged) && entry.sessions > 0) {
            throw VgpuException.conflict("the GPUs and the mode of a vGPU with sessions must stay, whether it is "
                + "swappable, and then its memory: vgpu=" + name + " sessions=" + entry.sessions);
        }
        for (String uuid : after.reserves() ? entry.home : List.<String>of()) {
            long used = usedBytes.applyAsLong(uuid);
            if (used > after.memoryBytes()) {
                throw VgpuException.conflict("a vGPU's memory must hold what its sessions use: vgpu=" + name
                    + " memoryBytes=" + after.memoryBytes() + " gpu=" + uuid + " usedBytes=" + used);
            }
        }
        if (!placedAnew && after.memoryBytes() == before.memoryBytes()) {
            return new Planned(after, entry.home);
        }
        List<String> home = entry.home;
        boolean same = after.gpus().equals(before.gpus()) && entry.state == VgpuState.READY;
        if (!same || !fits(after, home, loads(entry))) {
            if (entry.sessions > 0) {
                placement.requireRoom(after, home, loads(entry));
            }
            home = place(after, entry);
        }
        if (!home.equals(entry.home)) {
            entry.closeForMove("the vGPU is being moved: vgpu=" + name);
        }
        return new Planned(after, home);
    }

    /** Applies a planned change, after its write to the database. */
    public Settled change(Planned planned) {
        VgpuEntry entry = entries.get(planned.vgpu.name());
        entry.vgpu = planned.vgpu;
        entry.open();
        if (!planned.home.equals(entry.home)) {
            entry.home = planned.home;
            entry.state = VgpuState.WAITING;
        }
        publish(entry);
        return settle();
    }

    /** Refuses further guests before the vGPU's deletion. */
    public void close(String name) throws VgpuException {
        existing(name).close("the vGPU is being deleted: vgpu=" + name);
    }

    /** Lets the guests of a vGPU that this broker gives up wait until it is gone. */
    public void shut(String name, String reason) {
        entries.get(name).closeForMove(reason);
    }

    /** Accepts guests again after a failed deletion or move. */
    public void open(String name) {
        VgpuEntry entry = entries.get(name);
        if (entry != null) {
            entry.open();
        }
    }

    /** Removes a vGPU, after its deletion from the database. */
    public Settled remove(String name) {
        VgpuEntry entry = entries.remove(name);
        pictures.remove(name);
        VgpuView before = entry.view();
        listeners.forEach(listener -> listener.changed(before, null));
        entry.leave();
        return settle();
    }

    /** A vGPU of the table; null when there is none. */
    VgpuEntry entry(String name) {
        return entries.get(name);
    }

    /** The present GPUs, in the workers' order; empty before the workers have reported them. */
    List<Device> devices() {
        return devices;
    }

    /** Updates the picture of the reservations after a change of an entry. */
    void refresh() {
        gpuPicture = loads(null);
    }

    /** Sets whether a GPU gets further vGPUs. Its present vGPUs stay. */
    public void setDrained(String uuid, boolean isDrained) {
        if (isDrained ? drained.add(uuid) : drained.remove(uuid)) {
            refresh();
        }
    }

    /** Whether a GPU gets no further vGPUs, as {@link #setDrained} has set it. */
    public boolean isDrained(String uuid) {
        return drained.contains(uuid);
    }

    /** Finds a vGPU that is neither being deleted nor moved. */
    VgpuEntry existing(String name) throws VgpuException {
        VgpuEntry entry = entries.get(name);
        if (entry == null) {
            throw VgpuException.missing(name);
        }
        if (entry.objection() != null) {
            throw VgpuException.conflict(entry.objection());
        }
        return entry;
    }

    void publish(VgpuEntry entry) {
        VgpuView after = entry.view();
        VgpuView before = pictures.put(entry.vgpu.name(), after);
        if (!after.equals(before)) {
            listeners.forEach(listener -> listener.changed(before, after));
        }
    }

    /** A vGPU may stay on its drained GPU, also with other properties. */
    private boolean isDrainedFor(VgpuEntry entry, String uuid) {
        return drained.contains(uuid) && (entry == null || !entry.isOn(uuid));
    }

    List<GpuLoad> loads(VgpuEntry except) {
        List<GpuLoad> loads = new ArrayList<>(devices.size());
        Set<WorkerKind> kinds = kinds(except);
        for (Device device : devices) {
            LoadSum sum = new LoadSum();
            int sessions = 0;
            for (VgpuEntry entry : entries.values()) {
                int times = entry == except ? 0 : entry.times(device.uuid());
                for (int i = 0; i < times; i++) {
                    sum.add(entry.vgpu);
                    sessions += entry.vgpu.reserves() ? Math.max(1, entry.sessions) : entry.sessions;
                }
            }
            int pools = (int) kinds.stream().filter(kind -> kind.gpus().contains(device.uuid())).count();
            int keepers = sum.hasSwappable() ? 1 : 0;
            int spare = spareWorkers * Math.max(1, pools) + keepers;
            loads.add(sum.on(device, spare + sessions, contextBytes.getOrDefault(device.uuid(), 0L),
                failing.test(device.uuid()), isDrainedFor(except, device.uuid())));
        }
        return List.copyOf(loads);
    }
}
