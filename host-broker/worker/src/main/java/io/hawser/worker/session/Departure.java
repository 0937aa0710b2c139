package io.hawser.worker.session;

import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.move.SessionStream;
import io.hawser.worker.move.StateWriter;
import io.hawser.worker.swap.KeeperLink;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A session leaves its worker (moving.md). It stops at a record, waits for the end of all work, and gives away its
 * state and its slabs. Until the end of the move nothing changes here, so the session can go on at any time. A session
 * that goes to another broker first asks its guest to connect there, and to be quiet. Session thread.
 */
public final class Departure {
    /** How long running work, or a guest that does not read its replies, may delay the departure. */
    private static final long LIMIT_MS = 1000;
    private static final long INTERVAL_MS = 1;
    /** How long a guest may take to connect to the other broker and to be quiet, while it works. */
    private static final long GUEST_LIMIT_MS = 10_000;

    /** Passes a descriptor to the broker, which gets its own copy. */
    @FunctionalInterface
    public interface Passage {
        /** Passes one. */
        void pass(int descriptor);
    }

    private enum State {
        /** Waits for the guest, which connects to the other broker. */
        INVITED,
        /** Waits for the end of work, or of replies. */
        DRAINING,
        /** The state and the slabs leave; the broker of a local move knows. */
        LEAVING,
        /** The other broker's worker has all. */
        GIVEN,
        /** The move is over. */
        OVER
    }

    private final Session session;
    private final Consumer<WorkerMessage> broker;
    private final DepartingSlabs slabs;
    private final String address; // of the other broker; empty for a worker of the same one
    private State state = State.DRAINING;
    private boolean hasGuestAnswered; // the invitation
    private boolean hasGuestLeft; // its old connection
    private long sinceNs;

    /** Prepares a departure to a worker of the same broker. */
    Departure(Session session, KeeperLink mover, Passage passage, Consumer<WorkerMessage> broker) {
        this.session = session;
        this.broker = broker;
        address = "";
        slabs = new SlabsToMover(session, mover, passage, broker);
    }

    /**
     * Prepares a departure to a worker of another broker.
     *
     * @param address of that broker, for the guest.
     */
    Departure(Session session, SessionStream stream, String address, Consumer<WorkerMessage> broker) {
        this.session = session;
        this.broker = broker;
        this.address = address;
        slabs = new SlabsToStream(session, stream, this::given);
    }

    void begin() {
        String reason = stays();
        if (!reason.isEmpty()) {
            refuse(reason);
        } else if (address.isEmpty()) {
            stop();
        } else {
            state = State.INVITED;
            session.outbox().leave(address);
            session.outbox().flush();
            session.serveLater(() -> {
                if (state == State.INVITED && !session.isOver()) {
                    refuse("its guest does not answer within " + GUEST_LIMIT_MS + " ms");
                }
            }, GUEST_LIMIT_MS);
        }
    }

    /**
     * The guest answers the invitation.
     *
     * @param reason why it stays; empty when it is quiet and awaits the end of the move.
     * @return false when it may not answer now.
     */
    boolean left(String reason) {
        if (state != State.INVITED || hasGuestAnswered) {
            return false;
        }
        hasGuestAnswered = true;
        if (reason.isEmpty()) {
            hasGuestLeft = true;
            session.serveLater(this::stop, 0); // after the record that says so
        } else {
            refuse("its guest stays: " + LogText.clean(reason));
        }
        return true;
    }

    private void stop() {
        if (state == State.OVER || session.isOver()) {
            return;
        }
        state = State.DRAINING;
        sinceNs = System.nanoTime();
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
        } else if (!address.isEmpty() && session.link().socket() < 0) {
            return "it uses shared memory, which no other machine has";
        } else if (!address.isEmpty() && !session.moving().follows()) {
            return "its guest's package cannot follow to another broker";
        } else if (session.moving().awaitsLateAnswer()) {
            return "its guest has not answered the last invitation to another broker yet";
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

    private boolean isDraining() {
        return state == State.DRAINING && !session.isOver();
    }

    private void drain() {
        if (isDraining()) {
            WorkEnd.await(session, this::drained);
        }
    }

    private void drained() {
        if (!isDraining()) {
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
        if (!isDraining()) {
            return;
        }
        boolean isStill = session.moving().stripes().isStill();
        if (isStill && session.link().hasSentAll()) {
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
        state = State.LEAVING;
        try (StateWriter out = new StateWriter()) {
            // A guest that goes to another broker opens other connections there.
            SessionState.write(session, address.isEmpty() ? session.moving().stripes().states() : List.of(), out);
            slabs.leave(out);
        } catch (IOException e) {
            stay(e.getMessage());
        }
    }

    /** The other broker's worker has all of the session, or there is a problem. */
    private void given(String problem) {
        if (state == State.LEAVING && problem.isEmpty()) {
            state = State.GIVEN;
            DeviceArena arena = session.objects().arena();
            broker.accept(new WorkerMessage.MoveReady("", arena.pieces(false).stream().mapToLong(arena::pieceBytes)
                .sum(), false, 0));
        } else if (state == State.LEAVING) {
            stay(problem);
        }
    }

    private void refuse(String reason) {
        if (state == State.INVITED && !hasGuestAnswered) {
            session.moving().awaitLateAnswer();
        }
        state = State.OVER;
        slabs.end();
        broker.accept(new WorkerMessage.MoveReady(reason, 0, false, 0));
    }

    /** Goes on, and tells the broker why. */
    private void stay(String reason) {
        slabs.end(); // first: it uses the GPU
        goOn();
        refuse(reason);
    }

    private void goOn() {
        if (hasGuestLeft) {
            session.outbox().stay();
            session.outbox().flush();
        }
        session.moving().stripes().proceed();
        session.link().proceed();
        session.order().resume();
    }

    /** The broker has ended the move. */
    void end(boolean isMoved) {
        if (state == State.OVER || session.isOver()) {
            return;
        } else if (state == State.INVITED) { // the broker awaits an answer to each order
            refuse("the move is over");
            return;
        } else if (state == State.DRAINING || state == State.LEAVING && !address.isEmpty()) {
            stay("the move is over");
            return;
        }
        state = State.OVER;
        slabs.end();
        if (isMoved) {
            session.moving().stripes().leave();
            session.end(address.isEmpty() ? "it has moved to another GPU" : "it has moved to another broker", false, 0);
            session.link().close();
        } else {
            goOn();
        }
    }
}
