package io.hawser.worker.swap;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.CUresult;
import io.hawser.shm.os.Descriptors;
import io.hawser.worker.control.ControlSocket;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;

/**
 * Keeps slabs of the sessions on a GPU in host memory, while those sessions are swapped out. It opens a slab's memory
 * by its descriptor, copies the bytes, and closes it again. Its host memory is pinned where the GPU needs that, and
 * stays allocated for the next slab. Sessions reach it by sockets; what a session has stored ends with its socket. A
 * hostile session can store up to its own limit, and nothing of others. All work runs on one thread.
 */
public final class SlabKeeper implements AutoCloseable {
    private static final Logger LOG = System.getLogger(SlabKeeper.class.getName());
    private static final int ACCESS_READ_WRITE = 3; // CUmemAccess_flags
    private static final int DEVICE = 0;

    private final GpuBackend backend;
    private final VirtualMemory memory;
    private final HostMemory host;
    private final ExecutorService thread = Executors.newSingleThreadExecutor(task -> {
        Thread made = new Thread(task, "keeper");
        made.setDaemon(true);
        return made;
    });
    private final Set<Client> clients = ConcurrentHashMap.newKeySet();
    private long context; // native
    private long window; // addresses for one slab
    private long windowBytes;

    private static final class Client {
        private final ControlSocket socket;
        private final long maxBytes;
        private final Map<Long, Kept> slabs = new HashMap<>();
        private long bytes; // of the slabs

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
     * @throws IOException when the backend cannot share memory between processes.
     */
    public SlabKeeper(GpuBackend backend, long maxBytes) throws IOException {
        this.backend = backend;
        host = new HostMemory(backend::allocateStaging, maxBytes);
        memory = backend.virtualMemory();
        if (memory == null) {
            throw new IOException("a GPU must have virtual memory, so that its slabs can be kept: backend="
                + backend.name());
        }
    }

    /**
     * Opens the GPU, then allocates host memory in the background.
     *
     * @param aheadBytes host memory to allocate before it is needed.
     * @throws IOException when the GPU cannot be opened.
     */
    public void start(long aheadBytes) throws IOException {
        int result = await(thread.submit(this::open));
        if (result != 0) {
            throw new IOException("the GPU cannot be opened for its keeper: CUresult=" + result);
        }
        allocateAhead(aheadBytes);
    }

    private int open() {
        backend.setPolled(false);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(Long.BYTES, Long.BYTES);
            int result = backend.createContext(DEVICE, 0, true, out);
            if (result == 0) {
                context = out.get(ValueLayout.JAVA_LONG, 0);
                result = backend.setCurrent(context);
            }
            return result;
        }
    }

    /** Allocates one block and then lets waiting requests run, so that nobody waits for all of them. */
    private void allocateAhead(long bytes) {
        submit(() -> {
            if (host.allocatedBytes() < bytes && host.grow()) {
                allocateAhead(bytes);
            }
        });
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
        Thread reader = new Thread(() -> read(client), "keeper-reader");
        reader.setDaemon(true);
        reader.start();
    }

    private void read(Client client) {
        try {
            for (ControlSocket.Frame frame = client.socket.read(); frame != null; frame = client.socket.read()) {
                SlabFrame request = SlabFrame.decode(frame.json());
                int descriptor = frame.descriptor();
                // Waits: a session that sends faster than the keeper works fills its own socket, and nothing else.
                int result = await(thread.submit(() -> handle(client, request, descriptor)));
                client.socket.write(request.reply(result).encode());
            }
        } catch (IOException e) {
            LOG.log(Level.WARNING, "the keeper ends its service of a session", e);
        } catch (RejectedExecutionException e) {
            LOG.log(Level.DEBUG, "the keeper has ended");
        }
        submit(() -> List.copyOf(client.slabs.keySet()).forEach(slab -> forget(client, slab)));
        clients.remove(client);
        client.socket.close();
    }

    private int await(Future<Integer> result) throws IOException {
        try {
            return result.get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("the keeper ends", e);
        } catch (ExecutionException e) {
            throw new IOException("a request of the keeper failed", e.getCause());
        }
    }

    private int handle(Client client, SlabFrame request, int descriptor) {
        try {
            return switch (request.action()) {
                case STORE -> store(client, request, descriptor);
                case LOAD -> load(client, request, descriptor);
            };
        } finally {
            if (descriptor >= 0) {
                Descriptors.close(descriptor);
            }
        }
    }

    private int store(Client client, SlabFrame request, int descriptor) {
        long bytes = request.bytes();
        if (bytes <= 0 || client.slabs.containsKey(request.slab())) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        List<MemorySegment> pieces = bytes > client.maxBytes - client.bytes ? null : host.take(bytes);
        if (pieces == null) {
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY;
        }
        int result = copy(descriptor, bytes, pieces, (address, piece) -> backend.copyDtoH(piece, address, 0));
        if (result == 0) {
            client.slabs.put(request.slab(), new Kept(bytes, pieces));
            client.bytes += bytes;
        } else {
            host.give(pieces);
        }
        return result;
    }

    private int load(Client client, SlabFrame request, int descriptor) {
        Kept kept = client.slabs.get(request.slab());
        if (kept == null || kept.bytes != request.bytes()) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        int result = copy(descriptor, kept.bytes, kept.pieces,
            (address, piece) -> backend.copyHtoD(address, piece, 0));
        if (result == 0) {
            forget(client, request.slab());
        }
        return result;
    }

    private void forget(Client client, long slab) {
        Kept kept = client.slabs.remove(slab);
        if (kept != null) {
            client.bytes -= kept.bytes;
            host.give(kept.pieces);
        }
    }

    /** Copies between an address of the device and a piece of the host's memory. */
    private interface Copy {
        int issue(long address, MemorySegment piece);
    }

    private int copy(int descriptor, long bytes, List<MemorySegment> pieces, Copy copy) {
        if (descriptor < 0) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(2 * Long.BYTES, Long.BYTES);
            int result = reserve(bytes, out);
            result = result != 0 ? result : memory.open(descriptor, bytes, out);
            if (result != 0) {
                return result;
            }
            long handle = out.get(ValueLayout.JAVA_LONG, 0);
            result = memory.map(window, bytes, 0, handle);
            if (result == 0) {
                result = memory.setAccess(window, bytes, DEVICE, ACCESS_READ_WRITE);
                result = result != 0 ? result : copyMapped(pieces, copy);
                int unmapped = memory.unmap(window, bytes);
                result = result != 0 ? result : unmapped;
            }
            int released = memory.release(handle);
            return result != 0 ? result : released;
        }
    }

    private int copyMapped(List<MemorySegment> pieces, Copy copy) {
        int result = 0;
        long address = window;
        for (int i = 0; i < pieces.size() && result == 0; i++) {
            result = copy.issue(address, pieces.get(i));
            address += pieces.get(i).byteSize();
        }
        int ended = settle(); // also after an error: the earlier copies use the mapping
        return result != 0 ? result : ended;
    }

    private int settle() {
        CompletableFuture<Integer> reached = new CompletableFuture<>();
        int refused = backend.whenStreamReached(context, 0, reached::complete);
        backend.seal(); // nobody polls here: the backend itself must find the end
        return refused != 0 ? refused : reached.join();
    }

    /** Makes sure that the window is long enough. */
    private int reserve(long bytes, MemorySegment out) {
        if (bytes <= windowBytes) {
            return 0;
        }
        int result = memory.reserve(bytes, 0, 0, out);
        if (result == 0) {
            if (windowBytes > 0) {
                memory.unreserve(window, windowBytes);
            }
            window = out.get(ValueLayout.JAVA_LONG, 0);
            windowBytes = bytes;
        }
        return result;
    }

    /** Ends the work. What is kept is lost, and the sessions learn that their keeper has gone. */
    @Override
    public void close() {
        thread.shutdown();
        clients.forEach(client -> client.socket.end());
    }
}
