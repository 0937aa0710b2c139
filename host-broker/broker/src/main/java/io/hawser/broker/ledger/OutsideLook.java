package io.hawser.broker.ledger;

import io.hawser.broker.model.Amount;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.SessionView;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import org.jboss.logging.Logger;

/**
 * Compares the driver's figures of a vGPU's workers with the vGPU's limit. Workers write the ledger themselves, and a
 * worker may be under its guest's control. A vGPU may exceed its limit far for a few checks in a row, and slightly for
 * many. Then it loses the session with the largest excess over its own figure. Event loop only.
 */
public final class OutsideLook {
    private static final Logger LOG = Logger.getLogger(OutsideLook.class);
    /** Checks in a row: a driver's figures are up to a second old, and memory may still be in the course of release. */
    private static final int LOOKS = 3;
    /** Correct sessions may need this for a while: mostly free pages, code that is about to be unloaded. */
    private static final long TOLERANCE_BYTES = 256L << 20;
    private static final int TOLERANCE_DIVISOR = 8; // and this fraction of the limit
    /** Checks in a row, one a second, for which an excess within the tolerance may last. */
    private static final int LONG_LOOKS = 60;
    /**
     * Memory beside its charges that each correct session may keep: two pools hold back 32 MiB each
     * (MemoryQuota.FREE_POOL_BYTES), and streams, events and code need the rest.
     */
    private static final long SESSION_BYTES = 128L << 20;
    /** Assumed memory of a context before the first measurement. */
    private static final long UNKNOWN_CONTEXT_BYTES = 1L << 30;

    /** The source of the figures. */
    public interface Watched {
        /** The sessions, with the memory that they report. */
        List<SessionView> sessions();

        /** The GPUs. */
        List<Device> devices();

        /** A vGPU's present amount of a GPU. */
        Amount amount(String vgpu, Device device);

        /** Memory of a process on a GPU by the driver's figures; empty where the driver has none. */
        OptionalLong processBytes(String gpu, long pid);

        /** Memory of a worker's context on a GPU; 0 while it is unknown. */
        long contextBytes(String gpu);

        /** Ends a session. */
        void end(long session, String reason);
    }

    private record Place(String vgpu, String gpu) {}

    private record Seen(SessionView session, long bytes) {}

    private final Watched watched;
    private final Map<Place, Integer> over = new HashMap<>(); // checks in a row
    private final Map<Place, Integer> farOver = new HashMap<>();

    /** Starts without observations. */
    public OutsideLook(Watched watched) {
        this.watched = watched;
    }

    /** Makes one check. */
    public void check() {
        Map<Place, List<Seen>> seen = new HashMap<>();
        for (SessionView session : watched.sessions()) {
            for (String gpu : session.workerPid() == 0 ? List.<String>of() : session.gpus()) {
                watched.processBytes(gpu, session.workerPid()).ifPresent(
                    bytes -> seen.computeIfAbsent(new Place(session.guest().vgpu(), gpu), p -> new ArrayList<>())
                        .add(new Seen(session, bytes)));
            }
        }
        Set<Place> stillOver = new HashSet<>();
        Set<Place> stillFarOver = new HashSet<>();
        for (Device device : watched.devices()) {
            seen.forEach((place, workers) -> {
                if (place.gpu.equals(device.uuid())) {
                    check(place, device, workers, stillOver, stillFarOver);
                }
            });
        }
        over.keySet().retainAll(stillOver);
        farOver.keySet().retainAll(stillFarOver);
    }

    private void check(Place place, Device device, List<Seen> workers, Set<Place> stillOver,
        Set<Place> stillFarOver) {
        long limitBytes = watched.amount(place.vgpu, device).limitBytes();
        long context = watched.contextBytes(place.gpu);
        long contexts = workers.size() * (context == 0 ? UNKNOWN_CONTEXT_BYTES : context);
        long allowed = limitBytes + contexts + workers.size() * SESSION_BYTES;
        long tolerated = limitBytes + limitBytes / TOLERANCE_DIVISOR + TOLERANCE_BYTES + contexts;
        long bytes = workers.stream().mapToLong(Seen::bytes).sum();
        if (allowed < 0 || tolerated < 0 || bytes <= Math.min(allowed, tolerated)) { // below 0: overflow, no limit
            return;
        }
        boolean isFar = bytes > tolerated;
        int farLooks = isFar ? farOver.merge(place, 1, Integer::sum) : 0;
        int looks = bytes > allowed ? over.merge(place, 1, Integer::sum) : 0;
        if (farLooks >= LOOKS || looks >= LONG_LOOKS) {
            end(place, workers, bytes, farLooks >= LOOKS ? tolerated : allowed);
            return; // the other sessions start a new series of checks
        }
        if (isFar) {
            stillFarOver.add(place);
        }
        if (looks > 0) {
            stillOver.add(place);
        }
    }

    private void end(Place place, List<Seen> workers, long bytes, long allowedBytes) {
        Seen worst = workers.stream().reduce((a, b) -> excess(a) >= excess(b) ? a : b).orElseThrow();
        LOG.warnf("the sessions of vGPU %s exceed its limit on GPU %s: bytes=%d allowedBytes=%d; session %d has %d and "
            + "reports %d", place.vgpu, place.gpu, bytes, allowedBytes, worst.session.id(), worst.bytes,
            worst.session.statistics().deviceBytes());
        watched.end(worst.session.id(), "its worker uses more device memory than its vGPU may have: bytes=" + bytes
            + " allowedBytes=" + allowedBytes);
    }

    private static long excess(Seen worker) {
        return worker.bytes - worker.session.statistics().deviceBytes();
    }
}
