package io.hawser.broker;

import io.hawser.broker.admin.Acts;
import io.hawser.broker.admin.Expiries;
import io.hawser.broker.admin.GpuWatch;
import io.hawser.broker.admin.Membership;
import io.hawser.broker.admin.MemoryWatch;
import io.hawser.broker.admin.MoveService;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.admin.VgpuLoader;
import io.hawser.broker.admin.VgpuService;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.config.PoolConfig;
import io.hawser.broker.door.FrontDoor;
import io.hawser.broker.image.ImageStore;
import io.hawser.broker.jail.ComputeCache;
import io.hawser.broker.jail.Confinement;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.StartException;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.move.Moves;
import io.hawser.broker.move.Receptions;
import io.hawser.broker.nvml.GpuMonitor;
import io.hawser.broker.pool.MoveHelper;
import io.hawser.broker.pool.MpsFolder;
import io.hawser.broker.pool.StartRules;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerCommand;
import io.hawser.broker.pool.WorkerPool;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.region.MadeSockets;
import io.hawser.broker.region.RegionException;
import io.hawser.broker.region.RegionFolders;
import io.hawser.broker.region.Regions;
import io.hawser.broker.session.MpsRecovery;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.status.StatusSource;
import io.hawser.broker.status.StatusText;
import io.hawser.broker.status.VgpuUse;
import io.hawser.broker.store.Database;
import io.hawser.broker.store.DatabaseException;
import io.hawser.broker.store.StateDir;
import io.hawser.broker.swap.SwapSource;
import io.hawser.broker.swap.Swapping;
import io.hawser.broker.token.AdminToken;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.turns.SessionTurns;
import io.hawser.broker.turns.TurnMode;
import io.hawser.broker.vgpu.MovePlaces;
import io.hawser.broker.vgpu.Placement;
import io.hawser.broker.vgpu.VgpuTable;
import io.netty.channel.EventLoop;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.jboss.logging.Logger;

/**
 * The broker without its REST interface: front door, sessions and workers on one event loop. CUDA calls never pass
 * through the broker. This class only assembles:
 *
 * <ul>
 *   <li>The constructor makes the parts, from the lowest floor to the highest. A part that needs a later one gets a
 *       function that reads the later one's field.
 *   <li>{@link #start} opens the doors and starts the workers. After a failure it releases everything.
 *   <li>{@link #stop} closes the parts in the order that their sessions and threads need.
 *   <li>{@link #parts} has the parts for the code above: REST, health, metrics and the application.
 * </ul>
 *
 * <p>Thread-safe.
 */
public final class Broker {
    private static final Logger LOG = Logger.getLogger(Broker.class);
    /** Time for a stop beyond the workers' own limit. */
    private static final Duration STOP_MARGIN = Duration.ofSeconds(3);
    /** Seconds between writes of the tokens' last use to the database. */
    private static final int TOKEN_USES_SECONDS = 60;
    private static final long WATCH_MS = 1000;

    /**
     * The parts that the code above the broker uses. Each states its threads.
     *
     * @param confinement the workers' jail.
     * @param membership in a pool of brokers; empty when the broker is alone.
     */
    public record Parts(StateDir stateDir, AdminToken adminToken, Database database, LoopPulse pulse, VgpuTable vgpus,
        VgpuService vgpuService, MoveService moveService, TokenService tokenService, GpuWatch gpuWatch,
        GpuMonitor gpuMonitor,
        WorkerPools pools, Confinement confinement, SessionRegistry sessions, Ledgers ledgers, TurnMode turnMode,
        FrontDoor door, Regions regions, SwapSource swaps, Expiries expiries,
        Optional<Membership> membership) {}

    /** The sources of the GPU monitor. */
    private record Monitored(WorkerPools pools, SessionRegistry registry) implements GpuMonitor.Watched {
        @Override
        public List<Device> devices() {
            return pools.state().devices();
        }

        @Override
        public List<SessionView> sessions() {
            return registry.list();
        }

        @Override
        public List<Integer> idleWorkerPids() {
            return pools.idlePids();
        }
    }

    private final BrokerConfig config;
    private final StateDir stateDir;
    private final Database database;
    private final MpsFolder mps; // null with the software GPU
    private final ComputeCache compiled; // null for none
    private final WorkerCommand command;
    private final TurnMode turnMode;
    private final VgpuTable vgpus;
    private final TokenTable tokens = new TokenTable();
    private final EpollEventLoopGroup group;
    private final EventLoop loop;
    private final ImageStore images;
    private final Ledgers ledgers;
    private final SessionTurns turns;
    private final MoveHelper helper;
    private final Swapping swapping;
    private final SessionRegistry sessions;
    private final WorkerPools pools;
    private final Moves moves;
    private final GpuMonitor gpuMonitor;
    private final FrontDoor door;
    private final Regions regions;
    private final Acts acts;
    private final TokenService tokenService;
    private final Membership membership; // null when the broker is alone
    private final GpuWatch gpuWatch;
    private final Parts parts;

    private Broker(BrokerConfig config, Map<String, String> environment, BrokerListener listener, StateDir stateDir,
        Database database, long descriptionHash) throws IOException, SQLException {
        this.config = config;
        this.stateDir = stateDir;
        this.database = database;
        mps = MpsFolder.of(config, environment).orElse(null);
        compiled = ComputeCache.open(config.computeCache(), stateDir.resolve(""));
        command = WorkerCommand.of(config, environment, compiled).withMps(mps).withCache(config);
        AdminToken adminToken = new AdminToken(stateDir.resolve("admin.token"));
        turnMode = TurnMode.of(config, mps);
        PeerBroker me = Membership.register(config, database, stateDir.resolve(""));
        vgpus = loadVgpus(me);
        if (compiled != null) {
            compiled.retain(vgpus.list().stream().map(view -> view.vgpu().name()).collect(Collectors.toSet()));
        }
        group = new EpollEventLoopGroup(1, new DefaultThreadFactory("hawser-broker", true));
        loop = group.next();
        LoopPulse pulse = new LoopPulse(loop);
        images = images(config.images());
        ledgers = new Ledgers(config.sessions().max(), this::devices, vgpus::amount, this::contextBytes);
        turns = turns();
        helper = new MoveHelper(loop, command, config.worker().startTimeout(), config.sessions().endTimeout());
        swapping = new Swapping(loop, config.swap(), vgpus, this::pools, ledgers, helper);
        sessions = new SessionRegistry(loop, config.sessions().max(), vgpus, images, ledgers, turns, swapping);
        pools = new WorkerPools(loop, command, limits(config), new WorkerEvents(sessions, this::moves, listener),
            vgpus::percentage, vgpus::network, vgpus::computeShare, vgpus::contextRoom, this::setGpus);
        sessions.setListener(new SessionEvents(listener,
            turnMode == TurnMode.MPS ? new MpsRecovery(loop, pools, sessions) : null));
        MovePlaces places = new MovePlaces(vgpus);
        moves = new Moves(loop, sessions, pools, ledgers, places, config.move().answerTimeout(),
            listener::moveOver);
        Receptions receptions = new Receptions(loop, sessions, pools, places, moves);
        gpuMonitor = new GpuMonitor(new Monitored(pools, sessions));
        pools.known().thenAccept(known -> gpuMonitor.start(known.backend()));
        VgpuUse use = new VgpuUse(sessions::list);
        StatusSource status = new StatusText(vgpus, sessions::list, new StatusText.Gpus(this::devices,
            gpuMonitor::reading, gpuMonitor::driverVersion, ledgers::usedBytes, use::percent),
            command.confinement().libraries().libraries(), swapping);
        door = new FrontDoor(loop, config, tokens, sessions, pools, status, listener, descriptionHash,
            this::elsewhere, receptions);
        regions = new Regions(loop, vgpus, sessions, pools, status, listener, descriptionHash,
            RegionFolders.of(config, stateDir.resolve("")), new MadeSockets(stateDir.resolve("sockets")));
        acts = new Acts(loop, database, vgpus, tokens);
        VgpuService vgpuService = new VgpuService(acts, vgpus, tokens,
            new VgpuService.Users(sessions, regions, images, compiled, ledgers),
            table -> pools.keepReady(table.kinds()));
        MoveService moveService = new MoveService(loop, acts, vgpus, vgpuService, places, moves);
        tokenService = new TokenService(acts, vgpus, tokens, sessions);
        membership = me == null ? null : new Membership(config, me, new Membership.Parts(loop, acts, database, vgpus,
            tokens, vgpuService, tokenService, sessions, this::hasRegion, moves, receptions, moveService));
        gpuWatch = new GpuWatch(vgpus, vgpuService, gpuMonitor);
        loop.scheduleAtFixedRate(() -> use.sample(System.nanoTime()), WATCH_MS, WATCH_MS, TimeUnit.MILLISECONDS);
        Expiries expiries = new Expiries(vgpus, vgpuService::deleteExpired);
        loop.scheduleAtFixedRate(() -> expiries.check(Vgpu.now()), WATCH_MS, WATCH_MS, TimeUnit.MILLISECONDS);
        loop.scheduleAtFixedRate(sessions::sampleMemory, WATCH_MS, WATCH_MS, TimeUnit.MILLISECONDS);
        schedule(new MemoryWatch(ledgers, vgpus, sessions, pools, gpuMonitor));
        parts = new Parts(stateDir, adminToken, database, pulse, vgpus, vgpuService, moveService, tokenService,
            gpuWatch, gpuMonitor, pools, command.confinement(), sessions, ledgers, turnMode, door, regions, swapping,
            expiries, Optional.ofNullable(membership));
    }

    private VgpuTable loadVgpus(PeerBroker me) throws IOException, SQLException {
        Placement placement = Placement.of(config.placement(), config.overcommit());
        placement.notice().ifPresent(LOG::warn);
        VgpuTable table = new VgpuTable(placement, config.worker().poolSize(), this::isFailing);
        if (mps != null) {
            mps.warnings().forEach(LOG::warn);
        }
        if (turnMode == TurnMode.MPS) {
            table.shareByPercentage();
        }
        new VgpuLoader(config, stateDir.resolve("default.token"), me).load(database, table, tokens);
        return table;
    }

    private static ImageStore images(BrokerConfig.Images images) {
        return new ImageStore(new ImageStore.Limits(images.maxCount(), images.maxSize().asLongValue()),
            new ImageStore.Limits(images.maxTotalCount(), images.maxTotalSize().asLongValue()));
    }

    private SessionTurns turns() throws IOException {
        if (turnMode != TurnMode.TURNS) {
            config.turns().record().ifPresent(file -> LOG.warnf("no turns, so nothing is recorded:"
                + " hawser.turns.record=%s turns=%s", file, turnMode.label()));
            return SessionTurns.none();
        }
        return SessionTurns.of(config.turns(), this::leavesEqualShares, vgpus::computeShare);
    }

    private static WorkerPool.Limits limits(BrokerConfig config) {
        BrokerConfig.Worker worker = config.worker();
        PoolConfig pool = config.pool();
        return new WorkerPool.Limits(worker.poolSize(), pool.maxSize(), pool.idleTime(), worker.startTimeout(),
            worker.minBackOff(), worker.maxBackOff(), config.sessions().endTimeout(), StartRules.of(
                Runtime.getRuntime().availableProcessors(), pool.maxStarting(), config.sessions().maxWaiting()));
    }

    private void schedule(MemoryWatch memory) {
        loop.scheduleAtFixedRate(memory::check, WATCH_MS, WATCH_MS, TimeUnit.MILLISECONDS);
        loop.scheduleWithFixedDelay(gpuWatch::check, WATCH_MS, WATCH_MS, TimeUnit.MILLISECONDS);
        loop.scheduleWithFixedDelay(tokenService::noteUses, TOKEN_USES_SECONDS, TOKEN_USES_SECONDS,
            TimeUnit.SECONDS);
    }

    // The functions by which parts read parts that the constructor makes later.

    private boolean isFailing(String uuid) {
        return pools.isFailing(uuid);
    }

    private WorkerPools pools() {
        return pools;
    }

    private Moves moves() {
        return moves;
    }

    private List<Device> devices() {
        return pools.state().devices();
    }

    private CompletionStage<String> elsewhere(String vgpu, boolean overTls, boolean opens) {
        CompletableFuture<Void> moved = opens ? vgpus.whenMoved(vgpu) : CompletableFuture.completedFuture(null);
        if (!moved.isDone()) {
            return moved.thenComposeAsync(now -> vgpus.has(vgpu) || membership == null
                ? elsewhere(vgpu, overTls, true) : membership.whereabouts().afterMove(vgpu, overTls), loop);
        }
        return membership == null ? CompletableFuture.completedFuture(null)
            : membership.whereabouts().of(vgpu, overTls);
    }

    private boolean hasRegion(String vgpu) {
        return regions.list().stream().anyMatch(region -> region.settings().vgpu().equals(vgpu));
    }

    private long contextBytes(String gpu) {
        return gpuMonitor.contextBytes(gpu);
    }

    private void setGpus(List<Device> devices) {
        gpuWatch.setDevices(devices);
    }

    /** Equal shares are left to NVIDIA's driver, which divides time better than turns; turns divide other shares. */
    private boolean leavesEqualShares() {
        return pools.backend().equals("nvidia") && config.turns().mode().equals("auto");
    }

    /**
     * Starts a broker. On return its port is open and its first workers are starting.
     *
     * @param environment variables that workers may inherit.
     * @param descriptionHash hash of the workers' API description.
     * @throws StartException when it cannot start; everything is released then.
     */
    public static Broker start(BrokerConfig config, Map<String, String> environment, BrokerListener listener,
        long descriptionHash) {
        if (!Epoll.isAvailable()) {
            throw new StartException("the broker needs Linux on x86_64: " + Epoll.unavailabilityCause());
        }
        StateDir stateDir = StateDir.open(config.stateDir());
        Database database = null;
        Broker broker = null;
        try {
            database = Database.open(config.database(), stateDir.resolve(""));
            broker = new Broker(config, environment, listener, stateDir, database, descriptionHash);
            broker.door.open();
            broker.joinPool();
            broker.openRegions();
            broker.loop.submit(broker.pools::start).syncUninterruptibly();
            return broker;
        } catch (IOException | SQLException | DatabaseException | RegionException | IllegalArgumentException e) {
            if (broker != null) {
                broker.release(e.getMessage());
            }
            if (database != null) {
                database.close();
            }
            closeQuietly(stateDir);
            throw new StartException(e.getMessage());
        }
    }

    /** Releases the parts of a broker that has no worker. */
    private void release(String reason) {
        door.close();
        door.closeRelays();
        leavePool();
        closeRegions(reason);
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS).awaitUninterruptibly(2, TimeUnit.SECONDS);
        turns.close();
        command.confinement().close();
    }

    private void joinPool() {
        if (membership != null) {
            membership.begin(door.endpoint(), door.tlsEndpoint());
        }
    }

    private void leavePool() {
        if (membership != null) {
            membership.leave();
        }
    }

    private void openRegions() throws RegionException {
        try {
            loop.submit(() -> {
                regions.open(config.regions());
                return null;
            }).get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof RegionException known) {
                throw known;
            }
            throw new IllegalStateException(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    private void closeRegions(String reason) {
        CompletableFuture<Void> closed = new CompletableFuture<>();
        loop.execute(() -> regions.stop(reason).thenRun(() -> closed.complete(null)));
        await(closed, STOP_MARGIN, "some regions were not closed in time; their files stay");
    }

    private static void closeQuietly(StateDir stateDir) {
        try {
            stateDir.close();
        } catch (IOException e) {
            LOG.warnf("the state folder could not be closed: %s", e.getMessage());
        }
    }

    /** The parts, for the code above. */
    public Parts parts() {
        return parts;
    }

    /** The event loop, for tests. */
    EventLoop loop() {
        return loop;
    }

    /** Ends sessions and workers in bounded time, and frees the state folder. */
    public void stop(String reason) {
        door.close();
        gpuMonitor.stop();
        CompletableFuture<Void> stopped = new CompletableFuture<>();
        loop.execute(() -> {
            sessions.close();
            moves.stop(reason);
            List<Long> running = sessions.list().stream().map(s -> s.id()).toList();
            running.forEach(id -> sessions.end(id, reason));
            CompletableFuture.allOf(pools.stop(reason), helper.stop(reason)).thenRun(() -> stopped.complete(null));
        });
        await(stopped, config.sessions().endTimeout().plus(STOP_MARGIN)
            .plus(Worker.freeingTime(config.swap().memory().asLongValue())),
            "some workers have not ended in time; they end when the broker closes their control sockets");
        closeRegions(reason);
        tokenService.noteUses();
        leavePool();
        acts.close();
        database.close();
        door.closeRelays();
        loop.submit(ledgers::close).awaitUninterruptibly(1, TimeUnit.SECONDS);
        loop.submit(images::close).awaitUninterruptibly(1, TimeUnit.SECONDS);
        command.confinement().close();
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS).awaitUninterruptibly(2, TimeUnit.SECONDS);
        turns.close(); // after the last call of the event loop
        closeQuietly(stateDir);
    }

    private static void await(CompletableFuture<Void> stopped, Duration limit, String leftBehind) {
        try {
            stopped.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            LOG.error(leftBehind);
        } catch (ExecutionException e) {
            LOG.error("the broker's stop has failed", e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
