package io.hawser.worker.channel.rdma;

import io.hawser.shm.rdma.RdmaEnd;
import io.hawser.shm.rdma.RdmaEnd.Registration;
import io.hawser.worker.channel.GuestMemory;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/**
 * The guest's registered memory, which this end writes and reads, and the worker's own memory that it registers for
 * that. Host memory is registered at its first use. Its amount is bounded as staging memory is: by the budgets of the
 * buffers for copies, and by the copy area's size. Memory of the GPU is bounded by the vGPU's. Session thread.
 */
final class RemoteMemory implements GuestMemory {
    private final RdmaEnd end;
    private final Map<Long, Registration> registrations = new HashMap<>(); // by address
    private final ArrayDeque<Request> unfinished = new ArrayDeque<>(); // oldest first
    private boolean isLost;

    private record Request(long ticket, Runnable done, boolean isRead) {
    }

    RemoteMemory(RdmaEnd end) {
        this.end = end;
    }

    @Override
    public void write(long address, int key, MemorySegment memory, long offset, int bytes, Runnable sent)
        throws IOException {
        Registration from = register(memory, 0);
        long ticket = isLost ? -1 : end.write(from, offset, bytes, address, key);
        if (ticket < 0) { // the session thread notices the loss at its next look
            sent.run();
        } else {
            unfinished.add(new Request(ticket, sent, false));
        }
    }

    @Override
    public void read(long address, int key, MemorySegment memory, long offset, int bytes, Runnable arrived)
        throws IOException {
        Registration to = register(memory, RdmaEnd.PEER_WRITES); // it may be shared later
        long ticket = isLost ? -1 : end.read(to, offset, bytes, address, key);
        if (ticket > 0) {
            unfinished.add(new Request(ticket, arrived, true));
        }
    }

    @Override
    public int share(MemorySegment memory) throws IOException {
        return register(memory, RdmaEnd.PEER_WRITES).key();
    }

    @Override
    public void adopt(MemorySegment memory, int descriptor) throws IOException {
        registrations.put(memory.address(), end.registerDevice(memory.address(), memory.byteSize(), descriptor));
    }

    private Registration register(MemorySegment memory, int access) throws IOException {
        Registration known = registrations.get(memory.address());
        if (known == null) {
            known = end.register(memory, access);
            registrations.put(memory.address(), known);
        }
        return known;
    }

    @Override
    public void forget(MemorySegment memory) {
        Registration known = registrations.remove(memory.address());
        if (known != null) {
            end.unregister(known, 0); // memory of a request that is not done is not free, unless the session is over
        }
    }

    /** Whether a request has ended, or could have. */
    boolean settle() {
        if (unfinished.isEmpty()) {
            return false;
        }
        long done = end.done();
        boolean any = false;
        for (Request first = unfinished.peek(); first != null && first.ticket <= done; first = unfinished.peek()) {
            unfinished.remove();
            first.done.run();
            any = true;
        }
        return any;
    }

    /** Nothing can be sent or fetched any more: all pieces come free. */
    void lose() {
        isLost = true;
        for (Request first = unfinished.poll(); first != null; first = unfinished.poll()) {
            if (!first.isRead) {
                first.done.run();
            }
        }
    }
}
