package io.hawser.worker;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.ControlCodec;
import io.hawser.worker.session.Session;
import io.netty.channel.epoll.Epoll;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;

/** Runs sessions of a simulated guest without a broker. The caller's thread plays the guest. */
final class Rehearsal {
    private static final Logger LOG = System.getLogger(Rehearsal.class.getName());

    private static final int TIMEOUT_MS = 5000;
    private static final long END_LIMIT_MS = 5000; // a busy machine needs more than a second
    private static final int ADDRESS_BYTES = 26; // Netty's accept() needs this length for any kind of address

    private Rehearsal() {}

    /** The calls that a guest makes in its session. */
    @FunctionalInterface
    interface Requests {
        /** Makes the calls; the session has greeted the guest. */
        void make(RehearsedGuest guest) throws IOException;
    }

    /** The broker's message that assigns a session of a rehearsal. */
    static BrokerMessage.Assign assign(SharedRegion.Place place) {
        return new BrokerMessage.Assign(Session.WARM_UP, "", 0, "", "", List.of(), place);
    }

    /**
     * Runs a session over a connection through the loopback interface.
     *
     * @param backend the GPU; stays open.
     * @throws IOException if the connection, the session or a call fails.
     * @throws ExecutionException if the session's end fails.
     * @throws TimeoutException if the session does not end in time.
     */
    static void overLoopback(GpuBackend backend, Requests requests) throws IOException, InterruptedException,
        ExecutionException, TimeoutException {
        Epoll.ensureAvailability(); // loads Netty's native code
        io.netty.channel.unix.Socket listener = io.netty.channel.unix.Socket.newSocketStream();
        try (Socket client = new Socket()) {
            listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            listener.listen(1);
            client.connect(listener.localAddress());
            client.setSoTimeout(TIMEOUT_MS);
            client.setTcpNoDelay(true);
            RehearsedGuest.Peer peer =
                new RehearsedGuest.SocketPeer(client, new DataInputStream(client.getInputStream()));
            run(backend, null, listener.accept(new byte[ADDRESS_BYTES]), peer, requests);
        } finally {
            close(listener);
        }
    }

    /**
     * Runs a session over a region of shared memory. Requests between two replies must fit into its ring
     * of 256 KiB.
     *
     * @param backend the GPU; stays open.
     * @throws IOException if the region, the session or a call fails.
     * @throws ExecutionException if the session's end fails.
     * @throws TimeoutException if the session does not end in time.
     */
    static void overRegion(GpuBackend backend, Requests requests) throws IOException, InterruptedException,
        ExecutionException, TimeoutException {
        try (RehearsedRegion peer = new RehearsedRegion()) {
            run(backend, RehearsedRegion.PLACE, peer.takeDescriptor(), peer, requests);
        }
    }

    /** Runs a session as if the broker had assigned it. */
    private static void run(GpuBackend backend, SharedRegion.Place place, int descriptor, RehearsedGuest.Peer peer,
        Requests requests) throws IOException, InterruptedException, ExecutionException, TimeoutException {
        Worker worker = Worker.rehearsal(backend);
        worker.receive(new ControlCodec().encode(assign(place)), descriptor);
        try {
            RehearsedGuest guest = new RehearsedGuest(peer);
            guest.receive(); // WELCOME
            requests.make(guest);
            peer.leave();
        } finally {
            worker.endRehearsal(END_LIMIT_MS);
        }
    }

    private static void close(io.netty.channel.unix.Socket listener) {
        try {
            listener.close();
        } catch (IOException e) {
            LOG.log(Level.WARNING, "a rehearsal''s socket stays open: {0}", e.getMessage());
        }
    }
}
