package io.hawser.worker;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.client.ContextRequests;
import io.hawser.cuda.generated.client.CopyRequests;
import io.hawser.cuda.generated.client.DeviceRequests;
import io.hawser.cuda.generated.client.MemoryRequests;
import io.hawser.cuda.generated.client.StreamRequests;
import io.hawser.shm.os.SocketMessages;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordReader;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.channel.tcp.TcpLink;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.ControlCodec;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.session.Session;
import io.netty.channel.epoll.Epoll;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;

/**
 * Runs short sessions with a simulated guest over both carriers before the worker is ready. The guest makes the calls
 * that every program makes, so that the first real guest does not wait for class loading. More rounds would also
 * compile the code, but would delay each start of a worker.
 */
final class WarmUp {
    private static final Logger LOG = System.getLogger(WarmUp.class.getName());

    private static final int ROUNDS = 20;
    private static final int BURSTS = 8; // each burst costs a thread switch, which takes long on a loaded machine
    private static final int BURST_CALLS = 400;
    private static final int TIMEOUT_MS = 5000;
    private static final long END_LIMIT_MS = 1000;
    private static final int ADDRESS_BYTES = 26; // Netty's accept() needs this length for any kind of address
    private static final int SMALL_BYTES = 64;
    private static final int LARGE_BYTES = 64 * 1024;
    private static final long CONTEXT = (long) HandleKind.CONTEXT.number() << 40 | 1;

    private final Peer peer;
    private final RecordWriter writer = new RecordWriter(2 * LARGE_BYTES);
    private final RecordReader reader = new RecordReader();
    private long sequence = 3; // HELLO and PROOF of a handshake would have been 1 and 2
    private int context;

    /** The guest's end of a carrier. */
    interface Peer {
        /** Sends the record that {@code record} holds after its {@code end()}. */
        void send(RecordWriter record, int lengthBytes) throws IOException;

        /** Waits for {@code bytes} bytes. */
        void receive(byte[] target, int offset, int bytes) throws IOException;

        /** Ends the session like a guest that leaves. */
        void leave() throws IOException;
    }

    /** A guest that is connected by a socket. */
    private record SocketPeer(Socket socket, DataInputStream in) implements Peer {
        @Override
        public void send(RecordWriter record, int lengthBytes) throws IOException {
            socket.getOutputStream().write(record.array(), 0, lengthBytes);
        }

        @Override
        public void receive(byte[] target, int offset, int bytes) throws IOException {
            in.readFully(target, offset, bytes);
        }

        @Override
        public void leave() throws IOException {
            socket.shutdownOutput();
        }
    }

    private WarmUp(Peer peer) {
        this.peer = peer;
    }

    /**
     * Runs one session over loopback with the calls of a typical program, then one over a region. A failure only makes
     * the first real session slower; an example is a machine without a loopback interface.
     *
     * @param backend the GPU.
     */
    static void run(GpuBackend backend) {
        try {
            overLoopback(backend);
            overRegion(backend);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the interrupt makes the later run() return at once
        } catch (IOException | ExecutionException | TimeoutException e) {
            LOG.log(Level.WARNING, "the worker is not warmed up: " + e.getMessage(), e);
        }
    }

    /**
     * Loads classes on a background thread while the caller opens the GPU: for a worker that has no time to warm up.
     *
     * @return the thread. It opens files, so it must end before the worker enters its jail.
     */
    static Thread loadInBackground() {
        return Thread.ofPlatform().daemon().name("load").start(() -> {
            try {
                SocketMessages.load();
                ControlCodec codec = new ControlCodec();
                codec.decode(codec.encode(assign(null)));
                codec.encode(new WorkerMessage.Ended("", false));
                Epoll.ensureAvailability();
                new TcpLink(io.netty.channel.unix.Socket.newSocketStream().intValue()).shutdown(END_LIMIT_MS);
            } catch (IOException | RuntimeException e) {
                LOG.log(Level.WARNING, "classes could not be loaded ahead: " + e.getMessage(), e);
            }
        });
    }

    /** The broker's message that assigns a warm-up session. */
    private static BrokerMessage.Assign assign(SharedRegion.Place place) {
        return new BrokerMessage.Assign(Session.WARM_UP, "", 0, "", "", List.of(), place);
    }

    private static void overLoopback(GpuBackend backend) throws IOException, InterruptedException, ExecutionException,
        TimeoutException {
        Epoll.ensureAvailability(); // loads Netty's native code
        io.netty.channel.unix.Socket listener = io.netty.channel.unix.Socket.newSocketStream();
        try (Socket client = new Socket()) {
            listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            listener.listen(1);
            client.connect(listener.localAddress());
            client.setSoTimeout(TIMEOUT_MS);
            client.setTcpNoDelay(true);
            Peer peer = new SocketPeer(client, new DataInputStream(client.getInputStream()));
            runSession(backend, null, listener.accept(new byte[ADDRESS_BYTES]), peer,
                WarmUp::playProgram);
        } finally {
            closeListener(listener);
        }
    }

    private static void overRegion(GpuBackend backend) throws IOException, InterruptedException, ExecutionException,
        TimeoutException {
        try (WarmUpRegion peer = new WarmUpRegion()) {
            runSession(backend, WarmUpRegion.PLACE, peer.takeDescriptor(), peer, WarmUp::playBursts);
        }
    }

    /** The calls that a guest of the warm-up makes. */
    @FunctionalInterface
    private interface Requests {
        void make(WarmUp guest) throws IOException;
    }

    /** Runs a session as if the broker had assigned it. */
    private static void runSession(GpuBackend backend, SharedRegion.Place place, int descriptor, Peer peer,
        Requests requests) throws IOException, InterruptedException, ExecutionException, TimeoutException {
        Worker worker = Worker.rehearsal(backend);
        worker.receive(new ControlCodec().encode(assign(place)), descriptor);
        try {
            requests.make(new WarmUp(peer));
            peer.leave();
        } finally {
            worker.endRehearsal(END_LIMIT_MS);
        }
    }

    private static void closeListener(io.netty.channel.unix.Socket listener) {
        try {
            listener.close();
        } catch (IOException e) {
            LOG.log(Level.WARNING, "the warm-up''s socket stays open: {0}", e.getMessage());
        }
    }

    /** Makes the calls of a typical program: a context, memory, copies. */
    private void playProgram() throws IOException {
        receive(); // WELCOME
        call(DeviceRequests.hwsDeviceInfo(writer, sequence, 1, 0, 0));
        call(ContextRequests.hwsContextCreate(writer, sequence, 1, 0, CONTEXT, 0, 0, 1));
        context = (int) CONTEXT;
        MemorySegment small = MemorySegment.ofArray(new byte[SMALL_BYTES]);
        MemorySegment large = MemorySegment.ofArray(new byte[LARGE_BYTES]);
        for (int i = 0; i < ROUNDS; i++) {
            call(MemoryRequests.cuMemAlloc_v2(writer, sequence, 1, context, LARGE_BYTES));
            long memory = reader.i64(0);
            send(CopyRequests.hwsCopyHtoD(writer, sequence, 1, context, memory, 0, SMALL_BYTES, small));
            send(CopyRequests.hwsCopyHtoD(writer, sequence, 1, context, memory, 0, LARGE_BYTES, large));
            call(StreamRequests.cuStreamSynchronize(writer, sequence, 1, context, 0));
            call(CopyRequests.hwsCopyDtoH(writer, sequence, 1, context, memory, SMALL_BYTES, 0));
            call(CopyRequests.hwsCopyDtoH(writer, sequence, 1, context, memory, LARGE_BYTES, 0));
            send(MemoryRequests.cuMemFree_v2(writer, sequence, 1, context, memory));
        }
    }

    /**
     * Makes bursts of calls without a context. They fail, but take the same path as calls that succeed. The other
     * session has created a context, and creating a second one can be expensive.
     */
    private void playBursts() throws IOException {
        receive(); // WELCOME
        for (int i = 0; i < BURSTS; i++) {
            for (int j = 1; j < BURST_CALLS; j++) {
                int lengthBytes = StreamRequests.cuStreamSynchronize(writer, sequence, 1, 0, 0);
                // Clears the reply flag, which the encoder sets as the description demands.
                writer.memory().set(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.FLAGS_OFFSET, 0);
                send(lengthBytes);
            }
            call(DeviceRequests.hwsDeviceInfo(writer, sequence, 1, 0, 0));
        }
    }

    private void send(int lengthBytes) throws IOException {
        peer.send(writer, lengthBytes);
        sequence++;
    }

    /** Sends a request and waits for its reply. */
    private void call(int lengthBytes) throws IOException {
        long request = sequence;
        send(lengthBytes);
        do {
            receive();
        } while (reader.opcode() >= 0);
        if (reader.sequence() != request || reader.flags() != 0) {
            throw new IOException("a call of the warm-up failed: CUresult=" + reader.flags());
        }
    }

    private void receive() throws IOException {
        byte[] head = new byte[Integer.BYTES];
        peer.receive(head, 0, head.length);
        int lengthBytes = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).getInt();
        if (lengthBytes < RecordLayout.HEADER_BYTES || lengthBytes > RecordLayout.MAX_RECORD_BYTES) {
            throw new IOException("a reply to the warm-up has an invalid length: lengthBytes=" + lengthBytes);
        }
        byte[] record = Arrays.copyOf(head, lengthBytes);
        peer.receive(record, Integer.BYTES, lengthBytes - Integer.BYTES);
        reader.wrap(MemorySegment.ofArray(record), 0, lengthBytes);
    }
}
