package io.hawser.worker.swap;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CUresult;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.PrivateMemory;
import io.hawser.worker.control.ControlSocket;
import io.hawser.worker.memory.AvailableMemory;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.function.LongConsumer;

/**
 * Keeps slabs of the sessions on a GPU in host memory, while those sessions are swapped out. It opens a slab's memory
 * by its descriptor, copies the bytes, and closes it again. Its host memory is pinned where the GPU needs that, and
 * stays allocated for the next slab. Sessions reach it by sockets; what a session has stored ends with its socket. A
 * hostile session can store up to its own limit, and nothing of others. It cannot delay the requests of others by more
 * than {@value #MAX_UNANSWERED} of its own. The work runs on one thread, and each session has a thread for its requests
 * and one for the replies.
 */
public final class SlabKeeper implements AutoCloseable {
    /** Requests of one session that the keeper handles at a time; the next waits in the socket. */
    public static final int MAX_UNANSWERED = 4;
    private static final Logger LOG = System.getLogger(SlabKeeper.class.getName());
    /** Threads that allocate host memory ahead: the kernel fills it with zeros at 5 GiB/s a thread. */
    private static final int AHEAD_THREADS = 4;
    /** Memory that stays available on the host. A host without memory would end processes, perhaps those of others. */
    private static final long SPARE_BYTES = 512L << 20;

    private final GpuBackend backend;
    private final AvailableMemory available;
    private final HostMemory host;
    private final LongConsumer grown;
    private final long reportBytes;
    private final SlabTransfers transfers;
    private final ExecutorService thread = Executors.newSingleThreadExecutor(task -> daemon("keeper", task));
    private final Set<Client> clients = ConcurrentHashMap.newKeySet();
    private long reportedBytes; // to `grown`

    /** A session. The keeper's thread uses it, and the session's two threads use what is thread-safe. */
    private static final class Client {
        private final ControlSocket socket;
        private final Semaphore unanswered = new Semaphore(MAX_UNANSWERED);
        private final BlockingQueue<SlabFrame> replies = new LinkedBlockingQueue<>();
        private final long maxBytes;
        private final Map<Long, Kept> slabs = new HashMap<>();
        private final Set<Long> moving = new HashSet<>(); // slabs whose copy runs
        private long bytes; // of both
        private boolean isGone;

        Client(ControlSocket socket, long maxBytes) {
            this.socket = socket;
            this.maxBytes = maxBytes;
        }
    }

    private record Kept(long bytes, List<MemorySegment> pieces) {}

    /**
     * Prepares a keeper.
     *
     * @param backend of the GPU, used only by this object, which the caller closes afterwards.
     * @param maxBytes limit of the host memory for slabs.
     * @param available the host's memory.
     * @param grown gets the length of the host memory when it has grown, about 40 times at most. Any thread.
     * @throws IOException when the backend cannot share memory between processes.
     */
    public SlabKeeper(GpuBackend backend, long maxBytes, AvailableMemory available, LongConsumer grown)
        throws IOException {
        if (backend.virtualMemory() == null) {
            throw new IOException("a GPU must have virtual memory, so that its slabs can be kept: backend="
                + backend.name());
        }
        this.backend = backend;
        this.available = available;
        this.grown = grown;
        reportBytes = maxBytes / 32;
        host = new HostMemory(this::allocate, maxBytes);
        transfers = new SlabTransfers(backend, this::submit);
    }

    private static Thread daemon(String name, Runnable task) {
        Thread made = new Thread(task, name);
        made.setDaemon(true);
        return made;
    }

    /**
     * Opens the GPU, then allocates host memory in the background.
     *
     * @param aheadBytes host memory to allocate before it is needed.
     * @throws IOException when the GPU cannot be opened.
     */
    public void start(long aheadBytes) throws IOException {
        int result = opened();
        if (result != 0) {
            throw new IOException("the GPU cannot be opened for its keeper: CUresult=" + result);
        }
        allocateAhead(aheadBytes);
    }

    private int opened() throws IOException {
        try {
            return thread.submit(transfers::open).get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("the keeper ends", e);
        } catch (ExecutionException e) {
            throw new IOException("the GPU cannot be opened for its keeper", e.getCause());
        }
    }

    /** Allocates a block. Null when memory is short. Any thread. */
    private MemorySegment allocate(long bytes) {
        try {
            if (available.bytes() < bytes + SPARE_BYTES) {
                return null;
            }
            MemorySegment memory = PrivateMemory.map(bytes);
            int result = backend.pinHost(memory);
            if (result == 0) {
                return memory;
            }
            LOG.log(Level.WARNING, "the GPU cannot use more memory of the host: CUresult={0}", result);
        } catch (IOException e) {
            LOG.log(Level.WARNING, "the host gives no more memory to the keeper", e);
        }
        return null;
    }

    /** Allocates on threads of its own, so that no session waits for all of the memory. */
    private void allocateAhead(long bytes) {
        for (int i = 0; i < AHEAD_THREADS; i++) {
            daemon("keeper-memory", () -> {
                while (host.grow(bytes)) {
                    submit(() -> report(reportBytes));
                }
                submit(() -> report(1));
            }).start();
        }
    }

    private void report(long leastBytes) {
        if (host.allocatedBytes() - reportedBytes >= leastBytes) {
            reportedBytes = host.allocatedBytes();
            grown.accept(reportedBytes);
        }
    }

    private void submit(Runnable task) {
        try {
            thread.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.log(Level.DEBUG, "the keeper has ended");
        }
    }

    /**
     * Serves a session until its end.
     *
     * @param descriptor of a connected Unix stream socket, closed afterwards.
     * @param clientBytes limit of the slabs that the session may store.
     */
    public void serve(int descriptor, long clientBytes) {
        Client client = new Client(new ControlSocket(descriptor), clientBytes);
        clients.add(client);
        Thread writer = daemon("keeper-writer", () -> write(client));
        writer.start();
        daemon("keeper-reader", () -> read(client, writer)).start();
    }

    private void read(Client client, Thread writer) {
        try {
            for (ControlSocket.Frame frame = client.socket.read(); frame != null; frame = client.socket.read()) {
                SlabFrame request = SlabFrame.decode(frame.json());
                int descriptor = frame.descriptor();
                client.unanswered.acquireUninterruptibly(); // a session that sends faster fills its own socket
                submit(() -> handle(client, request, descriptor));
            }
        } catch (IOException e) {
            LOG.log(Level.WARNING, "the keeper ends its service of a session", e);
        }
        submit(() -> leave(client));
        clients.remove(client);
        writer.interrupt();
        client.socket.close();
    }

    /** Sends replies. A session that does not read them gets no further request handled. */
    private void write(Client client) {
        try {
            while (true) {
                client.socket.write(client.replies.take().encode());
                client.unanswered.release();
            }
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "a session of the keeper has gone", e);
            client.socket.end();
            client.unanswered.release(MAX_UNANSWERED); // the reader must see the end
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the reader has seen the end
        }
    }

    private void leave(Client client) {
        client.isGone = true;
        client.slabs.values().forEach(kept -> drop(client, kept));
        client.slabs.clear();
    }

    private void drop(Client client, Kept kept) {
        client.bytes -= kept.bytes;
        host.give(kept.pieces);
    }

    private void handle(Client client, SlabFrame request, int descriptor) {
        try {
            int refusal = switch (request.action()) {
                case STORE -> store(client, request, descriptor);
                case LOAD -> load(client, request, descriptor);
            };
            if (refusal != 0) {
                client.replies.add(request.reply(refusal));
            }
        } finally {
            if (descriptor >= 0) {
                Descriptors.close(descriptor);
            }
        }
    }

    /** Begins a copy, which {@link #ended} follows, and returns 0; or returns the CUresult of a refusal. */
    private int store(Client client, SlabFrame request, int descriptor) {
        long bytes = request.bytes();
        if (bytes <= 0 || client.slabs.containsKey(request.slab()) || client.moving.contains(request.slab())) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        List<MemorySegment> pieces = bytes > client.maxBytes - client.bytes ? null : host.take(bytes);
        if (pieces == null) {
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY;
        }
        report(reportBytes);
        Kept kept = new Kept(bytes, pieces);
        client.bytes += bytes;
        client.moving.add(request.slab());
        transfers.store(descriptor, bytes, pieces, result -> ended(client, request, kept, result));
        return 0;
    }

    /** As {@link #store}. */
    private int load(Client client, SlabFrame request, int descriptor) {
        Kept kept = client.slabs.get(request.slab()); // not of one whose copy runs
        if (kept == null || kept.bytes != request.bytes()) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        client.slabs.remove(request.slab());
        client.moving.add(request.slab());
        transfers.load(descriptor, kept.bytes, kept.pieces, result -> ended(client, request, kept, result));
        return 0;
    }

    /** Ends a copy: keeps the slab that is on the host now, or gives its memory back. */
    private void ended(Client client, SlabFrame request, Kept kept, int result) {
        client.moving.remove(request.slab());
        boolean isStored = (result == 0) == (request.action() == SlabFrame.Action.STORE);
        if (isStored && !client.isGone) {
            client.slabs.put(request.slab(), kept);
        } else {
            drop(client, kept);
        }
        client.replies.add(request.reply(result));
    }

    /** Ends the work. What is kept is lost, and the sessions learn that their keeper has gone. */
    @Override
    public void close() {
        thread.shutdown();
        clients.forEach(client -> client.socket.end());
    }
}
