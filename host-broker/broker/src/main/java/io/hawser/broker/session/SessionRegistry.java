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
import io.hawser.broker.pool.LedgerSlot;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.posix.PosixException;
import io.hawser.broker.swap.Swapping;
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
 * The sessions: their admission, their work and their end. Only the event loop changes them; {@link #list}, {@link
 * #find}, {@link #totals} and {@link #end} from any thread.
 */
public final class SessionRegistry {
    private static final Logger LOG = Logger.getLogger(SessionRegistry.class);

    /** Receives events of sessions on the event loop, once each. */
    public interface Listener {
        /** A session got its worker. */
        void onStart(SessionView session);

        /** A session with a worker has ended; {@code error} is whether it failed. */
        void onEnd(SessionView session, String reason, boolean error);

        /** The session's records have begun to go by another carrier than its connection. */
        default void onCarrier(SessionView session) {}

        /** A fault has ended a session's work on its GPU with this CUresult; its guest is still connected. */
        default void onGpuLost(SessionView session, long result) {}

        /** A listener that only traces. */
        Listener NONE = new Listener() {
            @Override
            public void onStart(SessionView session) {
                LOG.tracef("session %d runs", session.id());
            }

            @Override
            public void onEnd(SessionView session, String reason, boolean error) {
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
    private final Map<Worker, Session> joining = new HashMap<>(); // workers that may get a session of another one
    private final Map<Worker, Session> left = new HashMap<>(); // workers whose session has moved to another one
    private final CpuShares<Worker> cpu;
    private final SessionTurns turns;
    private final Swapping swapping;
    private Admission admission = Admission.ALONE;
    private long nextId = 1;
    private boolean closed;
    private volatile long startedCount;
    // Guarded by this, together with the removal of sessions: a reader never sees a total shrink.
    private WorkerStats retired = WorkerStats.NONE;
    private final Usages usages = new Usages();

    /**
     * Makes an empty registry.
     *
     * @param loop the event loop that changes the registry.
     * @param maxSessions sessions at a time.
     * @param vgpus which admit guests.
     * @param images device code that the broker keeps from one session for the next.
     * @param ledgers memory that sessions hold.
     * @param turns of the sessions on their GPUs.
     * @param swapping of their memory.
     */
    public SessionRegistry(Executor loop, int maxSessions, VgpuTable vgpus, ImageStore images, Ledgers ledgers,
        SessionTurns turns, Swapping swapping) {
        this.loop = loop;
        this.maxSessions = maxSessions;
        this.vgpus = vgpus;
        this.images = images;
        this.ledgers = ledgers;
        this.turns = turns;
        this.swapping = swapping;
        memory = new SharedMemory(ledgers, SharedMemory.affordableDescriptors());
        cpu = new CpuShares<>(vgpus::computeShare, Worker::setCpuWeight);
        vgpus.addListener(this::apply);
    }

    /** Applies a change of a vGPU to its sessions. */
    private void apply(VgpuView before, VgpuView after) {
        if (after == null) {
            usages.remove(before.vgpu().name());
            return;
        }
        Vgpu vgpu = after.vgpu();
        if (before == null || before.vgpu().computeShare() != vgpu.computeShare()) {
            turns.setWeight(vgpu.name(), vgpu.computeShare());
            cpu.updateWeights(vgpu.name());
        }
        if (before != null && before.vgpu().memoryBytes() != vgpu.memoryBytes()) {
            byWorker.forEach((worker, session) -> {
                if (session.vgpu().equals(vgpu.name())) {
                    worker.setMemoryQuota(vgpu.memoryBytes(), session.view().gpus().size());
                }
            });
        }
    }

    /**
     * Makes the sessions those of a member of a pool; the call precedes the first session.
     *
     * @param firstId id of the first session; ids of different members must not meet.
     */
    public void join(Admission ofPool, long firstId) {
        admission = ofPool;
        nextId = firstId;
    }

    /** The pool's part in the admission of guests. */
    public Admission admission() {
        return admission;
    }

    /** Sets the listener; the call precedes the first session. */
    public void setListener(Listener to) {
        listener = to;
    }

    /**
     * Admits a guest. Event loop only. The caller must {@link #attach} or {@link #abandon} the session.
     *
     * @param freed called once at the end of the session.
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
        String objection = admission.objection(name);
        objection = objection == null ? vgpus.objection(name, guest.carrier()) : objection;
        objection = objection == null ? swapping.objection(name) : objection;
        if (objection != null) {
            throw new RefusedException(objection);
        }
        Vgpu vgpu = vgpus.enter(name);
        Session session = new Session(nextId++, guest, vgpu.memoryBytes(), () -> place(name),
            () -> images.digests(name), freed);
        session.allowLeave(admission != Admission.ALONE);
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
     * Refuses the newest waiting start of the vGPU that has most of them, in favour of a vGPU with fewer. Waiting
     * starts of one vGPU therefore keep no other vGPU out.
     *
     * @return whether another session fits now.
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

    /** UUIDs of the GPUs for another session; empty while the broker does not know its GPUs. */
    private List<String> place(String name) throws RefusedException {
        Optional<VgpuView> vgpu = vgpus.find(name);
        if (vgpu.isEmpty() || vgpu.get().state() == VgpuState.UNPLACED) {
            throw new RefusedException("the vGPU has no GPU: vgpu=" + name + ": "
                + vgpu.map(VgpuView::problem).orElse("it has been deleted"));
        }
        return vgpu.get().placedGpus();
    }

    /**
     * Binds a session to its worker. The call precedes {@link Worker#assign}, since the worker can serve the guest at
     * once. Event loop only.
     *
     * @throws IOException when the ledger has no slot for the worker; the worker is then unusable.
     */
    public void attach(Session session, Worker worker) throws IOException {
        try {
            session.run(worker, ledgers.take(worker, session.view().guest().vgpu()));
        } catch (IOException e) {
            worker.kill("its session got no slot of the ledger: " + e.getMessage());
            throw e;
        }
        byWorker.put(worker, session);
        cpu.begin(worker, session.vgpu());
        turns.join(worker, session.view().guest().vgpu(), session.view().gpus());
        swapping.join(worker, session.view().guest().vgpu(), session.view().gpus());
    }

    /**
     * Unbinds a session from a worker that failed to take it; the session waits for another worker. Event loop only.
     */
    public void detach(Session session, Worker worker) {
        byWorker.remove(worker);
        cpu.end(worker, session.vgpu());
        turns.leave(worker);
        swapping.leave(worker);
        session.await();
    }

    /**
     * Prepares a further worker for a session, as {@link #attach} does for its first one. The session stays with its
     * present worker until {@link #replace}. Event loop only.
     *
     * @param gpus UUIDs of the worker's GPUs.
     * @return the worker's slot of the ledger.
     * @throws IOException when the worker does not receive all; the caller must {@link #withdraw} and kill it.
     */
    public LedgerSlot prepare(Session session, Worker worker, List<String> gpus) throws IOException {
        if (session.worker() != null && session.view().gpus().equals(gpus)) {
            ledgers.allowCopy(session.worker());
        }
        LedgerSlot slot = ledgers.take(worker, session.vgpu());
        joining.put(worker, session);
        cpu.begin(worker, session.vgpu());
        turns.join(worker, session.vgpu(), gpus);
        return slot;
    }

    /** Ends the preparation of a further worker; does nothing for another worker. Event loop only. */
    public void withdraw(Worker worker) {
        Session session = joining.remove(worker);
        if (session != null) {
            if (session.worker() != null) {
                ledgers.endCopy(session.worker());
            }
            cpu.end(worker, session.vgpu());
            turns.leave(worker);
        }
    }

    /**
     * Gives a running session to the worker that {@link #prepare} has prepared. The end of the former worker then ends
     * no session; its slot of the ledger counts until its exit. Event loop only.
     */
    public void replace(Session session, Worker worker, LedgerSlot slot, List<String> gpus) {
        Worker former = session.worker();
        byWorker.remove(former);
        cpu.end(former, session.vgpu());
        turns.leave(former);
        joining.remove(worker);
        byWorker.put(worker, session);
        left.put(former, session);
        session.replace(worker, slot, gpus);
        LOG.infof("session %d has moved: vgpu=%s gpus=%s worker=%d workerPid=%d formerWorker=%d", session.id(),
            session.vgpu(), String.join(",", gpus), worker.id(), worker.pid(), former.id());
    }

    /**
     * Makes a session that may come from another broker. It counts nowhere before {@link #receive}.
     *
     * @param id at the other broker.
     * @param gpus UUIDs.
     * @param freed called once at the end of the session.
     */
    public Session expect(long id, Guest guest, List<String> gpus, Runnable freed) {
        String name = guest.vgpu();
        long memoryBytes = vgpus.find(name).map(view -> view.vgpu().memoryBytes()).orElse(0L);
        Session session = new Session(id, guest, memoryBytes, () -> gpus, () -> images.digests(name), freed);
        session.useGpus(gpus);
        session.allowLeave(true);
        return session;
    }

    /**
     * Gives a session that has come from another broker to the worker that {@link #prepare} has prepared. Event loop
     * only.
     */
    public void receive(Session session, Worker worker, LedgerSlot slot) {
        vgpus.enter(session.vgpu());
        sessions.put(session.id(), session);
        joining.remove(worker);
        byWorker.put(worker, session);
        session.run(worker, slot);
        run(session, worker);
    }

    /** The sessions of a vGPU, oldest first, also those without a worker. Event loop only. */
    public List<Session> of(String vgpu) {
        return sessions.values().stream().filter(session -> session.vgpu().equals(vgpu)).toList();
    }

    /** Notes that the worker has the guest's socket or region. Event loop only. */
    @SuppressWarnings("NonAtomicVolatileUpdate") // only the event loop writes
    public void run(Session session, Worker worker) {
        startedCount++;
        Guest guest = session.view().guest();
        usages.start(guest.vgpu());
        LOG.infof("session %d started: vgpu=%s gpus=%s carrier=%s key=%s peer=%s program=%s host=%s pid=%d worker=%d "
            + "workerPid=%d", session.id(), guest.vgpu(), String.join(",", session.view().gpus()),
            guest.carrier().label(), guest.keyId(), guest.peer(), guest.program(), guest.host(), guest.pid(),
            worker.id(), worker.pid());
        listener.onStart(session.view());
    }

    /**
     * Gives a further connection to the worker of the session that it joins. Event loop only.
     *
     * @param id the session's.
     * @param keyId of the token that the connection has proved.
     * @param nonce the guest's nonce in the session's HELLO.
     * @param descriptor the socket; the caller keeps its copy and closes it.
     * @throws RefusedException when there is no such session, or it takes no more.
     * @throws PosixException when the send fails.
     */
    public void join(long id, String keyId, byte[] nonce, int descriptor) throws RefusedException, PosixException {
        Session session = sessions.get(id);
        if (session == null) {
            throw new RefusedException("a connection must join a running session of its own process: sessionId=" + id);
        }
        session.join(keyId, nonce, descriptor);
    }

    /** Why sessions of a vGPU may not use RDMA; null when they may. */
    public String rdmaRefusal(String vgpu) {
        return vgpus.find(vgpu).filter(found -> found.vgpu().rdma()).isPresent() ? null
            : "the vGPU does not allow RDMA (hawser.vgpus." + vgpu + ".rdma)";
    }

    /** Ends a session that never got a worker. Event loop only. */
    public void abandon(Session session) {
        if (sessions.containsKey(session.id())) {
            vgpus.leave(session.vgpu());
            sessions.remove(session.id());
            session.finish();
        }
    }

    /** Handles a message of a session's worker. Event loop only. */
    public void handle(Worker worker, WorkerMessage message) {
        Session session = byWorker.get(worker);
        if (session == null) {
            handleOther(worker, message);
            return;
        }
        switch (message) {
            case WorkerMessage.Stats stats -> count(worker, session, stats.totals());
            case WorkerMessage.Ended ended -> {
                session.setEndReason(ended.reason());
                session.markEnding();
                session.markEndLogged();
                String text = "session %d ended%s: %s";
                if (ended.error()) {
                    session.markFailed();
                    LOG.warnf(text, session.id(), " with an error", ended.reason());
                } else {
                    LOG.infof(text, session.id(), "", ended.reason());
                }
            }
            case WorkerMessage.Carried carried -> useRdma(worker, session);
            case WorkerMessage.Lost lost -> {
                if (session.markLost()) {
                    listener.onGpuLost(session.view(), lost.result());
                }
            }
            case WorkerMessage.OfImage image -> images.handle(worker, session.view().guest().vgpu(), image);
            case WorkerMessage.OfMemory shared -> new MemoryRequests(memory, worker, session).handle(shared);
            case WorkerMessage.OfSwap swap -> swapping.handle(worker, swap);
            case WorkerMessage.ProcessMoved moved -> worker.kill("it sent a helper's message: pid=" + moved.pid());
            case WorkerMessage.OfMove move -> throw new IllegalStateException("a message for the moves: " + move);
            case WorkerMessage.Ready ready -> throw new IllegalStateException("a message for the pool: " + ready);
            case WorkerMessage.Jailed jailed -> throw new IllegalStateException("a message for the jail: " + jailed);
        }
    }

    /** Handles a message of a worker that has no session, or not yet. */
    private void handleOther(Worker worker, WorkerMessage message) {
        Session expected = joining.get(worker);
        Session given = left.get(worker);
        if (given != null && message instanceof WorkerMessage.Stats stats) {
            given.countFormer(worker, stats.totals());
        } else if (message instanceof WorkerMessage.Kept kept) {
            swapping.grown(worker, kept.bytes());
        } else if (expected != null && message instanceof WorkerMessage.OfImage image) {
            images.handle(worker, expected.vgpu(), image); // it loads the session's code
        }
    }

    private void useRdma(Worker worker, Session session) {
        if (session.useRdma()) {
            LOG.infof("session %d uses RDMA", session.id());
            listener.onCarrier(session.view());
        } else {
            worker.kill("it uses RDMA, which its session may not");
        }
    }

    private void count(Worker worker, Session session, WorkerStats totals) {
        WorkerStats before = session.view().statistics();
        session.count(totals);
        if (totals.calls() != before.calls() || totals.gpuTimeMs() != before.gpuTimeMs()) {
            swapping.active(worker);
        }
    }

    /** Ends the session of a worker that has exited. Event loop only. */
    public void onExit(Worker worker, String reason) {
        images.workerEnded(worker);
        withdraw(worker);
        left.remove(worker);
        turns.leave(worker);
        swapping.leave(worker);
        Session session = byWorker.remove(worker);
        if (session != null) {
            memory.sessionEnded(session.id(), session.vgpu()); // first, so that memory of other sessions stays counted
        }
        ledgers.release(worker);
        if (session == null) {
            return;
        }
        cpu.end(worker, session.vgpu());
        vgpus.leave(session.vgpu()); // first, so that a reader that finds no session finds none counted
        synchronized (this) {
            session.removeSlot();
            WorkerStats totals = session.view().statistics().retired();
            retired = retired.plus(totals);
            usages.end(session.vgpu(), totals);
            sessions.remove(session.id());
        }
        if (!session.markEndLogged()) {
            if (session.endReason().isEmpty()) {
                session.markFailed();
            }
            LOG.warnf("session %d ended with its worker: worker=%d: %s", session.id(), worker.id(), reason);
        }
        session.setEndReason("its worker has ended: " + reason);
        listener.onEnd(session.view(), session.endReason(), session.hasFailed());
        session.finish();
    }

    /** Refuses all further guests. Event loop only. */
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

    /** Totals of all sessions since the broker started; {@code deviceBytes} is the memory held now. */
    public synchronized WorkerStats totals() {
        WorkerStats sum = retired;
        for (Session session : sessions.values()) {
            sum = sum.plus(session.view().statistics());
        }
        return sum;
    }

    /** The use of a vGPU by its sessions. Any thread. */
    public synchronized VgpuUsage usage(String vgpu) {
        VgpuUsage usage = usages.of(vgpu);
        for (Session session : sessions.values()) {
            if (session.vgpu().equals(vgpu)) {
                usage = usage.plus(session.view().statistics());
            }
        }
        return usage;
    }

    /** Notes the memory that each vGPU's sessions hold now. Each second. */
    public void sampleMemory() {
        usages.sample(ledgers::usedBytes);
    }

    /** Counts what a vGPU has used at another broker, if it is here. Event loop only. */
    public void addUsage(String vgpu, VgpuUsage more) {
        vgpus.find(vgpu).ifPresent(here -> usages.add(vgpu, more));
    }

    /**
     * Ends a session, and kills its worker when that does not end in time.
     *
     * @return completes after the session's end, with whether the session existed.
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
     * @return completes after their end.
     */
    public CompletableFuture<Void> endAll(String vgpu, String reason) {
        return endAll(session -> session.guest().vgpu().equals(vgpu), reason);
    }

    /**
     * Ends all sessions that a token has opened.
     *
     * @return completes after their end.
     */
    public CompletableFuture<Void> endAllOfToken(String keyId, String reason) {
        return endAll(session -> session.guest().carrier() != Carrier.SHM && session.guest().keyId().equals(keyId),
            reason);
    }

    /**
     * Ends all sessions that had started by a time.
     *
     * @return completes after their end.
     */
    public CompletableFuture<Void> endAllStartedBy(Instant then, String reason) {
        return endAll(session -> !session.started().isAfter(then), reason);
    }

    /**
     * Ends all sessions on any of these GPUs that had started by a time.
     *
     * @param gpus UUIDs.
     * @return completes after their end.
     */
    public CompletableFuture<Void> endAllOn(List<String> gpus, Instant then, String reason) {
        return endAll(session -> !session.started().isAfter(then) && !Collections.disjoint(session.gpus(), gpus),
            reason);
    }

    private CompletableFuture<Void> endAll(Predicate<SessionView> which, String reason) {
        // The search runs on the event loop: a guest under admission there is then either listed or refused.
        return CompletableFuture.supplyAsync(() -> list().stream().filter(which).map(s -> end(s.id(), reason))
            .toArray(CompletableFuture<?>[]::new), loop).thenCompose(CompletableFuture::allOf);
    }
}
