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
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import org.jboss.logging.Logger;

/**
 * The vGPUs in memory: how guests are admitted to each, and its place on the GPUs. No method waits or writes to the
 * database; {@code VgpuService} changes both together. Event loop only, except {@link #list}, {@link #find} and
 * {@link #gpus}.
 */
public final class VgpuTable {
    private static final Logger LOG = Logger.getLogger(VgpuTable.class);
    private static final int MAX_VGPUS = 10_000; // each is some hundred bytes, and is looked at when one is placed
    /** Under MPS, percentages of one set of GPUs for which workers are kept ready: each worker costs GPU memory. */
    private static final int MAX_PERCENTAGES = 4;

    /** Told of each change, on the event loop. */
    @FunctionalInterface
    public interface Listener {
        /**
         * A vGPU is another than before; sessions and tokens that come and go are changes too.
         *
         * @param before null for a new one.
         * @param after null for one that is no more.
         */
        void changed(VgpuView before, VgpuView after);
    }

    /**
     * Where vGPUs are from now on.
     *
     * @param moved UUIDs by name of those that have other GPUs than before.
     * @param lost names of those whose sessions have lost their GPUs.
     */
    public record Settled(Map<String, List<String>> moved, Set<String> lost) { }

    /** A vGPU as it is to be, and its GPUs. */
    public record Planned(Vgpu vgpu, List<String> home) { }

    private static final class Entry {
        private Vgpu vgpu;
        private List<String> home; // where it is, or was before its GPU went
        private VgpuState state = VgpuState.WAITING;
        private String problem = "";
        private String closed = ""; // why nobody is let in for the moment
        private int sessions;
        private int tokens;

        Entry(Vgpu vgpu, List<String> home) {
            this.vgpu = vgpu;
            this.home = List.copyOf(home);
        }

        boolean on(String uuid) {
            return state == VgpuState.READY && home.contains(uuid);
        }

        VgpuView view() {
            return new VgpuView(vgpu, state, problem, state == VgpuState.READY ? home : List.of(), sessions, tokens);
        }
    }

    private final Placement placement;
    private final int spareWorkers;
    private final Predicate<String> failing;
    private final List<Listener> listeners = new ArrayList<>();
    private final Map<String, Entry> entries = new LinkedHashMap<>(); // the oldest first
    private final ConcurrentSkipListMap<String, VgpuView> pictures = new ConcurrentSkipListMap<>();
    private final Map<String, Long> contextBytes = new HashMap<>();
    private List<Device> devices = List.of();
    private boolean known; // which GPUs there are
    private boolean byPercentage; // workers have their vGPU's part of a GPU from their start
    private volatile List<GpuLoad> gpuPicture = List.of();

    /**
     * Makes an empty table.
     *
     * @param spareWorkers kept ready of each kind.
     * @param failing whether workers for a GPU do not start, by its UUID.
     */
    public VgpuTable(Placement placement, int spareWorkers, Predicate<String> failing) {
        this.placement = placement;
        this.spareWorkers = spareWorkers;
        this.failing = failing;
    }

    /** Tells someone of each change from now on. */
    public void addListener(Listener listener) {
        listeners.add(listener);
    }

    /** Each vGPU's share is a percentage of its GPUs, under MPS. Before the first vGPU. */
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

    /** What is promised of each GPU, in the workers' order; empty before they are known. Any thread. */
    public List<GpuLoad> gpus() {
        return gpuPicture;
    }

    /** Whether there is such a vGPU, and it is not about to go. */
    public boolean has(String name) {
        Entry entry = entries.get(name);
        return entry != null && entry.closed.isEmpty();
    }

    /** How placement is done. Any thread. */
    public Placement placement() {
        return placement;
    }

    /** What part of its GPUs a vGPU's workers have, as {@link WorkerKind} says it. Any thread. */
    public int percentage(String name) {
        return find(name).map(view -> percentage(view.vgpu())).orElse(WorkerKind.WHOLE);
    }

    private int percentage(Vgpu vgpu) {
        boolean isShared = byPercentage && vgpu.mode() == Sharing.SHARED;
        return isShared ? vgpu.computeShare() : WorkerKind.WHOLE; // who is alone on its GPUs has all of them
    }

    /**
     * The kinds of workers to keep ready: for the sets of GPUs that some vGPU has, and of each set those percentages
     * that most vGPUs have.
     */
    public Set<WorkerKind> kinds() {
        return kinds(null);
    }

    private Set<WorkerKind> kinds(Entry except) {
        Map<List<String>, Map<Integer, Integer>> users = new LinkedHashMap<>();
        for (Entry entry : entries.values()) {
            if (entry != except && entry.state == VgpuState.READY) {
                users.computeIfAbsent(entry.home, home -> new LinkedHashMap<>())
                    .merge(percentage(entry.vgpu), 1, Integer::sum);
            }
        }
        Set<WorkerKind> kinds = new LinkedHashSet<>();
        users.forEach((home, percentages) -> percentages.entrySet().stream()
            .sorted(Map.Entry.<Integer, Integer>comparingByValue().reversed()).limit(MAX_PERCENTAGES)
            .forEach(used -> kinds.add(new WorkerKind(home, used.getKey()))));
        return kinds;
    }

    /** Why a guest cannot come now, for the guest too; null when it can. */
    public String objection(String name, Carrier carrier) {
        Entry entry = entries.get(name);
        if (entry == null) {
            return "the guest's vGPU does not exist: vgpu=" + name;
        }
        Vgpu vgpu = entry.vgpu;
        if (!entry.closed.isEmpty()) {
            return entry.closed;
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
        boolean inThePrice = vgpu.reserves() && entry.sessions == 0;
        if (inThePrice || contextBytes.isEmpty() || entry.state == VgpuState.WAITING) {
            return null;
        }
        return loads(null).stream().filter(gpu -> entry.home.contains(gpu.device().uuid()))
            .map(placement::contextObjection).filter(o -> o != null).findFirst().orElse(null);
    }

    /** A session of it begins: it counts until {@link #leave}. */
    public Vgpu enter(String name) {
        Entry entry = entries.get(name);
        entry.sessions++;
        publish(entry);
        return entry.vgpu;
    }

    /** A session of it is over. */
    public void leave(String name) {
        Entry entry = entries.get(name);
        if (entry != null) {
            entry.sessions--;
            publish(entry);
        }
    }

    /** So many tokens open it. */
    public void tokens(String name, int tokens) {
        Entry entry = entries.get(name);
        if (entry != null) {
            entry.tokens = tokens;
            publish(entry);
        }
    }

    /** What a worker's context costs on a GPU, as somebody has measured. */
    public void contextCost(String uuid, long bytes) {
        if (contextBytes.getOrDefault(uuid, 0L) != bytes) {
            contextBytes.put(uuid, bytes);
            gpuPicture = loads(null);
        }
    }

    /** What the database is to have, the oldest first. */
    public List<VgpuStore.Kept> kept() {
        return entries.values().stream().map(entry -> new VgpuStore.Kept(entry.vgpu, entry.home)).toList();
    }

    /** One that is in the database; settled by {@link #settle}. */
    public void load(Vgpu vgpu, List<String> home) {
        Entry entry = new Entry(vgpu, home);
        entries.put(vgpu.name(), entry);
        publish(entry);
    }

    /**
     * These GPUs there are from now on: each vGPU stays where it was, or is placed.
     *
     * @param present in the workers' order; empty when all are lost.
     */
    public Settled settle(List<Device> present) {
        devices = List.copyOf(present);
        known = true;
        return settle();
    }

    /** Looks at all that have no place, or have lost it. */
    Settled settle() {
        return settle(entries.values());
    }

    private Settled settle(Collection<Entry> some) {
        Map<String, List<String>> moved = new LinkedHashMap<>();
        Set<String> lost = new HashSet<>();
        Set<String> uuids = new HashSet<>();
        devices.forEach(device -> uuids.add(device.uuid()));
        List<Entry> homeless = new ArrayList<>();
        for (Entry entry : known ? some : List.<Entry>of()) {
            boolean all = entry.vgpu.gpus().kind() == GpuChoice.Kind.ALL
                && !entry.home.equals(devices.stream().map(Device::uuid).toList());
            boolean present = !entry.home.isEmpty() && uuids.containsAll(entry.home);
            if (present && entry.state != VgpuState.UNPLACED && (!all || entry.sessions > 0)) {
                is(entry, VgpuState.READY, ""); // without a look at the rules: it was promised
            } else {
                if (entry.state == VgpuState.READY) {
                    lost.add(entry.vgpu.name());
                }
                entry.state = VgpuState.WAITING;
                homeless.add(entry);
            }
        }
        for (Entry entry : homeless) {
            find(entry, uuids).ifPresent(home -> moved.put(entry.vgpu.name(), home));
        }
        gpuPicture = loads(null);
        return new Settled(moved, lost);
    }

    /** Finds a place for one that has none; its GPUs when they are others than before. */
    private Optional<List<String>> find(Entry entry, Set<String> uuids) {
        List<GpuLoad> loads = loads(entry);
        try {
            List<String> home;
            if (entry.vgpu.gpus().kind() == GpuChoice.Kind.LIST && !entry.home.isEmpty()) {
                home = entry.home; // a number in its list may be another GPU's by now
                placement.hold(entry.vgpu, home, loads);
            } else if (entry.vgpu.gpus().kind() == GpuChoice.Kind.ANY && uuids.containsAll(entry.home)
                && !entry.home.isEmpty() && fits(entry.vgpu, entry.home, loads)) {
                home = entry.home;
            } else {
                home = placement.place(entry.vgpu, loads);
            }
            boolean other = !home.equals(entry.home);
            entry.home = home;
            is(entry, VgpuState.READY, "");
            if (other) {
                LOG.infof("vGPU %s is placed: gpus=%s", entry.vgpu.name(), home);
            }
            return other ? Optional.of(home) : Optional.empty();
        } catch (Placement.NoPlaceException e) {
            if (!e.getMessage().equals(entry.problem)) {
                LOG.errorf("the vGPU %s cannot be used: %s", entry.vgpu.name(), e.getMessage());
            }
            is(entry, VgpuState.UNPLACED, e.getMessage());
            return Optional.empty();
        }
    }

    private boolean fits(Vgpu vgpu, List<String> home, List<GpuLoad> loads) {
        try {
            placement.hold(vgpu, home, loads);
            return true;
        } catch (Placement.NoPlaceException e) {
            return false; // placed anew, which says why not
        }
    }

    private void is(Entry entry, VgpuState state, String problem) {
        if (entry.state == state && entry.problem.equals(problem)) {
            return;
        }
        entry.state = state;
        entry.problem = problem;
        publish(entry);
    }

    /** What a vGPU has of a GPU's memory now. */
    public Amount amount(String name, Device device) {
        Entry entry = entries.get(name);
        if (entry == null || !entry.on(device.uuid())) {
            return Amount.NONE;
        }
        if (entry.vgpu.reserves()) {
            return Amount.quota(entry.vgpu.memoryBytes(), device.totalBytes());
        }
        return Amount.bestEffort(device.totalBytes(), entries.values().stream().filter(e -> e.on(device.uuid()))
            .mapToLong(e -> e.vgpu.memoryBytes()).sum());
    }

    /** Where a session of it runs: UUIDs in its order; empty while the GPUs are not known, or it has none. */
    public List<String> home(String name) {
        Entry entry = entries.get(name);
        return entry == null || entry.state != VgpuState.READY ? List.of() : entry.home;
    }

    /** Where a new one would go. */
    public Planned plan(Vgpu vgpu) throws VgpuException {
        if (entries.containsKey(vgpu.name())) {
            throw VgpuException.conflict("there is a vGPU of this name: vgpu=" + vgpu.name());
        }
        if (entries.size() >= MAX_VGPUS) {
            throw VgpuException.conflict("a broker has so many vGPUs at most: max=" + MAX_VGPUS);
        }
        return new Planned(vgpu, place(vgpu, null));
    }

    private List<String> place(Vgpu vgpu, Entry except) throws VgpuException {
        if (!known) {
            throw new VgpuException(VgpuException.Kind.UNAVAILABLE,
                "no worker has told yet which GPUs there are; a vGPU can be placed when one has");
        }
        try {
            return placement.place(vgpu, loads(except));
        } catch (Placement.NoPlaceException e) {
            throw VgpuException.conflict(e.getMessage());
        }
    }

    /** A planned one is in the database. */
    public Settled add(Planned planned) {
        load(planned.vgpu, planned.home);
        return settle(List.of(entries.get(planned.vgpu.name())));
    }

    /**
     * What it would be after a change. Nobody is let in until {@link #change} or {@link #open} when it moves.
     *
     * @param usedBytes memory that its sessions hold on a GPU, by its UUID.
     */
    public Planned planChange(String name, Vgpu after, ToLongFunction<String> usedBytes) throws VgpuException {
        Entry entry = existing(name);
        Vgpu before = entry.vgpu;
        boolean placedAnew = !after.gpus().equals(before.gpus()) || after.mode() != before.mode();
        if (placedAnew && entry.sessions > 0) {
            throw VgpuException.conflict("the GPUs and the mode of a vGPU with sessions must stay: vgpu=" + name
                + " sessions=" + entry.sessions);
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
                hold(after, home, entry);
            }
            home = place(after, entry);
        }
        if (!home.equals(entry.home)) {
            entry.closed = "the vGPU is being moved: vgpu=" + name;
        }
        return new Planned(after, home);
    }

    private void hold(Vgpu vgpu, List<String> home, Entry entry) throws VgpuException {
        try {
            placement.hold(vgpu, home, loads(entry));
        } catch (Placement.NoPlaceException e) {
            throw VgpuException.conflict(e.getMessage());
        }
    }

    /** A planned change is in the database. */
    public Settled change(Planned planned) {
        Entry entry = entries.get(planned.vgpu.name());
        entry.vgpu = planned.vgpu;
        entry.closed = "";
        if (!planned.home.equals(entry.home)) {
            entry.home = planned.home;
            entry.state = VgpuState.WAITING;
        }
        publish(entry);
        return settle();
    }

    /** Lets nobody in any more, since it is to be deleted. */
    public void close(String name) throws VgpuException {
        existing(name).closed = "the vGPU is being deleted: vgpu=" + name;
    }

    /** It stays after all. */
    public void open(String name) {
        Entry entry = entries.get(name);
        if (entry != null) {
            entry.closed = "";
        }
    }

    /** It is not in the database any more. */
    public Settled remove(String name) {
        Entry entry = entries.remove(name);
        pictures.remove(name);
        VgpuView before = entry.view();
        listeners.forEach(listener -> listener.changed(before, null));
        return settle();
    }

    /** One by its name that is not being deleted or moved. */
    private Entry existing(String name) throws VgpuException {
        Entry entry = entries.get(name);
        if (entry == null) {
            throw VgpuException.missing(name);
        }
        if (!entry.closed.isEmpty()) {
            throw VgpuException.conflict(entry.closed);
        }
        return entry;
    }

    private void publish(Entry entry) {
        VgpuView after = entry.view();
        VgpuView before = pictures.put(entry.vgpu.name(), after);
        if (!after.equals(before)) {
            listeners.forEach(listener -> listener.changed(before, after));
        }
    }

    private List<GpuLoad> loads(Entry except) {
        List<GpuLoad> loads = new ArrayList<>(devices.size());
        Set<WorkerKind> kinds = kinds(except);
        for (Device device : devices) {
            int vgpus = 0;
            int shares = 0;
            long reserved = 0;
            int sessions = 0;
            String exclusive = "";
            String shared = "";
            for (Entry entry : entries.values()) {
                if (entry == except || !entry.on(device.uuid())) {
                    continue;
                }
                vgpus++;
                shares += entry.vgpu.computeShare();
                reserved += entry.vgpu.memoryBytes();
                sessions += entry.vgpu.reserves() ? Math.max(1, entry.sessions) : entry.sessions;
                shared = entry.vgpu.name();
                exclusive = entry.vgpu.mode() == Sharing.EXCLUSIVE ? entry.vgpu.name() : exclusive;
            }
            int pools = (int) kinds.stream().filter(kind -> kind.gpus().contains(device.uuid())).count();
            int spare = spareWorkers * Math.max(1, pools);
            loads.add(new GpuLoad(device, vgpus, shares, reserved, spare + sessions,
                contextBytes.getOrDefault(device.uuid(), 0L), exclusive, shared, failing.test(device.uuid())));
        }
        return List.copyOf(loads);
    }
}
