package io.hawser.worker.session;

import io.hawser.shm.os.Descriptors;
import io.hawser.worker.swap.KeeperLink;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Consumer;

/** An arrival from a worker of the same broker: the mover copies the slabs. Session thread. */
final class SlabsFromMover implements ArrivingSlabs {
    /** Slabs that the mover handles at a time. */
    private static final int MAX_OFFERED = 4;

    private final KeeperLink mover;
    private final Deque<Long> pieces = new ArrayDeque<>(); // that the mover does not know yet
    private final Set<Long> moving = new HashSet<>(); // that the mover copies
    private Session session;
    private Consumer<String> over;
    private boolean isOver;

    /** Uses a way to the mover, which this closes at its end. */
    SlabsFromMover(KeeperLink mover) {
        this.mover = mover;
    }

    @Override
    public void fetch(Session to, Consumer<String> ended) {
        session = to;
        over = ended;
        mover.start(new KeeperLink.Listener() {
            @Override
            public void done(long slab, int result) {
                session.completions().add(() -> loaded(slab, result));
            }

            @Override
            public void gone() {
                session.completions().add(() -> finish("the mover has ended"));
            }
        });
        pieces.addAll(session.objects().arena().pieces(false));
        for (int i = 0; i < MAX_OFFERED; i++) {
            load();
        }
        endWhenComplete();
    }

    /** Offers the next slab to the mover. */
    private void load() {
        if (isOver || session.isOver() || pieces.isEmpty()) {
            return;
        }
        long address = pieces.remove();
        DeviceArena arena = session.objects().arena();
        try (Arena scratch = Arena.ofConfined()) {
            MemorySegment out = scratch.allocate(Integer.BYTES, Integer.BYTES);
            SessionState.require(arena.share(address, out), "a slab cannot be exported");
            moving.add(address);
            int descriptor = out.get(ValueLayout.JAVA_INT, 0);
            try {
                mover.load(address, arena.pieceBytes(address), descriptor);
            } finally {
                Descriptors.close(descriptor);
            }
        } catch (IOException e) {
            finish(e.getMessage());
        }
    }

    private void loaded(long address, int result) {
        if (isOver || session.isOver() || !moving.remove(address)) {
            return;
        }
        if (result != 0) {
            finish("a slab cannot be copied: CUresult=" + result);
            return;
        }
        load();
        endWhenComplete();
    }

    private void endWhenComplete() {
        if (moving.isEmpty() && pieces.isEmpty()) {
            finish("");
        }
    }

    private void finish(String problem) {
        if (!isOver) {
            isOver = true;
            over.accept(problem);
        }
    }

    @Override
    public void end(String problem) {
        isOver = true;
        mover.close();
    }
}
