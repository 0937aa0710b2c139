package io.hawser.worker.session;

import io.hawser.worker.channel.RecordHeader;
import io.hawser.worker.memory.StagingPool;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.MemorySegment;

/**
 * The order in which records are served: as they come, unless one must wait for host functions to end ({@link Gates})
 * or a launch for its turn ({@link Turns}); then those behind it wait with it, but for what lets host functions end.
 * Session thread only.
 */
final class RecordOrder {
    /** Serves records. */
    interface Server {
        /** As {@link io.hawser.worker.channel.RecordHandler#record}. */
        boolean serve(RecordHeader header, MemorySegment bytes, long offset, Staging memory);

        /** Whether the session has ended. */
        boolean isOver();

        /** Ends it for what no honest guest sends. */
        void refuse(String reason);
    }

    private final Server server;
    private final Gates gates;
    private final Turns turns;
    private final StagingPool pool;
    private final HeldRecords held = new HeldRecords();
    private final RecordHeader heldHeader = new RecordHeader();
    private CallDispatcher dispatcher;

    RecordOrder(Server server, Gates gates, Turns turns, StagingPool pool) {
        this.server = server;
        this.pool = pool;
        this.gates = gates;
        this.turns = turns;
    }

    /** Says what requests are. Before the first record. */
    void use(CallDispatcher described) {
        dispatcher = described;
    }

    /** Serves a record or holds it; whether its memory is kept. */
    boolean record(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
        return gates.isOpen() || !held.isEmpty() || !mayLaunch(header.opcode())
            ? serveOrHold(header, bytes, offset, memory) : server.serve(header, bytes, offset, memory);
    }

    /** Whether it is no launch, or one whose turn it is. */
    private boolean mayLaunch(int opcode) {
        return !dispatcher.isLaunch(opcode) || turns.mayLaunch();
    }

    private boolean serveOrHold(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
        int opcode = header.opcode();
        boolean isControl = ControlRecords.isRequest(opcode);
        if (isControl ? ControlRecords.endsHostFunction(opcode) : dispatcher.endsHostFunction(opcode)) {
            return server.serve(header, bytes, offset, memory);
        }
        boolean mayGo = held.isEmpty() && !gates.holdRecords() && mayLaunch(opcode);
        if (mayGo && (isControl || !dispatcher.mayWaitForDevice(opcode))) {
            gates.issued(1);
            return server.serve(header, bytes, offset, memory);
        }
        HeldRecords.Held record = held.hold(header, bytes, offset, memory);
        if (mayGo) {
            putOff(record);
        } else {
            held.add(record);
        }
        if (held.isTooMuch()) {
            server.refuse("a guest must not send so much behind a host function or a launch that waits: limitBytes="
                + HeldRecords.MAX_UNCREDITED_BYTES);
        }
        return record.memory() != null;
    }

    private void putOff(HeldRecords.Held record) {
        held.setAside(record);
        gates.whenClosed(() -> {
            if (held.take(record)) {
                serve(record);
            }
        });
    }

    private void serve(HeldRecords.Held record) {
        held.release(record);
        heldHeader.read(record.bytes(), 0);
        if (!server.serve(heldHeader, record.bytes(), 0, record.memory()) && record.memory() != null) {
            pool.give(record.memory());
        }
    }

    /** Does what has waited, as far as it can be done now. */
    void settle() {
        boolean any = true;
        while (any && !server.isOver()) {
            any = gates.runWaiting();
            while (!server.isOver() && !held.isEmpty() && !gates.holdRecords() && mayLaunch(held.nextOpcode())) {
                HeldRecords.Held next = held.next();
                if (gates.isOpen() && !ControlRecords.isRequest(next.opcode())
                        && dispatcher.mayWaitForDevice(next.opcode())) {
                    putOff(next);
                } else {
                    gates.issued(1);
                    serve(next);
                }
                any = true;
            }
        }
    }

    /** Gives up all that waits: the session is over. */
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
