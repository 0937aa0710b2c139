package io.hawser.broker.admin;

import io.hawser.broker.door.PeerLinks;
import io.hawser.broker.model.GpuChoice;
import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.Texts;
import io.hawser.broker.model.Traveller;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.move.Held;
import io.hawser.broker.move.Moves;
import io.hawser.broker.move.Receptions;
import io.hawser.broker.move.Transfer;
import io.hawser.broker.session.VgpuUsage;
import io.hawser.broker.store.ArrivalStore;
import io.hawser.broker.store.Database;
import io.hawser.broker.store.PoolLog;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.token.Secrets;
import io.hawser.broker.vgpu.Rebalancing;
import io.hawser.broker.vgpu.VgpuDraft;
import io.hawser.shm.wire.RecordLayout;
import io.netty.channel.EventLoop;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jboss.logging.Logger;

/**
 * The moves of vGPUs with their sessions between this broker and others of its pool. One transaction of the old broker
 * decides: it deletes the move's row and gives the vGPU to the new one. The new one gives up only by deleting the row
 * first. Thread-safe.
 */
final class Transfers implements Errands.MoveActs {
    private static final Logger LOG = Logger.getLogger(Transfers.class);
    /** Beside the copies: a guest connects to the other broker and waits for its calls. */
    private static final long GUEST_MS = 15_000;
    private static final long RETRY_MS = 1000;

    private final Parts parts;
    private final BrokerPool pool;
    private final Errands errands;
    private final PoolPlaces pooled;
    private MoveService moves; // set before the first request

    /** The parts of the broker. */
    record Parts(EventLoop loop, Acts acts, Database database, VgpuService service, Moves moves, Receptions receptions,
        PeerLinks links, Predicate<String> hasRegion) {}

    Transfers(Parts parts, BrokerPool pool, Errands errands, PoolPlaces pooled) {
        this.parts = parts;
        this.pool = pool;
        this.errands = errands;
        this.pooled = pooled;
        errands.use(this);
        parts.receptions.join(this::giveUp);
    }

    /** Uses the moves within this broker. */
    void use(MoveService service) {
        moves = service;
    }

    /** The other broker that has a vGPU. */
    Optional<PeerBroker> holder(String vgpu) {
        return pool.holder(vgpu);
    }

    /** Whether a name is this broker's. */
    boolean isMe(String broker) {
        return pool.me().name().equals(broker);
    }

    /** Lets the broker that has a vGPU move it. */
    CompletableFuture<MoveOutcome> ask(PeerBroker holder, String vgpu, MoveService.Wish wish) {
        return errands.askFor(holder, Errands.Request.move(vgpu, wish), MoveOutcome.class);
    }

    /** Lets another broker move all its vGPUs away. */
    CompletableFuture<MoveService.Drained> askToDrain(String broker) {
        return toPeer(broker, peer -> errands.askFor(peer, Errands.Request.ofBroker(Errands.What.DRAIN_BROKER),
            MoveService.Drained.class));
    }

    /** Lets another broker take vGPUs again. */
    CompletableFuture<Void> askToUndrain(String broker) {
        return toPeer(broker, peer -> errands.ask(peer, Errands.Request.ofBroker(Errands.What.UNDRAIN_BROKER)));
    }

    private <T> CompletableFuture<T> toPeer(String broker, Function<PeerBroker, CompletableFuture<T>> ask) {
        try {
            return ask.apply(named(broker));
        } catch (VgpuException e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    @Override
    public CompletableFuture<MoveOutcome> move(String vgpu, MoveService.Wish wish) {
        return moves.move(vgpu, wish);
    }

    @Override
    public CompletableFuture<MoveService.Drained> drain() {
        return moves.drainBroker(pool.me().name());
    }

    @Override
    public CompletableFuture<Void> undrain() {
        return moves.undrainBroker(pool.me().name());
    }

    /** Plans the moves of a rebalancing of the pool. */
    Rebalancing rebalancing() {
        return pooled.rebalancing();
    }

    // The old broker.

    /**
     * Moves a vGPU of this broker.
     *
     * @param broker name of the other one.
     * @param gpu there, as for {@link io.hawser.broker.vgpu.MovePlaces#gpu}; null for any.
     */
    CompletableFuture<MoveOutcome> send(String vgpu, String broker, String gpu) {
        return parts.acts.submit(() -> {
            PeerBroker peer = peer(broker);
            parts.acts.write(Set.of(), connection -> null); // the database answers, and the tables are up to date
            return new Sending(parts.acts.onLoop(() -> begin(vgpu)), peer, gpu);
        }).thenCompose(Sending::run);
    }

    /** Moves a vGPU of this broker to another one that the placement chooses. */
    CompletableFuture<MoveOutcome> sendAway(String vgpu) {
        return parts.acts.submit(() -> {
            Vgpu row = pool.table().find(vgpu).orElseThrow(() -> VgpuException.missing(vgpu)).vgpu();
            if (row.gpus().kind() != GpuChoice.Kind.ANY) {
                throw VgpuException.conflict("the vGPU names its GPU: vgpu=" + vgpu + " gpus=" + row.gpus());
            }
            return pooled.elsewhere(row);
        }).thenCompose(home -> send(vgpu, pool.broker(home.broker()).orElseThrow().name(), home.gpus().getFirst()));
    }

    private PeerBroker named(String name) throws VgpuException {
        return pool.brokers().stream().filter(one -> one.name().equals(name)).findFirst().orElseThrow(
            () -> VgpuException.invalid("the pool must have the broker: broker=" + Texts.shown(name)));
    }

    private PeerBroker peer(String name) throws VgpuException {
        PeerBroker peer = named(name);
        if (peer.isSilent()) {
            throw VgpuException.conflict("a vGPU's new broker must answer: broker=" + name + " silentMs="
                + peer.silence().toMillis());
        }
        return peer;
    }

    private Transfer begin(String vgpu) throws VgpuException {
        if (parts.hasRegion.test(vgpu)) {
            throw VgpuException.conflict("a region of shared memory stays on its machine, and its vGPU with it: vgpu="
                + vgpu);
        }
        return parts.moves.transfer(vgpu);
    }

    /** One move away from here. */
    private final class Sending {
        private final Transfer transfer;
        private final PeerBroker peer;
        private final String gpu;
        private final String vgpu;
        private final String id = UUID.randomUUID().toString();
        private final byte[] ticket = Secrets.random(RecordLayout.TICKET_BYTES);
        private Receptions.Wish wish;
        /** The vGPU is gone, and the other broker knows what it has used here. */
        private volatile CompletableFuture<Void> released = CompletableFuture.completedFuture(null);

        Sending(Transfer transfer, PeerBroker peer, String gpu) {
            this.transfer = transfer;
            this.peer = peer;
            this.gpu = gpu;
            vgpu = transfer.plan().vgpu().name();
        }

        CompletableFuture<MoveOutcome> run() {
            return CompletableFuture.supplyAsync(this::prepare, parts.loop).thenCompose(address -> errands
                .askFor(peer, Errands.Request.arrival(Errands.What.RECEIVE_VGPU, wish))
                .thenCompose(home -> connect().thenComposeAsync(connections -> {
                    transfer.send(address, connections, wish.limitMs());
                    return transfer.ready();
                }, parts.loop).thenCompose(ready -> parts.acts.submit(() -> commit(home)))))
                .exceptionallyCompose(this::failed)
                .thenCompose(outcome -> released.thenCompose(gone -> parts.acts.submit(pooled::applied))
                    .thenCompose(applied -> applied).thenApply(now -> outcome));
        }

        /** The address of the other broker for the guests. Event loop only. */
        private String prepare() {
            try {
                boolean overTls = transfer.overTls();
                String address = overTls ? peer.guestTls() : peer.guest();
                if (address.isEmpty()) {
                    throw VgpuException.conflict("the vGPU's new broker must have a port for its guests: broker="
                        + peer.name() + " tls=" + overTls);
                }
                wish = new Receptions.Wish(id, HexFormat.of().formatHex(ticket), vgpu, gpu, overTls,
                    parts.moves.limitMs(vgpu) + GUEST_MS, transfer.travellers());
                return address;
            } catch (VgpuException e) {
                throw new CompletionException(e);
            }
        }

        /** A connection for each session. */
        private CompletableFuture<Map<Long, Held>> connect() {
            boolean tls = !peer.guestTls().isEmpty();
            PeerLinks.Place place = new PeerLinks.Place(tls ? peer.guestTls() : peer.guest(), tls);
            Map<Long, CompletableFuture<Held>> opening = new HashMap<>();
            for (Traveller traveller : wish.sessions()) {
                opening.put(traveller.id(), parts.links.open(place, ticket, traveller.id()));
            }
            return CompletableFuture.allOf(opening.values().toArray(CompletableFuture<?>[]::new)).handle(
                (all, failure) -> {
                    Map<Long, Held> open = new HashMap<>();
                    opening.forEach((session, held) -> {
                        if (!held.isCompletedExceptionally()) {
                            open.put(session, held.join());
                        }
                    });
                    if (failure != null) {
                        parts.loop.execute(() -> open.values().forEach(Held::close));
                        throw new CompletionException(cause(failure));
                    }
                    return open;
                });
        }

        /** Gives the vGPU away. Acts' thread only. */
        private MoveOutcome commit(String home) throws VgpuException {
            Vgpu before = transfer.plan().vgpu();
            Vgpu after = before.gpus().kind() == GpuChoice.Kind.ANY ? before
                : new VgpuDraft(null, null, null, null, null, home, null, null).change(before, Vgpu.now());
            try {
                parts.acts.write(Set.of(PoolLog.Key.vgpu(vgpu)), connection -> {
                    parts.acts.onLoop(() -> {
                        transfer.requireReady();
                        return null;
                    });
                    pooled.requireFit(before, peer, home);
                    if (!ArrivalStore.delete(connection, id)) {
                        throw VgpuException.conflict("the vGPU's new broker has given up: vgpu=" + vgpu + " broker="
                            + peer.name());
                    }
                    VgpuStore.update(connection, after, List.of(home));
                    VgpuStore.give(connection, vgpu, peer.id(), List.of(home));
                    VgpuStore.mark(connection, vgpu, !wish.sessions().isEmpty());
                    return null;
                });
            } catch (VgpuException e) {
                if (!isGiven()) {
                    throw e;
                }
            }
            return parts.acts.onLoop(() -> {
                MoveOutcome outcome = transfer.commit(home);
                LOG.infof("vGPU %s is now at broker %s", vgpu, peer.name());
                released = parts.service.release(vgpu, "the vGPU has moved to another broker: broker=" + peer.name())
                    .thenCompose(used -> tell(used.without(outcome.sessions())));
                return outcome;
            });
        }

        /** Lets the other broker count what the sessions have used here. */
        private CompletableFuture<Void> tell(VgpuUsage used) {
            return errands.ask(peer, Errands.Request.used(vgpu, used)).exceptionally(failure -> {
                LOG.errorf("the use of vGPU %s before its move is not counted: broker=%s %s: %s", vgpu, peer.name(),
                    used, cause(failure).getMessage());
                return null;
            });
        }

        /**
         * Whether the database has the transaction whose end has failed. The sessions wait until that is known, because
         * they must have one owner. Acts' thread only.
         */
        private boolean isGiven() throws VgpuException {
            while (true) {
                try {
                    return parts.database.read(connection -> VgpuStore.find(connection, vgpu))
                        .filter(row -> row.broker().equals(peer.id())).isPresent();
                } catch (SQLException e) {
                    LOG.errorf("the place of vGPU %s is unknown until the database answers: %s", vgpu, e.getMessage());
                }
                try {
                    TimeUnit.MILLISECONDS.sleep(RETRY_MS);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    throw new VgpuException(VgpuException.Kind.UNAVAILABLE, "the broker is shutting down");
                }
            }
        }

        private CompletableFuture<MoveOutcome> failed(Throwable failure) {
            Throwable cause = cause(failure);
            parts.loop.execute(() -> transfer.fail(cause.getMessage()));
            if (wish != null) {
                errands.ask(peer, Errands.Request.arrival(Errands.What.CANCEL_VGPU, wish)).exceptionally(problem -> {
                    LOG.debugf("the other broker gives up by itself: %s", problem.getMessage());
                    return null;
                });
            }
            parts.acts.submit(() -> {
                pool.uncertain(); // it may have changed while it was closed
                pool.committed();
                return null;
            });
            return CompletableFuture.failedFuture(cause);
        }
    }

    private static Throwable cause(Throwable failure) {
        return failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
    }

    // The new broker.

    @Override
    public CompletableFuture<String> receive(Receptions.Wish wish) {
        return parts.acts.submit(() -> parts.acts.write(Set.of(), connection -> {
            VgpuStore.Kept row = VgpuStore.find(connection, wish.vgpu())
                .orElseThrow(() -> VgpuException.missing(wish.vgpu()));
            if (pool.isMine(row)) {
                throw VgpuException.conflict("the vGPU is at this broker already: vgpu=" + wish.vgpu());
            }
            CompletableFuture<String> taken = parts.acts.onLoop(() -> parts.receptions.begin(wish, row.vgpu()));
            ArrivalStore.insert(connection, wish.id(), pool.me().id());
            return taken;
        })).thenCompose(taken -> taken);
    }

    @Override
    public CompletableFuture<Void> cancel(Receptions.Wish wish) {
        return parts.acts.submit(() -> parts.acts.onLoop(() -> {
            parts.receptions.cancel(wish.id(), "the other broker has ended the move");
            return null;
        }));
    }

    /** Deletes the row of an arrival; tries again until the database answers. */
    private void giveUp(String id, Runnable given) {
        parts.acts.submit(() -> parts.acts.write(Set.of(), connection -> ArrivalStore.delete(connection, id)))
            .whenComplete((wasThere, failure) -> parts.loop.execute(() -> {
                if (failure != null) {
                    parts.loop.schedule(() -> giveUp(id, given), RETRY_MS, TimeUnit.MILLISECONDS);
                } else if (wasThere) {
                    given.run();
                } // else the write has shown this broker that it has the vGPU
            }));
    }
}
