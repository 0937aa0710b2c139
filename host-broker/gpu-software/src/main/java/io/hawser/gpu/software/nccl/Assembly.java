package io.hawser.gpu.software.nccl;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;

/**
 * The ranks of a communicator that have joined at its root. When all have, each gets the ports of all. When all have
 * connected, each gets a last byte. A rank that ends before ends the joining of all. Thread-safe.
 */
final class Assembly {
    private SocketChannel[] ranks; // null until the first has joined
    private int[] ports;
    private int joined;
    private int connected;
    private boolean isOver;

    /** Serves a rank until its part is over; runs on a thread of its own. */
    void serve(SocketChannel channel, Hello hello) throws IOException {
        try {
            join(channel, hello);
            SocketLink.read(channel, ByteBuffer.allocate(1)); // the rank has connected; fails when it ends
            finish();
            channel.read(ByteBuffer.allocate(1)); // the rank closes the connection
        } finally {
            if (!isOver()) {
                fail();
            }
        }
    }

    private synchronized void join(SocketChannel channel, Hello hello) throws IOException {
        if (ranks == null && hello.number() >= 1 && hello.number() <= Bootstrap.MAX_RANKS) {
            ranks = new SocketChannel[hello.number()];
            ports = new int[hello.number()];
        }
        if (isOver || ranks == null || hello.number() != ranks.length || hello.from() < 0
            || hello.from() >= ranks.length || ranks[hello.from()] != null) {
            throw new IOException("ranks must agree in their number, and each must join once: ranks=" + hello.number()
                + " rank=" + hello.from());
        }
        ranks[hello.from()] = channel;
        ports[hello.from()] = hello.port();
        if (++joined == ranks.length) {
            ByteBuffer all = ByteBuffer.allocate(Integer.BYTES * ports.length).order(ByteOrder.LITTLE_ENDIAN);
            for (int port : ports) {
                all.putInt(port);
            }
            sendAll(all.flip());
        }
    }

    private synchronized void finish() throws IOException {
        if (++connected == ranks.length) {
            isOver = true;
            sendAll(ByteBuffer.allocate(1));
        }
    }

    private void sendAll(ByteBuffer message) throws IOException {
        for (SocketChannel rank : ranks) {
            SocketLink.write(rank, message.duplicate());
        }
    }

    /** Whether at least two ranks have joined, and others have not yet. */
    synchronized boolean awaitsRanks() {
        return joined > 1 && joined < ranks.length;
    }

    private synchronized boolean isOver() {
        return isOver;
    }

    /** Ends the joining of all ranks. */
    synchronized void fail() {
        isOver = true;
        for (int i = 0; ranks != null && i < ranks.length; i++) {
            if (ranks[i] != null) {
                SocketLink.close(ranks[i]);
            }
        }
    }
}
