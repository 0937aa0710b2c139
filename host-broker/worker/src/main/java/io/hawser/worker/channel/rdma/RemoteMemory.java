package io.hawser.worker.channel.rdma;

import io.hawser.shm.rdma.RdmaEnd;
import io.hawser.shm.rdma.RdmaEnd.Registration;
import io.hawser.worker.channel.GuestMemory;
import io.hawser.worker.memory.StagingPool.Staging;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/**
 * The guest's registered memory, which this end writes, and the worker's own memory that it registers for that. Memory
 * of the worker is registered at its first use. Its amount is bounded as staging memory is: by the budgets of the
 * buffers for copies, and by the copy area's size. Session thread.
 */
final class RemoteMemory implements GuestMemory {
    private final RdmaEnd end;
    private final Map<Long, Registration> registrations = new HashMap<>(); // by address
    private final ArrayDeque<Write> unfinished = new ArrayDeque<>(); // oldest first
    private boolean isLost;

    private record Write(long ticket, Runnable sent) {
    }

    RemoteMemory(RdmaEnd end) {
        this.end = end;
    }

    @Override
    public void write(long address, int key, Staging piece, int bytes, Runnable sent) throws IOException {
        Registration from = register(piece.segment(), false);
        long ticket = isLost ? -1 : end.write(from, bytes, address, key);
        if (ticket < 0) { // the session thread notices the loss at its next look
            sent.run();
        } else {
            unfinished.add(new Write(ticket, sent));
        }
    }

    @Override
    public int share(MemorySegment memory) throws IOException {
        return register(memory, true).key();
    }

    private Registration register(MemorySegment memory, boolean isWritable) throws IOException {
        Registration known = registrations.get(memory.address());
        if (known == null) {
            known = end.register(memory, isWritable);
            registrations.put(memory.address(), known);
        }
        return known;
    }

    @Override
    public void forget(MemorySegment memory) {
        Registration known = registrations.remove(memory.address());
        if (known != null) {
            end.unregister(known, 0); // a piece of a write that is not done is not free, unless the session is over
        }
    }

    /** Whether a write has ended, or could have. */
    boolean settle() {
        if (unfinished.isEmpty()) {
            return false;
        }
        long done = end.written();
        boolean any = false;
        for (Write first = unfinished.peek(); first != null && first.ticket <= done; first = unfinished.peek()) {
            unfinished.remove();
            first.sent.run();
            any = true;
        }
        return any;
    }

    /** Nothing can be sent any more: all pieces come free. */
    void lose() {
        isLost = true;
        for (Write first = unfinished.poll(); first != null; first = unfinished.poll()) {
            first.sent.run();
        }
    }
}
