package io.hawser.worker;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.Description;
import io.hawser.shm.control.BrokerMessageType;
import io.hawser.shm.ledger.Ledger;
import io.hawser.shm.ledger.LedgerLayout;
import io.hawser.shm.os.DescriptorSocket;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.os.SharedMemory;
import io.hawser.shm.rdma.GpuDirect;
import io.hawser.shm.rdma.RdmaOptions;
import io.hawser.shm.turns.TurnPage;
import io.hawser.worker.calls.Calls;
import io.hawser.worker.channel.BulkArea;
import io.hawser.worker.channel.Link;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.channel.shm.ShmLink;
import io.hawser.worker.channel.tcp.Stripes;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.ControlCodec;
import io.hawser.worker.control.ControlSocket;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.jail.Jail;
import io.hawser.worker.session.CreditWindow;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.Leftovers;
import io.hawser.worker.session.LogText;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.SessionOptions;
import io.hawser.worker.session.SharedImages;
import io.hawser.worker.session.SharedNames;
import io.hawser.worker.session.TurnSeat;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;

/** The life of one worker: ready, one session, the end. Every step of the end has a time limit. */
public final class Worker {
    private static final Logger LOG = System.getLogger(Worker.class.getName());

    private static final long STATS_INTERVAL_MS = 500;
    private static final int UNCHANGED_STATS_EVERY = 8; // stats are sent unchanged after so many intervals
    private static final long NO_LIMIT = Long.MAX_VALUE / 2; // device memory of a rehearsal, in bytes
    private static final long TEARDOWN_LIMIT_MS = 1000;
    private static final long GOODBYE_LIMIT_MS = 1500;

    private final ControlSocket control; // null in a rehearsal: messages are dropped
    private final GpuBackend backend;
    private final ControlCodec codec = new ControlCodec();
    private final CountDownLatch over = new CountDownLatch(1);
    private final AtomicReference<WorkerMessage.Ended> end = new AtomicReference<>();
    private List<String> devices = List.of(); // UUIDs; set before the control thread starts
    private volatile Session session;
    private volatile Link link;
    private volatile SharedRegion region;
    private volatile EventFd doorbell;
    private volatile TurnSeat seat;
    private volatile DescriptorSocket descriptors; // to the broker
    private int turnPage = -1; // control thread: descriptor between the Turns and TurnBell messages
    private SharedImages images = SharedImages.NONE; // this and the next two fields: control thread only
    private SharedNames names = SharedNames.NONE;
    private MemoryQuota quota;
    private final Swapping swapping;
    private final Moves moves;
    private final Messages messages;
    private final Stripes stripes = new Stripes();
    private final Fabric fabric = new Fabric();
    private boolean isStuck; // thread of run() only
    private WorkerMessage.Stats lastStats; // this and the next field: session thread only
    private int unchangedStats;
    private WorkerMessage.Ready ready; // thread of run() only

    /**
     * Prepares a worker.
     *
     * @param control socket to the broker; the caller closes it.
     * @param backend the GPU; closed by {@link #run}.
     */
    public Worker(ControlSocket control, GpuBackend backend) {
        this.control = control;
        this.backend = backend;
        swapping = new Swapping(backend, this::send);
        moves = new Moves(backend, this::send);
        messages = new Messages();
    }

    /**
     * Creates a worker that serves a simulated guest and has no broker, so that all code between a guest and its
     * replies has run once. The caller closes the backend.
     */
    static Worker rehearsal(GpuBackend backend) throws IOException {
        Worker worker = new Worker(null, backend);
        // The messages that a broker sends before a session.
        worker.devices = Collections.nCopies(backend.deviceCount(), "any");
        int ledger = Descriptors.memory("hawser-rehearsal", LedgerLayout.bytes(1));
        new Ledger(SharedMemory.mapWhileReachable(ledger, LedgerLayout.bytes(1)), 1).limit(0, NO_LIMIT, NO_LIMIT);
        worker.receive(worker.codec.encode(new BrokerMessage.Ledger(1, 0, List.of("any"), List.of())), ledger);
        DescriptorSocket.Pair descriptors = DescriptorSocket.pair();
        worker.receive(worker.codec.encode(BrokerMessageType.DESCRIPTORS), descriptors.sender());
        descriptors.receiver().close();
        worker.receive(worker.codec.encode(BrokerMessageType.TURNS), TurnPage.create());
        worker.receive(worker.codec.encode(BrokerMessageType.TURN_BELL), EventFd.create().fd());
        return worker;
    }

    /**
     * Sends {@code ready} and serves a session. Blocks until the session has ended or the broker has closed the control
     * socket.
     *
     * @return false after a failure that the guest cannot have caused.
     * @throws IOException if the ready message cannot be sent.
     */
    public boolean run() throws IOException {
        if (ready == null) {
            ready = DeviceList.ready(backend, "none: off");
            fabric.findGpus(ready.devices());
        }
        devices = ready.devices().stream().map(WorkerMessage.Device::uuid).toList();
        // Logged before the ready message: the first log line costs milliseconds, and afterwards a guest would wait for
        // it.
        LOG.log(Level.INFO, "ready: backend={0} devices={1}", ready.backend(), ready.devices().size());
        control.write(codec.encode(ready));
        Thread reader = new Thread(this::readControl, "control-reader");
        reader.setDaemon(true);
        reader.start();
        boolean interrupted = false;
        try {
            over.await();
        } catch (InterruptedException e) {
            interrupted = true;
        }
        boolean clean = tearDown();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return clean;
    }

    private void readControl() {
        try {
            for (ControlSocket.Frame frame = control.read(); frame != null; frame = control.read()) {
                receive(frame.json(), frame.descriptor());
            }
            endSession("the broker has closed the control socket", false);
        } catch (IOException | RuntimeException e) {
            LOG.log(Level.ERROR, "control socket: " + e.getMessage(), e);
            endSession("control socket: " + e.getMessage(), true);
        }
    }

    /**
     * Acts on a message of the broker. Control thread.
     *
     * @param json the message; one of an unknown type has no effect.
     * @param descriptor the message's descriptor, this worker's from now on; -1 for none.
     */
    void receive(byte[] json, int descriptor) throws IOException {
        BrokerMessage message = codec.decode(json);
        if (message != null) {
            message.accept(messages, descriptor);
        }
    }

    private void adopt(BrokerMessage.Assign assign, int descriptor) throws IOException {
        if (session != null || descriptor < 0) {
            throw new IOException("a worker must get only one session, with a descriptor: sessionId="
                + assign.sessionId() + " descriptor=" + descriptor + " busy=" + (session != null));
        }
        link = assign.place() == null ? fabric.link(assign, descriptor) : openRegion(assign.place(), descriptor);
        if (quota == null) {
            quota = MemoryQuota.alone(backend.deviceCount(), assign.memoryBytes());
        }
        SessionOptions options = new SessionOptions(assign.sessionId(), assign.vgpu(), quota, assign.peer(),
            assign.program(), CreditWindow.DEFAULT_BYTES, fabric.answer(), assign.mayLeave());
        session = new Session(options, backend, link, Calls.perThreadStreams(backend), this::sessionEnded);
        images = new SharedImages(assign.images(), this::send, session.completions()::add);
        session.useImages(images);
        names = new SharedNames(this::send, descriptors == null ? null : this::pass, session.completions()::add,
            link::schedule);
        session.useNames(names);
        swapping.attach(session);
        stripes.use(() -> session.graphCallbacks().allocateForSession(Stripes.BYTES),
            reason -> link.execute(() -> session.refuse(reason)), reason -> endSession(reason, false));
        moves.attach(session, descriptors == null ? null : this::pass, stripes);
        if (seat != null) {
            session.useTurns(seat);
        }
        if (control != null) { // a rehearsal leaves no thread behind: see confine()
            link.watchGuest(
                () -> sessionEnded("the guest has gone while a call of the driver blocks its session", true));
        }
        link.execute(this::startSession);
        link.schedule(this::sendStats, STATS_INTERVAL_MS);
    }

    private Link openRegion(SharedRegion.Place place, int descriptor) throws IOException {
        fabric.close();
        try {
            region = SharedRegion.map(descriptor, place);
        } finally {
            Descriptors.close(descriptor); // the mapping stays valid
        }
        return moves.arrival() == null ? new ShmLink(region, doorbell)
            : new ShmLink(region, doorbell, moves.arrival().position());
    }

    /** Frees the resources of a rehearsed session; waits at most {@code limitMs} for each step. */
    void endRehearsal(long limitMs) throws InterruptedException, ExecutionException, TimeoutException {
        try {
            link.awaitClosed(limitMs);
            CompletableFuture<Void> freed = new CompletableFuture<>();
            link.execute(() -> {
                send(session.stats());
                session.close();
                session.freeStaging(() -> freed.complete(null));
            });
            freed.get(limitMs, TimeUnit.MILLISECONDS);
        } finally {
            link.shutdown(limitMs);
            seat.close();
            descriptors.close();
            if (region != null) {
                region.close();
            }
        }
    }

    private void startSession() {
        if (region != null && control != null) {
            int attached = backend.attachRegion(region.memory());
            if (attached != 0) {
                session.end("the GPU cannot use the region: CUresult=" + attached, true, attached);
                return;
            }
        }
        BulkArea bulk = region;
        if (fabric.mirror() != null) {
            bulk = fabric.mirror();
            send(new WorkerMessage.Carried("rdma"));
            session.objects().arena().serve(link.guestMemory(), fabric.gpus());
        }
        session.start(new Calls(session, region, bulk, stripes), Description.HASH);
    }

    private void takeLedger(BrokerMessage.Ledger message, int descriptor) throws IOException {
        if (session != null || quota != null || descriptor < 0) {
            throw new IOException("a ledger must come once, with its descriptor, before its session: descriptor="
                + descriptor);
        }
        quota = LedgerQuota.open(message, descriptor, devices);
    }

    private void takeDoorbell(int descriptor) throws IOException {
        if (session != null || doorbell != null || descriptor < 0) {
            throw new IOException("a doorbell must come once, with its descriptor, before its session: descriptor="
                + descriptor);
        }
        doorbell = EventFd.of(descriptor);
    }

    private void takeTurns(boolean isPage, int descriptor) throws IOException {
        if (session != null || seat != null || descriptor < 0 || isPage != turnPage < 0) {
            throw new IOException("turns must come once before their session, the page and then its bell: page="
                + isPage + " descriptor=" + descriptor);
        }
        if (isPage) {
            turnPage = descriptor;
        } else {
            seat = TurnSeat.of(turnPage, descriptor);
        }
    }

    /** Serves warm-up sessions, so that the first real one starts at full speed. Call it before {@link #run}. */
    public void warmUp() {
        WarmUp.run(backend);
    }

    /** Opens the device for sessions over RDMA. Call it before {@link #confine}. */
    public void openFabric(RdmaOptions options, GpuDirect gpuDirect) {
        fabric.open(options, gpuDirect);
    }

    /**
     * Enters the jail. Call it after {@link #warmUp} and before {@link #run}, while no other thread of this worker
     * runs.
     *
     * @throws IllegalStateException if the jail does not fulfil the options.
     * @throws IOException if the broker does not watch the jail.
     */
    public void confine(Jail.Options options) throws IOException {
        if (options.mode() == Jail.Mode.OFF) {
            return;
        }
        ready = DeviceList.ready(backend, "");
        fabric.findGpus(ready.devices());
        backend.loadAhead();
        swapping.prepareForJail();
        Preload.run(codec, ready);
        Jail.Report report = Jail.enter(options, fabric.descriptor());
        if (report.listener() >= 0) {
            // Load no class between the jail and this message. The watcher would have to answer the load, but it starts
            // to watch only after this message.
            control.write(codec.encode(new WorkerMessage.Jailed(report.listener(), backend.name())));
            ControlSocket.Frame answer = control.read();
            if (answer == null || !(codec.decode(answer.json()) instanceof BrokerMessage.Watching)) {
                throw new IOException("the broker must watch the jail");
            }
            Jail.closeListener(report.listener());
        }
        ready = new WorkerMessage.Ready(ready.pid(), ready.backend(), report.text(), ready.devices());
    }

    private void endSession(String reason, boolean error) {
        if (end.get() != null) {
            return;
        }
        if (session == null) {
            sessionEnded(reason, error);
        } else {
            link.execute(() -> session.end(reason, error, CudaResult.DEVICE_UNAVAILABLE));
        }
    }

    private void sessionEnded(String reason, boolean error) {
        if (end.compareAndSet(null, new WorkerMessage.Ended(LogText.clean(reason), error))) {
            over.countDown();
        }
    }

    /** Session thread. A broker that does not read blocks this loop only when the socket's buffer is full of stats. */
    private void sendStats() {
        if (!session.residence().isFrozen()) {
            session.objects().quota().refresh();
        }
        WorkerMessage.Stats stats = stats();
        unchangedStats = stats.equals(lastStats) ? unchangedStats + 1 : 0;
        lastStats = stats;
        // Every message costs the broker time, so that many idle sessions would keep it busy with unchanged stats.
        if (unchangedStats % UNCHANGED_STATS_EVERY == 0) {
            send(stats);
        }
        link.schedule(this::sendStats, STATS_INTERVAL_MS);
    }

    private WorkerMessage.Stats stats() {
        return session.stats().withTraffic(stripes.receivedBytes(), stripes.sentBytes());
    }

    private void send(WorkerMessage message) {
        byte[] json = codec.encode(message);
        try {
            if (control != null) {
                control.write(json);
            }
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "the broker has gone: {0}", e.getMessage());
            endSession("the broker has gone", false);
        }
    }

    /** Passes a descriptor to the broker, which receives it with the next message that announces one. */
    private void pass(int descriptor) {
        try {
            descriptors.send(descriptor);
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "the broker has gone: {0}", e.getMessage());
            endSession("the broker has gone", false);
        }
    }

    private boolean tearDown() {
        boolean clean = !end.get().error();
        Session ended = session;
        boolean isFrozen = ended != null && ended.residence().isFrozen();
        if (ended != null && !isFrozen) {
            clean &= freeSession(ended);
        }
        send(end.get());
        if (isFrozen) { // each call of the driver would wait: the exit of the process frees all
            link.awaitClosed(GOODBYE_LIMIT_MS);
            return clean;
        }
        if (isStuck) {
            // The session thread waits for a kernel that may never end, so the steps below would wait for it too.
            return false;
        }
        if (ended != null) {
            link.awaitClosed(GOODBYE_LIMIT_MS);
            stripes.shutdown();
            if (!stripes.close(TEARDOWN_LIMIT_MS)) {
                LOG.log(Level.WARNING, "a stripe is still in use: the exit of the process ends it");
                return false;
            }
            awaitWork(ended);
            link.shutdown(TEARDOWN_LIMIT_MS);
        }
        Thread closer = new Thread(backend::close, "backend-closer");
        closer.setDaemon(true);
        closer.start();
        try {
            closer.join(TEARDOWN_LIMIT_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends next
        }
        if (closer.isAlive()) {
            LOG.log(Level.WARNING, "the GPU could not be closed within {0} ms: the exit of the process closes it",
                TEARDOWN_LIMIT_MS);
            return false; // work that still runs may use the region, so only the end of the process unmaps it
        }
        if (region != null) {
            region.close();
        }
        fabric.close();
        swapping.close();
        moves.close();
        if (doorbell != null) {
            doorbell.close();
        }
        if (seat != null) {
            seat.close();
        }
        if (descriptors != null) {
            descriptors.close();
        }
        return clean;
    }

    /** Waits, up to a limit, until no work of the session uses memory of the worker. */
    private void awaitWork(Session ended) {
        CompletableFuture<Void> allBack = new CompletableFuture<>();
        link.execute(() -> ended.freeStaging(() -> allBack.complete(null)));
        try {
            allBack.get(TEARDOWN_LIMIT_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends next
        } catch (TimeoutException e) {
            LOG.log(Level.DEBUG, "work of the session still runs: the exit of the process ends it");
        } catch (ExecutionException e) {
            LOG.log(Level.ERROR, "the session''s memory could not be freed", e.getCause());
        }
    }

    private boolean freeSession(Session ended) {
        try {
            CompletableFuture.runAsync(() -> {
                send(stats()); // first: on a busy machine the rest may take longer than the limit
                Leftovers left = ended.close();
                LOG.log(Level.DEBUG, "left after the session: {0}", left);
            }, link).get(TEARDOWN_LIMIT_MS, TimeUnit.MILLISECONDS);
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends next
        } catch (TimeoutException e) {
            isStuck = true;
            LOG.log(Level.WARNING, "the session could not be freed within {0} ms: the exit of the process frees it",
                TEARDOWN_LIMIT_MS);
        } catch (ExecutionException e) {
            LOG.log(Level.ERROR, "the session could not be freed", e.getCause());
        }
        return false;
    }

    /** Acts on the broker's messages. Control thread. */
    private final class Messages extends RoleMessages {
        Messages() {
            super(swapping, moves);
        }

        @Override
        public void handle(BrokerMessage.Assign assign, int descriptor) throws IOException {
            adopt(assign, descriptor);
        }

        @Override
        public void handle(BrokerMessage.Ledger ledger, int descriptor) throws IOException {
            takeLedger(ledger, descriptor);
        }

        @Override
        public void handle(BrokerMessage.Turns turns, int descriptor) throws IOException {
            takeTurns(true, descriptor);
        }

        @Override
        public void handle(BrokerMessage.TurnBell bell, int descriptor) throws IOException {
            takeTurns(false, descriptor);
        }

        @Override
        public void handle(BrokerMessage.Doorbell bell, int descriptor) throws IOException {
            takeDoorbell(descriptor);
        }

        @Override
        public void handle(BrokerMessage.DescriptorSocket socket, int descriptor) throws IOException {
            if (session != null || descriptors != null || descriptor < 0) {
                throw new IOException("a socket for descriptors must come once, before its session: descriptor="
                    + descriptor);
            }
            descriptors = DescriptorSocket.of(descriptor);
        }

        @Override
        public void handle(BrokerMessage.Watching watching, int descriptor) {
            LOG.log(Level.DEBUG, "the broker watches the jail already");
        }

        @Override
        public void handle(BrokerMessage.Store store, int descriptor) throws IOException {
            images(descriptor).store(store.sha256(), descriptor, session.objects().blobs());
        }

        @Override
        public void handle(BrokerMessage.Image image, int descriptor) throws IOException {
            images(descriptor).arrived(image.sha256(), image.bytes(), descriptor);
        }

        /** The images, for a message that must carry a descriptor of memory. */
        private SharedImages images(int descriptor) throws IOException {
            if (session == null || descriptor < 0) {
                throw new IOException("an image message must follow its session and carry a descriptor: descriptor="
                    + descriptor);
            }
            return images;
        }

        @Override
        public void handle(BrokerMessage.NoImage none, int descriptor) throws IOException {
            images.missing(none.sha256());
        }

        @Override
        public void handle(BrokerMessage.Shared shared, int descriptor) {
            names.shared(shared.name(), shared.kept());
        }

        @Override
        public void handle(BrokerMessage.Unshared unshared, int descriptor) {
            names.unshared(unshared.name());
        }

        @Override
        public void handle(BrokerMessage.Found found, int descriptor) throws IOException {
            names.found(found, descriptor);
        }

        @Override
        public void handle(BrokerMessage.NotFound none, int descriptor) {
            names.notFound(none.name());
        }

        @Override
        public void handle(BrokerMessage.Stripe stripe, int descriptor) throws IOException {
            if (session == null || region != null || descriptor < 0) {
                throw new IOException("a stripe must follow its session over TCP and carry a socket: descriptor="
                    + descriptor);
            }
            link.execute(() -> session.residence().whenThawed(() -> session.moving().join(descriptor)));
        }

        @Override
        public void handle(BrokerMessage.End end, int descriptor) {
            endSession(end.reason(), false);
        }
    }
}
