package io.hawser.broker.admin;

import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.Texts;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.move.Move;
import io.hawser.broker.move.Moves;
import io.hawser.broker.store.PoolLog;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.vgpu.MovePlaces;
import io.hawser.broker.vgpu.Rebalancing;
import io.hawser.broker.vgpu.VgpuTable;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jboss.logging.Logger;

/**
 * Moves vGPUs with their running sessions to other GPUs of this broker, and drains GPUs. Each future completes
 * exceptionally with {@link VgpuException} when the act is refused or fails. Thread-safe.
 */
public final class MoveService {
    private static final Logger LOG = Logger.getLogger(MoveService.class);

    private final Executor loop;
    private final Acts acts;
    private final VgpuTable table;
    private final VgpuService service;
    private final MovePlaces places;
    private final Moves moves;
    private final AtomicBoolean rebalances = new AtomicBoolean();
    private Transfers transfers; // null when the broker is alone

    /**
     * Where a vGPU shall go.
     *
     * @param gpu as for {@link MovePlaces#begin} at this broker, or {@link MovePlaces#gpu} at another one; null for any
     *     GPU of another broker.
     * @param broker name; null for the one that has the vGPU.
     */
    public record Wish(String gpu, String broker) {}

    /** A vGPU that stays on its GPU. */
    public record Stayed(String vgpu, String reason) {}

    /**
     * The result of a drain.
     *
     * @param gpu UUID; empty for a broker.
     * @param broker name; empty for a GPU.
     * @param moved the vGPUs that are now on other GPUs.
     * @param stayed the vGPUs that are still there.
     */
    public record Drained(String gpu, String broker, List<MoveOutcome> moved, List<Stayed> stayed) {}

    /**
     * The result of a rebalancing.
     *
     * @param isTrial whether it has only planned.
     * @param steps in their order.
     */
    public record Rebalanced(boolean isTrial, List<RebalanceStep> steps) {}

    /**
     * A step of a rebalancing.
     *
     * @param step the move.
     * @param outcome of the move; empty when the vGPU has not moved.
     * @param reason why it stays; empty when it has moved, or only a plan was wanted.
     */
    public record RebalanceStep(Rebalancing.Step step, Optional<MoveOutcome> outcome, String reason) {}

    /** Creates the service. */
    public MoveService(Executor loop, Acts acts, VgpuTable table, VgpuService service,
        MovePlaces places, Moves moves) {
        this.loop = loop;
        this.acts = acts;
        this.table = table;
        this.service = service;
        this.places = places;
        this.moves = moves;
    }

    /**
     * Moves a vGPU with all its sessions. In a pool, its broker does so.
     *
     * @return completes when the sessions run on the other GPU and the database has the new place.
     */
    public CompletableFuture<MoveOutcome> move(String vgpu, Wish wish) {
        if (transfers == null) {
            return wish.broker == null ? move(vgpu, wish.gpu) : CompletableFuture.failedFuture(VgpuException.invalid(
                "only a pool has other brokers: broker=" + Texts.shown(wish.broker)));
        }
        Optional<PeerBroker> holder = transfers.holder(vgpu);
        if (holder.isPresent()) {
            return transfers.ask(holder.get(), vgpu, wish);
        }
        return wish.broker == null || transfers.isMe(wish.broker) ? move(vgpu, wish.gpu)
            : transfers.send(vgpu, wish.broker, wish.gpu);
    }

    /**
     * Moves a vGPU of this broker with all its sessions to another of its GPUs.
     *
     * @param gpu as for {@link MovePlaces#begin}.
     * @return as {@link #move(String, Wish)}.
     */
    public CompletableFuture<MoveOutcome> move(String vgpu, String gpu) {
        return acts.submit(() -> {
            acts.write(Set.of(), connection -> null); // the database answers, and the tables are up to date
            return acts.onLoop(() -> moves.begin(vgpu, gpu));
        }).thenCompose(move -> move.ready().thenCompose(now -> acts.submit(() -> commit(move)))
            .whenComplete((outcome, failure) -> {
                if (failure != null) { // also when no more acts are taken
                    loop.execute(() -> move.fail(cause(failure).getMessage()));
                }
            }));
    }

    /** Joins a pool. The call precedes the first act. */
    void join(Transfers ofPool) {
        transfers = ofPool;
        ofPool.use(this);
    }

    /** Number of moves that have begun and not ended, arrivals included. */
    public CompletableFuture<Integer> running() {
        return CompletableFuture.supplyAsync(moves::count, loop);
    }

    /** Writes the new place and gives the sessions to their new workers. Acts' thread only. */
    private MoveOutcome commit(Move move) throws VgpuException {
        MovePlaces.Plan plan = move.plan();
        AtomicBoolean isWritten = new AtomicBoolean(); // perhaps: the end of the transaction may fail
        try {
            acts.write(Set.of(PoolLog.Key.vgpu(plan.vgpu().name())), connection -> {
                acts.onLoop(() -> {
                    move.requireReady();
                    return null;
                });
                VgpuStore.update(connection, plan.vgpu(), plan.home());
                isWritten.set(true);
                return null;
            });
            return acts.onLoop(() -> {
                MoveOutcome outcome = move.commit();
                service.refresh();
                return outcome;
            });
        } catch (VgpuException e) {
            acts.onLoop(() -> {
                move.fail(e.getMessage());
                return null;
            });
            if (isWritten.get()) {
                restore(plan.before(), plan.from());
            }
            throw e;
        }
    }

    /** Writes the old place, which a failed move may have replaced, unless the vGPU has left this broker. */
    private void restore(Vgpu vgpu, String gpu) {
        try {
            acts.write(Set.of(PoolLog.Key.vgpu(vgpu.name())), connection -> {
                if (acts.onLoop(() -> table.has(vgpu.name()))) {
                    VgpuStore.update(connection, vgpu, List.of(gpu));
                }
                return null;
            });
        } catch (VgpuException e) {
            // The vGPU stays where it is; a restart of the broker places it where the database says.
            LOG.errorf("the place of a vGPU that has not moved could not be written: vgpu=%s gpu=%s: %s", vgpu.name(),
                gpu, e.getMessage());
        }
    }

    /**
     * Places no further vGPU on a GPU, and moves its vGPUs one after the other to GPUs that the placement chooses.
     *
     * @param gpu number or UUID.
     * @return completes when each vGPU has moved or stays. The GPU stays drained until {@link #undrain} or the
     * broker's end.
     */
    public CompletableFuture<Drained> drain(String gpu) {
        return acts.submit(() -> acts.onLoop(() -> {
            String uuid = places.gpu(gpu);
            table.setDrained(uuid, true);
            LOG.infof("a GPU gets no further vGPUs: gpu=%s vgpus=%s", uuid, places.on(uuid));
            return new Drained(uuid, "", new ArrayList<>(), new ArrayList<>());
        })).thenCompose(drained -> acts.submit(() -> acts.onLoop(() -> places.on(drained.gpu)))
            .thenCompose(names -> moveAll(names, 0, drained, name -> acts.submit(() -> acts.onLoop(() -> {
                if (!table.isDrained(drained.gpu)) {
                    throw VgpuException.conflict("the GPU is no longer drained: gpu=" + drained.gpu);
                }
                return places.choose(name);
            })).thenCompose(to -> move(name, to)))));
    }

    /**
     * Places no further vGPU on the GPUs of a broker, and moves its vGPUs one after the other to other brokers of the
     * pool. Another broker does so itself.
     *
     * @param name of the broker.
     * @return as {@link #drain}.
     */
    public CompletableFuture<Drained> drainBroker(String name) {
        if (transfers != null && !transfers.isMe(name)) {
            return transfers.askToDrain(name);
        }
        return acts.submit(() -> {
            requirePool(name);
            List<String> names = acts.onLoop(() -> {
                places.gpus().forEach(uuid -> table.setDrained(uuid, true));
                return table.list().stream().map(view -> view.vgpu().name()).toList();
            });
            LOG.infof("this broker gets no further vGPUs: vgpus=%s", names);
            return names;
        }).thenCompose(names -> moveAll(names, 0, new Drained("", name, new ArrayList<>(), new ArrayList<>()),
            transfers::sendAway));
    }

    /**
     * Allows vGPUs on the GPUs of a broker again.
     *
     * @param name of the broker.
     */
    public CompletableFuture<Void> undrainBroker(String name) {
        if (transfers != null && !transfers.isMe(name)) {
            return transfers.askToUndrain(name);
        }
        return acts.submit(() -> {
            requirePool(name);
            acts.onLoop(() -> {
                places.gpus().forEach(uuid -> table.setDrained(uuid, false));
                return null;
            });
            LOG.info("this broker gets vGPUs again");
            service.placeHomeless();
            return null;
        });
    }

    private void requirePool(String name) throws VgpuException {
        if (transfers == null) {
            throw VgpuException.invalid("only a pool has other brokers: broker=" + Texts.shown(name));
        }
    }

    /**
     * Moves vGPUs to GPUs that the policy of the placement prefers, one after the other.
     *
     * @param isTrial whether to plan the moves only.
     * @param limit most number of moves.
     * @return completes when each vGPU has moved or stays.
     */
    public CompletableFuture<Rebalanced> rebalance(boolean isTrial, int limit) {
        if (!rebalances.compareAndSet(false, true)) {
            return CompletableFuture.failedFuture(VgpuException.conflict("this broker rebalances already"));
        }
        return acts.submit(() -> {
            acts.write(Set.of(), connection -> null); // as for a move
            return transfers == null ? acts.onLoop(() -> Rebalancing.of(table)) : transfers.rebalancing();
        }).thenCompose(plan -> new Rebalancer(this::move).run(plan, isTrial, limit))
            .whenComplete((done, failure) -> rebalances.set(false));
    }

    private CompletableFuture<Drained> moveAll(List<String> names, int next, Drained drained,
        Function<String, CompletableFuture<MoveOutcome>> move) {
        if (next == names.size()) {
            return CompletableFuture.completedFuture(drained);
        }
        String name = names.get(next);
        return move.apply(name).handle((outcome, failure) -> {
            if (failure == null) {
                drained.moved.add(outcome);
            } else {
                drained.stayed.add(new Stayed(name, reason(name, failure)));
            }
            return moveAll(names, next + 1, drained, move);
        }).thenCompose(rest -> rest);
    }

    /**
     * Allows vGPUs on a GPU again. vGPUs that have left the GPU stay where they are.
     *
     * @param gpu number or UUID.
     * @return completes with the GPU's UUID.
     */
    public CompletableFuture<String> undrain(String gpu) {
        return acts.submit(() -> {
            String uuid = acts.onLoop(() -> {
                String found = places.gpu(gpu);
                table.setDrained(found, false);
                return found;
            });
            LOG.infof("a GPU gets vGPUs again: gpu=%s", uuid);
            service.placeHomeless();
            return uuid;
        });
    }

    /** Why a vGPU has not moved. */
    static String reason(String vgpu, Throwable failure) {
        if (cause(failure) instanceof VgpuException known) {
            return known.getMessage();
        }
        LOG.errorf(failure, "vGPU %s could not move", vgpu);
        return "the broker failed; its log says why";
    }

    private static Throwable cause(Throwable failure) {
        return failure instanceof CompletionException ? failure.getCause() : failure;
    }
}
