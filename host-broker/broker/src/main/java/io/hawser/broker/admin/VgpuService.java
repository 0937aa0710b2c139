package io.hawser.broker.admin;

import io.hawser.broker.image.ImageStore;
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

/** Makes, changes and deletes vGPUs: in the database, and for the guests that come. Thread-safe. */
public final class VgpuService {
    private static final Logger LOG = Logger.getLogger(VgpuService.class);

    private final Acts acts;
    private final VgpuTable table;
    private final TokenTable tokens;
    private final SessionRegistry sessions;
    private final Regions regions;
    private final ImageStore images;
    private final Ledgers ledgers;
    private final Consumer<VgpuTable> moved;

    /** Who has something of a vGPU. */
    public record Users(SessionRegistry sessions, Regions regions, ImageStore images, Ledgers ledgers) { }

    /**
     * For these vGPUs.
     *
     * @param moved told on the event loop when vGPUs have other GPUs than before, or some are no more.
     */
    public VgpuService(Acts acts, VgpuTable table, TokenTable tokens, Users users,
        Consumer<VgpuTable> moved) {
        this.acts = acts;
        this.table = table;
        this.tokens = tokens;
        sessions = users.sessions;
        regions = users.regions;
        images = users.images;
        ledgers = users.ledgers;
        this.moved = moved;
    }

    /**
     * Makes one.
     *
     * @return completes when it is in the database and guests can come; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<VgpuView> create(String name, VgpuDraft draft) {
        return acts.submit(() -> {
            Vgpu vgpu = draft.create(name, Origin.REST, Vgpu.now());
            VgpuTable.Planned planned = acts.onLoop(() -> table.plan(vgpu));
            acts.write(connection -> {
                VgpuStore.insert(connection, planned.vgpu(), planned.home());
                return null;
            });
            settled(acts.onLoop(() -> settle(table.add(planned))));
            LOG.infof("vGPU %s made: gpus=%s memoryBytes=%d computeShare=%d mode=%s", name, planned.home(),
                vgpu.memoryBytes(), vgpu.computeShare(), vgpu.mode().label());
            return table.find(name).orElseThrow();
        });
    }

    /** Changes one, whosever it is; see {@link #change(String, VgpuDraft, String)}. */
    public CompletableFuture<VgpuView> change(String name, VgpuDraft draft) {
        return change(name, draft, null);
    }

    /**
     * Changes one; its sessions go on.
     *
     * @param expectedOwner id of the owner that it must have now, {@link VgpuException.Kind#CHANGED} otherwise; null
     *     for any. Acts come one after the other, so nobody else changes it in between.
     * @return completes when it is so in the database and for guests; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<VgpuView> change(String name, VgpuDraft draft, String expectedOwner) {
        return acts.submit(() -> {
            Vgpu before = table.find(name).orElseThrow(() -> VgpuException.missing(name)).vgpu();
            requireOurs(before);
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
                acts.onLoop(() -> stay(name));
                throw e;
            }
            settled(acts.onLoop(() -> settle(table.change(planned))));
            LOG.infof("vGPU %s changed: gpus=%s memoryBytes=%d computeShare=%d mode=%s", name, planned.home(),
                after.memoryBytes(), after.computeShare(), after.mode().label());
            return table.find(name).orElseThrow();
        });
    }

    /** Deletes one, whosever it is; see {@link #delete(String, boolean, String)}. */
    public CompletableFuture<Void> delete(String name, boolean force) {
        return delete(name, force, null);
    }

    /**
     * Deletes one, with its tokens.
     *
     * @param force whether its sessions and regions are ended; else they stand in the way.
     * @param expectedOwner as for {@link #change(String, VgpuDraft, String)}.
     * @return completes when nothing of it is left; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<Void> delete(String name, boolean force, String expectedOwner) {
        CompletableFuture<Void> closed = acts.submit(() -> {
            Vgpu before = table.find(name).orElseThrow(() -> VgpuException.missing(name)).vgpu();
            requireOurs(before);
            requireOwner(before, expectedOwner);
            // Closed in the same act: who changes its owner from here on is refused.
            acts.onLoop(() -> {
                if (!force) {
                    requireUnused(name);
                }
                table.close(name);
                return null;
            });
            return null;
        });
        // Not in the acts' thread: a worker may take its time to end, and other acts need not wait for it.
        String reason = "the vGPU is deleted";
        return closed.thenCompose(now -> regions.removeAll(name, reason))
            .thenCompose(now -> sessions.endAll(name, reason)).thenCompose(now -> acts.<Void>submit(() -> {
                acts.write(connection -> {
                    VgpuStore.delete(connection, name);
                    return null;
                });
                settled(acts.onLoop(() -> {
                    tokens.removeAll(name);
                    images.forget(name);
                    ledgers.forget(name);
                    return settle(table.remove(name));
                }));
                LOG.infof("vGPU %s deleted", name);
                return null;
            })).exceptionallyCompose(failure -> {
                // Also when it was never closed, which opens it no more than it was.
                boolean ours = closed.isDone() && !closed.isCompletedExceptionally();
                CompletableFuture<Void> failed = CompletableFuture.failedFuture(
                    failure instanceof CompletionException ? failure.getCause() : failure);
                return ours ? acts.submit(() -> acts.onLoop(() -> stay(name))).thenCompose(now -> failed) : failed;
            });
    }

    private VgpuTable stay(String name) {
        table.open(name);
        return table;
    }

    private void requireUnused(String name) throws VgpuException {
        int running = table.find(name).map(VgpuView::sessions).orElse(0);
        List<String> used = regions.list().stream().map(RegionView::settings).filter(r -> r.vgpu().equals(name))
            .map(r -> r.name()).toList();
        if (running > 0 || !used.isEmpty()) {
            throw VgpuException.conflict("a vGPU that is deleted must have no session and no region, unless they are "
                + "to be ended (force): vgpu=" + name + " sessions=" + running + " regions=" + used);
        }
    }

    private static void requireOurs(Vgpu vgpu) throws VgpuException {
        if (vgpu.origin() == Origin.SETTINGS) {
            throw VgpuException.conflict("a vGPU of the broker's settings is changed there: hawser.vgpus."
                + vgpu.name());
        }
    }

    private static void requireOwner(Vgpu vgpu, String expectedOwner) throws VgpuException {
        if (expectedOwner != null && !expectedOwner.equals(vgpu.owner().id())) {
            throw new VgpuException(VgpuException.Kind.CHANGED, "the vGPU must still have the owner that is expected: "
                + "vgpu=" + vgpu.name() + " owner=" + Texts.shown(vgpu.owner().id()) + " expectedOwner="
                + Texts.shown(expectedOwner));
        }
    }

    /** These GPUs there are from now on. Event loop only. */
    public void gpus(List<Device> devices) {
        VgpuTable.Settled settled = settle(table.settle(devices));
        if (!settled.moved().isEmpty()) {
            acts.submit(() -> {
                settled(settled);
                return null;
            });
        }
    }

    private VgpuTable.Settled settle(VgpuTable.Settled settled) {
        settled.lost().forEach(name -> sessions.endAll(name, "the vGPU's GPU is gone"));
        moved.accept(table);
        ledgers.refresh();
        return settled;
    }

    /** Notes where vGPUs are now. */
    private void settled(VgpuTable.Settled settled) {
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
            // They are there all the same; only a restart would choose anew.
            LOG.errorf("where vGPUs are could not be noted: vgpus=%s: %s", places.keySet(), e.getMessage());
        }
    }
}
