package io.hawser.broker.region;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.door.DoorListener;
import io.hawser.broker.machine.LogLimiter;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.status.StatusSource;
import io.hawser.broker.vgpu.VgpuTable;
import io.hawser.shm.region.RegionLayout;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;

/**
 * The regions that the broker serves. Only the event loop changes them; {@link #list}, {@link #find}, {@link #create}
 * and {@link #remove} from any thread.
 */
public final class Regions {
    private static final int LOG_LINES_A_SECOND = 20;

    private final RegionContext context;
    private final ConcurrentSkipListMap<String, Region> regions = new ConcurrentSkipListMap<>();
    private Poller poller;
    private ScheduledFuture<?> tick;
    private boolean stopping;

    /**
     * Makes an empty set of regions.
     *
     * @param descriptionHash of the API that the workers implement.
     * @param folders below which REST may place regions.
     * @param sockets that brokers of this state folder created.
     */
    public Regions(EventLoop loop, VgpuTable vgpus, SessionRegistry sessions, WorkerPools pools,
        StatusSource status, DoorListener listener, long descriptionHash, RegionFolders folders, MadeSockets sockets) {
        context = new RegionContext(loop, vgpus, sessions, pools, status,
            new LogLimiter(LOG_LINES_A_SECOND, System::nanoTime), listener, descriptionHash, folders, sockets);
    }

    /**
     * Opens the regions of the settings, up to the first failure. Event loop only.
     *
     * @throws RegionException when the broker cannot serve one of them.
     */
    public void open(Map<String, BrokerConfig.Region> configured) throws RegionException {
        for (Map.Entry<String, BrokerConfig.Region> entry : configured.entrySet()) {
            open(RegionSettings.of(entry.getKey(), entry.getValue()));
        }
    }

    private Region open(RegionSettings settings) throws RegionException {
        settings.check();
        if (stopping) {
            throw new RegionException(RegionException.Kind.CONFLICT, "the broker is shutting down");
        }
        if (!context.vgpus().has(settings.vgpu())) {
            throw new RegionException(RegionException.Kind.INVALID, "a region's vGPU must exist: region="
                + settings.name() + " vgpu=" + settings.vgpu());
        }
        if (regions.containsKey(settings.name())) {
            throw new RegionException(RegionException.Kind.CONFLICT, "a region with this name already exists: region="
                + settings.name());
        }
        Region region = Region.open(settings, context);
        regions.put(settings.name(), region);
        schedule();
        return region;
    }

    /** Opens another region; completes exceptionally with {@link RegionException}. */
    public CompletableFuture<RegionView> create(RegionSettings settings) {
        CompletableFuture<RegionView> created = new CompletableFuture<>();
        context.loop().execute(() -> {
            try {
                Region region = open(settings);
                context.sessions().admission().markInUse(settings.vgpu()).whenComplete((now, failure) -> {
                    if (failure == null) {
                        created.complete(region.view());
                    } else {
                        close(region, failure.getMessage()).thenRun(() -> created.completeExceptionally(
                            new RegionException(RegionException.Kind.CONFLICT, failure.getMessage())));
                    }
                });
            } catch (RegionException | RuntimeException e) {
                created.completeExceptionally(e);
            }
        });
        return created;
    }

    /**
     * Ends a region and its sessions.
     *
     * @return completes when the region has released everything; exceptionally with {@link RegionException} when it
     *     does not exist.
     */
    public CompletableFuture<Void> remove(String name, String reason) {
        CompletableFuture<Void> removed = new CompletableFuture<>();
        context.loop().execute(() -> {
            Region region = regions.get(name);
            if (region == null) {
                removed.completeExceptionally(new RegionException(RegionException.Kind.MISSING,
                    "there is no such region: region=" + name));
                return;
            }
            close(region, reason).thenRun(() -> removed.complete(null));
        });
        return removed;
    }

    /**
     * Ends all regions of a vGPU and their sessions.
     *
     * @return completes when all of them have released everything.
     */
    public CompletableFuture<Void> removeAll(String vgpu, String reason) {
        return CompletableFuture.supplyAsync(() -> regions.values().stream()
            .filter(region -> region.settings().vgpu().equals(vgpu)).map(region -> close(region, reason))
            .toArray(CompletableFuture<?>[]::new), context.loop()).thenCompose(CompletableFuture::allOf);
    }

    private CompletableFuture<Void> close(Region region, String reason) {
        return region.close(reason).thenRun(() -> {
            regions.remove(region.settings().name(), region);
            schedule();
        });
    }

    /** The regions, by name. */
    public List<RegionView> list() {
        return regions.values().stream().map(Region::view).toList();
    }

    /** A region by its name. */
    public Optional<RegionView> find(String name) {
        return Optional.ofNullable(regions.get(name)).map(Region::view);
    }

    /** Ends all regions; completes when none is left. Event loop only. */
    public CompletableFuture<Void> stop(String reason) {
        stopping = true;
        return CompletableFuture.allOf(regions.values().stream().map(r -> close(r, reason))
            .toArray(CompletableFuture[]::new));
    }

    private void schedule() {
        List<Region> polled = regions.values().stream().filter(r -> !r.settings().hasDoorbell()).toList();
        if (poller == null && !polled.isEmpty()) {
            poller = new Poller();
        }
        if (poller != null) {
            poller.watch(polled);
        }
        if (polled.isEmpty()) {
            poller = null;
        }
        if (tick == null && !regions.isEmpty()) {
            tick = context.loop().scheduleWithFixedDelay(this::tick, RegionLayout.BEAT_MS, RegionLayout.BEAT_MS,
                TimeUnit.MILLISECONDS);
        } else if (tick != null && regions.isEmpty()) {
            tick.cancel(false);
            tick = null;
        }
    }

    private void tick() {
        long nowNs = System.nanoTime();
        regions.values().forEach(r -> r.tick(nowNs));
    }
}
