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
 * Compares what the driver says that a vGPU's workers have of a GPU with what they may have: a ledger is kept by
 * workers, which are assumed to be their guests'. A vGPU may be far over for some looks in a row, and a little over for
 * many; then it loses the session with the largest excess over its own figure. Event loop only.
 */
public final class OutsideLook {
    private static final Logger LOG = Logger.getLogger(OutsideLook.class);
    /** Looks in a row: a driver's figures are up to a second old, and memory on its way back is still there. */
    private static final int LOOKS = 3;
    /** Honest sessions may need this for a while: pages that are mostly free, code that is about to be unloaded. */
    private static final long TOLERANCE_BYTES = 256L << 20;
    private static final int TOLERANCE_DIVISOR = 8; // and this part of the limit
    /** Looks in a row, a second each, that an excess may last which is within the tolerance. */
    private static final int LONG_LOOKS = 60;
    /**
     * Each honest session may have this for ever beside its charges: two pools hold back 32 MiB each
     * (MemoryQuota.FREE_POOL_BYTES), and streams, events and code need the rest.
     */
    private static final long SESSION_BYTES = 128L << 20;
    /** For a context while nobody has measured one. */
    private static final long UNKNOWN_CONTEXT_BYTES = 1L << 30;

    /** What it looks at. */
    public interface Watched {
        /** Sessions, with what they say that they hold. */
        List<SessionView> sessions();

        /** The GPUs. */
        List<Device> devices();

        /** What a vGPU has of a GPU now. */
        Amount amount(String vgpu, Device device);

        /** What a process has of a GPU as the driver says; empty where it does not. */
        OptionalLong processBytes(String gpu, long pid);

        /** What a worker's context costs there; 0 while that is not known. */
        long contextBytes(String gpu);

        /** Ends a session. */
        void end(long session, String reason);
    }

    private record Place(String vgpu, String gpu) { }

    private record Seen(SessionView session, long bytes) { }

    private final Watched watched;
    private final Map<Place, Integer> over = new HashMap<>(); // looks in a row
    private final Map<Place, Integer> farOver = new HashMap<>();

    /** Has seen nothing yet. */
    public OutsideLook(Watched watched) {
        this.watched = watched;
    }

    /** Looks once. */
    public void look() {
        Map<Place, List<Seen>> seen = new HashMap<>();
        for (SessionView session : watched.sessions()) {
            for (String gpu : session.workerPid() == 0 ? List.<String>of() : session.gpus()) {
                watched.processBytes(gpu, session.workerPid()).ifPresent(bytes ->
                    seen.computeIfAbsent(new Place(session.guest().vgpu(), gpu), p -> new ArrayList<>())
                        .add(new Seen(session, bytes)));
            }
        }
        Set<Place> stillOver = new HashSet<>();
        Set<Place> stillFarOver = new HashSet<>();
        for (Device device : watched.devices()) {
            seen.forEach((place, workers) -> {
                if (place.gpu.equals(device.uuid())) {
                    look(place, device, workers, stillOver, stillFarOver);
                }
            });
        }
        over.keySet().retainAll(stillOver);
        farOver.keySet().retainAll(stillFarOver);
    }

    private void look(Place place, Device device, List<Seen> workers, Set<Place> stillOver,
            Set<Place> stillFarOver) {
        long limitBytes = watched.amount(place.vgpu, device).limitBytes();
        long context = watched.contextBytes(place.gpu);
        long contexts = workers.size() * (context == 0 ? UNKNOWN_CONTEXT_BYTES : context);
        long allowed = limitBytes + contexts + workers.size() * SESSION_BYTES;
        long tolerated = limitBytes + limitBytes / TOLERANCE_DIVISOR + TOLERANCE_BYTES + contexts;
        long bytes = workers.stream().mapToLong(Seen::bytes).sum();
        if (allowed < 0 || tolerated < 0 || bytes <= Math.min(allowed, tolerated)) { // below 0: no limit at all
            return;
        }
        boolean isFar = bytes > tolerated;
        int farLooks = isFar ? farOver.merge(place, 1, Integer::sum) : 0;
        int looks = bytes > allowed ? over.merge(place, 1, Integer::sum) : 0;
        if (farLooks >= LOOKS || looks >= LONG_LOOKS) {
            end(place, workers, bytes, farLooks >= LOOKS ? tolerated : allowed);
            return; // the others get their time to be looked at
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
        LOG.warnf("the sessions of vGPU %s have more of GPU %s than they may: bytes=%d allowedBytes=%d; session %d has "
            + "%d and admits to %d", place.vgpu, place.gpu, bytes, allowedBytes, worst.session.id(), worst.bytes,
            worst.session.statistics().deviceBytes());
        watched.end(worst.session.id(), "its worker has more device memory than the vGPU may have: bytes=" + bytes
            + " allowedBytes=" + allowedBytes);
    }

    private static long excess(Seen worker) {
        return worker.bytes - worker.session.statistics().deviceBytes();
    }
}
