package io.hawser.broker.swap;

import io.hawser.broker.config.SwapConfig;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.model.SwapInfo;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.pool.MoveHelper;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.pool.WorkerMessage.ProcessState;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.pool.WorkerRequest;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import io.hawser.broker.vgpu.GpuLoad;
import io.hawser.broker.vgpu.VgpuTable;
import io.netty.channel.EventLoop;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jboss.logging.Logger;

/**
 * Swaps the memory of sessions: keeps a worker as the keeper of each GPU that has swappable vGPUs, connects sessions
 * with it, and carries out what {@link Residency} decides. Event loop only, except {@link #of}.
 */
public final class Swapping implements SwapSource {
    private static final Logger LOG = Logger.getLogger(Swapping.class);
    private static final long STEP_MS = 50; // while somebody waits or moves
    private static final long RETRY_MS = 1000; // after memory that could not come back
    private static final int MAX_RETRIES = 30;
    private static final long DEEP_CHECKS = 10; // in the idle time after which a session leaves wholly
    private static final long LEAST_CHECK_MS = 50;
    private static final long MOST_CHECK_MS = 1000;
    private static final SwapInfo NO_SESSION = new SwapInfo(true, 0, 0, 0, 0, "", 0, 0, "");

    private final EventLoop loop;
    private final SwapRules rules;
    private final VgpuTable vgpus;
    private final Supplier<WorkerPools> pools;
    private final Ledgers ledgers;
    private final MoveHelper helper;
    private final Map<String, Gpu> gpus = new HashMap<>();
    private final Map<Worker, Place> places = new HashMap<>();
    private final Map<String, Residency.Totals> totals = new HashMap<>();
    private final Map<String, SwapInfo> pictures = new ConcurrentHashMap<>();
    private volatile String lossReason = ""; // why no session leaves wholly any more; empty while they do

    /** A GPU with swappable vGPUs. */
    private final class Gpu {
        private final String uuid;
        private long keptBytes; // host memory that the keeper has allocated
        private final Residency residency = new Residency(rules, this::roomBytes, () -> keptBytes, totals);
        private Worker keeper; // null while there is none
        private boolean isStarting;
        private boolean isStepping; // a step is scheduled

        Gpu(String uuid) {
            this.uuid = uuid;
        }

        private long roomBytes() {
            return load().map(GpuLoad::swappableRoomBytes).orElse(0L);
        }

        private Optional<GpuLoad> load() {
            return vgpus.gpus().stream().filter(load -> load.device().uuid().equals(uuid)).findFirst();
        }
    }

    /** A session of a swappable vGPU. */
    private final class Place implements Residency.Seat {
        private final Worker worker;
        private final String vgpu;
        private final Gpu gpu;
        private final Worker keeper; // null: the session cannot move
        private int retries;

        Place(Worker worker, String vgpu, Gpu gpu) {
            this.worker = worker;
            this.vgpu = vgpu;
            this.gpu = gpu;
            keeper = gpu.keeper;
        }

        @Override
        public void leave(long limitBytes) {
            if (keeper == null) {
                loop.execute(() -> answer(0, "it began before the keeper of its GPU was ready"));
            } else if (worker.isUsable()) {
                worker.swapOut(limitBytes);
            }
        }

        @Override
        public void enter(long limitBytes) {
            if (worker.isUsable()) {
                worker.swapIn(limitBytes);
            }
        }

        @Override
        public void freeze() {
            if (worker.isUsable()) {
                worker.swapFreeze(true);
            }
        }

        @Override
        public void thaw() {
            if (worker.isUsable()) {
                worker.swapFreeze(false);
            }
        }

        @Override
        public void sink() {
            long bytes = gpu.load().map(GpuLoad::contextBytes).orElse(0L);
            helper.checkpoint(worker, bytes, outcome -> sunk(this, outcome, bytes));
        }

        @Override
        public void rise() {
            helper.restore(worker, outcome -> risen(this, outcome));
        }

        private void answer(long bytes, String stays) {
            gpu.residency.left(this, bytes, stays, System.nanoTime());
            step(gpu);
        }
    }

    /**
     * Starts without sessions.
     *
     * @param pools the workers; asked after the first report of the GPUs.
     * @param helper moves the GPU state of sessions that are idle for long.
     */
    public Swapping(EventLoop loop, SwapConfig settings, VgpuTable vgpus, Supplier<WorkerPools> pools,
        Ledgers ledgers, MoveHelper helper) {
        this.loop = loop;
        rules = SwapRules.of(settings);
        this.vgpus = vgpus;
        this.pools = pools;
        this.ledgers = ledgers;
        this.helper = helper;
        if (rules.deepNs() > 0) {
            long intervalMs = Math.clamp(TimeUnit.NANOSECONDS.toMillis(rules.deepNs()) / DEEP_CHECKS, LEAST_CHECK_MS,
                MOST_CHECK_MS);
            loop.scheduleWithFixedDelay(() -> gpus.values().forEach(this::sink), intervalMs, intervalMs,
                TimeUnit.MILLISECONDS);
        }
        vgpus.addListener((before, after) -> loop.execute(() -> apply(before, after)));
    }

    private void apply(VgpuView before, VgpuView after) {
        if (after == null) {
            totals.remove(before.vgpu().name());
            pictures.remove(before.vgpu().name());
            return;
        }
        Vgpu vgpu = after.vgpu();
        if (vgpu.swappable() && !after.placedGpus().isEmpty()) {
            Gpu gpu = gpu(after.placedGpus().getFirst());
            keepKeeper(gpu);
            gpu.residency.change(vgpu.name(), vgpu.memoryBytes(), vgpu.computeShare());
            step(gpu);
        }
    }

    private Gpu gpu(String uuid) {
        return gpus.computeIfAbsent(uuid, Gpu::new);
    }

    /** Makes a worker the keeper of a GPU, unless there is one. */
    private void keepKeeper(Gpu gpu) {
        if (rules.maxBytes() == 0 || gpu.keeper != null || gpu.isStarting) {
            return;
        }
        gpu.isStarting = true;
        pools.get().take(new KeeperRequest(gpu.uuid)).whenComplete((worker, failure) -> {
            gpu.isStarting = false;
            if (worker == null) {
                LOG.warnf("the GPU has no keeper, so no session can be swapped out: gpu=%s: %s", gpu.uuid,
                    failure.getMessage());
                return;
            }
            gpu.keeper = worker;
            worker.keep(rules.maxBytes(), rules.aheadBytes());
            LOG.infof("worker %d keeps the memory of swapped sessions: gpu=%s maxBytes=%d pid=%d", worker.id(),
                gpu.uuid, rules.maxBytes(), worker.pid());
        });
    }

    /** A worker for one GPU, and for no vGPU. */
    private record KeeperRequest(String gpu) implements WorkerRequest {
        @Override
        public String vgpu() {
            return "";
        }

        @Override
        public List<String> gpus() {
            return List.of(gpu);
        }
    }

    /** Why a vGPU takes no further session now, as a message for the guest; null when it does. */
    public String objection(String name) {
        VgpuView view = vgpus.find(name).orElse(null);
        if (view == null || !view.vgpu().swappable() || view.placedGpus().isEmpty()) {
            return null;
        }
        Gpu gpu = gpu(view.placedGpus().getFirst());
        keepKeeper(gpu);
        long outBytes = gpu.residency.outBytes();
        if (rules.maxBytes() > 0 && outBytes >= rules.maxBytes()) {
            return "the host's memory for swapped sessions is full: gpu=" + gpu.uuid + " swappedBytes=" + outBytes
                + " maxBytes=" + rules.maxBytes();
        }
        return null;
    }

    /**
     * Gives the worker of a swappable vGPU its way to the keeper, before its session.
     *
     * @param uuids of the session's GPUs.
     * @throws PosixException when the worker cannot be told; it is then unusable.
     */
    public void join(Worker worker, String name, List<String> uuids) throws PosixException {
        VgpuView view = vgpus.find(name).orElse(null);
        if (view == null || !view.vgpu().swappable() || uuids.size() != 1) {
            return;
        }
        Gpu gpu = gpu(uuids.getFirst());
        Place place = new Place(worker, name, gpu);
        String uuid = gpu.uuid;
        boolean isIn = gpu.residency.join(place, name, view.vgpu().memoryBytes(), view.vgpu().computeShare(),
            () -> ledgers.usedBytes(name, uuid), System.nanoTime());
        places.put(worker, place);
        if (place.keeper != null && place.keeper.isUsable()) {
            connect(place, view.vgpu().memoryBytes(), !isIn);
        } else if (!isIn) {
            throw new PosixException("swap", "the GPU has neither room for the session nor a keeper: gpu=" + uuid);
        }
        picture(place.vgpu, gpu);
    }

    private static void connect(Place place, long maxBytes, boolean isOut) throws PosixException {
        int[] pair = Posix.blockingPair();
        try {
            place.keeper.keepFor(maxBytes, pair[0]);
            place.worker.giveKeeper(isOut, pair[1]);
        } finally {
            Posix.close(pair[0]);
            Posix.close(pair[1]);
        }
    }

    /** Releases the place of a worker that has exited, or failed to take its session. */
    public void leave(Worker worker) {
        Place place = places.remove(worker);
        if (place != null) {
            place.gpu.residency.remove(place, System.nanoTime());
            step(place.gpu);
            picture(place.vgpu, place.gpu);
        }
        for (Gpu gpu : gpus.values()) {
            if (gpu.keeper == worker && !worker.isUsable()) {
                gpu.keeper = null;
                gpu.keptBytes = 0;
                LOG.logf(gpu.residency.outBytes() > 0 ? Logger.Level.WARN : Logger.Level.INFO,
                    "the keeper of a GPU has ended: gpu=%s worker=%d lostBytes=%d", gpu.uuid, worker.id(),
                    gpu.residency.outBytes());
                loop.schedule(() -> keepKeeper(gpu), RETRY_MS, TimeUnit.MILLISECONDS);
            }
        }
    }

    /** Notes that a session has made calls. */
    public void active(Worker worker) {
        Place place = places.get(worker);
        if (place != null) {
            place.gpu.residency.active(place, System.nanoTime());
            picture(place.vgpu, place.gpu);
        }
    }

    /** Notes the memory that a keeper has allocated; ignores other workers. */
    public void grown(Worker worker, long bytes) {
        gpus.values().stream().filter(gpu -> gpu.keeper == worker).forEach(gpu -> gpu.keptBytes = bytes);
    }

    /** Handles a message of a session's worker. */
    public void handle(Worker worker, WorkerMessage.OfSwap message) {
        Place place = places.get(worker);
        if (place == null) {
            return;
        }
        switch (message) {
            case WorkerMessage.SwapWanted wanted -> place.gpu.residency.want(place, System.nanoTime());
            case WorkerMessage.SwappedOut out -> {
                LOG.debugf("vGPU %s: out: bytes=%d ms=%d stays=%s", place.vgpu, out.bytes(), out.ms(), out.stays());
                place.gpu.residency.left(place, out.bytes(), out.stays(), System.nanoTime());
            }
            case WorkerMessage.SwappedIn in -> entered(place, in);
            case WorkerMessage.SwapMoved moved -> place.gpu.residency.moved(place, moved.bytes(), System.nanoTime());
            case WorkerMessage.SwapFrozen frozen -> {
                LOG.debugf("vGPU %s: makes no calls: stays=%s", place.vgpu, frozen.stays());
                place.gpu.residency.frozen(place, frozen.stays(), System.nanoTime());
            }
            case WorkerMessage.Kept kept -> LOG.debugf("worker %d serves a session, and keeps no memory", worker.id());
        }
        step(place.gpu);
    }

    private void entered(Place place, WorkerMessage.SwappedIn in) {
        LOG.debugf("vGPU %s: in: bytes=%d ms=%d problem=%s", place.vgpu, in.bytes(), in.ms(), in.problem());
        boolean isIn = in.problem().isEmpty();
        place.gpu.residency.entered(place, in.bytes(), isIn);
        place.retries = isIn ? 0 : place.retries + 1;
        if (place.retries >= MAX_RETRIES) {
            place.worker.end("its swapped memory cannot come back: " + in.problem());
        } else if (!isIn) {
            loop.schedule(() -> {
                place.gpu.residency.want(place, System.nanoTime());
                step(place.gpu);
            }, RETRY_MS, TimeUnit.MILLISECONDS);
        }
    }

    private void sink(Gpu gpu) {
        if (lossReason.isEmpty()) {
            gpu.residency.sink(System.nanoTime());
            step(gpu); // ends sessions that do not answer
        }
    }

    private void sunk(Place place, MoveHelper.Outcome outcome, long freedBytes) {
        LOG.debugf("vGPU %s: deep: pid=%d ms=%d problem=%s", place.vgpu, place.worker.pid(), outcome.ms(),
            outcome.problem());
        if (places.get(place.worker) != place) {
            return; // its session has ended
        }
        if (outcome.problem().isEmpty() || outcome.state() == ProcessState.RUNNING) {
            place.gpu.residency.sunk(place, outcome.problem(), freedBytes, System.nanoTime());
            step(place.gpu);
            return;
        }
        lose(place, "its GPU state could not move to the host", outcome);
    }

    private void risen(Place place, MoveHelper.Outcome outcome) {
        LOG.debugf("vGPU %s: no longer deep: pid=%d ms=%d problem=%s", place.vgpu, place.worker.pid(), outcome.ms(),
            outcome.problem());
        if (places.get(place.worker) != place) {
            return;
        }
        if (outcome.problem().isEmpty()) {
            place.retries = 0;
            place.gpu.residency.risen(place, System.nanoTime());
            step(place.gpu);
        } else if (outcome.state() == ProcessState.CHECKPOINTED && ++place.retries < MAX_RETRIES) {
            loop.schedule(place::rise, RETRY_MS, TimeUnit.MILLISECONDS);
        } else {
            lose(place, "its GPU state cannot come back", outcome);
        }
    }

    /** Ends a session that a move has harmed. After a failure of the driver no other session begins such a move. */
    private void lose(Place place, String what, MoveHelper.Outcome outcome) {
        if (outcome.isOfDriver() && lossReason.isEmpty()) {
            lossReason = "a move has cost another session its GPU state: " + outcome.problem();
            LOG.errorf("no session leaves its GPU wholly any more: vgpu=%s pid=%d: %s", place.vgpu, place.worker.pid(),
                outcome.problem());
        }
        place.worker.end(what + ": " + outcome.problem());
    }

    private void step(Gpu gpu) {
        boolean isUnsettled = gpu.residency.step(System.nanoTime());
        for (Residency.Seat seat : gpu.residency.stuck(System.nanoTime())) {
            ((Place) seat).worker
                .end("its memory has not moved for " + TimeUnit.NANOSECONDS.toSeconds(Residency.STUCK_NS) + " s");
        }
        if (isUnsettled && !gpu.isStepping) {
            gpu.isStepping = true;
            loop.schedule(() -> {
                gpu.isStepping = false;
                step(gpu);
            }, STEP_MS, TimeUnit.MILLISECONDS);
        }
        places.values().stream().filter(place -> place.gpu == gpu).map(place -> place.vgpu).distinct()
            .forEach(vgpu -> picture(vgpu, gpu));
    }

    private void picture(String vgpu, Gpu gpu) {
        Residency.Totals sums = totals.get(vgpu);
        if (sums == null) {
            return;
        }
        String stays = gpu.keeper == null ? "the keeper of its GPU is not ready" : gpu.residency.stays(vgpu);
        pictures.put(vgpu, new SwapInfo(gpu.residency.isIn(vgpu), 0, gpu.residency.outBytes(vgpu), sums.swaps(),
            TimeUnit.NANOSECONDS.toMillis(sums.waitedNs() + gpu.residency.waitingNs(vgpu, System.nanoTime())), stays,
            gpu.residency.deepSessions(vgpu), sums.deepSwaps(), gpu.residency.deepStays(vgpu)));
    }

    @Override
    public SwapInfo of(String vgpu) {
        SwapInfo seen = pictures.getOrDefault(vgpu, NO_SESSION);
        return new SwapInfo(seen.resident(), ledgers.usedBytes(vgpu), seen.swappedBytes(), seen.swaps(),
            seen.waitedMs(), rules.maxBytes() == 0 ? "hawser.swap.memory is 0" : seen.stays(), seen.deepSessions(),
            seen.deepSwaps(), deepStays(seen));
    }

    private String deepStays(SwapInfo seen) {
        return rules.deepNs() == 0 ? "hawser.swap.deep is 0" : lossReason.isEmpty() ? seen.deepStays() : lossReason;
    }
}
