package io.hawser.broker.region;

import io.hawser.shm.RecordLayout;
import io.hawser.shm.RegionGeometry;
import io.hawser.shm.RegionHeader;
import io.hawser.shm.RegionLayout;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.security.SecureRandom;
import java.util.concurrent.CompletableFuture;
import org.jboss.logging.Logger;

/**
 * A region that is served. Its guest can write every byte of it at any time, and can cut a file: whatever happens to
 * its memory ends this region, and nothing else. Event loop only, except {@link #view}.
 */
final class Region {
    private static final Logger LOG = Logger.getLogger(Region.class);
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    /** Something that touches the region's memory. */
    @FunctionalInterface
    interface Step {
        /** Does it. */
        void run() throws IOException;
    }

    private final RegionSettings settings;
    private final RegionFile file;
    private final RegionContext context;
    private final RegionGeometry geometry;
    private final Slot[] slots;
    private final long epoch;
    private final CompletableFuture<Void> closed = new CompletableFuture<>();
    private RegionView.State state = RegionView.State.SERVING;
    private String problem = "";
    private boolean closing;
    private long hostBeat;
    private volatile RegionView view;

    private Region(RegionSettings settings, RegionFile file, RegionContext context) {
        this.settings = settings;
        this.file = file;
        this.context = context;
        geometry = file.geometry();
        // Positive: it travels to workers as a JSON number.
        epoch = 1 + RANDOM.nextLong(Long.MAX_VALUE - 1);
        new RegionHeader(epoch, context.descriptionHash(), RecordLayout.PROTOCOL_VERSION, settings.vectors(),
            settings.vgpu(), geometry).format(file.memory());
        slots = new Slot[geometry.slotCount()];
        for (int i = 0; i < slots.length; i++) {
            slots[i] = new Slot(this, context, new SlotMemory(file.memory(), geometry, i), i);
        }
        publish();
    }

    /**
     * Opens and formats a region.
     *
     * @throws RegionException when it cannot be served; nothing of it is left.
     */
    static Region open(RegionSettings settings, RegionContext context) throws RegionException {
        RegionFile file = RegionFile.open(settings);
        try {
            Region region = new Region(settings, file, context);
            LOG.infof("region %s is served: path=%s bytes=%d slots=%d heapBytes=%d vgpu=%s", settings.name(),
                settings.place(), region.geometry.regionBytes(), region.geometry.slotCount(),
                region.geometry.heapBytes(), settings.vgpu());
            return region;
        } catch (InternalError e) {
            file.close();
            throw new RegionException(RegionException.Kind.CONFLICT, "the region's memory cannot be written: region="
                + settings.name() + " path=" + settings.place() + " (is there so much left?)");
        } catch (RuntimeException e) {
            file.close();
            throw e;
        }
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
        return -1;
    }

    boolean isLocked(int slot) throws IOException {
        return file.isSlotLocked(slot);
    }

    /** Why nobody is let in; null while claims are welcome. */
    String refusesClaims() {
        return state == RegionView.State.SERVING ? null : "the region is being taken out of service";
    }

    /** As of the last change; any thread. */
    RegionView view() {
        return view;
    }

    /** Completes when nothing of it is left. */
    CompletableFuture<Void> closed() {
        return closed;
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
            for (Slot slot : slots) {
                slot.tick(nowNs);
            }
        });
        publish();
    }

    /**
     * Does something with the region's memory, as long as there is any. A page that is not there any more is SIGBUS,
     * which Java throws as InternalError: its guest has cut the file, and the region is over.
     */
    void guarded(Step step) {
        if (state == RegionView.State.FAILED || closed.isDone()) {
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
        if (closing && view.sessions() == 0) {
            // Not here: a loop over the slots may be what called.
            context.loop().execute(this::release);
        }
    }

    private void release() {
        if (closed.isDone()) {
            return;
        }
        guarded(() -> LONG.setRelease(file.memory(), (long) RegionLayout.HEADER_MAGIC_OFFSET, 0L));
        closed.complete(null);
        file.close();
        LOG.infof("region %s is not served any more: path=%s", settings.name(), settings.place());
    }

    private void publish() {
        int used = 0;
        int sessions = 0;
        for (Slot slot : slots) {
            used += slot.inUse() ? 1 : 0;
            sessions += slot.hasSession() ? 1 : 0;
        }
        view = new RegionView(settings, geometry, state, problem, used, sessions, false);
    }
}
