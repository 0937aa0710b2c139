package io.hawser.worker.session;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.os.Descriptors;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.swap.KeeperLink;
import io.hawser.worker.swap.SlabKeeper;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * The place of a session's slabs: the GPU, or the keeper of the GPU. The broker orders them out and back in. The guest
 * notices only that its requests wait.
 *
 * <p>On the way out the session serves no further record, except questions about the state of work. When all work has
 * ended, the keeper copies one slab after the other, and each slab's memory is freed. If work goes on for longer than
 * {@value #LIMIT_MS} ms, or memory cannot move, the session goes on as before, and the broker gets the reason.
 *
 * <p>The broker limits how much moves and raises the limit, so that two sessions can exchange their places.
 *
 * <p>While the slabs are out, the first record that waits makes the session ask the broker. With the broker's order
 * each slab gets new memory at its addresses, and then its bytes.
 *
 * <p>A session that is out can be frozen, so that a helper can move the rest of the process's GPU state. It then makes
 * no call of the driver, since each would wait, and holds questions about the state of work as well. Session thread
 * only, except {@link #isFrozen}.
 */
public final class Residence {
    /** How long running work may delay the way out. */
    private static final long LIMIT_MS = 1000;
    private static final long INTERVAL_MS = 1;
    /**
     * Longest part of a slab that moves at a time. A copy takes about 10 ms on a PCIe 5 link. An exchange needs room
     * for two pieces more than both sessions have. With shorter pieces, fewer blocks could be exported.
     */
    private static final long PIECE_BYTES = 512L << 20;
    /** The broker gets a report of each so many bytes, about 50 a second. */
    private static final long REPORT_BYTES = 1L << 30;

    private enum State {
        /** The slabs are on the GPU. */
        IN,
        /** Waits for the end of work. */
        DRAINING,
        /** The keeper copies slabs to its memory. */
        LEAVING,
        /** The keeper has the slabs. */
        OUT,
        /** The keeper copies slabs to the GPU. */
        RETURNING
    }

    private final Session session;
    private final RecordOrder order;
    private final MemoryWaits memoryWaits;
    private final Deque<Long> pieces = new ArrayDeque<>(); // that have yet to move
    private final Set<Long> moving = new HashSet<>(); // that the keeper has been asked to copy
    private State state = State.IN;
    private KeeperLink keeper; // null when there is none any more: the memory stays on the GPU
    private Consumer<WorkerMessage> broker;
    private boolean hasAsked; // for the way in
    private volatile boolean isFrozen; // the worker's thread reads it at the session's end
    private final List<Runnable> frozenSteps = new ArrayList<>(); // that need the driver
    private long sinceNs; // begin of the wait for running work
    private long copiesSinceNs; // of the copies that run
    private long copiesNs; // of the present move, without those that run
    private long movedBytes;
    private long limitBytes; // of the present move
    private long reportedBytes;
    private String failure = ""; // of the present move; empty while there is none
    private String problem = ""; // why slabs come back that were on their way out; empty otherwise

    Residence(Session session, RecordOrder order, MemoryWaits memoryWaits) {
        this.session = session;
        this.order = order;
        this.memoryWaits = memoryWaits;
    }

    /**
     * Lets the memory move. Call it before the session starts.
     *
     * @param link the way to the keeper; the caller closes it.
     * @param isOut whether the session begins without room on the GPU.
     * @param to sends messages to the broker.
     */
    public void use(KeeperLink link, boolean isOut, Consumer<WorkerMessage> to) {
        keeper = link;
        broker = to;
        session.objects().arena().divide(PIECE_BYTES);
        if (isOut) {
            state = State.OUT;
            order.pause(this::ask);
        }
        link.start(new KeeperLink.Listener() {
            @Override
            public void done(long piece, int result) {
                session.completions().add(() -> moved(piece, result));
            }

            @Override
            public void gone() {
                session.completions().add(Residence.this::lost);
            }
        });
    }

    /**
     * The broker wants the slabs out. It gets {@link WorkerMessage.SwappedOut}.
     *
     * @param bytes limit of what may move; a further call during the move raises it.
     */
    public void leave(long bytes) {
        if (state == State.DRAINING || state == State.LEAVING) {
            limitBytes = Math.max(limitBytes, bytes);
            next();
            return;
        } else if (state != State.IN) {
            return;
        }
        String reason = stays();
        if (!reason.isEmpty()) {
            broker.accept(new WorkerMessage.SwappedOut(0, 0, reason));
            return;
        }
        state = State.DRAINING;
        limitBytes = bytes;
        sinceNs = System.nanoTime();
        hasAsked = false;
        order.pause(this::ask);
        session.serveLater(this::giveUp, LIMIT_MS);
        drain();
    }

    /** Why the memory cannot move; empty if it can. */
    private String stays() {
        if (keeper == null) {
            return "the keeper of the GPU has ended";
        }
        HandleTable handles = session.objects().handles();
        if (session.objects().arena().stays()) {
            return "other processes may use its memory";
        } else if (!handles.all(HandleKind.MEM_ALLOCATION).isEmpty()) {
            return "it maps memory itself";
        } else if (!handles.all(HandleKind.IPC_MEMORY).isEmpty()) {
            return "it uses memory of another process";
        } else if (!handles.all(HandleKind.ARRAY).isEmpty() || !handles.all(HandleKind.MIPMAPPED_ARRAY).isEmpty()) {
            return "it has arrays";
        }
        return session.objects().quota().hasKept() ? "its pools or graphs hold memory" : "";
    }

    /** Waits until all work has ended that the session has issued. */
    private void drain() {
        if (!isDraining()) {
            return;
        }
        WorkEnd.await(session, this::drained);
    }

    private boolean isDraining() {
        return state == State.DRAINING && !session.isOver();
    }

    /** Work or calls have not ended within the limit. */
    private void giveUp() {
        if (isDraining() && System.nanoTime() - sinceNs >= TimeUnit.MILLISECONDS.toNanos(LIMIT_MS)) {
            stay("its work lasts for longer than " + LIMIT_MS + " ms");
        }
    }

    /** The end of the work that a context had may have led to more, such as the next piece of a copy. */
    private void drained() {
        if (!isDraining()) {
            return;
        }
        if (session.isQuiet() && memoryWaits.isEmpty()) {
            session.turns().withdraw();
            state = State.LEAVING;
            broker.accept(new WorkerMessage.SwapMoved(0));
            begin(session.objects().arena().pieces(false));
        } else {
            session.serveLater(this::drain, INTERVAL_MS);
        }
    }

    private void stay(String reason) {
        state = State.IN;
        broker.accept(new WorkerMessage.SwappedOut(0, 0, reason));
        order.resume();
    }

    private void begin(List<Long> addresses) {
        movedBytes = 0;
        reportedBytes = 0;
        copiesNs = 0;
        failure = "";
        pieces.addAll(addresses);
        next();
    }

    /** Moves the next pieces, as many as the keeper handles at a time and as the broker allows, or ends the move. */
    private void next() {
        while (isMoving() && hasNext() && moving.size() < SlabKeeper.MAX_UNANSWERED) {
            move(pieces.remove());
        }
        if (!isMoving()) {
            return;
        }
        boolean isHalted = moving.isEmpty() && !pieces.isEmpty(); // by the limit
        if (problem.isEmpty() && movedBytes - reportedBytes >= (isHalted ? 1 : REPORT_BYTES)) {
            reportedBytes = movedBytes;
            broker.accept(new WorkerMessage.SwapMoved(movedBytes));
        }
        if (moving.isEmpty() && pieces.isEmpty()) {
            if (failure.isEmpty()) {
                end();
            } else {
                fail();
            }
        }
    }

    private boolean hasNext() {
        DeviceArena arena = session.objects().arena();
        long movingBytes = moving.stream().mapToLong(arena::pieceBytes).sum();
        return !pieces.isEmpty() && arena.pieceBytes(pieces.peek()) <= limitBytes - movedBytes - movingBytes;
    }

    private boolean isMoving() {
        return !session.isOver() && (state == State.LEAVING || state == State.RETURNING);
    }

    private void move(long address) {
        DeviceArena arena = session.objects().arena();
        try (Arena scratch = Arena.ofConfined()) {
            int result = state == State.RETURNING ? arena.bringBack(address) : 0;
            if (result != 0) {
                stop("no memory for a slab: CUresult=" + result);
                return;
            }
            MemorySegment out = scratch.allocate(Integer.BYTES, Integer.BYTES);
            result = arena.share(address, out);
            if (result != 0) {
                refused(address, result);
                return;
            }
            if (moving.isEmpty()) {
                copiesSinceNs = System.nanoTime();
            }
            moving.add(address);
            send(address, arena.pieceBytes(address), out.get(ValueLayout.JAVA_INT, 0));
        }
    }

    private void send(long address, long bytes, int descriptor) {
        try {
            if (state == State.RETURNING) {
                keeper.load(address, bytes, descriptor);
            } else {
                keeper.store(address, bytes, descriptor);
            }
        } catch (IOException e) {
            lost();
        } finally {
            Descriptors.close(descriptor);
        }
    }

    /** The keeper has answered for a piece. */
    private void moved(long address, int result) {
        if (session.isOver() || !moving.remove(address)) {
            return;
        }
        if (moving.isEmpty()) {
            copiesNs += System.nanoTime() - copiesSinceNs;
        }
        if (result != 0) {
            refused(address, result);
        } else {
            DeviceArena arena = session.objects().arena();
            movedBytes += arena.pieceBytes(address);
            int freed = state == State.LEAVING ? arena.takeAway(address) : 0;
            if (freed != 0) {
                session.end("its memory cannot be swapped out: CUresult=" + freed, true, CudaResult.UNKNOWN);
                return;
            }
        }
        next();
    }

    private void refused(long address, int result) {
        if (state == State.RETURNING) {
            session.objects().arena().takeAway(address); // the keeper still has the bytes
        }
        stop("a slab cannot be copied: CUresult=" + result);
    }

    /** Moves no further piece; the move fails when the keeper has answered for the others. */
    private void stop(String reason) {
        failure = reason;
        pieces.clear();
    }

    private void fail() {
        String reason = failure;
        if (state == State.LEAVING) {
            problem = reason; // what has left comes back
            state = State.RETURNING;
            limitBytes = Long.MAX_VALUE;
            begin(session.objects().arena().pieces(true));
        } else if (problem.isEmpty()) {
            state = State.OUT; // the broker orders the rest in again
            broker.accept(new WorkerMessage.SwappedIn(movedBytes, copiesMs(), reason));
        } else {
            session.end("its memory can be swapped neither out nor in: " + problem + "; " + reason, true,
                CudaResult.UNKNOWN);
        }
    }

    private void end() {
        if (state == State.LEAVING) {
            state = State.OUT;
            broker.accept(new WorkerMessage.SwappedOut(movedBytes, copiesMs(), ""));
            if (order.isHolding()) {
                ask();
            }
            return;
        }
        state = State.IN;
        broker.accept(problem.isEmpty() ? new WorkerMessage.SwappedIn(movedBytes, copiesMs(), "")
            : new WorkerMessage.SwappedOut(0, copiesMs(), problem));
        problem = "";
        order.resume();
    }

    private long copiesMs() {
        return TimeUnit.NANOSECONDS.toMillis(copiesNs);
    }

    /** A record waits. */
    private void ask() {
        if (state == State.OUT && !hasAsked) {
            hasAsked = true;
            broker.accept(new WorkerMessage.SwapWanted());
        }
    }

    /**
     * The GPU has room for slabs. The broker gets {@link WorkerMessage.SwappedIn} when all are back.
     *
     * @param bytes limit of what may move; a further call during the move raises it.
     */
    public void enter(long bytes) {
        if (state == State.RETURNING) {
            limitBytes = Math.max(limitBytes, bytes);
            next();
        } else if (state == State.OUT) {
            thaw();
            state = State.RETURNING;
            limitBytes = bytes;
            hasAsked = false;
            begin(session.objects().arena().pieces(true));
        }
    }

    /** The broker wants to move the whole process. It gets {@link WorkerMessage.SwapFrozen}. */
    public void freeze() {
        if (state != State.OUT || hasAsked) {
            refuseToFreeze("its guest waits for it");
            return;
        }
        isFrozen = true;
        order.freeze(true);
        // Also ends the search for ended work, in which the backend asks the driver.
        WorkEnd.await(session, this::frozen);
    }

    private void frozen() {
        if (session.isOver() || !isFrozen) {
            return;
        } else if (hasAsked) {
            refuseToFreeze("its guest waits for it");
        } else if (session.isQuiet() && memoryWaits.isEmpty()) {
            broker.accept(new WorkerMessage.SwapFrozen(""));
        } else {
            refuseToFreeze("its calls have not ended");
        }
    }

    private void refuseToFreeze(String reason) {
        thaw();
        broker.accept(new WorkerMessage.SwapFrozen(reason));
    }

    /** The session can make calls of the driver again. */
    public void thaw() {
        isFrozen = false;
        order.freeze(false);
        List<Runnable> steps = List.copyOf(frozenSteps);
        frozenSteps.clear();
        steps.forEach(Runnable::run);
    }

    /** Whether the memory may move to a keeper. */
    boolean isUsed() {
        return keeper != null || state != State.IN;
    }

    /** Whether each call of the driver may wait without limit. Any thread. */
    public boolean isFrozen() {
        return isFrozen;
    }

    /** Runs a step that needs the driver: now, or when the session is no longer frozen, for which it then asks. */
    public void whenThawed(Runnable step) {
        if (isFrozen) {
            frozenSteps.add(step);
            ask();
        } else {
            step.run();
        }
    }

    /** A record arrives. */
    void touch() {
        if (isFrozen) {
            ask();
        }
    }

    /** The keeper has gone. */
    private void lost() {
        if (session.isOver()) {
            return;
        }
        keeper = null;
        boolean hasBytes = state == State.RETURNING && !moving.isEmpty();
        if (hasBytes || !session.objects().arena().pieces(true).isEmpty()) {
            session.end("the keeper of its swapped memory has ended", true, CudaResult.DEVICE_UNAVAILABLE);
        } else if (state == State.DRAINING || state == State.LEAVING) {
            pieces.clear();
            moving.clear();
            stay("the keeper of the GPU has ended");
        }
    }
}
