package io.hawser.broker.region;

import io.hawser.broker.model.VgpuView;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionHeader;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.security.SecureRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jboss.logging.Logger;

/**
 * A served region. Its guest can write every byte of the memory at any time, and can truncate a file. Damage to the
 * memory ends this region and nothing else. Event loop only, except {@link #view}.
 */
final class Region {
    private static final Logger LOG = Logger.getLogger(Region.class);
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private static final long STATUS_NS = TimeUnit.SECONDS.toNanos(1);
    /**
     * Interval of the status while the region has no session and its vGPU is unchanged, for readers of the GPU's
     * figures.
     */
    private static final long IDLE_STATUS_NS = TimeUnit.SECONDS.toNanos(5);

    /** A step that accesses the region's memory. */
    @FunctionalInterface
    interface Step {
        /** Runs the step. */
        void run() throws IOException;
    }

    private final RegionSettings settings;
    private final RegionContext context;
    private final CompletableFuture<Void> closed = new CompletableFuture<>();
    private final AtomicBoolean rung = new AtomicBoolean();
    private RegionFile file;
    private RegionGeometry geometry;
    private long epoch;
    private Slot[] slots = new Slot[0];
    private volatile Slot[] watched = slots;
    private IvshmemServer server;
    private Bell bell;
    private SlotSignal signal;
    private RegionView.State state = RegionView.State.SERVING;
    private String problem = "";
    private boolean connected;
    private boolean clearing;
    private boolean closing;
    private boolean mapped;
    private long hostBeat;
    private StatusPage statusPage = new StatusPage();
    private VgpuView statusOf; // the vGPU in the last status
    private long statusNs;
    private volatile RegionView view;

    private Region(RegionSettings settings, RegionContext context) {
        this.settings = settings;
        this.context = context;
    }

    /** Opens and formats the memory, so that guests find nothing of its former content. */
    private void format() throws RegionException {
        file = RegionFile.open(settings, context.folders());
        mapped = true;
        try {
            geometry = file.geometry();
            // Positive, because workers get it as a JSON number of 0 or more.
            epoch = 1 + RANDOM.nextLong(Long.MAX_VALUE - 1);
            new RegionHeader(epoch, context.descriptionHash(), RecordLayout.PROTOCOL_VERSION, settings.vectors(),
                settings.vgpu(), geometry).format(file.memory());
            slots = new Slot[geometry.slotCount()];
            for (int i = 0; i < slots.length; i++) {
                slots[i] = new Slot(this, context, new SlotMemory(file.memory(), geometry, i), i);
            }
            watched = slots;
            statusPage = new StatusPage(); // the new header has no status yet
            statusOf = null;
            statusNs = System.nanoTime() - IDLE_STATUS_NS;
            publish();
        } catch (InternalError e) {
            unmap();
            throw new RegionException(RegionException.Kind.CONFLICT, "cannot write the region's memory: region="
                + settings.name() + " path=" + settings.place() + " (is there enough free memory?)");
        } catch (RuntimeException e) {
            unmap();
            throw e;
        }
    }

    /**
     * Opens and formats a region.
     *
     * @throws RegionException when the broker cannot serve it; it has released everything.
     */
    static Region open(RegionSettings settings, RegionContext context) throws RegionException {
        Region region = new Region(settings, context);
        region.format();
        if (settings.hasDoorbell()) {
            try {
                region.server = IvshmemServer.open(settings, context, region.new Machine());
            } catch (RegionException e) {
                region.unmap();
                throw e;
            } catch (IOException e) {
                region.unmap();
                throw new RegionException(RegionException.Kind.CONFLICT, "cannot listen on the doorbell socket: "
                    + "region=" + settings.name() + " doorbellSocket=" + settings.place() + ": " + e.getMessage());
            }
            region.bell = new Bell(settings.name(), region.server.doorbell(0), region::heard);
        } else {
            region.signal = new SlotSignal(settings.name(), region.file.memory(), region::heard);
        }
        LOG.infof("region %s is served: path=%s bytes=%d slots=%d heapBytes=%d vgpu=%s", settings.name(),
            settings.place(), region.geometry.regionBytes(), region.geometry.slotCount(), region.geometry.heapBytes(),
            settings.vgpu());
        return region;
    }

    RegionSettings settings() {
        return settings;
    }

    RegionGeometry geometry() {
        return geometry;
    }

    long epoch() {
        return epoch;
    }

    /** Descriptor for workers; this region owns it. */
    int descriptor() {
        return file.descriptor();
    }

    /** The event descriptor that a slot's doorbell signals; -1 where there is none. */
    int doorbell(int slot) {
        EventFd doorbell = server == null ? null : server.doorbell(1 + slot);
        return doorbell == null ? -1 : doorbell.fd();
    }

    /** A guest has rung the broker's doorbell or incremented its signal; on the listener's thread. */
    private void heard() {
        if (rung.compareAndSet(false, true)) {
            context.loop().execute(() -> {
                rung.set(false);
                poll();
            });
        }
    }

    boolean isLocked(int slot) throws IOException {
        return file.isSlotLocked(slot);
    }

    /** Why the region refuses claims; null while it accepts them. */
    String claimRefusal() {
        return state == RegionView.State.SERVING && !clearing ? null
            : "the region is closing or its memory is being cleared";
    }

    /** The state after the last change; any thread. */
    RegionView view() {
        return view;
    }

    /** Completes when the region has released everything. */
    CompletableFuture<Void> closed() {
        return closed;
    }

    /** Whether a slot needs the event loop, and if so schedules its poll; on the poller's thread. */
    boolean look() {
        boolean needsLook = false;
        try {
            for (Slot slot : watched) {
                needsLook |= slot.needsLook();
            }
        } catch (InternalError | IllegalStateException e) {
            // The file was truncated, or the memory unmapped meanwhile: the event loop finds out which and logs it.
            needsLook = true;
        }
        if (needsLook) {
            heard();
        }
        return needsLook;
    }

    /** Checks all slots that no worker serves. */
    void poll() {
        guarded(() -> {
            for (Slot slot : slots) {
                slot.look();
            }
        });
    }

    /** Increments the broker's beat for the guests, and checks the guests' own beats and locks. */
    void tick(long nowNs) {
        guarded(() -> {
            LONG.setOpaque(file.memory(), (long) RegionLayout.HEADER_HOST_BEAT_OFFSET, ++hostBeat);
            showStatus(nowNs);
            for (Slot slot : slots) {
                slot.tick(nowNs);
            }
        });
        publish();
    }

    /** Not at each tick: the status is a text of some hundred bytes, built from the state of all sessions. */
    private void showStatus(long nowNs) {
        long ageNs = nowNs - statusNs;
        VgpuView now = context.vgpus().find(settings.vgpu()).orElse(null);
        if (ageNs >= IDLE_STATUS_NS || ageNs >= STATUS_NS && (now != statusOf || view.slotsInUse() > 0)) {
            statusNs = nowNs;
            statusOf = now;
            statusPage.put(file.memory(), context.status().of(settings.vgpu(), StatusPage.MAX_BYTES));
        }
    }

    /**
     * Runs a step on the region's memory while that is mapped. An access to a missing page raises SIGBUS, which Java
     * throws as InternalError: the guest has truncated the file, and the region fails.
     */
    void guarded(Step step) {
        if (state == RegionView.State.FAILED || !mapped) {
            return;
        }
        try {
            step.run();
        } catch (InternalError e) {
            fail("its memory is gone, for example because its file was truncated: " + e.getMessage());
        } catch (IOException e) {
            fail(e.getMessage());
        }
    }

    private void fail(String reason) {
        if (state == RegionView.State.FAILED) {
            return;
        }
        LOG.errorf("region %s is over: path=%s: %s", settings.name(), settings.place(), reason);
        state = RegionView.State.FAILED;
        problem = reason;
        watched = new Slot[0];
        if (signal != null) {
            signal.close();
        }
        for (Slot slot : slots) {
            slot.end("the region is over: " + reason);
            slot.drop();
        }
        publish();
    }

    /** Whether the region has failed, so that nothing may access its memory. */
    boolean isFailed() {
        return state == RegionView.State.FAILED;
    }

    /** Ends the region's sessions, then releases its memory. Returns the same future each time. */
    CompletableFuture<Void> close(String reason) {
        closing = true;
        if (state == RegionView.State.SERVING) {
            state = RegionView.State.ENDING;
        }
        for (Slot slot : slots) {
            slot.end(reason);
        }
        changed();
        return closed;
    }

    /** A session has started or ended. The end of the last session releases a closing region. */
    void changed() {
        publish();
        if (view.sessions() == 0 && (closing || clearing)) {
            // Later, because the caller may be iterating over the slots.
            context.loop().execute(closing ? this::release : this::renew);
        }
    }

    /** Replaces the last machine's memory, so that the next machine finds none of its data. */
    private void renew() {
        if (!clearing || closing) {
            return;
        }
        clearing = false;
        unmap();
        try {
            format();
            server.ready();
        } catch (RegionException e) {
            fail(e.getMessage());
        }
    }

    private void unmap() {
        if (mapped) {
            mapped = false;
            watched = new Slot[0];
            for (Slot slot : slots) {
                slot.drop();
            }
            if (signal != null) {
                signal.close();
            }
            file.close();
        }
    }

    private void release() {
        if (closed.isDone()) {
            return;
        }
        guarded(() -> LONG.setRelease(file.memory(), (long) RegionLayout.HEADER_MAGIC_OFFSET, 0L));
        unmap();
        if (server != null) {
            bell.close();
            server.close();
        }
        LOG.infof("region %s is no longer served: path=%s", settings.name(), settings.place());
        closed.complete(null);
    }

    private void publish() {
        int used = 0;
        int sessions = 0;
        for (Slot slot : slots) {
            used += slot.inUse() ? 1 : 0;
            sessions += slot.hasSession() ? 1 : 0;
        }
        view = new RegionView(settings, geometry, state, problem, used, sessions, connected);
    }

    /** The ivshmem server's view of this region. */
    private final class Machine implements IvshmemServer.Owner {
        @Override
        public int memory() {
            return clearing || isFailed() ? -1 : file.descriptor();
        }

        @Override
        public void connected(boolean now) {
            connected = now;
            if (!now && !closing) {
                clearing = true;
                for (Slot slot : slots) {
                    guarded(() -> slot.guestGone("the virtual machine disconnected"));
                }
            }
            changed();
        }
    }
}
