package io.hawser.broker.region;

import io.hawser.broker.model.VgpuView;
import io.hawser.shm.RecordLayout;
import io.hawser.shm.RegionGeometry;
import io.hawser.shm.RegionHeader;
import io.hawser.shm.RegionLayout;
import io.hawser.shm.os.EventFd;
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
 * A region that is served. Its guest can write every byte of it at any time, and can cut a file: whatever happens to
 * its memory ends this region, and nothing else. Event loop only, except {@link #view}.
 */
final class Region {
    private static final Logger LOG = Logger.getLogger(Region.class);
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private static final long STATUS_NS = TimeUnit.SECONDS.toNanos(1);
    /** While nobody in the machine uses it, and its vGPU is as it was: for who asks for figures of the GPU. */
    private static final long IDLE_STATUS_NS = TimeUnit.SECONDS.toNanos(5);

    /** Something that touches the region's memory. */
    @FunctionalInterface
    interface Step {
        /** Does it. */
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
    private VgpuView statusOf; // when the status was put together
    private long statusNs;
    private volatile RegionView view;

    private Region(RegionSettings settings, RegionContext context) {
        this.settings = settings;
        this.context = context;
    }

    /** Opens and formats the memory, for guests that know nothing of what was there before. */
    private void format() throws RegionException {
        file = RegionFile.open(settings, context.folders());
        mapped = true;
        try {
            geometry = file.geometry();
            // Positive: it travels to workers as a JSON number.
            epoch = 1 + RANDOM.nextLong(Long.MAX_VALUE - 1);
            new RegionHeader(epoch, context.descriptionHash(), RecordLayout.PROTOCOL_VERSION, settings.vectors(),
                settings.vgpu(), geometry).format(file.memory());
            slots = new Slot[geometry.slotCount()];
            for (int i = 0; i < slots.length; i++) {
                slots[i] = new Slot(this, context, new SlotMemory(file.memory(), geometry, i), i);
            }
            watched = slots;
            statusPage = new StatusPage(); // nothing is shown yet
            statusOf = null;
            statusNs = System.nanoTime() - IDLE_STATUS_NS;
            publish();
        } catch (InternalError e) {
            unmap();
            throw new RegionException(RegionException.Kind.CONFLICT, "the region's memory cannot be written: region="
                + settings.name() + " path=" + settings.place() + " (is there so much left?)");
        } catch (RuntimeException e) {
            unmap();
            throw e;
        }
    }

    /**
     * Opens and formats a region.
     *
     * @throws RegionException when it cannot be served; nothing of it is left.
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
                throw new RegionException(RegionException.Kind.CONFLICT, "the doorbell socket cannot be listened on: "
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

    /** What workers get; owned by this. */
    int descriptor() {
        return file.descriptor();
    }

    /** The event descriptor that a slot's doorbell signals; -1 where there is none. */
    int doorbell(int slot) {
        EventFd doorbell = server == null ? null : server.doorbell(1 + slot);
        return doorbell == null ? -1 : doorbell.fd();
    }

    /** A guest has rung the broker's doorbell or counted its signal up; on a thread of its own. */
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

    /** Why nobody is let in; null while claims are welcome. */
    String refusesClaims() {
        return state == RegionView.State.SERVING && !clearing ? null : "the region is being taken out of service";
    }

    /** As of the last change; any thread. */
    RegionView view() {
        return view;
    }

    /** Completes when nothing of it is left. */
    CompletableFuture<Void> closed() {
        return closed;
    }

    /** Whether a slot has something to be seen to, which the event loop is told; on the poller's thread. */
    boolean look() {
        boolean asked = false;
        try {
            for (Slot slot : watched) {
                asked |= slot.isAsked();
            }
        } catch (InternalError | IllegalStateException e) {
            // Cut, or unmapped in this moment: the event loop finds out which, and says so.
            asked = true;
        }
        if (asked) {
            heard();
        }
        return asked;
    }

    /** Looks at all slots that no worker watches. */
    void poll() {
        guarded(() -> {
            for (Slot slot : slots) {
                slot.look();
            }
        });
    }

    /** Shows the guests that the broker lives, and looks whether they do. */
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

    /** Not each time: it is some hundred bytes of text, put together from pictures of all sessions. */
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
     * Does something with the region's memory, as long as there is any. A page that is not there any more is SIGBUS,
     * which Java throws as InternalError: its guest has cut the file, and the region is over.
     */
    void guarded(Step step) {
        if (state == RegionView.State.FAILED || !mapped) {
            return;
        }
        try {
            step.run();
        } catch (InternalError e) {
            fail("its memory is gone, as when its file was cut: " + e.getMessage());
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

    /** Whether its memory must not be touched any more. */
    boolean failed() {
        return state == RegionView.State.FAILED;
    }

    /** Ends its sessions, then gives its memory back. The same future each time. */
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

    /** A session came or went; the last one of a region that is to be closed lets it go. */
    void changed() {
        publish();
        if (view.sessions() == 0 && (closing || clearing)) {
            // Not here: a loop over the slots may be what called.
            context.loop().execute(closing ? this::release : this::renew);
        }
    }

    /** The last machine's memory is given back, so that the next one finds nothing of it. */
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
        LOG.infof("region %s is not served any more: path=%s", settings.name(), settings.place());
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

    /** What the ivshmem server asks and tells. */
    private final class Machine implements IvshmemServer.Owner {
        @Override
        public int memory() {
            return clearing || failed() ? -1 : file.descriptor();
        }

        @Override
        public void connected(boolean now) {
            connected = now;
            if (!now && !closing) {
                clearing = true;
                for (Slot slot : slots) {
                    guarded(() -> slot.guestGone("the virtual machine has hung up"));
                }
            }
            changed();
        }
    }
}
