package io.hawser.broker.admin;

import io.hawser.broker.image.ImageStore;
import io.hawser.broker.jail.ComputeCache;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Texts;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.region.RegionView;
import io.hawser.broker.region.Regions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.VgpuDraft;
import io.hawser.broker.vgpu.VgpuTable;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Consumer;
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

    /**
     * Creates a vGPU.
     *
     * @return completes when the database holds it and guests can use it; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<VgpuView> create(String name, VgpuDraft draft) {
        return acts.submit(() -> {
            Vgpu vgpu = draft.create(name, Origin.REST, Vgpu.now());
            VgpuTable.Planned planned = acts.onLoop(() -> table.plan(vgpu));
            acts.write(connection -> {
                VgpuStore.insert(connection, planned.vgpu(), planned.home());
                return null;
            });
            recordPlaces(acts.onLoop(() -> settle(table.add(planned))));
            LOG.infof("vGPU %s made: gpus=%s memoryBytes=%d computeShare=%d mode=%s", name, planned.home(),
                vgpu.memoryBytes(), vgpu.computeShare(), vgpu.mode().label());
            return table.find(name).orElseThrow();
        });
    }

    /** Changes a vGPU of any owner; see {@link #change(String, VgpuDraft, String)}. */
    public CompletableFuture<VgpuView> change(String name, VgpuDraft draft) {
        return change(name, draft, null);
    }

    /**
     * Changes a vGPU; its sessions continue.
     *
     * @param expectedOwner id of the owner that it must have now, {@link VgpuException.Kind#CHANGED} otherwise; null
     * for any. Acts run one after the other, so no other act changes the owner in between.
     * @return completes when database and guests see the change; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<VgpuView> change(String name, VgpuDraft draft, String expectedOwner) {
        return acts.submit(() -> {
            Vgpu before = table.find(name).orElseThrow(() -> VgpuException.missing(name)).vgpu();
            requireNotFromSettings(before);
            requireOwner(before, expectedOwner);
            Vgpu after = draft.change(before, Vgpu.now());
            VgpuTable.Planned planned = acts.onLoop(() -> table.planChange(name, after,
                gpu -> ledgers.usedBytes(name, gpu)));
            try {
                acts.write(connection -> {
                    VgpuStore.update(connection, planned.vgpu(), planned.home());
                    return null;
                });
            } catch (VgpuException e) {
                acts.onLoop(() -> reopen(name));
                throw e;
            }
            recordPlaces(acts.onLoop(() -> settle(table.change(planned))));
            LOG.infof("vGPU %s changed: gpus=%s memoryBytes=%d computeShare=%d mode=%s", name, planned.home(),
                after.memoryBytes(), after.computeShare(), after.mode().label());
            return table.find(name).orElseThrow();
        });
    }

    /** Deletes a vGPU of any owner; see {@link #delete(String, boolean, String)}. */
    public CompletableFuture<Void> delete(String name, boolean force) {
        return delete(name, force, null);
    }

    /**
     * Deletes a vGPU with its tokens.
     *
     * @param force whether to end its sessions and regions; without it they prevent the deletion.
     * @param expectedOwner as for {@link #change(String, VgpuDraft, String)}.
     * @return completes when all its resources are released; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<Void> delete(String name, boolean force, String expectedOwner) {
        CompletableFuture<Void> closed = acts.submit(() -> {
            Vgpu before = table.find(name).orElseThrow(() -> VgpuException.missing(name)).vgpu();
            requireNotFromSettings(before);
            requireOwner(before, expectedOwner);
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
        String reason = "the vGPU is deleted";
        return closed.thenCompose(now -> regions.removeAll(name, reason))
            .thenCompose(now -> sessions.endAll(name, reason)).thenCompose(now -> acts.<Void>submit(() -> {
                acts.write(connection -> {
                    VgpuStore.delete(connection, name);
                    return null;
                });
                recordPlaces(acts.onLoop(() -> {
                    tokens.removeAll(name);
                    images.forget(name);
                    ledgers.forget(name);
                    return settle(table.remove(name));
                }));
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
        VgpuTable.Settled settled = settle(table.settle(devices));
        if (!settled.moved().isEmpty()) {
            acts.submit(() -> {
                recordPlaces(settled);
                return null;
            });
        }
    }

    private VgpuTable.Settled settle(VgpuTable.Settled settled) {
        settled.lost().forEach(name -> sessions.endAll(name, "the vGPU has lost its GPU"));
        moved.accept(table);
        ledgers.refresh();
        return settled;
    }

    /** Writes the vGPUs' new places to the database. */
    private void recordPlaces(VgpuTable.Settled settled) {
        Map<String, List<String>> places = settled.moved();
        if (places.isEmpty()) {
            return;
        }
        try {
            acts.write(connection -> {
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
