package io.hawser.broker;

import io.hawser.broker.admin.Acts;
import io.hawser.broker.admin.GpuWatch;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.admin.VgpuLoader;
import io.hawser.broker.admin.VgpuService;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.door.DoorListener;
import io.hawser.broker.door.FrontDoor;
import io.hawser.broker.image.ImageStore;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.ledger.OutsideLook;
import io.hawser.broker.model.Amount;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.StartException;
import io.hawser.broker.nvml.GpuMonitor;
import io.hawser.broker.pool.MpsFolder;
import io.hawser.broker.pool.StartRules;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerCommand;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.pool.WorkerPool;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.region.MadeSockets;
import io.hawser.broker.region.RegionException;
import io.hawser.broker.region.RegionFolders;
import io.hawser.broker.region.Regions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.status.StatusSource;
import io.hawser.broker.status.StatusText;
import io.hawser.broker.store.Database;
import io.hawser.broker.store.DatabaseException;
import io.hawser.broker.token.AdminToken;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.turns.SessionTurns;
import io.hawser.broker.turns.TurnMode;
import io.hawser.broker.turns.TurnRules;
import io.hawser.broker.turns.TurnScheduler;
import io.hawser.broker.vgpu.Placement;
import io.hawser.broker.vgpu.VgpuTable;
import io.netty.channel.EventLoop;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jboss.logging.Logger;

/**
 * The broker without its REST interface: front door, sessions and workers on one event loop. CUDA calls never pass
 * through the broker. Thread-safe.
 */
public final class Broker {
    private static final Logger LOG = Logger.getLogger(Broker.class);
    /** Time for a stop beyond the workers' own limit. */
    private static final Duration STOP_MARGIN = Duration.ofSeconds(3);
    /** Seconds between writes of the tokens' last use to the database. */
    private static final int TOKEN_USES_SECONDS = 60;
    private static final long GPU_LOOK_MS = 1000;
    private static final long MPS_PAUSE_MS = 2000;

    private static final long LEDGER_SWEEP_MS = 1000;

    /** Receives the broker's events, for metrics; on the event loop. */
    public interface Listener extends DoorListener {
        /** A worker became ready; {@code time} since its start. */
        void workerStarted(Duration time);

        /** A worker failed before it had a session. */
        default void workerFailed(String reason) { }

        /** A session has received its worker. */
        default void sessionRuns(SessionView session) { }

        /** A session that had a worker has ended; {@code error} when a failure ended it. */
        default void sessionOver(SessionView session, String reason, boolean error) { }

        /** Only traces the events. */
        Listener NONE = new Listener() {
            @Override
            public void refused(Carrier carrier, Refusal refusal) {
                LOG.tracef("refused: %s %s", carrier, refusal);
            }

            @Override
            public void sessionStarted(Carrier carrier, Duration time) {
                LOG.tracef("session started: %s %s", carrier, time);
            }

            @Override
            public void workerStarted(Duration time) {
                LOG.tracef("worker started: %s", time);
            }
        };
    }

    private final Instant started = Instant.now();
    private final BrokerConfig config;
    private final WorkerCommand command;
    private final StateDir stateDir;
    private final EpollEventLoopGroup group;
    private final AdminToken adminToken;
    private final Database database;
    private final Acts acts;
    private final VgpuTable vgpus;
    private final VgpuService vgpuService;
    private final GpuWatch gpuWatch;
    private final TokenTable tokens = new TokenTable();
    private final TokenService tokenService;
    private final WorkerPools pools;
    private final ImageStore images;
    private final Ledgers ledgers;
    private final OutsideLook outsideLook = new OutsideLook(new Memory());
    private final SessionRegistry sessions;
    private final TurnMode turnMode;
    private final SessionTurns turns;
    private final FrontDoor door;
    private final Regions regions;
    private final LoopPulse pulse;
    private final GpuMonitor gpuMonitor;
    private final CompletableFuture<PoolState> gpuKnown = new CompletableFuture<>();

    private Broker(BrokerConfig config, Map<String, String> environment, Listener listener, StateDir stateDir,
        Database database, long descriptionHash) throws IOException, SQLException {
        this.config = config;
        this.stateDir = stateDir;
        this.database = database;
        MpsFolder mps = MpsFolder.of(config, environment).orElse(null);
        command = WorkerCommand.of(config, environment).withMps(mps).withCache(config);
        adminToken = new AdminToken(stateDir.resolve("admin.token"));
        vgpus = new VgpuTable(Placement.of(config.placement(), config.overcommit()), config.worker().poolSize(),
            this::isFailing);
        turnMode = TurnMode.of(config, mps);
        if (mps != null) {
            mps.warnings().forEach(LOG::warn);
        }
        if (turnMode == TurnMode.MPS) {
            vgpus.shareByPercentage();
        }
        new VgpuLoader(config, stateDir.resolve("default.token")).load(database, vgpus, tokens);
        group = new EpollEventLoopGroup(1, new DefaultThreadFactory("hawser-broker", true));
        EventLoop loop = group.next();
        pulse = new LoopPulse(loop);
        acts = new Acts(loop, database, vgpus, tokens);
        images = new ImageStore(
            new ImageStore.Limits(config.images().maxCount(), config.images().maxSize().asLongValue()),
            new ImageStore.Limits(config.images().maxTotalCount(), config.images().maxTotalSize().asLongValue()));
        ledgers = new Ledgers(config.sessions().max(), this::devices, vgpus::amount, this::contextBytes);
        sessions = new SessionRegistry(loop, config.sessions().max(), vgpus, images, ledgers);
        turns = turnMode == TurnMode.TURNS ? new SessionTurns(new TurnScheduler(TurnRules.of(config.turns()),
            this::leavesEqualShares), this::weight) : SessionTurns.none();
        sessions.setTurns(turns);
        vgpus.addListener((before, after) -> {
            if (after != null && (before == null || before.vgpu().computeShare() != after.vgpu().computeShare())) {
                turns.setWeight(after.vgpu().name(), after.vgpu().computeShare());
                sessions.updateCpuWeights(after.vgpu().name());
            }
            if (after != null && before != null && before.vgpu().memoryBytes() != after.vgpu().memoryBytes()) {
                sessions.setMemoryQuota(after.vgpu().name(), after.vgpu().memoryBytes());
            }
        });
        sessions.setListener(new SessionRegistry.Listener() {
            @Override
            public void onStart(SessionView session) {
                listener.sessionRuns(session);
            }

            @Override
            public void onEnd(SessionView session, String reason, boolean error) {
                listener.sessionOver(session, reason, error);
            }

            @Override
            public void onGpuLost(SessionView session) {
                if (turnMode == TurnMode.MPS) {
                    recoverMps(loop, session);
                }
            }
        });
        pools = new WorkerPools(loop, command, limits(config), new PoolListener(listener), vgpus::percentage,
            this::weight, this::setGpus);
        gpuMonitor = new GpuMonitor(new Monitored());
        StatusSource status = new StatusText(vgpus, sessions, this::devices, gpuMonitor::reading, ledgers::usedBytes);
        door = new FrontDoor(loop, config, tokens, sessions, pools, status, listener, descriptionHash);
        loop.scheduleAtFixedRate(this::checkMemory, LEDGER_SWEEP_MS, LEDGER_SWEEP_MS, TimeUnit.MILLISECONDS);
        regions = new Regions(loop, vgpus, sessions, pools, status, listener, descriptionHash,
            RegionFolders.of(config, stateDir.resolve("")), new MadeSockets(stateDir.resolve("sockets")));
        vgpuService = new VgpuService(acts, vgpus, tokens, new VgpuService.Users(sessions, regions, images, ledgers),
            table -> pools.keepReady(table.kinds()));
        tokenService = new TokenService(acts, vgpus, tokens, sessions);
        gpuWatch = new GpuWatch(vgpus, vgpuService, gpuMonitor);
        loop.scheduleWithFixedDelay(gpuWatch::check, GPU_LOOK_MS, GPU_LOOK_MS, TimeUnit.MILLISECONDS);
        loop.scheduleWithFixedDelay(tokenService::noteUses, TOKEN_USES_SECONDS, TOKEN_USES_SECONDS,
            TimeUnit.SECONDS);
    }

    /**
     * Recovers from a fault under MPS. A fault ends the work of all processes on the GPU, and MPS's server accepts no
     * new process there until all previous ones have ended. This includes processes that have not noticed the fault,
     * and ready workers.
     */
    private void recoverMps(EventLoop loop, SessionView faulted) {
        String reason = "a fault on its GPU under MPS has ended its work";
        Instant then = Instant.now();
        LOG.warnf("a fault of session %d under MPS ends all work on its GPUs: gpus=%s vgpu=%s",
            faulted.id(), faulted.gpus(), faulted.guest().vgpu());
        pools.renew(faulted.gpus(), reason);
        // The pause lets guests receive the CUDA error of the fault first, if they call.
        loop.schedule(() -> sessions.endAllOn(faulted.gpus(), then, reason), MPS_PAUSE_MS, TimeUnit.MILLISECONDS);
    }

    private boolean isFailing(String uuid) {
        return pools.isFailing(uuid);
    }

    private List<Device> devices() {
        return pools.state().devices();
    }

    /** Sets the GPUs. Event loop only. */
    void setGpus(List<Device> devices) {
        gpuWatch.setDevices(devices);
    }

    /**
     * Starts a broker. On return its port is open and its first workers are starting.
     *
     * @param environment variables that workers may inherit.
     * @param descriptionHash hash of the workers' API description.
     * @throws StartException when it cannot start; everything is released then.
     */
    public static Broker start(BrokerConfig config, Map<String, String> environment, Listener listener,
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
            broker.openRegions();
            broker.group.next().submit(broker.pools::start).syncUninterruptibly();
            return broker;
        } catch (IOException | SQLException | DatabaseException | RegionException | IllegalArgumentException e) {
            if (broker != null) {
                broker.door.close();
                broker.door.closeRelays();
                broker.closeRegions(e.getMessage());
                broker.group.shutdownGracefully(0, 1, TimeUnit.SECONDS).awaitUninterruptibly(2, TimeUnit.SECONDS);
                broker.turns.close();
                broker.command.confinement().close();
            }
            if (database != null) {
                database.close();
            }
            closeQuietly(stateDir);
            throw new StartException(e.getMessage());
        }
    }

    /** Equal shares are left to NVIDIA's driver, which divides time better than turns; turns divide other shares. */
    private boolean leavesEqualShares() {
        PoolState known = gpuKnown.getNow(null);
        return known != null && known.backend().equals("nvidia") && config.turns().mode().equals("auto");
    }

    private int weight(String vgpu) {
        return vgpus.find(vgpu).map(v -> TurnRules.weight(v.vgpu().computeShare())).orElse(TurnRules.MAX_WEIGHT);
    }

    private void openRegions() throws RegionException {
        try {
            group.next().submit(() -> {
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
        group.next().execute(() -> regions.stop(reason).thenRun(() -> closed.complete(null)));
        await(closed, STOP_MARGIN, "some regions were not closed in time; their files stay");
    }

    private static WorkerPool.Limits limits(BrokerConfig config) {
        BrokerConfig.Worker worker = config.worker();
        return new WorkerPool.Limits(worker.poolSize(), worker.startTimeout(), worker.minBackOff(),
            worker.maxBackOff(), config.sessions().endTimeout(),
            StartRules.of(Runtime.getRuntime().availableProcessors(), config.sessions().maxWaiting()));
    }

    private static void closeQuietly(StateDir stateDir) {
        try {
            stateDir.close();
        } catch (IOException e) {
            LOG.warnf("the state folder could not be closed: %s", e.getMessage());
        }
    }

    private long contextBytes(String gpu) {
        return gpuMonitor.contextBytes(gpu);
    }

    /** Checks the ledgers and the driver's figures. Each second, on the event loop. */
    private void checkMemory() {
        ledgers.sweep();
        outsideLook.check();
    }

    /** The figures for the comparison of ledgers and driver. */
    private final class Memory implements OutsideLook.Watched {
        @Override
        public List<SessionView> sessions() {
            return sessions.list();
        }

        @Override
        public List<Device> devices() {
            return Broker.this.devices();
        }

        @Override
        public Amount amount(String vgpu, Device device) {
            return vgpus.amount(vgpu, device);
        }

        @Override
        public OptionalLong processBytes(String gpu, long pid) {
            return gpuMonitor.processBytes(gpu, pid);
        }

        @Override
        public long contextBytes(String gpu) {
            return gpuMonitor.contextBytes(gpu);
        }

        @Override
        public void end(long session, String reason) {
            sessions.end(session, reason);
        }
    }

    /** The sources of the GPU monitor. */
    private final class Monitored implements GpuMonitor.Watched {
        @Override
        public List<Device> devices() {
            return pools.state().devices();
        }

        @Override
        public List<SessionView> sessions() {
            return sessions.list();
        }

        @Override
        public List<Integer> idleWorkerPids() {
            return pools.idlePids();
        }
    }

    /** Writes {@code endpoints.json}. */
    public void publishEndpoints(String http) throws IOException {
        stateDir.writeEndpoints(guestEndpoint(), guestTlsEndpoint(), http);
    }

    /** The guests' address, {@code host:port}; empty when the broker accepts only TLS. */
    public String guestEndpoint() {
        return text(door.address());
    }

    /** The guests' address for TLS, {@code host:port}; empty without TLS. */
    public String guestTlsEndpoint() {
        return text(door.tlsAddress());
    }

    private static String text(InetSocketAddress address) {
        if (address == null) {
            return "";
        }
        String host = address.getAddress().getHostAddress();
        return (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + address.getPort();
    }

    /** Time of the start. */
    public Instant started() {
        return started;
    }

    /** The broker's settings. */
    public BrokerConfig config() {
        return config;
    }

    /** A snapshot of the pool. */
    public PoolState pool() {
        return pools.state();
    }

    /** The figures of the GPUs. */
    public GpuMonitor gpuMonitor() {
        return gpuMonitor;
    }

    /** Why workers for a GPU do not start; empty when they start. */
    public String workerFailure(String gpuUuid) {
        return pools.failure(gpuUuid);
    }

    /** The workers' jail, one line for people. */
    public String jail() {
        return command.confinement().describe();
    }

    /** The sessions. */
    public SessionRegistry sessions() {
        return sessions;
    }

    /** The sessions' GPU memory; its figures are for any thread. */
    public Ledgers ledgers() {
        return ledgers;
    }

    /** The way in which vGPUs share a GPU's time. */
    public TurnMode turnMode() {
        return turnMode;
    }

    /** The regions. */
    public Regions regions() {
        return regions;
    }

    /** The token of the REST interface. */
    public AdminToken adminToken() {
        return adminToken;
    }

    /** The vGPUs. */
    public VgpuTable vgpus() {
        return vgpus;
    }

    /** Creates, changes and deletes vGPUs. */
    public VgpuService vgpuService() {
        return vgpuService;
    }

    /** Creates and revokes tokens. */
    public TokenService tokenService() {
        return tokenService;
    }

    /** The persistent state. Not on an event loop. */
    public Database database() {
        return database;
    }

    /** Completes when the first worker has reported the GPUs. */
    public CompletableFuture<PoolState> gpuKnown() {
        return gpuKnown;
    }

    /** Number of connections whose guests have not proved their tokens. */
    public int halfOpenConnections() {
        return group.next().submit(door::halfOpen).syncUninterruptibly().getNow();
    }

    /** Time since the event loop last ran its timer; below a second for a healthy loop. Any thread, at once. */
    public Duration loopSilence() {
        return pulse.silence();
    }

    /** Number of addresses that have connections or sessions at the guests' doors. */
    public int guestPeers() {
        return door.peers();
    }

    /** Runs work on the event loop and waits for it. */
    void onLoop(Runnable work) {
        group.next().submit(work).syncUninterruptibly();
    }

    /** Whether the event loop answers within a second. Not on the event loop. */
    public boolean answers() {
        return group.next().submit(() -> { }).awaitUninterruptibly(1, TimeUnit.SECONDS);
    }

    /** Ends sessions and workers in bounded time, and frees the state folder. */
    public void stop(String reason) {
        door.close();
        gpuMonitor.stop();
        EventLoop loop = group.next();
        CompletableFuture<Void> stopped = new CompletableFuture<>();
        loop.execute(() -> {
            sessions.close();
            List<Long> running = sessions.list().stream().map(s -> s.id()).toList();
            running.forEach(id -> sessions.end(id, reason));
            pools.stop(reason).thenRun(() -> stopped.complete(null));
        });
        await(stopped, config.sessions().endTimeout().plus(STOP_MARGIN),
            "some workers have not ended in time; they end when the broker closes their control sockets");
        closeRegions(reason);
        tokenService.noteUses();
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

    /** Passes the pool's events on. */
    private final class PoolListener implements WorkerPool.Listener {
        private final Listener listener;

        PoolListener(Listener listener) {
            this.listener = listener;
        }

        @Override
        public void onMessage(Worker worker, WorkerMessage message) {
            sessions.handle(worker, message);
        }

        @Override
        public void onExit(Worker worker, String reason) {
            sessions.onExit(worker, reason);
        }

        @Override
        public void onStartFailure(String reason) {
            listener.workerFailed(reason);
        }

        @Override
        public void onReady(Duration time) {
            listener.workerStarted(time);
            if (gpuKnown.complete(pools.state())) {
                gpuMonitor.start(pools.state().backend());
            }
        }
    }
}
