package io.hawser.broker.session;

import io.hawser.broker.model.Guest;
import io.hawser.broker.model.RefusedException;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.WorkerStats;
import io.hawser.broker.pool.Assignment;
import io.hawser.broker.pool.LedgerSlot;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerRequest;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** A session. Changed on the event loop only; {@link #view()} from any thread. */
public final class Session implements WorkerRequest {
    private final long id;
    private final Guest guest;
    private final long memoryBytes;
    private final Instant started = Instant.now();
    private final Placing placing;
    private final Supplier<List<String>> images;
    private final Runnable freed;
    private final CompletableFuture<Void> over = new CompletableFuture<>();
    private Worker worker;
    private volatile LedgerSlot seat; // of its worker; null while it has none
    private Consumer<String> cancel = reason -> { };
    private boolean told;
    private boolean lost;
    private boolean failed;
    private String endReason = "";
    private volatile SessionView view;

    /** Chooses a session's GPUs. */
    @FunctionalInterface
    interface Placing {
        /** UUIDs; empty while the GPUs are not known. */
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

    /** It waits for a worker. */
    final void await() {
        worker = null;
        seat = null;
        view = new SessionView(id, guest, 0, started, SessionState.STARTING, view == null ? List.of() : view.gpus(),
            memoryBytes, WorkerStats.NONE);
    }

    /**
     * UUIDs of its GPUs, which are chosen when they are first known. Event loop only.
     *
     * @return empty while the broker does not know its GPUs.
     * @throws RefusedException when there are none for it; the message says why.
     */
    @Override
    public List<String> gpus() throws RefusedException {
        if (view.gpus().isEmpty()) {
            List<String> chosen = placing.place();
            view = new SessionView(id, guest, view.workerPid(), started, view.state(), chosen, memoryBytes,
                view.statistics());
        }
        return view.gpus();
    }

    @Override
    public String vgpu() {
        return guest.vgpu();
    }

    /** Counts up from 1 since the broker started. */
    public long id() {
        return id;
    }

    /** A picture of now, with the memory that it holds; any thread. */
    public SessionView view() {
        LedgerSlot here = seat;
        return here == null ? view : view.withDeviceBytes(here.heldBytes());
    }

    /** It has no worker any more, and what that held is counted no more. */
    void leaveSeat() {
        seat = null;
    }

    /**
     * What a worker is told of it.
     *
     * @param place of a guest in shared memory; null over TCP.
     */
    public Assignment assignment(Assignment.Place place) {
        return new Assignment(id, guest.vgpu(), memoryBytes, guest.peer(), guest.program(), images.get(), place, seat);
    }

    /** A fault has ended its work; whether that is news. */
    boolean lose() {
        boolean isNews = !lost;
        lost = true;
        return isNews;
    }

    /** Why it ends or has ended, as whoever knew first has said; empty before. Event loop only. */
    public String endReason() {
        return endReason;
    }

    /** Somebody knows why it ends; only the first counts. */
    void because(String reason) {
        if (endReason.isEmpty()) {
            endReason = reason;
        }
    }

    /**
     * What ends it while it has no worker: called at most once, with the reason; must abandon the session. Event loop
     * only.
     */
    public void onCancel(Consumer<String> action) {
        cancel = action;
    }

    void end(String reason) {
        because(reason);
        ending();
        if (worker == null) {
            cancel.accept(reason);
        } else {
            worker.end(reason);
        }
    }

    void run(Worker taken, LedgerSlot place) {
        worker = taken;
        seat = place;
        view = new SessionView(id, guest, taken.pid(), started, SessionState.RUNNING, view.gpus(), memoryBytes,
            WorkerStats.NONE);
    }

    /** It says that it ends, or was told to. */
    void ending() {
        change(SessionState.ENDING, view.statistics());
    }

    void count(WorkerStats totals) {
        change(view.state(), view.statistics().advance(totals));
    }

    /** Whether its end has been logged; true from the second call on. */
    boolean toldEnd() {
        boolean before = told;
        told = true;
        return before;
    }

    /** Something went wrong in it, or with its worker. */
    void failed() {
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
