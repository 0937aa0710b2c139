package io.hawser.hypervisor.xen;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/**
 * A connection to xenstored by its Unix socket, as root of dom0. Values go through the socket, never through a
 * program's arguments, which every user could read. One thread. After an {@link IOException} other than {@link
 * XenStoreException} the connection is unusable.
 */
public final class XenStore implements AutoCloseable {
    /** The default socket of both xenstored implementations, in C and OCaml. */
    public static final Path SOCKET = Path.of("/run/xenstored/socket");

    // This connection watches nothing. A few events may come all the same; more would let another program block us.
    private static final int MAX_SKIPPED = 16;

    // A transaction fails when another client changes the same part. libxl does so while a domain starts.
    private static final int MAX_ATTEMPTS = 20;

    private final SocketChannel channel;
    private final Selector selector;
    private final Duration timeout;
    private int requests;
    private int transaction;

    private XenStore(SocketChannel channel, Selector selector, Duration timeout) {
        this.channel = channel;
        this.selector = selector;
        this.timeout = timeout;
    }

    /**
     * Connects.
     *
     * @param timeout for each answer.
     * @throws IOException if no process listens there.
     */
    public static XenStore connect(Path socket, Duration timeout) throws IOException {
        SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket));
        try {
            channel.configureBlocking(false);
            Selector selector = Selector.open();
            channel.register(selector, SelectionKey.OP_READ);
            return new XenStore(channel, selector, timeout);
        } catch (IOException e) {
            channel.close();
            throw e;
        }
    }

    /** The value at a path; empty if there is none. */
    public Optional<String> read(String path) throws IOException {
        try {
            return Optional.of(ask(XenStoreMessage.READ, "read " + path, path, "").text());
        } catch (XenStoreException e) {
            if (e.error().equals("ENOENT")) {
                return Optional.empty();
            }
            throw e;
        }
    }

    /**
     * Sets the value at a path, and creates the path's parents.
     *
     * @param value fits into {@link XenStoreMessage#MAX_PAYLOAD_BYTES} bytes together with its path and a NUL.
     */
    public void write(String path, String value) throws IOException {
        // Unlike every other string a value has no final NUL.
        ask(XenStoreMessage.WRITE, "write " + path, path, value);
    }

    /** Makes dom0 the owner of a path; only the given domain may read it besides. */
    public void permit(String path, int readerId) throws IOException {
        ask(XenStoreMessage.SET_PERMS, "set permissions of " + path, path, "n0\0r" + readerId + "\0");
    }

    /** Removes a path and everything below it, if it exists. */
    public void remove(String path) throws IOException {
        try {
            ask(XenStoreMessage.RM, "remove " + path, path, "");
        } catch (XenStoreException e) {
            if (!e.error().equals("ENOENT")) {
                throw e;
            }
        }
    }

    /** The body of a transaction. */
    @FunctionalInterface
    public interface Work {
        /** Runs the body; more than once if another client changes the same part. */
        void run() throws IOException;
    }

    /**
     * Runs a transaction. Other clients see all of its changes, or none if the body throws.
     *
     * @throws XenStoreException {@code EAGAIN} if other clients changed the same part on every attempt.
     */
    public void inTransaction(Work work) throws IOException {
        if (transaction != 0) {
            throw new IllegalStateException("transactions cannot be nested");
        }
        for (int attempt = 1;; attempt++) {
            transaction = begin();
            boolean done = false;
            try {
                work.run();
                done = true;
            } finally {
                if (!done) {
                    end(false);
                }
            }
            if (end(true)) {
                return;
            }
            if (attempt == MAX_ATTEMPTS) {
                throw new XenStoreException("a transaction, " + MAX_ATTEMPTS + " times", "EAGAIN");
            }
        }
    }

    private int begin() throws IOException {
        String id = exchange(XenStoreMessage.TRANSACTION_START, "begin a transaction", new byte[1]).text();
        try {
            int number = Integer.parseUnsignedInt(id);
            if (number != 0) {
                return number;
            }
        } catch (NumberFormatException e) {
            // reported below, like 0
        }
        throw new IOException("XenStore returned an invalid transaction number");
    }

    /** Whether the transaction took effect; false if another client changed the same part. */
    private boolean end(boolean commit) throws IOException {
        try {
            exchange(XenStoreMessage.TRANSACTION_END, "end a transaction", new byte[] {(byte) (commit ? 'T' : 'F'), 0});
            return true;
        } catch (XenStoreException e) {
            if (commit && e.error().equals("EAGAIN")) {
                return false;
            }
            throw e;
        } finally {
            transaction = 0;
        }
    }

    private XenStoreMessage ask(int type, String what, String path, String rest) throws IOException {
        if (path.isEmpty() || path.indexOf('\0') >= 0) {
            throw new IllegalArgumentException("a path of XenStore has no NUL and is not empty");
        }
        ByteArrayOutputStream payload = new ByteArrayOutputStream();
        payload.writeBytes(path.getBytes(StandardCharsets.UTF_8));
        payload.write(0);
        payload.writeBytes(rest.getBytes(StandardCharsets.UTF_8));
        return exchange(type, what, payload.toByteArray());
    }

    private XenStoreMessage exchange(int type, String what, byte[] payload) throws IOException {
        if (payload.length > XenStoreMessage.MAX_PAYLOAD_BYTES) {
            throw new XenStoreException(what + ", " + payload.length + " bytes with the path; at most "
                + XenStoreMessage.MAX_PAYLOAD_BYTES, "E2BIG");
        }
        long endNs = System.nanoTime() + timeout.toNanos();
        int request = ++requests;
        send(new XenStoreMessage(type, request, transaction, payload).encode(), endNs);
        XenStoreMessage answer = receive(endNs);
        for (int skipped = 0; answer.type() == XenStoreMessage.WATCH_EVENT; skipped++) {
            if (skipped == MAX_SKIPPED) {
                throw new IOException("XenStore sends unrequested events instead of the answer: "
                    + what);
            }
            answer = receive(endNs);
        }
        if (answer.request() != request || (answer.type() != type && answer.type() != XenStoreMessage.ERROR)) {
            throw new IOException("XenStore answers another request: " + what);
        }
        if (answer.type() == XenStoreMessage.ERROR) {
            throw new XenStoreException(what, answer.text().replaceAll("[^A-Za-z0-9_]", "?"));
        }
        return answer;
    }

    private void send(ByteBuffer bytes, long endNs) throws IOException {
        while (bytes.hasRemaining()) {
            if (channel.write(bytes) == 0) {
                await(SelectionKey.OP_WRITE, endNs);
            }
        }
    }

    private XenStoreMessage receive(long endNs) throws IOException {
        ByteBuffer header = take(XenStoreMessage.HEADER_BYTES, endNs);
        byte[] payload = take(XenStoreMessage.payloadBytes(header), endNs).array();
        return XenStoreMessage.decode(header, payload);
    }

    private ByteBuffer take(int length, long endNs) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(length);
        while (bytes.hasRemaining()) {
            int taken = channel.read(bytes);
            if (taken < 0) {
                throw new EOFException("XenStore's answer is too short");
            }
            if (taken == 0) {
                await(SelectionKey.OP_READ, endNs);
            }
        }
        return bytes.flip();
    }

    private void await(int operation, long endNs) throws IOException {
        long leftMs = (endNs - System.nanoTime()) / 1_000_000;
        if (leftMs <= 0) {
            throw new IOException("XenStore does not answer within " + timeout.toMillis() + " ms");
        }
        channel.keyFor(selector).interestOps(operation);
        selector.select(leftMs);
        selector.selectedKeys().clear();
        if (Thread.currentThread().isInterrupted()) {
            throw new IOException("interrupted during a request to XenStore");
        }
    }

    @Override
    public void close() throws IOException {
        try (selector) {
            channel.close();
        }
    }
}
