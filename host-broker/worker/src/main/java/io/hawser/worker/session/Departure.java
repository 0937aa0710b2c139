package io.hawser.worker.session;

import io.hawser.shm.os.Descriptors;
import io.hawser.worker.channel.Link;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.move.StateWriter;
import io.hawser.worker.swap.KeeperLink;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A session leaves its worker (moving.md). It stops at a record, waits for the end of all work, writes its state, and
 * offers its slabs to the mover. Until the end of the move nothing changes here, so the session can go on at any time.
 * Session thread.
 */
public final class Departure {
    /** How long running work, or a guest that does not read its replies, may delay the departure. */
    private static final long LIMIT_MS = 1000;
    private static final long INTERVAL_MS = 1;
    /** Slabs that the mover handles at a time. */
    private static final int MAX_OFFERED = 4;

    /** Passes a descriptor to the broker, which gets its own copy. */
    @FunctionalInterface
    public interface Passage {
        /** Passes one. */
        void pass(int descriptor);
    }

    private final Session session;
    private final KeeperLink mover;
    private final Passage passage;
    private final Consumer<WorkerMessage> broker;
    private final Deque<Long> pieces = new ArrayDeque<>(); // that the mover does not know yet
    private long sinceNs;
    private boolean isWaiting; // for the end of work, or of replies
    private boolean isOver;

    Departure(Session session, KeeperLink mover, Passage passage, Consumer<WorkerMessage> broker) {
        this.session = session;
        this.mover = mover;
        this.passage = passage;
        this.broker = broker;
    }

    void begin() {
        String reason = stays();
        if (!reason.isEmpty()) {
            refuse(reason);
            return;
        }
        mover.start(new KeeperLink.Listener() {
            @Override
            public void done(long slab, int result) {
                session.completions().add(Departure.this::offer);
            }

            @Override
            public void gone() {
                // The broker learns of the mover's end by itself, and ends this move.
            }
        });
        sinceNs = System.nanoTime();
        isWaiting = true;
        session.order().pause(() -> {});
        drain();
    }

    /** Why the session cannot move; empty if it can. */
    private String stays() {
        GuestObjects objects = session.objects();
        if (session.backend().deviceCount() > 1) {
            return "it uses several GPUs";
        } else if (session.link().guestMemory() != null) {
            return "it uses RDMA";
        } else if (session.isLost()) {
            return "an error has ended its context";
        } else if (session.residence().isUsed()) {
            return "its memory may be swapped out";
        } else if (!session.moving().journal().pinned().isEmpty()) {
            return session.moving().journal().pinned();
        } else if (objects.arena().stays()) {
            return "other processes may use its memory";
        } else if (objects.arena().isAccessedByPeers()) {
            return "other GPUs use its memory";
        } else if (objects.allocations().allocatedBytes() > 0) {
            return "the driver has allocated memory for it";
        } else if (objects.quota().hasKept()) {
            return "its pools or graphs hold memory";
        }
        return Journal.objection(objects.handles());
    }

    private void drain() {
        if (isWaiting && !session.isOver()) {
            WorkEnd.await(session, this::drained);
        }
    }

    private void drained() {
        if (!isWaiting || session.isOver()) {
            return;
        }
        boolean isQuiet = session.isQuiet() && session.memoryWaits().isEmpty() && !session.order().hasAside()
            && !session.objects().blobs().hasStaged();
        if (isQuiet) {
            session.turns().withdraw();
            session.order().freeze(true);
            session.link().halt();
            try {
                session.moving().stripes().pause();
            } catch (IOException e) {
                stay(e.getMessage());
                return;
            }
            session.serveLater(this::sent, 0); // after the records that the link has taken
        } else if (isLate()) {
            stay(session.objects().blobs().hasStaged() ? "it sends device code"
                : "its work lasts for longer than " + LIMIT_MS + " ms");
        } else {
            session.serveLater(this::drain, INTERVAL_MS);
        }
    }

    private boolean isLate() {
        return System.nanoTime() - sinceNs >= TimeUnit.MILLISECONDS.toNanos(LIMIT_MS);
    }

    private void sent() {
        if (!isWaiting || session.isOver()) {
            return;
        }
        boolean isStill = session.moving().stripes().isStill();
        if (isStill && session.link().hasSentAll()) {
            isWaiting = false;
            capture();
        } else if (isLate()) {
            stay(isStill ? "its guest does not read its replies" : "its guest is sending a part of a copy");
        } else {
            session.serveLater(this::sent, INTERVAL_MS);
        }
    }

    private void capture() {
        String reason = stays(); // calls that were running may have made objects
        if (!reason.isEmpty()) {
            stay(reason);
            return;
        }
        Link link = session.link();
        try (StateWriter out = new StateWriter()) {
            SessionState.write(session, out);
            int state = out.seal();
            try {
                passage.pass(state);
            } finally {
                Descriptors.close(state);
            }
        } catch (IOException e) {
            stay(e.getMessage());
            return;
        }
        boolean hasSocket = link.socket() >= 0;
        if (hasSocket) {
            passage.pass(link.socket());
        }
        List<Integer> stripes = session.moving().stripes().descriptors();
        stripes.forEach(passage::pass);
        DeviceArena arena = session.objects().arena();
        pieces.addAll(arena.pieces(false));
        broker.accept(new WorkerMessage.MoveReady("", pieces.stream().mapToLong(arena::pieceBytes).sum(), hasSocket,
            stripes.size()));
        for (int i = 0; i < MAX_OFFERED; i++) {
            offer();
        }
    }

    /** Offers the next slab to the mover. */
    private void offer() {
        if (isOver || session.isOver() || pieces.isEmpty()) {
            return;
        }
        long address = pieces.remove();
        DeviceArena arena = session.objects().arena();
        try (Arena scratch = Arena.ofConfined()) {
            MemorySegment out = scratch.allocate(Integer.BYTES, Integer.BYTES);
            int result = arena.share(address, out);
            if (result != 0) {
                throw new IOException("a slab cannot be exported: CUresult=" + result);
            }
            int descriptor = out.get(ValueLayout.JAVA_INT, 0);
            try {
                mover.store(address, arena.pieceBytes(address), descriptor);
            } finally {
                Descriptors.close(descriptor);
            }
        } catch (IOException e) {
            mover.close(); // the mover tells the target, so the move ends
        }
    }

    private void refuse(String reason) {
        isOver = true;
        mover.close();
        broker.accept(new WorkerMessage.MoveReady(reason, 0, false, 0));
    }

    /** Goes on, and tells the broker why. */
    private void stay(String reason) {
        goOn();
        refuse(reason);
    }

    private void goOn() {
        isWaiting = false;
        session.moving().stripes().proceed();
        session.link().proceed();
        session.order().resume();
    }

    /** The broker has ended the move. */
    void end(boolean isMoved) {
        if (isOver || session.isOver()) {
            return;
        } else if (isWaiting) { // the broker awaits an answer to each order
            stay("the move is over");
            return;
        }
        isOver = true;
        mover.close();
        if (isMoved) {
            session.moving().stripes().leave();
            session.end("it has moved to another GPU", false, 0);
            session.link().close();
        } else {
            goOn();
        }
    }
}
