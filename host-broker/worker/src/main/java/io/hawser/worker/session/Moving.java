package io.hawser.worker.session;

import io.hawser.cuda.Move;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.channel.RecordHeader;
import io.hawser.worker.channel.tcp.Stripes;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.move.SessionStream;
import io.hawser.worker.swap.KeeperLink;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;

/** A session's part in moves: its journal, its departure to another worker, its arrival from one. Session thread. */
public final class Moving {
    private final Session session;
    private final Journal journal = new Journal();
    private final MovedEvents events = new MovedEvents();
    private Stripes stripes = new Stripes();
    private Departure departure; // null while the session does not leave
    private Arrival arrival; // null unless the session has come from another worker
    private Restated restated; // of the call that is made again; null for calls of the guest
    private Call restating;
    private boolean follows; // the guest, to another broker
    private boolean isAnswerLate; // the guest owes one to a move that is over

    /** Receives the end of a call that was made again. */
    @FunctionalInterface
    interface Restated {
        /** The call has ended with this CUresult; its outputs are valid during this call. */
        void ended(Call call, int result);
    }

    Moving(Session session) {
        this.session = session;
    }

    /** The calls that another worker needs. */
    public Journal journal() {
        return journal;
    }

    /** Events that were recorded at another worker. */
    public MovedEvents events() {
        return events;
    }

    /** A call begins: copies its record if a journal needs it. */
    void begin(Call call, RecordHeader header, MemorySegment bytes, long offset) {
        if (!ControlRecords.isRequest(header.opcode())) {
            Move move = session.dispatcher().move(header.opcode());
            if (move != Move.NONE) {
                call.use(journal.draft(move, bytes, offset, header.lengthBytes()));
            }
        }
    }

    /**
     * A call has ended.
     *
     * @return whether it was made again for its journal, so that the guest gets no reply.
     */
    boolean finished(Call call, int result) {
        Journal.Entry entry = call.entry();
        boolean hasFailed = call.made() != null && call.made().isFailed(); // which holds the session
        if (entry != null && (result == 0 || hasFailed)) {
            Handle object = call.lastObject();
            journal.keep(entry, call.wantsReply() ? call.outputs() : null, call.made(),
                object != null ? object : session.objects().handles().find(HandleKind.CONTEXT,
                    HandleTable.id(HandleKind.CONTEXT, call.context())),
                session.dispatcher().name(call.opcode()));
        }
        if (call != restating || restated == null) {
            return false;
        }
        Restated to = restated;
        restated = null;
        restating = null;
        to.ended(call, result);
        return true;
    }

    /**
     * Makes a call of a journal again.
     *
     * @param record its record, aligned.
     * @param to gets the call and its CUresult, perhaps at once.
     */
    void restate(MemorySegment record, RecordHeader header, Restated to) {
        Call call = new Call(session);
        call.begin(header, record, 0, null);
        restated = to;
        restating = call;
        begin(call, header, record, 0);
        if (session.objects().switchContext(call, header.context())) {
            session.dispatcher().dispatch(header.opcode(), call);
        }
    }

    /**
     * Begins to leave. The broker gets {@link WorkerMessage.MoveReady}.
     *
     * @param mover the way to the mover, which this closes at its end.
     * @param passage passes descriptors to the broker.
     */
    public void leave(KeeperLink mover, Departure.Passage passage, Consumer<WorkerMessage> broker) {
        departure = new Departure(session, mover, passage, broker);
        departure.begin();
    }

    /**
     * Begins to leave to another broker. The broker gets {@link WorkerMessage.MoveReady} when the session is complete
     * there.
     *
     * @param stream the connection to the other worker, which this closes at its end.
     * @param address of the other broker, for the guest.
     */
    public void leave(SessionStream stream, String address, Consumer<WorkerMessage> broker) {
        departure = new Departure(session, stream, address, broker);
        departure.begin();
    }

    /** The guest can follow its session to another broker. */
    void follow() {
        follows = true;
    }

    /** Whether the guest has said that it can follow. */
    boolean follows() {
        return follows;
    }

    /**
     * The guest answers the invitation to another broker.
     *
     * @param reason why it stays; empty when it has left.
     * @return false when nobody has invited it.
     */
    boolean left(String reason) {
        if (!isAnswerLate) {
            return departure != null && departure.left(reason);
        }
        isAnswerLate = false;
        if (reason.isEmpty()) {
            session.outbox().stay();
            session.outbox().flush();
        }
        return true;
    }

    /** The move is over before the guest has answered its invitation. */
    void awaitLateAnswer() {
        isAnswerLate = true;
    }

    /** Whether the guest still owes an answer. */
    boolean awaitsLateAnswer() {
        return isAnswerLate;
    }

    /** Uses the session's further connections. Call it before the session starts. */
    public void use(Stripes connections) {
        stripes = connections;
    }

    /** The session's further connections. */
    Stripes stripes() {
        return stripes;
    }

    /**
     * Adds a connection that has joined the session, here or at the worker from which the session comes.
     *
     * @param descriptor its socket, which this closes at the end.
     */
    public void join(int descriptor) {
        if (isAway()) {
            arrival.join(descriptor);
        } else {
            stripes.add(descriptor);
        }
    }

    /**
     * Prepares an arrival. Call it before the session starts.
     *
     * @param coming the session's state at the other worker.
     */
    public void arrive(Arrival coming) {
        arrival = coming;
    }

    /** The arrival; null for a session that begins here. */
    Arrival arrival() {
        return arrival;
    }

    /** Whether the guest is another worker's, which must not be disturbed. */
    boolean isAway() {
        return arrival != null && arrival.isAway();
    }

    /** The move has ended; whether the session is another worker's, or this one's after an arrival. */
    public void end(boolean isMoved) {
        if (departure != null) {
            Departure left = departure;
            departure = null;
            left.end(isMoved);
        } else if (arrival != null && isMoved) {
            arrival.serve();
        }
    }
}
