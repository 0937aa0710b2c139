package io.hawser.broker.vgpu;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.GpuChoice;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Texts;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.WorkerKind;
import java.util.ArrayList;
import java.util.List;

/**
 * The places of vGPUs that move with their sessions. From {@link #begin} to the end of its move a vGPU counts on both
 * GPUs, and takes neither guests nor changes. Event loop only.
 */
public final class MovePlaces {
    /** Instead of a GPU: the sessions get other workers on the vGPU's present GPU. */
    public static final String SAME = "same";

    private final VgpuTable table;

    /**
     * A vGPU and the GPUs of its move.
     *
     * @param before the vGPU before the move.
     * @param vgpu as it is after the move: a vGPU that names its GPU names the new one.
     * @param from UUID of its GPU.
     * @param to UUID of the other GPU; equal to {@code from} when only the workers change.
     */
    public record Plan(Vgpu before, Vgpu vgpu, String from, String to) {
        /** Both GPUs, each once. */
        public List<String> gpus() {
            return from.equals(to) ? List.of(from) : List.of(from, to);
        }

        /** The GPUs after the move. */
        public List<String> home() {
            return List.of(to);
        }
    }

    /** Places the vGPUs of this table. */
    public MovePlaces(VgpuTable table) {
        this.table = table;
    }

    /**
     * The UUID of a GPU.
     *
     * @param gpu its number, or its UUID or the beginning of that, with or without {@code GPU-}.
     * @throws VgpuException when not exactly one GPU has it.
     */
    public String gpu(String gpu) throws VgpuException {
        List<Device> devices = table.devices();
        if (devices.isEmpty()) {
            throw new VgpuException(VgpuException.Kind.UNAVAILABLE, "no worker has reported the GPUs yet");
        }
        try {
            GpuChoice choice = GpuChoice.parse(gpu == null ? "" : gpu);
            if (choice.kind() != GpuChoice.Kind.LIST || !choice.isOne()) {
                throw VgpuException.invalid("one GPU must be named by its number or UUID: gpu=" + Texts.shown(gpu));
            }
            return choice.named(devices).getFirst().uuid();
        } catch (IllegalArgumentException e) {
            throw VgpuException.invalid("one GPU must be named by its number or UUID: gpu=" + Texts.shown(gpu));
        } catch (GpuChoice.NoGpuException e) {
            throw new VgpuException(VgpuException.Kind.MISSING, "there is no such GPU: gpu=" + Texts.shown(gpu)
                + " gpus=" + devices.stream().map(Device::uuid).toList());
        }
    }

    /**
     * Reserves room for a vGPU on another GPU, beside that on its present one.
     *
     * @param gpu as for {@link #gpu}, or {@link #SAME}.
     * @throws VgpuException when a rule forbids the move; nothing has changed then.
     */
    public Plan begin(String name, String gpu) throws VgpuException {
        String other = SAME.equals(gpu) ? "" : gpu(gpu);
        VgpuEntry entry = table.existing(name);
        requireMovable(entry);
        String from = entry.home.getFirst();
        if (from.equals(other)) {
            throw VgpuException.conflict("the vGPU is on this GPU already: vgpu=" + name + " gpu=" + other
                + " (gpu=" + SAME + " gives its sessions other workers there)");
        }
        String to = other.isEmpty() ? from : other;
        requireFit(entry, to);
        Plan plan = new Plan(entry.vgpu, after(entry, to), from, to);
        entry.moveTo(to);
        table.refresh();
        return plan;
    }

    private static void requireMovable(VgpuEntry entry) throws VgpuException {
        Vgpu vgpu = entry.vgpu;
        String name = vgpu.name();
        if (entry.state != VgpuState.READY) {
            throw VgpuException.conflict("the vGPU has no GPU: vgpu=" + name + (entry.problem.isEmpty() ? ""
                : ": " + entry.problem));
        }
        if (!vgpu.gpus().isOne() || entry.home.size() != 1) {
            throw VgpuException.conflict("a vGPU that moves must have one GPU: vgpu=" + name + " gpus=" + vgpu.gpus()
                + " placed=" + entry.home);
        }
        if (vgpu.swappable()) {
            throw VgpuException.conflict("its memory may be swapped out; such a vGPU cannot move yet: vgpu=" + name);
        }
    }

    private static Vgpu after(VgpuEntry entry, String to) throws VgpuException {
        Vgpu vgpu = entry.vgpu;
        if (vgpu.gpus().kind() != GpuChoice.Kind.LIST || entry.home.contains(to)) {
            return vgpu;
        }
        if (vgpu.origin() == Origin.SETTINGS) {
            throw VgpuException.conflict("the broker's settings name the vGPU's GPU, and must change first: "
                + "hawser.vgpus." + vgpu.name() + ".gpus=" + vgpu.gpus());
        }
        return new VgpuDraft(null, null, null, null, null, to, null, null).change(vgpu, Vgpu.now());
    }

    /** Each session beyond the first needs another context there. Other workers on the same GPU need room beside it. */
    private void requireFit(VgpuEntry entry, String to) throws VgpuException {
        int more = Math.max(0, entry.sessions - 1);
        boolean isSame = entry.home.contains(to) && entry.destination().isEmpty();
        List<GpuLoad> loads = table.loads(isSame ? null : entry).stream()
            .map(load -> load.device().uuid().equals(to) ? load.withContexts(more) : load).toList();
        table.placement().requireRoom(entry.vgpu, List.of(to), loads);
    }

    /**
     * Checks that a move may still end well: other brokers of a pool may have used the GPU meanwhile.
     *
     * @throws VgpuException when it may not.
     */
    public void requireValid(Plan plan) throws VgpuException {
        VgpuEntry entry = table.entry(plan.vgpu().name());
        if (entry == null || entry.isClosed() || !entry.destination().equals(plan.to())
            || !entry.home.equals(List.of(plan.from())) || entry.state != VgpuState.READY) {
            throw VgpuException.conflict("the vGPU has lost its GPU, or is given up: vgpu=" + plan.vgpu().name());
        }
        requireFit(entry, plan.to());
    }

    /** Ends a move: the vGPU is on its new GPU. The plan must be valid. */
    public void commit(Plan plan) {
        VgpuEntry entry = table.entry(plan.vgpu().name());
        entry.vgpu = plan.vgpu();
        entry.home = plan.home();
        entry.moveTo("");
        table.publish(entry);
        table.refresh();
    }

    /** Ends a move: the vGPU stays. Does nothing when it is gone. */
    public void cancel(Plan plan) {
        VgpuEntry entry = table.entry(plan.vgpu().name());
        if (entry != null && entry.destination().equals(plan.to())) {
            entry.moveTo("");
            table.refresh();
        }
    }

    /**
     * Closes a vGPU that goes to another broker. Until {@link #stay} it takes neither guests nor changes.
     *
     * @throws VgpuException when a rule forbids the move; nothing has changed then.
     */
    public Plan depart(String name) throws VgpuException {
        VgpuEntry entry = table.existing(name);
        requireMovable(entry);
        requireMobile(entry.vgpu);
        entry.closeForMove("the vGPU is being moved to another broker: vgpu=" + name);
        String from = entry.home.getFirst();
        return new Plan(entry.vgpu, entry.vgpu, from, from);
    }

    private void requireMobile(Vgpu vgpu) throws VgpuException {
        if (vgpu.origin() == Origin.SETTINGS) {
            throw VgpuException.conflict("a vGPU of a broker's settings stays at this broker: hawser.vgpus."
                + vgpu.name());
        }
        if (table.percentage(vgpu.name()) != WorkerKind.WHOLE) {
            throw VgpuException.conflict("a vGPU whose share is a percentage of MPS stays at its broker: vgpu="
                + vgpu.name());
        }
    }

    /** Ends a move to another broker: the vGPU stays. */
    public void stay(Plan plan) {
        table.open(plan.vgpu().name());
    }

    /**
     * Reserves room for a vGPU that comes from another broker. Until {@link #admit} it takes no guests.
     *
     * @param gpu as for {@link #gpu}; null for any that has room.
     * @param sessions that come with it.
     * @throws VgpuException when a rule forbids the move; nothing has changed then.
     */
    public Plan expect(Vgpu vgpu, String gpu, int sessions) throws VgpuException {
        requireMobile(vgpu);
        if (table.entry(vgpu.name()) != null) {
            throw VgpuException.conflict("the vGPU is here already, or on its way: vgpu=" + vgpu.name());
        }
        int more = Math.max(0, sessions - 1);
        List<GpuLoad> loads = table.loads(null).stream().map(load -> load.withContexts(more)).toList();
        String to;
        if (gpu == null) {
            Placement.Search search = table.placement().search(vgpu);
            loads.forEach(search::offer);
            to = search.best().device().uuid();
        } else {
            to = gpu(gpu);
            table.placement().requireRoom(vgpu, List.of(to), loads);
        }
        table.load(vgpu, List.of(to));
        VgpuEntry entry = table.entry(vgpu.name());
        entry.state = VgpuState.READY;
        entry.closeForMove("the vGPU is coming from another broker: vgpu=" + vgpu.name());
        table.publish(entry);
        table.refresh();
        return new Plan(vgpu, vgpu.gpus().kind() != GpuChoice.Kind.LIST ? vgpu
            : new VgpuDraft(null, null, null, null, null, to, null, null).change(vgpu, Vgpu.now()), to, to);
    }

    /** A vGPU that was expected is this broker's now. */
    public void admit(Plan plan) {
        table.open(plan.vgpu().name());
    }

    /** A vGPU that was expected does not come. */
    public void refuse(Plan plan) {
        if (table.entry(plan.vgpu().name()) != null) {
            table.remove(plan.vgpu().name());
        }
    }

    /**
     * Chooses another GPU for a vGPU.
     *
     * @return UUID of a GPU that has room.
     * @throws VgpuException when the vGPU names its GPU, or no other GPU fits.
     */
    public String choose(String name) throws VgpuException {
        VgpuEntry entry = table.existing(name);
        requireMovable(entry);
        if (entry.vgpu.gpus().kind() == GpuChoice.Kind.LIST) {
            throw VgpuException.conflict("the vGPU names its GPU: vgpu=" + name + " gpus=" + entry.vgpu.gpus());
        }
        int more = Math.max(0, entry.sessions - 1);
        List<GpuLoad> others = new ArrayList<>();
        for (GpuLoad load : table.loads(entry)) {
            if (!entry.home.contains(load.device().uuid())) {
                others.add(load.withContexts(more));
            }
        }
        if (others.isEmpty()) {
            throw VgpuException.conflict("the broker has no other GPU: vgpu=" + name);
        }
        Placement.Search search = table.placement().search(entry.vgpu);
        others.forEach(search::offer);
        return search.best().device().uuid();
    }

    /** UUIDs of all GPUs. */
    public List<String> gpus() {
        return table.devices().stream().map(Device::uuid).toList();
    }

    /** Names of the vGPUs on a GPU. */
    public List<String> on(String uuid) {
        return table.list().stream().filter(view -> view.placedGpus().contains(uuid)).map(view -> view.vgpu().name())
            .toList();
    }
}
