package io.hawser.worker.move;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.CUresult;
import io.hawser.shm.os.Descriptors;
import io.hawser.worker.control.ControlSocket;
import io.hawser.worker.swap.SlabFrame;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;

/**
 * Copies the slabs of sessions that move from the first GPU of its worker to the last one. A session's source and its
 * target each offer a slab by its address, with a descriptor of its memory. The bytes pass through pinned memory of the
 * host, because not all GPUs reach each other. Both sides are assumed to be captured: each can only spoil its own
 * session. The copies run on one thread; each side has a thread for its requests.
 */
public final class SlabMover implements AutoCloseable {
    private static final Logger LOG = System.getLogger(SlabMover.class.getName());
    private static final int NON_BLOCKING = 1; // CUstream_flags
    private static final long CHUNK_BYTES = 16L << 20;
    /** Offers of a side that wait for the other one; each holds a descriptor. */
    private static final int MAX_WAITING = 16;

    private final GpuBackend backend;
    private final VirtualMemory memory;
    private final ExecutorService thread = Executors.newSingleThreadExecutor(task -> daemon("mover", task));
    private final Map<Integer, Pair> pairs = new ConcurrentHashMap<>();
    private final Gpu from;
    private final Gpu to;
    private MemorySegment first; // chunks of pinned memory
    private MemorySegment second;

    /** One of the GPUs, with a stream for its copies. */
    private final class Gpu {
        private final int device;
        private long context;
        private long stream;

        Gpu(int device) {
            this.device = device;
        }

        int open(MemorySegment out) {
            int result = backend.createContext(device, 0, true, out);
            context = out.get(ValueLayout.JAVA_LONG, 0);
            result = result != 0 ? result : backend.setCurrent(context);
            result = result != 0 ? result : backend.driver().cuStreamCreateWithPriority(out, NON_BLOCKING, 0);
            stream = out.get(ValueLayout.JAVA_LONG, 0);
            return result;
        }

        int copyOut(MemorySegment chunk, long address) {
            int result = backend.setCurrent(context);
            return result != 0 ? result : backend.copyDtoH(chunk, address, stream);
        }

        int copyIn(long address, MemorySegment chunk) {
            int result = backend.setCurrent(context);
            return result != 0 ? result : backend.copyHtoD(address, chunk, stream);
        }

        int await() {
            int result = backend.setCurrent(context);
            result = result != 0 ? result : backend.driver().cuStreamQuery(stream);
            while (result == CUresult.CUDA_ERROR_NOT_READY) {
                Thread.onSpinWait(); // a chunk takes less than a sleep
                result = backend.driver().cuStreamQuery(stream);
            }
            return result;
        }
    }

    /** A session. The mover's thread only, except the sockets. */
    private static final class Pair {
        private final Side source = new Side();
        private final Side target = new Side();
    }

    private static final class Side {
        private volatile ControlSocket socket; // null before it is known
        private final Map<Long, Offer> offers = new HashMap<>(); // that wait for the other side
    }

    private record Offer(SlabFrame frame, int descriptor) {}

    /**
     * Prepares a mover.
     *
     * @param backend of the GPUs, used only by this object, which the caller closes afterwards.
     * @throws IOException when the backend cannot share memory between processes, or a GPU cannot be opened.
     */
    public SlabMover(GpuBackend backend) throws IOException {
        if (backend.virtualMemory() == null) {
            throw new IOException("GPUs must have virtual memory, so that slabs can move: backend=" + backend.name());
        }
        this.backend = backend;
        memory = backend.virtualMemory();
        from = new Gpu(0);
        to = new Gpu(backend.deviceCount() - 1);
        thread.execute(this::open);
    }

    private static Thread daemon(String name, Runnable task) {
        Thread made = new Thread(task, name);
        made.setDaemon(true);
        return made;
    }

    private void open() {
        backend.setPolled(false);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(Long.BYTES, Long.BYTES);
            int result = from.open(out);
            result = result != 0 ? result : to.open(out);
            first = backend.allocateStaging(CHUNK_BYTES);
            second = backend.allocateStaging(CHUNK_BYTES);
            if (result != 0 || first == null || second == null) {
                LOG.log(Level.ERROR, "the mover cannot open its GPUs: CUresult={0}", result);
                first = null; // each copy then fails
            }
        }
    }

    /**
     * Serves one side of a session until its end.
     *
     * @param pair number of the session.
     * @param descriptor of a connected Unix stream socket, closed afterwards.
     */
    public void serve(int pair, boolean isSource, int descriptor) {
        Pair both = pairs.computeIfAbsent(pair, number -> new Pair());
        Side side = isSource ? both.source : both.target;
        ControlSocket socket = new ControlSocket(descriptor);
        side.socket = socket;
        daemon("mover-reader", () -> read(pair, both, side, socket)).start();
    }

    private void read(int number, Pair pair, Side side, ControlSocket socket) {
        try {
            for (ControlSocket.Frame frame = socket.read(); frame != null; frame = socket.read()) {
                SlabFrame request = SlabFrame.decode(frame.json());
                int descriptor = frame.descriptor();
                submit(() -> offer(pair, side, new Offer(request, descriptor)), descriptor);
            }
        } catch (IOException e) {
            LOG.log(Level.WARNING, "the mover ends its service of a session", e);
        }
        submit(() -> leave(number, pair), -1);
    }

    private void submit(Runnable task, int descriptor) {
        try {
            thread.execute(task);
        } catch (RejectedExecutionException e) {
            if (descriptor >= 0) {
                Descriptors.close(descriptor);
            }
        }
    }

    /** Ends both sides: the session has moved, or one side has gone. */
    private void leave(int number, Pair pair) {
        pairs.remove(number, pair);
        for (Side side : new Side[] {pair.source, pair.target}) {
            if (side.socket != null) {
                side.socket.end();
            }
            side.offers.values().forEach(SlabMover::drop);
            side.offers.clear();
        }
    }

    private static void drop(Offer offer) {
        if (offer.descriptor >= 0) {
            Descriptors.close(offer.descriptor);
        }
    }

    private void offer(Pair pair, Side side, Offer offer) {
        Side other = side == pair.source ? pair.target : pair.source;
        Offer match = other.offers.remove(offer.frame.slab());
        if (match == null) {
            boolean isValid = offer.descriptor >= 0 && side.offers.size() < MAX_WAITING
                && !side.offers.containsKey(offer.frame.slab());
            if (isValid) {
                side.offers.put(offer.frame.slab(), offer);
            } else {
                drop(offer);
                answer(side, offer, CUresult.CUDA_ERROR_INVALID_VALUE);
            }
            return;
        }
        int result = side == pair.source ? copy(offer, match) : copy(match, offer);
        drop(offer);
        drop(match);
        answer(side, offer, result);
        answer(other, match, result);
    }

    private static void answer(Side side, Offer offer, int result) {
        try {
            side.socket.write(offer.frame.reply(result).encode());
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "a side of a move has gone", e);
        }
    }

    private int copy(Offer source, Offer target) {
        long bytes = source.frame.bytes();
        if (bytes <= 0 || bytes != target.frame.bytes() || target.descriptor < 0 || source.descriptor < 0) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        } else if (first == null) {
            return CUresult.CUDA_ERROR_NOT_INITIALIZED;
        }
        MappedSlab[] here = new MappedSlab[1];
        MappedSlab[] there = new MappedSlab[1];
        int result = map(source, from, here);
        result = result != 0 ? result : map(target, to, there);
        result = result != 0 ? result : copy(here[0].address(), there[0].address(), bytes);
        for (MappedSlab mapped : new MappedSlab[] {here[0], there[0]}) {
            int unmapped = mapped == null ? 0 : mapped.unmap();
            result = result != 0 ? result : unmapped;
        }
        return result;
    }

    private int map(Offer offer, Gpu gpu, MappedSlab[] out) {
        int result = backend.setCurrent(gpu.context);
        return result != 0 ? result : MappedSlab.map(memory, offer.descriptor, offer.frame.bytes(), gpu.device, out);
    }

    /** Copies by two chunks: one is filled while the other one is emptied. */
    private int copy(long source, long target, long bytes) {
        int result = 0;
        MemorySegment chunk = first;
        for (long at = 0; at < bytes && result == 0; at += CHUNK_BYTES) {
            MemorySegment part = chunk.asSlice(0, Math.min(CHUNK_BYTES, bytes - at));
            result = from.copyOut(part, source + at);
            result = result != 0 ? result : from.await();
            result = result != 0 ? result : to.await(); // the other chunk is empty now
            result = result != 0 ? result : to.copyIn(target + at, part);
            chunk = chunk == first ? second : first;
        }
        int ended = to.await(); // also after an error: the copy uses the mapping
        return result != 0 ? result : ended;
    }

    /** Ends the work; sessions that have not got all of their slabs learn that the mover has gone. */
    @Override
    public void close() {
        thread.shutdown();
        for (Pair pair : pairs.values()) {
            for (Side side : new Side[] {pair.source, pair.target}) {
                if (side.socket != null) {
                    side.socket.end();
                }
            }
        }
    }
}
