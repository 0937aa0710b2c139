package io.hawser.poolsimulator.database;

import io.hawser.broker.admin.Acts;
import io.hawser.broker.admin.Membership;
import io.hawser.broker.admin.MoveService;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.admin.VgpuLoader;
import io.hawser.broker.admin.VgpuService;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.image.ImageStore;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.move.Moves;
import io.hawser.broker.move.Receptions;
import io.hawser.broker.region.MadeSockets;
import io.hawser.broker.region.RegionFolders;
import io.hawser.broker.region.Regions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.store.Database;
import io.hawser.broker.store.DatabaseException;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.turns.SessionTurns;
import io.hawser.broker.vgpu.MovePlaces;
import io.hawser.broker.vgpu.Placement;
import io.hawser.broker.vgpu.VgpuDraft;
import io.hawser.broker.vgpu.VgpuTable;
import io.netty.channel.EventLoop;
import io.smallrye.config.PropertiesConfigSource;
import io.smallrye.config.SmallRyeConfigBuilder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * A broker with the real parts that administer a pool: acts, tables, heartbeat, placement. It has no door, no worker
 * and no region, and its GPUs exist in its table only.
 */
final class DatabaseBroker implements AutoCloseable {
    private static final long GPU_BYTES = 80L << 30;
    private static final long CONTEXT_BYTES = 300L << 20;
    private static final int SPARE_WORKERS = 1;
    private static final int MAX_SESSIONS = 1000;

    private final Database database;
    private final Acts acts;
    private final VgpuService service;
    private final Membership membership;

    /**
     * Registers a broker and starts its heartbeat.
     *
     * @param folder for its id; must exist.
     * @param gpus number of its GPUs.
     */
    DatabaseBroker(String name, int gpus, Access access, Path folder, EventLoop loop)
        throws IOException, SQLException, DatabaseException {
        BrokerConfig config = config(name, access, folder);
        database = Database.open(config.database(), folder);
        PeerBroker me = Membership.register(config, database, folder);
        VgpuTable vgpus = new VgpuTable(Placement.of(config.placement(), config.overcommit()), SPARE_WORKERS,
            uuid -> false);
        TokenTable tokens = new TokenTable();
        new VgpuLoader(config, folder.resolve("default.token"), me).load(database, vgpus, tokens);
        List<Device> devices = new ArrayList<>();
        for (int i = 0; i < gpus; i++) {
            String uuid = String.format("GPU-%08x-0000-4000-8000-%012x", me.number(), i);
            devices.add(new Device("GPU", uuid, GPU_BYTES, "", ""));
            vgpus.setContextBytes(uuid, CONTEXT_BYTES);
        }
        Ledgers ledgers = new Ledgers(MAX_SESSIONS, () -> devices, vgpus::amount, uuid -> CONTEXT_BYTES);
        ImageStore images = new ImageStore(new ImageStore.Limits(0, 0), new ImageStore.Limits(0, 0));
        // No guest comes, so no session moves, and nothing asks for the workers, the swapped memory and the status,
        // which are null.
        SessionRegistry sessions = new SessionRegistry(loop, MAX_SESSIONS, vgpus, images, ledgers, SessionTurns.none(),
            null);
        Regions regions = new Regions(loop, vgpus, sessions, null, null, null, 0, RegionFolders.of(config, folder),
            new MadeSockets(folder.resolve("sockets")));
        acts = new Acts(loop, database, vgpus, tokens);
        service = new VgpuService(acts, vgpus, tokens, new VgpuService.Users(sessions, regions, images, null, ledgers),
            table -> {});
        MovePlaces places = new MovePlaces(vgpus);
        Moves moves = new Moves(loop, sessions, null, ledgers, places, config.move().answerTimeout(), outcome -> {});
        Receptions receptions = new Receptions(loop, sessions, null, places, moves);
        membership = new Membership(config, me, new Membership.Parts(loop, acts, database, vgpus, tokens, service,
            new TokenService(acts, vgpus, tokens, sessions), sessions, vgpu -> false, moves, receptions,
            new MoveService(loop, acts, vgpus, service, places, moves)));
        membership.begin("127.0.0.1:1", "");
        loop.submit(() -> service.setGpus(devices)).syncUninterruptibly();
    }

    private static BrokerConfig config(String name, Access access, Path folder) {
        Map<String, String> settings = new HashMap<>(access.settings());
        settings.put("hawser.state-dir", folder.toString());
        settings.put("hawser.broker.name", name);
        settings.put("user.home", folder.toString());
        return new SmallRyeConfigBuilder().addDefaultInterceptors().addDiscoveredConverters()
            .withSources(new PropertiesConfigSource(settings, "simulation", 500)).withMapping(BrokerConfig.class)
            .build().getConfigMapping(BrokerConfig.class);
    }

    /** Memory of each GPU. */
    static long gpuBytes() {
        return GPU_BYTES;
    }

    /** Makes the folder of a broker. */
    static Path folder(Path below, String name) throws IOException {
        return Files.createDirectories(below.resolve(name));
    }

    /** Creates a vGPU at any broker; completes as for a client of REST. */
    CompletableFuture<VgpuView> create(String name, long memoryBytes) {
        return service.create(name, new VgpuDraft(null, null, memoryBytes, null, null, "any", null, null));
    }

    /** Number of brokers that this one sees with GPUs. */
    long knownBrokers() {
        return membership.pool().brokers().stream().filter(one -> !one.gpus().isEmpty()).count();
    }

    @Override
    public void close() {
        membership.close();
        acts.close();
        database.close();
    }
}
