package io.hawser.broker.admin;

import io.hawser.broker.image.ImageStore;
import io.hawser.broker.jail.ComputeCache;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.Texts;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.region.RegionView;
import io.hawser.broker.region.Regions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.session.VgpuUsage;
import io.hawser.broker.store.PoolLog;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.PoolPlacement;
import io.hawser.broker.vgpu.VgpuDraft;
import io.hawser.broker.vgpu.VgpuTable;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jboss.logging.Logger;

/** Creates, changes and deletes vGPUs, in the database and for guests that connect. Thread-safe. */
public final class VgpuService {
    private static final Logger LOG = Logger.getLogger(VgpuService.class);

    private final Acts acts;
    private final VgpuTable table;
    private final TokenTable tokens;
    private final SessionRegistry sessions;
    private final Regions regions;
    private final ImageStore images;
    private final ComputeCache compiled; // null for none
    private final Ledgers ledgers;
    private final Consumer<VgpuTable> moved;
    private BrokerPool pool; // null when the broker is alone
    private PoolPlaces places;
    private Errands errands;

    /** The objects that hold resources of vGPUs; no compute cache is null. */
    public record Users(SessionRegistry sessions, Regions regions, ImageStore images, ComputeCache compiled,
        Ledgers ledgers) {}

    /**
     * Creates the service.
     *
     * @param moved runs on the event loop after vGPUs have changed GPUs or have been deleted.
     */
    public VgpuService(Acts acts, VgpuTable table, TokenTable tokens, Users users,
        Consumer<VgpuTable> moved) {
        this.acts = acts;
        this.table = table;
        this.tokens = tokens;
        sessions = users.sessions;
        regions = users.regions;
        images = users.images;
        compiled = users.compiled;
        ledgers = users.ledgers;
        this.moved = moved;
    }

    /** Makes this broker's vGPUs those of a member of a pool; the call precedes the first act. */
    void join(BrokerPool joined, PoolPlaces itsPlaces, Errands itsErrands) {
        pool = joined;
        places = itsPlaces;
        errands = itsErrands;
    }

    /** Creates a vGPU at any broker; see {@link #create(String, VgpuDraft, String)}. */
    public CompletableFuture<VgpuView> create(String name, VgpuDraft draft) {
        return create(name, draft, null);
    }

    /**
     * Creates a vGPU.
     *
     * @param broker name of the broker of a pool that must have it; null for any.
     * @return completes when the database holds it and guests can use it; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<VgpuView> create(String name, VgpuDraft draft, String broker) {
        return create(name, draft, broker, false).thenApply(Created::view);
    }

    /**
     * The answer to a creation.
     *
     * @param isNew whether the vGPU did not exist before.
     */
    public record Created(VgpuView view, boolean isNew) {}

    /**
     * Creates a vGPU.
     *
     * @param broker name of the broker of a pool that must have a new vGPU; null for any.
     * @param idempotent whether an existing vGPU of this name counts as created, if it has the same properties and
     * labels; it then gets the draft's expiry.
     * @return as {@link #create(String, VgpuDraft)}.
     */
    public CompletableFuture<Created> create(String name, VgpuDraft draft, String broker, boolean idempotent) {
        Optional<VgpuView> elsewhere = idempotent && pool != null ? pool.elsewhere(name) : Optional.empty();
        if (elsewhere.isPresent()) {
            return renewElsewhere(elsewhere.get().vgpu(), draft);
        }
        return acts.submit(() -> {
            Vgpu vgpu = draft.create(name, Origin.REST, Vgpu.now());
            if (broker != null && pool == null) {
                throw VgpuException.invalid("only a pool of brokers can place a vGPU at a broker: broker="
                    + Texts.shown(broker));
            }
            if (idempotent && table.find(name).isPresent()) {
                return CompletableFuture.completedFuture(new Created(renew(vgpu), false));
            }
            PoolPlacement.Home home = acts.write(Set.of(PoolLog.Key.vgpu(name)), connection -> {
                PoolPlacement.Home chosen = pool == null
                    ? new PoolPlacement.Home("", acts.onLoop(() -> table.plan(vgpu)).home())
                    : places.place(vgpu, broker);
                VgpuStore.insert(connection, vgpu, chosen.gpus(), chosen.broker());
                return chosen;
            });
            if (pool == null) {
                recordPlaces(acts.onLoop(() -> settle(table.add(new VgpuTable.Planned(vgpu, home.gpus())))));
            }
            LOG.infof("vGPU %s made: gpus=%s memoryBytes=%d computeShare=%d mode=%s%s", name, home.gpus(),
                vgpu.memoryBytes(), vgpu.computeShare(), vgpu.mode().label(),
                pool == null ? "" : " broker=" + pool.brokerName(name));
            CompletableFuture<Void> applied = pool == null ? CompletableFuture.completedFuture(null)
                : places.applied();
            return applied.thenApply(now -> new Created(view(name), true));
        }).thenCompose(created -> created);
    }

    /** Name of the other broker of the pool that has a vGPU; empty when this one has it, or none. */
    Optional<String> brokerElsewhere(String name) {
        return pool == null ? Optional.empty() : pool.holder(name).map(PeerBroker::name);
    }

    /** A vGPU of this broker or of the pool. */
    private VgpuView view(String name) {
        Optional<VgpuView> mine = table.find(name);
        return mine.isPresent() || pool == null ? mine.orElseThrow() : pool.elsewhere(name).orElseThrow();
    }

    /** Gives an existing vGPU of another broker the expiry of an equal wish. */
    private CompletableFuture<Created> renewElsewhere(Vgpu before, VgpuDraft draft) {
        return acts.submit(() -> {
            requireAlike(before, draft.create(before.name(), Origin.REST, Vgpu.now()));
            return null;
        }).thenCompose(alike -> change(before.name(), draft.onlyExpiry())).thenApply(view -> new Created(view, false));
    }

    /** Gives an existing vGPU the expiry of an equal wish. Acts' thread only. */
    private VgpuView renew(Vgpu wished) throws VgpuException {
        return apply(wished.name(), before -> {
            requireAlike(before, wished);
            return before.withExpiry(wished.expires(), wished.changed());
        });
    }

    private static void requireAlike(Vgpu before, Vgpu wished) throws VgpuException {
        if (!before.isAlike(wished)) {
            throw VgpuException.conflict("a vGPU with this name already exists, with other properties or labels: vgpu="
                + before.name());
        }
    }

    /** Changes a vGPU of any owner; see {@link #change(String, VgpuDraft, String)}. */
    public CompletableFuture<VgpuView> change(String name, VgpuDraft draft) {
        return change(name, draft, null);
    }

    /**
     * Changes a vGPU; its sessions continue. In a pool, its broker executes the change.
     *
     * @param expectedOwner id of the owner that it must have now, {@link VgpuException.Kind#CHANGED} otherwise; null
     * for any. Acts run one after the other, so no other act changes the owner in between.
     * @return completes when database and guests see the change; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<VgpuView> change(String name, VgpuDraft draft, String expectedOwner) {
        Optional<PeerBroker> other = pool == null ? Optional.empty() : pool.holder(name);
        if (other.isPresent()) {
            return errands.ask(other.get(), new Errands.Request(Errands.What.CHANGE_VGPU, name, draft, false,
                expectedOwner, 0)).thenCompose(now -> followed()).thenApply(now -> view(name));
        }
        return acts.submit(() -> apply(name, before -> {
            requireOwner(before, expectedOwner);
            return draft.change(before, Vgpu.now());
        }));
    }

    /** The new state of a vGPU. */
    @FunctionalInterface
    private interface Edit {
        Vgpu of(Vgpu before) throws VgpuException;
    }

    /** Changes a vGPU of this broker. Acts' thread only. */
    private VgpuView apply(String name, Edit edit) throws VgpuException {
        AtomicBoolean isPlanned = new AtomicBoolean();
        VgpuTable.Planned planned;
        try {
            planned = acts.write(Set.of(PoolLog.Key.vgpu(name)), connection -> {
                Vgpu before = table.find(name).orElseThrow(() -> VgpuException.missing(name)).vgpu();
                requireNotFromSettings(before);
                Vgpu after = edit.of(before);
                VgpuTable.Planned plan = acts.onLoop(() -> table.planChange(name, after,
                    gpu -> ledgers.usedBytes(name, gpu)));
                isPlanned.set(true);
                VgpuStore.update(connection, plan.vgpu(), plan.home());
                return plan;
            });
        } catch (VgpuException e) {
            if (isPlanned.get()) {
                acts.onLoop(() -> reopen(name)); // the plan may have closed it
            }
            throw e;
        }
        Vgpu after = planned.vgpu();
        recordPlaces(acts.onLoop(() -> settle(table.change(planned))));
        LOG.infof("vGPU %s changed: gpus=%s memoryBytes=%d computeShare=%d mode=%s", name, planned.home(),
            after.memoryBytes(), after.computeShare(), after.mode().label());
        return table.find(name).orElseThrow();
    }

    /** Completes when this broker has read the pool's changes. */
    private CompletableFuture<Void> followed() {
        return acts.submit(() -> {
            pool.committed();
            return null;
        });
    }

    /** Deletes a vGPU of any owner; see {@link #delete(String, boolean, String)}. */
    public CompletableFuture<Void> delete(String name, boolean force) {
        return delete(name, force, null);
    }

    /**
     * Deletes a vGPU with its tokens. In a pool, its broker executes the deletion; with force, this broker deletes what
     * no broker has, or a silent one, which ends the sessions when it comes back.
     *
     * @param force whether to end its sessions and regions; without it they prevent the deletion.
     * @param expectedOwner as for {@link #change(String, VgpuDraft, String)}.
     * @return completes when all its resources are released; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<Void> delete(String name, boolean force, String expectedOwner) {
        Optional<PeerBroker> other = pool == null ? Optional.empty() : pool.holder(name);
        if (other.isPresent() && !(force && other.get().isSilent())) {
            return errands.ask(other.get(), new Errands.Request(Errands.What.DELETE_VGPU, name, null, force,
                expectedOwner, 0)).thenCompose(now -> followed());
        }
        if (pool != null && table.find(name).isEmpty() && pool.elsewhere(name).isPresent()) {
            return acts.submit(() -> deleteElsewhere(name, expectedOwner));
        }
        return delete(name, force, "the vGPU is deleted", before -> requireOwner(before, expectedOwner));
    }

    /** Deletes an expired vGPU by force; fails with {@link VgpuException.Kind#CHANGED} if it has a later expiry now. */
    public CompletableFuture<Void> deleteExpired(String name) {
        return delete(name, true, "the vGPU has expired", before -> {
            if (!Expiries.isExpired(before, Vgpu.now())) {
                throw new VgpuException(VgpuException.Kind.CHANGED, "the vGPU must have expired: vgpu=" + name
                    + " expires=" + before.expires());
            }
        });
    }

    private CompletableFuture<Void> delete(String name, boolean force, String reason, Rule rule) {
        CompletableFuture<Void> closed = acts.submit(() -> {
            Vgpu before = table.find(name).orElseThrow(() -> VgpuException.missing(name)).vgpu();
            requireNotFromSettings(before);
            rule.check(before);
            // Closed in the same act: later changes of its owner are rejected.
            acts.onLoop(() -> {
                if (!force) {
                    requireUnused(name);
                }
                table.close(name);
                return null;
            });
            return null;
        });
        // Not in the acts' thread: a worker may take long to end, and other acts need not wait for it.
        return closed.thenCompose(now -> regions.removeAll(name, reason))
            .thenCompose(now -> sessions.endAll(name, reason)).thenCompose(now -> acts.<Void>submit(() -> {
                acts.write(Set.of(PoolLog.Key.vgpu(name)), connection -> {
                    VgpuStore.delete(connection, name);
                    return null;
                });
                recordPlaces(acts.onLoop(() -> remove(name)));
                if (compiled != null) {
                    compiled.forget(name);
                }
                LOG.infof("vGPU %s deleted", name);
                return null;
            })).exceptionallyCompose(failure -> {
                // Opening a vGPU that was never closed changes nothing.
                boolean ours = closed.isDone() && !closed.isCompletedExceptionally();
                CompletableFuture<Void> failed = CompletableFuture.failedFuture(
                    failure instanceof CompletionException ? failure.getCause() : failure);
                return ours ? acts.submit(() -> acts.onLoop(() -> reopen(name))).thenCompose(now -> failed) : failed;
            });
    }

    private Void deleteElsewhere(String name, String expectedOwner) throws VgpuException {
        return acts.write(Set.of(PoolLog.Key.vgpu(name)), connection -> {
            VgpuView view = pool.elsewhere(name).orElseThrow(() -> VgpuException.missing(name));
            requireNotFromSettings(view.vgpu());
            requireOwner(view.vgpu(), expectedOwner);
            VgpuStore.delete(connection, name);
            LOG.infof("vGPU %s deleted, which no broker had that answers", name);
            return null;
        });
    }

    /** Removes a vGPU whose sessions have ended; does nothing when it is gone. Event loop only. */
    private VgpuTable.Settled remove(String name) {
        if (table.find(name).isEmpty()) {
            return VgpuTable.Settled.NOTHING;
        }
        tokens.removeAll(name);
        images.forget(name);
        ledgers.forget(name);
        return settle(table.remove(name));
    }

    /** Gives up a vGPU that the pool's database does not give to this broker. Event loop only. */
    void drop(String name, String reason) {
        if (!table.has(name)) {
            return; // already on its way out
        }
        LOG.warnf("vGPU %s is given up: %s", name, reason);
        release(name, reason);
    }

    /**
     * Removes a vGPU that another broker has now, after the end of what is left of its sessions. Event loop only.
     *
     * @return completes with what its sessions have used here, when it is gone; with nothing when that fails.
     */
    CompletableFuture<VgpuUsage> release(String name, String reason) {
        table.shut(name, reason);
        return regions.removeAll(name, reason).thenCompose(now -> sessions.endAll(name, reason)).thenCompose(
            now -> acts.submit(() -> {
                VgpuUsage used = acts.onLoop(() -> {
                    VgpuUsage last = sessions.usage(name);
                    images.forget(name);
                    ledgers.forget(name);
                    settle(table.remove(name));
                    return last;
                });
                pool.uncertain(); // it may have come back meanwhile
                return used;
            })).exceptionally(failure -> {
                LOG.errorf(failure, "vGPU %s could not be given up", name);
                return VgpuUsage.NONE;
            });
    }

    /** Ends the sessions of a token that another broker of the pool has revoked. Event loop only. */
    void endSessionsOfToken(String keyId) {
        sessions.endAllOfToken(keyId, "the session's token has been revoked");
    }

    /** A condition of a deletion. */
    @FunctionalInterface
    private interface Rule {
        void check(Vgpu before) throws VgpuException;
    }

    private VgpuTable reopen(String name) {
        table.open(name);
        return table;
    }

    private void requireUnused(String name) throws VgpuException {
        int running = table.find(name).map(VgpuView::sessions).orElse(0);
        List<String> used = regions.list().stream().map(RegionView::settings).filter(r -> r.vgpu().equals(name))
            .map(r -> r.name()).toList();
        if (running > 0 || !used.isEmpty()) {
            throw VgpuException.conflict("a vGPU without sessions and regions can be deleted; use force to end them: "
                + "vgpu=" + name + " sessions=" + running + " regions=" + used);
        }
    }

    private static void requireNotFromSettings(Vgpu vgpu) throws VgpuException {
        if (vgpu.origin() == Origin.SETTINGS) {
            throw VgpuException.conflict("a vGPU of the broker's settings can only be changed there: hawser.vgpus."
                + vgpu.name());
        }
    }

    private static void requireOwner(Vgpu vgpu, String expectedOwner) throws VgpuException {
        if (expectedOwner != null && !expectedOwner.equals(vgpu.owner().id())) {
            throw new VgpuException(VgpuException.Kind.CHANGED, "the vGPU must still have the expected owner: "
                + "vgpu=" + vgpu.name() + " owner=" + Texts.shown(vgpu.owner().id()) + " expectedOwner="
                + Texts.shown(expectedOwner));
        }
    }

    /** Sets the usable GPUs. Event loop only. */
    public void setGpus(List<Device> devices) {
        if (pool != null) {
            // Other brokers reserve memory of these GPUs too, so they are placed under the pool's lock.
            table.setDevices(devices);
            acts.submit(() -> acts.write(Set.of(), connection -> null)).exceptionally(failure -> {
                LOG.errorf("vGPUs could not be placed and will be later: %s", failure.getMessage());
                return null;
            });
            return;
        }
        VgpuTable.Settled settled = settle(table.settle(devices));
        if (!settled.moved().isEmpty()) {
            acts.submit(() -> {
                recordPlaces(settled);
                return null;
            });
        }
    }

    /** Places the vGPUs that have no GPU, after a change of the rules. Acts' thread only. */
    void placeHomeless() throws VgpuException {
        if (pool == null) {
            recordPlaces(acts.onLoop(() -> settle(table.settle())));
        } else {
            acts.write(Set.of(), connection -> null); // which places them under the pool's lock
        }
    }

    /** Places the vGPUs that need it. Event loop only, under the pool's lock. Returns the new UUIDs by name. */
    Map<String, List<String>> settle() {
        return settle(table.settle()).moved();
    }

    /** Tells the vGPUs' users that the table has changed. Event loop only. */
    void refresh() {
        moved.accept(table);
        ledgers.refresh();
    }

    private VgpuTable.Settled settle(VgpuTable.Settled settled) {
        settled.lost().forEach(name -> sessions.endAll(name, "the vGPU has lost its GPU"));
        refresh();
        return settled;
    }

    /** Writes the vGPUs' new places to the database. */
    private void recordPlaces(VgpuTable.Settled settled) {
        Map<String, List<String>> places = settled.moved();
        if (places.isEmpty()) {
            return;
        }
        try {
            acts.write(places.keySet().stream().map(PoolLog.Key::vgpu).collect(Collectors.toSet()), connection -> {
                for (Map.Entry<String, List<String>> place : places.entrySet()) {
                    VgpuStore.place(connection, place.getKey(), place.getValue());
                }
                return null;
            });
        } catch (VgpuException e) {
            // The vGPUs stay at their new places; after a restart the broker places them again.
            LOG.errorf("the new places of vGPUs could not be written: vgpus=%s: %s", places.keySet(), e.getMessage());
        }
    }
}
