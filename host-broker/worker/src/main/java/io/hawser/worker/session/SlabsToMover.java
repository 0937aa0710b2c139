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
import java.util.function.Consumer;

/**
 * A departure to a worker of the same broker: the broker gets the descriptors of the state and of the guest's
 * connections, and the mover copies the slabs. Session thread.
 */
final class SlabsToMover implements DepartingSlabs {
    /** Slabs that the mover handles at a time. */
    private static final int MAX_OFFERED = 4;

    private final Session session;
    private final KeeperLink mover;
    private final Departure.Passage passage;
    private final Consumer<WorkerMessage> broker;
    private final Deque<Long> pieces = new ArrayDeque<>(); // that the mover does not know yet
    private boolean isOver;

    /** Begins to listen to the mover, whose way this closes at its end. */
    SlabsToMover(Session session, KeeperLink mover, Departure.Passage passage, Consumer<WorkerMessage> broker) {
        this.session = session;
        this.mover = mover;
        this.passage = passage;
        this.broker = broker;
        mover.start(new KeeperLink.Listener() {
            @Override
            public void done(long slab, int result) {
                session.completions().add(SlabsToMover.this::offer);
            }

            @Override
            public void gone() {
                // The broker learns of the mover's end by itself, and ends this move.
            }
        });
    }

    @Override
    public void leave(StateWriter out) throws IOException {
        int state = out.seal();
        try {
            passage.pass(state);
        } finally {
            Descriptors.close(state);
        }
        Link link = session.link();
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

    @Override
    public void end() {
        isOver = true;
        mover.close();
    }
}
