package io.hawser.broker.session;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Guest;
import io.hawser.broker.model.RefusedException;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.Traveller;
import io.hawser.broker.model.WorkerStats;
import io.hawser.broker.pool.Assignment;
import io.hawser.broker.pool.LedgerSlot;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerRequest;
import io.hawser.broker.posix.PosixException;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** A session. Only the event loop changes it; {@link #view()} from any thread. */
public final class Session implements WorkerRequest {
    private final long id;
    private Guest guest;
    private final long memoryBytes;
    private final Instant started = Instant.now();
    private final Placing placing;
    private final Supplier<List<String>> images;
    private final Runnable freed;
    private final CompletableFuture<Void> over = new CompletableFuture<>();
    private Worker worker;
    private volatile LedgerSlot slot; // of the worker; null without a worker
    private Consumer<String> cancel = reason -> {};
    private boolean isEndLogged;
    private boolean lost;
    private boolean failed;
    private String endReason = "";
    private Assignment.Offer offer; // of RDMA; null without one
    private boolean overTls;
    private boolean mayLeave; // for another broker
    private byte[] nonce = {}; // of the guest's HELLO; empty: no connection may join
    private int stripes;
    private GuestEnd guestEnd = this::giveSocket;
    private boolean isMoving; // to another GPU
    private Worker former; // the last worker before the present one; null for none
    private WorkerStats formerTotals = WorkerStats.NONE;
    private WorkerStats earlierTotals = WorkerStats.NONE; // of the workers before the former one
    private WorkerStats totals = WorkerStats.NONE; // of the present worker
    private volatile SessionView view;

    /** Chooses a session's GPUs. */
    @FunctionalInterface
    interface Placing {
        /** UUIDs; empty while the broker does not know its GPUs. */
        List<String> place() throws RefusedException;
    }

    Session(long id, Guest guest, long memoryBytes, Placing placing, Supplier<List<String>> images, Runnable freed) {
        this.id = id;
        this.images = images;
        this.placing = placing;
        this.guest = guest;
        this.memoryBytes = memoryBytes;
        this.freed = freed;
        await();
    }

    /** Returns the session to the state in which it waits for a worker. */
    final void await() {
        worker = null;
        slot = null;
        view = new SessionView(id, guest, 0, started, SessionState.STARTING, view == null ? List.of() : view.gpus(),
            memoryBytes, WorkerStats.NONE);
    }

    /**
     * UUIDs of the session's GPUs, chosen once the broker knows its GPUs. Event loop only.
     *
     * @return empty while the broker does not know its GPUs.
     * @throws RefusedException when no GPU fits; the message gives the reason.
     */
    @Override
    public List<String> gpus() throws RefusedException {
        if (view.gpus().isEmpty()) {
            useGpus(placing.place());
        }
        return view.gpus();
    }

    /** Sets the session's GPUs. */
    final void useGpus(List<String> chosen) {
        view = new SessionView(id, guest, view.workerPid(), started, view.state(), chosen, memoryBytes,
            view.statistics());
    }

    @Override
    public String vgpu() {
        return guest.vgpu();
    }

    /** Counts up from 1 since the broker started. */
    public long id() {
        return id;
    }

    /** The present state, with the memory that the session holds; any thread. */
    public SessionView view() {
        LedgerSlot here = slot;
        return here == null ? view : view.withDeviceBytes(here.heldBytes());
    }

    /** Removes the ledger's slot after the worker's end, so that the session counts no memory. */
    void removeSlot() {
        slot = null;
    }

    /**
     * The session's parameters for its worker.
     *
     * @param place of a guest in shared memory; null over TCP.
     */
    public Assignment assignment(Assignment.Place place) {
        return new Assignment(id, guest.vgpu(), memoryBytes, guest.peer(), guest.program(), images.get(), place, slot,
            offer, mayLeave);
    }

    /**
     * The session's parameters for a further worker, which gets no offer of RDMA.
     *
     * @param place as in {@link #assignment(Assignment.Place)}.
     * @param other the further worker's slot in the ledger.
     */
    public Assignment assignment(Assignment.Place place, LedgerSlot other) {
        return new Assignment(id, guest.vgpu(), memoryBytes, guest.peer(), guest.program(), images.get(), place, other,
            null, mayLeave);
    }

    /** Sets the guest's end; without this call it is the socket that the worker passes. */
    public void useEnd(GuestEnd end) {
        guestEnd = end;
    }

    /** The guest's end, for a further worker. Event loop only. */
    public GuestEnd guestEnd() {
        return guestEnd;
    }

    private void giveSocket(Worker other, LedgerSlot place, int socket) throws IOException {
        if (socket < 0) {
            throw new IOException("the session's worker has not passed its guest's socket: sessionId=" + id);
        }
        other.assign(assignment(null, place), socket);
    }

    /** The worker that serves the session; null while it waits for one. Event loop only. */
    public Worker worker() {
        return worker;
    }

    /** Notes that a move of the session begins, or has ended; no connection joins meanwhile. Event loop only. */
    public void setMoving(boolean now) {
        isMoving = now;
    }

    /** Replaces the worker of a running session, on other GPUs; its totals go on. */
    void replace(Worker other, LedgerSlot place, List<String> gpus) {
        earlierTotals = earlierTotals.plus(formerTotals);
        formerTotals = totals;
        totals = WorkerStats.NONE;
        former = worker;
        worker = other;
        slot = place;
        offer = null;
        view = new SessionView(id, guest, other.pid(), started, view.state(), List.copyOf(gpus), memoryBytes,
            view.statistics());
    }

    /** Counts the last totals of a worker that {@link #replace} has replaced; ignores those before the former one. */
    void countFormer(Worker other, WorkerStats last) {
        if (other == former) {
            formerTotals = formerTotals.advance(last);
            sum();
        }
    }

    /**
     * Notes that a fault has ended the session's work on its GPU.
     *
     * @return whether this was the first such report.
     */
    boolean markLost() {
        boolean isFirst = !lost;
        lost = true;
        return isFirst;
    }

    /** The first known reason of the session's end; empty before. Event loop only. */
    public String endReason() {
        return endReason;
    }

    /** Sets the reason of the end; only the first call counts. */
    void setEndReason(String reason) {
        if (endReason.isEmpty()) {
            endReason = reason;
        }
    }

    /**
     * Sets the action that cancels the session while it has no worker. The session calls it at most once, with the
     * reason; the action must abandon the session. Event loop only.
     */
    public void onCancel(Consumer<String> action) {
        cancel = action;
    }

    /**
     * Allows further connections to join.
     *
     * @param given the guest's nonce in HELLO, which only the guest's process knows.
     * @param isTls whether the guest has come over TLS.
     */
    public void useNonce(byte[] given, boolean isTls) {
        nonce = given.clone();
        overTls = isTls;
    }

    /** Lets the session follow its vGPU to another broker. The call precedes that of its worker. */
    void allowLeave(boolean allowed) {
        mayLeave = allowed;
    }

    /** Whether the guest has come over TLS. Event loop only. */
    public boolean isOverTls() {
        return overTls;
    }

    /** The session as another broker must know it. Event loop only. */
    public Traveller traveller() {
        return new Traveller(id, guest.keyId(), guest.peer(), guest.pid(), guest.program(), guest.host(),
            HexFormat.of().formatHex(nonce));
    }

    /**
     * Notes the guest's offer of RDMA, which its worker answers.
     *
     * @param end the guest's end.
     * @param refusal why the session may not use it; null when it may.
     */
    public void useOffer(byte[] end, String refusal) {
        offer = new Assignment.Offer(HexFormat.of().formatHex(end), refusal);
    }

    /**
     * Notes that the session's records go by RDMA.
     *
     * @return false when that may not be.
     */
    boolean useRdma() {
        if (offer == null || offer.refusal() != null || guest.carrier() != Carrier.TCP) {
            return false;
        }
        guest = new Guest(guest.keyId(), guest.vgpu(), Carrier.RDMA, guest.peer(), guest.pid(), guest.program(),
            guest.host());
        change(view.state(), view.statistics());
        return true;
    }

    /**
     * Gives the worker a further connection of the guest.
     *
     * @param keyId of the token that the connection has proved.
     * @param given the nonce that it names.
     * @param descriptor its socket; the caller keeps its copy and closes it.
     * @throws RefusedException when it is not of this session's guest, or the session takes no more.
     * @throws PosixException when the send fails.
     */
    void join(String keyId, byte[] given, int descriptor) throws RefusedException, PosixException {
        boolean isGuest = nonce.length > 0 && MessageDigest.isEqual(nonce, given) && keyId.equals(guest.keyId());
        if (!isGuest || view.state() != SessionState.RUNNING) {
            throw new RefusedException("a connection must join a running session of its own process: sessionId=" + id);
        }
        if (isMoving) {
            throw new RefusedException("the session is being moved: sessionId=" + id);
        }
        if (stripes == RecordLayout.MAX_STRIPES) {
            throw new RefusedException("a session takes no more connections: sessionId=" + id + " max=" + stripes);
        }
        stripes++;
        worker.giveStripe(descriptor);
    }

    void end(String reason) {
        setEndReason(reason);
        markEnding();
        if (worker == null) {
            cancel.accept(reason);
        } else {
            worker.end(reason);
        }
    }

    void run(Worker taken, LedgerSlot place) {
        worker = taken;
        slot = place;
        totals = WorkerStats.NONE;
        view = new SessionView(id, guest, taken.pid(), started, SessionState.RUNNING, view.gpus(), memoryBytes,
            WorkerStats.NONE);
    }

    /** Notes that the session is ending. */
    void markEnding() {
        change(SessionState.ENDING, view.statistics());
    }

    void count(WorkerStats now) {
        totals = totals.advance(now);
        sum();
    }

    private void sum() {
        change(view.state(), view.statistics().advance(earlierTotals.plus(formerTotals).plus(totals)));
    }

    /**
     * Notes that the log has the session's end.
     *
     * @return whether the log had it before.
     */
    boolean markEndLogged() {
        boolean before = isEndLogged;
        isEndLogged = true;
        return before;
    }

    /** Notes an error of the session or its worker. */
    void markFailed() {
        failed = true;
    }

    boolean hasFailed() {
        return failed;
    }

    CompletableFuture<Void> over() {
        return over;
    }

    void finish() {
        freed.run();
        over.complete(null);
    }

    private void change(SessionState state, WorkerStats statistics) {
        view = new SessionView(id, guest, view.workerPid(), started, state, view.gpus(), memoryBytes,
            statistics);
    }
}
