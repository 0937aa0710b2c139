package io.hawser.broker.session;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.image.ImageStore;
import io.hawser.broker.ledger.Amount;
import io.hawser.broker.ledger.Ledgers;
import io.hawser.broker.memory.SharedMemory;
import io.hawser.broker.pool.GpuChoice;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.pool.WorkerStats;
import io.hawser.broker.turns.SessionTurns;
import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.Executor;
import org.jboss.logging.Logger;

/**
 * The sessions: who is let in, what they do, and their end. Changed on the event loop; {@link #list}, {@link #find},
 * {@link #totals} and {@link #end} from any thread.
 */
public final class SessionRegistry {
    private static final Logger LOG = Logger.getLogger(SessionRegistry.class);
    private static final String DEFAULT_VGPU = "default";

    /** A guest is not let in; the message says why and is for the guest too. */
    public static final class RefusedException extends Exception {
        private static final long serialVersionUID = 1L;

        RefusedException(String message) {
            super(message);
        }
    }

    /** A share's limits; see {@link BrokerConfig.Vgpu}. */
    public record Share(long memoryBytes, int maxSessions, GpuChoice gpus) { }

    /** The GPUs that there are. */
    public interface Inventory {
        /** In the workers' order; empty while they are not known. */
        List<WorkerMessage.Device> devices();

        /** Whether workers for a GPU do not start. */
        boolean isFailing(String uuid);
    }

    /** Told of sessions on the event loop, once each. */
    public interface Listener {
        /** A session has its worker. */
        void runs(SessionView session);

        /** A session that had a worker is over; {@code error} says whether something went wrong. */
        void over(SessionView session, String reason, boolean error);

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
    private final Map<String, Share> shares;
    private final Inventory inventory;
    private final ImageStore images;
    private final Ledgers ledgers;
    private final SharedMemory memory = new SharedMemory();
    private final ConcurrentSkipListMap<Long, Session> sessions = new ConcurrentSkipListMap<>();
    private final Map<Worker, Session> byWorker = new HashMap<>();
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
     * @param vgpus shares by name.
     * @param inventory the GPUs.
     * @param images what is kept of one session for the next.
     * @param ledgers what sessions hold.
     */
    public SessionRegistry(Executor loop, int maxSessions, Map<String, Share> vgpus, Inventory inventory,
        ImageStore images, Ledgers ledgers) {
        this.loop = loop;
        this.maxSessions = maxSessions;
        shares = Map.copyOf(vgpus);
        this.inventory = inventory;
        this.images = images;
        this.ledgers = ledgers;
    }

    /**
     * The shares by name, from settings; {@code default} is added when it is not among them.
     *
     * @throws IllegalArgumentException when the GPUs of one are no choice; says which.
     */
    public static Map<String, Share> shares(BrokerConfig config) {
        Map<String, Share> shares = new HashMap<>(Map.of(DEFAULT_VGPU, new Share(0, 0, GpuChoice.ANY)));
        config.vgpus().forEach((name, vgpu) -> {
            try {
                shares.put(name, new Share(vgpu.memoryBytes(), vgpu.maxSessions(), GpuChoice.parse(vgpu.gpus())));
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException("hawser.vgpus." + name + ".gpus: " + e.getMessage(), e);
            }
        });
        return shares;
    }

    /** Tells this listener from now on; before the first session. */
    public void listen(Listener to) {
        listener = to;
    }

    /** Whether there is such a vGPU. */
    public boolean hasVgpu(String vgpu) {
        return shares.containsKey(vgpu);
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
        Share share = shares.get(guest.vgpu());
        if (share == null) {
            throw new RefusedException("the guest's vGPU does not exist: vgpu=" + guest.vgpu());
        }
        if (sessions.size() >= maxSessions) {
            throw new RefusedException("the broker's sessions are all in use: max=" + maxSessions);
        }
        if (share.maxSessions > 0 && count(guest.vgpu()) >= share.maxSessions) {
            throw new RefusedException("the vGPU's sessions are all in use: vgpu=" + guest.vgpu() + " max="
                + share.maxSessions);
        }
        Session session = new Session(nextId++, guest, share.memoryBytes, () -> place(guest.vgpu(), share),
            () -> images.known(guest.vgpu()), freed);
        session.gpus();
        sessions.put(session.id(), session);
        return session;
    }

    /** UUIDs of the GPUs for one more session; empty while they are not known. */
    private List<String> place(String vgpu, Share share) throws RefusedException {
        List<WorkerMessage.Device> devices = inventory.devices();
        if (devices.isEmpty()) {
            return List.of();
        }
        try {
            return share.gpus.choose(devices, share.memoryBytes, device -> load(device, vgpu)).stream()
                .map(WorkerMessage.Device::uuid).toList();
        } catch (GpuChoice.NoGpuException e) {
            throw new RefusedException(e.getMessage());
        }
    }

    private GpuChoice.Load load(WorkerMessage.Device device, String vgpu) {
        int users = 0;
        for (Session session : sessions.values()) {
            if (session.gpusNow().contains(device.uuid())) {
                users++;
            }
        }
        return new GpuChoice.Load(users, reservedByOthers(device, vgpu), inventory.isFailing(device.uuid()));
    }

    /** What other vGPUs with sessions there have reserved; the sessions of one have its quota together. */
    private long reservedByOthers(WorkerMessage.Device device, String vgpu) {
        Set<String> others = new HashSet<>();
        for (Session session : sessions.values()) {
            if (session.gpusNow().contains(device.uuid())) {
                others.add(session.vgpu());
            }
        }
        others.remove(vgpu);
        return others.stream().mapToLong(name -> shares.get(name).memoryBytes).sum();
    }

    /** What a vGPU has of a GPU now. Event loop only. */
    public Amount amount(String vgpu, WorkerMessage.Device device) {
        long quotaBytes = shares.get(vgpu).memoryBytes;
        return quotaBytes > 0 ? Amount.quota(quotaBytes, device.totalBytes())
            : Amount.bestEffort(device.totalBytes(), reservedByOthers(device, vgpu));
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
        turns.give(worker, session.view().guest().vgpu(), session.view().gpus());
    }

    /** The worker did not take it; the session waits for another one. Event loop only. */
    public void detach(Session session, Worker worker) {
        byWorker.remove(worker);
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

    /** The session never got a worker. Event loop only. */
    public void abandon(Session session) {
        if (sessions.remove(session.id()) != null) {
            session.finish();
        }
    }

    /** A worker said something of its session. Event loop only. */
    public void said(Worker worker, WorkerMessage message) {
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
            case WorkerMessage.OfImage image -> images.said(worker, session.view().guest().vgpu(), image);
            case WorkerMessage.OfMemory shared -> ofMemory(worker, session, shared);
            case WorkerMessage.Ready ready -> throw new IllegalStateException("the pool keeps this one: " + ready);
            case WorkerMessage.Jailed jailed -> throw new IllegalStateException("the worker keeps this: " + jailed);
        }
    }

    private void ofMemory(Worker worker, Session session, WorkerMessage.OfMemory message) {
        String vgpu = session.view().guest().vgpu();
        switch (message) {
            case WorkerMessage.Share share ->
                worker.tellShared(share.name(), memory.share(session.id(), vgpu, share));
            case WorkerMessage.Unshare unshare -> memory.unshare(session.id(), vgpu, unshare.name());
            case WorkerMessage.Find find -> memory.find(vgpu, find.name())
                .ifPresentOrElse(worker::tellFound, () -> worker.tellNotFound(find.name()));
        }
    }

    /** A worker is gone, and with it its session. Event loop only. */
    public void gone(Worker worker, String reason) {
        images.gone(worker);
        ledgers.gone(worker);
        turns.gone(worker);
        Session session = byWorker.remove(worker);
        if (session == null) {
            return;
        }
        memory.gone(session.id(), session.view().guest().vgpu());
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

    private long count(String vgpu) {
        return sessions.values().stream().filter(s -> s.view().guest().vgpu().equals(vgpu)).count();
    }
}
