package io.hawser.broker.admin;

import io.hawser.broker.model.GpuChoice;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.Texts;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.store.PeerStore;
import io.hawser.broker.store.PoolLog;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.vgpu.GpuLoad;
import io.hawser.broker.vgpu.PoolPlacement;
import io.hawser.broker.vgpu.PoolPlacement.Home;
import io.hawser.broker.vgpu.Rebalancing;
import io.hawser.broker.vgpu.VgpuTable;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jboss.logging.Logger;

/** Places the vGPUs of a pool over the GPUs of all its brokers (pool.md). */
public final class PoolPlaces {
    private static final Logger LOG = Logger.getLogger(PoolPlaces.class);
    private static final int MAX_TAKEN = 64; // vGPUs in one transaction, which holds up all other brokers' acts

    private final BrokerPool pool;
    private final Acts acts;
    private final AppliedWaits waits;
    private final VgpuTable vgpus;

    /** Places vGPUs of this pool. */
    PoolPlaces(BrokerPool pool, Acts acts, AppliedWaits waits, VgpuTable vgpus) {
        this.pool = pool;
        this.acts = acts;
        this.waits = waits;
        this.vgpus = vgpus;
    }

    /**
     * Chooses the home of a new vGPU. Acts' thread, in a write.
     *
     * @param wanted name of the broker; null for any.
     */
    Home place(Vgpu vgpu, String wanted) throws VgpuException {
        if (pool.table().find(vgpu.name()).isPresent()) {
            throw VgpuException.conflict("a vGPU with this name already exists: vgpu=" + vgpu.name() + " broker="
                + pool.brokerName(vgpu.name()));
        }
        if (wanted != null && !wanted.equals(pool.me().name())) {
            PeerBroker peer = pool.brokers().stream().filter(one -> one.name().equals(wanted)).findFirst()
                .orElseThrow(() -> VgpuException.invalid("the pool must have the broker: broker=" + wanted));
            if (peer.isSilent()) {
                throw VgpuException.conflict("the vGPU's broker must answer: broker=" + wanted + " silentMs="
                    + peer.silence().toMillis());
            }
            return new Home(peer.id(), vgpus.placement().placeOn(vgpu, pool.table().loads(peer)));
        }
        if (wanted != null || vgpu.gpus().kind() != GpuChoice.Kind.ANY) {
            return new Home(pool.me().id(), acts.onLoop(() -> vgpus.plan(vgpu)).home());
        }
        return anywhere(vgpu);
    }

    private Home anywhere(Vgpu vgpu) throws VgpuException {
        return placement().anywhere(vgpu, acts.onLoop(vgpus::present));
    }

    /** Chooses a home at another broker. Any thread. */
    Home elsewhere(Vgpu vgpu) throws VgpuException {
        return placement().anywhere(vgpu, List.of());
    }

    /** Plans the moves of a rebalancing. Any thread. */
    Rebalancing rebalancing() {
        return new Rebalancing(vgpus.placement(), pool.table().all(), pool.brokers());
    }

    private PoolPlacement placement() {
        return new PoolPlacement(vgpus.placement(), pool.table(), pool.me().id(), pool.brokers());
    }

    /**
     * Takes vGPUs that have no broker, or a silent one, and are not in use; deletes those that have expired. Acts'
     * thread only.
     */
    void takeOver() throws VgpuException {
        if (pool.isMember() && !leftOver().isEmpty()) {
            acts.write(Set.of(), connection -> {
                Set<PoolLog.Key> deleted = new HashSet<>();
                for (VgpuStore.Kept row : leftOver()) {
                    VgpuStore.delete(connection, row.vgpu().name());
                    deleted.add(PoolLog.Key.vgpu(row.vgpu().name()));
                    LOG.infof("vGPU %s has expired, and its broker does not answer: deleted", row.vgpu().name());
                }
                pool.log(connection, deleted);
                return null;
            });
        }
        // Looked up before the lock, too: as long as no vGPU has a place, no broker holds up the others for nothing.
        if (pool.isMember() && canTake()) {
            acts.write(Set.of(), connection -> {
                Set<PoolLog.Key> taken = take(connection);
                if (!taken.isEmpty()) {
                    pool.log(connection, taken);
                }
                return null;
            });
        }
    }

    /** The vGPUs that have expired at a broker that cannot delete them, because it is none or silent. */
    private List<VgpuStore.Kept> leftOver() {
        return placement().abandoned().filter(row -> Expiries.isExpired(row.vgpu(), Vgpu.now())).toList();
    }

    private boolean canTake() {
        PoolPlacement.Candidates candidates = placement().takeable();
        for (Optional<VgpuStore.Kept> row = candidates.next(); row.isPresent(); row = candidates.next()) {
            if (newHome(row.get().vgpu()).isPresent()) {
                return true;
            }
            candidates.refuse(row.get().vgpu());
        }
        return false;
    }

    private Set<PoolLog.Key> take(Connection connection) throws SQLException, VgpuException {
        Set<PoolLog.Key> taken = new HashSet<>();
        PoolPlacement.Candidates candidates = placement().takeable();
        for (Optional<VgpuStore.Kept> row = candidates.next(); row.isPresent() && taken.size() < MAX_TAKEN; row =
            candidates.next()) {
            Vgpu vgpu = row.get().vgpu();
            Optional<Home> home = newHome(vgpu);
            if (home.isPresent()) {
                give(connection, vgpu, home.get());
                taken.add(PoolLog.Key.vgpu(vgpu.name()));
            } else {
                candidates.refuse(vgpu);
            }
        }
        return taken;
    }

    /**
     * Checks that a broker's GPU has room for a further vGPU, which that broker has accepted. Acts' thread, in a write.
     * Only that broker knows at once whether its GPU is drained; its last heartbeat may be older than its answer.
     */
    void requireFit(Vgpu vgpu, PeerBroker peer, String gpu) throws VgpuException {
        PeerBroker now = pool.broker(peer.id()).orElse(peer);
        vgpus.placement().requireRoom(vgpu, List.of(gpu),
            pool.table().loads(now).stream().map(GpuLoad::undrained).toList());
    }

    /** A home for a vGPU that has none that answers; empty when there is no place, which its view says. */
    private Optional<Home> newHome(Vgpu vgpu) {
        try {
            return Optional.of(vgpu.gpus().kind() == GpuChoice.Kind.ANY ? anywhere(vgpu)
                : new Home(pool.me().id(), acts.onLoop(() -> vgpus.plan(vgpu)).home()));
        } catch (VgpuException e) {
            LOG.debugf("vGPU %s has no place in the pool: %s", vgpu.name(), e.getMessage());
            return Optional.empty();
        }
    }

    private void give(Connection connection, Vgpu vgpu, Home home) throws SQLException, VgpuException {
        if (home.broker().equals(pool.me().id())) {
            acts.onLoop(() -> {
                vgpus.synchronize(vgpu, home.gpus()); // the next one's placement counts it
                return null;
            });
        }
        VgpuStore.give(connection, vgpu.name(), home.broker(), home.gpus());
        pool.table().put(new VgpuStore.Kept(vgpu, home.gpus(), home.broker(), false));
        LOG.infof("vGPU %s had no broker that answers and is now at %s: gpus=%s", vgpu.name(),
            pool.broker(home.broker()).map(PeerBroker::name).orElse(home.broker()), home.gpus());
    }

    /** Removes a silent broker from the pool; its vGPUs then have no broker. */
    public CompletableFuture<Void> remove(String name) {
        return acts.submit(() -> {
            PeerBroker lost = pool.brokers().stream().filter(one -> one.name().equals(name)).findFirst().orElseThrow(
                () -> new VgpuException(VgpuException.Kind.MISSING, "there is no such broker in the pool: broker="
                    + Texts.shown(name)));
            if (!lost.isSilent()) {
                throw VgpuException.conflict("a broker that answers cannot be removed: broker=" + name + " silentMs="
                    + lost.silence().toMillis() + " leastMs=" + PeerBroker.MAX_SILENCE.toMillis());
            }
            acts.write(Set.of(), connection -> {
                Set<PoolLog.Key> changed = new HashSet<>();
                for (VgpuStore.Kept row : pool.table().of(lost.id())) {
                    VgpuStore.give(connection, row.vgpu().name(), PeerBroker.NONE, List.of());
                    changed.add(PoolLog.Key.vgpu(row.vgpu().name()));
                }
                PeerStore.delete(connection, lost.id());
                pool.log(connection, changed);
                return null;
            });
            LOG.infof("broker %s removed from the pool", name);
            return null;
        });
    }

    /**
     * Completes when all brokers that answer have applied the present changes of the pool, or after 2 s: a broker that
     * has died is not silent yet. A guest can then come to any of them. Acts' thread only, after a write.
     */
    CompletableFuture<Void> applied() {
        return waits.await(pool.appliedRevision());
    }
}
