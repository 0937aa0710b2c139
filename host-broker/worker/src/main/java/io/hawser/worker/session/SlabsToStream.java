package io.hawser.worker.session;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.move.MappedSlab;
import io.hawser.worker.move.SessionStream;
import io.hawser.worker.move.StateWriter;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;

/**
 * A departure to a worker of another broker: state and slabs go by a connection. The session thread copies them from
 * the GPU to pinned memory, a thread of its own sends them, so that both work at the same time. Session thread,
 * where a method says nothing else.
 */
final class SlabsToStream implements DepartingSlabs {
    /** While one part is sent, the next one is copied. */
    private static final int CHUNKS = 2;

    private final Session session;
    private final SessionStream stream;
    private final Consumer<String> over;
    private final BlockingQueue<Part> parts = new LinkedBlockingQueue<>();
    private final List<MemorySegment> free = new ArrayList<>();
    private final List<MemorySegment> chunks = new ArrayList<>();
    private List<SessionStream.Slab> slabs = List.of();
    private int next; // slab
    private MappedSlab mapped; // that slab; null before its first part
    private long at; // bytes of it that were copied
    private Thread sender;
    private volatile boolean isOver;

    /**
     * Bytes to send.
     *
     * @param slab announced before the bytes; null for the rest of the one before.
     * @param chunk null at the end.
     */
    private record Part(SessionStream.Slab slab, MemorySegment chunk, long bytes) {}

    /**
     * Uses a connection to the other worker, which this closes at its end.
     *
     * @param over gets the end, on the session thread: why the session cannot leave after all; empty when the other
     *     worker has all of it.
     */
    SlabsToStream(Session session, SessionStream stream, Consumer<String> over) {
        this.session = session;
        this.stream = stream;
        this.over = over;
    }

    @Override
    public void leave(StateWriter out) throws IOException {
        DeviceArena arena = session.objects().arena();
        slabs = arena.pieces(false).stream().map(address -> new SessionStream.Slab(address, arena.pieceBytes(address)))
            .toList();
        if (!slabs.isEmpty()) {
            List<Handle> contexts = session.objects().handles().all(HandleKind.CONTEXT).stream()
                .filter(context -> !context.isFailed()).toList();
            if (contexts.isEmpty()) {
                throw new IOException("its memory belongs to no context");
            }
            SessionState.require(session.objects().enter(contexts.getFirst()), "a context cannot be entered");
            for (int i = 0; i < CHUNKS; i++) {
                MemorySegment chunk = session.backend().allocateStaging(SessionStream.CHUNK_BYTES);
                if (chunk == null) {
                    throw new IOException("no memory for the contents of its slabs");
                }
                chunks.add(chunk);
            }
            free.addAll(chunks);
        }
        MemorySegment state = out.copy();
        sender = new Thread(() -> send(state), "stream-sender");
        sender.setDaemon(true);
        sender.start();
        copy();
    }

    /** Copies the next parts, as long as there is a free chunk. */
    private void copy() {
        while (!isOver && !session.isOver() && next < slabs.size() && !free.isEmpty()) {
            SessionStream.Slab slab = slabs.get(next);
            MemorySegment chunk = free.removeLast();
            long bytes = Math.min(SessionStream.CHUNK_BYTES, slab.bytes() - at);
            try {
                mapped = mapped == null ? session.objects().arena().mapped(slab.address()) : mapped;
                SessionState.require(session.backend().copyDtoH(chunk.asSlice(0, bytes), mapped.address() + at, 0),
                    "a slab cannot be copied");
                SessionState.require(SessionState.await(session.backend().driver()), "a slab cannot be copied");
            } catch (IOException e) {
                finish(e.getMessage());
                return;
            }
            parts.add(new Part(at == 0 ? slab : null, chunk, bytes));
            at += bytes;
            if (at == slab.bytes()) {
                next++;
                at = 0;
                unmap();
            }
        }
        if (next == slabs.size() && free.size() == chunks.size()) {
            next++; // once
            parts.add(new Part(SessionStream.Slab.END, null, 0));
        }
    }

    private void unmap() {
        if (mapped != null) {
            mapped.unmap(); // at worst its addresses stay taken
            mapped = null;
        }
    }

    /** Sends all. The sender's thread. */
    private void send(MemorySegment state) {
        try {
            stream.sendState(state);
            for (Part part = parts.take(); part.chunk != null; part = parts.take()) {
                if (part.slab != null) {
                    stream.sendSlab(part.slab);
                }
                stream.send(part.chunk, part.bytes);
                MemorySegment chunk = part.chunk;
                session.completions().add(() -> {
                    free.add(chunk);
                    copy();
                });
            }
            if (!isOver) {
                stream.sendSlab(SessionStream.Slab.END);
                String reason = stream.receiveAnswer();
                session.completions().add(() -> finish(reason));
            }
        } catch (IOException e) {
            String reason = isOver ? "" : reasonOf(e);
            session.completions().add(() -> finish(reason));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends
        }
    }

    /** Why the other worker takes no more: it may have said so before it closed the connection. The sender's thread. */
    private String reasonOf(IOException failure) {
        try {
            String reason = stream.receiveAnswer();
            if (!reason.isEmpty()) {
                return reason;
            }
        } catch (IOException e) {
            failure.addSuppressed(e);
        }
        return "the other worker does not take it: " + failure.getMessage();
    }

    private void finish(String problem) {
        if (!isOver && !session.isOver()) {
            over.accept(problem);
        }
    }

    @Override
    public void end() {
        if (isOver) {
            return;
        }
        isOver = true;
        stream.shutdown();
        if (sender != null) {
            parts.add(new Part(SessionStream.Slab.END, null, 0)); // wakes it
            try {
                sender.join(); // each of its calls returns by now
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        stream.close();
        unmap();
        chunks.forEach(session.backend()::freeStaging);
        chunks.clear();
        free.clear();
    }
}
