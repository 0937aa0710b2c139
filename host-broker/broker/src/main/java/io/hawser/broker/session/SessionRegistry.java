package io.hawser.broker.session;

import io.hawser.broker.image.ImageStore;
import io.hawser.broker.ipc.SharedMemory;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Guest;
import io.hawser.broker.model.RefusedException;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.model.WorkerStats;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.turns.SessionTurns;
import io.hawser.broker.vgpu.VgpuTable;
import java.io.IOException;
import java.time.Instant;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.Executor;
import java.util.function.Predicate;
import org.jboss.logging.Logger;

/**
 * The sessions: who is let in, what they do, and their end. Changed on the event loop; {@link #list}, {@link #find},
 * {@link #totals} and {@link #end} from any thread.
 */
public final class SessionRegistry {
    private static final Logger LOG = Logger.getLogger(SessionRegistry.class);

    /** Told of sessions on the event loop, once each. */
    public interface Listener {
        /** A session has its worker. */
        void runs(SessionView session);

        /** A session that had a worker is over; {@code error} says whether something went wrong. */
        void over(SessionView session, String reason, boolean error);

        /** A fault has ended what a session has on its GPU; its guest has not gone yet. */
        default void lost(SessionView session) { }

        /** For whoever does not care. */
        Listener NONE = new Listener() {
            @Override
            public void runs(SessionView session) {
                LOG.tracef("session %d runs", session.id());
            }

            @Override
            public void over(SessionView session, String reason, boolean error) {
                LOG.tracef("session %d is over: %s", session.id(), reason);
            }
        };
    }

    private Listener listener = Listener.NONE;
    private final Executor loop;
    private final int maxSessions;
    private final VgpuTable vgpus;
    private final ImageStore images;
    private final Ledgers ledgers;
    private final SharedMemory memory;
    private final ConcurrentSkipListMap<Long, Session> sessions = new ConcurrentSkipListMap<>();
    private final Map<Worker, Session> byWorker = new HashMap<>();
    private final CpuShares<Worker> cpu = new CpuShares<>(this::share, Worker::setCpuWeight);
    private SessionTurns turns = SessionTurns.none();
    private long nextId = 1;
    private boolean closed;
    private volatile long startedCount;
    // Guarded by this, together with the removal from the sessions: a reader never sees a total shrink.
    private WorkerStats retired = WorkerStats.NONE;

    /**
     * Makes an empty registry.
     *
     * @param loop the event loop that changes it.
     * @param maxSessions sessions at a time.
     * @param vgpus by which guests are let in.
     * @param images what is kept of one session for the next.
     * @param ledgers what sessions hold.
     */
    public SessionRegistry(Executor loop, int maxSessions, VgpuTable vgpus, ImageStore images, Ledgers ledgers) {
        this.loop = loop;
        this.maxSessions = maxSessions;
        this.vgpus = vgpus;
        this.images = images;
        this.ledgers = ledgers;
        memory = new SharedMemory(ledgers);
    }

    /**
    /** Tells this listener from now on; before the first session. */
    public void listen(Listener to) {
        listener = to;
    }

    /**
     * Lets a guest in. Event loop only. The session must be {@link #attach attached} or {@link #abandon abandoned}.
     *
     * @param freed called once when the session is over.
     * @throws RefusedException when a limit is reached; the message names it.
     */
    public Session admit(Guest guest, Runnable freed) throws RefusedException {
        if (closed) {
            throw new RefusedException("the broker is shutting down");
        }
        if (sessions.size() >= maxSessions && !makeRoom(guest.vgpu())) {
            throw new RefusedException("the broker's sessions are all in use: max=" + maxSessions);
        }
        String name = guest.vgpu();
        String objection = vgpus.objection(name, guest.carrier());
        if (objection != null) {
            throw new RefusedException(objection);
        }
        Vgpu vgpu = vgpus.enter(name);
        Session session = new Session(nextId++, guest, vgpu.memoryBytes(), () -> place(name),
            () -> images.digests(name), freed);
        try {
            session.gpus();
        } catch (RefusedException e) {
            vgpus.leave(name);
            throw e;
        }
        sessions.put(session.id(), session);
        return session;
    }

    /**
     * Refuses the newest waiting start of the vGPU that has most of them, in favour of a vGPU with fewer. So starts in
     * line keep no other vGPU out.
     *
     * @return whether there is a place now.
     */
    private boolean makeRoom(String comer) {
        Map<String, Integer> waiting = new HashMap<>();
        Map<String, Session> newest = new HashMap<>();
        for (Session session : sessions.values()) { // the oldest first
            if (session.view().state() == SessionState.STARTING) {
                waiting.merge(session.vgpu(), 1, Integer::sum);
                newest.put(session.vgpu(), session);
            }
        }
        waiting.entrySet().stream().max(Map.Entry.comparingByValue())
            .filter(most -> most.getValue() > waiting.getOrDefault(comer, 0) + 1)
            .ifPresent(most -> newest.get(most.getKey()).end("the broker's sessions are all in use, and most of those "
                + "that wait for a worker are this vGPU's: max=" + maxSessions + " vgpu=" + most.getKey() + " waiting="
                + most.getValue()));
        return sessions.size() < maxSessions;
    }

    /** UUIDs of the GPUs for one more session; empty while they are not known. */
    private List<String> place(String name) throws RefusedException {
        Optional<VgpuView> vgpu = vgpus.find(name);
        if (vgpu.isEmpty() || vgpu.get().state() == VgpuState.UNPLACED) {
            throw new RefusedException("the vGPU has no GPU: vgpu=" + name + ": "
                + vgpu.map(VgpuView::problem).orElse("it has been deleted"));
        }
        return vgpu.get().placedGpus();
    }

    /** How the sessions take turns; before the first session. */
    public void useTurns(SessionTurns given) {
        turns = given;
    }

    /**
     * The worker is about to get the guest's socket or region; told first, since the guest can be served at once.
     * Event loop only.
     *
     * @throws IOException when its memory cannot be counted; the worker is of no further use.
     */
    public void attach(Session session, Worker worker) throws IOException {
        try {
            session.run(worker, ledgers.take(worker, session.view().guest().vgpu()));
        } catch (IOException e) {
            worker.kill("its session cannot be counted: " + e.getMessage());
            throw e;
        }
        byWorker.put(worker, session);
        cpu.begin(worker, session.vgpu());
        turns.give(worker, session.view().guest().vgpu(), session.view().gpus());
    }

    /** The worker did not take it; the session waits for another one. Event loop only. */
    public void detach(Session session, Worker worker) {
        byWorker.remove(worker);
        cpu.end(worker, session.vgpu());
        turns.gone(worker);
        session.await();
    }

    /** The worker has the guest's socket or region. Event loop only. */
    public void run(Session session, Worker worker) {
        startedCount++;
        Guest guest = session.view().guest();
        LOG.infof("session %d started: vgpu=%s gpus=%s carrier=%s key=%s peer=%s program=%s host=%s pid=%d worker=%d "
            + "workerPid=%d", session.id(), guest.vgpu(), String.join(",", session.view().gpus()),
            guest.carrier().label(), guest.keyId(), guest.peer(), guest.program(), guest.host(), guest.pid(),
            worker.id(), worker.pid());
        listener.runs(session.view());
    }

    /** A vGPU has so much memory on each of its GPUs from now on; 0 for all that there is. Event loop only. */
    public void quota(String vgpu, long memoryBytes) {
        byWorker.forEach((worker, session) -> {
            if (session.view().guest().vgpu().equals(vgpu)) {
                worker.setMemoryQuota(memoryBytes, session.view().gpus().size());
            }
        });
    }

    /** A vGPU has another compute share from now on. Event loop only. */
    public void weigh(String vgpu) {
        cpu.weigh(vgpu);
    }

    private int share(String vgpu) {
        return vgpus.find(vgpu).map(view -> view.vgpu().computeShare()).orElse(Vgpu.FULL_SHARE);
    }

    /** The session never got a worker. Event loop only. */
    public void abandon(Session session) {
        if (sessions.containsKey(session.id())) {
            vgpus.leave(session.vgpu());
            sessions.remove(session.id());
            session.finish();
        }
    }

    /** A worker said something of its session. Event loop only. */
    public void handle(Worker worker, WorkerMessage message) {
        Session session = byWorker.get(worker);
        if (session == null) {
            return;
        }
        switch (message) {
            case WorkerMessage.Stats stats -> session.count(stats.totals());
            case WorkerMessage.Ended ended -> {
                session.because(ended.reason());
                session.ending();
                session.toldEnd();
                String text = "session %d ended%s: %s";
                if (ended.error()) {
                    session.failed();
                    LOG.warnf(text, session.id(), " with an error", ended.reason());
                } else {
                    LOG.infof(text, session.id(), "", ended.reason());
                }
            }
            case WorkerMessage.Lost lost -> {
                if (session.lose()) {
                    listener.lost(session.view());
                }
            }
            case WorkerMessage.OfImage image -> images.handle(worker, session.view().guest().vgpu(), image);
            case WorkerMessage.OfMemory shared -> ofMemory(worker, session, shared);
            case WorkerMessage.Ready ready -> throw new IllegalStateException("the pool keeps this one: " + ready);
            case WorkerMessage.Jailed jailed -> throw new IllegalStateException("the worker keeps this: " + jailed);
        }
    }

    private void ofMemory(Worker worker, Session session, WorkerMessage.OfMemory message) {
        String vgpu = session.view().guest().vgpu();
        switch (message) {
            case WorkerMessage.Share share ->
                worker.sendShared(share.name(), memory.share(session.id(), vgpu, share));
            case WorkerMessage.Unshare unshare -> {
                memory.unshare(session.id(), vgpu, unshare.name());
                worker.sendUnshared(unshare.name());
            }
            case WorkerMessage.Release release -> memory.release(session.id(), vgpu, release.name());
            case WorkerMessage.Find find -> memory.find(session.id(), vgpu, find.name())
                .ifPresentOrElse(worker::sendFound, () -> worker.sendNotFound(find.name()));
        }
    }

    /** A worker is gone, and with it its session. Event loop only. */
    public void onExit(Worker worker, String reason) {
        images.workerEnded(worker);
        turns.gone(worker);
        Session session = byWorker.remove(worker);
        if (session != null) {
            memory.sessionEnded(session.id(), session.vgpu()); // before its slot is cleared: what others have stays counted
        }
        ledgers.release(worker);
        if (session == null) {
            return;
        }
        cpu.end(worker, session.vgpu());
        vgpus.leave(session.vgpu()); // before it is not shown any more: who sees none finds none counted
        synchronized (this) {
            session.leaveSeat();
            retired = retired.plus(session.view().statistics().retired());
            sessions.remove(session.id());
        }
        if (!session.toldEnd()) {
            if (session.endReason().isEmpty()) {
                session.failed();
            }
            LOG.warnf("session %d ended with its worker: worker=%d: %s", session.id(), worker.id(), reason);
        }
        session.because("its worker has ended: " + reason);
        listener.over(session.view(), session.endReason(), session.hasFailed());
        session.finish();
    }

    /** Lets nobody in any more. Event loop only. */
    public void close() {
        closed = true;
    }

    /** The sessions, oldest first. */
    public List<SessionView> list() {
        return sessions.values().stream().map(Session::view).toList();
    }

    /** A session by its id. */
    public Optional<SessionView> find(long id) {
        return Optional.ofNullable(sessions.get(id)).map(Session::view);
    }

    /** Sessions that got a worker since the broker started. */
    public long startedCount() {
        return startedCount;
    }

    /** What all sessions, those that are over too, have done; {@code deviceBytes} is what is held now. */
    public synchronized WorkerStats totals() {
        WorkerStats sum = retired;
        for (Session session : sessions.values()) {
            sum = sum.plus(session.view().statistics());
        }
        return sum;
    }

    /**
     * Ends a session; its worker is killed when it does not end in time.
     *
     * @return completes with whether there was such a session, once nothing of it is left.
     */
    public CompletableFuture<Boolean> end(long id, String reason) {
        CompletableFuture<Boolean> ended = new CompletableFuture<>();
        loop.execute(() -> {
            Session session = sessions.get(id);
            if (session == null) {
                ended.complete(false);
                return;
            }
            session.over().thenRun(() -> ended.complete(true));
            session.end(reason);
        });
        return ended;
    }

    /**
     * Ends all sessions of a vGPU.
     *
     * @return completes when nothing of them is left.
     */
    public CompletableFuture<Void> endAll(String vgpu, String reason) {
        return endAll(session -> session.guest().vgpu().equals(vgpu), reason);
    }

    /**
     * Ends all sessions that a token has opened.
     *
     * @return completes when nothing of them is left.
     */
    public CompletableFuture<Void> endAllOfToken(String keyId, String reason) {
        return endAll(session -> session.guest().carrier() == Carrier.TCP && session.guest().keyId().equals(keyId),
            reason);
    }

    /**
     * Ends all sessions that have one of these GPUs and had begun by then.
     *
     * @param gpus UUIDs.
     * @return completes when nothing of them is left.
     */
    public CompletableFuture<Void> endAllOn(List<String> gpus, Instant then, String reason) {
        return endAll(session -> !session.started().isAfter(then) && !Collections.disjoint(session.gpus(), gpus),
            reason);
    }

    private CompletableFuture<Void> endAll(Predicate<SessionView> which, String reason) {
        // Looked for on the event loop: one that is being let in there now is in the list or will be refused.
        return CompletableFuture.supplyAsync(() -> list().stream().filter(which).map(s -> end(s.id(), reason))
            .toArray(CompletableFuture<?>[]::new), loop).thenCompose(CompletableFuture::allOf);
    }
}
