package io.hawser.worker.session;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.move.MappedSlab;
import io.hawser.worker.move.SessionStream;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;

/**
 * An arrival from a worker of another broker: the slabs come by a connection. A thread of its own receives them into
 * pinned memory, and the session thread copies them to the GPU. Session thread, where a method says nothing else.
 */
final class SlabsFromStream implements ArrivingSlabs {
    private static final Logger LOG = System.getLogger(SlabsFromStream.class.getName());
    /** While one part is copied, the next one is received. */
    private static final int CHUNKS = 2;

    private final SessionStream stream;
    private final BlockingQueue<MemorySegment> free = new LinkedBlockingQueue<>();
    private final List<MemorySegment> chunks = new ArrayList<>();
    private Map<Long, Long> expected; // lengths by address; the receiver's thread from its start on
    private Session session;
    private Consumer<String> over;
    private Thread receiver;
    private MappedSlab mapped; // whose parts come; null before the first one
    private boolean hasEnded; // over knows
    private volatile boolean isOver;

    /** Uses a connection from the other worker, which this closes at its end. */
    SlabsFromStream(SessionStream stream) {
        this.stream = stream;
    }

    @Override
    public void fetch(Session to, Consumer<String> ended) {
        session = to;
        over = ended;
        DeviceArena arena = session.objects().arena();
        expected = new HashMap<>();
        arena.pieces(false).forEach(address -> expected.put(address, arena.pieceBytes(address)));
        try {
            if (!expected.isEmpty()) {
                prepare();
            }
        } catch (IOException e) {
            finish(e.getMessage());
            return;
        }
        receiver = new Thread(this::receive, "stream-receiver");
        receiver.setDaemon(true);
        receiver.start();
    }

    private void prepare() throws IOException {
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

    /** Receives all slabs. The receiver's thread. */
    private void receive() {
        try {
            for (SessionStream.Slab slab = stream.receiveSlab(); !slab.equals(SessionStream.Slab.END); slab = stream
                .receiveSlab()) {
                Long bytes = expected.remove(slab.address());
                if (bytes == null || bytes != slab.bytes()) {
                    throw new IOException("a slab must be one of the state, and come once: address="
                        + Long.toHexString(slab.address()) + " bytes=" + slab.bytes());
                }
                for (long at = 0; at < bytes && !isOver; at += SessionStream.CHUNK_BYTES) {
                    receive(slab, at, Math.min(SessionStream.CHUNK_BYTES, bytes - at));
                }
            }
            if (!expected.isEmpty()) {
                throw new IOException("all slabs of the state must come: missing=" + expected.size());
            }
            session.completions().add(() -> finish("")); // after the copies, which were added before
        } catch (IOException e) {
            session.completions().add(() -> finish(e.getMessage()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends
        }
    }

    private void receive(SessionStream.Slab slab, long at, long bytes) throws IOException, InterruptedException {
        MemorySegment chunk = free.take();
        if (!isOver) {
            stream.receive(chunk, bytes);
            session.completions().add(() -> copy(slab, at, chunk.asSlice(0, bytes), chunk));
        }
    }

    private void copy(SessionStream.Slab slab, long at, MemorySegment part, MemorySegment chunk) {
        if (isOver || session.isOver()) {
            return;
        }
        try {
            mapped = mapped == null ? session.objects().arena().mapped(slab.address()) : mapped;
            SessionState.require(session.backend().copyHtoD(mapped.address() + at, part, 0),
                "a slab cannot be copied");
            SessionState.require(SessionState.await(session.backend().driver()), "a slab cannot be copied");
            if (at + part.byteSize() == slab.bytes()) {
                unmap();
            }
            free.add(chunk);
        } catch (IOException e) {
            finish(e.getMessage());
        }
    }

    private void unmap() {
        if (mapped != null) {
            mapped.unmap(); // at worst its addresses stay taken
            mapped = null;
        }
    }

    private void finish(String problem) {
        if (!isOver && !hasEnded) {
            hasEnded = true;
            over.accept(problem);
        }
    }

    @Override
    public void end(String problem) {
        if (isOver) {
            return;
        }
        isOver = true;
        try {
            stream.answer(problem);
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "the other worker has gone", e);
        }
        stream.shutdown();
        if (receiver != null) {
            free.addAll(chunks); // wakes it
            try {
                receiver.join(); // each of its calls returns by now
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        stream.close();
        unmap();
        chunks.forEach(chunk -> session.backend().freeStaging(chunk));
        chunks.clear();
    }
}
