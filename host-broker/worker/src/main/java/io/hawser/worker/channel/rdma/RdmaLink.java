package io.hawser.worker.channel.rdma;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.os.StreamSocket;
import io.hawser.shm.rdma.RdmaEnd;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.channel.GuestMemory;
import io.hawser.worker.channel.GuestWatch;
import io.hawser.worker.channel.ring.RingLink;
import java.io.ByteArrayOutputStream;
import java.io.IOException;

/**
 * The link to a guest over RDMA. The first records go by the session's connection, because they answer the guest's
 * offer; all later ones go by the mirror. The connection lasts as long as the session, and carries nothing more.
 */
public final class RdmaLink extends RingLink {
    private final StreamSocket socket;
    private final EventFd doorbell;
    private final MirrorRings rings;
    private ByteArrayOutputStream greeting = new ByteArrayOutputStream(); // null after the first flush
    private volatile boolean isOpen = true;

    /**
     * Starts the session thread.
     *
     * @param end the worker's end, connected; the caller closes it after {@link #shutdown}.
     * @param descriptor the guest's connection, which this link closes.
     * @throws IOException if the connection cannot be used; the descriptor then stays the caller's.
     */
    public static RdmaLink start(RdmaEnd end, int descriptor) throws IOException {
        StreamSocket socket = new StreamSocket(descriptor);
        socket.keepAlive(GuestWatch.KEEPALIVE_IDLE_S, GuestWatch.KEEPALIVE_INTERVAL_S, GuestWatch.KEEPALIVE_PROBES);
        RdmaLink link = new RdmaLink(socket, EventFd.create(), end);
        link.start();
        return link;
    }

    private RdmaLink(StreamSocket socket, EventFd doorbell, RdmaEnd end) {
        this(socket, doorbell, new MirrorRings(end, socket, doorbell));
    }

    private RdmaLink(StreamSocket socket, EventFd doorbell, MirrorRings rings) {
        super(rings);
        this.socket = socket;
        this.doorbell = doorbell;
        this.rings = rings;
    }

    @Override
    public void append(RecordWriter record, int lengthBytes) {
        if (greeting == null) {
            super.append(record, lengthBytes);
        } else {
            greeting.write(record.array(), 0, lengthBytes);
        }
    }

    @Override
    public void flush() {
        if (greeting != null && greeting.size() != 0) {
            byte[] records = greeting.toByteArray();
            greeting = null;
            if (!socket.sendAtOnce(records)) { // a few hundred bytes, on a connection that has carried little yet
                rings.lose("the guest has closed the connection");
            }
        }
        super.flush();
    }

    @Override
    public GuestMemory guestMemory() {
        return rings.memory();
    }

    @Override
    public void watchGuest(Runnable hung) {
        GuestWatch.start(socket.descriptor(), () -> isOpen, this, hung);
    }

    @Override
    public void close() {
        isOpen = false;
        super.close();
    }

    @Override
    public void shutdown(long limitMs) {
        super.shutdown(limitMs);
        if (hasEnded()) {
            socket.close();
            doorbell.close();
        }
    }
}
