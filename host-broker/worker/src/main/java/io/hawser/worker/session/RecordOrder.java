package io.hawser.worker.session;

import io.hawser.worker.channel.RecordHeader;
import io.hawser.worker.memory.StagingPool;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Decides the order in which records are served. Records are served as they arrive, unless one must wait for work or
 * host functions to end ({@link Gates}), for a turn to launch ({@link Turns}) or for a round of copies to end
 * ({@link CopyWindow}). Later records then wait behind it,
 * except those that let host functions end. Requests that ask for the state of a stream or event overtake records that
 * do not change it; a query of one that they change is answered as unfinished. So no thread of the guest is held
 * because it polls. Session thread only.
 */
final class RecordOrder {
    /** Serves records. */
    interface Server {
        /** See {@link io.hawser.worker.channel.RecordHandler#record}. */
        boolean serve(RecordHeader header, MemorySegment bytes, long offset, Staging memory);

        /** Whether the session has ended. */
        boolean isOver();

        /** Ends the session because of a record that no correct guest sends. */
        void refuse(String reason);
    }

    private final Server server;
    private final Gates gates;
    private final Turns turns;
    private final StagingPool pool;
    private final HeldRecords held = new HeldRecords();
    private final RecordHeader heldHeader = new RecordHeader();
    private StreamWork work;
    private CallDispatcher dispatcher;
    private int answer; // CUresult for the request that is served; 0 for none
    private boolean isPaused;
    private boolean isFrozen; // in a pause: no call of the driver may be made
    private Runnable whenHeld; // called for each record that the pause holds

    RecordOrder(Server server, Gates gates, Turns turns, StagingPool pool) {
        this.server = server;
        this.pool = pool;
        this.gates = gates;
        this.turns = turns;
    }

    /** Sets the streams' work, and the dispatcher, which classifies requests. Call it before the first record. */
    void use(StreamWork streams, CallDispatcher described) {
        work = streams;
        dispatcher = described;
    }

    /** Serves a record or holds it; returns whether its memory is kept. */
    boolean record(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
        return gates.isOpen() || !held.isEmpty() || !mayServe(header.opcode(), bytes, offset)
            ? serveOrHold(header, bytes, offset, memory) : server.serve(header, bytes, offset, memory);
    }

    /**
     * Holds all later records, except those that let host functions end and questions about the state of work.
     *
     * @param onHeld runs for each record that is held.
     */
    void pause(Runnable onHeld) {
        isPaused = true;
        whenHeld = onHeld;
    }

    /** Ends {@link #pause}; the next {@link #settle} serves the records. */
    void resume() {
        isPaused = false;
        isFrozen = false;
    }

    /** Sets whether a pause also holds questions about the state of work, whose answers need the driver. */
    void freeze(boolean on) {
        isFrozen = on;
    }

    /** The records that wait for one another, in their order. */
    List<HeldRecords.Held> held() {
        return held.queue();
    }

    /** Whether records wait for something else than their turn in this order. */
    boolean hasAside() {
        return held.hasAside();
    }

    /** Holds a record that another worker has held, behind the others. Its credit has been charged. */
    void hold(MemorySegment record) {
        heldHeader.read(record, 0);
        held.add(held.hold(heldHeader, record, 0, null));
    }

    /** Whether records wait. */
    boolean isHolding() {
        return !held.isEmpty();
    }

    /** Whether a record may be served now, if no record waits before it. */
    private boolean mayServe(int opcode, MemorySegment bytes, long offset) {
        return !isPaused && !(gates.isFull() && dispatcher.issuesWork(opcode))
            && !(gates.mustDrain() && dispatcher.opensGate(opcode))
            && !(work.isReading() && dispatcher.copiesToRegion(opcode))
            && (!turns.copies().isLimited() || turns.copies().mayCopy(dispatcher.copies(opcode)))
            && (!dispatcher.needsTurn(opcode, bytes, offset) || turns.mayLaunch());
    }

    private boolean serveOrHold(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
        int opcode = header.opcode();
        boolean isControl = ControlRecords.isRequest(opcode);
        if (isControl ? ControlRecords.endsHostFunction(opcode) : dispatcher.endsHostFunction(opcode)) {
            return server.serve(header, bytes, offset, memory);
        }
        if (!isControl && !isFrozen && (isPaused || !held.isEmpty()) && dispatcher.asks(opcode)
            && mayOvertake(opcode, bytes.asSlice(offset,
                header.lengthBytes()))) {
            boolean keeps = server.serve(header, bytes, offset, memory);
            answer = 0;
            return keeps;
        }
        boolean mayGo = held.isEmpty() && mayServe(opcode, bytes, offset);
        if (mayGo && (isControl || !dispatcher.mayWaitForDevice(opcode, header.wantsReply()))) {
            return server.serve(header, bytes, offset, memory);
        }
        HeldRecords.Held record = held.hold(header, bytes, offset, memory);
        if (mayGo) {
            postpone(record);
        } else {
            held.add(record);
        }
        if (isPaused) {
            whenHeld.run();
        }
        if (held.isOverLimit()) {
            server.refuse("records behind a waiting host function or launch must stay within a limit: limitBytes="
                + HeldRecords.MAX_UNCREDITED_BYTES);
        }
        return record.memory() != null;
    }

    /** Whether a request that asks for a state is served now; sets {@link #answer} if it has an answer already. */
    private boolean mayOvertake(int opcode, MemorySegment record) {
        long asked = dispatcher.asked(opcode, record);
        boolean isFree = !held.anyMatch(before -> dispatcher.changes(before.opcode(), before.bytes(), opcode, asked));
        answer = isFree ? 0 : dispatcher.unfinished(opcode, asked);
        return isFree || answer != 0;
    }

    /** Serves a request, or gives the answer that it has already. */
    void dispatch(int opcode, Call call) {
        if (answer != 0) {
            call.finish(answer);
        } else {
            dispatcher.dispatch(opcode, call);
        }
    }

    private void postpone(HeldRecords.Held record) {
        held.setAside(record);
        gates.whenClosed(() -> {
            if (held.take(record)) {
                serve(record);
            }
        });
    }

    /** Holds a copy of a record without credit whose call has not been answered, for {@link #serveAgain}. */
    HeldRecords.Held setAside(RecordHeader header, MemorySegment bytes, long offset) {
        HeldRecords.Held record = held.hold(header, bytes, offset, null);
        held.setAside(record);
        return record;
    }

    /**
     * Holds a copy of a record, whose call has been issued in part, before all others.
     *
     * @return false: the record's memory is not kept.
     */
    boolean putBack(RecordHeader header, MemorySegment bytes, long offset) {
        held.addFirst(held.hold(header, bytes, offset, null));
        return false;
    }

    /** Serves a record from {@link #setAside}, unless the session has ended. */
    void serveAgain(HeldRecords.Held record) {
        if (held.take(record)) {
            serve(record);
        }
    }

    private void serve(HeldRecords.Held record) {
        held.release(record);
        heldHeader.read(record.bytes(), 0);
        if (!server.serve(heldHeader, record.bytes(), 0, record.memory()) && record.memory() != null) {
            pool.give(record.memory());
        }
    }

    /** Serves held records and postponed actions that are no longer blocked. */
    void settle() {
        boolean any = true;
        while (any && !server.isOver()) {
            any = gates.runWaiting();
            while (!server.isOver() && !held.isEmpty() && mayServe(held.first().opcode(), held.first().bytes(), 0)) {
                HeldRecords.Held next = held.next();
                if (gates.isOpen() && !ControlRecords.isRequest(next.opcode())
                    && dispatcher.mayWaitForDevice(next.opcode(), next.isAwaited())) {
                    postpone(next);
                } else {
                    serve(next);
                }
                any = true;
            }
        }
    }

    /** Drops all held records: the session is over. */
    void drop(CreditWindow credit) {
        gates.cancel();
        held.drop(record -> {
            if (record.isCredited()) {
                credit.release(record.lengthBytes());
            }
            if (record.memory() != null) {
                pool.give(record.memory());
            }
        });
    }
}
