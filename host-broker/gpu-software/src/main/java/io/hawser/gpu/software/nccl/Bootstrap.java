package io.hawser.gpu.software.nccl;

import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;

/**
 * Lets the ranks of a communicator find each other. Ranks of several workers connect by loopback, which only the
 * workers of one vGPU share. Addresses of other machines are never used. Thread-safe.
 */
final class Bootstrap {
    /** Ranks of a communicator; stops a guest that takes all memory and sockets of its worker. */
    static final int MAX_RANKS = 64;
    /** Communicators, and links that no rank has asked for yet; stops other workers of the vGPU, likewise. */
    private static final int MAX_ENTRIES = 4096;
    private static final System.Logger LOG = System.getLogger(Bootstrap.class.getName());

    private final boolean allowsNetwork;
    private final Executor threads;
    private final Map<String, Assembly> assemblies = new ConcurrentHashMap<>(); // by secret
    private final Map<String, CompletableFuture<SocketChannel>> links = new ConcurrentHashMap<>(); // by name()
    private final Map<String, LocalAssembly> locals = new ConcurrentHashMap<>(); // by secret
    private final Set<SocketChannel> open = Collections.synchronizedSet(new HashSet<>());
    private ServerSocketChannel listener; // null before the first id
    private volatile boolean isClosed;

    /**
     * @param allowsNetwork whether ranks may be in other workers.
     * @param threads run what waits for other ranks.
     */
    Bootstrap(boolean allowsNetwork, Executor threads) {
        this.allowsNetwork = allowsNetwork;
        this.threads = threads;
    }

    /** Connects this process with itself. */
    static void rehearse() throws IOException {
        try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.INET);
            SocketChannel client = SocketChannel.open(StandardProtocolFamily.INET)) {
            server.bind(new InetSocketAddress(loopback(), 0));
            client.connect(server.getLocalAddress());
            try (SocketChannel accepted = server.accept()) {
                UniqueId id = UniqueId.random(0);
                new Hello(true, 0, 1, 0, id.secret()).write(client);
                Hello.read(accepted);
                SocketLink.close(accepted);
                SocketLink.close(client);
            }
        }
    }

    private static InetAddress loopback() {
        return InetAddress.getLoopbackAddress();
    }

    /** This worker may not have what it needs; no other rank is the reason. */
    static final class RefusedException extends IOException {
        private static final long serialVersionUID = 1L;

        RefusedException(String message) {
            super(message);
        }
    }

    /** Starts to listen, once. Returns the port. */
    synchronized int listen() throws IOException {
        if (!allowsNetwork) {
            throw new RefusedException("ranks in several processes need a vGPU with communication=host");
        }
        if (isClosed) {
            throw new IOException("the session has ended");
        }
        if (listener == null) {
            listener = ServerSocketChannel.open(StandardProtocolFamily.INET);
            listener.bind(new InetSocketAddress(loopback(), 0), MAX_RANKS);
            threads.execute(this::accept);
        }
        return ((InetSocketAddress) listener.getLocalAddress()).getPort();
    }

    private void accept() {
        try {
            while (!isClosed) {
                SocketChannel channel = listener.accept();
                keep(channel);
                threads.execute(() -> receive(channel));
            }
        } catch (IOException e) {
            if (!isClosed) {
                LOG.log(Level.WARNING, "NCCL: no further ranks can join: {0}", e.getMessage());
            }
        }
    }

    private void keep(SocketChannel channel) throws IOException {
        open.add(channel);
        if (isClosed || open.size() > MAX_ENTRIES) {
            drop(channel);
            throw new IOException("too many connections, or the session has ended");
        }
    }

    private void drop(SocketChannel channel) {
        open.remove(channel);
        SocketLink.close(channel);
    }

    /** Takes what another worker has connected for. */
    private void receive(SocketChannel channel) {
        try {
            Hello hello = Hello.read(channel);
            if (hello.isJoin()) {
                require(assemblies.size() < MAX_ENTRIES);
                assemblies.computeIfAbsent(hello.secret(), key -> new Assembly()).serve(channel, hello);
                assemblies.remove(hello.secret());
                drop(channel);
            } else {
                require(links.size() < MAX_ENTRIES);
                open.remove(channel); // its link closes it
                link(hello.secret(), hello.from(), hello.number()).complete(channel);
            }
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "NCCL: a connection has ended: {0}", e.getMessage());
            drop(channel);
        }
    }

    private static void require(boolean condition) throws IOException {
        if (!condition) {
            throw new IOException("too many ranks that nobody awaits");
        }
    }

    /** The connection from a rank to a lower one, which either may name first. */
    private CompletableFuture<SocketChannel> link(String secret, int from, int to) {
        return links.computeIfAbsent(secret + " " + from + " " + to, key -> new CompletableFuture<>());
    }

    /**
     * Joins a communicator, and waits for all its ranks.
     *
     * @throws IOException when a rank has ended, or they do not agree.
     */
    Rank join(UniqueId id, int ranks, int number) throws IOException {
        if (ranks > MAX_RANKS) {
            throw new RefusedException("a communicator has at most " + MAX_RANKS + " ranks: ranks=" + ranks);
        }
        if (id.port() == 0) {
            return joinLocal(id, ranks, number);
        }
        int port = listen();
        SocketChannel root = SocketChannel.open(StandardProtocolFamily.INET);
        keep(root);
        List<CompletableFuture<SocketChannel>> awaited = new ArrayList<>();
        List<Link> made = new ArrayList<>(Collections.nCopies(ranks, null));
        boolean isMade = false;
        try {
            root.connect(new InetSocketAddress(loopback(), id.port()));
            new Hello(true, number, ranks, port, id.secret()).write(root);
            ByteBuffer ports = ByteBuffer.allocate(Integer.BYTES * ranks).order(ByteOrder.LITTLE_ENDIAN);
            SocketLink.read(root, ports);
            for (int other = number + 1; other < ranks; other++) {
                awaited.add(link(id.secret(), other, number));
            }
            CompletableFuture<Void> all = watch(root, awaited);
            for (int other = 0; other < number; other++) {
                made.set(other, connect(ports.getInt(other * Integer.BYTES), id.secret(), number, other));
            }
            for (int other = number + 1; other < ranks; other++) {
                made.set(other, new SocketLink(awaited.get(other - number - 1).join()));
            }
            SocketLink.write(root, ByteBuffer.allocate(1));
            all.join();
            isMade = true;
        } catch (CompletionException e) {
            throw new IOException("a rank has ended before all had joined", e);
        } finally {
            for (int other = number + 1; other < ranks; other++) {
                links.remove(id.secret() + " " + other + " " + number);
            }
            drop(root);
            if (!isMade) {
                made.stream().filter(Objects::nonNull).forEach(Link::close);
            }
        }
        return new Rank(number, made, false);
    }

    /** Completes when all ranks have connected; when the root ends before, the awaited connections fail. */
    private CompletableFuture<Void> watch(SocketChannel root, List<CompletableFuture<SocketChannel>> awaited) {
        CompletableFuture<Void> all = new CompletableFuture<>();
        threads.execute(() -> {
            try {
                SocketLink.read(root, ByteBuffer.allocate(1));
                all.complete(null);
            } catch (IOException e) {
                all.completeExceptionally(e);
                awaited.forEach(link -> link.completeExceptionally(e));
            }
        });
        return all;
    }

    private static Link connect(int port, String secret, int from, int to) throws IOException {
        SocketChannel channel = SocketChannel.open(StandardProtocolFamily.INET);
        try {
            channel.connect(new InetSocketAddress(loopback(), port));
            new Hello(false, from, to, 0, secret).write(channel);
            return new SocketLink(channel);
        } catch (IOException e) {
            SocketLink.close(channel);
            throw e;
        }
    }

    private Rank joinLocal(UniqueId id, int ranks, int number) throws IOException {
        LocalAssembly assembly = locals.computeIfAbsent(id.secret(), key -> new LocalAssembly());
        try {
            if (isClosed) {
                throw new IOException("the session has ended");
            }
            return assembly.join(ranks, number);
        } finally {
            locals.remove(id.secret());
        }
    }

    /** Whether at least two ranks have joined at this root, and others have not yet. */
    boolean awaitsRanks() {
        return assemblies.values().stream().anyMatch(Assembly::awaitsRanks);
    }

    /** Ends everything that waits for other ranks. */
    void close() {
        isClosed = true;
        synchronized (this) {
            if (listener != null) {
                try {
                    listener.close();
                } catch (IOException e) {
                    LOG.log(Level.DEBUG, "NCCL: {0}", e.getMessage());
                }
            }
        }
        assemblies.values().forEach(Assembly::fail);
        locals.values().forEach(LocalAssembly::fail);
        links.values().forEach(link -> link.completeExceptionally(new IOException("the session has ended")));
        List<SocketChannel> left;
        synchronized (open) {
            left = List.copyOf(open);
        }
        left.forEach(this::drop);
    }
}
