package io.hawser.broker.ledger;

import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.session.SessionView;
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
 * workers, which are assumed to be their guests'. A vGPU that is far over for some looks in a row loses the session
 * that has most beyond what it admits to. Event loop only.
 */
public final class OutsideLook {
    private static final Logger LOG = Logger.getLogger(OutsideLook.class);
    /** Looks in a row: a driver's figures are up to a second old, and memory on its way back is still there. */
    private static final int LOOKS = 3;
    /** What honest sessions may have beyond what is counted: streams, code, pages that small allocations share. */
    private static final long TOLERANCE_BYTES = 256L << 20;
    private static final int TOLERANCE_DIVISOR = 8; // and this part of the limit
    /** For a context while nobody has measured one. */
    private static final long UNKNOWN_CONTEXT_BYTES = 1L << 30;

    /** What it looks at. */
    public interface Watched {
        /** Sessions, with what they say that they hold. */
        List<SessionView> sessions();

        /** The GPUs. */
        List<WorkerMessage.Device> devices();

        /** What a vGPU has of a GPU now. */
        Amount amount(String vgpu, WorkerMessage.Device device);

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
        for (WorkerMessage.Device device : watched.devices()) {
            seen.forEach((place, workers) -> {
                if (place.gpu.equals(device.uuid()) && isOver(place, device, workers)) {
                    stillOver.add(place);
                }
            });
        }
        over.keySet().retainAll(stillOver);
    }

    private boolean isOver(Place place, WorkerMessage.Device device, List<Seen> workers) {
        long limitBytes = watched.amount(place.vgpu, device).limitBytes();
        long context = watched.contextBytes(place.gpu);
        long contextBytes = context == 0 ? UNKNOWN_CONTEXT_BYTES : context;
        long allowed = limitBytes + limitBytes / TOLERANCE_DIVISOR + TOLERANCE_BYTES + workers.size() * contextBytes;
        long bytes = workers.stream().mapToLong(Seen::bytes).sum();
        if (allowed < 0 || bytes <= allowed) { // below 0: no limit at all
            return false;
        }
        if (over.merge(place, 1, Integer::sum) < LOOKS) {
            return true;
        }
        Seen worst = workers.stream().reduce((a, b) -> excess(a) >= excess(b) ? a : b).orElseThrow();
        LOG.warnf("the sessions of vGPU %s have more of GPU %s than they may: bytes=%d allowedBytes=%d; session %d has "
            + "%d and admits to %d", place.vgpu, place.gpu, bytes, allowed, worst.session.id(), worst.bytes,
            worst.session.statistics().deviceBytes());
        watched.end(worst.session.id(), "its worker has more device memory than the vGPU may have: bytes=" + bytes
            + " allowedBytes=" + allowed);
        return false; // the others get their time to be looked at
    }

    private static long excess(Seen worker) {
        return worker.bytes - worker.session.statistics().deviceBytes();
    }
}
